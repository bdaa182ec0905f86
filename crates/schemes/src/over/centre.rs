//! Centralized optimizers: sources announce their flows to a controller, which sends target weights or rates (Flowtune,
//! section 2).
//!
//! The messages are packets. Both sides keep soft state: a source announces its flow at the start and every [`RENEW_NS`],
//! and the controller answers each time with its latest targets. So a lost message, or a restart of the controller, costs
//! at most one renewal. A flow without announcements for some renewals is removed.

use super::{CENTRE_TIMER, Syn, Wish};
use std::collections::BTreeMap;
use std::fmt::Debug;
use subak_core::backend::{Capacities, LinkChange};
use subak_core::scheme::{Carries, Class, Controller, FlowInfo, Io, Scheme, To};
use subak_core::{FlowId, LinkId, Network, NodeId, Ns, SubflowId};

/// Time between two announcements of an unchanged flow, ns.
pub const RENEW_NS: Ns = 1_000_000;

/// Time without announcements after which the controller removes a flow, ns.
const FORGET_NS: Ns = 3 * RENEW_NS + RENEW_NS / 2;

/// Size of a short message on the wire, bytes: the minimum frame.
pub(super) const WORD_BYTES: u32 = 64;

/// Size of an announcement on the wire, bytes: headers, weight and utility, and four bytes for each link.
pub(super) fn bytes(flow: &FlowInfo) -> u32 {
    let links: usize = flow.links.iter().map(Vec::len).sum();
    (WORD_BYTES + 4 * links as u32).min(flow.mtu_bytes.max(WORD_BYTES))
}

/// Control message of a scheme that consists of an optimizer and a transport.
#[derive(Debug, Clone)]
pub enum PairMessage<C, W> {
    /// Message of the transport.
    Transport(C),
    /// SYN of a subflow, or its answer.
    Syn(Box<Syn>),
    /// To the controller: announcement of a flow.
    Here(Box<FlowInfo>),
    /// To the controller: the flow has ended.
    Gone,
    /// From the controller: a new target of a subflow.
    Wish(W),
}

impl<C, W> Carries<C> for PairMessage<C, W> {
    fn of(message: C) -> Self {
        PairMessage::Transport(message)
    }
    fn open(self) -> Option<C> {
        match self {
            PairMessage::Transport(message) => Some(message),
            _ => None,
        }
    }
}

/// A source's announcement of its flow to the controller.
#[derive(Debug)]
pub(super) struct Announcement {
    pub flow: FlowInfo,
    pub done: bool,
}

impl Announcement {
    pub fn new(flow: &FlowInfo) -> Self {
        Announcement { flow: flow.clone(), done: false }
    }
}

/// State machine of a centralized optimizer: flows and link capacities are its input, targets its output.
pub trait Centre<W: Wish>: Send {
    /// Time between two iterations, ns.
    fn interval_ns(&self) -> Ns;
    /// Adds a flow, or updates its weight, utility or paths.
    fn on_flow(&mut self, flow: &FlowInfo);
    /// Removes a flow.
    fn on_gone(&mut self, flow: FlowId);
    /// Sets a link's capacity, bit/s; 0 while it is down.
    fn on_capacity(&mut self, link: LinkId, capacity_bps: f64);
    /// Runs one iteration. Calls `tell` with targets that have changed enough to be sent.
    fn step(&mut self, now_ns: Ns, tell: &mut dyn FnMut(FlowId, SubflowId, W));
    /// Latest target sent for subflow `k` of `flow`.
    fn told(&self, flow: FlowId, k: SubflowId) -> Option<W>;
}

/// Controller that runs a [`Centre`].
pub(super) struct Allocator<S: Scheme, W: Wish> {
    centre: Box<dyn Centre<W>>,
    transport: Option<Box<dyn Controller<S>>>,
    /// Number of subflows of each flow, and the time of its latest announcement.
    flows: BTreeMap<FlowId, (u8, Ns)>,
    capacities: Capacities,
    ticks: bool,
}

impl<S: Scheme, W: Wish> Allocator<S, W> {
    pub fn new(centre: Box<dyn Centre<W>>, transport: Option<Box<dyn Controller<S>>>, network: &Network) -> Self {
        Allocator { centre, transport, flows: BTreeMap::new(), capacities: Capacities::of(network), ticks: false }
    }

    /// Sets the timer of the next iteration, if there are flows.
    fn tick(&mut self, io: &mut Io<S>) {
        if !self.ticks && !self.flows.is_empty() {
            self.ticks = true;
            io.timer(CENTRE_TIMER, io.now_ns + self.centre.interval_ns().max(1));
        }
    }
}

impl<C: Clone + Debug + Send, W: Wish, S: Scheme<Ctl = PairMessage<C, W>>> Controller<S> for Allocator<S, W> {
    fn on_start(&mut self, io: &mut Io<S>) {
        if let Some(transport) = &mut self.transport {
            transport.on_start(io);
        }
    }

    fn on_ctl(&mut self, io: &mut Io<S>, flow: FlowId, message: PairMessage<C, W>) {
        match message {
            PairMessage::Here(info) => {
                let subflows = info.links.len() as u8;
                self.centre.on_flow(&info);
                self.flows.insert(flow, (subflows, io.now_ns));
                for k in info.links.ids() {
                    if let Some(wish) = self.centre.told(flow, k) {
                        io.ctl(To::Flow(flow), k, PairMessage::Wish(wish), Class::Control, WORD_BYTES);
                    }
                }
                self.tick(io);
            }
            PairMessage::Gone => {
                if self.flows.remove(&flow).is_some() {
                    self.centre.on_gone(flow);
                }
            }
            PairMessage::Transport(_) | PairMessage::Syn(_) | PairMessage::Wish(_) => {
                if let Some(transport) = &mut self.transport {
                    transport.on_ctl(io, flow, message);
                }
            }
        }
    }

    fn on_node(&mut self, io: &mut Io<S>, node: NodeId, message: PairMessage<C, W>) {
        if let Some(transport) = &mut self.transport {
            transport.on_node(io, node, message);
        }
    }

    fn on_link(&mut self, io: &mut Io<S>, link: LinkId, change: LinkChange) {
        self.centre.on_capacity(link, self.capacities.change(link, change));
        if let Some(transport) = &mut self.transport {
            transport.on_link(io, link, change);
        }
    }

    fn on_timer(&mut self, io: &mut Io<S>, timer: u32) {
        if timer != CENTRE_TIMER {
            if let Some(transport) = &mut self.transport {
                transport.on_timer(io, timer);
            }
            return;
        }
        self.ticks = false;
        let Allocator { centre, flows, .. } = self;
        flows.retain(|&flow, (_, heard_ns)| {
            let there = io.now_ns - *heard_ns < FORGET_NS;
            if !there {
                centre.on_gone(flow);
            }
            there
        });
        let now_ns = io.now_ns;
        centre.step(now_ns, &mut |flow, k, wish| {
            io.ctl(To::Flow(flow), k, PairMessage::Wish(wish), Class::Control, WORD_BYTES);
        });
        self.tick(io);
    }
}
