//! The scheme `ideal` with rates that are repaired around each change to within a tolerance, so that an event costs as
//! much as the flows that it affects: for max-min over single paths, in large networks.
//!
//! A flow's progress is computed when its rate changes, and the next flow to end is found in a heap. Every
//! [`CHECKED`]-th repair is checked in full.

use crate::tail::tail;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use subak_core::backend::{Backend, FlowPlan, FlowView, Injected, LinkChange, LinkView, NOT_YET, PacketSizes, Route};
use subak_core::idle::{acknowledgement_ns, wire_time_ns};
use subak_core::{FlowId, IdVec, InputError, LinkId, Network, Ns, Utility};
use subak_solve::LiveMaxMin;

const NEVER: Ns = Ns::MAX;

/// Number of repairs between two checks of all flows and links.
const CHECKED: u64 = 4096;

/// Largest violation of the bottleneck condition at a check, in tolerances: a flow that a repair does not touch may
/// come to violate it by somewhat more than one.
const MOST_SHORT: f64 = 4.0;

/// A timed event; events of one time are handled in the order of the variants.
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
    /// All bytes are sent; the last packet is in flight.
    Sent,
    Finished,
    Stopped,
}

#[derive(Debug)]
struct LocalFlow {
    state: State,
    size_bytes: Option<u64>,
    fluid_bytes: f64,
    /// Bytes sent by `since_ns`; from then on at `rate_bps`.
    sent_bytes: f64,
    since_ns: Ns,
    rate_bps: f64,
    /// Number of changes of the rate, which outdates entries in the heap of ends.
    changes: u32,
    tail_ns: Ns,
    path: Vec<LinkId>,
    weight: f64,
    demand_bps: f64,
    /// Its number in the solver; `None` if it does not send, or a link of its path is down.
    number: Option<FlowId>,
    finished_ns: Option<Ns>,
}

/// The simulation; see the module.
#[derive(Debug)]
pub struct Local {
    network: Network,
    sizes: PacketSizes,
    tolerance: f64,
    now_ns: Ns,
    flows: IdVec<FlowId, LocalFlow>,
    solver: LiveMaxMin,
    /// Flow of each number in the solver.
    of_number: IdVec<FlowId, FlowId>,
    /// Number of faults due to which each link is down.
    down: IdVec<LinkId, u32>,
    /// Sending flows over a link that is down.
    parked: Vec<FlowId>,
    link_changes: Vec<(Ns, LinkId, LinkChange)>,
    /// Bytes of the flows up to the time to which each was computed.
    link_bytes: IdVec<LinkId, f64>,
    events: BinaryHeap<Reverse<(Ns, Event)>>,
    ends: BinaryHeap<Reverse<(Ns, FlowId, u32)>>,
    stale: bool,
    open: usize,
    open_sized: usize,
    finished: Vec<FlowId>,
    handled: u64,
    repairs: u64,
    failures: u64,
    at_sender: bool,
    fault: Option<InputError>,
}

impl Local {
    /// The simulation over `network`. Of `faults` only those of links have an effect.
    pub(crate) fn new(tolerance: f64, network: &Network, sizes: PacketSizes, faults: &[Injected]) -> Self {
        let link_changes = Injected::link_changes(faults);
        let events = (0..).zip(&link_changes).map(|(k, change)| Reverse((change.0, Event::Link(k)))).collect();
        let links = network.links().len();
        Local {
            solver: LiveMaxMin::new(network.links().iter().map(|l| l.capacity_bps).collect()),
            network: network.clone(),
            sizes,
            tolerance,
            now_ns: 0,
            flows: IdVec::new(),
            of_number: IdVec::new(),
            down: IdVec::filled(0, links),
            parked: Vec::new(),
            link_changes,
            link_bytes: IdVec::filled(0.0, links),
            events,
            ends: BinaryHeap::new(),
            stale: false,
            open: 0,
            open_sized: 0,
            finished: Vec::new(),
            handled: 0,
            repairs: 0,
            failures: 0,
            at_sender: false,
            fault: None,
        }
    }

    fn refuse(&mut self, what: &str) {
        let hint = "leave tolerance away: exact rates serve every policy and several paths";
        self.fault.get_or_insert_with(|| InputError::new("params.tolerance", what, hint));
    }

    /// Adds the flow's bytes up to now.
    fn advance(&mut self, f: FlowId) {
        let flow = &mut self.flows[f];
        let seconds = (self.now_ns - std::mem::replace(&mut flow.since_ns, self.now_ns)) as f64 * 1e-9;
        let sent = (flow.rate_bps * seconds * 0.125).min(flow.fluid_bytes - flow.sent_bytes);
        if sent > 0.0 {
            flow.sent_bytes += sent;
            flow.path.iter().for_each(|&l| self.link_bytes[l] += sent);
        }
    }

