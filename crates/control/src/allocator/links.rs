//! Links: their capacities, unscheduled traffic, and replacement of the network.

use super::{Allocator, law};
use crate::ControlSettings;
use crate::paths::Paths;
use subak_core::{IdVec, InputError, LinkId};
use subak_solve::ned::{Cluster, NedIteration};

/// Minimum share of a link that unscheduled traffic leaves to flowlets.
const LEAST_SHARE: f64 = 0.05;
/// Weight of a new sample of such traffic in the moving average.
const NEWEST: f64 = 0.25;

impl Allocator {
    /// Sets a link's capacity, bit/s; zero if it failed. Fails for an unknown link or an invalid capacity.
    pub fn set_capacity(&mut self, link: LinkId, capacity_bps: f64) -> Result<(), InputError> {
        let share = self.settings.share();
        let unscheduled_bps = self.unscheduled_bps.get(link).copied().unwrap_or(0.0);
        let left_bps = (capacity_bps - unscheduled_bps).max(LEAST_SHARE * capacity_bps);
        self.iteration.cluster_mut().set_capacity(link, left_bps * share)?;
        self.capacity_bps[link] = capacity_bps;
        Ok(())
    }

    /// Sets a link's rate of unscheduled traffic, bit/s (section 6, "External traffic").
    pub fn set_unscheduled(&mut self, link: LinkId, bps: f64) -> Result<(), InputError> {
        let Some(unscheduled) = self.unscheduled_bps.get_mut(link) else {
            let what = format!("there is no link {link}");
            return Err(InputError::new("link", what, "give the number of a link of the network"));
        };
        *unscheduled = if bps.is_finite() { bps.max(0.0) } else { 0.0 };
        self.set_capacity(link, self.capacity_bps[link])
    }

    pub(super) fn observe(&mut self, link: LinkId, bps: f64) {
        let Some(before_bps) = self.unscheduled_bps.get(link) else { return };
        // No link carries more than it has: a count that went wrong is forgotten soon.
        let bps = bps.min(self.capacity_bps[link]);
        let _ = self.set_unscheduled(link, before_bps + NEWEST * (bps - before_bps));
    }

    /// Sets price law, alpha and reserve, in effect from the next [network](Allocator::set_network) on. Settings shared
    /// with endpoints are unchanged.
    pub fn set_policy(&mut self, wanted: &ControlSettings) {
        let ControlSettings { law, gamma, alpha, passes, threshold, reserve, .. } = *wanted;
        self.settings = ControlSettings { law, gamma, alpha, passes, threshold, reserve, ..self.settings };
    }

    /// Replaces the network: capacities of links (bit/s; zero if one is down) and paths of flowlets. `was` maps each link
    /// to its number before, if it existed: its price and unscheduled traffic stay. Flowlets keep the rates sent to them
    /// until new ones are sent; endpoints keep their numbers. Fails for invalid capacities; then nothing has changed.
    pub fn set_network(
        &mut self,
        capacity_bps: &[f64],
        paths: Box<dyn Paths>,
        was: impl Fn(LinkId) -> Option<LinkId>,
    ) -> Result<(), InputError> {
        let share = self.settings.share();
        let scaled: Vec<f64> = capacity_bps.iter().map(|c| c * share).collect();
        let cluster = Cluster::new(&scaled, self.settings.alpha)?;
        let before: Vec<f64> = self.iteration.prices().collect();
        let unscheduled_before = std::mem::replace(&mut self.unscheduled_bps, IdVec::filled(0.0, capacity_bps.len()));
        self.iteration = NedIteration::new(cluster, law(&self.settings));
        self.capacity_bps = capacity_bps.to_vec().into();
        self.paths = paths;
        for link in (0..capacity_bps.len()).map(LinkId::from_index) {
            let Some(earlier) = was(link) else { continue };
            if let Some(&price) = before.get(earlier.index()).filter(|price| price.is_finite()) {
                // It was a price before.
                let _ = self.iteration.set_price(link, price);
            }
            if let Some(&bps) = unscheduled_before.get(earlier) {
                let _ = self.set_unscheduled(link, bps);
            }
        }
        let mut slots = std::mem::take(&mut self.slots);
        self.rates.clear();
        for number in 0..self.peers.len() as u32 {
            let Some(peer) = self.peer(number) else { continue };
            let flowlets: Vec<_> = peer.flowlets.values().copied().collect();
            for mut known in flowlets {
                let told = *known.slot(&mut slots);
                self.put(number, &known.start, told);
            }
        }
        Ok(())
    }
}
