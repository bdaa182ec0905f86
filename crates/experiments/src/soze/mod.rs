//! Soze's experiments beyond a spec: random networks in packets, and the recurrences of the paper's appendix.

mod draw;
mod params;
mod recurrence;
mod settles;
mod watch;

pub(crate) use params::{SETTINGS as PARAMS, params};
pub(crate) use settles::{SETTINGS as SETTLES, settles};
