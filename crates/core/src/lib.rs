//! Shared base of Subak: units, networks, routing, flows, policies, named random streams, and the traits between a
//! scheme and its backend.
//!
//! Time is an integer number of nanoseconds ([`Ns`]), sizes are integer bytes, rates are `f64` bit/s; each name
//! carries its unit. Nothing here reads a file, a clock or a socket, and nothing prints.

pub mod ahead;
pub mod backend;
pub mod capacities;
pub mod case;
pub mod curve;
pub mod document;
pub mod flows;
pub mod formats;
pub mod generate;
pub mod idle;
pub mod ids;
pub mod input_error;
pub mod keys;
pub mod network;
pub mod policy;
pub mod quantity;
pub mod rng;
pub mod route;
pub mod scheme;
pub mod section;
pub mod sizes;
pub mod utility;

pub use case::Case;
pub use flows::{Flow, Flows, Stranded, Why};
pub use ids::{Id, IdVec, Offsets};
pub use input_error::{InputError, InputErrors};
pub use network::{Link, LinkId, Network, Nic, NodeId, NodeKind};
pub use policy::Policy;
pub use utility::Utility;

/// Simulated time since the start of a run, or a duration, in nanoseconds.
pub type Ns = u64;

id! {
    /// Id of a flow: its index in the list of flows.
    pub struct FlowId(u32);
    /// Id of a subflow: its index among the subflows of its flow.
    pub struct SubflowId(u8);
}
