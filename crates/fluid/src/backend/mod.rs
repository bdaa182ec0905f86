//! Flow rates, recomputed at every arrival and departure: exact without delay, or approaching the exact rates with a
//! scheme's time constant.

mod run;

use crate::lag::Lag;
use crate::local::Local;
use crate::rates::Rates;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use subak_core::backend::{Backend, FlowPlan, Injected, LinkChange, PacketSizes, Route};
use subak_core::idle::{round_trip_ns, wire_time_ns};
use subak_core::keys::{Low, ValueType};
use subak_core::scheme::{Goal, Info, Param, Params, SchemeKind, Settles};
use subak_core::{FlowId, IdVec, InputError, LinkId, Network, Ns, Utility};

/// Metadata of the scheme `ideal`.
pub const INFO: Info = Info {
    name: "ideal",
    about: "fluid: the policy's exact rates at every arrival and departure, without packets or delay in finding them",
    paper: "PERC thesis, section 4.3.2 (ideal max-min)",
    kind: SchemeKind::Oracle,
    lives_on_control: false,
    goal: Goal::Any,
    weights: true,
    params: &[ACKS, TOLERANCE],
    settles: Settles::AT_ONCE,
    ..Info::DEFAULT
};

/// Parameter `acks`: whether capacity is reserved for ACKs.
const ACKS: Param = Param::flag(
    "acks",
    false,
    "reserve capacity on each link for the ACKs of the flows that cross it in the opposite direction",
);

/// Parameter `tolerance`: whether rates are repaired.
const TOLERANCE: Param = Param::number(
    "tolerance",
    0.0,
    ValueType::Number(Low::From(0.0), 0.5),
    "how far a rate may miss the bottleneck condition, as a fraction: rates are then repaired around each change, for max-min \
     over single paths; 0 solves for all flows",
);

const NEVER: Ns = Ns::MAX;

subak_core::id! {
    /// Index of a link change in time order.
    struct ChangeId(u32);
}

/// A timed event; events of one time are handled in the order of the variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FluidEvent {
    Link(ChangeId),
    Stop(FlowId),
    Start(FlowId),
    Deliver(FlowId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FluidState {
    Waiting,
    Sending,
    /// All bytes are sent; the last packet is in flight.
    Sent,
    Finished,
    Stopped,
}

#[derive(Debug, Clone)]
struct FluidFlowState {
    state: FluidState,
    size_bytes: Option<u64>,
    fluid_bytes: f64,
    sent_bytes: f64,
    /// Time from the departure of the flow's last byte to its arrival, ns.
    tail_ns: Ns,
    rtt_ns: Ns,
    finished_ns: Option<Ns>,
}

/// Stated properties of a scheme that determine its rates in the fluid model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stated {
    /// The allocation to which the scheme converges.
    pub goal: Goal,
    /// Tolerance and convergence time.
    pub settles: Settles,
    /// Fraction of each link allocated to data.
    pub data_share: f64,
}

/// The fluid simulation. Rates are on the wire; goodput is the payload's fraction of them. A flow ends when its bytes
/// are sent, plus the delay of the last packet, so that a lone flow takes exactly
/// [`subak_core::idle::idle_fct_ns`]. Bytes count as received when they are sent. Subflows of a flow are pooled.
///
/// Rates are the exact ones of the goal, or approach them as described in `lag.rs`. A flow starts from rate 0. Where
/// links become overloaded (by a fault or another path), the rates of their flows are scaled down in proportion.
#[derive(Debug)]
pub struct Fluid {
    network: Network,
    sizes: PacketSizes,
    goal: Goal,
    /// Lag of the rates; `None`: rates are exact without delay.
    lag: Option<Lag>,
    now_ns: Ns,
    flows: IdVec<FlowId, FluidFlowState>,
    rates: Rates,
    sending: Vec<FlowId>,
    link_changes: IdVec<ChangeId, (Ns, LinkId, LinkChange)>,
    link_bytes: IdVec<LinkId, f64>,
    events: BinaryHeap<Reverse<(Ns, FluidEvent)>>,
    /// Time at which the next flow has sent all bytes at the present rates, ns.
    next_end_ns: Ns,
    stale: bool,
    open: usize,
    open_sized: usize,
    /// Flows that finished since the last call of `take_finished`.
    finished: Vec<FlowId>,
    handled: u64,
    /// Whether a flow completes when its last ACK arrives at the sender.
    at_sender: bool,
}

impl Fluid {
    /// The scheme [`INFO`] over `network`. Of `faults` only those of links have an effect, since there are no packets
    /// to lose.
    pub fn ideal(
        params: &serde_json::Map<String, serde_json::Value>,
        network: &Network,
        sizes: PacketSizes,
        faults: &[Injected],
    ) -> Result<Self, InputError> {
        let acks = Params::resolve(&INFO, params)?.flag("acks");
        let rates = Rates::new(network, 1.0).beside_acks(if acks { sizes.ack_share() } else { 0.0 });
        Ok(Fluid::over(rates, Goal::Any, None, network, sizes, faults))
    }

