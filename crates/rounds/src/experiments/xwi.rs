//! xWI over the ideal fabric, exact weighted max-min, on random networks: how many come how close to the optimum, how
//! soon, and which never do (NUMFabric, section 4.2, equations 7 to 11).
//!
//! 20 to 200 links of mixed capacities, 50 to 500 flows over 1 to 6 of them. Three averages (equation 11): the paper's
//! beta of 0.5, one of 0.95, and one whose share of the new price diminishes, (1 - beta) / (1 + t / 100) after t steps.

use super::{Context, quantile};
use serde_json::{Value, json};
use std::sync::Arc;
use subak_core::rng::Stream;
use subak_core::{Case, Fault, Flow, Flows, Link, LinkId, Network, Policy};
use subak_solve::xwi::{Iteration, PriceLaw, Settings};
use subak_solve::{Options, Utility, solve};

const ALPHAS: [f64; 4] = [0.5, 1.0, 2.0, 4.0];
/// Steps that a run may take.
const MOST_STEPS: u64 = 10_000;
/// Steps over which the end of a run is looked at: what lasted as long lasts.
const END: u64 = 100;
/// A diminishing average that stayed within 1% for so many steps stays.
const SETTLED: u64 = 1000;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Capacities {
    /// 10, 25, 40 and 100 Gb/s.
    Mixed,
    /// 10 Gb/s all.
    Equal,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Job {
    alpha: f64,
    average: &'static str,
    capacities: Capacities,
    network: u64,
}

/// What a run came to.
struct Ran {
    /// The step from which on the worst rate is within 1%, to the end.
    settled: Option<u64>,
    /// The first step at which it is.
    touched: Option<u64>,
    /// The step at which it is within a millionth.
    exact: Option<u64>,
    /// The worst error of the last steps of a run that did not settle, and the period of the cycle that they run in.
    off_by: Option<f64>,
    period: Option<usize>,
    /// The largest ratio of two flows' optimal rates at one full link.
    spread: f64,
}

pub(super) fn ideal(context: &mut Context) -> Result<(), Fault> {
    let networks = context.runs(4, 500) as u64;
    let jobs = jobs(networks, context.seed);
    let ran = context.each(&jobs, jobs.len(), run)?;
    let runs: Vec<(Job, Ran)> = jobs.into_iter().zip(ran).collect();
    judge(context, &runs);
    let columns = [
        "alpha",
        "average",
        "capacities",
        "network",
        "settled_steps",
        "touched_steps",
        "exact_steps",
        "off_by",
        "period",
        "spread",
    ];
    context.report.table("runs", &columns, runs.iter().map(row).collect());
    context.report.setup("networks", networks);
    for (alpha, text) in [2.0, 4.0].map(|alpha| (alpha, unsettled(&runs, alpha))) {
        context.report.note(&format!("Limit cycles at alpha {alpha}, beta 0.5: {text}."));
    }
    Ok(())
}

fn jobs(networks: u64, seed: u64) -> Vec<Job> {
    let mut jobs = Vec::new();
    for alpha in ALPHAS {
        let mut add = |average, capacities, count| {
            jobs.extend((0..count).map(|k| Job { alpha, average, capacities, network: seed + k }));
        };
        add("0.5", Capacities::Mixed, networks);
        add("diminishing", Capacities::Mixed, networks);
        if alpha >= 2.0 {
            add("0.5", Capacities::Equal, networks.div_ceil(4));
            add("0.95", Capacities::Mixed, networks.div_ceil(4));
        }
    }
    jobs
}

fn draw(job: &Job) -> Result<Case, Fault> {
    let mut rng = Stream::new(job.network, "xwi networks");
    let (links, flows) = (20 + rng.below(181), 50 + rng.below(451));
    let mut network = Network::new();
    for l in 0..links {
        let mixed = [10e9, 25e9, 40e9, 100e9][rng.below(4)];
        let capacity_bps = if job.capacities == Capacities::Mixed { mixed } else { 10e9 };
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
            let l = rng.below(links) as LinkId;
            if !path.contains(&l) {
                path.push(l);
            }
        }
        all.push(Flow::over(format!("f{f}"), path), &network)?;
    }
    Ok(Case { network, flows: all, policy: Policy::AlphaFair { alpha: job.alpha } })
}

fn settings(average: &str) -> Settings {
    match average {
        "diminishing" => Settings { diminish_after: 100.0, ..Settings::default() },
        "0.95" => Settings { law: PriceLaw { beta: 0.95, ..PriceLaw::default() }, ..Settings::default() },
        _ => Settings::default(),
    }
}

/// The worst relative error of a rate.
fn worst(got: &[f64], want: &[f64]) -> f64 {
    got.iter().zip(want).map(|(g, w)| (g / w - 1.0).abs()).fold(0.0, f64::max)
}

