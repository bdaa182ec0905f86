//! The round driver for the papers' experiments: an order of updates replayed, rates over time, sweeps of random setups.

use crate::errors::OrInputError;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use subak_core::document::Format;
use subak_core::rng::Stream;
use subak_core::scheme::Scheme;
use subak_core::{Case, Fault, LinkId, Ns};
use subak_rounds::{Bound, Capacities, Conditions, Options, Outcome, Plan, Random, Reach, Rounds, Setup, Wire};
use subak_schemes::{Visitor, with_scheme};

/// How often Ctrl-C is looked for and progress is passed on.
const LOOK: Duration = Duration::from_millis(50);
/// More links, flows or hops than this are refused.
const MOST: usize = 100_000;

/// One scheme over one setup.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Job {
    scheme: String,
    setup: SetupOf,
    #[serde(default)]
    plan: PlanOf,
}

#[derive(Deserialize, Clone)]
#[serde(rename_all = "kebab-case")]
enum SetupOf {
    /// A draw of section 3.3.
    #[serde(rename_all = "snake_case")]
    Random { links: usize, flows: usize, hops: usize, mixed: bool, heaviest: u32, seed: u64 },
    /// Links and paths as given.
    #[serde(rename_all = "snake_case")]
    Given { capacities_bps: Vec<f64>, paths: Vec<Vec<LinkId>> },
}

/// The plan's fields that differ from [`Plan::default`].
#[derive(Deserialize, Clone, Default)]
#[serde(deny_unknown_fields, default)]
struct PlanOf {
    seed: Option<u64>,
    round_ns: Option<Ns>,
    stagger_rounds: Option<f64>,
    max_rounds: Option<f64>,
    settle_rounds: Option<f64>,
    drop: Option<f64>,
    drop_rounds: Option<f64>,
    tolerance: Option<f64>,
    params: Map<String, Value>,
}

impl PlanOf {
    fn plan(&self) -> Plan {
        let usual = Plan::default();
        Plan {
            seed: self.seed.unwrap_or(usual.seed),
            round_ns: self.round_ns,
            stagger_rounds: self.stagger_rounds.unwrap_or(usual.stagger_rounds),
            max_rounds: self.max_rounds.unwrap_or(usual.max_rounds),
            settle_rounds: self.settle_rounds.unwrap_or(usual.settle_rounds),
            drop: self.drop.unwrap_or(usual.drop),
            drop_rounds: self.drop_rounds.unwrap_or(usual.drop_rounds),
            tolerance: self.tolerance.unwrap_or(usual.tolerance),
            params: self.params.clone(),
            ..usual
        }
    }
}

impl SetupOf {
    fn make(&self) -> Result<Setup, Fault> {
        let refused = |what: &str| Fault::new("setup", what, "give links, flows and hops that exist, within 100000");
        match self {
            &SetupOf::Random { links, flows, hops, mixed, heaviest, seed } => {
                if !(1..=MOST).contains(&links) || flows > MOST || !(1..=links).contains(&hops) {
                    return Err(refused("its size cannot be"));
                }
                let capacities = if mixed { Capacities::Mixed } else { Capacities::Equal };
                Ok(Random { links, flows, hops, capacities, heaviest, seed }.draw())
            }
            SetupOf::Given { capacities_bps, paths } => {
                let fits = |p: &Vec<LinkId>| !p.is_empty() && p.iter().all(|&l| (l as usize) < capacities_bps.len());
                if !capacities_bps.iter().all(|c| c.is_finite() && *c > 0.0) || !paths.iter().all(fits) {
                    return Err(refused("it has a link without capacity, or a path over links that there are not"));
                }
                let wire = |&capacity_bps| Wire { capacity_bps, delay_ns: subak_rounds::setup::DELAY_NS };
                let wires = capacities_bps.iter().map(wire).collect();
                Ok(Setup { wires, weights: vec![1.0; paths.len()], paths: paths.clone() })
            }
        }
    }
}

