//! Warnings about a run's results.

use crate::error::Error;
use crate::results::facts::TrialFacts;
use crate::results::first_seed::{self, FirstSeed};
use crate::results::no_effect;
use crate::results::overloaded;
use crate::results::stats::Stat;
use crate::results::summary::{Group, SummaryRow, groups};
use crate::results::warning::Warning;
use crate::spec::ValidSpec;
use crate::spec::choice::SchemeChoice;
use crate::spec::scenario::Scenario;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use subak_core::backend::{Injected, Machine, Route};
use subak_core::quantity::quoted;
use subak_core::scheme::{Doubt, FlowShares, Goal};
use subak_core::{LinkId, Network, Nic, NodeId, NodeKind, Policy};

/// Mean number of flows per run in a size bin; below it, a warning says that the bin's metrics rest on few flows.
const FEW_FLOWS: f64 = 30.0;

/// Fraction of the offered load that must arrive and be carried; below it, a warning is issued.
const REACHED: f64 = 0.9;

/// Link capacity in a network file, bit/s; below it, a warning says that the unit may be missing.
const SLOW_BPS: f64 = 1e6;

/// Metrics for which wide confidence intervals cause a warning.
const WATCHED: &[&str] = &["slowdown_mean", "slowdown_p50", "slowdown_p99", "wait_p99_ns", "convergence_p50_ns"];

/// Warnings about `spec`, and about the complete trials in `dir`.
pub(crate) fn warnings(spec: &ValidSpec, dir: &Path) -> Result<Vec<Warning>, Error> {
    let mut all = of_spec(spec);
    for group in groups(dir)?.1 {
        let Some(&(trial, _)) = group.runs.first() else { continue };
        let (scenario, choice) = spec.scenario(trial as usize);
        let seed = spec.trial(trial as usize).seed;
        of_group(scenario, choice, seed, &group, &mut all);
    }
    Ok(all)
}

