//! The policy's exact rates at every arrival and departure.

use crate::idle::{idle_fct_ns, wire_time_ns};
use crate::rates::Rates;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use subak_core::driver::{Driver, FlowPlan, FlowView, Injected, LinkChange, LinkView, NOT_YET, PacketSizes, Route};
use subak_core::scheme::{Goal, Info, Kind, Param, Params, Settles};
use subak_core::{Fault, FlowId, LinkId, Network, Ns, Utility};

/// The scheme `ideal`.
pub const INFO: Info = Info {
    name: "ideal",
    about: "fluid: the policy's exact rates at every arrival and departure, without packets or delay in finding them",
    paper: "PERC thesis, section 4.3.2 (ideal max-min)",
    kind: Kind::Oracle,
    lives_on_control: false,
    goal: Goal::Any,
    params: &[ACKS],
    settles: Settles::AT_ONCE,
};

/// `params.acks`.
const ACKS: Param = Param::flag(
    "acks",
    false,
    "leave room on each link for the acknowledgements of the flows that cross it the other way",
);

const NEVER: Ns = Ns::MAX;

/// What happens at a point in time, in the order in which it is done there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Link(u32),
    Stop(FlowId),
    Start(FlowId),
    Deliver(FlowId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Sending,
    /// All is sent, the last packet is under way.
    Sent,
    Finished,
    Stopped,
}

#[derive(Debug, Clone)]
struct FlowState {
    state: State,
    size_bytes: Option<u64>,
    fluid_bytes: f64,
    sent_bytes: f64,
    /// From the fluid's end to the last byte's arrival.
    tail_ns: Ns,
    finished_ns: Option<Ns>,
}

/// The fluid simulation. Rates are on the wire; goodput is their share of payload. A flow ends when its fluid has run
/// out, plus what the last packet needs for its way, so that a lone flow takes exactly [`idle_fct_ns`]. Bytes count as
/// received when they are sent. Subflows of a flow are pooled.
#[derive(Debug)]
pub struct Ideal {
    network: Network,
    sizes: PacketSizes,
    now_ns: Ns,
    flows: Vec<FlowState>,
    rates: Rates,
    sending: Vec<FlowId>,
    link_changes: Vec<(Ns, LinkId, LinkChange)>,
    link_bytes: Vec<f64>,
    events: BinaryHeap<Reverse<(Ns, Event)>>,
    /// When the next flow runs out at the present rates.
    next_end_ns: Ns,
    stale: bool,
    open: usize,
    open_sized: usize,
    /// Flows that finished since somebody asked.
    finished: Vec<FlowId>,
    handled: u64,
}

impl Ideal {
    /// An empty simulation over `network`. Of `faults` only what happens to links matters: there are no packets to lose.
    pub fn new(
        params: &serde_json::Map<String, serde_json::Value>,
        network: &Network,
        sizes: PacketSizes,
        faults: &[Injected],
    ) -> Result<Self, Fault> {
        let acks = Params::resolve(&INFO, params)?.flag("acks");
        let link_changes = Injected::link_changes(faults);
        let event = |(k, change): (usize, &(Ns, LinkId, LinkChange))| Reverse((change.0, Event::Link(k as u32)));
        let events = link_changes.iter().enumerate().map(event).collect();
        Ok(Ideal {
            sizes,
            now_ns: 0,
            flows: Vec::new(),
            rates: Rates::new(network, 1.0).beside_acks(if acks { sizes.ack_share() } else { 0.0 }),
            sending: Vec::new(),
            link_changes,
            link_bytes: vec![0.0; network.links().len()],
            events,
            next_end_ns: NEVER,
            stale: false,
            open: 0,
            open_sized: 0,
            finished: Vec::new(),
            handled: 0,
            network: network.clone(),
        })
    }

    /// The bytes of a flow's fluid, and what it takes beyond its fluid over its rate: for its last packet to be stored
    /// and forwarded, and to travel. The last packet of a flow held back by its demand goes out at line rate, so that the
    /// fluid may be a little less than the bytes on the wire. Over several paths it is the slowest way of one packet.
    fn fluid(&self, plan: &FlowPlan) -> (f64, Ns) {
        let Some(size) = plan.size_bytes else { return (f64::INFINITY, 0) };
        let wire_bytes = self.sizes.wire_bytes(size) as f64;
        let narrowest = |path: &[LinkId]| {
            path.iter().map(|&l| self.network.links()[l as usize].capacity_bps).fold(plan.demand_bps, f64::min)
        };
        let idle_ns = |path: &[LinkId], size| idle_fct_ns(&self.network, path, self.sizes, size, plan.demand_bps);
        if let [route] = plan.routes.as_slice() {
            let (rate, idle_ns) = (narrowest(&route.forward), idle_ns(&route.forward, size));
            let fluid = wire_bytes.min(idle_ns as f64 * rate / 8e9);
            return (fluid, idle_ns.saturating_sub(wire_time_ns(fluid, rate)));
        }
        let last = size.min(u64::from(self.sizes.mss_bytes()));
        let last_wire = self.sizes.wire_bytes(last) as f64;
        let tail = |path: &[LinkId]| idle_ns(path, last).saturating_sub(wire_time_ns(last_wire, narrowest(path)));
        (wire_bytes, plan.routes.iter().map(|r| tail(&r.forward)).max().unwrap_or(0))
    }

