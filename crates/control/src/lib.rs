//! The core of Flowtune's control plane: the [`Allocator`] and an [`Endpoint`], as state machines without socket or clock
//! (Perry et al., NSDI 2017, sections 2, 3, 5.3 and 6). The packet simulator and the daemon call the same functions.
//!
//! An endpoint tells of flowlets that start and end, the allocator of rates. Both keep what the other should know, and
//! what it is known to know; a datagram carries the difference. What a lost one said is said again in its newest form, never
//! repeated (section 5.1). A datagram older than one that was taken is not taken, and counts as lost. So doubled, late and
//! reordered datagrams change nothing. An epoch tells restarts: what the other side knew before does not count.
//!
//! Rates have a lease. It runs from the time at which the allocator was there for sure: when the endpoint's latest datagram
//! went that the allocator acknowledged, and one round trip later. Then the endpoint's own congestion control takes over,
//! from the last rate (section 6). So rates of an allocator that is gone, or that does not hear the endpoint any more, hold
//! for a lease and a round trip at most. An allocator hands out nothing for that long after its start, since rates of one
//! before it may still hold, and keeps the flowlets of a silent endpoint for longer than that.

mod allocator;
mod authenticated;
mod channel;
mod endpoint;
mod known;
mod pace;
mod paths;
mod peer;
mod rtt;

pub use allocator::{Allocator, AllocatorCounters, FlowletStatus, LinkLowering, PeerState};
pub use authenticated::AuthenticatedEndpoint;
pub use endpoint::Endpoint;
pub use paths::{BigSwitch, Ecmp, Paths, Turns};
use subak_core::Ns;

/// How the allocator's prices move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceLaw {
    /// Newton-Exact-Diagonal, the paper's.
    Ned,
    /// NED with restarted acceleration, ours: it needs half the iterations at the median, and a sixth at worst.
    Accelerated,
}

/// Settings shared by allocator and endpoints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ControlSettings {
    /// How prices move.
    pub law: PriceLaw,
    /// Step of NED, in shares of Newton's; `None` for the largest that is safe on the paths there are.
    pub gamma: Option<f64>,
    /// The policy's alpha; 1 is the logarithm.
    pub alpha: f64,
    /// How often rates are normalized (F-NORM) after an iteration. The paper's is once.
    pub passes: usize,
    /// A rate is told once it differs from the one told by more than this share. Capacities are reduced by it.
    pub threshold: f64,
    /// The share of each link that is left to traffic not scheduled yet, and to messages.
    pub reserve: f64,
    /// The share of a link that traffic which nobody schedules takes from the rest, at most.
    pub most_unscheduled: f64,
    /// How long rates hold after the allocator was there for sure, beside a round trip.
    pub lease_ns: Ns,
    /// How long the allocator keeps the flowlets of an endpoint that is silent, beside a round trip. Longer than the lease: the
    /// rates must have run out before others get theirs.
    pub patience_ns: Ns,
    /// An endpoint that sends asks the allocator so often, at least, whether it is there.
    pub beat_ns: Ns,
    /// The least time after which a datagram that was not acknowledged is held lost. It follows the round trip (RFC 6298), and
    /// doubles with each timeout in a row.
    pub rto_min_ns: Ns,
    /// The longest that doubling makes of it; a longer round trip has a longer one.
    pub rto_max_ns: Ns,
    /// An acknowledgement waits for so long, at most, for news to go with.
    pub ack_delay_ns: Ns,
    /// Bytes of a datagram, at most: they fit a packet of 1500 with its headers.
    pub most_bytes: usize,
    /// Bytes around a datagram on a link, where messages are paced.
    pub frame_bytes: usize,
    /// Flowlets of an endpoint that the allocator knows, at most; others are left to the endpoint's own congestion control.
    pub most_flowlets: usize,
    /// The largest weight that a flowlet may ask for.
    pub most_weight: f64,
    /// The least weight that a flowlet has: connections that share a weight have small ones.
    pub least_weight: f64,
    /// A known size ends a flowlet so long ahead of its last byte, at its present rate: what the message needs.
    pub ahead_ns: Ns,
}

impl ControlSettings {
    /// For round trips of some 20 us, an iteration each 10 us, and endpoints by the hundred. Threshold and least timeout are the
    /// paper's; leases are of 200 iterations.
    pub const DEFAULT: ControlSettings = ControlSettings {
        law: PriceLaw::Accelerated,
        gamma: None,
        alpha: 1.0,
        passes: 1,
        threshold: 0.01,
        reserve: 0.03,
        most_unscheduled: 0.95,
        lease_ns: 2_000_000,
        patience_ns: 4_000_000,
        beat_ns: 500_000,
        rto_min_ns: 20_000,
        rto_max_ns: 1_000_000_000,
        ack_delay_ns: 10_000,
        most_bytes: 1400,
        frame_bytes: 58,
        most_flowlets: 1 << 16,
        most_weight: 1024.0,
        least_weight: 1e-6,
        ahead_ns: 10_000,
    };

    /// The same with another lease, and what follows from it.
    #[must_use]
    pub fn with_lease(self, lease_ns: Ns) -> Self {
        ControlSettings { lease_ns, patience_ns: 2 * lease_ns, beat_ns: (lease_ns / 4).max(1), ..self }
    }

    /// The defaults for so many endpoints: one core takes some 4 us for each in a round, and a lease has to be longer than several
    /// rounds, or rates end before the next are told.
    pub fn for_endpoints(endpoints: usize) -> Self {
        ControlSettings::DEFAULT.with_lease(ControlSettings::DEFAULT.lease_ns.max(endpoints as Ns * 8_000))
    }

    /// For hosts, whose programs wait for their turn on a processor: some milliseconds now and then.
    pub fn for_hosts(lease_ns: Ns) -> Self {
        ControlSettings {
            rto_min_ns: 5_000_000,
            ack_delay_ns: 1_000_000,
            ahead_ns: 0,
            ..ControlSettings::DEFAULT.with_lease(lease_ns)
        }
    }

    /// The share of each link that is handed out.
    pub fn share(&self) -> f64 {
        1.0 - self.threshold - self.reserve
    }
}

impl Default for ControlSettings {
    fn default() -> Self {
        ControlSettings::DEFAULT
    }
}
