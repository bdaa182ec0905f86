//! Loss detection and retransmission, and a source's feedback about its packets.

use crate::{Ns, SubflowId};
use std::fmt::Debug;

/// Loss detection and retransmission by the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// Reordering threshold: a segment is marked lost when one sent this many transmissions later is ACKed; `None`:
    /// only the RTO detects loss.
    pub reorder: Option<u32>,
    /// With `reorder`: mark a segment lost only when one sent an RTO later is ACKed, however many segments overtook
    /// it. For flows over several paths and for queues that reorder (as RFC 8985 with a reordering window of one RTO).
    pub patient: bool,
    /// Whether a tail loss probe is sent after two RTTs without an ACK (RFC 8985).
    pub probe: bool,
    /// Minimum RTO, ns. The RTO doubles at each consecutive timeout. 0: the RTT over the path with all buffers full
    /// in both directions; the maximum RTO is then at least eight times that.
    pub rto_min_ns: Ns,
    /// Lower bound of minimum and maximum RTO, in base RTTs of the path.
    pub rto_rtts: u32,
    /// Maximum RTO, ns; equal to the minimum for a constant RTO. By default 60 s (RFC 6298, 2.5).
    pub rto_max_ns: Ns,
    /// Go-back-N, as in RoCE NICs: the receiver drops packets out of order and reports each gap once, and the sender
    /// retransmits from the gap on. ACKs of later segments are ignored.
    pub go_back: bool,
    /// Whether a timeout marks all segments in flight as lost (RFC 5681 and 6298), not only those older than an RTT
    /// (RFC 8985, section 6.3).
    pub timeout_loses_all: bool,
}

impl Default for Recovery {
    fn default() -> Self {
        Recovery {
            reorder: Some(3),
            patient: false,
            probe: true,
            rto_min_ns: 200_000,
            rto_rtts: 0,
            rto_max_ns: 60_000_000_000,
            go_back: false,
            timeout_loses_all: false,
        }
    }
}

/// Feedback to a source with every ACK.
#[derive(Debug, Clone, Copy)]
pub struct Ack<D> {
    /// The subflow of the flow.
    pub subflow: SubflowId,
    /// Payload bytes that this ACK acknowledges for the first time.
    pub acked_bytes: u64,
    /// RTT of the ACKed packet, ns.
    pub rtt_ns: Ns,
    /// Whether the data packet carried an ECN mark.
    pub ecn: bool,
    /// Payload bytes in flight: neither ACKed nor marked lost.
    pub in_flight_bytes: u64,
    /// Payload bytes of the flow not yet ACKed; `u64::MAX` for an endless flow.
    pub remaining_bytes: u64,
    /// Number of the ACKed segment.
    pub segment: u32,
    /// Number of the next new segment.
    pub next_segment: u32,
    /// The scheme's header, as returned by the sink.
    pub data: D,
}

/// The signal that marked a segment lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossKind {
    /// ACKs of later segments.
    Reordered,
    /// The RTO expired without an ACK.
    Timeout,
    /// The receiver reported a gap ([`Recovery::go_back`]).
    OutOfOrder,
}

/// Feedback to a source about segments marked lost. The backend retransmits them as window and pacing rate allow.
#[derive(Debug, Clone, Copy)]
pub struct Loss {
    /// The subflow of the flow.
    pub subflow: SubflowId,
    /// The signal that marked the segments lost.
    pub kind: LossKind,
    /// Number of the first lost segment.
    pub segment: u32,
    /// Number of the next new segment.
    pub next_segment: u32,
    /// Payload bytes in flight, without the lost ones.
    pub in_flight_bytes: u64,
}
