//! The tests across the crate, in one program: it links once.

mod build;
mod closed;
mod common;
mod defaults;
mod faults;
mod fluid;
mod golden;
mod jobs;
mod packets;
mod policies;
mod reactions;
mod remote;
mod runs;
mod specs;
mod spread;
mod traces;
mod unconnected;
mod warnings;
mod workloads;
