//! Warnings about keys that have no effect, since other keys leave them unread.
//!
//! A key that has an effect in some trial has one: a sweep may give it for the sake of one of its points.

use super::warning::Warning;
use crate::spec::ValidSpec;
use crate::spec::choice::SchemeChoice;
use crate::spec::scenario::Scenario;
use crate::spec::workload::Plan;
use std::collections::{BTreeMap, BTreeSet};
use subak_core::backend::{Injected, Machine, Route, Spread};
use subak_core::quantity::quoted;
use subak_core::scheme::{Goal, Params};
use subak_core::{LinkId, Nic, Ns};

/// Warnings of kind `no-effect`.
const KIND: &str = "no-effect";

/// Keys without effect, each with the text of its warning.
type Unused = BTreeMap<String, String>;

/// A warning for each key that has no effect in any trial of `spec`, or of one of its schemes.
pub(super) fn warnings(spec: &ValidSpec) -> Vec<Warning> {
    let per_scenario = (spec.schemes.len() * spec.seeds.len()).max(1);
    let scenario = |first| -> &Scenario { spec.scenario(first).0 };
    let scenarios: Vec<&Scenario> = (0..spec.len()).step_by(per_scenario).map(scenario).collect();
    let warning = |scheme: Option<&SchemeChoice>, text: String| Warning {
        kind: KIND,
        scheme: scheme.map(|choice| choice.base.clone().unwrap_or_else(|| choice.label.clone())),
        axes: BTreeMap::new(),
        trials: (0..spec.len() as u64).collect(),
        text,
    };
    let of_scenarios = in_each(scenarios.iter().map(|scenario| of_scenario(spec, scenario)));
    let mut all: Vec<Warning> = of_scenarios.into_values().map(|text| warning(None, text)).collect();
    for place in spec.every_scheme().map(|choice| choice.place).collect::<BTreeSet<_>>() {
        let choices: Vec<&SchemeChoice> = spec.every_scheme().filter(|choice| choice.place == place).collect();
        let pairs = scenarios.iter().flat_map(|scenario| choices.iter().map(move |choice| (scenario, choice)));
        let unused = in_each(pairs.map(|(scenario, choice)| of_scheme(scenario, choice)));
        all.extend(unused.into_values().map(|text| warning(choices.first().copied(), text)));
    }
    all
}

/// The keys that are in each of `all`.
fn in_each(all: impl Iterator<Item = Unused>) -> Unused {
    let both = |first: Unused, next: Unused| first.into_iter().filter(|(key, _)| next.contains_key(key)).collect();
    all.reduce(both).unwrap_or_default()
}

/// Keys without effect on the trials of a scheme.
fn of_scheme(scenario: &Scenario, choice: &SchemeChoice) -> Unused {
    let Ok((backend, info)) = choice.backend() else { return Unused::new() };
    let params = scenario.circumstances(true).complete(&info, &choice.params);
    let network = scenario.topology.network();
    let unread = Params::unused(&info, &choice.params).into_iter().map(|(name, why)| (format!("params.{name}"), why));
    let own_nic = backend.nic(&choice.name, &params, network).filter(|&own| own != network.nic());
    let nic = own_nic.filter(|_| scenario.given.contains(&"network.nic")).map(|own| {
        let why = match own {
            Nic::TakesTurns => "the scheme has \"round-robin\" NICs, as in its paper",
            Nic::Queue => "the scheme has \"queue\" NICs, as in its paper",
        };
        ("network.nic".to_string(), why.to_string())
    });
    let mut unused: Unused =
        unread.chain(nic).map(|(key, why)| (key.clone(), format!("{key} has no effect: {why}"))).collect();
    let mut read = BTreeSet::new();
    for (place, fault) in scenario.fault_places.iter().zip(&scenario.faults) {
        let key = format!("fault[{place}]");
        match backend.ignores(&choice.name, &params, network, scenario.packet, fault) {
            None => _ = read.insert(key),
            Some(why) => {
                let text = format!("{key} has no effect on {}: {why}", quoted(&choice.label));
                unused.insert(key, text);
            }
        }
    }
    unused.retain(|key, _| !read.contains(key));
    unused
}

