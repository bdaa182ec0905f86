//! The fluid backend: rates instead of packets.
//!
//! [`Fluid::ideal`] gives every flow its exact rate under the policy from the moment it starts to the moment it ends, as if the
//! network knew the optimum at once. It is the yardstick that the papers hold their schemes against ("ideal max-min", PERC
//! thesis, sections 2.5 and 4.3.2). [`idle_fct_ns`](subak_core::idle::idle_fct_ns) is the other yardstick: the time a flow takes alone.
//! [`Fluid::settling`] runs any scheme that states how fast it settles: its rates approach the exact ones of its goal.

mod backend;
mod lag;
mod rates;

pub use backend::{Fluid, INFO, Stated, lone_fct_ns};
pub use rates::Rates;
