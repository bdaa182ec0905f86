//! Runs: every cell of a spec that is not there yet, on as many threads as wanted.

mod actions;
pub(crate) mod cell;
mod convergence;
pub mod elsewhere;
pub(crate) mod jobs;
mod passing;
mod recorder;
pub(crate) mod simulate;
pub(crate) mod testbed;
pub mod watched;
mod window;

use crate::error::Error;
use crate::results::read::read_manifest;
use crate::results::scenes::described;
use crate::results::spent::{Spent, Took};
use crate::results::store::{BUILD, Standing, Store, VERSION};
use crate::results::warnings::{self, Warning};
use crate::spec::ValidSpec;
use crate::spec::workload::jobs::Policies;
use cell::{Ended, attempt};
use elsewhere::Elsewhere;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;
use subak_core::Fault;
use testbed::Testbed;
use watched::Watched;

/// With fewer hosts a cell gets one thread unless more are asked for: its threads would wait for each other most of the time.
const LARGE: usize = 64;

/// How to run.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Cells that are run side by side; 0 for one a processor.
    pub jobs: usize,
    /// Threads that share one cell, where its network is simulated packet by packet; 0: the processors that `jobs` leaves, where
    /// the network is large enough. They change no byte.
    pub threads: usize,
    /// Runs this cell only.
    pub only: Option<usize>,
    /// Told how far the run is, from several threads.
    pub progress: &'a (dyn Fn(Progress) + Sync),
    /// Set to stop; what is complete stays.
    pub cancel: &'a AtomicBool,
    /// Hosts for cells that are not simulated: one at a time.
    pub testbed: Option<&'a dyn Testbed>,
    /// Where people watch.
    pub watched: Option<&'a Watched>,
    /// Machines that run the cells in place of this one.
    pub elsewhere: Option<&'a dyn Elsewhere>,
}

