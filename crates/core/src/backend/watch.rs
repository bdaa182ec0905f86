//! Packet trace records and pacing rates, for a watcher of a simulation.

use crate::scheme::{Blocks, Class, PacketKind, Way};
use crate::{FlowId, LinkId, Ns, SubflowId};
use std::fmt::Debug;

/// The event of a trace record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketEvent {
    /// It came to the queue before the link. A queue that has no room drops it next.
    Enqueued,
    /// It left the queue onto the link.
    Dequeued,
    /// It was not let into the queue before the link, or was dropped there.
    Dropped,
    /// A fault took it on the link.
    Lost,
    /// It arrived over the link, the last of its way.
    Delivered,
    /// A control message between neighbours, such as a PFC pause frame, arrived at the hop before the link.
    Control,
}

impl PacketEvent {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            PacketEvent::Enqueued => "enqueue",
            PacketEvent::Dequeued => "dequeue",
            PacketEvent::Dropped => "drop",
            PacketEvent::Lost => "loss",
            PacketEvent::Delivered => "deliver",
            PacketEvent::Control => "control",
        }
    }
}

/// A packet at a link, as it was when something happened to it. Of a control message only time, link and header are set.
#[derive(Debug)]
pub struct TraceRecord<'a> {
    /// When.
    pub at_ns: Ns,
    /// The event.
    pub event: PacketEvent,
    /// At which link.
    pub link: LinkId,
    /// The packet's flow; `None` for messages of nodes and control frames.
    pub flow: Option<FlowId>,
    /// On which of the flow's subflows.
    pub subflow: SubflowId,
    /// Data, acknowledgement or control.
    pub kind: PacketKind,
    /// From where to where it goes.
    pub way: Way,
    /// Priority.
    pub class: Class,
    /// Segment that it carries or acknowledges.
    pub segment: u32,
    /// Of acknowledgements: the runs of segments before `segment` that have arrived.
    pub blocks: Blocks,
    /// Of acknowledgements: the first segment that the receiver lacks.
    pub cumulative: u32,
    /// Bytes on the wire.
    pub bytes: u32,
    /// Payload bytes of data.
    pub payload_bytes: u32,
    /// The mark, or its echo.
    pub ecn: bool,
    /// Links that it has crossed.
    pub hop: u16,
    /// When the data packet left its source.
    pub sent_ns: Ns,
    /// Time spent waiting in queues so far.
    pub waited_ns: Ns,
    /// Bytes that wait before the link; of a packet that comes, without its own.
    pub queued_bytes: u64,
    /// Packets that wait there.
    pub queued_packets: u64,
    /// The scheme's header, or its message.
    pub header: &'a dyn Debug,
}

/// Hears of packets while a simulation runs.
pub trait Watcher: Send {
    /// Whether it wants to hear of what happens to packets of `flow` at `link` now.
    fn wants(&self, at_ns: Ns, flow: Option<FlowId>, link: LinkId) -> bool;
    /// Something happened to one.
    fn see(&mut self, record: &TraceRecord);
}

/// A subflow's pacing rate and congestion window, as last set by its source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaceView {
    /// Rate on the wire, bit/s; `None` where none is set.
    pub pace_bps: Option<f64>,
    /// Payload bytes that may be in flight; `None` where nothing limits them.
    pub window_bytes: Option<u64>,
    /// Payload bytes that are in flight.
    pub in_flight_bytes: u64,
}
