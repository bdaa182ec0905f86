//! Computations of the papers' experiments that no spec expresses. For the PERC thesis: the round-based backend, with
//! control messages alone, and the structure of water-filling. For NUMFabric: xWI over an ideal transport, with the
//! exact solvers. For Flowtune: the optimizer alone. For Soze: random networks in packets.
//!
//! An experiment measures. The published values and the criteria are in its `published.toml`, repetitions and
//! parameters in its `experiment.toml`. Papers and experiments have the names of their folders in
//! `python/subak/papers`.
//!
//! [`run`] returns `{"schema", "setup", "tables", "series", "values", "notes"}`. A table is `{"columns", "rows"}`. A
//! value is either exact or a sample. A sample is `{"statistic", "data", "of"}`: a statistic of the list `data`, to
//! be resampled, with one entry per item that `of` names. With `"over"` beside `"data"` it is a paired ratio. A
//! fraction is `{"statistic": "share", "hits", "count", "of"}`. An event that never happened has the value null.

#[macro_use]
mod registry;

mod report;

pub use registry::ExperimentKind;

use rayon::prelude::*;
use registry::{ExperimentInfo, entries};
use report::Report;
use serde_json::{Map, Value, json};
use subak_core::InputError;

papers![perc, numfabric, flowtune, soze];

/// Parameters of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentPlan {
    /// Number of repetitions; their meaning depends on the experiment.
    pub runs: usize,
    /// The first seed.
    pub seed: u64,
    /// Parameters of the experiment; each has a default.
    pub settings: Map<String, Value>,
}

/// Callback for progress: runs done, and all runs.
pub type ProgressFn<'a> = dyn FnMut(usize, usize) + Send + 'a;

/// All experiments of this crate, by name.
pub fn all() -> Vec<(&'static str, ExperimentKind)> {
    entries().map(|e| (e.name, e.kind)).collect()
}

/// Runs the experiment called `name`.
pub fn run(name: &str, plan: &ExperimentPlan, progress: &mut ProgressFn) -> Result<Value, InputError> {
    let Some(experiment) = entries().find(|known| known.name == name) else {
        let known: Vec<_> = entries().map(|e| e.name).collect();
        let hint = format!("choose one of: {}", known.join(", "));
        return Err(InputError::new("name", format!("there is no experiment \"{name}\" here"), hint));
    };
    if let Some(unknown) = plan.settings.keys().find(|key| !experiment.settings.contains(&key.as_str())) {
        let hint = match experiment.settings {
            [] => "it has no settings".into(),
            known => format!("choose among: {}", known.join(", ")),
        };
        return Err(InputError::new(format!("settings.{unknown}"), format!("{name} has no such setting"), hint));
    }
    let mut context = Context { plan, progress, report: Report::default(), ran: 0 };
    (experiment.compute)(&mut context)?;
    Ok(context.report.into_json())
}

/// State of an experiment while it runs.
struct Context<'a> {
    plan: &'a ExperimentPlan,
    progress: &'a mut ProgressFn<'a>,
    report: Report,
    ran: usize,
}

impl Context<'_> {
    /// Number of repetitions, at least one.
    fn runs(&self) -> usize {
        self.plan.runs.max(1)
    }

    fn seed(&self) -> u64 {
        self.plan.seed
    }

    /// The parameter `name`, between `least` and `most`; by default `default`.
    fn number(&self, name: &str, default: f64, least: f64, most: f64) -> Result<f64, InputError> {
        let Some(given) = self.plan.settings.get(name) else { return Ok(default) };
        let wanted = format!("give a number from {least} to {most}");
        let number = given.as_f64().filter(|x| (least..=most).contains(x));
        number.ok_or_else(|| InputError::new(format!("settings.{name}"), format!("it is {given}"), wanted))
    }

    /// The integer parameter `name`, from 1 to `most`; by default `default`.
    fn count(&self, name: &str, default: usize, most: usize) -> Result<usize, InputError> {
        self.number(name, default as f64, 1.0, most as f64).map(|n| n.round() as usize)
    }

    /// Runs `work` on every job, on all cores; results are in order. `of` is the total number of jobs of the
    /// experiment.
    fn each<J: Sync, T: Send>(
        &mut self,
        jobs: &[J],
        of: usize,
        work: impl Fn(&J) -> Result<T, InputError> + Sync,
    ) -> Result<Vec<T>, InputError> {
        let mut results = Vec::with_capacity(jobs.len());
        for batch in jobs.chunks(16) {
            results.extend(batch.par_iter().map(&work).collect::<Result<Vec<T>, InputError>>()?);
            self.ran += batch.len();
            (self.progress)(self.ran, of);
        }
        Ok(results)
    }
}

/// The `q`-quantile (0 to 1) of `values`, without interpolation. Sorts `values`.
fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n => {
            let place = ((n - 1) as f64 * q).round() as usize;
            values[place]
        }
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// `x` as JSON; null if it is infinite.
fn finite(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { Value::Null }
}
