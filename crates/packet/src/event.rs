//! What can be due at a time, and who can ask for things.

use crate::wheel::Tied;
use subak_core::{FlowId, LinkId, NodeId};

/// Something that is due at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// A packet arrives at the far end of this link.
    Arrive(u32, LinkId),
    /// A link may take the next packet from its queue; where it was cheap to know, the packet that this will be.
    Wake(LinkId, u32),
    /// A subflow's pace allows the next packet.
    Pace(u32),
    /// A subflow's retransmission timeout may have run out.
    Timeout(u32),
    /// A flow starts.
    Start(FlowId),
    /// A flow is told to stop.
    Stop(FlowId),
    /// A source's timer.
    SourceTimer(FlowId, u32),
    /// A sink's timer.
    SinkTimer(FlowId, u32),
    /// A hop's timer, and in which of its lives it was set.
    HopTimer(LinkId, u32, u8),
    /// The timer of a node's machine.
    NodeTimer(NodeId, u32, u8),
    /// The controller's timer.
    ControllerTimer(u32, u8),
    /// A letter between neighbours arrives at the hop before this link.
    Letter(u32, LinkId),
    /// The controller hears of that change.
    LinkNews(u32),
    /// A machine is restarted: the number of the fault.
    Restart(u32),
    /// The next of the changes that links were told to undergo.
    LinkChange(u32),
}

/// Whose wishes are being carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Source(FlowId),
    Sink(FlowId),
    Hop(LinkId),
    Node(NodeId),
    Controller,
}

impl Tied for Event {
    /// By link, flow or node within a kind. A link brings at most one packet at a time, a machine has one timer of a name.
    #[inline]
    fn tie(&self) -> (u8, u32, u32) {
        match *self {
            Event::LinkChange(k) => (0, k, 0),
            Event::Restart(k) => (1, k, 0),
            Event::Letter(letter, link) => (2, link, letter),
            Event::Arrive(packet, link) => (3, link, packet),
            Event::HopTimer(link, timer, _) => (4, link, timer),
            Event::NodeTimer(node, timer, _) => (5, node, timer),
            Event::LinkNews(k) => (6, 0, k),
            Event::ControllerTimer(timer, _) => (6, 1, timer),
            Event::Wake(link, _) => (7, link, 0),
            Event::Stop(flow) => (8, flow, 0),
            Event::Start(flow) => (9, flow, 0),
            Event::SourceTimer(flow, timer) => (10, flow, timer),
            Event::SinkTimer(flow, timer) => (11, flow, timer),
            Event::Timeout(sub) => (12, sub, 0),
            Event::Pace(sub) => (13, sub, 0),
        }
    }
}
