//! The allocator's state of endpoints and flowlets.

use crate::channel::Channel;
use crate::peer::Acked;
use std::collections::{BTreeMap, VecDeque};
use subak_core::Ns;
use subak_solve::ned::FlowKey;
use subak_wire::Start;

/// A flowlet as announced by its endpoint, and its slot in the iteration. A flowlet without a path has a separate
/// slot, by which its earlier rate is revoked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub start: Start,
    pub key: Option<FlowKey>,
    pub off: Slot,
}

impl Known {
    /// The flowlet's slot.
    pub fn slot<'a>(&'a mut self, slots: &'a mut [Slot]) -> &'a mut Slot {
        match self.key {
            Some(key) => &mut slots[key.slot()],
            None => &mut self.off,
        }
    }
}

/// State of a slot of the iteration. `bps` is the rate last sent or queued: 0 for none, infinite for an empty slot.
/// `told` says whether the endpoint has ACKed the rate, and `is_news` whether the rate is queued.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub bps: f64,
    pub endpoint: u32,
    pub flowlet: u32,
    pub told: Acked,
    pub is_news: bool,
}

pub(crate) const EMPTY: Slot = Slot { bps: f64::INFINITY, endpoint: 0, flowlet: 0, told: Acked::No, is_news: false };

/// The allocator's state of an endpoint.
#[derive(Debug)]
pub(crate) struct Peer {
    pub channel: Channel,
    pub flowlets: BTreeMap<u32, Known>,
    /// Flowlets whose rate is queued; some of them may have ended.
    pub news: VecDeque<u32>,
    /// Whether the endpoint is in the ready queue.
    pub is_ready: bool,
    /// Tenant whose quota limits the weights of the endpoint's flowlets.
    pub tenant: u32,
    /// Largest number of flowlets of the endpoint.
    pub most_flowlets: usize,
    /// Number of times that the endpoint was silent for longer than `patience_ns`.
    pub lapses: u64,
    /// Time of the endpoint's latest report of unscheduled traffic, ns; 0 if there is none or it has expired.
    pub observed_ns: Ns,
}

impl Peer {
    pub fn new(epoch: u64, tenant: u32, most_flowlets: usize) -> Self {
        let (flowlets, news) = (BTreeMap::new(), VecDeque::new());
        Peer {
            channel: Channel::new(epoch),
            flowlets,
            news,
            is_ready: false,
            tenant,
            most_flowlets,
            observed_ns: 0,
            lapses: 0,
        }
    }
}
