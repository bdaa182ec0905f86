//! Fraction of random networks that converge to weighted max-min, and the time: with the paper's parameters, and on
//! virtual queues.

use super::draw::{Hops, SIZES, Setup, exact, weight};
use super::watch::{Observations, watch};
use crate::{Context, ExperimentInfo, ExperimentKind, finite};
use serde_json::{Map, Value, json};
use subak_core::rng::Stream;
use subak_core::{IdVec, InputError, LinkId};

pub(super) const ENTRY: ExperimentInfo =
    ExperimentInfo { name: "soze-settles", kind: ExperimentKind::Packets, settings: SETTINGS, compute };

/// Parameters of `soze-virtual`.
const PARAMS: [&str; 6] = ["headroom", "integral", "queue_weight", "empties", "start_weights", "anew"];
/// [`PARAMS`]; `one`, `several`: number of networks with one and with several congested hops, instead of the number
/// of runs; `published`: 1 to run the paper's parameters too; `rate`: 1 if senders of `soze` keep a rate, 0 for a
/// window.
const SETTINGS: &[&str] =
    &["headroom", "integral", "queue_weight", "empties", "start_weights", "anew", "one", "several", "published", "rate"];

/// Default of `soze`'s parameter `start_weights`.
const START_WEIGHTS: f64 = 10.0;

/// Default headroom of `soze-virtual`.
const HEADROOM: f64 = 0.02;

#[derive(Debug, Clone, Copy)]
struct ConvergenceJob {
    hops: Hops,
    ours: bool,
    /// Whether the state of `soze`'s senders is a rate, not a congestion window.
    rate: bool,
    seed: u64,
}

/// Observations from a cold start, observations after half of the weights have changed, and k + p of Soze's target
/// function, us.
type Both = (Observations, Observations, f64);

fn compute(context: &mut Context) -> Result<(), InputError> {
    let mut params = Map::new();
    for name in PARAMS {
        if let Some(value) = context.plan.settings.get(name) {
            params.insert(name.into(), value.clone());
        }
    }
    let share = 1.0 - context.number("headroom", HEADROOM, 0.0, 0.9)?;
    let networks = context.runs() as f64;
    let mut counts = Vec::new();
    for (hops, name) in [(Hops::One, "one"), (Hops::Several, "several")] {
        counts.push((hops, context.number(name, networks, 0.0, 1e5)?.round() as u64));
    }
    let published = context.number("published", 1.0, 0.0, 1.0)? > 0.0;
    let rate = context.number("rate", 0.0, 0.0, 1.0)? > 0.0;
    let schemes = if published { [false, true].as_slice() } else { &[true] };
    let mut jobs = Vec::new();
    for &(hops, count) in &counts {
        for &ours in schemes {
            jobs.extend((0..count).map(|k| ConvergenceJob { hops, ours, rate, seed: context.seed() + k }));
        }
    }
    let seen = context.each(&jobs, jobs.len(), |job| run(job, &params, share))?;
    let runs: Vec<(ConvergenceJob, Both)> = jobs.into_iter().zip(seen).collect();
    for &(hops, count) in counts.iter().filter(|(_, count)| *count > 0) {
        unreachable(context, hops, count)?;
    }
    for &(hops, _) in counts.iter().filter(|(_, count)| *count > 0) {
        for &ours in schemes {
            let mine: Vec<&Both> =
                runs.iter().filter(|(j, _)| j.hops == hops && j.ours == ours).map(|(_, b)| b).collect();
            tell(context, &format!("{} {}", if ours { "soze-virtual" } else { "soze" }, hops.name()), hops, &mine);
        }
    }
    let columns = [
        "hops",
        "scheme",
        "network",
        "settled_rtts",
        "median_off",
        "worst_off",
        "utilization",
        "peak_us",
        "held_peak_us",
        "k_plus_p_us",
        "resettled_rtts",
    ];
    context.report.table("networks", &columns, runs.iter().map(row).collect());
    context.report.setup("share of capacity that soze-virtual aims at", share);
    Ok(())
}

fn run(job: &ConvergenceJob, params: &Map<String, Value>, share: f64) -> Result<Both, InputError> {
    let mut setup = job.hops.draw(job.seed)?;
    let (name, share) = if job.ours { ("soze-virtual", share) } else { ("soze", 1.0) };
    let mut params = match (job.ours, job.rate) {
        (true, _) => params.clone(),
        (false, true) => super::readings::rate_kept(),
        (false, false) => Map::new(),
    };
    // The headroom is set explicitly, so that no share for ACKs is added: ACKs share no link with data here.
    if job.ours {
        params.insert("headroom".into(), json!(1.0 - share));
    }
    let mut sim = subak_packet::build(name, &params, &setup.network, SIZES, &[], job.seed)?;
    let flows: Vec<_> = setup.plans.iter().map(|plan| sim.add(plan.clone())).collect();
    let limit = job.hops.limit_rtts();
    let cold = watch(&mut *sim, &flows, &setup, share, limit)?;
    let mut rng = Stream::new(job.seed, "soze new weights");
    for (plan, &flow) in setup.plans.iter_mut().zip(&flows) {
        if rng.unit() < 0.5 {
            plan.weight = weight(&mut rng);
            sim.set_weight(flow, plan.weight, None);
        }
    }
    let changed = watch(&mut *sim, &flows, &setup, share, limit)?;
    Ok((cold, changed, k_plus_p_us(&setup, &params, job.ours)))
}

