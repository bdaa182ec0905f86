//! Computations of the papers' experiments that no spec expresses: the PERC thesis' on the round-based backend, with
//! control messages alone; water-filling's structure and xWI over an ideal transport, with the exact solvers; Flowtune's
//! with its optimizer alone; Soze's random networks in packets.
//!
//! An experiment measures. What was published, and what must hold of what it measured, stands in its `published.toml`;
//! how often it repeats and with which settings in its `experiment.toml`. Papers and experiments have the names here that
//! their folders have in `python/subak/papers`.
//!
//! [`run`] answers `{"schema", "setup", "tables", "series", "values", "notes"}`. A table is `{"columns", "rows"}`. A value is
//! exact as it stands, or a sample: `{"statistic", "data", "of"}`, the values of one statistic that are to be resampled
//! and what each is of; `"over"` beside `"data"` makes it a ratio, pair by pair; a share is `{"statistic": "share", "hits",
//! "count", "of"}`. What never came, and so has no number, is null.

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
    /// Repetitions; what they are of is the experiment's affair.
    pub runs: usize,
    /// The first seed.
    pub seed: u64,
    /// Parameters of its own; each has a default.
    pub settings: Map<String, Value>,
}

/// Told of progress: runs done, and all.
pub type ProgressFn<'a> = dyn FnMut(usize, usize) + Send + 'a;

/// The experiments here, by name.
pub fn all() -> Vec<(&'static str, ExperimentKind)> {
    entries().map(|e| (e.name, e.kind)).collect()
}

/// Computes the experiment called `name`.
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
    /// Repetitions, at least one.
    fn runs(&self) -> usize {
        self.plan.runs.max(1)
    }

    fn seed(&self) -> u64 {
        self.plan.seed
    }

    /// The number that the plan sets as `name`, between `least` and `most`, or else `default`.
    fn number(&self, name: &str, default: f64, least: f64, most: f64) -> Result<f64, InputError> {
        let Some(given) = self.plan.settings.get(name) else { return Ok(default) };
        let wanted = format!("give a number from {least} to {most}");
        let number = given.as_f64().filter(|x| (least..=most).contains(x));
        number.ok_or_else(|| InputError::new(format!("settings.{name}"), format!("it is {given}"), wanted))
    }

    /// The whole number that the plan sets as `name`, from 1 to `most`, or else `default`.
    fn count(&self, name: &str, default: usize, most: usize) -> Result<usize, InputError> {
        self.number(name, default as f64, 1.0, most as f64).map(|n| n.round() as usize)
    }

    /// `work` on every job, on all cores, in order; `of` is how many jobs the experiment has in all.
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

/// The `q`-quantile (0 to 1) of `values`, which get sorted: one that occurs.
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

/// As JSON has it: null where it never came.
fn finite(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { Value::Null }
}
