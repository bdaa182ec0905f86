//! Runs the missing trials of a spec, on several threads.

mod actions;
mod convergence;
pub(crate) mod jobs;
mod live;
mod passing;
mod recorder;
pub mod remote;
pub(crate) mod simulate;
pub mod stepping;
pub(crate) mod task;
pub(crate) mod testbed;
pub(crate) mod trial;
pub mod watched;
mod window;

use crate::error::Error;
use crate::results::footer::{BUILD, VERSION};
use crate::results::read::read_manifest;
use crate::results::scenes::described;
use crate::results::spent::{Spent, Took};
use crate::results::store::{Store, TrialStatus};
use crate::results::warning::Warning;
use crate::results::warnings;
use crate::spec::ValidSpec;
use crate::spec::workload::jobs::Policies;
use remote::RemoteWorkers;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;
use subak_core::InputError;
use task::Testbed;
use trial::{TrialEnd, attempt};
use watched::WatchedTrial;

/// Number of hosts below which a trial gets one thread by default: more threads would mostly wait at barriers.
const LARGE: usize = 64;

/// Options of a run.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// Number of concurrent trials; 0 for one per processor.
    pub jobs: usize,
    /// Threads of one trial in the packet-level backend. 0: the processors that no other trial uses, if the
    /// network has at least 64 hosts. Results do not depend on the number of threads.
    pub threads: usize,
    /// Number of the only trial to run; `None`: all trials.
    pub only: Option<usize>,
    /// Callback for progress, called from several threads.
    pub progress: &'a (dyn Fn(Progress) + Sync),
    /// Flag that stops the run; complete trials are kept.
    pub cancel: &'a AtomicBool,
    /// Testbed for trials on real hosts, which run one at a time.
    pub testbed: Option<&'a dyn Testbed>,
    /// State of the run for its live page in a browser.
    pub watched: Option<&'a WatchedTrial>,
    /// Remote machines that run the trials instead of this machine.
    pub remote: Option<&'a dyn RemoteWorkers>,
}

