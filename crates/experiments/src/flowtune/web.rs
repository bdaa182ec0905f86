//! Optimizers under a stream of flows (section 5.4), for Flowtune's figures 16 and 17: Poisson arrivals with the
//! sizes of the web workload, and an iteration every 10 us. Only the optimizer is simulated: no messages, no packets.
//!
//! A flow is active from the first iteration after its arrival. Until the next iteration it sends at its rate after
//! F-NORM, Flowtune's normalization per flow. It ends at the first iteration after its last byte.

use super::Fabric;
use crate::Context;
use serde_json::{Value, json};
use subak_core::rng::Stream;
use subak_core::sizes::Sizes;
use subak_core::{Case, Flow, Flows, IdVec, InputError, LinkId, Policy};
use subak_solve::ned::{AnyUpdate, Cluster, FlowKey, Ned, NedIteration, NedMethod, Normalizer, Real, Reciprocal};
use subak_solve::{SolveOptions, Utility, maximize_from};

pub(super) const LOADS: [f64; 4] = [0.2, 0.4, 0.6, 0.8];
pub(super) const HOST_BPS: f64 = 10e9;
/// Flowtune, section 5.3: "an iteration every 10 us".
const INTERVAL_US: f64 = 10.0;
/// Flowtune, section 5.3: "experiments have gamma = 0.4".
pub(super) const GAMMA: f64 = 0.4;

/// `steps`: number of intervals; `warmup`: number of these, at the start, that are not measured; `every`: intervals
/// between comparisons with the optimum; `gradient_gamma`: step size of Gradient; `interval_us`: interval, us;
/// `steps_each`: optimizer steps per interval; `most_lines`: largest rate before normalization, in line rates;
/// `passes`: passes of F-NORM; `bounded`: 1 if NED's prices fall to a quarter at most in a step.
pub(super) const SETTINGS: &[&str] =
    &["steps", "warmup", "every", "gradient_gamma", "interval_us", "steps_each", "most_lines", "passes", "bounded"];

/// An optimizer of Flowtune's figure 16.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Optimizer {
    pub name: &'static str,
    method: NedMethod,
    single: bool,
}

pub(super) const OPTIMIZERS: [Optimizer; 5] = [
    Optimizer { name: "NED", method: NedMethod::Ned, single: false },
    Optimizer { name: "NED-RT", method: NedMethod::Ned, single: true },
    Optimizer { name: "Gradient", method: NedMethod::Gradient, single: false },
    Optimizer { name: "Gradient-RT", method: NedMethod::Gradient, single: true },
    Optimizer { name: "FGM", method: NedMethod::Fgm, single: false },
];

/// Parameters of a simulation.
#[derive(Debug, Clone, Copy)]
pub(super) struct WebJob {
    entry: Optimizer,
    load: f64,
    seed: u64,
    gamma: Option<f64>,
    timing: Timing,
    most_lines: f64,
    passes: usize,
    bounded: bool,
    /// Intervals between two comparisons with the optimum; `None` for no comparisons.
    every: Option<usize>,
}

/// Length of a run, and the interval of the optimizer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    pub intervals: usize,
    /// Number of intervals that are not measured.
    pub warmup: usize,
    pub interval_s: f64,
    /// Optimizer steps per interval.
    pub steps_each: usize,
}

impl Timing {
    pub(super) fn of(context: &Context, intervals: usize, warmup: usize) -> Result<Self, InputError> {
        Ok(Timing {
            intervals: context.count("steps", intervals, 1_000_000)?,
            warmup: context.count("warmup", warmup, 1_000_000)?,
            interval_s: 1e-6 * context.number("interval_us", INTERVAL_US, 0.01, 1e3)?,
            steps_each: context.count("steps_each", 1, 1000)?,
        })
    }
}

/// Result of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Ran {
    /// Over-allocation without normalization, Gb/s summed over links: mean over the iterations.
    pub over_gbps: f64,
    /// Over-allocation without normalization, Gb/s summed over links: maximum over the iterations.
    pub most_over_gbps: f64,
    /// Throughput with F-NORM relative to the optimum, percent, mean over the comparisons.
    pub flow: f64,
    /// Throughput with U-NORM relative to the optimum, percent, mean over the comparisons.
    pub uniform: f64,
    /// Largest relative overload of a link by F-NORM's rates, over all iterations.
    pub overload: f64,
    pub flows: f64,
}

/// An active flow.
struct Active {
    key: FlowKey,
    path: Vec<LinkId>,
    left_bits: f64,
}