fn run(job: &Job) -> Result<Ran, Fault> {
    let case = draw(job)?;
    let answer = solve(&case, &Options { tolerance: 1e-10, ..Options::default() })?;
    let want = answer.rates_bps;
    let utilities = (0..case.flows.len()).map(|f| Utility::of(&case, f).map(Arc::new)).collect::<Result<_, _>>()?;
    let mut xwi = Iteration::new(&case, utilities, settings(job.average))?;
    let spread = spread(&case, &want, &answer.link_price);
    let mut ran = Ran { settled: None, touched: None, exact: None, off_by: None, period: None, spread };
    let mut recent: Vec<Vec<f64>> = Vec::new();
    let mut off_by = 0.0f64;
    while xwi.steps() < MOST_STEPS && ran.exact.is_none() {
        if job.average == "diminishing" && ran.settled.is_some_and(|since| xwi.steps() >= since + SETTLED) {
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

/// The largest ratio of two optimal rates at one link that has a price.
fn spread(case: &Case, rates_bps: &[f64], price: &[f64]) -> f64 {
    let mut bounds = vec![(f64::INFINITY, 0.0f64); price.len()];
    for (f, &rate) in rates_bps.iter().enumerate() {
        for p in case.flows.paths_of(f) {
            for &l in case.flows.links_of(p) {
                let (least, most) = &mut bounds[l as usize];
                (*least, *most) = (least.min(rate), most.max(rate));
            }
        }
    }
    let priced = bounds.iter().zip(price).filter(|(_, p)| **p > 0.0);
    priced.map(|((least, most), _)| most / least).fold(1.0, f64::max)
}

/// The share of `runs` that pass `test`, in percent.
fn share<'a>(runs: impl Iterator<Item = &'a Ran>, test: impl Fn(&Ran) -> bool) -> f64 {
    let (mut all, mut good) = (0u32, 0u32);
    for ran in runs {
        all += 1;
        good += u32::from(test(ran));
    }
    if all == 0 { f64::NAN } else { (1000.0 * f64::from(good) / f64::from(all)).round() / 10.0 }
}

fn judge(context: &mut Context, runs: &[(Job, Ran)]) {
    let report = &mut context.report;
    for alpha in ALPHAS {
        let of = |average: &'static str, capacities| {
            let mine = move |job: &Job| job.alpha == alpha && job.average == average && job.capacities == capacities;
            runs.iter().filter(move |(job, _)| mine(job)).map(|(_, ran)| ran)
        };
        let paper = || of("0.5", Capacities::Mixed);
        let in_500 = share(paper(), |r| r.settled.is_some_and(|s| s <= 500));
        let exact = share(paper(), |r| r.exact.is_some());
        let mut steps: Vec<f64> = paper().filter_map(|r| r.settled).map(|s| s as f64).collect();
        let measured = json!({"within_1_percent_in_500": in_500, "within_1e-6_in_10000": exact,
                              "median_steps_to_1_percent": quantile(&mut steps, 0.5)});
        let name = format!("alpha {alpha}, beta 0.5: percent of the networks");
        if alpha <= 1.0 {
            let must = "within 1% in 500 steps: 99%; within 1e-6 in 10,000: 95%";
            report.check(&name, "converges", measured, must, in_500 >= 99.0 && exact >= 95.0);
        } else {
            report.tell(&name, "converges", measured);
            let far = |r: &Ran| r.settled.is_some_and(|s| s <= 500);
            let measured = json!({
                "within_1_percent_once": share(paper(), |r| r.touched.is_some()),
                "for_good": share(paper(), |r| r.settled.is_some()),
                "for_good_in_500_at_equal_capacities": share(of("0.5", Capacities::Equal), far),
                "for_good_at_beta_0.95": share(of("0.95", Capacities::Mixed), |r| r.settled.is_some()),
                "median_spread_settled": spreads(paper().filter(|r| r.settled.is_some())),
                "median_spread_of_the_others": spreads(paper().filter(|r| r.settled.is_none())),
            });
            report.tell(&format!("alpha {alpha}: why, percent of the networks"), "", measured);
        }
        let diminishing = share(of("diminishing", Capacities::Mixed), |r| r.settled.is_some());
        let name = format!("alpha {alpha}, diminishing average: percent within 1% in 10,000 steps");
        report.check(&name, "", diminishing, "at least 95%", diminishing >= 95.0);
    }
}

fn spreads<'a>(runs: impl Iterator<Item = &'a Ran>) -> Option<f64> {
    let mut spreads: Vec<f64> = runs.map(|r| r.spread).collect();
    Some(quantile(&mut spreads, 0.5)).filter(|s| s.is_finite()).map(|s| (10.0 * s).round() / 10.0)
}

fn row((job, ran): &(Job, Ran)) -> Value {
    let capacities = if job.capacities == Capacities::Equal { "equal" } else { "mixed" };
    json!([
        job.alpha,
        job.average,
        capacities,
        job.network,
        ran.settled,
        ran.touched,
        ran.exact,
        ran.off_by,
        ran.period,
        ran.spread,
    ])
}

/// How many networks never settle under the paper's average, the first of them, and how far off they are.
fn unsettled(runs: &[(Job, Ran)], alpha: f64) -> String {
    let mine = |job: &Job| job.alpha == alpha && job.average == "0.5" && job.capacities == Capacities::Mixed;
    let cycles: Vec<&(Job, Ran)> = runs.iter().filter(|(job, ran)| mine(job) && ran.settled.is_none()).collect();
    let named = cycles.iter().take(10).map(|(job, ran)| {
        let period = ran.period.map_or(String::new(), |p| format!(", period {p}"));
        format!("{} (off by {:.0}%{period})", job.network, 100.0 * ran.off_by.unwrap_or(f64::NAN))
    });
    let named: Vec<String> = named.collect();
    let more = if cycles.len() > named.len() { "; the others stand in raw.json" } else { "" };
    format!("{} networks never settle: {}{more}", cycles.len(), named.join(", "))
}
