//! Links to which the flows of a run offer more than they can carry.

use crate::spec::scenario::Scenario;
use std::collections::BTreeMap;
use subak_core::LinkId;
use subak_core::quantity::quoted;

/// Largest expected number of flows of which the offered bytes are counted.
const MOST_FLOWS: f64 = 1e6;

/// A sentence about links between switches that are offered more than their capacity over the run's duration with this
/// `seed`; `None` if there is none. Each flow counts with all its bytes, by its first paths.
pub(super) fn of(scenario: &Scenario, seed: u64) -> Option<String> {
    let Scenario { topology, workload, packet, duration_ns, .. } = scenario;
    if workload.expected(topology, *packet, *duration_ns).flows > MOST_FLOWS {
        return None;
    }
    let mut bits: BTreeMap<LinkId, f64> = BTreeMap::new();
    for flow in &workload.plan(topology, seed, *packet, &[], *duration_ns).ok()?.flows {
        let Some(size_bytes) = flow.plan.size_bytes.filter(|_| flow.plan.start_ns < *duration_ns) else { continue };
        let share = packet.wire_bytes(size_bytes) as f64 * 8.0 / flow.plan.routes.len() as f64;
        for link in flow.plan.routes.iter().flat_map(|route| &route.forward) {
            *bits.entry(*link).or_default() += share;
        }
    }
    let links = topology.network().links();
    let is_of_host =
        |link: LinkId| [links[link].from, links[link].to].into_iter().flatten().any(|n| topology.is_host(n));
    let seconds = *duration_ns as f64 * 1e-9;
    let mut over: Vec<(f64, &str)> = bits
        .into_iter()
        .filter(|&(link, _)| !is_of_host(link))
        .map(|(link, bits)| (bits / (links[link].capacity_bps * seconds), links[link].id.as_str()))
        .filter(|(load, _)| *load > 1.0)
        .collect();
    over.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (most, link) = *over.first()?;
    let (count, verb) = (over.len(), if over.len() == 1 { "is" } else { "are" });
    Some(format!(
        "{count} links between switches {verb} offered more than they carry (seed {seed}), most {} with {most:.2} of its capacity: \
         lower the load, which counts the hosts' links, or give the network less oversubscription",
        quoted(link)
    ))
}
