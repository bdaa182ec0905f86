//! Descriptions of a run's networks and faults in its manifest, from which they are drawn.

use crate::spec::ValidSpec;
use crate::spec::fault::{Breakdown, CableEvent};
use crate::spec::scenario::Scenario;
use crate::spec::topology::Topology;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use subak_core::backend::{Impairment, Injected};
use subak_core::{LinkId, NodeId, NodeKind, Ns};

/// Largest number of links of a network whose nodes and links are listed; of larger networks only their numbers
/// are given.
const MOST_LINKS: usize = 1000;
/// Largest number of scenarios that are described.
const MOST_SCENARIOS: usize = 64;
/// Largest number of faults described for a scenario.
const MOST_FAULTS: usize = 200;

/// The different networks of a spec; and for each scenario its axis values, network and faults.
pub(crate) fn described(spec: &ValidSpec) -> (Value, Value) {
    let mut known: Vec<&Arc<Topology>> = Vec::new();
    let mut scenarios = Vec::new();
    for scenario in spec.scenarios().iter().take(MOST_SCENARIOS) {
        let at = known.iter().position(|t| Arc::ptr_eq(t, &scenario.topology)).unwrap_or_else(|| {
            known.push(&scenario.topology);
            known.len() - 1
        });
        let axes: BTreeMap<_, _> = spec.axes.iter().zip(&scenario.axis_values).map(|(a, v)| (&a.key, v)).collect();
        scenarios.push(json!({
            "axes": axes,
            "network": at,
            "warmup_ns": scenario.warmup_ns,
            "duration_ns": scenario.duration_ns,
            "faults": faults(scenario),
        }));
    }
    (known.into_iter().map(|t| network(t)).collect(), scenarios.into())
}

fn network(topology: &Topology) -> Value {
    let network = topology.network();
    let links = topology.described_links();
    let mut speeds: BTreeMap<u64, usize> = BTreeMap::new();
    links.iter().for_each(|l| *speeds.entry(l.capacity_bps as u64).or_default() += 1);
    let delays = links.iter().map(|l| l.delay_ns);
    let hosts = topology.hosts().len();
    let mut about = json!({
        "hosts": hosts,
        "switches": network.nodes().len() - hosts,
        "links": links.len(),
        "capacities": speeds.into_iter().map(|(bps, count)| json!({"bps": bps, "links": count})).collect::<Vec<_>>(),
        "delays_ns": [delays.clone().min(), delays.max()],
    });
    if links.len() <= MOST_LINKS {
        let name = |n: Option<NodeId>| n.map(|n| network.nodes()[n].name.as_str());
        let kind = |k| if k == NodeKind::Host { "host" } else { "switch" };
        about["graph"] = json!({
            "nodes": network.nodes().iter().map(|n| json!({"id": n.name, "kind": kind(n.kind)})).collect::<Vec<_>>(),
            "links": links
                .iter()
                .map(|l| json!({"id": l.id, "from": name(l.from), "to": name(l.to), "bps": l.capacity_bps}))
                .collect::<Vec<_>>(),
        });
    }
    about
}

/// Text and times of each fault; `until_ns` is null for a permanent or an instantaneous fault.
fn faults(scenario: &Scenario) -> Vec<Value> {
    let link = |l: LinkId| scenario.topology.network().links()[l].id.clone();
    let one = |fault: &Injected| match fault {
        Injected::Packets { impairment, links, probability, from_ns, until_ns, .. } => {
            let what = match impairment {
                Impairment::Lost => "lost",
                Impairment::Doubled => "doubled",
                Impairment::Late(_) => "late",
            };
            let at = match links {
                Some(links) if links.len() <= 3 => links.iter().map(|l| link(*l)).collect::<Vec<_>>().join(", "),
                Some(links) => format!("{} links", links.len()),
                None => "every link".to_string(),
            };
            json!({"from_ns": from_ns, "until_ns": until_ns, "text": format!("packets {what}, p = {probability}, at {at}")})
        }
        Injected::Capacity { link: l, capacity_bps, at_ns } => {
            json!({"from_ns": at_ns, "until_ns": null, "link": link(*l), "text": format!("{} has {} Mb/s", link(*l), capacity_bps / 1e6)})
        }
        Injected::Restart { at_ns, .. } => {
            json!({"from_ns": at_ns, "until_ns": null, "text": "a machine starts again"})
        }
        Injected::Down { link: l, down_ns, up_ns, .. } => {
            json!({"from_ns": down_ns, "until_ns": up_ns, "link": link(*l), "text": format!("{} is down", link(*l))})
        }
    };
    let drawn = scenario.drawn.iter().map(|(_, some)| drawn(some));
    scenario.faults.iter().map(one).chain(drawn).take(MOST_FAULTS).collect()
}

/// Description of a fault whose links each seed selects at random: number of links, start and end.
fn drawn(some: &Breakdown) -> Value {
    let (from_ns, until_ns, what) = match some.event {
        CableEvent::Down(ref times, _) => {
            let ends = (times.first().map_or(0, |t| t.0), times.last().map_or(Ns::MAX, |t| t.1));
            (ends.0, Some(ends.1), if times.len() > 1 { "flap".to_string() } else { "are down".to_string() })
        }
        CableEvent::Capacity(capacity_bps, at_ns) => (at_ns, None, format!("have {} Mb/s", capacity_bps / 1e6)),
    };
    let text = format!("{} of {} links, drawn by the seed, {what}", some.count, some.cables.len());
    json!({"from_ns": from_ns, "until_ns": until_ns, "text": text})
}
