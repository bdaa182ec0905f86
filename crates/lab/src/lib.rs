//! From a spec to results: what is simulated ([`Spec`]), the runs, and the one long table that they make.
//!
//! Only this crate reads and writes files.

mod cell;
mod convergence;
mod diff;
mod error;
mod export;
mod files;
mod policy;
mod quiet;
mod read;
mod run;
mod section;
mod setting;
mod simulate;
mod spec;
mod store;
mod summary;
mod table;
mod topology;
mod window;

pub mod drivers;
pub mod stats;
pub mod sweep;
pub mod workload;

pub use diff::{Compared, Difference, Pair, Who, diff};
pub use drivers::SchemeChoice;
pub use error::Error;
pub use export::export;
pub use files::read_text;
pub use run::{Options, Outcome, Progress, run};
pub use setting::Cost;
pub use spec::{Cell, Spec, ValidSpec};
pub use store::{BUILD, VERSION};
pub use summary::{SIZE_BINS, SizeBin, Summary, SummaryRow, summary};
pub use table::{COLUMNS, Column, KINDS, Row};
pub use topology::Topology;
