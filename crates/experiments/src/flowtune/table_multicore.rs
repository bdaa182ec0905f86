//! Time of an iteration at the sizes of Flowtune's table (section 5.2), on one and on several threads, and for a
//! scalar loop. Times are wall-clock times of this machine, on which nothing else should run.

use crate::{Context, ExperimentInfo, ExperimentKind};
use serde_json::json;
use std::time::Instant;
use subak_core::{InputError, LinkId};
use subak_solve::ned::parallel::{Parallel, Partition};
use subak_solve::ned::straight::{Straight, TwoTiers};
use subak_solve::ned::{Cluster, Ned, NedIteration, NewFlow, Normalizer, Real};

pub(super) const ENTRY: ExperimentInfo =
    ExperimentInfo { name: "flowtune-table-multicore", kind: ExperimentKind::Solver, settings: SETTINGS, compute };

/// `seconds`: measuring time; `threads`: largest number of threads; `rows`: number of the table's rows, from the
/// first.
const SETTINGS: &[&str] = &["seconds", "threads", "rows"];

/// Throughput of Fastpass, Tbit/s per core: "2.2 Tbit/s on 8 cores".
const FASTPASS: f64 = 2.2 / 8.0;
/// Longest iteration in the paper's table, us.
const LONGEST_US: f64 = 30.71;
/// Steps per measurement of time with threads. The threads start anew for each measurement.
const STEPS: usize = 100;
/// Groups of racks: 4 FlowBlocks, as in the paper's first row.
const GROUPS: usize = 2;

/// Times of an iteration for one row of the table, us.
struct Times {
    single: f64,
    double: f64,
    with_norm: f64,
    straight: f64,
    one_thread: f64,
    threads: f64,
}

fn compute(context: &mut Context) -> Result<(), InputError> {
    let seconds = context.number("seconds", 0.3, 1e-4, 100.0)?;
    let threads = context.count("threads", 2, 1024)?;
    let rows = context.count("rows", TwoTiers::TABLE.len(), TwoTiers::TABLE.len())?;
    let runs = context.runs();
    let mut all: Vec<Vec<Times>> = Vec::new();
    let mut same = true;
    for run in 0..runs {
        let mut times = Vec::new();
        for (k, &(nodes, flows)) in TwoTiers::TABLE[..rows].iter().enumerate() {
            let fabric = Row::new(nodes, flows, context.seed() + run as u64)?;
            times.push(fabric.times(seconds, threads)?);
            if k == 0 {
                same &= fabric.same_bits()?;
            }
            (context.progress)(run * rows + k + 1, runs * rows);
        }
        all.push(times);
    }
    context.report.value("same bits", same);
    context.report.setup("threads", threads);
    tell(context, &all, rows);
    Ok(())
}

fn tell(context: &mut Context, all: &[Vec<Times>], rows: usize) {
    let report = &mut context.report;
    let mut table = Vec::new();
    for (k, &(nodes, flows)) in TwoTiers::TABLE[..rows].iter().enumerate() {
        let of = |get: fn(&Times) -> f64| -> Vec<f64> { all.iter().map(|times| get(&times[k])).collect() };
        let single = of(|t| t.single);
        let name = name(k);
        report.sample(&format!("us {name}"), "median", "runs", &single);
        report.sample(&format!("us f64 {name}"), "median", "runs", &of(|t| t.double));
        report.sample(&format!("us F-NORM {name}"), "median", "runs", &of(|t| t.with_norm));
        report.ratio(&format!("straight over ours {name}"), "median", "runs", &of(|t| t.straight), &single);
        report.ratio(&format!("one over threads {name}"), "median", "runs", &of(|t| t.one_thread), &of(|t| t.threads));
        report.ratio(&format!("whole over threads {name}"), "median", "runs", &single, &of(|t| t.threads));
        for t in all.iter().map(|times| &times[k]) {
            let tbps = nodes as f64 * TwoTiers::RATE_BPS / 1e12;
            let us = [t.single, t.double, t.with_norm, t.straight, t.one_thread, t.threads];
            table.push(json!([nodes, flows, us[0], us[1], us[2], us[3], us[4], us[5], tbps]));
        }
    }
    let columns = ["nodes", "flows", "f32_us", "f64_us", "f_norm_us", "straight_us", "blocks_us", "threads_us", "tbps"];
    report.table("times", &columns, table);
    // The largest network whose iteration on one core takes no longer than the paper's longest on 64 cores.
    let most = |times: &Vec<Times>| {
        let quick = times.iter().zip(TwoTiers::TABLE).filter(|(t, _)| t.single <= LONGEST_US);
        quick.map(|(_, (nodes, _))| nodes as f64 * TwoTiers::RATE_BPS / 1e12).fold(0.0, f64::max)
    };
    let most: Vec<f64> = all.iter().map(most).collect();
    report.sample("Tbit/s a core", "median", "runs", &most);
    let over: Vec<f64> = most.iter().map(|tbps| tbps / FASTPASS).collect();
    report.sample("over Fastpass a core", "median", "runs", &over);
}