    fn set_rate(&mut self, f: FlowId, rate_bps: f64) {
        self.advance(f);
        let flow = &mut self.flows[f];
        flow.rate_bps = rate_bps;
        flow.changes += 1;
        if flow.size_bytes.is_some() && rate_bps > 0.0 {
            let left = flow.fluid_bytes - flow.sent_bytes;
            let at_ns = self.now_ns.saturating_add(wire_time_ns(left, rate_bps));
            self.ends.push(Reverse((at_ns, f, flow.changes)));
        }
    }

    /// Lets a sending flow take part in the allocation, unless a link of its path is down.
    fn enter(&mut self, f: FlowId) {
        let flow = &mut self.flows[f];
        if flow.path.iter().any(|&l| self.down[l] > 0) {
            self.parked.push(f);
            return;
        }
        let number = self.solver.add(&flow.path, flow.weight, flow.demand_bps);
        flow.number = Some(number);
        if number == self.of_number.next_id() {
            self.of_number.push(f);
        }
        self.of_number[number] = f;
    }

    fn leave(&mut self, f: FlowId) {
        self.set_rate(f, 0.0);
        match self.flows[f].number.take() {
            Some(number) => self.solver.remove(number),
            None => self.parked.retain(|&g| g != f),
        }
        self.stale = true;
    }

    fn refresh(&mut self) {
        self.stale = false;
        let mut repair = self.solver.repair(self.tolerance);
        self.repairs += 1;
        if self.repairs.is_multiple_of(CHECKED) {
            let full = |l: LinkId| self.solver.load_bps()[l] > self.network.links()[l].capacity_bps * (1.0 + 1e-9);
            if self.solver.shortfall() > MOST_SHORT * self.tolerance || self.network.links().ids().any(full) {
                self.failures += 1;
            }
            // Clears the rounding of loads.
            self.solver.solve();
            repair.exact = true;
        }
        let moved: Vec<FlowId> =
            if repair.exact { self.solver.flows().collect() } else { self.solver.moved().to_vec() };
        for number in moved {
            let (f, rate_bps) = (self.of_number[number], self.solver.rate_bps(number));
            if self.flows[f].rate_bps != rate_bps {
                self.set_rate(f, rate_bps);
            }
        }
    }

    /// Time at which the next flow has sent all bytes, ns.
    fn next_end_ns(&mut self) -> Ns {
        while let Some(&Reverse((at_ns, f, changes))) = self.ends.peek() {
            if self.flows[f].changes == changes {
                return at_ns;
            }
            self.ends.pop();
        }
        NEVER
    }

    fn change(&mut self, link: LinkId, change: LinkChange) {
        match change {
            LinkChange::Capacity(capacity_bps) => {
                self.network.link_mut(link).capacity_bps = capacity_bps;
                self.solver.set_capacity(link, capacity_bps);
            }
            LinkChange::Down => {
                self.down[link] += 1;
                let crossing: Vec<FlowId> =
                    self.solver.members(link).iter().map(|&number| self.of_number[number]).collect();
                for f in crossing {
                    self.leave(f);
                    self.parked.push(f);
                }
            }
            LinkChange::Up => {
                self.down[link] -= 1;
                std::mem::take(&mut self.parked).into_iter().for_each(|f| self.enter(f));
            }
        }
        self.stale = true;
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Link(k) => {
                let (_, link, change) = self.link_changes[k as usize];
                self.change(link, change);
            }
            Event::Start(f) => {
                if self.flows[f].state == State::Waiting {
                    self.flows[f].state = State::Sending;
                    self.flows[f].since_ns = self.now_ns;
                    self.enter(f);
                    self.stale = true;
                }
            }
            Event::Stop(f) => {
                let state = self.flows[f].state;
                if state == State::Sending {
                    self.leave(f);
                }
                if matches!(state, State::Waiting | State::Sending | State::Sent) {
                    self.flows[f].state = State::Stopped;
                    self.close(f);
                }
            }
            Event::Deliver(f) => {
                if self.flows[f].state == State::Sent {
                    self.flows[f].state = State::Finished;
                    self.flows[f].finished_ns = Some(self.now_ns);
                    self.finished.push(f);
                    self.close(f);
                }
            }
        }
    }

    fn close(&mut self, f: FlowId) {
        self.open -= 1;
        self.open_sized -= usize::from(self.flows[f].size_bytes.is_some());
    }

    /// Ends the flows that have sent all bytes by now.
    fn end_flows(&mut self) {
        while self.next_end_ns() <= self.now_ns {
            let Some(Reverse((_, f, _))) = self.ends.pop() else { return };
            self.leave(f);
            let flow = &mut self.flows[f];
            let rest = flow.fluid_bytes - std::mem::replace(&mut flow.sent_bytes, flow.fluid_bytes);
            flow.path.iter().for_each(|&l| self.link_bytes[l] += rest);
            flow.state = State::Sent;
            let at_ns = self.now_ns.saturating_add(flow.tail_ns);
            self.events.push(Reverse((at_ns, Event::Deliver(f))));
        }
    }

    fn run(&mut self, until_ns: Ns, done: impl Fn(&Self) -> bool) {
        while !done(self) && self.fault.is_none() {
            if self.stale {
                self.refresh();
            }
            let next_event = self.events.peek().map_or(NEVER, |Reverse((at, _))| *at);
            let next_ns = next_event.min(self.next_end_ns());
            if next_ns > until_ns || next_ns == NEVER {
                break;
            }
            self.now_ns = next_ns;
            self.handled += 1;
            self.end_flows();
            // All events of one time are handled before the rates are computed.
            while let Some(&Reverse((at, event))) = self.events.peek()
                && at <= next_ns
            {
                self.events.pop();
                self.handle(event);
            }
        }
        if !done(self) && until_ns > self.now_ns {
            self.now_ns = until_ns;
        }
    }

    /// Bytes that flow `f` has sent by now.
    fn sent_bytes(&self, f: FlowId) -> f64 {
        let flow = &self.flows[f];
        let seconds = (self.now_ns - flow.since_ns) as f64 * 1e-9;
        (flow.sent_bytes + flow.rate_bps * seconds * 0.125).min(flow.fluid_bytes)
    }
}

