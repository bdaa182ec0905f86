//! JSON documents that the lab, the testbed and the traffic program exchange. The testbed makes hosts out of network
//! namespaces.
//!
//! The lab writes a [`TestbedRequest`]. The testbed assigns addresses and makes a [`Schedule`]. The traffic program
//! runs it and returns a [`Recording`], which the lab reads. All times are in ns of the hosts' clock since the start
//! of the run. All rates are those of the hosts, bit/s on the wire.

mod control;
mod recording;
mod relay;
mod request;
mod schedule;

pub use control::{Control, SourcePath};
pub use recording::{Carried, EndedDaemon, LinkCounts, LinkSample, Recording};
pub use relay::{
    MOST_DELAY_NS, MOST_RELAYED, PacketFate, PacketImpairment, RelayAnswer, RelayChange, RelayCommand, RelayOrder,
    RelayedCounts, RelayedLink, TimedChange,
};
pub use request::{RequestFlow, RequestLink, RequestNode, TestbedRequest, WeightChange};
pub use schedule::{Host, MOST_FLOWS, MOST_HOSTS, Schedule, ScheduledFlow, VethPort};

/// Version of these documents.
pub const SCHEMA: u32 = 1;