    /// The scheme [`INFO`] with its rates repaired, if `params` have a tolerance.
    pub fn repaired(
        params: &serde_json::Map<String, serde_json::Value>,
        network: &Network,
        sizes: PacketSizes,
        faults: &[Injected],
    ) -> Result<Option<Local>, InputError> {
        let params = Params::resolve(&INFO, params)?;
        let tolerance = params.number("tolerance");
        if tolerance > 0.0 && params.flag("acks") {
            let hint = "leave one of them away";
            return Err(InputError::new("tolerance", "rates beside ACKs are not repaired", hint));
        }
        Ok((tolerance > 0.0).then(|| Local::new(tolerance, network, sizes, faults)))
    }

    /// A scheme with a stated convergence time; `None` if the scheme states no convergence time or has no goal.
    pub fn settling(stated: Stated, network: &Network, sizes: PacketSizes, faults: &[Injected]) -> Option<Self> {
        let Stated { goal, settles, data_share } = stated;
        let rates = Rates::new(network, data_share);
        (goal != Goal::Own && settles.is_stated())
            .then(|| Fluid::over(rates, goal, Lag::of(settles), network, sizes, faults))
    }

    fn over(
        rates: Rates,
        goal: Goal,
        lag: Option<Lag>,
        network: &Network,
        sizes: PacketSizes,
        faults: &[Injected],
    ) -> Self {
        let link_changes = IdVec::from(Injected::link_changes(faults));
        let event = |(k, change): (ChangeId, &(Ns, LinkId, LinkChange))| Reverse((change.0, FluidEvent::Link(k)));
        let events = link_changes.iter_enumerated().map(event).collect();
        Fluid {
            sizes,
            at_sender: false,
            goal,
            lag,
            now_ns: 0,
            flows: IdVec::new(),
            rates,
            sending: Vec::new(),
            link_changes,
            link_bytes: IdVec::filled(0.0, network.links().len()),
            events,
            next_end_ns: NEVER,
            stale: false,
            open: 0,
            open_sized: 0,
            finished: Vec::new(),
            handled: 0,
            network: network.clone(),
        }
    }

    /// Largest base RTT over `routes`, ns.
    fn rtt_ns(&self, routes: &[Route]) -> Ns {
        routes.iter().map(|route| round_trip_ns(&self.network, route, self.sizes)).max().unwrap_or(1)
    }

    /// Advances all flows to `to_ns` at the present rates.
    fn flow_on(&mut self, to_ns: Ns) {
        let seconds = (to_ns - self.now_ns) as f64 * 1e-9;
        self.now_ns = to_ns;
        if seconds == 0.0 {
            return;
        }
        let shrunk = self.lag.as_ref().map_or(0.0, |lag| lag.left(seconds));
        for &f in &self.sending {
            let flow = &mut self.flows[f];
            let mut left = flow.fluid_bytes - flow.sent_bytes;
            for sub in self.rates.subflows(f) {
                let mut sent = self.rates.sub_bps(sub) * seconds * 0.125;
                if let Some(lag) = &mut self.lag {
                    sent = (sent + lag.extra_bits(sub, seconds) * 0.125).max(0.0);
                    lag.shrink(sub, shrunk);
                }
                let sent = sent.min(left);
                left -= sent;
                flow.sent_bytes += sent;
                for &l in self.rates.path(sub) {
                    self.link_bytes[l] += sent;
                }
            }
        }
    }

    /// Solves for the rates and finds the next flow to end.
    fn refresh(&mut self) {
        self.stale = false;
        for &f in &self.sending {
            if self.rates.hurries(f) {
                let flow = &self.flows[f];
                let left = 1.0 - flow.sent_bytes / flow.fluid_bytes;
                self.rates.hurry(f, self.now_ns, flow.size_bytes.map_or(u64::MAX, |size| (left * size as f64) as u64));
            }
        }
        let before = self.rates_now();
        self.rates.solve(&self.sending);
        self.go_on_from(&before);
        self.next_end_ns = self.sending.iter().map(|&f| self.end_ns(f)).min().unwrap_or(NEVER);
    }

    /// Present rate of each active subflow, bit/s; empty if rates have no lag.
    fn rates_now(&self) -> Vec<(usize, f64)> {
        let Some(lag) = &self.lag else { return Vec::new() };
        let subs = self.sending.iter().flat_map(|&f| self.rates.subflows(f));
        subs.map(|sub| (sub, (self.rates.sub_bps(sub) + lag.gap_bps(sub)).max(0.0))).collect()
    }

