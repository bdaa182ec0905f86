//! Loss detection, and a source's feedback on its packets.

use crate::{Ns, SubflowId};
use std::fmt::Debug;

/// Loss detection and retransmission by the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    /// A segment is lost once one sent this many transmissions later is acknowledged; `None`: only timeouts tell.
    pub reorder: Option<u32>,
    /// With `reorder`, a segment is lost only once one sent a timeout later is acknowledged, however many overtook it (as RFC
    /// 8985, with a window as wide as that): the packets of the flow take several paths.
    pub patient: bool,
    /// Whether the last segment is sent once more after two round trips of silence, before the timeout (RFC 8985).
    pub probe: bool,
    /// Smallest retransmission timeout, ns; it doubles at each timeout in a row. 0: the round trip over the path when all
    /// buffers on it, out and back, are full, and then the largest is at least eight times that.
    pub rto_min_ns: Ns,
    /// Both timeouts are at least so many base RTTs of the path.
    pub rto_rtts: u32,
    /// Largest retransmission timeout, ns. Equal to the smallest for a constant timeout.
    pub rto_max_ns: Ns,
    /// Whether the receiver drops what comes out of order, says so once for each gap, and the sender sends all again from there
    /// (go-back-N, as in RoCE NICs). Acknowledgements of later segments then tell nothing.
    pub go_back: bool,
    /// Whether a timeout holds all lost that is under way (RFC 5681 and 6298), not only what is older than a round trip
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
            rto_max_ns: 100_000_000,
            go_back: false,
            timeout_loses_all: false,
        }
    }
}

/// Feedback to a source with every ACK.
#[derive(Debug, Clone, Copy)]
pub struct Ack<D> {
    /// Which of the flow's subflows.
    pub subflow: SubflowId,
    /// Payload bytes acknowledged for the first time.
    pub acked_bytes: u64,
    /// Time since the acknowledged packet was sent, ns.
    pub rtt_ns: Ns,
    /// Whether the data packet was marked on its way.
    pub ecn: bool,
    /// Payload bytes sent and neither acknowledged nor given up.
    pub in_flight_bytes: u64,
    /// Payload bytes of the flow not acknowledged yet; `u64::MAX` for a flow without end.
    pub remaining_bytes: u64,
    /// Segment that this acknowledges.
    pub segment: u32,
    /// Segments sent so far for the first time: the next one's number.
    pub next_segment: u32,
    /// The scheme's header, as the sink returned it.
    pub data: D,
}

/// The signal that marked a segment lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossKind {
    /// Later segments were acknowledged.
    Reordered,
    /// Nothing was acknowledged for a retransmission timeout.
    Timeout,
    /// The receiver asked to go back ([`Recovery::go_back`]).
    OutOfOrder,
}

/// Feedback to a source about segments marked lost. The backend retransmits them as window and pacing rate allow.
#[derive(Debug, Clone, Copy)]
pub struct Loss {
    /// Which of the flow's subflows.
    pub subflow: SubflowId,
    /// The signal that marked it lost.
    pub kind: LossKind,
    /// The first lost segment.
    pub segment: u32,
    /// Segments sent so far for the first time.
    pub next_segment: u32,
    /// Payload bytes in flight, the lost ones no longer counted.
    pub in_flight_bytes: u64,
}
