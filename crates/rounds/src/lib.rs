//! The round-based backend runs a scheme's control messages on a fixed set of flows. It compares rates with the exact
//! ones, and the number of rounds with theoretical bounds (PERC thesis, sections 2.5, 3.3 and 3.4).

pub mod backend;
pub mod converge;
pub mod replay;
pub mod run;
pub mod setup;
pub mod stepping;
pub mod theory;

pub use backend::{Conditions, Rounds, Wire};
pub use converge::{ConvergeOptions, converge};
pub use replay::{ReplayStep, UpdateOrder};
pub use run::{ConvergeOutcome, RoundsPlan, names, run};
pub use setup::{CapacityDraw, Random, Setup};
pub use stepping::{Recorded, SteppedRounds};
#[doc(no_inline)]
pub use subak_solve::wfk::{Degree, WaterFilling};
