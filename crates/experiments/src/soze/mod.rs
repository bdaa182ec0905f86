//! Soze's experiments beyond a spec: random networks in packets, and the recurrences of the paper's appendix.

mod coflow;
mod draw;
mod fluid;
mod params;
mod readings;
mod recurrence;
mod scale;
mod settles;
mod watch;

pub(crate) use coflow::{SETTINGS as COFLOW, coflow};
pub(crate) use params::{SETTINGS as PARAMS, params};
pub(crate) use scale::{SETTINGS as SCALE, scale};
pub(crate) use settles::{SETTINGS as SETTLES, settles};