/// Replays an order of updates: `scheme` on the flows of `case`, with every update in the answer, as JSON.
#[pyfunction]
pub fn rounds_replay(py: Python<'_>, case: &[u8], scheme: &str, order: &[u8]) -> PyResult<String> {
    let run = || {
        let text = std::str::from_utf8(case).map_err(|e| bad(&e.to_string()))?;
        let mut no_files = |name: &str| Err(bad(&format!("it names the file {name}")));
        let case = Case::parse(text, Format::Json, &mut no_files)?;
        let options = Options { order: Some(read(order)?), ..Options::default() };
        subak_rounds::converge(&case, scheme, &options).map(|answer| answer.to_string())
    };
    py.detach(run).or_input_error(py)
}

/// The partitions of WF1, WF2 and water-filling over a setup, as JSON.
#[pyfunction]
pub fn rounds_levels(py: Python<'_>, setup: &[u8]) -> PyResult<String> {
    let run = || {
        let setup = read::<SetupOf>(setup)?.make()?;
        let one = |(name, reach)| {
            let levels = setup.levels(reach);
            let told = json!({"count": levels.count, "links": levels.of_link, "flows": levels.of_flow,
                "rates_bps": levels.rate});
            (name, told)
        };
        let all = [("WF1", Reach::One), ("WF2", Reach::Two), ("WF∞", Reach::All)];
        let all: Map<String, Value> = all.into_iter().map(one).map(|(name, told)| (name.to_string(), told)).collect();
        Ok(Value::from(all).to_string())
    };
    py.detach(run).or_input_error(py)
}

/// Runs every job of a JSON list on `jobs` threads (0: one a processor); what came of each, in order, as a JSON list.
#[pyfunction]
#[pyo3(signature = (list, jobs, progress))]
pub fn rounds_sweep(py: Python<'_>, list: &[u8], jobs: usize, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let list: Vec<Job> = read(list).or_input_error(py)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    let pool = pool.map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    let (done, cancel) = (AtomicUsize::new(0), AtomicBool::new(false));
    let one = |job: &Job| {
        if cancel.load(Ordering::Relaxed) {
            return Ok(Value::Null);
        }
        let came = sweep_one(job);
        done.fetch_add(1, Ordering::Relaxed);
        came
    };
    let tell = |py: Python<'_>| {
        py.check_signals()?;
        let done = done.load(Ordering::Relaxed);
        let share = done as f64 / list.len().max(1) as f64;
        progress.as_ref().map_or(Ok(()), |listener| listener.call1(py, (done, list.len(), share)).map(|_| ()))
    };
    let (ended, heard) = py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, wait) = mpsc::channel::<()>();
            let worker = scope.spawn(|| {
                let _sender = sender; // dropped at the end, however it comes
                pool.install(|| list.par_iter().map(one).collect::<Result<Vec<Value>, Fault>>())
            });
            let mut heard = Ok(());
            while wait.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if heard.is_ok() {
                    heard = Python::attach(tell);
                    cancel.store(heard.is_err(), Ordering::Relaxed);
                }
            }
            (worker.join(), heard)
        })
    });
    heard?;
    tell(py)?;
    match ended {
        Ok(came) => came.map(|rows| Value::from(rows).to_string()).or_input_error(py),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn sweep_one(job: &Job) -> Result<Value, Fault> {
    let setup = job.setup.make()?;
    let (ideal_bps, _) = setup.exact();
    let bound = Bound::of(&job.scheme);
    let levels = setup.levels(bound.reach());
    let outcome: Outcome = subak_rounds::run(&job.scheme, &setup, &ideal_bps, &job.plan.plan())?;
    Ok(json!({
        "converged": outcome.converged,
        "rounds": outcome.rounds,
        "bound_rounds": bound.rounds(&levels),
        "levels": levels.count,
        "updates": outcome.updates,
        "drops": outcome.drops,
        "rounds_after_drop": outcome.rounds_after_drop,
    }))
}

/// What [`rounds_series`] records.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Series {
    job: Job,
    /// When each flow starts, in rounds; as the plan says if empty.
    #[serde(default)]
    starts_rounds: Vec<f64>,
    /// Links whose state is recorded.
    #[serde(default)]
    links: Vec<LinkId>,
    step_rounds: f64,
    until_rounds: f64,
}

