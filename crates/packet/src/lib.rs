//! The packet-level simulator: an event kernel, links, output queues, reliable hosts and injected faults, generic
//! over the scheme. [`build`] creates a simulation of a scheme by its name.
//!
//! The unit of work is the packet-hop: one packet leaving one queue onto one link.

mod build;
mod doubts;
mod ends;
mod event;
mod net;
mod parallel;
mod sim;
mod sizing;
mod wheel;

pub use build::{beside, build, build_beside, build_on, build_scrambled};
pub use doubts::{doubts, ignores};
pub use sim::Sim;
pub use sizing::{default_buffer_bytes, longest_rtt_ns};