impl Backend for Local {
    fn complete_at_sender(&mut self) {
        self.at_sender = true;
    }

    fn add(&mut self, plan: FlowPlan) -> FlowId {
        let id = self.flows.next_id();
        if plan.utility.is_some() {
            self.refuse("rates are repaired under max-min alone");
        }
        if plan.routes.len() != 1 {
            self.refuse("rates are repaired over single paths alone");
        }
        let (fluid_bytes, mut tail_ns) = tail(&self.network, self.sizes, &plan);
        if self.at_sender {
            let back_ns = plan.routes.iter().map(|route| acknowledgement_ns(&self.network, route, self.sizes));
            tail_ns += back_ns.max().unwrap_or(0);
        }
        self.flows.push(LocalFlow {
            state: State::Waiting,
            size_bytes: plan.size_bytes,
            fluid_bytes,
            sent_bytes: 0.0,
            since_ns: self.now_ns,
            rate_bps: 0.0,
            changes: 0,
            tail_ns,
            path: plan.routes.into_iter().next().map(|route| route.forward).unwrap_or_default(),
            weight: plan.weight,
            demand_bps: plan.demand_bps,
            number: None,
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
        if utility.is_some() {
            self.refuse("rates are repaired under max-min alone");
        }
        self.flows[flow].weight = weight;
        if let Some(number) = self.flows[flow].number {
            self.solver.set_weight(number, weight);
            self.stale = true;
        }
    }

    fn start_flow(&mut self, flow: FlowId, at_ns: Ns) {
        self.events.push(Reverse((at_ns.max(self.now_ns), Event::Start(flow))));
    }

    fn change_link(&mut self, link: LinkId, change: LinkChange) {
        self.change(link, change);
    }

    fn stop_flow(&mut self, flow: FlowId) {
        self.handle(Event::Stop(flow));
    }

    fn reroute(&mut self, flow: FlowId, routes: &[Route]) {
        let [route] = routes else { return self.refuse("rates are repaired over single paths alone") };
        let sends = self.flows[flow].state == State::Sending;
        if sends {
            self.leave(flow);
        }
        self.flows[flow].path.clone_from(&route.forward);
        if sends {
            self.enter(flow);
        }
    }

    fn run_until(&mut self, until_ns: Ns) {
        self.run(until_ns, |_| false);
    }

    fn run_until_done(&mut self, until_ns: Ns) {
        self.run(until_ns, |local| local.open_sized == 0);
    }

    fn run_until_finish(&mut self, until_ns: Ns) {
        self.run(until_ns, |local| !local.finished.is_empty());
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
        let f = &self.flows[flow];
        let sent_bytes = self.sent_bytes(flow);
        let payload_share = f64::from(self.sizes.mss_bytes()) / f64::from(self.sizes.mtu_bytes);
        let (received_bytes, received_wire_bytes) = match f.size_bytes {
            Some(size) if matches!(f.state, State::Sent | State::Finished) => (size, self.sizes.wire_bytes(size)),
            Some(size) => ((sent_bytes / f.fluid_bytes * size as f64) as u64, sent_bytes as u64),
            None => ((sent_bytes * payload_share) as u64, sent_bytes as u64),
        };
        FlowView {
            finished_ns: f.finished_ns,
            sent_bytes: received_bytes,
            received_bytes,
            received_wire_bytes,
            assigned_bps: f.rate_bps,
            ..FlowView::default()
        }
    }

    fn link(&self, link: LinkId) -> LinkView {
        let since = |&number: &FlowId| {
            let f = self.of_number[number];
            self.sent_bytes(f) - self.flows[f].sent_bytes
        };
        let bytes = self.link_bytes[link] + self.solver.members(link).iter().map(since).sum::<f64>();
        LinkView { data_bytes: bytes as u64, ..LinkView::default() }
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
        self.failures
    }

    fn fault(&self) -> Option<InputError> {
        self.fault.clone()
    }
}
