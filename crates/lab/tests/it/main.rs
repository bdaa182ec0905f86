//! Integration tests of the crate in one program, so that it is linked only once.

mod build;
mod closed;
mod common;
mod defaults;
mod faults;
mod fluid;
mod golden;
mod jobs;
mod no_effect;
mod packets;
mod policies;
mod reactions;
mod remote;
mod runs;
mod slow_networks;
mod specs;
mod spread;
mod traces;
mod unconnected;
mod warnings;
mod workloads;
