//! Counters between the end of the warm-up and the end of the duration, as the difference of two readings.

use crate::runs::passing::Totals;
use std::collections::BTreeMap;
use subak_core::backend::{Backend, LinkView};
use subak_core::{IdVec, LinkId, Ns};

/// Counters of a run at a point in time, or between two points in time.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct WindowCounts {
    /// Time of the reading, or time between two readings, ns.
    pub time_ns: Ns,
    /// Counters of each link.
    pub links: IdVec<LinkId, LinkView>,
    /// Retransmitted data packets, over all flows.
    pub retransmissions: u64,
    /// Data packets dropped or lost, over all flows.
    pub drops: u64,
    /// Histogram of queueing delay: packets by the upper edge of the bin, ns.
    pub waits: BTreeMap<Ns, u64>,
}

impl WindowCounts {
    /// Reads the counters of the first `links` links, and those of all `flows`.
    pub fn now(backend: &dyn Backend, links: usize, flows: &Totals) -> Self {
        WindowCounts {
            time_ns: backend.now_ns(),
            links: LinkId::first(links).map(|l| backend.link(l)).collect(),
            retransmissions: flows.retransmissions,
            drops: flows.drops,
            waits: backend.waits_ns().into_iter().collect(),
        }
    }

    /// Difference to `before`. Maximum queue lengths are those of `self`, since the backend reset them at
    /// `before`.
    pub fn since(mut self, before: &WindowCounts) -> Self {
        self.time_ns -= before.time_ns;
        self.retransmissions -= before.retransmissions;
        self.drops -= before.drops;
        for (now, then) in self.links.iter_mut().zip(&before.links) {
            now.data_bytes -= then.data_bytes;
            now.ack_bytes -= then.ack_bytes;
            now.ctl_bytes -= then.ctl_bytes;
            now.dropped_packets -= then.dropped_packets;
            now.dropped_bytes -= then.dropped_bytes;
            now.lost_packets -= then.lost_packets;
            now.pauses -= then.pauses;
            now.paused_ns -= then.paused_ns;
        }
        for (wait_ns, packets) in &before.waits {
            if let Some(n) = self.waits.get_mut(wait_ns) {
                *n -= packets;
            }
        }
        self.waits.retain(|_, packets| *packets > 0);
        self
    }
}
