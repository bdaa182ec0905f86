//! Flowlets: where they stand in the iteration.

use super::Allocator;
use crate::known::{EMPTY, Known, Slot};
use subak_solve::ned::Key;
use subak_wire::Start;

impl Allocator {
    pub(super) fn start(&mut self, from: u32, start: &Start) {
        let Some(peer) = self.peers.get_mut(from as usize).and_then(Option::as_mut) else { return };
        let known = peer.flowlets.get(&start.flowlet).map(|known| (known.start, known.key));
        if known.is_none() && peer.flowlets.len() >= self.settings.most_flowlets {
            self.counters.refused += 1;
            return;
        }
        let tenant = peer.tenant;
        let before_weight = known.map_or(0.0, |(before, _)| self.asked(&before));
        self.quotas.add(tenant, self.asked(start) - before_weight);
        let weight = self.weight(tenant, start);
        let key = match known {
            Some((before, Some(key))) if (before.to, before.path) == (start.to, start.path) => {
                let _ = self.iteration.cluster_mut().set_weight(key, weight);
                Some(key)
            }
            before => self.place(from, start, weight, before.and_then(|(_, key)| key)),
        };
        if let Some(peer) = self.peer(from) {
            peer.flowlets.insert(start.flowlet, Known { start: *start, key });
        }
    }

    /// The weight that a flowlet asks for, within the bounds of any.
    pub(super) fn asked(&self, start: &Start) -> f64 {
        f64::from(start.weight).clamp(1.0 / self.settings.most_weight, self.settings.most_weight)
    }

    /// The weight that it has: what its tenant's quota leaves of it.
    pub(super) fn weight(&self, tenant: u32, start: &Start) -> f64 {
        self.asked(start) * self.quotas.factor(tenant)
    }

    /// Gives a flowlet its place on the links of its path, in exchange for that on another.
    fn place(&mut self, from: u32, start: &Start, weight: f64, before: Option<Key>) -> Option<Key> {
        // It keeps the rate that it was told until it is told another.
        let bps = before.map_or(0.0, |key| self.slots[key.slot()].bps);
        if let Some(key) = before {
            self.remove(key);
        }
        self.put(from, start, weight, Slot { bps, endpoint: from, flowlet: start.flowlet, ..EMPTY })
    }

    fn put(&mut self, from: u32, start: &Start, weight: f64, slot: Slot) -> Option<Key> {
        let links = self.paths.path(from, start.to, start.path)?;
        let key = self.iteration.cluster_mut().add(&links, weight).ok()?;
        if self.slots.len() <= key.slot() {
            self.slots.resize(key.slot() + 1, EMPTY);
        }
        self.slots[key.slot()] = slot;
        Some(key)
    }

    /// The same flowlet over another network; `told` is what stood in its slot.
    pub(super) fn place_again(&mut self, from: u32, start: &Start, told: Slot) {
        let Some(tenant) = self.peer(from).map(|peer| peer.tenant) else { return };
        let weight = self.weight(tenant, start);
        let bps = if told.bps.is_finite() { told.bps } else { 0.0 };
        let key = self.put(from, start, weight, Slot { bps, endpoint: from, flowlet: start.flowlet, ..told });
        if let Some(known) = self.peer(from).and_then(|peer| peer.flowlets.get_mut(&start.flowlet)) {
            known.key = key;
        }
    }

    /// A flowlet is over.
    pub(super) fn end(&mut self, from: u32, flowlet: u32) {
        let Some(peer) = self.peer(from) else { return };
        let tenant = peer.tenant;
        let Some(known) = peer.flowlets.remove(&flowlet) else { return };
        self.forget(tenant, &known);
    }

    fn forget(&mut self, tenant: u32, known: &Known) {
        self.quotas.add(tenant, -self.asked(&known.start));
        if let Some(key) = known.key {
            self.remove(key);
        }
    }

    fn remove(&mut self, key: Key) {
        self.slots[key.slot()] = EMPTY;
        // The key was in the map, and so it is in the cluster.
        let _ = self.iteration.cluster_mut().remove(key);
    }

    pub(super) fn drop_flowlets(&mut self, endpoint: u32) {
        let Some(peer) = self.peer(endpoint) else { return };
        peer.news.clear();
        let tenant = peer.tenant;
        for known in std::mem::take(&mut peer.flowlets).into_values() {
            self.forget(tenant, &known);
        }
    }
}
