//! Flowtune's allocator as a daemon (Perry et al., NSDI 2017, sections 2, 6 and 7). It adds sockets, a clock, keys, a
//! control socket, metrics and a live page to `crates/control`, which the simulator runs too.

pub mod config;
pub mod control;
pub mod files;
mod guard;
pub mod http;
mod listener;
pub mod plan;
pub mod request;
mod server;
mod sockets;
mod standby;
pub mod state;
mod threads;
pub mod watch;

pub use server::Server;
