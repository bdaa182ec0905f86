//! The packet-level simulator: an event kernel, links, output queues, reliable hosts and injected faults, generic
//! over the scheme. [`build`] creates a simulation of a scheme by its name.
//!
//! The unit of work is the packet-hop: one packet leaving one queue onto one link.

mod admission;
mod build;
mod cut;
mod delivery;
mod departures;
mod doubts;
mod effects;
mod event;
mod flow;
mod flows;
mod impairments;
mod losses;
mod machines;
mod nic;
mod nodes;
mod parallel;
mod pauses;
mod pfc;
mod port;
mod process;
mod routes;
mod sender;
mod sending;
mod serializer;
mod setup;
mod sim;
mod sizing;
mod timeouts;
mod turns;
mod waiting;
mod watch;
mod ways;
mod wheel;

pub use build::{build, build_on};
pub use doubts::{doubts, ignores};
pub use sim::Sim;
pub use sizing::{default_buffer_bytes, longest_rtt_ns};
