//! Subak on Linux hosts: what sends, what steers, and what looks at queues. `subak-agent` is its program.

#[cfg(feature = "bpf")]
pub mod kernel;
pub mod doctor;
pub mod hosts;
mod namespace;
mod netlink;
mod sys;
pub mod traffic;

pub use netlink::Malformed;
