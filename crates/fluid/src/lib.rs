//! The fluid backend: rates instead of packets.
//!
//! [`Fluid::ideal`] gives every active flow its exact rate under the policy, without any delay. Papers compare their
//! schemes with it ("ideal max-min", PERC thesis, sections 2.5 and 4.3.2). The other reference is
//! [`idle_fct_ns`](subak_core::idle::idle_fct_ns), the FCT of a flow that is alone. [`Fluid::settling`] runs any
//! scheme with a stated convergence time: its rates approach the exact ones of its goal. [`Local`] repairs rates around each
//! change to within a tolerance, for large networks.

mod backend;
mod lag;
mod local;
mod rates;
mod tail;

pub use backend::{Fluid, INFO, Stated, lone_fct_ns};
pub use local::Local;
pub use rates::Rates;
