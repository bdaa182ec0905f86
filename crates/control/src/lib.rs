//! The core of Flowtune's control plane: the [`Allocator`] and an [`Endpoint`], as state machines without socket or
//! clock (Perry et al., NSDI 2017, sections 2, 3, 5.3 and 6). The packet simulator and the daemon call the same
//! functions.
//!
//! An endpoint announces flowlets that start and end; the allocator sends rates. Each side stores the state that the
//! other should have, and what of it is ACKed; a datagram carries the difference. After a loss the latest state is
//! sent, not the lost content (section 5.1). A datagram older than an accepted one is refused and counts as lost.
//! Duplicate, late and reordered datagrams therefore change nothing. An epoch identifies restarts: state of an
//! earlier epoch is void.
//!
//! Rates have a lease. It ends a lease time plus one RTT after the latest time at which the allocator was alive for
//! certain: the send time of the endpoint's latest datagram that the allocator ACKed. After the lease the endpoint's
//! own congestion control continues, starting from the last rate (section 6). Rates of an allocator that failed, or
//! that receives no datagrams of the endpoint any more, are thus valid for at most a lease and an RTT. An allocator
//! sends no rates for that long after its start, since rates of an earlier one may be valid. It retains the flowlets
//! of a silent endpoint for longer than that.

mod allocator;
mod authenticated;
mod channel;
mod endpoint;
mod known;
mod pace;
mod paths;
mod peer;
mod rtt;
mod serving;

pub use allocator::{Allocator, AllocatorCounters, FlowletStatus, LinkLowering, PeerState};
pub use authenticated::AuthenticatedEndpoint;
pub use endpoint::Endpoint;
pub use paths::{BigSwitch, Ecmp, Paths, Turns};
pub use serving::{Allocation, AllocationPlan, AllocationTick, AnnouncedFlow, DATAGRAM_HEADERS, DATAGRAM_MTU};
use subak_core::Ns;

/// Price update of the allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriceLaw {
    /// Newton-Exact-Diagonal (NED), the paper's.
    Ned,
    /// NED with restarted acceleration, our variant: it needs half as many iterations as NED in the median, and a sixth
    /// as many in the worst case.
    Accelerated,
}

/// Settings shared by allocator and endpoints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ControlSettings {
    /// Price update of the allocator.
    pub law: PriceLaw,
    /// Step size gamma of NED; `None` for the largest safe one on the network's paths.
    pub gamma: Option<f64>,
    /// The policy's alpha; 1 is proportional fairness.
    pub alpha: f64,
    /// Number of normalizations (F-NORM) after an iteration. The paper has one.
    pub passes: usize,
    /// Relative change above which a rate is sent. Capacities are reduced by this fraction.
    pub threshold: f64,
    /// Fraction of each link reserved for unscheduled traffic and messages.
    pub reserve: f64,
    /// Largest fraction of a link that unscheduled traffic takes from flowlets.
    pub most_unscheduled: f64,
    /// Lease, ns: validity of rates after the last proof that the allocator was alive, plus an RTT.
    pub lease_ns: Ns,
    /// Time for which the allocator retains the flowlets of a silent endpoint, plus an RTT, ns. This time is longer
    /// than the lease: rates must have expired before they are reallocated.
    pub patience_ns: Ns,
    /// Interval of liveness probes of an endpoint that sends, ns.
    pub beat_ns: Ns,
    /// Interval of liveness probes of an endpoint without flowlets, ns; 0 for no probes.
    pub idle_beat_ns: Ns,
    /// Minimum RTO of a datagram, ns. The RTO is estimated from the RTT (RFC 6298), and doubles with each consecutive
    /// timeout.
    pub rto_min_ns: Ns,
    /// Upper bound of the doubled RTO, ns; a longer RTT still has a longer RTO.
    pub rto_max_ns: Ns,
    /// Largest delay of an ACK, ns. During the delay the ACK may join a datagram that carries changes of flowlets or rates.
    pub ack_delay_ns: Ns,
    /// Largest size of a datagram, bytes: with its headers it fits in a packet of 1500.
    pub most_bytes: usize,
    /// Header bytes of a datagram on a link; counted by the rate limit.
    pub frame_bytes: usize,
    /// Largest number of flowlets of an endpoint; the host's own congestion control decides the rates of further
    /// flowlets.
    pub most_flowlets: usize,
    /// Largest weight that a flowlet may request.
    pub most_weight: f64,
    /// Smallest weight that a flowlet may request: connections that share one weight have small parts of it.
    pub least_weight: f64,
    /// Time before the last byte, at the present rate, at which the end of a flowlet of known size is announced, ns.
    pub ahead_ns: Ns,
}

impl ControlSettings {
    /// Defaults for RTTs of some 20 us, an iteration each 10 us, and hundreds of endpoints. Threshold and minimum RTO are the
    /// paper's; a lease lasts 200 iterations.
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
        idle_beat_ns: 0,
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

    /// The settings with another lease, and with patience and probe interval in proportion.
    #[must_use]
    pub fn with_lease(self, lease_ns: Ns) -> Self {
        ControlSettings { lease_ns, patience_ns: 2 * lease_ns, beat_ns: (lease_ns / 4).max(1), ..self }
    }

    /// Defaults for a number of endpoints. One core needs about 4 us per endpoint and round of messages. The lease must
    /// exceed several rounds, otherwise rates expire before they are renewed.
    pub fn for_endpoints(endpoints: usize) -> Self {
        ControlSettings::DEFAULT.with_lease(ControlSettings::DEFAULT.lease_ns.max(endpoints as Ns * 8_000))
    }

    /// Defaults for hosts, where programs may wait some milliseconds for a processor.
    pub fn for_hosts(lease_ns: Ns) -> Self {
        ControlSettings {
            rto_min_ns: 5_000_000,
            ack_delay_ns: 1_000_000,
            ahead_ns: 0,
            idle_beat_ns: 1_000_000_000,
            ..ControlSettings::DEFAULT.with_lease(lease_ns)
        }
    }

    /// Fraction of each link that the allocator may allocate.
    pub fn share(&self) -> f64 {
        1.0 - self.threshold - self.reserve
    }
}

impl Default for ControlSettings {
    fn default() -> Self {
        ControlSettings::DEFAULT
    }
}
