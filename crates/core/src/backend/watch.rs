//! Trace records of packets, and the trait of a watcher that receives them during a simulation.

use crate::scheme::{Blocks, Class, PacketKind, Way};
use crate::{FlowId, LinkId, Ns, SubflowId};
use std::fmt::Debug;

/// Kinds of events in trace records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketEvent {
    /// The packet arrived at the link's queue. If the queue is full, a `Dropped` record follows.
    Enqueued,
    /// The packet left the queue onto the link.
    Dequeued,
    /// The link's queue refused the packet, or dropped it later.
    Dropped,
    /// The packet was lost on the link, by a fault.
    Lost,
    /// The packet arrived over the last link of its path.
    Delivered,
    /// A control message between neighbours, such as a PFC pause frame, arrived at the hop before the link.
    Control,
}

impl PacketEvent {
    /// Name of the event in traces.
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

/// A packet at a link at the time of an event. Control messages between neighbours set only time, link and header.
#[derive(Debug)]
pub struct TraceRecord<'a> {
    /// Time of the event, ns.
    pub at_ns: Ns,
    /// Kind of event.
    pub event: PacketEvent,
    /// The link at which the event happened.
    pub link: LinkId,
    /// The packet's flow; `None` for messages of nodes and control frames.
    pub flow: Option<FlowId>,
    /// The packet's subflow. It determines the path.
    pub subflow: SubflowId,
    /// Data packet, ACK or control packet.
    pub kind: PacketKind,
    /// The packet's two ends and its direction.
    pub way: Way,
    /// Priority class.
    pub class: Class,
    /// Number of the segment that the packet carries or acknowledges.
    pub segment: u32,
    /// In ACKs: the SACK blocks, segments before `segment` that have arrived.
    pub blocks: Blocks,
    /// In ACKs: the first segment that the receiver lacks.
    pub cumulative: u32,
    /// Bytes on the wire.
    pub bytes: u32,
    /// Payload bytes of data.
    pub payload_bytes: u32,
    /// The ECN mark of a data packet, or its echo in an ACK.
    pub ecn: bool,
    /// Number of links that the packet has crossed.
    pub hop: u16,
    /// Time when the data packet left its source, ns.
    pub sent_ns: Ns,
    /// Total queueing delay so far, ns.
    pub waited_ns: Ns,
    /// Bytes in the link's queue. For [`PacketEvent::Enqueued`], without the packet itself.
    pub queued_bytes: u64,
    /// Packets in the link's queue.
    pub queued_packets: u64,
    /// The scheme's header, or its control message.
    pub header: &'a dyn Debug,
}

/// Receiver of trace records during a simulation.
pub trait Watcher: Send {
    /// Whether the watcher records events of packets of `flow` at `link` at this time.
    fn wants(&self, at_ns: Ns, flow: Option<FlowId>, link: LinkId) -> bool;
    /// Receives the trace record of one event.
    fn see(&mut self, record: &TraceRecord);
}

/// A subflow's pacing rate and congestion window, as last set by its source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaceView {
    /// Pacing rate on the wire, bit/s; `None` for no pacing.
    pub pace_bps: Option<f64>,
    /// Congestion window, payload bytes; `None` for no limit.
    pub window_bytes: Option<u64>,
    /// Payload bytes in flight.
    pub in_flight_bytes: u64,
}