/// Warnings from the spec alone, without duplicates.
pub(crate) fn of_spec(spec: &ValidSpec) -> Vec<Warning> {
    let every = (0..spec.len() as u64).collect::<Vec<_>>();
    let renamed = spec.spec.renamed.iter();
    let mut all: Vec<Warning> = renamed
        .map(|text| Warning {
            kind: "renamed",
            scheme: None,
            axes: BTreeMap::new(),
            trials: every.clone(),
            text: text.clone(),
        })
        .collect();
    let per_scenario = spec.schemes.len() * spec.seeds.len();
    for first in (0..spec.len()).step_by(per_scenario.max(1)) {
        let (scenario, _) = spec.scenario(first);
        let trials = (first as u64..(first + per_scenario) as u64).collect::<Vec<_>>();
        let first_seed = FirstSeed::new(spec, scenario);
        let flows = first_seed::shares(&first_seed);
        for (choice, Doubt { kind, text }) in spec
            .every_scheme()
            .flat_map(|choice| doubts(scenario, choice, flows).into_iter().map(move |doubt| (choice, doubt)))
        {
            note(
                &mut all,
                Warning {
                    kind,
                    scheme: Some(choice.label.clone()),
                    axes: BTreeMap::new(),
                    trials: trials.clone(),
                    text,
                },
            );
        }
        for choice in spec.every_scheme().filter(|choice| does_not_recover(scenario, choice)) {
            let kind = "no-recovery";
            let text = "it does not come right again after control messages are lost, late or doubled, a switch starts anew, or a link is down for \
                        ever, as faults of this spec bring about: links keep rates of flows that are gone; take a scheme \
                        that recovers, such as s-perc-star for s-perc"
                .to_string();
            note(
                &mut all,
                Warning {
                    kind,
                    scheme: Some(choice.label.clone()),
                    axes: BTreeMap::new(),
                    trials: trials.clone(),
                    text,
                },
            );
        }
        for choice in spec.every_scheme() {
            let Some(text) = left_out(scenario, choice) else { continue };
            let scheme = Some(choice.label.clone());
            note(&mut all, Warning { kind: "left-out", scheme, axes: BTreeMap::new(), trials: trials.clone(), text });
        }
        for choice in spec.every_scheme() {
            let Ok((_, info)) = choice.backend() else { continue };
            let policy = scenario.under(choice).policy;
            if let Some((least, most)) = info.goal.sound_alpha(policy) {
                let range =
                    if most.is_finite() { format!("from {least} to {most}") } else { format!("{least} or more") };
                let text = format!(
                    "rates may stay more than 15% off the policy's optimum: the scheme comes near it for alpha {range}; \
                     take the optimizer ned for another alpha"
                );
                let scheme = Some(choice.label.clone());
                note(&mut all, Warning { kind: "alpha", scheme, axes: BTreeMap::new(), trials: trials.clone(), text });
            }
            if is_doubtful(info.goal, policy) {
                let text = "rates may stay more than 15% off the policy's optimum on some networks; ned-central and exact-central come \
                            near it under every policy, and ned under bandwidth functions"
                    .to_string();
                let scheme = Some(choice.label.clone());
                note(&mut all, Warning { kind: "policy", scheme, axes: BTreeMap::new(), trials: trials.clone(), text });
            }
            if let (Goal::Utility(_), Policy::BandwidthFunction { alpha }) = (info.goal, policy) {
                let text = format!(
                    "rates maximize utilities with policy.alpha = {alpha}: a flow over several bottlenecks may get less than its fair \
                     share, such as {:.2} of it over 3; a larger alpha comes nearer, and exact-central allocates the fair shares",
                    3_f64.powf(-1.0 / alpha)
                );
                let scheme = Some(choice.label.clone());
                let kind = "fair-share";
                note(&mut all, Warning { kind, scheme, axes: BTreeMap::new(), trials: trials.clone(), text });
            }
            if let Some(text) = xwi_in_short_steps(choice, policy, scenario.topology.network()) {
                let scheme = Some(choice.label.clone());
                let kind = "time-scale";
                note(&mut all, Warning { kind, scheme, axes: BTreeMap::new(), trials: trials.clone(), text });
            }
            for text in scenario.workload.without_effect(policy, info.weights) {
                let scheme = Some(choice.label.clone());
                let kind = "no-effect";
                note(&mut all, Warning { kind, scheme, axes: BTreeMap::new(), trials: trials.clone(), text });
            }
        }
        let told = [
            idle_controller(spec, scenario),
            slow_link(spec, scenario),
            unseen_faults(scenario),
            unlike_nics(spec, scenario),
            one_path(spec, scenario),
            first_seed::unlike_subflows(&first_seed),
        ];
        let told = told.into_iter().flatten().chain(first_seed::pooled(&first_seed));
        for (kind, text) in told.chain(of_input(scenario, &first_seed)) {
            note(&mut all, Warning { kind, scheme: None, axes: BTreeMap::new(), trials: trials.clone(), text });
        }
    }
    all.extend(no_effect::warnings(spec));
    all
}

/// Adds `new` to `all`; if an equal warning is present, adds only its trials.
fn note(all: &mut Vec<Warning>, new: Warning) {
    match all.iter_mut().find(|w| (w.kind, &w.scheme, &w.text) == (new.kind, &new.scheme, &new.text)) {
        Some(known) => known.trials.extend(new.trials),
        None => all.push(new),
    }
}

/// A warning for each parameter of the scheme whose value does not suit the scenario's network.
fn doubts(scenario: &Scenario, choice: &SchemeChoice, flows: FlowShares) -> Vec<Doubt> {
    let Ok((backend, info)) = choice.backend() else { return Vec::new() };
    let params = scenario.circumstances(true).complete(&info, &choice.params);
    backend.doubts(&choice.name, &params, scenario.topology.network(), scenario.packet, flows)
}

/// Notes on how network and workload files were interpreted, as kind and text.
fn of_input(scenario: &Scenario, first_seed: &FirstSeed) -> impl Iterator<Item = (&'static str, String)> {
    let network = scenario.topology.network();
    let of_network = network.notes().into_iter().chain(network.guess_note()).map(|text| ("network", text));
    let omitted = first_seed::stranded(first_seed).into_iter().chain(first_seed::late(first_seed));
    let of_workload = scenario.workload.notes(&scenario.topology, scenario.duration_ns).into_iter().chain(omitted);
    of_network.chain(of_workload.map(|text| ("workload", text)))
}

