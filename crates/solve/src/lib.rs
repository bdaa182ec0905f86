//! Exact bandwidth allocation: the rates of flows under a policy, with a certificate.
//!
//! [`solve`] solves one [`Case`]. Every [`Answer`] has a [`Certificate`] that [`certify`] computes from the answer
//! and the case alone. [`MaxMin`] is the same water-filling for callers that solve often and store flows themselves,
//! such as the flow-level simulator.

pub mod answer;
pub mod certificate;
mod conic;
mod double_double;
mod fair_share;
mod fold;
mod freeze;
pub mod incremental;
mod levels;
pub mod live;
pub mod max_min;
pub mod ned;
mod num;
mod options;
mod sequence;
mod simplex;
mod solver;
pub mod structure;
mod throughput;
#[doc(no_inline)]
pub use subak_core::utility;
mod vertex;
pub mod wfk;
pub mod xwi;

pub use answer::{Answer, Certificate, LevelDual, LinkRow, LinkRows, Status};
pub use certificate::{certify, certify_maximum};
pub use freeze::freeze_iterations;
pub use incremental::Incremental;
pub use levels::MOST_PATHS;
pub use live::LiveMaxMin;
pub use max_min::MaxMin;
pub use options::{SolveMethod, SolveOptions};
pub use solver::{maximize, maximize_from, solve, solve_from};
pub use utility::{BandwidthFunction, Utility};

#[doc(no_inline)]
pub use subak_core::{Case, InputError};
