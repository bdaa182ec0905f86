//! From a spec to results, in three modules: [`spec`] reads descriptions of simulations, `runs` runs them, and
//! `results` stores and analyses the results table.
//!
//! Only this crate reads and writes files.

mod error;
mod files;
mod quiet;
mod results;
mod runs;
pub mod spec;

pub use error::Error;
pub use files::read_text;
pub use results::capture::{Captured, capture};
pub use results::diff::{Compared, Difference, Pair, RowKey, diff};
pub use results::export::export;
pub use results::footer::{BUILD, VERSION};
pub use results::stats;
pub use results::store::TrialFiles;
pub use results::summary::{SIZE_BINS, SizeBin, Summary, SummaryRow, summary};
pub use results::table::{COLUMNS, KINDS, ResultRow, TableColumn};
pub use results::warning::Warning;
pub use runs::remote::{RemoteTrial, RemoteWorkers, run_trial};
pub use runs::stepping::{StepEnd, Stepping};
pub use runs::task::Testbed;
pub use runs::watched::WatchedTrial;
pub use runs::{Progress, RunOptions, RunOutcome, run, run_with};
pub use spec::backends::{self, Cost};
pub use spec::choice::SchemeChoice;
pub use spec::outside::{GivenScheme, Loader, SchemeText};
pub use spec::topology::Topology;
pub use spec::workload::jobs::Policies;
pub use spec::{FlowPath, Spec, Trial, ValidSpec, sweep, workload};
