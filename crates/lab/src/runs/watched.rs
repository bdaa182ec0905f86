//! Live view of a run, in the JSON format of the allocator's live page. It only reads the run's state, so that
//! results do not depend on it.

use super::live::Live;
use super::passing::KnownFlows;
use crate::spec::scenario::Scenario;
use crate::spec::workload::Planned;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use subak_core::backend::Backend;
use subak_core::{FlowId, IdVec, LinkId, NodeId, NodeKind, Ns};

/// Largest number of events that the live view stores.
const MOST_EVENTS: usize = 256;
/// Number of samples of a run, evenly spaced. A sample has mean rates since the previous one.
const LOOKS: u64 = 50;
/// Largest number of flows that the live view lists.
const MOST_FLOWS: usize = 10_000;

/// Live view of a run. It shows one running trial at a time.
#[derive(Debug, Default)]
pub struct WatchedTrial(Mutex<WatchedState>);

#[derive(Debug, Default)]
struct WatchedState {
    /// Number of the displayed trial.
    trial: Option<usize>,
    /// Number of trials displayed so far; a change makes the page reload the network.
    turns: u64,
    network: Value,
    state: Value,
    events: VecDeque<Value>,
}

impl WatchedTrial {
    /// Data of the live page; with `whole`, the network too.
    pub fn page(&self, whole: bool) -> Value {
        let held = self.held();
        let mut page = match held.state.clone() {
            Value::Object(state) => Value::Object(state),
            _ => {
                json!({"status": {"says": "begins", "flowlets": 0}, "figures": [], "flows": [], "load": [], "capacity": []})
            }
        };
        page["network"] = json!(held.turns);
        page["events"] = json!(held.events);
        if whole {
            for part in ["nodes", "links", "hosts"] {
                page[part] = held.network.get(part).cloned().unwrap_or_else(|| json!([]));
            }
        }
        page
    }

    fn held(&self) -> MutexGuard<'_, WatchedState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchedState {
    fn note(&mut self, kind: &str, what: &str) {
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
        }
        let at_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        self.events.push_back(json!([at_ms, kind, what]));
    }
}

/// Samples one trial for the live view.
pub(crate) struct Watching<'a> {
    watched: &'a WatchedTrial,
    number: usize,
    /// Label of the trial.
    name: String,
    scenario: &'a Scenario,
    flows: &'a IdVec<FlowId, Planned>,
    pub live: Live,
    seen_bytes: HashMap<FlowId, u64>,
    seen_at_links: Vec<u64>,
    /// Time of the latest sample, ns; `None` before the trial is displayed.
    looked_ns: Option<Ns>,
}

impl<'a> Watching<'a> {
    pub fn new(
        watched: &'a WatchedTrial,
        number: usize,
        name: String,
        scenario: &'a Scenario,
        flows: &'a IdVec<FlowId, Planned>,
    ) -> Self {
        watched.held().note("begins:", &name);
        let (live, seen_bytes, seen_at_links) = (Live::new(Some(flows)), HashMap::new(), Vec::new());
        Watching { watched, number, name, scenario, flows, live, seen_bytes, seen_at_links, looked_ns: None }
    }

    /// Samples the run; the first sample only initializes the counters.
    pub fn look(&mut self, backend: &dyn Backend, passing: &KnownFlows) {
        if *self.watched.held().trial.get_or_insert(self.number) != self.number {
            return;
        }
        let (now_ns, end_ns) = (backend.now_ns(), self.scenario.duration_ns);
        let passed_ns = now_ns - self.looked_ns.unwrap_or(now_ns);
        if self.looked_ns.is_some() && passed_ns < end_ns / LOOKS && now_ns != end_ns {
            return;
        }
        if self.looked_ns.replace(now_ns).is_none() {
            let mut held = self.watched.held();
            held.turns += 1;
            held.network = self.network();
        }
        let bps = |bytes: u64| if passed_ns == 0 { 0 } else { (bytes as f64 * 8e9 / passed_ns as f64) as u64 };
        let flows = self.flows(now_ns, backend, passing, bps);
        let links = self.scenario.topology.described_links();
        let sent: Vec<u64> = links.ids().map(|link| bytes_of(backend, link)).collect();
        self.seen_at_links.resize(sent.len(), 0);
        let load: Vec<u64> = sent.iter().zip(&self.seen_at_links).map(|(now, before)| bps(now - before)).collect();
        self.seen_at_links = sent;
        let capacity: Vec<f64> = links.iter().map(|link| link.capacity_bps).collect();
        let (ms, end_ms) = (now_ns as f64 * 1e-6, end_ns as f64 * 1e-6);
        let drops: u64 = links.ids().map(|link| backend.link(link).dropped_packets).sum();
        let queued: u64 = links.ids().map(|link| backend.link(link).queued_bytes).sum();
        let figures = json!([
            ["simulated", format!("{ms:.3} of {end_ms:.3} ms")],
            ["flows that are not finished", backend.open_flows()],
            ["events", backend.events()],
            ["bytes that wait", queued],
            ["packets dropped", drops],
        ]);
        let says = format!("{}, {ms:.3} ms", self.name);
        self.watched.held().state = json!({"status": {"says": says, "flowlets": flows.len()}, "figures": figures,
            "flows": flows, "load": load, "capacity": capacity});
    }

    /// Running flows with their mean rates since the latest sample.
    fn flows(
        &mut self,
        now_ns: Ns,
        backend: &dyn Backend,
        passing: &KnownFlows,
        bps: impl Fn(u64) -> u64,
    ) -> Vec<Value> {
        self.live.take_started(now_ns);
        let (flows, seen_bytes) = (self.flows, &mut self.seen_bytes);
        let mut shown = Vec::new();
        // Sampling without output cannot fail.
        let _ = self.live.keep(|flow| {
            let planned = &flows[flow];
            let is_over = passing.is_over(flow) || planned.plan.stop_ns.is_some_and(|stop_ns| stop_ns < now_ns);
            let view = if is_over { None } else { Some(backend.flow(flow)).filter(|view| view.finished_ns.is_none()) };
            let Some(view) = view else {
                seen_bytes.remove(&flow);
                return Ok(false);
            };
            let before = seen_bytes.insert(flow, view.received_wire_bytes).unwrap_or(0);
            if shown.len() < MOST_FLOWS {
                let [from, to] = [planned.src, planned.dst].map(|node| node.map(|node| node.0));
                let rate_bps = bps(view.received_wire_bytes - before);
                shown.push(json!([from, to, flow.0, rate_bps, planned.plan.weight]));
            }
            Ok(true)
        });
        shown
    }

    fn network(&self) -> Value {
        let network = self.scenario.topology.network();
        let node = |node: Option<NodeId>| node.map(|node| node.0);
        let nodes: Vec<Value> =
            network.nodes().iter().map(|node| json!([node.name, node.kind == NodeKind::Host])).collect();
        let links = self.scenario.topology.described_links().iter();
        let links: Vec<Value> = links.map(|link| json!([node(link.from), node(link.to), link.id])).collect();
        let hosts = network.nodes().iter_enumerated();
        let hosts: serde_json::Map<_, _> = hosts.map(|(k, node)| (k.0.to_string(), json!(node.name))).collect();
        json!({"nodes": nodes, "links": links, "hosts": hosts})
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        let mut held = self.watched.held();
        held.note("ends:", &self.name);
        if held.trial == Some(self.number) {
            held.trial = None;
        }
    }
}

fn bytes_of(backend: &dyn Backend, link: LinkId) -> u64 {
    let view = backend.link(link);
    view.data_bytes + view.ack_bytes + view.ctl_bytes
}
