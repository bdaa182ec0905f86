//! Link with a virtual queue, as counters without packets, so that the fluid model can use it too.

use super::{Floor, Often, SenderState, SozeArithmetic, SozeLaw};
use subak_core::Ns;

/// Parameters of the senders and links of `soze-virtual`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Virtual {
    /// Parameters of senders.
    pub law: SozeLaw,
    /// Fraction of a link's capacity at which its virtual queue drains.
    pub eta: f64,
    /// Time in which senders are to reduce a real queue by 63%, RTTs.
    pub empties_rtts: f64,
    /// Weight of the real queue in the signal, relative to the virtual queue.
    pub queue: f64,
    /// RTTs without data after which a link resets its virtual queue; 0: never.
    pub anew_rtts: f64,
}

impl Virtual {
    /// Defaults of the transport, with 2% of each link left free.
    pub const STANDARD: Virtual = Virtual {
        law: SozeLaw {
            alpha_bps: 0.0,
            beta_bps: 0.0,
            smallest_weight: 1.0,
            unit_flows: 400_000.0,
            p_ns: 0.0,
            least_p_ns: 0.0,
            integral_rtts: 3.0,
            k_ns: 3e3,
            m: 1.0,
            state: SenderState::Rate,
            often: Often::Packet,
            floor: Floor::Beta,
            start_weights: 1000.0,
            exact: true,
            arithmetic: SozeArithmetic::Float,
        },
        eta: 0.98,
        empties_rtts: 4.0,
        queue: 2.0,
        anew_rtts: 100.0,
    };

    /// Settings of a link's virtual queue in a network whose largest base RTT is `rtt_ns`.
    pub fn link(&self, rtt_ns: Ns) -> VirtualLink {
        let most_ns = self.law.k_ns + self.law.p_ns(rtt_ns);
        VirtualLink {
            eta: self.eta,
            queue: self.queue,
            k_ns: self.law.k_ns,
            empties_ns: self.empties_rtts * rtt_ns as f64,
            most_ns,
            start_ns: self.law.start_delay_ns(rtt_ns).min(most_ns),
            anew_ns: self.anew_rtts * rtt_ns as f64,
        }
    }
}

/// Settings of a link's virtual queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VirtualLink {
    eta: f64,
    queue: f64,
    k_ns: f64,
    empties_ns: f64,
    /// k + p, the largest virtual delay, ns.
    pub most_ns: f64,
    /// Initial virtual delay, ns.
    pub start_ns: f64,
    /// Time without data after which the virtual queue is reset, ns; 0: never.
    pub anew_ns: f64,
}

impl VirtualLink {
    /// The part of the real queueing delay `queued_ns` above k, ns.
    #[inline]
    fn excess_ns(&self, queued_ns: f64) -> f64 {
        (queued_ns - self.k_ns).max(0.0)
    }

    /// Virtual delay after `passed_ns` without arrivals, with a real queueing delay of `queued_ns`, ns.
    #[inline]
    pub fn drained_ns(&self, delay_ns: f64, passed_ns: f64, queued_ns: f64) -> f64 {
        let rate = (self.eta - self.excess_ns(queued_ns) / self.empties_ns).max(-1.0);
        (delay_ns - passed_ns * rate).clamp(0.0, self.most_ns)
    }

    /// Virtual delay after arrivals whose transmission takes `sent_ns`, ns.
    #[inline]
    pub fn filled_ns(&self, delay_ns: f64, sent_ns: f64) -> f64 {
        (delay_ns + sent_ns).min(self.most_ns)
    }

    /// The delay that the link signals, ns.
    #[inline]
    pub fn signal_ns(&self, delay_ns: f64, queued_ns: f64) -> f64 {
        delay_ns + self.queue * self.excess_ns(queued_ns)
    }
}