/// The rates at the sources and the state of chosen links over time, counted in rounds from the first moment at which a
/// flow may start, as JSON.
#[pyfunction]
pub fn rounds_series(py: Python<'_>, series: &[u8]) -> PyResult<String> {
    let run = || {
        let series: Series = read(series)?;
        let steps = series.until_rounds / series.step_rounds;
        if !(series.step_rounds > 0.0 && (0.0..=1e6).contains(&steps)) {
            return Err(Fault::new("step_rounds", "the number of steps cannot be", "give up to a million steps"));
        }
        let setup = series.job.setup.make()?;
        let plan = series.job.plan.plan();
        let round_ns = plan.round_ns.unwrap_or_else(|| setup.rtt_ns(plan.jitter_ns));
        let mut params = plan.params.clone();
        let info = subak_schemes::SCHEMES.iter().find(|info| info.name == series.job.scheme);
        for (key, value) in [("control", 0.0), ("headroom", 0.0), ("round", round_ns as f64 / 1e9)] {
            if info.is_some_and(|info| info.params.iter().any(|p| p.name == key)) {
                params.entry(key).or_insert(json!(value));
            }
        }
        let scheme = series.job.scheme.clone();
        with_scheme(&scheme, &params, Record { series, setup, plan, round_ns }).map(|value| value.to_string())
    };
    py.detach(run).or_input_error(py)
}

struct Record {
    series: Series,
    setup: Setup,
    plan: Plan,
    round_ns: Ns,
}

impl Visitor for Record {
    type Out = Value;

    fn visit<S: Scheme>(self, scheme: S) -> Value {
        let Record { series, setup, plan, round_ns } = self;
        let ns = |rounds: f64| (rounds * round_ns as f64).round() as Ns;
        let conditions = Conditions {
            jitter_ns: plan.jitter_ns,
            drop: 0.0,
            drop_until_ns: 0,
            rtt_ns: round_ns,
            seed: plan.seed,
        };
        let mut rounds = Rounds::new(scheme, &setup.wires, conditions, !series.links.is_empty());
        // As `subak_rounds::run` has it: by then every link has started its timers.
        let first_ns = 3 * round_ns;
        let mut starts = Stream::new(plan.seed, "starts");
        let (ideal_bps, _) = setup.exact();
        for (f, path) in setup.paths.iter().enumerate() {
            let drawn = plan.stagger_rounds * starts.unit();
            let at = series.starts_rounds.get(f).copied().unwrap_or(drawn);
            rounds.add(path.clone(), setup.weights[f], first_ns + ns(at), ideal_bps[f]);
        }
        let (mut times, mut rates) = (Vec::new(), Vec::new());
        let mut states = vec![Map::new(); setup.wires.len()];
        let mut links: Vec<Vec<Value>> = vec![Vec::new(); series.links.len()];
        for step in 0..=(series.until_rounds / series.step_rounds) as usize {
            let at = step as f64 * series.step_rounds;
            rounds.run_until(first_ns + ns(at));
            for update in rounds.take_trace() {
                let held = update.values.iter().filter(|(name, _)| ["SumE", "NumB", "MaxE"].contains(name));
                states[update.link as usize] = held.map(|&(name, x)| (name.to_string(), json!(x))).collect();
            }
            times.push(at);
            rates.push((0..rounds.flow_count()).map(|f| rounds.seen(f as u32).rate_bps).collect::<Vec<_>>());
            for (&link, series) in series.links.iter().zip(&mut links) {
                series.push(states.get(link as usize).cloned().unwrap_or_default().into());
            }
        }
        let bottlenecks = setup.levels(Reach::Two);
        json!({"round_ns": round_ns, "ideal_bps": ideal_bps, "bottlenecks": bottlenecks.bottleneck,
            "time_rounds": times, "rates_bps": rates, "links": links})
    }
}

fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(text).map_err(|e| bad(&e.to_string()))
}

fn bad(what: &str) -> Fault {
    Fault::new("", what, "give what subak.repro gives")
}
