//! A logical process (LP) of a parallel run, and its messages to others.

use super::cut::Cut;
use super::pfc::ControlFrame;
use crate::event::ArrivalTurn;
use std::sync::Arc;
use subak_core::scheme::{Packet, Scheme};
use subak_core::{FlowId, LinkId, NodeId, Ns};

/// A message to another logical process.
pub(crate) enum LpMessage<S: Scheme> {
    /// Arrival of a packet: time, packet, and the fields of [`Event::Arrive`](crate::event::Event::Arrive).
    Packet(Ns, Packet<S>, (LinkId, u16, ArrivalTurn)),
    /// Arrival of a control frame at the upstream end of a link: time, frame, link, and number on the carrying
    /// link.
    ControlFrame(Ns, ControlFrame<S::Ctl>, LinkId, u8),
    /// Completion of a flow.
    Finished(FlowId),
}

/// Identity of the logical process that a simulation runs, and its outgoing mailboxes.
pub(crate) struct LogicalProcess<S: Scheme> {
    /// Number of the logical process.
    pub number: usize,
    /// Partition of the network.
    pub cut: Arc<Cut>,
    /// Outgoing messages by receiving logical process.
    pub out: Vec<Vec<LpMessage<S>>>,
    /// Earliest arrival time of the messages in `out`, ns.
    pub first_ns: Ns,
    /// Number of packets and control frames sent to other logical processes.
    pub crossed: u64,
    /// Flows with a source in this logical process that were torn down since the last query.
    pub torn_down: Vec<FlowId>,
}

impl<S: Scheme> LogicalProcess<S> {
    /// A logical process with empty mailboxes.
    pub fn new(number: usize, cut: Arc<Cut>) -> Self {
        let out = (0..cut.parts).map(|_| Vec::new()).collect();
        LogicalProcess { number, cut, out, first_ns: Ns::MAX, crossed: 0, torn_down: Vec::new() }
    }

    /// Whether the node belongs to this logical process.
    pub fn has(&self, node: Option<NodeId>) -> bool {
        node.is_some_and(|node| usize::from(self.cut.of[node]) == self.number)
    }

    /// Posts a message to the logical process of node `to`.
    pub fn post(&mut self, to: Option<NodeId>, arrives_ns: Ns, message: LpMessage<S>) {
        let to = self.cut.of[to.expect("where a network is cut, links have ends")];
        self.first_ns = self.first_ns.min(arrives_ns);
        self.crossed += 1;
        self.out[usize::from(to)].push(message);
    }

    /// Posts to every other logical process (LP) that the flow has finished in this LP.
    pub fn tell_finished(&mut self, flow: FlowId) {
        let here = self.number;
        let others = self.out.iter_mut().enumerate().filter(|&(to, _)| to != here);
        others.for_each(|(_, out)| out.push(LpMessage::Finished(flow)));
    }
}
