//! xWI over an ideal transport (exact weighted max-min) on random networks: how many converge, to which tolerance,
//! and in how many steps (NUMFabric, section 4.2, equations 7 to 11).
//!
//! A network has 20 to 200 links of 10 to 100 Gb/s, and 50 to 500 flows over 1 to 6 links. The average of equation 11
//! is the paper's, or one in which the weight of the new price diminishes as (1 - beta) / (1 + t / 100) after t
//! steps.

use crate::{Context, ExperimentInfo, ExperimentKind};
use serde_json::{Value, json};
use std::sync::Arc;
use subak_core::rng::Stream;
use subak_core::{Case, Flow, Flows, IdVec, InputError, Link, LinkId, Network, Policy};
use subak_solve::xwi::{XwiIteration, XwiPriceLaw, XwiSettings};
use subak_solve::{SolveOptions, Utility, solve};

pub(super) const ENTRY: ExperimentInfo =
    ExperimentInfo { name: "numfabric-xwi-ideal", kind: ExperimentKind::Solver, settings: SETTINGS, compute };

const ALPHAS: [f64; 4] = [0.5, 1.0, 2.0, 4.0];
/// Largest number of steps of a run.
const MOST_STEPS: u64 = 10_000;
/// Number of last steps in which rates must stay within the tolerance.
const END: u64 = 100;
/// Number of steps within 1% after which a run with diminishing average counts as converged.
const SETTLED: u64 = 1000;

/// `beta` and `eta` of the price update; `diminishing`: 1 if the weight of the new price diminishes; `equal`: 1 if
/// all links have 10 Gb/s.
const SETTINGS: &[&str] = &["beta", "eta", "diminishing", "equal"];

/// Parameters from the plan.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Setup {
    beta: f64,
    eta: f64,
    diminishing: bool,
    /// Whether all links have 10 Gb/s, instead of 10, 25, 40 and 100.
    equal: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct XwiJob {
    alpha: f64,
    network: u64,
}

/// Result of a run.
struct Ran {
    /// First step from which the largest error stays within 1% to the end.
    settled: Option<u64>,
    /// First step with the largest error within 1%.
    touched: Option<u64>,
    /// First step with the largest error within a millionth.
    exact: Option<u64>,
    /// For a run that does not converge: largest relative error in the last [`END`] steps.
    off_by: Option<f64>,
    /// For a run that does not converge: period of the cycle, steps.
    period: Option<usize>,
    /// Largest ratio of the optimal rates of two flows on one saturated link.
    spread: f64,
}

fn compute(context: &mut Context) -> Result<(), InputError> {
    let networks = context.runs() as u64;
    let usual = XwiPriceLaw::default();
    let law = Setup {
        beta: context.number("beta", usual.beta, 0.0, 0.999)?,
        eta: context.number("eta", usual.eta, 0.0, 1e3)?,
        diminishing: context.number("diminishing", 0.0, 0.0, 1.0)? > 0.0,
        equal: context.number("equal", 0.0, 0.0, 1.0)? > 0.0,
    };
    let seed = context.seed();
    let of = |alpha| (0..networks).map(move |k| XwiJob { alpha, network: seed + k });
    let jobs: Vec<XwiJob> = ALPHAS.into_iter().flat_map(of).collect();
    let ran = context.each(&jobs, jobs.len(), |job| run(job, &law))?;
    let runs: Vec<(XwiJob, Ran)> = jobs.into_iter().zip(ran).collect();
    for alpha in ALPHAS {
        tell(context, alpha, &runs);
    }
    let columns = ["alpha", "network", "settled_steps", "touched_steps", "exact_steps", "off_by", "period", "spread"];
    context.report.table("runs", &columns, runs.iter().map(row).collect());
    context.report.setup("networks", networks);
    for (alpha, text) in [2.0, 4.0].map(|alpha| (alpha, unsettled(&runs, alpha))) {
        context.report.note(&format!("Limit cycles at alpha {alpha}: {text}."));
    }
    Ok(())
}

fn draw(job: &XwiJob, equal: bool) -> Result<Case, InputError> {
    let mut rng = Stream::new(job.network, "xwi networks");
    let (links, flows) = (20 + rng.below(181), 50 + rng.below(451));
    let mut network = Network::new();
    for l in 0..links {
        let mixed = [10e9, 25e9, 40e9, 100e9][rng.below(4)];
        let capacity_bps = if equal { 10e9 } else { mixed };
        network.add(Link {
            id: format!("l{l}"),
            from: None,
            to: None,
            capacity_bps,
            delay_ns: 0,
            buffer_bytes: None,
        })?;
    }
    let mut all = Flows::new();
    for f in 0..flows {
        let mut path: Vec<LinkId> = Vec::new();
        let hops = 1 + rng.below(6);
        while path.len() < hops {
            let l = LinkId::from_index(rng.below(links));
            if !path.contains(&l) {
                path.push(l);
            }
        }
        all.push(Flow::over(format!("f{f}"), path), &network)?;
    }
    Ok(Case { network, flows: all, policy: Policy::AlphaFair { alpha: job.alpha } })
}

/// Largest relative error of a rate.
fn worst(got: &[f64], want: &[f64]) -> f64 {
    got.iter().zip(want).map(|(g, w)| (g / w - 1.0).abs()).fold(0.0, f64::max)
}

