//! Optimizers with a centre: sources tell it of their flows, and it hands out wishes (Flowtune, section 2).
//!
//! The centre is the scheme's controller, and words to it and from it are packets. Both sides keep soft state: a source tells
//! of its flow when it starts and every [`RENEW_NS`], and the centre answers each time with the wishes that it told last. So
//! a word that is lost, and a centre that starts anew, cost a renewal at most. A flow that was not heard of for some renewals
//! is forgotten.

use super::{CENTRE_TIMER, Wish};
use std::collections::BTreeMap;
use std::fmt::Debug;
use subak_core::backend::{Capacities, LinkChange};
use subak_core::scheme::{Carries, Class, Controller, FlowInfo, Io, Scheme, To};
use subak_core::{FlowId, LinkId, Network, NodeId, Ns, SubflowId};

/// Time between two words of a source that say the same.
pub const RENEW_NS: Ns = 1_000_000;

/// A flow that the centre has not heard of for so long is gone.
const FORGET_NS: Ns = 3 * RENEW_NS + RENEW_NS / 2;

/// Bytes of a short word on the wire: the least frame.
pub(super) const WORD_BYTES: u32 = 64;

/// Bytes on the wire of what a source tells of its flow: headers, weight and utility, and four for each link.
pub(super) fn bytes(flow: &FlowInfo) -> u32 {
    let links: usize = flow.links.iter().map(Vec::len).sum();
    (WORD_BYTES + 4 * links as u32).min(flow.mtu_bytes.max(WORD_BYTES))
}

/// A message of a pair.
#[derive(Debug, Clone)]
pub enum PairMessage<C, W> {
    /// One of the transport's own.
    Transport(C),
    /// To the centre: this flow is there.
    Here(Box<FlowInfo>),
    /// To the centre: it is done.
    Gone,
    /// From the centre: the subflow has this wish from now on.
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

/// A source's message to the centre.
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

/// An optimizer's central machine: it hears of flows and links, and hands out wishes.
pub trait Centre<W: Wish>: Send {
    /// Time between two iterations, ns.
    fn interval_ns(&self) -> Ns;
    /// The flow is there; told again if its weight, utility or paths are others now.
    fn on_flow(&mut self, flow: &FlowInfo);
    /// The flow is gone.
    fn on_gone(&mut self, flow: FlowId);
    /// The link carries so much from now on, bit/s; 0 while it is down.
    fn on_capacity(&mut self, link: LinkId, capacity_bps: f64);
    /// One iteration. `tell` takes the wishes that have changed enough to be sent.
    fn step(&mut self, now_ns: Ns, tell: &mut dyn FnMut(FlowId, SubflowId, W));
    /// The wish told last.
    fn told(&self, flow: FlowId, k: SubflowId) -> Option<W>;
}

/// The controller around a centre.
pub(super) struct Allocator<S: Scheme, W: Wish> {
    centre: Box<dyn Centre<W>>,
    transport: Option<Box<dyn Controller<S>>>,
    /// Subflows of each flow, and when it was last heard of.
    flows: BTreeMap<FlowId, (u8, Ns)>,
    capacities: Capacities,
    ticks: bool,
}

impl<S: Scheme, W: Wish> Allocator<S, W> {
    pub fn new(centre: Box<dyn Centre<W>>, transport: Option<Box<dyn Controller<S>>>, network: &Network) -> Self {
        Allocator { centre, transport, flows: BTreeMap::new(), capacities: Capacities::of(network), ticks: false }
    }

    /// Iterations go on for as long as there are flows.
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
            PairMessage::Transport(_) | PairMessage::Wish(_) => {
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