    /// Moves the fluid on to `to_ns` at the present rates.
    fn flow_on(&mut self, to_ns: Ns) {
        let seconds = (to_ns - self.now_ns) as f64 * 1e-9;
        self.now_ns = to_ns;
        if seconds == 0.0 {
            return;
        }
        for &f in &self.sending {
            let flow = &mut self.flows[f as usize];
            let mut left = flow.fluid_bytes - flow.sent_bytes;
            for sub in self.rates.subflows(f) {
                let sent = (self.rates.sub_bps(sub) * seconds * 0.125).min(left);
                left -= sent;
                flow.sent_bytes += sent;
                for &l in self.rates.path(sub) {
                    self.link_bytes[l as usize] += sent;
                }
            }
        }
    }

    /// Solves for the rates anew and finds the next flow to end.
    fn refresh(&mut self) {
        self.stale = false;
        for &f in &self.sending {
            if self.rates.hurries(f) {
                let flow = &self.flows[f as usize];
                let left = 1.0 - flow.sent_bytes / flow.fluid_bytes;
                self.rates.hurry(f, self.now_ns, flow.size_bytes.map_or(u64::MAX, |size| (left * size as f64) as u64));
            }
        }
        self.rates.solve(&self.sending);
        self.next_end_ns = self.sending.iter().map(|&f| self.end_ns(f)).min().unwrap_or(NEVER);
    }

    /// When flow `f` runs out at the present rates.
    fn end_ns(&self, f: FlowId) -> Ns {
        let flow = &self.flows[f as usize];
        if flow.size_bytes.is_none() {
            return NEVER;
        }
        let left = flow.fluid_bytes - flow.sent_bytes;
        match self.rates.flow_bps(f) {
            rate if rate > 0.0 => self.now_ns.saturating_add(wire_time_ns(left, rate)),
            _ => NEVER,
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Link(k) => {
                let (_, link, change) = self.link_changes[k as usize];
                self.rates.change(link, change);
            }
            Event::Start(f) => {
                let flow = &mut self.flows[f as usize];
                if flow.state == State::Waiting {
                    flow.state = State::Sending;
                    self.sending.push(f);
                }
            }
            Event::Stop(f) => {
                if matches!(self.flows[f as usize].state, State::Waiting | State::Sending | State::Sent) {
                    self.leave(f, State::Stopped);
                    self.close(f);
                }
            }
            Event::Deliver(f) => {
                if self.flows[f as usize].state == State::Sent {
                    self.flows[f as usize].state = State::Finished;
                    self.flows[f as usize].finished_ns = Some(self.now_ns);
                    self.finished.push(f);
                    self.close(f);
                }
                return;
            }
        }
        self.stale = true;
    }

    fn leave(&mut self, f: FlowId, state: State) {
        self.sending.retain(|&g| g != f);
        self.flows[f as usize].state = state;
        self.rates.clear(f);
    }

    fn close(&mut self, f: FlowId) {
        self.open -= 1;
        self.open_sized -= usize::from(self.flows[f as usize].size_bytes.is_some());
    }

    /// Ends the flows that have run out by now.
    fn end_flows(&mut self) {
        let ended: Vec<FlowId> = self.sending.iter().copied().filter(|&f| self.end_ns(f) <= self.now_ns).collect();
        for f in ended {
            self.leave(f, State::Sent);
            let flow = &mut self.flows[f as usize];
            flow.sent_bytes = flow.fluid_bytes;
            let at = self.now_ns.saturating_add(flow.tail_ns);
            self.events.push(Reverse((at, Event::Deliver(f))));
        }
        self.stale = true;
    }