/// A warning that lists the keys of the scenario which the scheme's backend ignores.
fn left_out(scenario: &Scenario, choice: &SchemeChoice) -> Option<String> {
    let (backend, _) = choice.backend().ok()?;
    let mut keys: Vec<String> =
        backend.leaves_out(&scenario.wishes()).into_iter().map(|(key, why)| format!("{key} ({why})")).collect();
    let why = "of a scheme it has the goal, the time to settle and the share of data";
    keys.extend(backend.unread(&choice.name, &choice.params).into_iter().map(|key| format!("params.{key} ({why})")));
    (!keys.is_empty()).then(|| format!("the backend {} leaves out {}", quoted(backend.name()), keys.join(", ")))
}

/// Whether faults of the scenario leave the scheme with permanently wrong rates.
fn does_not_recover(scenario: &Scenario, choice: &SchemeChoice) -> bool {
    let hurts = |fault: &Injected| match fault {
        Injected::Packets { kinds, .. } => kinds.ctl,
        // When a link is up again, links count their flows anew.
        Injected::Down { up_ns, .. } => *up_ns == u64::MAX,
        Injected::Restart { machine: Machine::Hop(_) | Machine::Node(_), .. } => true,
        Injected::Capacity { .. } | Injected::Restart { .. } => false,
    };
    let recovers = || {
        choice
            .backend()
            .map_or(true, |(backend, _)| backend.rules(&choice.name, &choice.params).unwrap_or_default().recovers)
    };
    scenario.faults.iter().any(hurts) && !recovers()
}

/// Warning for a controller that no scheme uses.
fn idle_controller(spec: &ValidSpec, scenario: &Scenario) -> Option<(&'static str, String)> {
    scenario.controller.as_ref()?;
    let has = |scheme: &SchemeChoice| {
        let (backend, info) = scheme.backend().ok()?;
        let params = scenario.circumstances(true).complete(&info, &scheme.params);
        backend.has_controller(&scheme.name, &params, scenario.topology.network()).ok()
    };
    let text = "the section controller has no effect: no scheme of the spec has a central controller".to_string();
    (!spec.every_scheme().any(|scheme| has(scheme) != Some(false))).then_some(("left-out", text))
}

fn slow_link(spec: &ValidSpec, scenario: &Scenario) -> Option<(&'static str, String)> {
    let of_file = |network: &Value| network.get("file").is_some();
    let network = spec.tree().get("network")?;
    if !(of_file(network) || network.as_array().is_some_and(|list| list.iter().any(of_file))) {
        return None;
    }
    let links = scenario.topology.described_links();
    let slow = links.iter().filter(|l| l.capacity_bps < SLOW_BPS).count();
    let first = links.iter().find(|l| l.capacity_bps < SLOW_BPS)?;
    let text = format!(
        "{slow} of {} links of the network's file have less than 1 Mb/s, the first of them {} with {} bit/s: a number \
         without a unit counts bit/s, so write \"10Gbps\" or multiply",
        links.len(),
        quoted(&first.id),
        first.capacity_bps
    );
    Some(("slow-link", text))
}

/// Warning for schemes with different NIC scheduling: their results then differ because of the NICs too.
fn unlike_nics(spec: &ValidSpec, scenario: &Scenario) -> Option<(&'static str, String)> {
    let network = scenario.topology.network();
    let nic = |scheme: &SchemeChoice| scheme.backend().ok()?.0.nic(&scheme.name, &scheme.params, network);
    let with = |wanted: Nic| {
        let labels = spec.every_scheme().filter(|scheme| nic(scheme) == Some(wanted)).map(|s| quoted(&s.label));
        labels.collect::<Vec<_>>().join(", ")
    };
    let (queue, turns) = (with(Nic::Queue), with(Nic::TakesTurns));
    let text = format!(
        "NICs schedule flows round robin under {turns}, as in the papers, and have one queue under {queue}; set [network] \
         nic = \"round-robin\" for all"
    );
    (!queue.is_empty() && !turns.is_empty()).then_some(("nic", text))
}

/// Warning for schemes that compute rates or weights from the links of a single path, if packets are sprayed over
/// several.
fn one_path(spec: &ValidSpec, scenario: &Scenario) -> Option<(&'static str, String)> {
    scenario.topology.spread()?;
    let aims = |scheme: &&SchemeChoice| {
        scheme.backend().is_ok_and(|(backend, info)| info.goal != Goal::Own && backend.name() == "packet")
    };
    let labels: Vec<String> = spec.every_scheme().filter(aims).map(|s| quoted(&s.label)).collect();
    let text = format!(
        "{} set rates by the links of one path of each flow, and its packets take others too (routing.kind): links may carry more \
         than they know of",
        labels.join(", ")
    );
    (!labels.is_empty()).then_some(("spread", text))
}

