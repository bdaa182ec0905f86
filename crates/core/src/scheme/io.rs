//! Effects: the outputs of a state machine, which its backend carries out.

use super::{Class, Scheme};
use crate::{FlowId, LinkId, NodeId, Ns, SubflowId};
use std::sync::Arc;

/// Destination of a control message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// Along the subflow's path to its sink.
    Sink,
    /// Along the subflow's reverse path to its source.
    Source,
    /// From a source or from a host's state machine across the network to the scheme's controller.
    Controller,
    /// To the source of this flow: from the controller across the network, from the state machine of the flow's host
    /// without delay.
    Flow(FlowId),
    /// From a source or sink to the state machine of its host, without delay.
    Host,
    /// From the controller across the network to the machine of this node.
    Node(NodeId),
    /// From a hop or a node to the hop before this link, at the link's other end: see [`Io::came_by`]. The message
    /// overtakes all queued packets and takes its transmission time on the reverse link, like a pause frame.
    Neighbour(LinkId),
}

/// A value that a hook of a user's scheme recorded: a point of a series of the results.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// Time of the hook.
    pub time_ns: Ns,
    /// Flow of the source or sink; `None` at a hop.
    pub flow: Option<FlowId>,
    /// Link of the hop; `None` at a source or sink.
    pub link: Option<LinkId>,
    /// Subflow, if the hook gave one.
    pub subflow: Option<SubflowId>,
    /// Name of the series.
    pub name: Arc<str>,
    /// A finite number.
    pub value: f64,
}

/// An action that a state machine requests of its backend.
#[derive(Debug, Clone)]
pub enum Effect<S: Scheme> {
    /// Send a control message along a subflow.
    Ctl {
        /// Destination.
        to: To,
        /// The subflow whose path the message takes.
        subflow: SubflowId,
        /// The message.
        message: S::Ctl,
        /// Priority class.
        class: Class,
        /// Size on the wire, bytes.
        bytes: u32,
    },
    /// Call `on_timer(timer)` at `at_ns`. Timers cannot be cancelled: a machine must ignore outdated ones.
    Timer {
        /// Number of the timer, chosen by the machine.
        timer: u32,
        /// Time, ns.
        at_ns: Ns,
    },
    /// Set the subflow's pacing rate on the wire (`None`: no pacing) and congestion window (`None`: no limit). Rate 0
    /// stops the subflow.
    Pace {
        /// The subflow.
        subflow: SubflowId,
        /// Pacing rate on the wire, bit/s.
        rate_bps: Option<f64>,
        /// Congestion window, payload bytes.
        window_bytes: Option<u64>,
    },
    /// Pause or resume the queued packets of a class at a link. A hop pauses its own link, a node the links that
    /// leave it.
    Pause {
        /// The link; ignored for a hop, which pauses its own.
        link: LinkId,
        /// The class that is paused or resumed.
        class: Class,
        /// True to pause, false to resume.
        on: bool,
    },
}

/// A link's update of a control message, as named numbers for the traces of the round-based backend.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateRecord {
    /// Time, ns.
    pub at_ns: Ns,
    /// The message's flow.
    pub flow: FlowId,
    /// The link that updated the message.
    pub link: LinkId,
    /// Values by their names in the PERC thesis (e, b, a, state, ignore, SumE, NumB, MaxE, ...).
    pub values: Vec<(&'static str, f64)>,
}

/// The backend's side of a state machine: the current time and the pending effects.
#[derive(Debug)]
pub struct Io<S: Scheme> {
    /// Current time, ns.
    pub now_ns: Ns,
    /// The link by which the current packet arrived at a hop or node; `None` at the packet's first host. Undefined in
    /// [`Hop::on_dequeue`](super::Hop::on_dequeue).
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
    /// An `Io` that keeps the records passed to [`Io::trace`].
    pub fn traced() -> Self {
        Io { trace: Some(Vec::new()), ..Io::default() }
    }

    /// Requests that a control message is sent.
    pub fn ctl(&mut self, to: To, subflow: SubflowId, message: S::Ctl, class: Class, bytes: u32) {
        self.effects.push(Effect::Ctl { to, subflow, message, class, bytes });
    }

    /// Requests a call of `on_timer` at `at_ns`.
    pub fn timer(&mut self, timer: u32, at_ns: Ns) {
        self.effects.push(Effect::Timer { timer, at_ns });
    }

    /// Sets pacing rate and congestion window of a subflow: see [`Effect::Pace`].
    #[inline]
    pub fn pace(&mut self, subflow: SubflowId, rate_bps: Option<f64>, window_bytes: Option<u64>) {
        self.effects.push(Effect::Pace { subflow, rate_bps, window_bytes });
    }

    /// Pauses or resumes the packets of `class` that are queued for `link`: see [`Effect::Pause`].
    pub fn pause(&mut self, link: LinkId, class: Class, on: bool) {
        self.effects.push(Effect::Pause { link, class, on });
    }

    /// Records an update if tracing is on.
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

    /// The list of pending effects, for a backend that swaps it with an empty list.
    #[inline]
    pub fn effects_mut(&mut self) -> &mut Vec<Effect<S>> {
        &mut self.effects
    }

    /// Drains the records since the last call.
    pub fn take_trace(&mut self) -> Vec<UpdateRecord> {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }
}
