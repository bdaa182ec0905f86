//! What can be due at a time, and who can ask for things.

use subak_core::{FlowId, LinkId};

/// Something that is due at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// A packet arrives at the far end of the link that it is on; the link that it goes on by.
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
    /// A hop's timer.
    HopTimer(LinkId, u32),
    /// The controller's timer.
    ControllerTimer(u32),
    /// The next of the changes that links were told to undergo.
    LinkChange(u32),
}

/// Whose wishes are being carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Source(FlowId),
    Sink(FlowId),
    Hop(LinkId),
    Controller,
}