/// Reports the effect of the published minimum and initial rates on these networks, from exact rates alone.
fn unreachable(context: &mut Context, hops: Hops, count: u64) -> Result<(), InputError> {
    let (mut below, mut goals, mut networks, mut starts) = (0, 0, 0, Vec::new());
    for seed in context.seed()..context.seed() + count {
        let (missed, of, start) = out_of_reach(&hops.draw(seed)?)?;
        (below, goals, networks) = (below + missed, goals + of, networks + usize::from(missed > 0));
        starts.push(start);
    }
    let what = hops.name();
    context.report.share(&format!("{what}: goals below a packet a round trip"), "flows", below, goals);
    let count = starts.len();
    context.report.share(&format!("{what}: a goal below a packet a round trip"), "networks", networks, count);
    context.report.sample(&format!("{what}: first rates over the link"), "median", "networks", &starts);
    Ok(())
}

/// Three values: the number of flows whose exact rate is below a packet per base RTT, the number of flows, and an
/// overload. The overload is the sum of initial rates at the fullest link over its capacity.
fn out_of_reach(setup: &Setup) -> Result<(usize, usize, f64), InputError> {
    let (rates, _) = exact(&setup.network, &setup.plans, 1.0)?;
    let packet_bps = f64::from(SIZES.mtu_bytes) * 8e9 / setup.rtt_ns as f64;
    let below = rates.iter().filter(|rate| **rate < packet_bps).count();
    let mut load = IdVec::<LinkId, f64>::filled(0.0, setup.network.links().len());
    for plan in &setup.plans {
        let path = &plan.routes[0].forward;
        let line_bps = setup.network.links()[path[0]].capacity_bps;
        let first_bps = (line_bps * plan.weight / START_WEIGHTS).min(line_bps);
        path.iter().for_each(|&l| load[l] += first_bps);
    }
    let fullest = load.iter().zip(setup.network.links()).map(|(load, link)| load / link.capacity_bps);
    Ok((below, rates.len(), fullest.fold(0.0, f64::max)))
}

/// k + p of Soze's target function with these parameters, us.
fn k_plus_p_us(setup: &Setup, params: &Map<String, Value>, ours: bool) -> f64 {
    if !ours {
        return 23.0;
    }
    let integral = params.get("integral").and_then(Value::as_f64).unwrap_or(3.0);
    3.0 + integral * 4000f64.ln() * setup.rtt_ns as f64 / 1e3
}

fn tell(context: &mut Context, what: &str, hops: Hops, runs: &[&Both]) {
    let limit = hops.limit_rtts() as f64;
    let report = &mut context.report;
    let mut share = |name: &str, test: &dyn Fn(&Both) -> bool| {
        report.share(&format!("{what}: {name}"), "networks", runs.iter().filter(|r| test(r)).count(), runs.len());
    };
    let full = |s: &Observations| s.utilization >= 0.97;
    share("settles", &|(cold, _, _)| cold.settled_rtts <= limit);
    share("settles, full, queues", &|(cold, _, most)| {
        cold.settled_rtts <= limit && full(cold) && cold.peak_us <= *most
    });
    share("queues", &|(cold, _, most)| cold.peak_us <= *most);
    share("queues once settled", &|(cold, _, most)| cold.held_peak_us <= *most);
    share("settles after weights change", &|(_, changed, _)| changed.settled_rtts <= limit);
    let mut sample = |name: &str, statistic: &str, value: &dyn Fn(&Both) -> f64| {
        let data: Vec<f64> = runs.iter().map(|r| value(r)).collect();
        report.sample(&format!("{what}: {name}"), statistic, "networks", &data);
    };
    sample("round trips", "median", &|(cold, _, _)| cold.settled_rtts);
    sample("round trips after weights change", "median", &|(_, changed, _)| changed.settled_rtts);
    sample("median flow off", "median", &|(cold, _, _)| 100.0 * cold.median_off);
    sample("worst flow off", "median", &|(cold, _, _)| 100.0 * cold.worst_off);
    sample("utilization", "median", &|(cold, _, _)| 100.0 * cold.utilization);
    sample("peak", "median", &|(cold, _, _)| cold.peak_us);
    let longest = runs.iter().map(|(cold, _, _)| cold.held_peak_us).fold(0.0, f64::max);
    report.value(&format!("{what}: held peak"), (10.0 * longest).round() / 10.0);
}

fn row((job, (cold, changed, most)): &(ConvergenceJob, Both)) -> Value {
    json!([
        job.hops.name(),
        if job.ours { "soze-virtual" } else { "soze" },
        job.seed,
        finite(cold.settled_rtts),
        cold.median_off,
        cold.worst_off,
        finite(cold.utilization),
        cold.peak_us,
        cold.held_peak_us,
        most,
        finite(changed.settled_rtts),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the documentation's statement on the minimum and initial rates of the published senders.
    #[test]
    fn many_goals_are_below_a_packet_a_round_trip_and_first_rates_are_many_times_the_link() {
        for (hops, least_share, least_start) in [(Hops::One, 0.5, 30.0), (Hops::Several, 0.0, 3.0)] {
            let of: Vec<_> = (1..=200).map(|seed| out_of_reach(&hops.draw(seed).unwrap()).unwrap()).collect();
            let (below, goals) = of.iter().fold((0, 0), |(b, g), one| (b + one.0, g + one.1));
            let mut starts: Vec<f64> = of.iter().map(|one| one.2).collect();
            let share = of.iter().filter(|one| one.0 > 0).count() as f64 / of.len() as f64;
            let start = crate::quantile(&mut starts, 0.5);
            println!("{}: {below} of {goals} goals, {share} of networks, first rates {start:.1}", hops.name());
            assert!(share >= least_share && start >= least_start, "{}: {share} {start}", hops.name());
        }
    }
}