fn run(job: &XwiJob, law: &Setup) -> Result<Ran, InputError> {
    let case = draw(job, law.equal)?;
    let answer = solve(&case, &SolveOptions { tolerance: 1e-10, ..SolveOptions::default() })?;
    let want = answer.rates_bps;
    let utilities = (0..case.flows.len()).map(|f| Utility::of(&case, f).map(Arc::new)).collect::<Result<_, _>>()?;
    let mut settings = XwiSettings { law: XwiPriceLaw { beta: law.beta, eta: law.eta }, ..XwiSettings::default() };
    if law.diminishing {
        settings.diminish_after = 100.0;
    }
    let mut xwi = XwiIteration::new(&case, utilities, settings)?;
    let spread = spread(&case, &want, &answer.link_price);
    let mut ran = Ran { settled: None, touched: None, exact: None, off_by: None, period: None, spread };
    let mut recent: Vec<Vec<f64>> = Vec::new();
    let mut off_by = 0.0f64;
    while xwi.steps() < MOST_STEPS && ran.exact.is_none() {
        if law.diminishing && ran.settled.is_some_and(|since| xwi.steps() >= since + SETTLED) {
            break;
        }
        xwi.step();
        let rates = xwi.rates_bps();
        let error = worst(&rates, &want);
        if error <= 0.01 {
            ran.touched.get_or_insert(xwi.steps());
            ran.settled.get_or_insert(xwi.steps());
        } else {
            ran.settled = None;
        }
        ran.exact = (error <= 1e-6).then(|| xwi.steps());
        if xwi.steps() + END > MOST_STEPS {
            off_by = off_by.max(error);
            recent.push(rates);
        }
    }
    if off_by > 0.01 {
        ran.settled = None;
        ran.off_by = Some(off_by);
        ran.period = recent
            .split_last()
            .and_then(|(now, before)| before.iter().rev().position(|rates| worst(rates, now) < 1e-9).map(|k| k + 1));
    }
    Ok(ran)
}

/// Largest ratio of two optimal rates on one link with a positive price.
fn spread(case: &Case, rates_bps: &[f64], price: &[f64]) -> f64 {
    let mut bounds = IdVec::<LinkId, _>::filled((f64::INFINITY, 0.0f64), price.len());
    for (f, &rate) in rates_bps.iter().enumerate() {
        for p in case.flows.paths_of(f) {
            for &l in case.flows.links_of(p) {
                let (least, most) = &mut bounds[l];
                (*least, *most) = (least.min(rate), most.max(rate));
            }
        }
    }
    let priced = bounds.iter().zip(price).filter(|(_, p)| **p > 0.0);
    priced.map(|((least, most), _)| most / least).fold(1.0, f64::max)
}

/// Reports the fraction of networks with this `alpha` that converged to within 1%, and the number of steps.
fn tell(context: &mut Context, alpha: f64, runs: &[(XwiJob, Ran)]) {
    let mine: Vec<&Ran> = runs.iter().filter(|(job, _)| job.alpha == alpha).map(|(_, ran)| ran).collect();
    let report = &mut context.report;
    let mut share = |what: &str, test: &dyn Fn(&Ran) -> bool| {
        let hits = mine.iter().filter(|ran| test(ran)).count();
        report.share(&format!("{what} {alpha}"), "networks", hits, mine.len());
    };
    share("in 500", &|ran| ran.settled.is_some_and(|s| s <= 500));
    share("for good", &|ran| ran.settled.is_some());
    share("once", &|ran| ran.touched.is_some());
    share("exact", &|ran| ran.exact.is_some());
    let steps: Vec<f64> = mine.iter().map(|ran| ran.settled.map_or(f64::INFINITY, |s| s as f64)).collect();
    report.sample(&format!("steps {alpha}"), "median", "networks", &steps);
    for (what, settled) in [("spread settled", true), ("spread not settled", false)] {
        let of = mine.iter().filter(|ran| ran.settled.is_some() == settled);
        report.sample(&format!("{what} {alpha}"), "median", "networks", &of.map(|ran| ran.spread).collect::<Vec<_>>());
    }
}

fn row((job, ran): &(XwiJob, Ran)) -> Value {
    json!([job.alpha, job.network, ran.settled, ran.touched, ran.exact, ran.off_by, ran.period, ran.spread])
}

/// Text: number of networks with this `alpha` that did not converge, the first of them, and their distances from the
/// optimum.
fn unsettled(runs: &[(XwiJob, Ran)], alpha: f64) -> String {
    let cycles: Vec<&(XwiJob, Ran)> =
        runs.iter().filter(|(job, ran)| job.alpha == alpha && ran.settled.is_none()).collect();
    let named = cycles.iter().take(10).map(|(job, ran)| {
        let period = ran.period.map_or(String::new(), |p| format!(", period {p}"));
        format!("{} (off by {:.0}%{period})", job.network, 100.0 * ran.off_by.unwrap_or(f64::NAN))
    });
    let named: Vec<String> = named.collect();
    let more = if cycles.len() > named.len() { "; the others stand in raw.json" } else { "" };
    format!("{} networks never settle: {}{more}", cycles.len(), named.join(", "))
}
