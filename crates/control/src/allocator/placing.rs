//! Flowlets and their slots in the iteration.

use super::Allocator;
use crate::known::{EMPTY, Known, Slot};
use crate::peer::Acked;
use subak_solve::ned::FlowKey;
use subak_wire::Start;

impl Allocator {
    pub(super) fn start(&mut self, from: u32, start: &Start) {
        let Some(peer) = self.peers.get_mut(from as usize).and_then(Option::as_mut) else { return };
        let known = peer.flowlets.get(&start.flowlet).copied();
        if known.is_none() && peer.flowlets.len() >= peer.most_flowlets {
            self.counters.refused += 1;
            return;
        }
        let tenant = peer.tenant;
        let before_weight = known.map_or(0.0, |before| self.asked(&before.start));
        self.quotas.add(tenant, self.asked(start) - before_weight);
        if let Some(Known { start: before, key: Some(key), .. }) = known
            && (before.to, before.path) == (start.to, start.path)
        {
            let weight = self.weight(tenant, start);
            let _ = self.iteration.cluster_mut().set_weight(key, weight);
            let _ = self.iteration.cluster_mut().set_demand(key, demand_bps(start));
            if let Some(known) = self.peer(from).and_then(|peer| peer.flowlets.get_mut(&start.flowlet)) {
                known.start = *start;
            }
            return;
        }
        let mut told = EMPTY;
        if let Some(mut before) = known {
            // The flowlet keeps its current rate until a new one is sent.
            let Slot { bps, is_news, .. } = *before.slot(&mut self.slots);
            told = if before.key.is_some() { Slot { bps, is_news, ..EMPTY } } else { before.off };
            if let Some(key) = before.key {
                self.remove(key);
            }
        }
        self.put(from, start, told);
    }

    /// Requested weight of a flowlet, within the bounds of the settings.
    pub(super) fn asked(&self, start: &Start) -> f64 {
        f64::from(start.weight).clamp(self.settings.least_weight, self.settings.most_weight)
    }

    /// Effective weight: the requested one, scaled by the tenant's quota.
    pub(super) fn weight(&self, tenant: u32, start: &Start) -> f64 {
        self.asked(start) * self.quotas.factor(tenant)
    }

    /// Adds a flowlet to the links of its path; `told` has its current rate. The rate of a flowlet without a path is
    /// revoked: the host's own congestion control decides, and no capacity is reserved.
    pub(super) fn put(&mut self, from: u32, start: &Start, told: Slot) {
        let Some(tenant) = self.peer(from).map(|peer| peer.tenant) else { return };
        let weight = self.weight(tenant, start);
        let bps = if told.bps.is_finite() { told.bps } else { 0.0 };
        let mut slot = Slot { bps, endpoint: from, flowlet: start.flowlet, ..told };
        let links = self.paths.path(from, start.to, start.path);
        let key =
            links.and_then(|links| self.iteration.cluster_mut().add_within(&links, weight, demand_bps(start)).ok());
        let mut is_taken_back = false;
        match key {
            Some(key) => {
                if self.slots.len() <= key.slot() {
                    self.slots.resize(key.slot() + 1, EMPTY);
                }
                self.slots[key.slot()] = slot;
            }
            None if bps > 0.0 => {
                is_taken_back = !slot.is_news;
                slot = Slot { bps: 0.0, told: Acked::No, is_news: true, ..slot };
            }
            None => {}
        }
        let Some(peer) = self.peer(from) else { return };
        peer.flowlets.insert(start.flowlet, Known { start: *start, key, off: slot });
        if is_taken_back {
            peer.news.push_back(start.flowlet);
        }
    }

    /// Removes a flowlet.
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

    fn remove(&mut self, key: FlowKey) {
        self.slots[key.slot()] = EMPTY;
        // A key in the map is valid in the cluster.
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

/// Demand of a flowlet, bit/s. The iteration allows no demand of 0: the smallest rate that a message can encode
/// replaces it.
fn demand_bps(start: &Start) -> f64 {
    start.demand.map_or(f64::INFINITY, |demand| demand.bps().max(1.0))
}