/// Warning for xWI over Swift at a large alpha where line rates of hosts differ: rates of the fast hosts swing with prices.
fn xwi_in_short_steps(choice: &SchemeChoice, policy: Policy, network: &Network) -> Option<String> {
    let Policy::AlphaFair { alpha } = policy else { return None };
    let given = ["time_scale", "price_interval"].iter().any(|key| choice.params.contains_key(*key));
    let is_host = |node: Option<NodeId>| node.is_some_and(|node| network.nodes()[node].kind == NodeKind::Host);
    let lines = network.links().iter().filter(|link| is_host(link.from)).map(|link| link.capacity_bps);
    let (low, high) = lines.fold((f64::INFINITY, 0.0_f64), |(low, high), bps| (low.min(bps), high.max(bps)));
    let is_xwi = ["numfabric", "xwi/swift"].contains(&choice.name.as_str());
    (is_xwi && !given && alpha > 2.0 && high >= 2.0 * low).then(|| {
        format!(
            "line rates of hosts go from {} to {} Gb/s, where rates were up to 9% off at alpha 5: take params.time_scale = 2, as \
             NUMFabric does above alpha 2 (section 6.2)",
            low / 1e9,
            high / 1e9
        )
    })
}

fn is_doubtful(goal: Goal, policy: Policy) -> bool {
    match policy {
        Policy::BandwidthFunction { .. } => goal.doubtful().bandwidth_functions,
        policy => policy.ranks() && goal.doubtful().ranks,
    }
}

/// Warning for faults that end before the measurements begin.
fn unseen_faults(scenario: &Scenario) -> Option<(&'static str, String)> {
    let until = |fault: &Injected| match *fault {
        Injected::Packets { until_ns, .. } => Some(until_ns),
        Injected::Down { up_ns, .. } => Some(up_ns),
        Injected::Capacity { .. } | Injected::Restart { .. } => None,
    };
    let over = scenario.faults.iter().filter(|f| until(f).is_some_and(|end| end <= scenario.warmup_ns)).count();
    let text = format!(
        "{over} of {} faults are over before the warm-up ends: what counts starts after them",
        scenario.faults.len()
    );
    (over > 0).then_some(("fault-in-warmup", text))
}

