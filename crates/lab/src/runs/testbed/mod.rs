//! Trials on real hosts: creates the request to the hosts, and replays their recording as a backend.
//!
//! Hosts are slower than the networks of most specs. A rate on the hosts is the spec's rate times `scale`, and a
//! time is the spec's time divided by `scale`. Bytes are not scaled. Results have the spec's rates and times.

mod faults;
mod replay;

use crate::runs::task::Trial;
use crate::spec::testbed::{KNOWN, WAITING, control_loss};
use crate::spec::workload::Planned;
use replay::TestbedReplay;
use serde_json::{Map, Value};
use std::sync::atomic::Ordering;
use subak_core::backend::{Backend, FlowPlan, Injected};
use subak_core::{InputError, LinkId, NodeKind, Ns};
use subak_packet::{default_buffer_bytes, longest_rtt_ns};
use subak_testbed::{RequestFlow, RequestLink, RequestNode, SCHEMA, TestbedRequest, WeightChange};

/// Number of samples of flows and links over the duration, in addition to those of the spec. From these samples,
/// data is separated from ACKs, and queues are recorded.
const LOOKS: u64 = 100;
/// Smallest sampling interval, ns of real time: each sample uses CPU time of the hosts.
const NEAREST_NS: u64 = 10_000_000;

/// Runs `trial` on the testbed, and returns a backend that replays the recording; `None` if the trial was
/// cancelled.
pub(crate) fn carried(
    trial: &Trial,
    flows: &[Planned],
    params: &Map<String, Value>,
) -> Result<Option<Box<dyn Backend>>, InputError> {
    let Some(testbed) = trial.testbed else {
        let hint = "run it with `subak run SPEC --backend testbed`";
        return Err(InputError::new("backend", "no hosts are at hand here", hint));
    };
    if flows.iter().any(|flow| !flow.after.is_empty()) {
        return Err(InputError::new("workload", WAITING, KNOWN));
    }
    if flows.iter().any(|flow| flow.plan.routes.len() != 1 || flow.plan.demand_bps.is_finite()) {
        let hint = "give each flow one path and no bound, or simulate it";
        return Err(InputError::new(
            "workload",
            "a testbed has no flows over several paths, and no bounds of rates",
            hint,
        ));
    }
    let request = request(trial, flows, params);
    let goes_on = |share| {
        (trial.progress)(share);
        !trial.cancel.load(Ordering::Relaxed)
    };
    match testbed.carry(&request, &goes_on) {
        _ if trial.cancel.load(Ordering::Relaxed) => Ok(None),
        Err(fault) => Err(fault),
        Ok(recording) => Ok(Some(Box::new(TestbedReplay::new(trial.scenario, &request, recording)?))),
    }
}

/// The request to the hosts, in their scaled rates and times.
fn request(trial: &Trial, flows: &[Planned], params: &Map<String, Value>) -> TestbedRequest {
    let scenario = trial.scenario;
    let scale = scenario.scale;
    let wall_ns = |ns: Ns| (ns as f64 / scale).round() as u64;
    let network = scenario.topology.network();
    let sizes = scenario.packet;
    let link = |link: &subak_core::Link| RequestLink {
        id: link.id.clone(),
        from: link.from.unwrap_or_default().into(),
        to: link.to.unwrap_or_default().into(),
        rate_bps: link.capacity_bps * scale,
        buffer_bytes: link.buffer_bytes.unwrap_or_else(|| default_buffer_bytes(link.capacity_bps)),
        delay_ns: wall_ns(link.delay_ns),
    };
    let flow = |planned: &Planned| {
        let FlowPlan { routes, start_ns, stop_ns, size_bytes, weight, .. } = &planned.plan;
        let numbers = |links: &[LinkId]| links.iter().map(|&l| l.into()).collect();
        let (forward, back) = routes.first().map(|r| (numbers(&r.forward), numbers(&r.back))).unwrap_or_default();
        let change = |&(at_ns, weight): &(Ns, f64)| WeightChange { at_ns: wall_ns(at_ns), weight };
        RequestFlow {
            forward,
            back,
            start_ns: wall_ns(*start_ns),
            stop_ns: stop_ns.map(wall_ns),
            size_bytes: *size_bytes,
            weight: *weight,
            weights: planned.weights.iter().map(change).collect(),
        }
    };
    let often = |asked: Option<Ns>| {
        let usual_ns = (wall_ns(scenario.duration_ns) / LOOKS).max(NEAREST_NS);
        asked.map_or(usual_ns, |ns| wall_ns(ns).max(1))
    };
    let looks_ns = scenario.measure.convergence.iter().map(|c| c.every_ns).chain(scenario.measure.rates_ns).min();
    // A scheme's own programs at links lose control packets, if that is the only fault.
    let is_alone = |faults: &[Injected]| faults.len() == 1 && control_loss(&faults[0]).is_some();
    let (at_programs, others) = match scenario.faults.as_slice() {
        faults if is_alone(faults) => (faults.first(), &[][..]),
        faults => (None, faults),
    };
    TestbedRequest {
        schema: SCHEMA,
        scheme: trial.scheme.name.clone(),
        params: params.clone(),
        scale,
        mtu_bytes: sizes.mtu_bytes,
        header_bytes: sizes.header_bytes,
        least_bytes: sizes.ack_bytes,
        rtt_ns: wall_ns(longest_rtt_ns(network, sizes)) + scenario.hosts_rtt_ns,
        control_loss: at_programs.and_then(control_loss).unwrap_or_default(),
        delays: scenario.delays_given,
        faults: faults::changes(others, network.links().len(), wall_ns),
        seed: trial.seed,
        nodes: network
            .nodes()
            .iter()
            .map(|n| RequestNode { name: n.name.clone(), host: n.kind == NodeKind::Host })
            .collect(),
        links: scenario.topology.described_links().iter().map(link).collect(),
        flows: flows.iter().map(flow).collect(),
        duration_ns: wall_ns(scenario.duration_ns),
        until_ns: wall_ns(scenario.duration_ns + scenario.drain_ns),
        look_ns: wall_ns(scenario.warmup_ns),
        flows_every_ns: often(looks_ns),
        links_every_ns: often(scenario.measure.queues_ns),
    }
}