impl<'a> Options<'a> {
    /// One cell after the other, here, and nobody hears of it.
    pub fn alone(cancel: &'a AtomicBool) -> Self {
        Options {
            jobs: 1,
            threads: 1,
            only: None,
            progress: &|_| (),
            cancel,
            testbed: None,
            watched: None,
            elsewhere: None,
        }
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Progress {
    /// Cells that are complete, or failed.
    pub done: usize,
    /// All cells to run.
    pub cells: usize,
    /// Share of the work that is done, by the estimate of its cost.
    pub fraction: f64,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Cells of the spec.
    pub cells: usize,
    /// Cells whose results are there.
    pub complete: usize,
    /// Cells that this call ran.
    pub ran: usize,
    /// Cells that failed, and why.
    pub failed: BTreeMap<usize, String>,
    /// Whether it was told to stop before the end.
    pub cancelled: bool,
    /// Whether `results.parquet` is there.
    pub merged: bool,
    /// What a reader of the results should know before believing them.
    pub warnings: Vec<Warning>,
}

/// Runs `spec` into `dir`. Cells that are complete there are not run again; a cell that fails is recorded and leaves the
/// others alone. Once all cells are there they are merged in order, so that the bytes do not depend on how often or on
/// how many threads it ran.
pub fn run(spec: &ValidSpec, dir: &Path, options: &Options) -> Result<Outcome, Error> {
    run_with(spec, dir, options, &Policies::new())
}

/// As [`run`], with policies that the caller brings. What they decide is not known from the spec, so that a spec that asks
/// for one is run anew each time.
pub fn run_with(spec: &ValidSpec, dir: &Path, options: &Options, policies: &Policies) -> Result<Outcome, Error> {
    let fresh = spec.check_callables(policies)?;
    let cells = spec.len();
    options.only.map_or(Ok(()), |cell| spec.check_cell(cell))?;
    let store = Store::open(dir, spec)?;
    let mut spent = store.spent();
    let known = read_manifest(dir).ok().and_then(|mut held| held.remove("warnings"));
    let known = known.unwrap_or_else(|| json!(warnings::of_spec(spec)));
    // By the manifest others know the folder, who begin in the same moment: it comes before all else.
    store.write_manifest(&manifest(spec, &store, &spent, 0.0, &known))?;
    store.write_spec(spec)?;
    let wanted: Vec<usize> = match options.only {
        Some(cell) => vec![cell],
        None => (0..cells).collect(),
    };
    let missing: Vec<usize> =
        wanted.into_iter().filter(|&c| fresh || !matches!(store.standing(c), Standing::Complete(_))).collect();
    let begun = Instant::now();
    let work = Work::new(spec, &store, &missing, options, policies);
    match options.elsewhere {
        Some(machines) if !missing.is_empty() => work.sent(machines)?,
        _ => work.all()?,
    }
    let ran = work.spent.into_inner().unwrap_or_default();
    let count = ran.len();
    spent.extend(ran);
    let standings: Vec<Standing> = (0..cells).map(|c| store.standing(c)).collect();
    let complete = standings.iter().filter(|s| matches!(s, Standing::Complete(_))).count();
    let merged = complete == cells;
    if merged && (count > 0 || !store.is_joined()) {
        store.merge(cells)?;
    }
    let elapsed_s = begun.elapsed().as_secs_f64();
    store.write_manifest(&manifest(spec, &store, &spent, elapsed_s, &known))?;
    let warnings = if complete > 0 { warnings::warnings(spec, dir)? } else { warnings::of_spec(spec) };
    store.write_manifest(&manifest(spec, &store, &spent, elapsed_s, &json!(warnings)))?;
    let failed = standings.into_iter().enumerate().filter_map(|(c, s)| match s {
        Standing::Failed(error) => Some((c, error)),
        _ => None,
    });
    let cancelled = options.cancel.load(Ordering::Relaxed) && !merged;
    Ok(Outcome { cells, complete, ran: count, failed: failed.collect(), cancelled, merged, warnings })
}

/// Cells that are being run.
struct Work<'a> {
    spec: &'a ValidSpec,
    store: &'a Store,
    missing: &'a [usize],
    options: &'a Options<'a>,
    policies: &'a Policies,
    next: AtomicUsize,
    done: AtomicUsize,
    /// Share done of each missing cell, and the cost of what is done of all.
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
        options: &'a Options<'a>,
        policies: &'a Policies,
    ) -> Self {
        let costs: Vec<f64> = missing.iter().map(|&c| spec.cell(c).cost.seconds.max(1e-6)).collect();
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
        // What hosts do would be felt by the next cell.
        let jobs = if self.missing.iter().any(|&c| self.spec.is_on_hosts(c)) { 1 } else { jobs };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(|| self.some())).collect();
            // All are joined before the first error is passed up.
            let ends: Vec<_> = workers.into_iter().map(|w| w.join().unwrap_or_else(|_| Err(died()))).collect();
            ends.into_iter().collect()
        })
    }

    /// Takes cells until none is left. An error here concerns the directory, and would stop every other cell too.
    fn some(&self) -> Result<(), Error> {
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(&cell) = self.missing.get(at) else { return Ok(()) };
            if self.options.cancel.load(Ordering::Relaxed) {
                return Ok(());
            }
            let begun = Spent::now();
            let progress = |share| self.tell(Some((at, share)));
            let threads = self.threads(cell);
            let options = Options { threads, ..*self.options };
            match attempt(self.spec, cell, self.store, self.policies, &options, &progress)? {
                Ended::Cancelled => return Ok(()),
                Ended::Complete => {}
                Ended::Failed(error) => self.store.keep_error(cell, &error)?,
            }
            // The clock of a processor is this thread's alone.
            let spent = Spent::since(begun);
            self.note(cell, Spent { cpu_s: spent.cpu_s.filter(|_| threads == 1), ..spent });
            self.done.fetch_add(1, Ordering::Relaxed);
            self.tell(Some((at, 1.0)));
        }
    }

    /// Threads for a cell: what was asked for, or the processors that no other cell needs.
    fn threads(&self, cell: usize) -> usize {
        let hosts = self.spec.setting(cell).0.topology.network().hosts().count();
        match (self.options.threads, self.options.jobs) {
            (0, 0) if hosts >= LARGE => (cores() / self.missing.len()).max(1),
            (0, _) => 1,
            (threads, _) => threads,
        }
    }

    fn note(&self, cell: usize, took: Spent) {
        if let Ok(mut spent) = self.spent.lock() {
            spent.insert(cell, took);
        }
    }

    /// Says how far the run is: with another share done of the cell at a place in the list, if there is news.
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
            cells: self.missing.len(),
            fraction,
        });
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// A worker that panics outside a cell is a bug, and must not go unnoticed.
fn died() -> Error {
    Fault::new("", "a worker of this run died: a defect of subak", "run again, and report it with the spec").into()
}

fn manifest(
    spec: &ValidSpec,
    store: &Store,
    spent: &BTreeMap<usize, Spent>,
    elapsed_s: f64,
    warnings: &Value,
) -> Value {
    let cell = |index: usize| {
        let about = spec.cell(index);
        let mut entry = json!({"cell": index, "scheme": about.scheme.label, "seed": about.seed, "axes": about.axes});
        match store.standing(index) {
            Standing::Complete(Took { events, packet_hops }) => {
                entry["status"] = json!("complete");
                entry["events"] = json!(events);
                entry["packet_hops"] = json!(packet_hops);
            }
            Standing::Failed(error) => {
                entry["status"] = json!("failed");
                entry["error"] = json!(error);
            }
            Standing::Missing => entry["status"] = json!("missing"),
        }
        if let (Some(spent), Some(entry)) = (spent.get(&index), entry.as_object_mut()) {
            spent.write(entry);
        }
        entry
    };
    let (networks, settings) = described(spec);
    json!({
        "schema": 1,
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
        "settings": settings,
        "machine": {
            "os": std::env::consts::OS,
            "arch": std::env::consts::ARCH,
            "processors": std::thread::available_parallelism().map_or(1, |n| n.get()),
        },
        "wall_s": elapsed_s,
        "warnings": warnings,
        "cells": (0..spec.len()).map(cell).collect::<Vec<_>>(),
    })
}
