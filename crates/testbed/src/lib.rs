//! JSON documents between the lab, the testbed (which makes hosts of namespaces) and the traffic program: requests and
//! recordings.
//!
//! The lab writes an [`TestbedRequest`]; the testbed gives its nodes addresses and makes a [`Schedule`] of it; the traffic program
//! answers with a [`Recording`], which the lab reads. All times are of the hosts' clock, ns, and count from the start of the
//! run; all rates are those of the hosts, bit/s on the wire.

mod control;
mod recording;
mod request;
mod schedule;

pub use control::{Control, SourcePath};
pub use recording::{Carried, LinkCounts, LinkSample, Recording};
pub use request::{RequestFlow, RequestLink, RequestNode, TestbedRequest, WeightChange};
pub use schedule::{Host, MOST_FLOWS, MOST_HOSTS, Schedule, ScheduledFlow, VethPort};

/// Of these documents.
pub const SCHEMA: u32 = 1;