/// Keys without effect on the trials of a scenario.
fn of_scenario(spec: &ValidSpec, scenario: &Scenario) -> Unused {
    let mut unused = Unused::new();
    let mut note = |key: &str, why: &str| _ = unused.insert(key.to_string(), format!("{key} has no effect: {why}"));
    let fails =
        scenario.faults.iter().any(|fault| matches!(fault, Injected::Down { .. })) || !scenario.drawn.is_empty();
    if scenario.reroute_ns.is_some() && !fails {
        note("routing.reroute", "no link fails; add a fault of kind \"down\"");
    }
    let is_given = |key: &str| scenario.given.contains(&key);
    if is_given("testbed")
        && !spec.every_scheme().any(|choice| choice.backend().is_ok_and(|(backend, _)| backend.is_real()))
    {
        note("testbed", "no scheme of the spec runs on the backend \"testbed\"");
    }
    if is_given("network.controller_rate") && !is_at_own_node(scenario) {
        note(
            "network.controller_rate",
            "the node called controller is not used; add [controller] at = \"controller\", or leave it away",
        );
    }
    let measure = &scenario.measure;
    let intervals: [(&str, Option<Ns>); 3] = [
        ("measure.rates", measure.rates_ns),
        ("measure.queues", measure.queues_ns),
        ("measure.paces", measure.paces_ns),
    ];
    for (key, _) in intervals.into_iter().filter(|(_, every_ns)| every_ns.is_some_and(|ns| ns > scenario.duration_ns)) {
        note(key, "the interval is longer than run.duration, so there is no sample; give a shorter one");
    }
    let criteria = &measure.convergence;
    let follows = |choice: &SchemeChoice| choice.backend().map_or(true, |(_, info)| info.goal != Goal::Own);
    if is_given("policy") && criteria.is_empty() && !spec.every_scheme().any(follows) {
        note("policy", "no scheme of the spec follows a policy, and measure.convergence is not given");
    }
    if criteria.iter().any(|criterion| criterion.filter_given && !criterion.received) {
        note("measure.convergence.filter", "of is \"assigned\", and only received rates are filtered");
    }
    if let Some(Spread::Flowlets(gap_ns)) = scenario.topology.spread()
        && gap_ns >= scenario.duration_ns
    {
        note("routing.gap", "it is not shorter than run.duration, so that each flow keeps its first path");
    }
    // Routing chooses the paths of ACKs that are not those of the data, of messages to a controller, and around
    // failed links.
    let routes = !scenario.topology.is_symmetric() || scenario.controller.is_some() || scenario.reroute_ns.is_some();
    if scenario.workload.has_paths() && !routes {
        let keys = ["routing.hash", "routing.seed"].into_iter().filter(|key| is_given(key));
        keys.for_each(|key| note(key, "the workload gives the path of each flow"));
    }
    scenario.workload.unread(scenario.duration_ns).for_each(|(key, why)| note(&key, why));
    if is_given("routing.kind") && scenario.topology.spread().is_some() && takes_one_path(spec, scenario) {
        note("routing.kind", "no flow has several shortest paths");
    }
    if is_given("routing.paths") && !is_given("routing.kind") && takes_one_route(spec, scenario) {
        note("routing.paths", "it chooses the paths of subflows or sprayed packets, and each flow takes one");
    }
    for place in unused_faults(spec, scenario) {
        note(&format!("fault[{place}]"), "no flow crosses its links");
    }
    if let Some(text) = is_given("workload.subflows").then(|| missing_subflows(spec, scenario)).flatten() {
        unused.insert("workload.subflows".to_string(), text);
    }
    if criteria.iter().any(|criterion| criterion.hold_ns > scenario.duration_ns) {
        let text =
            "measure.convergence.hold is longer than run.duration, so that no flows converge; give a shorter one";
        unused.insert("measure.convergence.hold".to_string(), text.to_string());
    }
    unused
}

/// Expected number of flows above which their paths are not examined.
const MOST_FLOWS: f64 = 1e6;

