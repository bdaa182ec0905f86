//! Range of NED's step size gamma. The experiment counts the steps from prices of 1 to the optimum, on networks of
//! Flowtune's table (section 5.2). It also measures the throughput under a stream of flows (section 5.3: "in the
//! range [0.2, 1.5], the network exhibits similar performance").

use super::{Fabric, web};
use crate::{Context, ExperimentInfo, ExperimentKind, finite};
use serde_json::{Value, json};
use subak_core::rng::Stream;
use subak_core::{Case, Flow, Flows, InputError, Policy};
use subak_solve::ned::{Cluster, Ned, NedIteration, Normalizer, worst_off};
use subak_solve::{SolveOptions, solve};

pub(super) const ENTRY: ExperimentInfo =
    ExperimentInfo { name: "flowtune-gamma", kind: ExperimentKind::Solver, settings: SETTINGS, compute };

const GAMMAS: [f64; 8] = [0.1, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5];
const STREAMED: [f64; 5] = [0.2, 0.4, 0.8, 1.0, 1.5];
/// Largest number of steps of a run.
const MOST_STEPS: usize = 5000;
/// Number of further steps for which rates must stay within a thousandth.
const STAYS: usize = 20;

/// `most_a_host`: largest number of flows per host; `steps`: number of intervals of the stream; `warmup`: number of
/// these, at the start, that are not measured.
const SETTINGS: &[&str] = &["most_a_host", "steps", "warmup"];

/// A two-tier network of Flowtune's table (section 5.2), or a three-tier network.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Tiers {
    Two,
    Three,
}

#[derive(Debug, Clone, Copy)]
struct GammaJob {
    tiers: Tiers,
    a_host: usize,
    seed: u64,
}

/// Result for a network and a gamma.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Converged after this many steps.
    Settled(usize),
    /// Not converged, but the error still falls: by a tenth or more in the second half.
    Slow,
    /// Not converged, and the error no longer falls.
    Lost,
}

impl End {
    fn steps(self) -> f64 {
        if let End::Settled(steps) = self { steps as f64 } else { f64::INFINITY }
    }
}

impl Tiers {
    fn name(self) -> &'static str {
        match self {
            Tiers::Two => "two tiers",
            Tiers::Three => "three tiers",
        }
    }

    /// Number of links of the longest path.
    fn longest(self) -> f64 {
        match self {
            Tiers::Two => 4.0,
            Tiers::Three => 6.0,
        }
    }

    fn network(self) -> Value {
        match self {
            Tiers::Two => json!({"kind": "leaf-spine", "leaves": 8, "hosts_per_leaf": 48, "spines": 8,
                "host_rate": 40e9, "spine_rate": 40e9}),
            Tiers::Three => json!({"kind": "fat-tree", "k": 8, "rate": 40e9}),
        }
    }
}

