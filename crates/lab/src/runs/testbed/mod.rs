//! Trials on real hosts: creates the request to the hosts, and replays their recording as a backend.
//!
//! Hosts are slower than the networks of most specs. A rate on the hosts is the spec's rate times `scale`, and a
//! time is the spec's time divided by `scale`. Bytes are not scaled. Results have the spec's rates and times.

mod replay;

use crate::runs::simulate::Trial;
use crate::spec::scenario::Scenario;
use crate::spec::workload::Planned;
use replay::TestbedReplay;
use serde_json::{Map, Value};
use std::sync::atomic::Ordering;
use subak_core::backend::{Backend, FlowPlan, Impairment, Injected, Kinds};
use subak_core::{InputError, LinkId, NodeKind, Ns};
use subak_packet::{default_buffer_bytes, longest_rtt_ns};
use subak_testbed::{Recording, RequestFlow, RequestLink, RequestNode, SCHEMA, TestbedRequest, WeightChange};

/// A testbed that runs flows on real hosts; the caller of this crate implements it.
pub trait Testbed: Sync {
    /// Runs `request`. Calls `progress` with the fraction done, and stops with an error if it returns false.
    fn carry(&self, request: &TestbedRequest, progress: &(dyn Fn(f64) -> bool + Sync))
    -> Result<Recording, InputError>;
}

/// Number of samples of flows and links over the duration, in addition to those of the spec. From these samples,
/// data is separated from ACKs, and queues are recorded.
const LOOKS: u64 = 100;
/// Smallest sampling interval, ns of real time: each sample uses CPU time of the hosts.
const NEAREST_NS: u64 = 10_000_000;

const WAITING: &str = "a testbed has no flows that wait for others yet";
const KNOWN: &str = "take a workload whose flows start at known times, or simulate it";

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
    TestbedRequest {
        schema: SCHEMA,
        scheme: trial.scheme.name.clone(),
        params: params.clone(),
        scale,
        mtu_bytes: sizes.mtu_bytes,
        header_bytes: sizes.header_bytes,
        least_bytes: sizes.ack_bytes,
        rtt_ns: wall_ns(longest_rtt_ns(network, sizes)) + scenario.hosts_rtt_ns,
        control_loss: scenario.faults.iter().find_map(control_loss).unwrap_or_default(),
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

/// Probability of the loss of control packets at every link for the whole run, the only fault that hosts can
/// inject; `None` for other faults.
fn control_loss(fault: &Injected) -> Option<f64> {
    let Injected::Packets {
        impairment: Impairment::Lost,
        kinds,
        links: None,
        probability,
        from_ns: 0,
        until_ns: Ns::MAX,
    } = fault
    else {
        return None;
    };
    matches!(kinds, Kinds { data: false, ack: false, ctl: true }).then_some(*probability)
}

/// An error for a scenario that the testbed does not support.
pub(crate) fn check(scenario: &Scenario) -> Result<(), InputError> {
    let refuse = |place: &str, what: &str, hint: &str| Err(InputError::new(place, what, hint));
    let network = scenario.topology.network();
    let described = scenario.topology.described_links();
    if described.iter().any(|link| link.from.is_none() || link.to.is_none()) {
        return refuse("network", "a testbed needs nodes, and some links have no ends", "give each link from and to");
    }
    if described.len() < network.links().len() {
        let hint = "leave the workload's own links away, or simulate it";
        return refuse("network", "some links are drawn for the flows alone", hint);
    }
    let others = scenario.faults.iter().filter(|fault| control_loss(fault).is_none()).count();
    if others > 0 || scenario.faults.len() > 1 || !scenario.drawn.is_empty() {
        let what = "a testbed injects no faults but one loss of ctl at every link";
        return refuse("fault", what, "leave the section away, or simulate it");
    }
    if scenario.topology.spread().is_some() {
        let what = "a testbed spreads no packets: each flow has one path";
        return refuse("routing.kind", what, "take routing.kind = \"ecmp\", or simulate it");
    }
    if scenario.reroute_ns.is_some() {
        return refuse("routing.reroute", "a testbed finds no new routes", "leave it away, or simulate it");
    }
    if scenario.workload.has_jobs() {
        return refuse("workload", WAITING, KNOWN);
    }
    if scenario.measure.packets.is_some() || scenario.measure.paces_ns.is_some() {
        return refuse("measure", "a testbed records no packets and no paces", "measure fct, rates or queues");
    }
    if scenario.measure.convergence.iter().any(|c| !c.received) {
        return refuse("measure.convergence", "a testbed knows what was received alone", "write of = \"received\"");
    }
    Ok(())
}
