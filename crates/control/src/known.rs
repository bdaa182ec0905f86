//! The allocator's state of endpoints and flowlets.

use crate::channel::Channel;
use crate::peer::Acked;
use std::collections::{BTreeMap, VecDeque};
use subak_core::Ns;
use subak_solve::ned::FlowKey;
use subak_wire::Start;

/// A flowlet as its endpoint told of it, and its place in the iteration. One that has no path has a slot of its own instead: a
/// rate that it was told before is taken back there.
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

/// Whose flow is in a slot of the iteration; the rate to tell or told last, bit/s: zero if there was none, infinite if the slot
/// is empty; whether its endpoint knows it, and whether it waits to be told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub bps: f64,
    pub endpoint: u32,
    pub flowlet: u32,
    pub told: Acked,
    pub is_news: bool,
}

pub(crate) const EMPTY: Slot = Slot { bps: f64::INFINITY, endpoint: 0, flowlet: 0, told: Acked::No, is_news: false };

/// An endpoint as the allocator knows it.
#[derive(Debug)]
pub(crate) struct Peer {
    pub channel: Channel,
    pub flowlets: BTreeMap<u32, Known>,
    /// Flowlets whose rate is to be told, some of which may be over.
    pub news: VecDeque<u32>,
    /// It stands among those that have something to send.
    pub is_ready: bool,
    /// Whose quota it counts towards.
    pub tenant: u32,
    /// Flowlets that it may have.
    pub most_flowlets: usize,
    /// Times that it was silent for too long.
    pub lapses: u64,
    /// When it told of other traffic last; 0: never, or that is forgotten.
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