fn compute(context: &mut Context) -> Result<(), InputError> {
    let most = context.count("most_a_host", 64, 1000)?;
    let timing = web::Timing::of(context, 3000, 1000)?;
    let sizes: Vec<usize> = [1, 8, 64].into_iter().filter(|n| *n <= most).collect();
    let runs: Vec<u64> = (0..context.runs() as u64).map(|r| context.seed() + r).collect();
    let mut jobs = Vec::new();
    for tiers in [Tiers::Two, Tiers::Three] {
        for &a_host in &sizes {
            jobs.extend(runs.iter().map(|&seed| GammaJob { tiers, a_host, seed }));
        }
    }
    let streams: Vec<(f64, u64)> = STREAMED.into_iter().flat_map(|g| runs.iter().map(move |&r| (g, r))).collect();
    let all = jobs.len() + streams.len();
    let settled = context.each(&jobs, all, settle)?;
    let shares = context.each(&streams, all, |&(gamma, seed)| web::with_gamma(gamma, 0.6, seed, timing))?;
    let mut rows = Vec::new();
    for tiers in [Tiers::Two, Tiers::Three] {
        for &a_host in &sizes {
            let mine = jobs.iter().zip(&settled).filter(|(job, _)| job.tiers == tiers && job.a_host == a_host);
            let of: Vec<&Vec<End>> = mine.map(|(_, ends)| ends).collect();
            for (g, gamma) in GAMMAS.into_iter().enumerate() {
                let steps: Vec<f64> = of.iter().map(|ends| ends[g].steps()).collect();
                let hits = steps.iter().filter(|s| s.is_finite()).count();
                let name = format!("{} {a_host} {gamma}", tiers.name());
                context.report.sample(&format!("steps {name}"), "median", "networks", &steps);
                context.report.share(&format!("settles {name}"), "networks", hits, steps.len());
                rows.extend(steps.iter().map(|s| json!([tiers.name(), a_host, gamma, finite(*s)])));
            }
        }
    }
    let columns = ["tiers", "flows_a_host", "gamma", "steps"];
    context.report.table("settling", &columns, rows);
    for tiers in [Tiers::Two, Tiers::Three] {
        for (g, gamma) in GAMMAS.into_iter().enumerate() {
            let mine = jobs.iter().zip(&settled).filter(|(job, _)| job.tiers == tiers);
            let hits: Vec<bool> = mine.map(|(_, ends)| matches!(ends[g], End::Settled(_))).collect();
            let count = hits.iter().filter(|h| **h).count();
            context.report.share(&format!("settles {} {gamma}", tiers.name()), "networks", count, hits.len());
            let mine = jobs.iter().zip(&settled).filter(|(job, _)| job.tiers == tiers);
            let lost = mine.filter(|(_, ends)| ends[g] == End::Lost).count();
            context.report.share(&format!("lost {} {gamma}", tiers.name()), "networks", lost, hits.len());
        }
    }
    // Step sizes for which gamma times the number of links of the longest path is below 2.
    let safe = |end: fn(&End) -> bool| -> usize {
        let of = |(job, ends): (&GammaJob, &Vec<End>)| {
            let safe = GAMMAS.into_iter().zip(ends).filter(|(gamma, _)| *gamma < 2.0 / job.tiers.longest());
            safe.filter(|(_, e)| end(e)).count()
        };
        jobs.iter().zip(&settled).map(of).sum()
    };
    context.report.value("unsettled", safe(|end| !matches!(end, End::Settled(_))));
    context.report.value("lost", safe(|end| *end == End::Lost));
    streamed(context, &streams, &shares);
    Ok(())
}

fn streamed(context: &mut Context, streams: &[(f64, u64)], shares: &[f64]) {
    let of = |gamma: f64| -> Vec<f64> {
        streams.iter().zip(shares).filter(|((g, _), _)| *g == gamma).map(|(_, share)| *share).collect()
    };
    for gamma in STREAMED {
        context.report.sample(&format!("throughput {gamma}"), "mean", "runs", &of(gamma));
        context.report.ratio(&format!("throughput {gamma} over 0.4"), "mean", "runs", &of(gamma), &of(0.4));
    }
    let row = |((gamma, seed), share): (&(f64, u64), &f64)| json!([gamma, seed, share]);
    context.report.table("stream", &["gamma", "seed", "f_norm"], streams.iter().zip(shares).map(row).collect());
}

/// The result for each gamma, from prices of 1.
fn settle(job: &GammaJob) -> Result<Vec<End>, InputError> {
    let mut fabric = Fabric::of(&job.tiers.network(), job.seed)?;
    let mut rng = Stream::new(job.seed, "gamma");
    let mut flows = Flows::new();
    for f in 0..job.a_host * fabric.hosts.len() {
        let path = fabric.path(&mut rng, f as u64)?;
        flows.push(Flow::over(f.to_string(), path), &fabric.network)?;
    }
    let case = Case { network: fabric.network, flows, policy: Policy::AlphaFair { alpha: 1.0 } };
    let want = solve(&case, &SolveOptions::default())?.rates_bps;
    GAMMAS.into_iter().map(|gamma| steps(&case, &want, gamma)).collect()
}

fn steps(case: &Case, want: &[f64], gamma: f64) -> Result<End, InputError> {
    let (cluster, keys) = Cluster::<f64>::of(case)?;
    let mut ned = NedIteration::new(cluster, Ned::with_gamma(gamma));
    let mut since = None;
    // Largest error in the last steps of the first half and of the second half.
    let mut off_in = [0.0f64; 2];
    for step in 1..=MOST_STEPS {
        ned.step();
        let off = worst_off(&ned.rates_bps(Normalizer::Flow, &keys), want);
        let place = step % (MOST_STEPS / 2);
        if place == 0 || place > MOST_STEPS / 2 - STAYS {
            let half = &mut off_in[(step - 1) / (MOST_STEPS / 2)];
            *half = half.max(off);
        }
        since = if off <= 1e-3 { since.or(Some(step)) } else { None };
        if let Some(settled) = since.filter(|s| step >= s + STAYS) {
            return Ok(End::Settled(settled));
        }
    }
    Ok(if off_in[1] < 0.9 * off_in[0] { End::Slow } else { End::Lost })
}
