//! Links: their capacities, unscheduled traffic, and replacement of the network.

use super::{Allocator, law};
use crate::ControlSettings;
use crate::known::Peer;
use crate::paths::Paths;
use subak_core::{IdVec, InputError, LinkId, Ns};
use subak_solve::ned::{Cluster, NedIteration};

/// Rise of unscheduled traffic, as a fraction of the link, that counts at once and excuses losses of paced flows. New
/// flows, before their first rate, and queues that drain show as smaller rises.
const RISE: f64 = 0.1;
/// Weight of a new sample in the moving average of unscheduled traffic, if the sample is above it by less than
/// [`RISE`]. A lower sample replaces the average.
const NEWEST: f64 = 0.1;
/// Validity of an endpoint's report of unscheduled traffic, in multiples of [`ControlSettings::patience_ns`],
/// which is two leases by default.
const OBSERVED_FOR: Ns = 10;

impl Allocator {
    /// Sets a link's capacity, bit/s; zero if it failed. Fails for an unknown link or an invalid capacity.
    pub fn set_capacity(&mut self, link: LinkId, capacity_bps: f64) -> Result<(), InputError> {
        let available_bps = self.available_of(link, capacity_bps);
        self.iteration.cluster_mut().set_capacity(link, available_bps)?;
        self.capacity_bps[link] = capacity_bps;
        Ok(())
    }

    pub(super) fn available_of(&self, link: LinkId, capacity_bps: f64) -> f64 {
        let least_bps = (1.0 - self.settings.most_unscheduled) * capacity_bps;
        let left_bps = (capacity_bps - self.unscheduled_bps(link)).max(least_bps);
        (left_bps * self.settings.share()).min(self.overloads.most_bps(link))
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
        let Some(&capacity_bps) = self.capacity_bps.get(link) else { return };
        // A link carries no more than its capacity, which bounds the effect of a wrong report.
        let (bps, before_bps) = (bps.min(capacity_bps), self.unscheduled_bps(link));
        let rises = bps > before_bps + RISE * capacity_bps;
        if rises {
            self.overloads.settle(link);
        }
        let gain = if rises || bps < before_bps { 1.0 } else { NEWEST };
        let _ = self.set_unscheduled(link, before_bps + gain * (bps - before_bps));
    }

    /// Removes reports of unscheduled traffic that have expired.
    pub(super) fn forget_observed(&mut self, now_ns: Ns) {
        let kept_ns = OBSERVED_FOR * self.settings.patience_ns;
        for number in 0..self.peers.len() as u32 {
            let is_over = |peer: &mut Peer| peer.observed_ns > 0 && now_ns > peer.observed_ns + kept_ns;
            if self.peer(number).is_some_and(is_over) {
                self.forget_observed_by(number);
            }
        }
    }

    pub(super) fn forget_observed_by(&mut self, number: u32) {
        let told = self.peer(number).map_or(0, |peer| std::mem::take(&mut peer.observed_ns));
        if told > 0
            && let Some((out, into)) = self.paths.access(number)
        {
            // The link comes from the network, so that this cannot fail.
            let _ = self.set_unscheduled(out, 0.0);
            let _ = self.set_unscheduled(into, 0.0);
        }
    }

    /// Sets price law, gamma, alpha, number of normalizations, threshold, reserve and bound of unscheduled traffic, in
    /// effect from the next [network](Allocator::set_network) on. Settings shared with endpoints are not changed.
    pub fn set_policy(&mut self, wanted: &ControlSettings) {
        let ControlSettings { law, gamma, alpha, passes, threshold, reserve, most_unscheduled, .. } = *wanted;
        self.settings =
            ControlSettings { law, gamma, alpha, passes, threshold, reserve, most_unscheduled, ..self.settings };
    }

    /// Replaces the network: capacities of links (bit/s; 0 for a link that is down) and paths of flowlets. `was` maps
    /// each link to its number in the previous network, if it existed; its price and unscheduled traffic are kept.
    /// Flowlets keep their rates until new ones are sent, and endpoints keep their numbers. Fails for invalid
    /// capacities; then nothing changes.
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
        self.overloads.rename(&was, capacity_bps.len());
        let unscheduled_before = std::mem::replace(&mut self.unscheduled_bps, IdVec::filled(0.0, capacity_bps.len()));
        self.iteration = NedIteration::new(cluster, law(&self.settings)).with_threads(self.iteration.threads());
        let declared_before = std::mem::replace(&mut self.capacity_bps, capacity_bps.to_vec().into());
        self.paths = paths;
        for link in (0..capacity_bps.len()).map(LinkId::from_index) {
            let Some(earlier) = was(link) else { continue };
            if let Some(&price) = before.get(earlier.index()).filter(|price| price.is_finite()) {
                // The price was valid before.
                let _ = self.iteration.set_price(link, price);
            }
            if declared_before.get(earlier) != self.capacity_bps.get(link) {
                // A newly configured capacity overrides earlier conclusions from losses.
                self.overloads.forget(link);
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