fn of_group(scenario: &Scenario, choice: &SchemeChoice, seed: u64, group: &Group, all: &mut Vec<Warning>) {
    let Group { row, runs, .. } = group;
    let mut warn = |kind: &'static str, trials: Vec<u64>, text: String| {
        all.push(Warning { kind, scheme: Some(row.scheme.clone()), axes: row.axes.clone(), trials, text });
    };
    let trials_where = |is: &dyn Fn(&TrialFacts) -> bool| {
        runs.iter().filter(|(_, run)| is(run)).map(|&(trial, _)| trial).collect::<Vec<u64>>()
    };
    let sum = |of: &dyn Fn(&TrialFacts) -> usize| runs.iter().map(|(_, run)| of(run)).sum::<usize>();

    let nothing = |run: &TrialFacts| run.completed() == 0 && run.unfinished() > 0;
    let trials = trials_where(&nothing);
    if !trials.is_empty() {
        let text = format!(
            "no flow finished in {} of {} runs: the scheme or the network is stuck, or the run is too short (run.drain)",
            trials.len(),
            runs.len()
        );
        warn(Warning::NOTHING_FINISHED, trials, text);
    }
    let unfinished = sum(&TrialFacts::unfinished);
    let trials = trials_where(&|run| run.unfinished() > 0 && !nothing(run));
    if !trials.is_empty() {
        let text = format!(
            "{unfinished} of {} flows did not finish: slowdowns and FCTs count them with the time up to the end of the \
             run, and the true ones are larger",
            sum(&|run| run.flows.len())
        );
        warn("unfinished", trials, text);
    }
    let trials = trials_where(&|run| run.held > 0);
    if !trials.is_empty() {
        let held = sum(&|run| run.held as usize);
        let text = format!("{held} flows were held for ever by their scheme: no rate, nothing in flight, no timer");
        warn("held", trials, text);
    }
    let trials = trials_where(&|run| run.flows.is_empty() && scenario.workload.has_sizes());
    if !trials.is_empty() {
        let text = format!(
            "no flow counts in {} of {} runs: none starts after the warm-up and before run.duration (a trace: see its origin)",
            trials.len(),
            runs.len()
        );
        warn("no-flow", trials, text);
    }
    let trials = trials_where(&|run| run.dropped > 0);
    if !trials.is_empty() && is_lossless(choice) {
        let text = format!(
            "{} packets were dropped under priority flow control, which is to lose none, in the warm-up and the drain as well: \
             pfc_headroom is less than what still arrives after a pause; leave it at 0 to have it computed",
            runs.iter().map(|(_, run)| run.dropped).sum::<u64>()
        );
        warn("pfc-drops", trials, text);
    }
    let trials = trials_where(&|run| run.never_started > 0);
    if !trials.is_empty() {
        let count: u64 = runs.iter().map(|(_, run)| run.never_started).sum();
        warn(
            "never-started",
            trials,
            format!(
                "{count} flows never started: what they wait for did not finish before the end of run.duration; lengthen it"
            ),
        );
    }
    let every = || trials_where(&|_| true);
    if let Some(text) = full_of_messages(scenario, runs) {
        warn("messages", every(), text);
    }
    if let Some(recorded) = &scenario.measure.packets {
        let trials = trials_where(&|run| recorded.from_ns >= run.end_ns);
        if !trials.is_empty() {
            let text = format!(
                "measure.packets.from has no effect in {} of {} runs: they end before it; give an earlier time",
                trials.len(),
                runs.len()
            );
            warn("no-effect", trials, text);
        }
    }
    for (trial, run) in runs {
        for (at_ns, what) in &run.ended {
            let hint = "flows may have had the kernel's rates from then on; run this trial again";
            warn("daemon-ended", vec![*trial], format!("{what}, at {:.3} ms: {hint}", *at_ns as f64 / 1e6));
        }
    }
    for (trial, run) in runs.iter().filter(|(_, run)| !run.stuck.is_empty()) {
        warn("deadlock", vec![*trial], deadlock(&run.stuck));
    }
    load(scenario, seed, runs, |kind, text| warn(kind, every(), text));
    // A list of individual flows is not a sample, so that few flows are no reason for a warning.
    if scenario.workload.draws_sizes()
        && let Some(text) = few_flows(row)
    {
        warn("few-flows", every(), text);
    }
    if let Some(text) = wide_intervals(row) {
        warn("wide-interval", every(), text);
    }
    let trials = trials_where(&|run| run.grazes() > 0);
    if !trials.is_empty() {
        let text = format!(
            "{} of {} times rates counted as settled, and were out of bounds again at the last look: ask for \
             lasting = true, or for a longer hold",
            sum(&TrialFacts::grazes),
            sum(&|run| run.settled.values().flatten().filter(|s| s.converged_ns.is_some()).count())
        );
        warn("graze", trials, text);
    }
}

/// Whether the scheme requires lossless switches.
fn is_lossless(choice: &SchemeChoice) -> bool {
    choice.backend().is_ok_and(|(backend, _)| {
        backend.rules(&choice.name, &choice.params).is_ok_and(|rules| rules.lossless.is_some())
    })
}

/// Fraction of a controller link used by messages; above it, a warning is issued. Pacing limits messages to half
/// of the link by default.
const FULL_OF_MESSAGES: f64 = 0.4;

/// Warning for controller links with a high load of messages, which delays rates.
fn full_of_messages(scenario: &Scenario, runs: &[(u64, TrialFacts)]) -> Option<String> {
    let ways = scenario.controller.as_ref()?;
    let ends = |way: &Route| [way.forward.last().copied(), way.back.first().copied()];
    let links: BTreeSet<LinkId> = ways.iter().flat_map(|(_, way)| ends(way)).flatten().collect();
    let network = scenario.topology.network();
    let seconds = (scenario.duration_ns - scenario.warmup_ns) as f64 * 1e-9;
    let share = |l: &LinkId| {
        let link = &network.links()[*l];
        let bytes = runs.iter().flat_map(|(_, run)| &run.ctl_bytes).filter(|(id, _)| *id == link.id).map(|(_, b)| *b);
        let bits = 8.0 * bytes.sum::<u64>() as f64 / runs.len().max(1) as f64;
        (bits / (link.capacity_bps * seconds), link.id.as_str())
    };
    let (share, link) = links.iter().map(share).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (share > FULL_OF_MESSAGES).then(|| {
        format!(
            "messages take {:.0}% of the controller's link {}, so rates come late: give it a node of its own or faster links, or \
             raise what makes messages rare (flowtune: threshold, interval)",
            100.0 * share,
            quoted(link)
        )
    })
}

