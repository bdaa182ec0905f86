//! xWI over the ideal fabric on random networks: how many come how close to the optimum, and which never do.
//!
//! `cargo run --release -p subak-solve --example xwi_networks -- [NETWORKS [ALPHA]...]`

use std::sync::Arc;
use subak_core::rng::Stream;
use subak_core::{Case, Flow, Flows, Link, LinkId, Network, Policy};
use subak_solve::xwi::{Iteration, Settings};
use subak_solve::{Options, Utility, solve};

/// 20 to 200 links, 50 to 500 flows, paths of 1 to 6 links.
fn draw(seed: u64, alpha: f64) -> Case {
    let mut rng = Stream::new(seed, "xwi networks");
    let (links, flows) = (20 + rng.below(181), 50 + rng.below(451));
    let mut network = Network::new();
    for l in 0..links {
        let capacity_bps = [10e9, 25e9, 40e9, 100e9][rng.below(4)];
        let link = Link { id: format!("l{l}"), from: None, to: None, capacity_bps, delay_ns: 0, buffer_bytes: None };
        network.add(link).expect("ids differ");
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
        all.push(Flow::over(format!("f{f}"), path), &network).expect("the flow is sound");
    }
    Case { network, flows: all, policy: Policy::AlphaFair { alpha } }
}

/// The worst relative error of a rate.
fn worst(got: &[f64], want: &[f64]) -> f64 {
    got.iter().zip(want).map(|(g, w)| (g / w - 1.0).abs()).fold(0.0, f64::max)
}

/// A diminishing average that stayed within 1% for so many steps stays.
const SETTLED: u64 = 1000;

struct Run {
    /// Steps to within 1% for good (as seen up to the end), and to within 1e-6.
    one_percent: Option<u64>,
    millionth: Option<u64>,
    /// The worst error in the last hundred steps, and the period of the cycle that they run in.
    last: f64,
    period: Option<usize>,
}

fn run(case: &Case, want: &[f64], settings: Settings, steps: u64) -> Run {
    let utilities = (0..case.flows.len()).map(|f| Arc::new(Utility::of(case, f).expect("alpha-fair")));
    let mut xwi = Iteration::new(case, utilities.collect(), settings).expect("one utility a flow");
    let mut run = Run { one_percent: None, millionth: None, last: 0.0, period: None };
    let mut recent: Vec<Vec<f64>> = Vec::new();
    let settled = |run: &Run, at: u64| run.one_percent.is_some_and(|since| at >= since + SETTLED);
    while xwi.steps() < steps && run.millionth.is_none() {
        if settings.diminish_after < f64::INFINITY && settled(&run, xwi.steps()) {
            break;
        }
        xwi.step();
        let rates = xwi.rates_bps();
        let error = worst(&rates, want);
        run.one_percent = if error <= 0.01 { run.one_percent.or(Some(xwi.steps())) } else { None };
        run.millionth = (error <= 1e-6).then(|| xwi.steps());
        if xwi.steps() + 100 > steps {
            run.last = run.last.max(error);
            recent.push(rates);
        }
    }
    if let Some((now, before)) = recent.split_last() {
        run.period = before.iter().rev().position(|r| worst(r, now) < 1e-9).map(|k| k + 1);
    }
    run
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let networks: u64 = args.next().and_then(|a| a.parse().ok()).unwrap_or(500);
    let alphas: Vec<f64> = args.filter_map(|a| a.parse().ok()).collect();
    let alphas = if alphas.is_empty() { vec![0.5, 1.0, 2.0, 4.0] } else { alphas };
    let diminishing = Settings { diminish_after: 100.0, ..Settings::default() };
    println!("alpha  average      within 1% in 500  in 10,000  median steps  1e-6 in 10,000");
    for alpha in alphas {
        for (name, settings) in [("beta = 0.5", Settings::default()), ("diminishing", diminishing)] {
            let mut runs = Vec::new();
            for seed in 0..networks {
                let case = draw(seed, alpha);
                let want = solve(&case, &Options { tolerance: 1e-10, ..Options::default() }).expect("sound").rates_bps;
                runs.push((seed, run(&case, &want, settings, 10_000)));
            }
            report(alpha, name, &runs);
        }
    }
}

fn report(alpha: f64, name: &str, runs: &[(u64, Run)]) {
    let share =
        |test: &dyn Fn(&Run) -> bool| 100.0 * runs.iter().filter(|(_, r)| test(r)).count() as f64 / runs.len() as f64;
    let mut steps: Vec<u64> = runs.iter().filter_map(|(_, r)| r.one_percent).collect();
    steps.sort_unstable();
    println!(
        "{alpha:<6} {name:<12} {:>15.1}% {:>10.1}% {:>13} {:>14.1}%",
        share(&|r| r.one_percent.is_some_and(|s| s <= 500)),
        share(&|r| r.one_percent.is_some()),
        steps.get(steps.len() / 2).map_or("-".to_string(), u64::to_string),
        share(&|r| r.millionth.is_some()),
    );
    for (seed, r) in runs.iter().filter(|(_, r)| r.one_percent.is_none()).take(20) {
        let period = r.period.map_or("no period below 100".to_string(), |p| format!("period {p}"));
        println!("    network {seed}: off by {:.3} in the last hundred steps, {period}", r.last);
    }
}