pub(super) fn jobs(context: &Context, entries: &[Optimizer], looks: bool) -> Result<Vec<WebJob>, InputError> {
    let timing = Timing::of(context, 4000, 2000)?;
    let most_lines = context.number("most_lines", 1.0, 1.0, 1e9)?;
    let passes = context.count("passes", 1, 100)?;
    let bounded = context.number("bounded", 0.0, 0.0, 1.0)? > 0.0;
    let every = context.count("every", 20, 1_000_000)?;
    let gradient = context.number("gradient_gamma", 0.0, 0.0, 10.0)?;
    let mut jobs = Vec::new();
    for run in 0..context.runs() as u64 {
        for &load in &LOADS {
            for &entry in entries {
                let gamma = match entry.method {
                    NedMethod::Ned => Some(GAMMA),
                    NedMethod::Gradient if gradient > 0.0 => Some(gradient),
                    _ => None,
                };
                let every = looks.then_some(every);
                let seed = context.seed() + run;
                jobs.push(WebJob { entry, load, seed, gamma, timing, most_lines, passes, bounded, every });
            }
        }
    }
    Ok(jobs)
}

/// Throughput of NED with this gamma at this load, relative to the optimum, percent.
pub(super) fn with_gamma(gamma: f64, load: f64, seed: u64, timing: Timing) -> Result<f64, InputError> {
    let (gamma, every) = (Some(gamma), Some(20));
    let job =
        WebJob { entry: OPTIMIZERS[0], load, seed, gamma, timing, most_lines: 1.0, passes: 1, bounded: false, every };
    run(&job).map(|ran| ran.flow)
}

pub(super) fn select(jobs: &[WebJob], ran: &[Ran], entry: Optimizer, load: f64, get: fn(&Ran) -> f64) -> Vec<f64> {
    let mine = jobs.iter().zip(ran).filter(|(job, _)| job.entry == entry && job.load == load);
    mine.map(|(_, ran)| get(ran)).collect()
}

pub(super) fn finish(context: &mut Context, jobs: &[WebJob], ran: &[Ran]) {
    let worst = ran.iter().map(|r| r.overload).fold(0.0, f64::max);
    context.report.value("overload", worst);
    let row = |(job, ran): (&WebJob, &Ran)| -> Value {
        let over = [ran.over_gbps, ran.most_over_gbps];
        json!([job.entry.name, job.load, job.seed, over[0], over[1], ran.flow, ran.uniform, ran.flows])
    };
    let columns = ["method", "load", "seed", "over_gbps", "most_over_gbps", "f_norm", "u_norm", "flows"];
    context.report.table("runs", &columns, jobs.iter().zip(ran).map(row).collect());
}

pub(super) fn run(job: &WebJob) -> Result<Ran, InputError> {
    match job.entry.single {
        true => simulate::<f32>(job, Reciprocal::Approximate),
        false => simulate::<f64>(job, Reciprocal::Exact),
    }
}

/// Flowtune, section 5.3: four spines, nine racks of 16 servers at 10 Gb/s, full bisection.
pub(super) fn topology() -> Value {
    json!({"kind": "leaf-spine", "leaves": 9, "hosts_per_leaf": 16, "spines": 4, "host_rate": HOST_BPS,
        "spine_rate": 40e9})
}

/// Flow sizes of the web workload.
pub(super) fn sizes() -> Sizes {
    Sizes::published("facebook-web").expect("it is there")
}