/// Number of nodes and flows of a row, as text.
pub(super) fn name(row: usize) -> String {
    let (nodes, flows) = TwoTiers::TABLE[row];
    format!("{nodes}/{flows}")
}

/// The fraction of an iteration on two threads, percent, that is communication: processor time beyond that of a
/// single thread without FlowBlocks (Flowtune's blocks of flows).
pub(super) fn communication(row: usize, seed: u64, seconds: f64) -> Result<f64, InputError> {
    let (nodes, flows) = TwoTiers::TABLE[row];
    let row = Row::new(nodes, flows, seed)?;
    let (mut single, mut two) = (row.iteration::<f32>()?, row.parallel(2)?);
    let alone_us = best_us(seconds, || single.step());
    let together_us = best_us(seconds, || two.run(STEPS)) / STEPS as f64;
    Ok(100.0 * (1.0 - alone_us / (2.0 * together_us)))
}

/// A network of the table, with its flows.
struct Row {
    tiers: TwoTiers,
    paths: Vec<Vec<LinkId>>,
}

impl Row {
    fn new(nodes: usize, flows: usize, seed: u64) -> Result<Self, InputError> {
        let tiers = TwoTiers { nodes };
        Ok(Row { tiers, paths: tiers.paths(flows, seed) })
    }

    fn flows(&self) -> Vec<NewFlow<'_>> {
        self.paths.iter().map(|path| NewFlow { path, ln_gain: 0.0, demand_bps: f64::INFINITY }).collect()
    }

    fn iteration<T: Real>(&self) -> Result<NedIteration<T, Ned>, InputError> {
        let mut cluster = Cluster::new(&self.tiers.capacity_bps(), 1.0)?;
        cluster.add_all(&self.flows())?;
        let mut iteration = NedIteration::new(cluster, Ned::default());
        (0..200).for_each(|_| iteration.step());
        Ok(iteration)
    }

    fn parallel(&self, threads: usize) -> Result<Parallel<f32>, InputError> {
        let partition = Partition::of(&self.tiers.network()?, GROUPS)?;
        Parallel::new(&self.tiers.capacity_bps(), 1.0, &self.flows(), &partition, None, threads)
    }

    fn times(&self, seconds: f64, threads: usize) -> Result<Times, InputError> {
        let (mut single, mut double) = (self.iteration::<f32>()?, self.iteration::<f64>()?);
        let mut straight = Straight::<f32>::new(self.tiers.links(), &self.paths);
        let mut rates = Vec::new();
        let (mut one, mut more) = (self.parallel(1)?, self.parallel(threads)?);
        Ok(Times {
            single: best_us(seconds, || single.step()),
            double: best_us(seconds, || double.step()),
            with_norm: best_us(seconds, || {
                single.step();
                single.normalize(Normalizer::Flow, &mut rates);
            }),
            straight: best_us(seconds, || straight.step()),
            one_thread: best_us(seconds, || one.run(STEPS)) / STEPS as f64,
            threads: best_us(seconds, || more.run(STEPS)) / STEPS as f64,
        })
    }

    /// Whether rates and prices are the same for any number of threads.
    fn same_bits(&self) -> Result<bool, InputError> {
        let bits = |threads| {
            let mut ned = self.parallel(threads)?;
            ned.run(20);
            Ok(ned.prices().into_iter().chain(ned.rates_bps(true)).map(f64::to_bits).collect::<Vec<_>>())
        };
        let one = bits(1)?;
        Ok([2, 3, 4].into_iter().map(bits).collect::<Result<Vec<_>, InputError>>()?.iter().all(|more| *more == one))
    }
}

/// Shortest time of a call of `what`, us, over calls during `seconds`.
fn best_us(seconds: f64, mut what: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < seconds {
        let one = Instant::now();
        what();
        best = best.min(one.elapsed().as_secs_f64() * 1e6);
    }
    best
}
