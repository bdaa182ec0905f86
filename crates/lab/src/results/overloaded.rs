//! Links to which the flows of a run offer more than they can carry.

use crate::spec::scenario::Scenario;
use std::collections::BTreeMap;
use subak_core::{IdVec, LinkId, NodeId};

/// Largest expected number of flows of which the offered bytes are counted.
const MOST_FLOWS: f64 = 1e6;

/// Number of flows over links of one kind from which their load is no accident of a few large flows.
const ENOUGH_FLOWS: u64 = 100;

/// The load of a kind of links.
#[derive(Default)]
struct Kind {
    flows: u64,
    bits: f64,
    capacity_bps: f64,
    links: u64,
}

/// A sentence about links between switches that are offered more than their capacity over the run's duration with this
/// `seed`; `None` if there are none. Links are taken together whose ends have the same names but for digits, such as all
/// from leaf to spine switches, and a flow counts with all its bytes.
pub(super) fn of(scenario: &Scenario, seed: u64) -> Option<String> {
    let Scenario { topology, workload, packet, duration_ns, .. } = scenario;
    if workload.expected(topology, *packet, *duration_ns).flows > MOST_FLOWS {
        return None;
    }
    let network = topology.network();
    let mut kinds: BTreeMap<String, Kind> = BTreeMap::new();
    let kind_of: IdVec<LinkId, Option<String>> = network
        .links()
        .iter()
        .map(|link| {
            let (from, to) = (link.from?, link.to?);
            let letters = |node: NodeId| network.nodes()[node].name.trim_end_matches(|c: char| c.is_ascii_digit());
            let between_switches = !topology.is_host(from) && !topology.is_host(to);
            between_switches.then(|| format!("{}->{}", letters(from), letters(to)))
        })
        .collect();
    for (link, kind) in network.links().iter().zip(&kind_of) {
        if let Some(kind) = kind {
            let kind = kinds.entry(kind.clone()).or_default();
            kind.capacity_bps += link.capacity_bps;
            kind.links += 1;
        }
    }
    for flow in &workload.plan(topology, seed, *packet, &[], *duration_ns).ok()?.flows {
        let Some(size_bytes) = flow.plan.size_bytes.filter(|_| flow.plan.start_ns < *duration_ns) else { continue };
        let share = packet.wire_bytes(size_bytes) as f64 * 8.0 / flow.plan.routes.len() as f64;
        for link in flow.plan.routes.iter().flat_map(|route| &route.forward) {
            if let Some(kind) = kind_of[*link].as_ref().and_then(|kind| kinds.get_mut(kind)) {
                kind.bits += share;
                kind.flows += 1;
            }
        }
    }
    let seconds = *duration_ns as f64 * 1e-9;
    let loads = kinds.iter().filter(|(_, kind)| kind.flows >= ENOUGH_FLOWS);
    let loads = loads.map(|(name, kind)| (kind.bits / (kind.capacity_bps * seconds), name, kind.links));
    let (load, name, links) = loads.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(load, ..)| *load > 1.0)?;
    Some(format!(
        "flows offer the {links} links {name} {load:.2} of what these carry (seed {seed}): lower the load, which counts the \
         hosts' links, or give the network less oversubscription"
    ))
}