    /// Continues from the rates `before`, scaled down where links are overloaded, towards the new goals.
    fn go_on_from(&mut self, before: &[(usize, f64)]) {
        let Some(lag) = &mut self.lag else { return };
        let mut load_bps = IdVec::<LinkId, f64>::filled(0.0, self.network.links().len());
        for &(sub, bps) in before {
            self.rates.path(sub).iter().for_each(|&l| load_bps[l] += bps);
        }
        for &(sub, bps) in before {
            let share = |&l: &LinkId| self.rates.capacity_bps(l) / load_bps[l];
            let carried = self.rates.path(sub).iter().map(share).fold(1.0, f64::min);
            lag.set_gap(sub, if bps > 0.0 { carried * bps } else { 0.0 } - self.rates.sub_bps(sub));
        }
        lag.set_rtt(self.sending.iter().map(|&f| self.flows[f].rtt_ns).max().unwrap_or(1));
    }

    /// Present rate of flow `f`, bit/s.
    fn flow_bps(&self, f: FlowId) -> f64 {
        self.rates.flow_bps(f) + self.gap_bps(f)
    }

    fn gap_bps(&self, f: FlowId) -> f64 {
        self.lag.as_ref().map_or(0.0, |lag| self.rates.subflows(f).map(|sub| lag.gap_bps(sub)).sum())
    }

    /// Replaces a flow's weight and utility function by those that lead to the scheme's goal.
    fn aim(&self, weight: f64, utility: Option<Arc<Utility>>) -> (f64, Option<Arc<Utility>>) {
        match self.goal {
            Goal::Any | Goal::Own => (weight, utility),
            Goal::MaxMin => (weight, None),
            Goal::EqualMaxMin => (1.0, None),
            Goal::Utility(_) => (weight, utility.or_else(|| Some(Arc::new(Utility::log(weight))))),
        }
    }

    /// Time at which flow `f` has sent all bytes at the present rates, ns.
    fn end_ns(&self, f: FlowId) -> Ns {
        let flow = &self.flows[f];
        if flow.size_bytes.is_none() {
            return NEVER;
        }
        let left = flow.fluid_bytes - flow.sent_bytes;
        if let Some(lag) = &self.lag {
            let seconds = lag.seconds(8.0 * left, self.rates.flow_bps(f), self.gap_bps(f));
            return self.now_ns.saturating_add((seconds * 1e9 - 1e-3).ceil() as Ns);
        }
        match self.rates.flow_bps(f) {
            rate if rate > 0.0 => self.now_ns.saturating_add(wire_time_ns(left, rate)),
            _ => NEVER,
        }
    }

    fn handle(&mut self, event: FluidEvent) {
        match event {
            FluidEvent::Link(k) => {
                let (_, link, change) = self.link_changes[k];
                self.rates.change(link, change);
            }
            FluidEvent::Start(f) => {
                let flow = &mut self.flows[f];
                if flow.state == FluidState::Waiting {
                    flow.state = FluidState::Sending;
                    self.sending.push(f);
                }
            }
            FluidEvent::Stop(f) => {
                if matches!(self.flows[f].state, FluidState::Waiting | FluidState::Sending | FluidState::Sent) {
                    self.leave(f, FluidState::Stopped);
                    self.close(f);
                }
            }
            FluidEvent::Deliver(f) => {
                if self.flows[f].state == FluidState::Sent {
                    self.flows[f].state = FluidState::Finished;
                    self.flows[f].finished_ns = Some(self.now_ns);
                    self.finished.push(f);
                    self.close(f);
                }
                return;
            }
        }
        self.stale = true;
    }

    fn leave(&mut self, f: FlowId, state: FluidState) {
        self.sending.retain(|&g| g != f);
        self.flows[f].state = state;
        self.rates.clear(f);
        if let Some(lag) = &mut self.lag {
            self.rates.subflows(f).for_each(|sub| lag.set_gap(sub, 0.0));
        }
    }

    fn close(&mut self, f: FlowId) {
        self.open -= 1;
        self.open_sized -= usize::from(self.flows[f].size_bytes.is_some());
    }

    /// Ends the flows that have sent all bytes by now.
    fn end_flows(&mut self) {
        let ended: Vec<FlowId> = self.sending.iter().copied().filter(|&f| self.end_ns(f) <= self.now_ns).collect();
        for f in ended {
            self.leave(f, FluidState::Sent);
            let flow = &mut self.flows[f];
            flow.sent_bytes = flow.fluid_bytes;
            let at = self.now_ns.saturating_add(flow.tail_ns);
            self.events.push(Reverse((at, FluidEvent::Deliver(f))));
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
            // All events of one time are handled before the rates are computed.
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

/// FCT of a flow with a size, alone on the idle network, over all its paths, ns.
pub fn lone_fct_ns(network: &Network, plan: &FlowPlan, sizes: PacketSizes) -> Ns {
    let Ok(mut alone) = Fluid::ideal(&serde_json::Map::new(), network, sizes, &[]) else { return NEVER };
    let flow = alone.add(FlowPlan { start_ns: 0, stop_ns: None, ..plan.clone() });
    alone.run_until_done(NEVER);
    alone.flow(flow).finished_ns.unwrap_or(NEVER)
}
