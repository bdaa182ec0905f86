//! A host's endpoint: it announces the host's flows to the allocator, and receives their rates.

use super::{BURST_BYTES, BURST_S, Flowtune, FlowtuneMessage, send};
use std::collections::BTreeMap;
use subak_control::{ControlSettings, Endpoint};
use subak_core::scheme::{Class, ControllerPlace, Io, NodeMachine, To};
use subak_core::{FlowId, NodeId, Ns, SubflowId};
use subak_wire::Datagram;

/// Fraction of the links to and from the allocator that messages may use.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageShare {
    /// Largest fraction of these links that messages may use.
    pub(super) most: f64,
    /// Message rate that carries one rate update to one host per iteration, bit/s.
    pub(super) host_bps: f64,
}

/// Largest burst of messages, bytes: `most`, or 1 ms at the message rate `share_bps` if that is less.
pub(super) fn burst_bytes(most: usize, share_bps: f64) -> usize {
    most.min((share_bps * BURST_S / 8.0) as usize)
}

impl MessageShare {
    /// Limit of the message rate, bit/s, on links of `capacity_bps` in total. If the allocator runs on a host, the
    /// limit is at most one update per host and iteration, so that data can use the rest of the host's link.
    pub fn bps(&self, place: &ControllerPlace, capacity_bps: f64) -> f64 {
        let most_bps = self.most * capacity_bps;
        if place.host.is_some() { most_bps.min(place.hosts as f64 * self.host_bps) } else { most_bps }
    }
}

/// State machine of a host: relays between the host's sources and its endpoint.
pub(super) struct HostMachine {
    pub(super) node: NodeId,
    pub(super) settings: ControlSettings,
    pub(super) messages: MessageShare,
    pub(super) endpoint: Option<Endpoint>,
    pub(super) flows: BTreeMap<u64, KnownFlow>,
    /// Expiry of the timer, ns.
    pub(super) wakes_ns: Ns,
}

/// A subflow that its source announced, and whether it has a valid rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct KnownFlow {
    pub(super) path: u32,
    pub(super) weight: f32,
    pub(super) demand_bps: f64,
    pub(super) is_granted: bool,
}

pub(super) fn connection(flow: FlowId, subflow: SubflowId) -> u64 {
    u64::from(flow.0) << 8 | u64::from(subflow)
}

impl HostMachine {
    /// The endpoint. The first call after a restart of the host creates one with a new epoch.
    fn endpoint(&mut self, now_ns: Ns) -> &mut Endpoint {
        let (node, settings) = (self.node, self.settings);
        self.endpoint.get_or_insert_with(|| Endpoint::new(node.0, now_ns + 1, settings))
    }

    /// Sends pending messages, and sets a timer for the next one.
    fn speak(&mut self, io: &mut Io<Flowtune>) {
        let now_ns = io.now_ns;
        let settings = self.settings;
        let endpoint = self.endpoint(now_ns);
        while let Some(datagram) = endpoint.poll(now_ns) {
            send(io, To::Controller, &datagram, &settings);
        }
        let ends = [endpoint.due_ns(), endpoint.next_end_ns(now_ns)];
        if let Some(due_ns) = ends.into_iter().flatten().min().map(|due| due.max(now_ns + 1))
            && (self.wakes_ns <= now_ns || due_ns < self.wakes_ns)
        {
            self.wakes_ns = due_ns;
            io.timer(0, due_ns);
        }
    }

    fn grant(&mut self, io: &mut Io<Flowtune>, connection: u64) {
        let now_ns = io.now_ns;
        let rate_bps = self.endpoint(now_ns).rate_bps(now_ns, connection);
        if let Some(told) = self.flows.get_mut(&connection) {
            told.is_granted = rate_bps.is_some();
            let (flow, subflow) = (FlowId((connection >> 8) as u32), SubflowId(connection as u8));
            io.ctl(To::Flow(flow), subflow, FlowtuneMessage::Rate(rate_bps), Class::Control, 0);
        }
    }
}

impl NodeMachine<Flowtune> for HostMachine {
    /// Connects to the allocator. The hosts' message rates add up to the fraction of the allocator's links that
    /// messages may use.
    fn on_controller(&mut self, io: &mut Io<Flowtune>, place: &ControllerPlace) {
        let share_bps = self.messages.bps(place, place.into_bps) / place.hosts.max(1) as f64;
        let burst_bytes = burst_bytes((BURST_BYTES / place.hosts.max(1)).max(2 * self.settings.most_bytes), share_bps);
        self.endpoint(io.now_ns).set_pace(share_bps, burst_bytes);
        self.speak(io);
    }

    fn on_flow(&mut self, io: &mut Io<Flowtune>, flow: FlowId, message: FlowtuneMessage) {
        let now_ns = io.now_ns;
        match message {
            FlowtuneMessage::Begin { subflow, to, path, weight, demand_bps } => {
                let connection = connection(flow, subflow);
                let told = KnownFlow { path, weight, demand_bps, is_granted: false };
                match self.flows.get(&connection).copied() {
                    None => {
                        self.endpoint(now_ns).begin(connection, to.0, path, weight);
                        self.endpoint(now_ns).set_demand(connection, demand_bps);
                    }
                    Some(before) if KnownFlow { is_granted: false, ..before } == told => return,
                    Some(_) => {
                        self.endpoint(now_ns).set_demand(connection, demand_bps);
                        self.endpoint(now_ns).set_weight(connection, weight);
                        self.endpoint(now_ns).reroute(connection, path);
                    }
                }
                let is_granted = self.flows.get(&connection).is_some_and(|before| before.is_granted);
                self.flows.insert(connection, KnownFlow { is_granted, ..told });
            }
            FlowtuneMessage::Ending { subflow } => {
                self.endpoint(now_ns).remaining(now_ns, connection(flow, subflow), 0)
            }
            FlowtuneMessage::End { subflow } => {
                let connection = connection(flow, subflow);
                if self.flows.remove(&connection).is_some() {
                    self.endpoint(now_ns).finish(connection);
                }
            }
            FlowtuneMessage::Rate(_) | FlowtuneMessage::Wire(_) => return,
        }
        self.speak(io);
    }

    fn on_ctl(&mut self, io: &mut Io<Flowtune>, message: FlowtuneMessage) {
        let FlowtuneMessage::Wire(bytes) = message else { return };
        let Ok(datagram) = Datagram::decode(&bytes) else { return };
        let now_ns = io.now_ns;
        for connection in self.endpoint(now_ns).take(now_ns, &datagram) {
            self.grant(io, connection);
        }
        self.speak(io);
    }

    fn on_timer(&mut self, io: &mut Io<Flowtune>, _timer: u32) {
        let now_ns = io.now_ns;
        if now_ns < self.wakes_ns {
            return;
        }
        let granted: Vec<u64> = self.flows.iter().filter(|(_, told)| told.is_granted).map(|(c, _)| *c).collect();
        for connection in granted {
            if self.endpoint(now_ns).rate_bps(now_ns, connection).is_none() {
                self.grant(io, connection);
            }
        }
        self.speak(io);
    }
}