impl<'a> RunOptions<'a> {
    /// Options for one trial at a time on one thread of this machine, without progress reports.
    pub fn alone(cancel: &'a AtomicBool) -> Self {
        RunOptions {
            jobs: 1,
            threads: 1,
            only: None,
            progress: &|_| (),
            cancel,
            testbed: None,
            watched: None,
            remote: None,
        }
    }
}

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Progress {
    /// Number of trials that are complete or failed.
    pub done: usize,
    /// Number of trials that this call must run.
    pub trials: usize,
    /// Fraction of the work that is done, weighted by the estimated cost of trials.
    pub fraction: f64,
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunOutcome {
    /// Number of trials of the spec.
    pub trials: usize,
    /// Number of trials with results.
    pub complete: usize,
    /// Number of trials that were run by this call.
    pub ran: usize,
    /// Errors of failed trials, by trial number.
    pub failed: BTreeMap<usize, String>,
    /// Whether the run was cancelled before all trials were complete.
    pub cancelled: bool,
    /// Whether all trials are complete, and thus merged into `results.parquet`.
    pub merged: bool,
    /// Warnings about the results.
    pub warnings: Vec<Warning>,
}

/// Runs `spec` into `dir`. Complete trials are not repeated. A failed trial is recorded, and the others continue.
/// Once all trials are complete, their tables are merged in order. The bytes of the merged table depend neither on
/// interruptions nor on the number of threads.
pub fn run(spec: &ValidSpec, dir: &Path, options: &RunOptions) -> Result<RunOutcome, Error> {
    run_with(spec, dir, options, &Policies::new())
}

/// Same as [`run`], with weight policies implemented by the caller. If the spec uses them, completed trials are
/// run again: their results depend on code outside the spec.
pub fn run_with(spec: &ValidSpec, dir: &Path, options: &RunOptions, policies: &Policies) -> Result<RunOutcome, Error> {
    let fresh = spec.check_callables(policies)?;
    let trials = spec.len();
    options.only.map_or(Ok(()), |trial| spec.check_trial(trial))?;
    let store = Store::open(dir, spec)?;
    let mut spent = store.spent();
    let known = read_manifest(dir).ok().and_then(|mut held| held.remove("warnings"));
    let known = known.unwrap_or_else(|| json!(warnings::of_spec(spec)));
    // Written before any trial: another process that starts now recognizes the folder by its manifest.
    store.write_manifest(&manifest(spec, &store, &spent, 0.0, &known))?;
    store.write_spec(spec)?;
    let wanted: Vec<usize> = match options.only {
        Some(trial) => vec![trial],
        None => (0..trials).collect(),
    };
    let missing: Vec<usize> =
        wanted.into_iter().filter(|&c| fresh || !matches!(store.standing(c), TrialStatus::Complete(_))).collect();
    let begun = Instant::now();
    let work = Work::new(spec, &store, &missing, options, policies);
    match options.remote {
        Some(machines) if !missing.is_empty() => work.sent(machines)?,
        _ => work.all()?,
    }
    let ran = work.spent.into_inner().unwrap_or_default();
    let count = ran.len();
    spent.extend(ran);
    let standings: Vec<TrialStatus> = (0..trials).map(|c| store.standing(c)).collect();
    let complete = standings.iter().filter(|s| matches!(s, TrialStatus::Complete(_))).count();
    let merged = complete == trials;
    if merged && (count > 0 || !store.is_joined()) {
        store.merge(trials)?;
    }
    let elapsed_s = begun.elapsed().as_secs_f64();
    store.write_manifest(&manifest(spec, &store, &spent, elapsed_s, &known))?;
    let warnings = if complete > 0 { warnings::warnings(spec, dir)? } else { warnings::of_spec(spec) };
    store.write_manifest(&manifest(spec, &store, &spent, elapsed_s, &json!(warnings)))?;
    let failed = standings.into_iter().enumerate().filter_map(|(c, s)| match s {
        TrialStatus::Failed(error) => Some((c, error)),
        _ => None,
    });
    let cancelled = options.cancel.load(Ordering::Relaxed) && !merged;
    Ok(RunOutcome { trials, complete, ran: count, failed: failed.collect(), cancelled, merged, warnings })
}

/// State of a run, shared by its threads.
struct Work<'a> {
    spec: &'a ValidSpec,
    store: &'a Store,
    missing: &'a [usize],
    options: &'a RunOptions<'a>,
    policies: &'a Policies,
    next: AtomicUsize,
    done: AtomicUsize,
    /// Fraction done of each missing trial, and the sum of estimated costs done, s.
    shares: Mutex<(Vec<f64>, f64)>,
    costs: Vec<f64>,
    all_costs: f64,
    spent: Mutex<BTreeMap<usize, Spent>>,
}

impl<'a> Work<'a> {
    fn new(
        spec: &'a ValidSpec,
        store: &'a Store,
        missing: &'a [usize],
        options: &'a RunOptions<'a>,
        policies: &'a Policies,
    ) -> Self {
        let costs: Vec<f64> = missing.iter().map(|&c| spec.trial(c).cost.seconds.max(1e-6)).collect();
        Work {
            spec,
            store,
            missing,
            options,
            policies,
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            shares: Mutex::new((vec![0.0; missing.len()], 0.0)),
            all_costs: costs.iter().sum(),
            costs,
            spent: Mutex::default(),
        }
    }

