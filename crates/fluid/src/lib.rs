//! The fluid driver: rates instead of packets.
//!
//! [`Ideal`] gives every flow its exact rate under the policy from the moment it starts to the moment it ends, as if the network
//! knew the optimum at once. It is the yardstick that the papers hold their schemes against ("ideal max-min", PERC
//! thesis, sections 2.5 and 4.3.2). [`idle_fct_ns`] is the other yardstick: the time a flow takes alone.

mod ideal;
mod idle;
mod rates;

pub use ideal::{INFO, Ideal, lone_fct_ns};
pub use idle::{idle_fct_ns, wire_time_ns};
pub use rates::Rates;
