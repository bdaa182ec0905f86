//! Soze's figure 18a: ten flows of a coflow, with random sizes, that should end together.

use super::draw::SIZES;
use crate::{Context, ExperimentInfo, ExperimentKind};
use serde_json::{Value, json};
use subak_core::backend::{FlowPlan, Route};
use subak_core::rng::Stream;
use subak_core::{InputError, Network, NodeKind};

pub(super) const ENTRY: ExperimentInfo =
    ExperimentInfo { name: "soze-fig18a", kind: ExperimentKind::Packets, settings: SETTINGS, compute };

/// `scale`: factor of the flow sizes of 1 to 3 GB.
const SETTINGS: &[&str] = &["scale"];

const FLOWS: usize = 10;
const RATE_BPS: f64 = 100e9;
/// Number of physical queues of a switch.
const QUEUES: usize = 4;

/// Method by which a coflow's flows get their rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Weighted flows: the weight is the flow's size.
    Weights,
    /// Parallel connections of weight 1: as many as the size in GB, rounded.
    Connections,
    /// Weighted queues: flows of similar size share a queue, whose weight is the sum of their sizes.
    Queues,
}

const WAYS: [(&str, &str, Way); 6] = [
    ("soze", "soze", Way::Weights),
    ("soze-virtual", "soze-virtual", Way::Weights),
    ("soze connections", "soze", Way::Connections),
    ("soze-virtual connections", "soze-virtual", Way::Connections),
    ("hpcc connections", "hpcc", Way::Connections),
    ("physical queues", "wrr", Way::Queues),
];

/// A connection: index of its flow in the coflow, fraction of the flow's bytes, and weight.
#[derive(Debug, Clone, Copy)]
struct Connection {
    flow: usize,
    share: f64,
    weight: f64,
}

fn compute(context: &mut Context) -> Result<(), InputError> {
    let scale = context.number("scale", 0.02, 1e-5, 1.0)?;
    let mut jobs = Vec::new();
    for seed in (0..context.runs() as u64).map(|k| context.seed() + k) {
        jobs.extend(WAYS.iter().map(|&way| (seed, way)));
    }
    let seen = context.each(&jobs, jobs.len(), |&(seed, (_, scheme, way))| run(seed, scheme, way, scale))?;
    let of = |name: &str| -> Vec<f64> {
        let mine = jobs.iter().zip(&seen).filter(|((_, way), _)| way.0 == name);
        mine.map(|(_, ends_ms)| difference(ends_ms)).collect()
    };
    let rivals: Vec<Vec<f64>> = WAYS.iter().filter(|way| way.2 != Way::Weights).map(|way| of(way.0)).collect();
    for (name, _, way) in WAYS {
        let mine = of(name);
        context.report.sample(name, "median", "coflows", &mine);
        if way == Way::Weights {
            let least: Vec<f64> =
                (0..mine.len()).map(|k| rivals.iter().map(|r| r[k]).fold(f64::INFINITY, f64::min)).collect();
            context.report.ratio(&format!("{name} over the best rival"), "median", "coflows", &mine, &least);
        }
    }
    let rows = jobs.iter().zip(&seen).flat_map(|((seed, (name, _, _)), ends_ms)| {
        ends_ms.iter().enumerate().map(move |(f, end_ms)| -> Value { json!([name, seed, f, crate::finite(*end_ms)]) })
    });
    context.report.table("ends", &["way", "coflow", "flow", "end_ms"], rows.collect());
    Ok(())
}

/// Time between the first and the last finish of a flow, percent of the last.
fn difference(ends_ms: &[f64]) -> f64 {
    let last = crate::largest(ends_ms);
    let first = ends_ms.iter().copied().fold(f64::INFINITY, f64::min);
    100.0 * (1.0 - first / last)
}

/// The connections of the coflow in their order in the switch.
fn connections(sizes_gb: &[f64], way: Way) -> Vec<Connection> {
    match way {
        Way::Weights => {
            (0..sizes_gb.len()).map(|flow| Connection { flow, share: 1.0, weight: sizes_gb[flow] }).collect()
        }
        Way::Connections => {
            let of = |flow: usize| {
                let count = sizes_gb[flow].round().max(1.0);
                (0..count as usize).map(move |_| Connection { flow, share: 1.0 / count, weight: 1.0 })
            };
            (0..sizes_gb.len()).flat_map(of).collect()
        }
        Way::Queues => packed(sizes_gb),
    }
}