    fn run(&mut self, until_ns: Ns, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            if self.stale {
                self.refresh();
            }
            let next_event = self.events.peek().map_or(NEVER, |Reverse((at, _))| *at);
            let next_ns = next_event.min(self.next_end_ns);
            if next_ns > until_ns || next_ns == NEVER {
                break;
            }
            self.flow_on(next_ns);
            self.handled += 1;
            if self.next_end_ns <= next_ns {
                self.end_flows();
            }
            // All that happens at one time is done before the rates are solved for again.
            while let Some(&Reverse((at, event))) = self.events.peek()
                && at <= next_ns
            {
                self.events.pop();
                self.handle(event);
            }
        }
        if !done(self) && until_ns > self.now_ns {
            self.flow_on(until_ns);
        }
    }
}

impl Driver for Ideal {
    fn add(&mut self, plan: FlowPlan) -> FlowId {
        let id = self.flows.len() as FlowId;
        let (fluid_bytes, tail_ns) = self.fluid(&plan);
        self.rates.add(&plan);
        self.flows.push(FlowState {
            state: State::Waiting,
            size_bytes: plan.size_bytes,
            fluid_bytes,
            sent_bytes: 0.0,
            tail_ns,
            finished_ns: None,
        });
        if plan.start_ns != NOT_YET {
            self.events.push(Reverse((plan.start_ns.max(self.now_ns), Event::Start(id))));
        }
        if let Some(stop) = plan.stop_ns {
            self.events.push(Reverse((stop.max(self.now_ns), Event::Stop(id))));
        }
        self.open += 1;
        self.open_sized += usize::from(plan.size_bytes.is_some());
        id
    }

    fn set_weight(&mut self, flow: FlowId, weight: f64, utility: Option<Arc<Utility>>) {
        self.rates.set_weight(flow, weight, utility);
        self.stale = true;
    }

    fn start_flow(&mut self, flow: FlowId, at_ns: Ns) {
        self.rates.set_start(flow, at_ns);
        self.events.push(Reverse((at_ns.max(self.now_ns), Event::Start(flow))));
    }

    fn stop_flow(&mut self, flow: FlowId) {
        self.handle(Event::Stop(flow));
    }

    fn reroute(&mut self, flow: FlowId, routes: &[Route]) {
        self.rates.reroute(flow, routes);
        self.stale = true;
    }

    fn run_until(&mut self, until_ns: Ns) {
        self.run(until_ns, |_| false);
    }

    fn run_until_done(&mut self, until_ns: Ns) {
        self.run(until_ns, |ideal| ideal.open_sized == 0);
    }

    fn run_until_finish(&mut self, until_ns: Ns) {
        self.run(until_ns, |ideal| !ideal.finished.is_empty());
    }

    fn take_finished(&mut self) -> Vec<FlowId> {
        std::mem::take(&mut self.finished)
    }

    fn now_ns(&self) -> Ns {
        self.now_ns
    }

    fn open_flows(&self) -> usize {
        self.open
    }

    fn flow(&self, flow: FlowId) -> FlowView {
        let f = &self.flows[flow as usize];
        let payload_share = f64::from(self.sizes.mss_bytes()) / f64::from(self.sizes.mtu_bytes);
        let (received_bytes, received_wire_bytes) = match f.size_bytes {
            Some(size) if matches!(f.state, State::Sent | State::Finished) => (size, self.sizes.wire_bytes(size)),
            Some(size) => ((f.sent_bytes / f.fluid_bytes * size as f64) as u64, f.sent_bytes as u64),
            None => ((f.sent_bytes * payload_share) as u64, f.sent_bytes as u64),
        };
        FlowView {
            finished_ns: f.finished_ns,
            sent_bytes: received_bytes,
            received_bytes,
            received_wire_bytes,
            assigned_bps: self.rates.flow_bps(flow),
            ..FlowView::default()
        }
    }

    fn link(&self, link: LinkId) -> LinkView {
        LinkView { data_bytes: self.link_bytes[link as usize] as u64, ..LinkView::default() }
    }

    fn restart_peaks(&mut self) {}

    fn waits_ns(&self) -> Vec<(Ns, u64)> {
        Vec::new()
    }

    fn packet_hops(&self) -> u64 {
        0
    }

    fn events(&self) -> u64 {
        self.handled
    }

    fn failures(&self) -> u64 {
        self.rates.failures()
    }
}

/// The completion time of a flow with a size, alone on the idle network, over however many paths.
pub fn lone_fct_ns(network: &Network, plan: &FlowPlan, sizes: PacketSizes) -> Ns {
    let Ok(mut alone) = Ideal::new(&serde_json::Map::new(), network, sizes, &[]) else { return NEVER };
    let flow = alone.add(FlowPlan { start_ns: 0, stop_ns: None, ..plan.clone() });
    alone.run_until_done(NEVER);
    alone.flow(flow).finished_ns.unwrap_or(NEVER)
}