    fn all(&self) -> Result<(), Error> {
        let jobs = if self.options.jobs == 0 { cores() } else { self.options.jobs }.min(self.missing.len());
        // Trials on hosts disturb each other, so that only one runs at a time.
        let jobs = if self.missing.iter().any(|&c| self.spec.is_on_hosts(c)) { 1 } else { jobs };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(|| self.some())).collect();
            // All threads are joined before the first error is returned.
            let ends: Vec<_> = workers.into_iter().map(|w| w.join().unwrap_or_else(|_| Err(died()))).collect();
            ends.into_iter().collect()
        })
    }

    /// Runs trials until none is left. An error means that results cannot be stored, and stops all trials.
    fn some(&self) -> Result<(), Error> {
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(&trial) = self.missing.get(at) else { return Ok(()) };
            if self.options.cancel.load(Ordering::Relaxed) {
                return Ok(());
            }
            let begun = Spent::now();
            let progress = |share| self.tell(Some((at, share)));
            let threads = self.threads(trial);
            let options = RunOptions { threads, ..*self.options };
            match attempt(self.spec, trial, self.store, self.policies, &options, &progress)? {
                TrialEnd::Cancelled => return Ok(()),
                TrialEnd::Complete => {}
                TrialEnd::Failed(error) => self.store.keep_error(trial, &error)?,
            }
            // CPU time is measured for this thread only, so it is unknown if the trial used several.
            let spent = Spent::since(begun);
            self.note(trial, Spent { cpu_s: spent.cpu_s.filter(|_| threads == 1), ..spent });
            self.done.fetch_add(1, Ordering::Relaxed);
            self.tell(Some((at, 1.0)));
        }
    }

    /// Number of threads of a trial: the option, or for a large network the processors that no other trial uses.
    fn threads(&self, trial: usize) -> usize {
        let hosts = self.spec.scenario(trial).0.topology.network().hosts().count();
        match (self.options.threads, self.options.jobs) {
            (0, 0) if hosts >= LARGE => (cores() / self.missing.len()).max(1),
            (0, _) => 1,
            (threads, _) => threads,
        }
    }

    fn note(&self, trial: usize, took: Spent) {
        if let Ok(mut spent) = self.spent.lock() {
            spent.insert(trial, took);
        }
    }

    /// Reports progress. `news`: index in `missing` of a trial, and its new fraction done.
    fn tell(&self, news: Option<(usize, f64)>) {
        let Ok(mut held) = self.shares.lock() else { return };
        let (shares, spent) = &mut *held;
        if let Some((at, share)) = news {
            *spent += self.costs[at] * (share - std::mem::replace(&mut shares[at], share));
        }
        let fraction = (*spent / self.all_costs).min(1.0);
        drop(held);
        (self.options.progress)(Progress {
            done: self.done.load(Ordering::Relaxed),
            trials: self.missing.len(),
            fraction,
        });
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Error for a panic of a thread outside a trial, which is a bug in this program.
fn died() -> Error {
    InputError::new("", "a worker of this run died: a defect of subak", "run again, and report it with the spec").into()
}

fn manifest(
    spec: &ValidSpec,
    store: &Store,
    spent: &BTreeMap<usize, Spent>,
    elapsed_s: f64,
    warnings: &Value,
) -> Value {
    let trial = |index: usize| {
        let about = spec.trial(index);
        let mut entry = json!({"trial": index, "scheme": about.scheme.label, "seed": about.seed, "axes": about.axes});
        match store.standing(index) {
            TrialStatus::Complete(Took { events, packet_hops }) => {
                entry["status"] = json!("complete");
                entry["events"] = json!(events);
                entry["packet_hops"] = json!(packet_hops);
            }
            TrialStatus::Failed(error) => {
                entry["status"] = json!("failed");
                entry["error"] = json!(error);
            }
            TrialStatus::Missing => entry["status"] = json!("missing"),
        }
        if let (Some(spent), Some(entry)) = (spent.get(&index), entry.as_object_mut()) {
            spent.write(entry);
        }
        entry
    };
    let (networks, scenarios) = described(spec);
    json!({
        "schema": 2,
        "name": spec.name,
        "spec": spec.tree(),
        "spec_sha256": spec.hash,
        "version": VERSION,
        "build": BUILD,
        "seeds": spec.seeds,
        "schemes": spec.schemes,
        "axes": spec.axes.iter().map(|a| a.key.as_str()).collect::<Vec<_>>(),
        "swept": spec.axes.iter().map(|a| (a.key.clone(), json!(a.read()))).collect::<serde_json::Map<_, _>>(),
        "networks": networks,
        "sweep_points": scenarios,
        "machine": {
            "os": std::env::consts::OS,
            "arch": std::env::consts::ARCH,
            "processors": std::thread::available_parallelism().map_or(1, |n| n.get()),
        },
        "wall_s": elapsed_s,
        "warnings": warnings,
        "trials": (0..spec.len()).map(trial).collect::<Vec<_>>(),
    })
}
