//! The handshake before a flow's first data: SYNs sum up the prices of the paths, and their answers bring them to the
//! source (NUMFabric, footnote 4, and the authors' simulator).

use subak_core::scheme::{FlowInfo, Param, PathInfo};
use subak_core::{Ns, SubflowId};

/// Parameter `handshake` of optimizers with prices.
pub const HANDSHAKE: Param = Param::flag(
    "handshake",
    false,
    "a flow's data follow a handshake, whose answer brings the price of its path: one RTT more",
);

/// Timer that repeats SYNs without an answer.
pub const SYN_TIMER: u32 = u32::MAX - 2;

/// Size of a SYN and of its answer on the wire, bytes.
pub(super) const SYN_BYTES: u32 = 64;
/// Time until a SYN is repeated: in base RTTs, and at least, ns.
const REPEAT_RTTS: Ns = 4;
const REPEAT_NS: Ns = 1_000_000;

/// A SYN, or its answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Syn {
    /// Time at which the source sent it, ns.
    pub sent_ns: Ns,
    /// Sum of the prices of the links crossed.
    pub path_price: f64,
    /// Number of links crossed.
    pub path_len: u8,
}

/// A handshake of a source, until all subflows have an answer.
#[derive(Debug)]
pub(super) struct Handshake {
    /// Subflows without an answer.
    pub open: Vec<SubflowId>,
    /// Payload bytes of the flow; `u64::MAX` for an unlimited flow.
    pub size_bytes: u64,
    /// Paths to which subflows changed meanwhile: the transport has not started.
    pub rerouted: Vec<(SubflowId, PathInfo)>,
    pub repeat_ns: Ns,
}

impl Handshake {
    pub fn new(flow: &FlowInfo) -> Self {
        Handshake {
            open: flow.paths.ids().collect(),
            size_bytes: flow.size_bytes.unwrap_or(u64::MAX),
            rerouted: Vec::new(),
            repeat_ns: (REPEAT_RTTS * flow.rtt_ns).max(REPEAT_NS),
        }
    }

    /// Notes the answer for subflow `k`; returns whether it is the first.
    pub fn answer(&mut self, k: SubflowId) -> bool {
        let before = self.open.len();
        self.open.retain(|open| *open != k);
        self.open.len() < before
    }
}
