//! Event queue of the round-based backend. Control messages travel over links, which delay them and update them.
//!
//! This is the numerical simulation of the PERC thesis (section 3.3). There are no data, no queues, and messages use
//! no capacity. Delays have a small jitter, so that messages may overtake one another. There are timers, and losses
//! from a seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use subak_core::rng::Stream;
use subak_core::scheme::{Effect, FlowInfo, Hop, Io, PathInfo, Port, Scheme, Sink, Source, To, UpdateRecord, Visit};
use subak_core::{FlowId, IdVec, LinkId, Ns, SubflowId, Utility};

subak_core::id! {
    /// Index of a message in flight.
    struct FlightId(u32);
}

/// A link of the round-based backend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wire {
    /// Capacity, bit/s.
    pub capacity_bps: f64,
    /// Delay of a message in either direction, ns.
    pub delay_ns: Ns,
}

/// `FlowInfo` of a flow over `wires`, in order. There is no minimum pacing rate, since there are no packets.
pub(crate) fn flow_info(flow: FlowId, weight: f64, wires: &[Wire]) -> FlowInfo {
    let path = PathInfo {
        hops: wires.len() as u16,
        line_rate_bps: wires.first().map_or(0.0, |w| w.capacity_bps),
        min_capacity_bps: wires.iter().map(|w| w.capacity_bps).fold(f64::INFINITY, f64::min),
        base_rtt_ns: 2 * wires.iter().map(|w| w.delay_ns).sum::<Ns>(),
    };
    let utility = Arc::new(Utility::log(weight));
    FlowInfo { weight, utility, mss_bytes: 0, mtu_bytes: 0, ..FlowInfo::example(flow, vec![path]) }
}

/// Impairments of messages on the links.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conditions {
    /// Largest additional delay of a message on a link, ns.
    pub jitter_ns: Ns,
    /// Probability that a message is lost on a link.
    pub drop: f64,
    /// Time from which on no messages are lost, ns.
    pub drop_until_ns: Ns,
    /// Largest base RTT, ns, passed to the links as [`Port::rtt_ns`].
    pub rtt_ns: Ns,
    /// Seed of jitter, losses and the phases of the links' timers.
    pub seed: u64,
}

/// Observations of one flow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowObservation {
    /// Exact rate, bit/s.
    pub ideal_bps: f64,
    /// Time of the last update whose rate differed from the exact one, ns; `None` if every update was exact.
    pub last_wrong_ns: Option<Ns>,
    /// The link that made this update; `None` for a rate set by the source.
    pub last_wrong_link: Option<LinkId>,
    /// Rate last assigned to the flow's source, bit/s.
    pub rate_bps: f64,
    /// Number of updates of the flow's messages.
    pub updates: u64,
}

/// Record of a rate assigned to a source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assigned {
    /// Time, ns.
    pub at_ns: Ns,
    /// The flow.
    pub flow: FlowId,
    /// The rate, bit/s.
    pub rate_bps: f64,
}

struct RoundsFlow<S: Scheme> {
    path: Vec<LinkId>,
    source: S::Source,
    sink: S::Sink,
    seen: FlowObservation,
    running: bool,
}

struct RoundsLink<S: Scheme> {
    port: Port,
    hop: S::Hop,
}

/// A message in flight that arrives next at the `at`-th link of its path, or at the sink if there is no such link.
struct Flight<S: Scheme> {
    flow: FlowId,
    at: u16,
    forward: bool,
    bytes: u32,
    message: S::Ctl,
}

enum RoundsEvent {
    Arrive(FlightId),
    Start(FlowId),
    Stop(FlowId),
    SourceTimer(FlowId, u32),
    LinkStart(LinkId),
    LinkTimer(LinkId, u32),
}

struct Due(Reverse<(Ns, u64)>, RoundsEvent);

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

