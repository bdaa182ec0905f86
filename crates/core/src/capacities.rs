//! Changes of links' states and capacities.

use crate::{IdVec, LinkId, Network};

/// A change of a link's state or capacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LinkChange {
    /// One fault that kept the link down has ended.
    Up,
    /// One more fault keeps the link down.
    Down,
    /// The capacity changes to this value, bit/s.
    Capacity(f64),
}

/// The current capacity of each link, updated by link changes.
#[derive(Debug, Clone)]
pub struct Capacities {
    bps: IdVec<LinkId, f64>,
    /// Number of active faults that hold each link down.
    down: IdVec<LinkId, u32>,
}

impl Capacities {
    /// The capacities of a network with all links up.
    pub fn of(network: &Network) -> Self {
        let bps: IdVec<_, _> = network.links().iter().map(|l| l.capacity_bps).collect();
        Capacities { down: IdVec::filled(0, bps.len()), bps }
    }

    /// Capacity of each link when up, bit/s.
    pub fn bps(&self) -> &IdVec<LinkId, f64> {
        &self.bps
    }

    /// Whether a fault holds `link` down.
    pub fn is_down(&self, link: LinkId) -> bool {
        self.down[link] > 0
    }

    /// Applies `change` and returns the capacity of `link`, bit/s: 0 while the link is down.
    pub fn change(&mut self, link: LinkId, change: LinkChange) -> f64 {
        match change {
            LinkChange::Up => self.down[link] = self.down[link].saturating_sub(1),
            LinkChange::Down => self.down[link] += 1,
            LinkChange::Capacity(bps) => self.bps[link] = bps,
        }
        if self.down[link] > 0 { 0.0 } else { self.bps[link] }
    }
}
