//! Subak on Linux hosts: what sends, what steers, and what looks at queues. `subak-agent` is its program.

#[cfg(any(feature = "bpf", test))]
mod device;
pub mod doctor;
pub mod flowtune;
pub mod hosts;
#[cfg(feature = "bpf")]
pub mod kernel;
mod namespace;
mod netlink;
pub mod shares;
mod sys;
pub mod traffic;
pub mod wait;

pub use netlink::{MalformedNetlink, read as read_queues};