/// A scheme's state machines over a set of links and flows.
pub struct Rounds<S: Scheme> {
    scheme: S,
    conditions: Conditions,
    /// Relative difference from the exact rate up to which an update counts as exact.
    pub tolerance: f64,
    links: IdVec<LinkId, RoundsLink<S>>,
    flows: IdVec<FlowId, RoundsFlow<S>>,
    flights: IdVec<FlightId, Option<Flight<S>>>,
    free: Vec<FlightId>,
    events: BinaryHeap<Due>,
    serial: u64,
    io: Io<S>,
    trace: Vec<UpdateRecord>,
    /// Rates assigned to sources, if they are recorded.
    rates: Option<Vec<Assigned>>,
    random: Stream,
    /// Whether messages carry an allocation for each link; otherwise the sources' rates are compared with the exact
    /// ones.
    allocates: bool,
    updates: u64,
    dropped: u64,
    last_drop_ns: Option<Ns>,
}

impl<S: Scheme> Rounds<S> {
    /// Creates the backend over `wires`, without flows. Each link starts its timers at a random time within the first
    /// largest base RTT.
    pub fn new(scheme: S, wires: &IdVec<LinkId, Wire>, conditions: Conditions, traced: bool) -> Self {
        let links = wires.iter_enumerated().map(|(link, wire)| {
            let port = Port {
                link,
                capacity_bps: wire.capacity_bps,
                delay_ns: wire.delay_ns,
                buffer_bytes: 0,
                mtu_bytes: 0,
                rtt_ns: conditions.rtt_ns,
                ..Port::example(link, 1.0)
            };
            RoundsLink { hop: scheme.hop(&port), port }
        });
        let mut rounds = Rounds {
            links: links.collect(),
            scheme,
            conditions,
            tolerance: 1e-9,
            flows: IdVec::new(),
            flights: IdVec::new(),
            free: Vec::new(),
            events: BinaryHeap::new(),
            serial: 0,
            io: if traced { Io::traced() } else { Io::default() },
            trace: Vec::new(),
            rates: None,
            random: Stream::new(conditions.seed, "rounds"),
            allocates: false,
            updates: 0,
            dropped: 0,
            last_drop_ns: None,
        };
        let mut phases = Stream::new(conditions.seed, "phases");
        for link in LinkId::first(wires.len()) {
            let at_ns = phases.below(conditions.rtt_ns.max(1) as usize) as Ns;
            rounds.schedule(at_ns, RoundsEvent::LinkStart(link));
        }
        rounds
    }

    /// Adds a flow over `path` that starts at `start_ns`, now or later. Its exact rate is `ideal_bps`.
    pub fn add(&mut self, path: Vec<LinkId>, weight: f64, start_ns: Ns, ideal_bps: f64) -> FlowId {
        let flow = self.flows.next_id();
        let wire = |&l: &LinkId| {
            let port = &self.links[l].port;
            Wire { capacity_bps: port.capacity_bps, delay_ns: port.delay_ns + self.conditions.jitter_ns }
        };
        let wires: Vec<_> = path.iter().map(wire).collect();
        let info = flow_info(flow, weight, &wires);
        let (source, sink) = (self.scheme.source(&info), self.scheme.sink(&info));
        let seen = FlowObservation { ideal_bps, ..FlowObservation::default() };
        self.flows.push(RoundsFlow { path, source, sink, seen, running: false });
        self.schedule(start_ns, RoundsEvent::Start(flow));
        flow
    }

    /// Stops the flow at `at_ns`.
    pub fn stop(&mut self, flow: FlowId, at_ns: Ns) {
        self.schedule(at_ns, RoundsEvent::Stop(flow));
    }

    /// Sets the exact rate of `flow` from now on.
    pub fn set_ideal(&mut self, flow: FlowId, ideal_bps: f64) {
        self.flows[flow].seen.ideal_bps = ideal_bps;
    }

    /// Changes the weight of `flow`.
    pub fn set_weight(&mut self, flow: FlowId, weight: f64) {
        self.flows[flow].source.on_weight(&mut self.io, weight, &Arc::new(Utility::log(weight)));
        self.obey_end(flow);
    }

    /// Handles all events up to and including `until_ns`.
    pub fn run_until(&mut self, until_ns: Ns) {
        while !self.run_some(until_ns, u64::MAX) {}
    }