/// The flows in order of size, divided among four queues so that each queue has flows of similar size. Queue q serves
/// the connections q, q + 4, q + 8.
fn packed(sizes_gb: &[f64]) -> Vec<Connection> {
    let mut order: Vec<usize> = (0..sizes_gb.len()).collect();
    order.sort_by(|&a, &b| sizes_gb[b].total_cmp(&sizes_gb[a]));
    let mut queues: Vec<Vec<usize>> = Vec::new();
    let mut rest = order.as_slice();
    for q in 0..QUEUES {
        let (mine, left) = rest.split_at(rest.len().div_ceil(QUEUES - q));
        queues.push(mine.to_vec());
        rest = left;
    }
    let weight = |queue: &[usize]| queue.iter().map(|&f| sizes_gb[f]).sum::<f64>();
    let longest = queues.iter().map(Vec::len).max().unwrap_or(0);
    let row = |k: usize| queues.iter().filter_map(move |queue| queue.get(k).map(|&flow| (flow, queue)));
    let all = (0..longest).flat_map(row);
    all.map(|(flow, queue)| Connection { flow, share: 1.0, weight: weight(queue) }).collect()
}

/// Finish times of the coflow's flows, ms; infinite for a flow that did not finish.
fn run(seed: u64, scheme: &str, way: Way, scale: f64) -> Result<Vec<f64>, InputError> {
    let mut rng = Stream::new(seed, "soze coflow");
    let sizes_gb: Vec<f64> = (0..FLOWS).map(|_| 1.0 + 2.0 * rng.unit()).collect();
    let mut network = Network::new();
    let (switch, to) = (network.node("switch", NodeKind::Switch), network.node("to", NodeKind::Host));
    let last = network.connect(switch, to, RATE_BPS, 1000, None)?;
    let mut routes = Vec::new();
    for f in 0..FLOWS {
        let from = network.node(&format!("from{f}"), NodeKind::Host);
        let first = network.connect(from, switch, RATE_BPS, 1000, None)?;
        routes.push(Route { forward: vec![first.0, last.0], back: vec![last.1, first.1] });
    }
    let mut params = serde_json::Map::new();
    if way == Way::Queues {
        params.insert("queues".into(), json!(QUEUES));
    }
    let mut sim = subak_packet::build(scheme, &params, &network, SIZES, &[], seed)?;
    let all = connections(&sizes_gb, way);
    let mut numbers = Vec::new();
    for one in &all {
        let size_bytes = Some((sizes_gb[one.flow] * one.share * scale * 1e9).round() as u64);
        let plan = FlowPlan { weight: one.weight, size_bytes, ..FlowPlan::new(vec![routes[one.flow].clone()]) };
        numbers.push(sim.add(plan));
    }
    // Time limit: ten times as long as the link needs for all bytes.
    let bytes: f64 = sizes_gb.iter().sum::<f64>() * scale * 1e9;
    sim.run_until_done((10.0 * bytes * 8e9 / RATE_BPS) as u64 + 10_000_000);
    let mut ends_ms = vec![0.0f64; FLOWS];
    for (one, &number) in all.iter().zip(&numbers) {
        let end_ms = sim.flow(number).finished_ns.map_or(f64::INFINITY, |ns| ns as f64 / 1e6);
        ends_ms[one.flow] = ends_ms[one.flow].max(end_ms);
    }
    Ok(ends_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_of_like_sizes_share_a_queue_whose_weight_is_their_sum() {
        let sizes = [1.0, 2.9, 1.2, 2.8, 1.4, 2.6, 1.6, 2.4, 1.8, 2.0];
        let all = packed(&sizes);
        let queue = |q: usize| all.iter().skip(q).step_by(QUEUES).map(|one| one.flow).collect::<Vec<_>>();
        assert_eq!([queue(0), queue(1), queue(2), queue(3)], [vec![1, 3, 5], vec![7, 9, 8], vec![6, 4], vec![2, 0]]);
        assert!((all[0].weight - 8.3).abs() < 1e-9 && (all[3].weight - 2.2).abs() < 1e-9);
    }

    #[test]
    fn connections_are_as_many_as_the_size_rounded() {
        let counts: Vec<usize> = [2.4, 2.6, 1.2].iter().map(|&gb| connections(&[gb], Way::Connections).len()).collect();
        assert_eq!(counts, [2, 3, 1]);
    }
}