/// Warning text for links in a deadlock of PFC pauses.
fn deadlock(stuck: &[(String, u64)]) -> String {
    let links: Vec<String> = stuck.iter().map(|(link, _)| quoted(link)).collect();
    let since_ns = stuck.iter().map(|s| s.1).max().unwrap_or_default();
    format!(
        "{} links wait for each other in a circle of pauses from {:.3} ms on, and carry nothing any more: {}; routes without \
         such a circle, shorter queues or pfc = \"off\" help",
        links.len(),
        since_ns as f64 / 1e6,
        links.join(", ")
    )
}

/// Warns if arrived flows have less than the offered load, or if the links into the hosts carry less than arrived. `seed`
/// is that of one of the runs.
fn load(scenario: &Scenario, seed: u64, runs: &[(u64, TrialFacts)], mut warn: impl FnMut(&'static str, String)) {
    let Some(asked) = scenario.whole_load() else { return };
    let (capacity_bits, last_bits) = scenario.load_bits();
    if capacity_bits <= 0.0 {
        return;
    }
    let mean =
        |of: &dyn Fn(&TrialFacts) -> f64| runs.iter().map(|(_, run)| of(run)).sum::<f64>() / runs.len().max(1) as f64;
    let arrived = mean(&|run| {
        let counted = run.flows.iter().filter(|f| f.start_ns < scenario.duration_ns);
        counted.map(|f| scenario.packet.wire_bytes(f.size_bytes) as f64 * 8.0).sum::<f64>() / capacity_bits
    });
    if arrived < REACHED * asked {
        let text = format!(
            "the load asked for is {asked}, and the flows that arrived after the warm-up bring {arrived:.2}: few large \
             flows carry most bytes, so run longer or with more seeds"
        );
        warn("load-not-reached", text);
    }
    let carried = mean(&|run| run.whole.get("utilization").copied().unwrap_or_default() * last_bits / capacity_bits);
    if carried < REACHED * arrived.min(asked) {
        if let Some(cause) = overloaded::of(scenario, seed) {
            let text = format!(
                "links into the hosts carried a load of {carried:.2} while flows for {arrived:.2} arrived: {cause}"
            );
            warn("overloaded", text);
            return;
        }
        let text = format!(
            "links into the hosts carried a load of {carried:.2} while flows for {arrived:.2} arrived: the run is still \
             ramping up, or the scheme cannot carry it; lengthen run.warmup and run.duration to see which"
        );
        warn("still-ramping", text);
    }
}

fn few_flows(row: &SummaryRow) -> Option<String> {
    let few = row.sizes.iter().filter_map(|bin| {
        let flows = bin.metrics.iter().find(|(name, _)| *name == "flows")?.1.mean;
        let upper = bin.up_to_bytes.map_or_else(|| "more".to_string(), |bytes| format!("{} KB", bytes / 1000));
        (flows < FEW_FLOWS).then(|| format!("{flows:.0} of {} KB to {upper}", bin.above_bytes / 1000))
    });
    let few: Vec<String> = few.collect();
    (!few.is_empty())
        .then(|| format!("few flows a run in some sizes: {}; their tails are those of single flows", few.join(", ")))
}

fn wide_intervals(row: &SummaryRow) -> Option<String> {
    let whole = row.metrics.iter().map(|(name, stat)| (name.to_string(), stat));
    let of_sizes = row.sizes.iter().flat_map(|bin| {
        let above = bin.above_bytes / 1000;
        bin.metrics.iter().map(move |(name, stat)| (format!("{name} above {above} KB"), stat))
    });
    let watched = |name: &str| WATCHED.iter().any(|w| name.split(' ').next() == Some(w));
    let wide = whole.chain(of_sizes).filter(|(name, stat)| {
        watched(name) && stat.ci95.is_some_and(|half| 2.0 * half > stat.mean.abs() && half > 0.0)
    });
    let said = |(name, stat): (String, &Stat)| {
        let half = stat.ci95.unwrap_or_default();
        // The half-width has two significant digits, and the mean as many decimals.
        let places = (1.0 - half.log10().floor()).clamp(0.0, 6.0) as usize;
        format!("{name} {:.places$} ± {half:.places$}", stat.mean)
    };
    let wide: Vec<String> = wide.map(said).collect();
    (!wide.is_empty())
        .then(|| format!("± is more than half of the mean: {}; these say little, so run more seeds", wide.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::of_spec;
    use crate::spec::Spec;

    fn texts(network: &str, measure: &str, backend: &str, scheme: &str) -> Vec<String> {
        let text = format!(
            "network = {network}\nworkload = {{kind = \"incast\", senders = 2, size = \"10KB\"}}\nmeasure = {measure}\n\
             scheme = [{{name = \"{scheme}\", backend = \"{backend}\"}}]\nrun = {{duration = \"1ms\"}}"
        );
        let spec = Spec::from_toml(&text).unwrap().validate().unwrap_or_else(|e| panic!("{e}"));
        of_spec(&spec).into_iter().filter(|w| w.kind == "left-out").map(|w| w.text).collect()
    }

    /// Warnings of kind `no-effect` for a spec whose flow has `keys`.
    fn without_effect(policy: &str, scheme: &str, keys: &str) -> Vec<String> {
        let text = format!(
            "network = {{kind = \"star\", hosts = 3}}\npolicy = {{{policy}}}\nscheme = [{{name = \"{scheme}\"}}]\n\
             workload = {{kind = \"steps\", flows = [{{src = \"h0\", dst = \"h2\", size = \"1MB\"{keys}}}]}}\n\
             run = {{duration = \"1ms\"}}\ncontroller = {{at = \"h1\"}}"
        );
        let spec = Spec::from_toml(&text).unwrap().validate().unwrap_or_else(|e| panic!("{e}"));
        of_spec(&spec).into_iter().filter(|w| w.kind == "no-effect" && w.scheme.is_some()).map(|w| w.text).collect()
    }

    #[test]
    fn keys_of_flows_without_effect_are_said() {
        let (max_min, edf) = ("kind = \"max-min\"", "kind = \"edf\"");
        let function = "kind = \"bandwidth-function\"";
        for scheme in ["dctcp", "reno", "cubic", "hpcc", "pfabric", "xcp", "dcqcn", "timely", "google-swift"] {
            let said = without_effect(max_min, scheme, ", weight = 3");
            assert!(said == ["flows have weights, which the scheme does not use"], "{scheme}: {said:?}");
            assert_eq!(without_effect(max_min, scheme, ""), [""; 0], "{scheme}");
        }
        for scheme in ["soze", "wrr", "s-perc", "soze-virtual", "numfabric-swift", "ideal"] {
            assert_eq!(without_effect(max_min, scheme, ", weight = 3"), [""; 0], "{scheme}");
        }
        let said = without_effect(max_min, "s-perc", ", deadline = \"1ms\"");
        assert_eq!(said, ["1 of the flows have a deadline, which the policy \"max-min\" does not use"]);
        assert_eq!(without_effect(edf, "exact-central/swift", ", deadline = \"1ms\""), [""; 0]);
        let points = ", bandwidth_function = [[0, 0], [1, 1e9]]";
        let said = without_effect(max_min, "ideal", points);
        assert_eq!(said, ["1 of the flows have a bandwidth_function, which the policy \"max-min\" does not use"]);
        let said = without_effect(function, "ned/swift", &format!("{points}, weight = 2"));
        assert_eq!(said, ["flows have a weight, which the policy \"bandwidth-function\" does not use"]);
        assert_eq!(without_effect(function, "ned/swift", points), [""; 0]);
    }

    #[test]
    fn what_a_backend_leaves_out_is_said() {
        let star = |more: &str| format!("{{kind = \"star\", hosts = 3{more}}}");
        let delayed = star(", link_delay = \"99us\"");
        let said = texts(&delayed, "{}", "testbed", "reno");
        assert!(said.len() == 1 && said[0].contains("network (delays below 100 us of the hosts' time"), "{said:?}");
        assert_eq!(texts(&star(", link_delay = \"100us\""), "{}", "testbed", "reno"), [""; 0]);
        let links = r#"[{from = "a", to = "b", capacity = "1Gbps", delay = "1us"}, {from = "b", to = "a", capacity = "1Gbps"}]"#;
        let edges = format!("{{links = {links}}}");
        assert_eq!(texts(&edges, "{}", "testbed", "reno").len(), 1);
        assert_eq!(texts(&edges.replace(", delay = \"1us\"", ""), "{}", "testbed", "reno"), [""; 0]);
        // The default delay of a generated network is not set in the spec, so that no warning is due.
        assert_eq!(texts(&star(""), "{}", "testbed", "reno"), [""; 0]);
        assert_eq!(texts(&delayed, "{queues = \"10us\", paces = \"10us\", packets = true}", "packet", "reno"), [""; 0]);
        let measured = "{queues = \"10us\", paces = \"10us\", packets = true}";
        let said = texts(&star(", nic = \"turns\""), measured, "fluid", "s-perc").join("");
        for key in ["measure.queues", "measure.paces", "measure.packets", "network.nic"] {
            assert!(said.contains(key), "{key}: {said}");
        }
        let said = texts(&star(", buffer = \"50KB\""), "{}", "fluid", "s-perc");
        assert!(said.len() == 1 && said[0].contains("the buffers of links (a fluid has no queues)"), "{said:?}");
        assert_eq!(texts(&star(""), "{rates = \"10us\"}", "fluid", "s-perc"), [""; 0]);
        let central = format!("{}\ncontroller = {{at = \"h0\"}}", star(""));
        let said = texts(&central, "{}", "packet", "dctcp");
        assert!(said.len() == 1 && said[0].contains("section controller"), "{said:?}");
        let fair = format!("{central}\npolicy = {{kind = \"alpha-fair\", alpha = 1}}");
        assert_eq!(texts(&fair, "{}", "packet", "flowtune"), [""; 0]);
    }

    #[test]
    fn parameters_that_the_fluid_backend_does_not_read_are_said() {
        let said = |scheme: &str, backend: &str, params: &str| {
            let text = format!(
                "network = {{kind = \"star\", hosts = 3}}\nworkload = {{kind = \"incast\", senders = 2, size = \"10KB\"}}\n\
                 scheme = [{{name = \"{scheme}\", backend = \"{backend}\", params = {{{params}}}}}]\n\
                 run = {{duration = \"1ms\"}}"
            );
            let spec = Spec::from_toml(&text).unwrap().validate().unwrap_or_else(|e| panic!("{e}"));
            of_spec(&spec).into_iter().filter(|w| w.kind == "left-out").map(|w| w.text).collect::<Vec<_>>()
        };
        for (scheme, params, unread) in [
            ("s-perc", "division_kb = 8", Some("division_kb")),
            ("s-perc", "control = 0.1, headroom = 0.05", None),
            ("s-perc", "control = 0.04", None),
            ("soze-virtual", "headroom = 0.1", None),
            ("soze-virtual", "k = \"2us\"", Some("k")),
        ] {
            let texts = said(scheme, "fluid", params);
            match unread {
                Some(key) => {
                    let start = format!("the backend \"fluid\" leaves out params.{key} (of a scheme it has the goal");
                    assert!(texts.len() == 1 && texts[0].starts_with(&start), "{scheme} {params}: {texts:?}");
                }
                None => assert_eq!(texts, [""; 0], "{scheme} {params}"),
            }
            assert_eq!(said(scheme, "packet", params), [""; 0], "{scheme} {params}");
        }
    }

    #[test]
    fn what_hosts_cannot_do_is_refused_by_its_key() {
        let fault = |routing: &str| {
            let text = format!(
                "network = {{kind = \"star\", hosts = 3}}\nrouting = {routing}\n\
                 workload = {{kind = \"incast\", senders = 2, size = \"10KB\"}}\n\
                 scheme = [{{name = \"reno\", backend = \"testbed\"}}]\nrun = {{duration = \"1ms\"}}"
            );
            Spec::from_toml(&text).unwrap().validate().unwrap_err().place
        };
        assert_eq!(fault("{reroute = \"1ms\"}"), "routing.reroute");
        assert_eq!(fault("{kind = \"spray\"}"), "routing.kind");
    }
}
