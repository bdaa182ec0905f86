//! Effects: the outputs of a state machine, which its backend carries out.

use super::{Class, Scheme};
use crate::{FlowId, LinkId, NodeId, Ns, SubflowId};

/// Where a control message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// Along the subflow's path to its sink.
    Sink,
    /// Back along the subflow's return path to its source.
    Source,
    /// Across the network to the scheme's controller, from a source or from the machine of a host.
    Controller,
    /// To the source of this flow: across the network from the controller, at once from the machine of its host.
    Flow(FlowId),
    /// From a source or a sink to the machine of the host that it is at: at once.
    Host,
    /// From the controller across the network to the machine of this node.
    Node(NodeId),
    /// From a hop or a node to the hop before this link, at the other end of it: see [`Io::came_by`]. It goes ahead of all
    /// packets and takes its bytes' time on the link's reverse link, as a pause frame does.
    Neighbour(LinkId),
}

/// One request of a state machine.
#[derive(Debug, Clone)]
pub enum Effect<S: Scheme> {
    /// Send a control message along a subflow.
    Ctl {
        /// In which direction.
        to: To,
        /// On which subflow.
        subflow: SubflowId,
        /// The message.
        message: S::Ctl,
        /// With which priority.
        class: Class,
        /// Size on the wire, bytes.
        bytes: u32,
    },
    /// Call `on_timer(timer)` at `at_ns`. Timers are not cancelled: a machine ignores those it no longer wants.
    Timer {
        /// The machine's own name for it.
        timer: u32,
        /// When.
        at_ns: Ns,
    },
    /// Send the subflow's data at `rate_bps` (on the wire; `None`: as fast as the window allows) with at most
    /// `window_bytes` of payload in flight (`None`: no limit). A rate of 0 holds it.
    Pace {
        /// Which subflow.
        subflow: SubflowId,
        /// Rate on the wire, bit/s.
        rate_bps: Option<f64>,
        /// Payload bytes in flight.
        window_bytes: Option<u64>,
    },
    /// Hold what waits of a class before a link, or let it go: for hops (their own link) and nodes (links that leave them).
    Pause {
        /// Which link; for a hop its own, whatever this says.
        link: LinkId,
        /// Which packets.
        class: Class,
        /// Hold, or let go.
        on: bool,
    },
}

/// One update of a control message at a link, as the traces of the round-based backend show it: named numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateRecord {
    /// When, ns.
    pub at_ns: Ns,
    /// Whose message.
    pub flow: FlowId,
    /// At which link.
    pub link: LinkId,
    /// Quantities by the paper's names (e, b, a, state, ignore, SumE, NumB, MaxE, ...), with their values.
    pub values: Vec<(&'static str, f64)>,
}

/// The backend's side of a state machine: the current time and the pending effects.
#[derive(Debug)]
pub struct Io<S: Scheme> {
    /// Now, ns.
    pub now_ns: Ns,
    /// While a packet comes to a hop, or comes to or leaves a node: the link that it came by; `None` at the host that it starts
    /// from. It says nothing in [`Hop::on_dequeue`](super::Hop::on_dequeue).
    pub came_by: Option<LinkId>,
    effects: Vec<Effect<S>>,
    trace: Option<Vec<UpdateRecord>>,
}

impl<S: Scheme> Default for Io<S> {
    fn default() -> Self {
        Io { now_ns: 0, came_by: None, effects: Vec::new(), trace: None }
    }
}

impl<S: Scheme> Io<S> {
    /// An `Io` that keeps what [`Io::trace`] is told.
    pub fn traced() -> Self {
        Io { trace: Some(Vec::new()), ..Io::default() }
    }

    /// Asks for a control message to be sent.
    pub fn ctl(&mut self, to: To, subflow: SubflowId, message: S::Ctl, class: Class, bytes: u32) {
        self.effects.push(Effect::Ctl { to, subflow, message, class, bytes });
    }

    /// Asks to be called at `at_ns`.
    pub fn timer(&mut self, timer: u32, at_ns: Ns) {
        self.effects.push(Effect::Timer { timer, at_ns });
    }

    /// Sets how fast a subflow sends: see [`Effect::Pace`].
    #[inline]
    pub fn pace(&mut self, subflow: SubflowId, rate_bps: Option<f64>, window_bytes: Option<u64>) {
        self.effects.push(Effect::Pace { subflow, rate_bps, window_bytes });
    }

    /// Holds the packets of `class` that wait before `link`, or lets them go: see [`Effect::Pause`].
    pub fn pause(&mut self, link: LinkId, class: Class, on: bool) {
        self.effects.push(Effect::Pause { link, class, on });
    }

    /// Notes an update if anyone watches.
    pub fn trace(&mut self, update: impl FnOnce(Ns) -> UpdateRecord) {
        if let Some(trace) = &mut self.trace {
            trace.push(update(self.now_ns));
        }
    }

    /// Whether effects are pending.
    #[inline]
    pub fn has_effects(&self) -> bool {
        !self.effects.is_empty()
    }

    /// Drains the pending effects.
    pub fn take_effects(&mut self) -> std::vec::Drain<'_, Effect<S>> {
        self.effects.drain(..)
    }

    /// The list of effects itself, for a backend that swaps it with an empty one of its own.
    #[inline]
    pub fn effects_mut(&mut self) -> &mut Vec<Effect<S>> {
        &mut self.effects
    }

    /// Drains the records traced since the last call.
    pub fn take_trace(&mut self) -> Vec<UpdateRecord> {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }
}
