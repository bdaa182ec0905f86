//! The core of Flowtune's control plane: the [`Allocator`] and an [`Endpoint`], as state machines without socket or clock
//! (Perry et al., NSDI 2017, sections 2, 3, 5.3 and 6). The packet simulator and the daemon call the same functions.
//!
//! An endpoint tells of flowlets that start and end, the allocator of rates. Both keep what the other should know, and
//! what it is known to know; a datagram carries the difference. What a lost one said is said again in its newest form, never
//! repeated (section 5.1). A datagram older than one that was taken is not taken, and counts as lost. So doubled, late and
//! reordered datagrams change nothing. An epoch tells restarts: what the other side knew before does not count.
//!
//! Rates have a lease: they hold until nothing new was heard from the allocator for that long. Then the endpoint's own
//! congestion control takes over, from the last rate (section 6). After its start the allocator hands out nothing for a
//! lease, since rates of one before it may still hold.

mod allocator;
mod channel;
mod endpoint;
mod paths;
mod peer;

pub use allocator::{Allocator, Counters};
pub use endpoint::Endpoint;
pub use paths::{BigSwitch, Ecmp, Paths, Turns};
use subak_core::Ns;

/// How the allocator's prices move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Law {
    /// Newton-Exact-Diagonal, the paper's.
    Ned,
    /// NED with restarted acceleration, ours: it needs half the iterations at the median, and a sixth at worst.
    Accelerated,
}

/// What both sides agree on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// How prices move.
    pub law: Law,
    /// Step of NED, in shares of Newton's; `None` for the largest that is safe on the paths there are.
    pub gamma: Option<f64>,
    /// The policy's alpha; 1 is the logarithm.
    pub alpha: f64,
    /// A rate is told once it differs from the one told by more than this share. Capacities are reduced by it.
    pub threshold: f64,
    /// The share of each link that is left to traffic not scheduled yet, and to messages.
    pub reserve: f64,
    /// How long rates hold after the allocator was last heard.
    pub lease_ns: Ns,
    /// How long the allocator keeps the flowlets of an endpoint that is silent. Longer than the lease: the rates must have
    /// run out before others get theirs.
    pub patience_ns: Ns,
    /// Silence after which either side sends a datagram even if it has nothing to say.
    pub beat_ns: Ns,
    /// A datagram that was not acknowledged for so long is lost. The time doubles with each loss in a row.
    pub rto_min_ns: Ns,
    /// The longest that doubling makes of it.
    pub rto_max_ns: Ns,
    /// Records in a datagram, at most: with 200 the largest fits a packet of 1500 bytes but for starts.
    pub most_records: usize,
    /// Flowlets of an endpoint that the allocator knows, at most; others are left to the endpoint's own congestion control.
    pub most_flowlets: usize,
    /// The largest weight that a flowlet may ask for, and one over it the least.
    pub most_weight: f64,
    /// A known size ends a flowlet so long ahead of its last byte, at its present rate: what the message needs.
    pub ahead_ns: Ns,
}

impl Settings {
    /// The share of each link that is handed out.
    pub fn share(&self) -> f64 {
        1.0 - self.threshold - self.reserve
    }
}

impl Default for Settings {
    /// For round trips of some 20 us and an iteration each 10 us. Threshold and timeouts are the paper's; leases are of 200
    /// iterations.
    fn default() -> Self {
        Settings {
            law: Law::Accelerated,
            gamma: None,
            alpha: 1.0,
            threshold: 0.01,
            reserve: 0.03,
            lease_ns: 2_000_000,
            patience_ns: 4_000_000,
            beat_ns: 500_000,
            rto_min_ns: 20_000,
            rto_max_ns: 30_000,
            most_records: 200,
            most_flowlets: 1 << 16,
            most_weight: 1024.0,
            ahead_ns: 10_000,
        }
    }
}
