//! Results: the table, its files, and its analysis.

pub(crate) mod capture;
pub(crate) mod diff;
pub(crate) mod export;
pub(crate) mod facts;
mod first_seed;
pub(crate) mod footer;
mod no_effect;
mod overloaded;
pub(crate) mod packets;
mod pcapng;
pub(crate) mod read;
mod renamed;
pub(crate) mod scenes;
pub(crate) mod spent;
pub mod stats;
pub(crate) mod store;
pub(crate) mod summary;
pub(crate) mod table;
pub(crate) mod warning;
pub(crate) mod warnings;