/// The flows of each seed, as far as they can be planned; `None` if there are too many.
fn plans<'a>(spec: &'a ValidSpec, scenario: &'a Scenario) -> Option<impl Iterator<Item = Plan> + 'a> {
    let Scenario { topology, workload, packet, duration_ns, .. } = scenario;
    let few = workload.expected(topology, *packet, *duration_ns).flows <= MOST_FLOWS;
    let plan = |&seed: &u64| workload.plan(topology, seed, *packet, &scenario.faults, *duration_ns).ok();
    few.then(|| spec.seeds.iter().filter_map(plan))
}

/// Whether no flow of any seed has several paths over which its packets could be sprayed.
fn takes_one_path(spec: &ValidSpec, scenario: &Scenario) -> bool {
    let is_sprayed = |plan: Plan| plan.flows.iter().any(|flow| flow.plan.spread.is_some());
    plans(spec, scenario).is_some_and(|mut plans| !plans.any(is_sprayed))
}

/// Whether each flow of each seed has one route.
fn takes_one_route(spec: &ValidSpec, scenario: &Scenario) -> bool {
    plans(spec, scenario).is_some_and(|mut plans| !plans.any(|plan| plan.flows.iter().any(|f| f.plan.routes.len() > 1)))
}

/// Places of the faults whose links no flow of any seed crosses. With reroutes flows may come to cross any link.
fn unused_faults(spec: &ValidSpec, scenario: &Scenario) -> BTreeSet<usize> {
    let mut places: BTreeMap<usize, BTreeSet<LinkId>> = BTreeMap::new();
    for (&place, fault) in scenario.fault_places.iter().zip(&scenario.faults) {
        if let Some(links) = links_of(scenario, fault) {
            places.entry(place).or_default().extend(links);
        }
    }
    if places.is_empty() || scenario.reroute_ns.is_some() || scenario.workload.has_jobs() {
        return BTreeSet::new();
    }
    let Some(plans) = plans(spec, scenario) else { return BTreeSet::new() };
    let of_route = |route: &Route| [route.forward.clone(), route.back.clone()].concat();
    let ways = scenario.controller.iter().flatten();
    let to_controller: BTreeSet<LinkId> = ways.flat_map(|(_, way)| of_route(way)).collect();
    places.retain(|_, links| links.is_disjoint(&to_controller));
    for plan in plans {
        if places.is_empty() {
            break;
        }
        let routes = plan.flows.iter().flat_map(|flow| &flow.plan.routes);
        let crossed: BTreeSet<LinkId> = routes.flat_map(of_route).collect();
        places.retain(|_, links| links.is_disjoint(&crossed));
    }
    places.into_keys().collect()
}

/// The links of a fault, or those around its node; `None` if it is not one of links.
fn links_of(scenario: &Scenario, fault: &Injected) -> Option<Vec<LinkId>> {
    let around = |node| {
        let links = scenario.topology.network().links().iter_enumerated();
        links.filter(|(_, link)| [link.from, link.to].contains(&Some(node))).map(|(id, _)| id).collect()
    };
    match fault {
        Injected::Packets { links, .. } => links.clone(),
        Injected::Capacity { link, .. } | Injected::Down { link, .. } => Some(vec![*link]),
        Injected::Restart { machine: Machine::Hop(link), .. } => Some(vec![*link]),
        Injected::Restart { machine: Machine::Node(node), .. } => Some(around(*node)),
        Injected::Restart { machine: Machine::Controller, .. } => None,
    }
}

/// Whether the controller is placed at a node of its own.
fn is_at_own_node(scenario: &Scenario) -> bool {
    let network = scenario.topology.network();
    let own = network.find_node("controller");
    let ways = scenario.controller.iter().flatten();
    own.is_some() && ways.filter_map(|(_, way)| way.forward.last()).any(|&link| network.links()[link].to == own)
}

/// A text about subflows without a path of their own.
fn missing_subflows(spec: &ValidSpec, scenario: &Scenario) -> Option<String> {
    let Scenario { topology, workload, packet, duration_ns, .. } = scenario;
    let seed = spec.seeds.first().copied().unwrap_or(1);
    let plan = workload.plan(topology, seed, *packet, &[], *duration_ns).ok()?;
    plan.narrow.warning(&format!("{} flows (seed {seed})", plan.flows.len() + plan.stranded.len()))
}