    /// Like [`Rounds::run_until`], for `most` events at most. Returns whether the time `until_ns` was reached.
    pub fn run_some(&mut self, until_ns: Ns, most: u64) -> bool {
        let mut handled = 0;
        while let Some(Due(Reverse((at_ns, _)), _)) = self.events.peek() {
            if *at_ns > until_ns {
                break;
            }
            if handled == most {
                return false;
            }
            handled += 1;
            if let Some(Due(Reverse((at_ns, _)), event)) = self.events.pop() {
                self.io.now_ns = at_ns;
                self.handle(event);
            }
        }
        self.io.now_ns = until_ns;
        true
    }

    /// Current time, ns.
    pub fn now_ns(&self) -> Ns {
        self.io.now_ns
    }
    /// Observations of a flow.
    pub fn seen(&self, flow: FlowId) -> &FlowObservation {
        &self.flows[flow].seen
    }
    /// Number of flows added.
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }
    /// State machine of a link.
    pub fn hop(&self, link: LinkId) -> &S::Hop {
        &self.links[link].hop
    }
    /// Number of updates at links.
    pub fn updates(&self) -> u64 {
        self.updates
    }
    /// Number of lost messages, and time of the last loss, ns.
    pub fn drops(&self) -> (u64, Option<Ns>) {
        (self.dropped, self.last_drop_ns)
    }
    /// Time of the last update whose rate differed from its flow's exact rate, over the running flows, ns.
    pub fn last_wrong_ns(&self) -> Option<Ns> {
        self.flows.iter().filter(|f| f.running).filter_map(|f| f.seen.last_wrong_ns).max()
    }
    /// Begins to record rates assigned to sources.
    pub fn log_rates(&mut self) {
        self.rates.get_or_insert_with(Vec::new);
    }
    /// Rates assigned since the last call, if they are recorded.
    pub fn take_rates(&mut self) -> Vec<Assigned> {
        self.rates.as_mut().map(std::mem::take).unwrap_or_default()
    }
    /// Updates since the last call, if they are traced.
    pub fn take_trace(&mut self) -> Vec<UpdateRecord> {
        std::mem::take(&mut self.trace)
    }

    fn schedule(&mut self, at_ns: Ns, event: RoundsEvent) {
        self.serial += 1;
        self.events.push(Due(Reverse((at_ns, self.serial)), event));
    }

    fn handle(&mut self, event: RoundsEvent) {
        match event {
            RoundsEvent::Arrive(slot) => {
                if let Some(flight) = self.flights[slot].take() {
                    self.free.push(slot);
                    self.arrive(flight);
                }
            }
            RoundsEvent::Start(flow) => {
                self.flows[flow].running = true;
                self.flows[flow].source.on_start(&mut self.io);
                self.obey_end(flow);
            }
            RoundsEvent::Stop(flow) => {
                self.flows[flow].running = false;
                self.flows[flow].source.on_finish(&mut self.io);
                self.obey_end(flow);
            }
            RoundsEvent::SourceTimer(flow, timer) => {
                self.flows[flow].source.on_timer(&mut self.io, timer);
                self.obey_end(flow);
            }
            RoundsEvent::LinkStart(link) => {
                self.links[link].hop.on_start(&mut self.io);
                self.obey_link(link);
            }
            RoundsEvent::LinkTimer(link, timer) => {
                let RoundsLink { port, hop } = &mut self.links[link];
                hop.on_timer(&mut self.io, timer, port);
                self.obey_link(link);
            }
        }
    }

    fn arrive(&mut self, mut flight: Flight<S>) {
        let flow = &mut self.flows[flight.flow];
        if flight.forward && usize::from(flight.at) == flow.path.len() {
            flow.sink.on_ctl(&mut self.io, SubflowId(0), flight.message, flight.bytes);
            return self.obey_end(flight.flow);
        }
        self.update(&mut flight);
        if flight.forward {
            flight.at += 1;
            self.cross(flight, -1);
        } else if flight.at > 0 {
            flight.at -= 1;
            self.cross(flight, 0);
        } else {
            self.flows[flight.flow].source.on_ctl(&mut self.io, SubflowId(0), flight.message);
            self.obey_end(flight.flow);
        }
    }

    /// Lets the current link update the message.
    fn update(&mut self, flight: &mut Flight<S>) {
        let flow = &mut self.flows[flight.flow];
        let id = flow.path[usize::from(flight.at)];
        let RoundsLink { port, hop } = &mut self.links[id];
        let visit = Visit { flow: flight.flow, subflow: SubflowId(0), hop: flight.at, forward: flight.forward };
        hop.on_ctl(&mut self.io, &mut flight.message, visit, port);
        self.trace.extend(self.io.take_trace());
        self.updates += 1;
        flow.seen.updates += 1;
        if let Some(rate) = S::allocated(&flight.message, flight.at) {
            self.allocates = true;
            flow.seen.judge(rate, self.tolerance, self.io.now_ns, Some(id));
        }
        self.obey_link(id);
    }

    /// Sends a message over the link before its next stop, or loses it there.
    fn cross(&mut self, flight: Flight<S>, before: i16) {
        let over = self.flows[flight.flow].path[usize::from(flight.at.wrapping_add_signed(before))];
        let Conditions { jitter_ns, drop, drop_until_ns, .. } = self.conditions;
        if drop > 0.0 && self.io.now_ns < drop_until_ns && self.random.unit() < drop {
            self.dropped += 1;
            self.last_drop_ns = Some(self.io.now_ns);
            return;
        }
        let jitter_ns = if jitter_ns > 0 { self.random.below(jitter_ns as usize + 1) as Ns } else { 0 };
        let at_ns = self.io.now_ns + self.links[over].port.delay_ns + jitter_ns;
        let slot = self.free.pop().unwrap_or_else(|| self.flights.push(None));
        self.flights[slot] = Some(flight);
        self.schedule(at_ns, RoundsEvent::Arrive(slot));
    }

    /// Carries out the effects of a flow's source or sink.
    fn obey_end(&mut self, flow: FlowId) {
        let mut effects = std::mem::take(self.io.effects_mut());
        for effect in effects.drain(..) {
            match effect {
                Effect::Ctl { to: To::Sink, message, bytes, .. } => {
                    self.arrive(Flight { flow, at: 0, forward: true, bytes, message });
                }
                Effect::Ctl { to: To::Source, message, bytes, .. } => {
                    let at = self.flows[flow].path.len() as u16 - 1;
                    self.cross(Flight { flow, at, forward: false, bytes, message }, 0);
                }
                // Schemes with a controller, node machines or pauses cannot run under this backend.
                Effect::Ctl { .. } | Effect::Pause { .. } => {}
                Effect::Timer { timer, at_ns } => self.schedule(at_ns, RoundsEvent::SourceTimer(flow, timer)),
                Effect::Pace { rate_bps, .. } => {
                    let now_ns = self.io.now_ns;
                    let seen = &mut self.flows[flow].seen;
                    seen.rate_bps = rate_bps.unwrap_or(f64::INFINITY);
                    if let Some(rates) = &mut self.rates {
                        rates.push(Assigned { at_ns: now_ns, flow, rate_bps: seen.rate_bps });
                    }
                    if !self.allocates {
                        seen.judge(seen.rate_bps, self.tolerance, now_ns, None);
                    }
                }
            }
        }
        self.give_back(effects);
    }

    fn obey_link(&mut self, link: LinkId) {
        let mut effects = std::mem::take(self.io.effects_mut());
        for effect in effects.drain(..) {
            if let Effect::Timer { timer, at_ns } = effect {
                self.schedule(at_ns, RoundsEvent::LinkTimer(link, timer));
            }
        }
        self.give_back(effects);
    }

    /// Returns the list of effects, so that its memory is reused.
    fn give_back(&mut self, effects: Vec<Effect<S>>) {
        if self.io.effects_mut().is_empty() {
            *self.io.effects_mut() = effects;
        }
    }
}

impl FlowObservation {
    fn judge(&mut self, rate_bps: f64, tolerance: f64, now_ns: Ns, link: Option<LinkId>) {
        if (rate_bps - self.ideal_bps).abs() > tolerance * self.ideal_bps {
            self.last_wrong_ns = Some(now_ns);
            self.last_wrong_link = link;
        }
    }
}
