//! Experiments without packets, computed: those of the PERC thesis on control messages alone, and xWI over an ideal
//! fabric. Tables, series and checks as JSON; drawing them and writing their pages is for others.
//!
//! [`run`] answers `{"schema", "name", "scale", "runs", "seed", "setup", "tables", "series", "checks", "notes"}`: a table is
//! `{"columns", "rows"}`, a check `{"name", "published", "measured", "must_show", "pass"}`, whose `pass` is null where
//! nothing has to hold.

mod division;
mod drops;
mod events;
mod ratio;
mod sweep;
mod traces;
mod water;
mod xwi;

use rayon::prelude::*;
use serde_json::{Map, Value, json};
use subak_core::Fault;

/// How large an experiment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Seconds.
    Smoke,
    /// The thesis' sizes, as many runs as some minutes allow.
    Paper,
}

impl Scale {
    fn name(self) -> &'static str {
        match self {
            Scale::Smoke => "smoke",
            Scale::Paper => "paper",
        }
    }

    fn pick<T>(self, smoke: T, paper: T) -> T {
        match self {
            Scale::Smoke => smoke,
            Scale::Paper => paper,
        }
    }
}

/// Told of progress: runs done, and all.
pub type Progress<'a> = dyn FnMut(usize, usize) + Send + 'a;

/// Computes one experiment.
type Compute = fn(&mut Context) -> Result<(), Fault>;

const EXPERIMENTS: &[(&str, Compute)] = &[
    ("perc-fig1.3", events::fig_1_3),
    ("perc-fig2.3", traces::fig_2_3),
    ("perc-fig3.2", traces::fig_3_2),
    ("perc-fig3.4", traces::fig_3_4),
    ("perc-fig3.5", sweep::fig_3_5),
    ("perc-wfk", water::wfk),
    ("perc-rounds", ratio::rounds),
    ("perc-drops", drops::drops),
    ("perc-fig4.5", division::fig_4_5),
    ("numfabric-xwi-ideal", xwi::ideal),
];

/// The experiments here.
pub fn names() -> Vec<&'static str> {
    EXPERIMENTS.iter().map(|(name, _)| *name).collect()
}

/// Computes the experiment called `name` at `scale`; `runs` replaces its number of repetitions.
pub fn run(name: &str, scale: Scale, runs: Option<usize>, seed: u64, progress: &mut Progress) -> Result<Value, Fault> {
    let Some((_, compute)) = EXPERIMENTS.iter().find(|(known, _)| *known == name) else {
        let mend = format!("choose one of: {}", names().join(", "));
        return Err(Fault::new("name", format!("there is no experiment \"{name}\" in rounds"), mend));
    };
    let report = Report::default();
    let mut context = Context { scale, runs, seed, progress, report, ran: 0 };
    compute(&mut context)?;
    let Context { report, ran, .. } = context;
    Ok(json!({
        "schema": 1,
        "name": name,
        "scale": scale.name(),
        "runs": ran,
        "seed": seed,
        "setup": report.setup,
        "tables": report.tables,
        "series": report.series,
        "checks": report.checks,
        "notes": report.notes,
    }))
}

/// What an experiment works with.
struct Context<'a> {
    scale: Scale,
    runs: Option<usize>,
    seed: u64,
    progress: &'a mut Progress<'a>,
    report: Report,
    ran: usize,
}

impl Context<'_> {
    /// Repetitions: what was asked for, or what the scale takes.
    fn runs(&self, smoke: usize, paper: usize) -> usize {
        self.runs.unwrap_or(self.scale.pick(smoke, paper)).max(1)
    }

    /// `work` on every job, on all cores, in order; `of` is how many jobs the experiment has in all.
    fn each<J: Sync, T: Send>(
        &mut self,
        jobs: &[J],
        of: usize,
        work: impl Fn(&J) -> Result<T, Fault> + Sync,
    ) -> Result<Vec<T>, Fault> {
        let mut results = Vec::with_capacity(jobs.len());
        for batch in jobs.chunks(16) {
            results.extend(batch.par_iter().map(&work).collect::<Result<Vec<T>, Fault>>()?);
            self.ran += batch.len();
            (self.progress)(self.ran, of);
        }
        Ok(results)
    }
}

/// What an experiment answers.
#[derive(Default)]
struct Report {
    setup: Map<String, Value>,
    tables: Map<String, Value>,
    series: Map<String, Value>,
    checks: Vec<Value>,
    notes: Vec<String>,
}

impl Report {
    fn setup(&mut self, name: &str, value: impl Into<Value>) {
        self.setup.insert(name.into(), value.into());
    }
    fn table(&mut self, name: &str, columns: &[&str], rows: Vec<Value>) {
        self.tables.insert(name.into(), json!({"columns": columns, "rows": rows}));
    }
    fn check(&mut self, name: &str, published: impl Into<Value>, measured: impl Into<Value>, must: &str, pass: bool) {
        let (published, measured): (Value, Value) = (published.into(), measured.into());
        self.checks.push(json!({
            "name": name, "published": published, "measured": measured, "must_show": must, "pass": pass,
        }));
    }
    /// A measured value of which nothing has to hold.
    fn tell(&mut self, name: &str, published: &str, measured: impl Into<Value>) {
        let measured: Value = measured.into();
        let check = json!({
            "name": name, "published": published, "measured": measured, "must_show": "", "pass": null,
        });
        self.checks.push(check);
    }
    fn note(&mut self, note: &str) {
        self.notes.push(note.into());
    }
}

/// The `q`-quantile (0 to 1) of `values`, which get sorted.
fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n => values[((n - 1) as f64 * q).round() as usize],
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}
