//! Our interpretations of unclear points of the Soze paper: runs each alternative, and shows which ones prevent
//! convergence.

use super::draw::{Hops, SIZES, Setup, exact};
use super::watch::{Observations, watch};
use crate::Context;
use serde_json::{Map, Value, json};
use subak_core::InputError;

/// A change of one interpretation. `Word` and `Zero` set a parameter; the other changes depend on the network.
#[derive(Debug, Clone, Copy)]
enum To {
    Word(&'static str, &'static str),
    Zero(&'static str),
    /// alpha of 100 Gb/s, and beta equal to the smallest exact rate per unit of weight.
    Scenario,
    /// Initial rates that exactly fill the link.
    Start,
    /// p of 1.5 ln(alpha / beta) RTTs.
    Scale,
}

const FLOOR: To = To::Word("least_rate", "beta");
const BACKLOG: To = To::Word("signal", "backlog");
const NO_FILTER: To = To::Zero("filter");
const EXACT: To = To::Word("sender", "exact");
const WHOLE: To = To::Word("update", "whole");
/// All changes that help convergence.
const ALL: [To; 6] = [FLOOR, To::Start, BACKLOG, NO_FILTER, To::Scale, EXACT];

/// Interpretations: name, and the changes relative to `rate_kept`.
const READINGS: &[(&str, &[To])] = &[
    ("as it stands", &[]),
    ("whole updates", &[WHOLE]),
    ("an update a round trip", &[To::Word("update", "rtt")]),
    ("a window", &[To::Word("state", "window-of-rate")]),
    ("a window kept", &[To::Word("state", "window"), BACKLOG, NO_FILTER]),
    ("alpha and beta of the scenario", &[To::Scenario]),
    ("no filter", &[NO_FILTER]),
    ("a floor of beta", &[FLOOR]),
    ("a start that fits", &[To::Start]),
    ("what waits", &[BACKLOG]),
    ("p of 1.5 round trips", &[To::Scale]),
    ("exact senders", &[EXACT]),
    ("to the letter", &[WHOLE, NO_FILTER, FLOOR, To::Scenario]),
    ("to the letter, a start that fits", &[WHOLE, NO_FILTER, FLOOR, To::Scenario, To::Start]),
    ("all cures", &ALL),
    ("all cures but the floor", &[To::Start, BACKLOG, NO_FILTER, To::Scale, EXACT]),
    ("all cures but the start", &[FLOOR, BACKLOG, NO_FILTER, To::Scale, EXACT]),
    ("all cures but what waits", &[FLOOR, To::Start, NO_FILTER, To::Scale, EXACT]),
    ("all cures but no filter", &[FLOOR, To::Start, BACKLOG, To::Scale, EXACT]),
    ("all cures but p", &[FLOOR, To::Start, BACKLOG, NO_FILTER, EXACT]),
    ("all cures but exact senders", &[FLOOR, To::Start, BACKLOG, NO_FILTER, To::Scale]),
    ("all cures, whole updates", &[FLOOR, To::Start, BACKLOG, NO_FILTER, To::Scale, EXACT, WHOLE]),
];

/// Number of interpretations.
pub(super) const COUNT: usize = READINGS.len();

/// Runs each interpretation on the networks of `seeds`, with one congested link; `of` is the total number of jobs.
pub(super) fn readings(context: &mut Context, seeds: std::ops::Range<u64>, of: usize) -> Result<(), InputError> {
    let jobs: Vec<(&[To], u64)> = READINGS.iter().flat_map(|(_, to)| seeds.clone().map(|seed| (*to, seed))).collect();
    let seen = context.each(&jobs, of, |&(to, seed)| run(to, seed))?;
    let limit = Hops::One.limit_rtts() as f64;
    let each = (seeds.end - seeds.start) as usize;
    let report = &mut context.report;
    let mut rows = Vec::new();
    for ((name, _), seen) in READINGS.iter().zip(seen.chunks(each.max(1))) {
        let hits = seen.iter().filter(|s| s.settled_rtts <= limit).count();
        report.share(&format!("{name}: settles"), "networks", hits, seen.len());
        let column = |value: &dyn Fn(&Observations) -> f64| seen.iter().map(value).collect::<Vec<f64>>();
        report.sample(&format!("{name}: median flow off"), "median", "networks", &column(&|s| 100.0 * s.median_off));
        report.sample(&format!("{name}: peak"), "median", "networks", &column(&|s| s.peak_us));
        rows.extend(
            seen.iter().zip(seeds.clone()).map(|(s, seed)| {
                json!([name, seed, crate::finite(s.settled_rtts), s.median_off, s.worst_off, s.peak_us])
            }),
        );
    }
    let columns = ["reading", "network", "settled_rtts", "median_off", "worst_off", "peak_us"];
    report.table("readings", &columns, rows);
    Ok(())
}

fn run(to: &[To], seed: u64) -> Result<Observations, InputError> {
    let setup = Hops::One.draw(seed)?;
    let params = params(to, &setup)?;
    let mut sim = subak_packet::build("soze", &params, &setup.network, SIZES, &[], seed)?;
    let flows: Vec<_> = setup.plans.iter().map(|plan| sim.add(plan.clone())).collect();
    watch(&mut *sim, &flows, &setup, 1.0, Hops::One.limit_rtts())
}

fn params(to: &[To], setup: &Setup) -> Result<Map<String, Value>, InputError> {
    let mut params = rate_kept();
    for to in to {
        match *to {
            To::Word(name, word) => params.insert(name.into(), json!(word)),
            To::Zero(name) => params.insert(name.into(), json!(0)),
            To::Scenario => {
                let (rates, _) = exact(&setup.network, &setup.plans, 1.0)?;
                let share = |(rate, plan): (&f64, &subak_core::backend::FlowPlan)| rate / plan.weight;
                let least_bps = rates.iter().zip(&setup.plans).map(share).fold(f64::INFINITY, f64::min);
                params.insert("alpha_rate".into(), json!(100e9));
                params.insert("beta_rate".into(), json!(least_bps))
            }
            To::Start => params.insert("start_weights".into(), json!(weights(setup))),
            To::Scale => params.insert("p".into(), json!(1.5e-9 * 1000f64.ln() * setup.rtt_ns as f64)),
        };
    }
    Ok(params)
}

/// Parameters of `soze` by which a sender keeps a rate, and packets carry their queueing delay, filtered as in the
/// paper's switches.
pub(super) fn rate_kept() -> Map<String, Value> {
    let params = json!({"state": "rate", "signal": "wait", "filter": 10e-6});
    params.as_object().cloned().unwrap_or_default()
}

/// Sum of the weights.
pub(super) fn weights(setup: &Setup) -> f64 {
    setup.plans.iter().map(|plan| plan.weight).sum()
}
