//! Flowtune's allocator as a daemon: `crates/control`, which the simulator runs too, with sockets, a clock, keys, a socket to be
//! told things by, metrics and a live page around it (Perry et al., NSDI 2017, sections 2, 6 and 7).

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
pub mod watch;

pub use server::Server;
