//! Subak on Linux hosts: traffic generation, congestion control and queue telemetry. The program is `subak-agent`.

#[cfg(any(feature = "bpf", test))]
mod device;
pub mod doctor;
pub mod flowtune;
pub mod hosts;
#[cfg(feature = "bpf")]
pub mod kernel;
mod namespace;
mod netlink;
pub mod relay;
pub mod shares;
mod sys;
pub mod traffic;
pub mod wait;
pub mod weight_log;

pub use netlink::{MalformedNetlink, read as read_queues};