fn simulate<T: Real>(job: &WebJob, division: Reciprocal) -> Result<Ran, InputError> {
    let mut fabric = Fabric::of(&topology(), job.seed)?;
    let capacity_bps = fabric.capacities_bps();
    let sizes = sizes();
    let law: AnyUpdate<T> = match (job.entry.method, job.gamma) {
        (NedMethod::Ned, Some(gamma)) if job.bounded => Box::new(Ned::with_gamma(gamma).bounded()),
        (method, gamma) => method.law(gamma)?,
    };
    let cluster = Cluster::<T>::new(&capacity_bps, 1.0)?.with_most_lines(job.most_lines)?;
    let mut iteration = NedIteration::new(cluster, law).with_division(division);
    let mut rng = Stream::new(job.seed, "web");
    // Section 5.3: load 1 is the servers' capacity over the mean size.
    let gap_s = 8.0 * sizes.mean_bytes() / (job.load * HOST_BPS * fabric.hosts.len() as f64);
    let (mut next_s, mut arrived) = (rng.exponential(gap_s), 0u64);
    let mut active: Vec<Active> = Vec::new();
    let (mut seen, mut rates) = (IterationSums::default(), Vec::new());
    let Timing { intervals, warmup, interval_s, steps_each } = job.timing;
    for interval in 0..intervals {
        while next_s < interval as f64 * interval_s {
            let path = fabric.path(&mut rng, arrived)?;
            let key = iteration.cluster_mut().add(&path, 1.0)?;
            active.push(Active { key, path, left_bits: 8.0 * sizes.draw(&mut rng) as f64 });
            next_s += rng.exponential(gap_s);
            arrived += 1;
        }
        (0..steps_each).for_each(|_| iteration.step());
        let keys: Vec<FlowKey> = active.iter().map(|flow| flow.key).collect();
        iteration.normalize(Normalizer::Flow, &mut rates);
        (1..job.passes).for_each(|_| iteration.normalize_again(&mut rates));
        let unit_bps = iteration.cluster().unit_bps();
        let rates_bps: Vec<f64> = keys.iter().map(|key| rates[key.slot()].f64() * unit_bps).collect();
        seen.overload(&active, &rates_bps, &capacity_bps);
        if interval >= warmup {
            seen.over(&iteration, &capacity_bps, active.len());
            if job.every.is_some_and(|every| interval % every == 0) && !active.is_empty() {
                let uniform: f64 = iteration.rates_bps(Normalizer::Uniform, &keys).iter().sum();
                seen.look(&fabric, &active, rates_bps.iter().sum(), uniform)?;
            }
        }
        for (flow, rate) in active.iter_mut().zip(&rates_bps) {
            flow.left_bits -= rate * interval_s;
        }
        let gone = active.iter().filter(|flow| flow.left_bits <= 0.0);
        gone.map(|flow| flow.key)
            .collect::<Vec<_>>()
            .into_iter()
            .try_for_each(|k| iteration.cluster_mut().remove(k))?;
        active.retain(|flow| flow.left_bits > 0.0);
    }
    Ok(seen.summary())
}

fn loads_bps(active: &[Active], rates_bps: &[f64], links: usize) -> IdVec<LinkId, f64> {
    let mut load = IdVec::filled(0.0, links);
    for (flow, rate) in active.iter().zip(rates_bps) {
        flow.path.iter().for_each(|&l| load[l] += rate);
    }
    load
}

/// Sums over the iterations.
#[derive(Default)]
struct IterationSums {
    ran: Ran,
    iterations: f64,
    looks: f64,
    price: Option<IdVec<LinkId, f64>>,
}

impl IterationSums {
    fn overload(&mut self, active: &[Active], rates_bps: &[f64], capacity_bps: &[f64]) {
        let load = loads_bps(active, rates_bps, capacity_bps.len());
        let worst = load.iter().zip(capacity_bps).map(|(load, c)| load / c - 1.0).fold(0.0, f64::max);
        self.ran.overload = self.ran.overload.max(worst);
    }

    fn over<T: Real>(&mut self, iteration: &NedIteration<T, AnyUpdate<T>>, capacity_bps: &[f64], flows: usize) {
        let over: f64 = iteration.loads_bps().zip(capacity_bps).map(|(load, c)| (load - c).max(0.0) / 1e9).sum();
        self.ran.over_gbps += over;
        self.ran.most_over_gbps = self.ran.most_over_gbps.max(over);
        self.ran.flows += flows as f64;
        self.iterations += 1.0;
    }

    /// Compares throughput with the optimum of the active flows.
    fn look(&mut self, fabric: &Fabric, active: &[Active], flow: f64, uniform: f64) -> Result<(), InputError> {
        let mut flows = Flows::new();
        for (f, one) in active.iter().enumerate() {
            flows.push(Flow::over(f.to_string(), one.path.clone()), &fabric.network)?;
        }
        let case = Case { network: fabric.network.clone(), flows, policy: Policy::AlphaFair { alpha: 1.0 } };
        let utilities = vec![Utility::log(1.0); active.len()];
        let options = SolveOptions { tolerance: 1e-6, ..SolveOptions::default() };
        let answer = maximize_from(&case, &utilities, &options, self.price.as_deref())?;
        let best: f64 = answer.rates_bps.iter().sum();
        self.ran.flow += 100.0 * flow / best;
        self.ran.uniform += 100.0 * uniform / best;
        self.looks += 1.0;
        self.price = Some(answer.link_price);
        Ok(())
    }

    fn summary(self) -> Ran {
        let IterationSums { mut ran, iterations, looks, .. } = self;
        ran.over_gbps /= iterations;
        ran.flows /= iterations;
        ran.flow /= looks;
        ran.uniform /= looks;
        ran
    }
}
