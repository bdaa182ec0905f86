//! Detection of links that carry less than their configured capacity: paced flows lose packets there. Once per lease
//! the allocator inspects the reported losses. It lowers the allocation of links shared by flows with losses until
//! losses stop. It raises the allocation again by probing.

use super::Allocator;
use std::collections::BTreeMap;
use subak_core::{LinkId, Ns};
use subak_wire::FlowletLoss;

/// Loss rates below this fraction are ignored, as normal for a network.
const LEAST_SHARE: f64 = 0.005;
/// A link is suspected if flows with losses have at least this fraction of its allocated rate.
const SUSPECTED: f64 = 0.75;
/// Number of consecutive inspections that suspect a link before its allocation is lowered.
const STRIKES: u32 = 2;
/// Number of inspections after a lowering, or after a rise of unscheduled traffic, in which losses are ignored: they may
/// predate it.
const SETTLING: u32 = 3;
/// Allocation after a loss, as a fraction of the rate that got through. It is below 1, so that the queue empties.
const MARGIN: f64 = 0.96;
/// Largest reduction of an allocation at once, as a fraction.
const MOST_STEP: f64 = 0.5;
/// Smallest allocation, as a fraction of the link's capacity.
const FLOOR: f64 = 0.01;
/// Factor by which a probe raises the allocation.
const PROBE: f64 = 1.05;
/// Initial number of inspections without losses before a probe. The number doubles with each failed probe, and returns
/// to the initial value after a successful one.
const CALM: u32 = 5;
const MOST_CALM: u32 = 320;

/// A change of the upper bound of a link's allocation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkLowering {
    /// The link.
    pub link: LinkId,
    /// Upper bound of the allocated rate, bit/s; `None` for the configured capacity.
    pub most_bps: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Lowered {
    /// Upper bound of the allocation, bit/s; infinite while the link is only suspected.
    most_bps: f64,
    strikes: u32,
    settling: u32,
    /// Number of inspections without losses since the last change of the bound.
    calm: u32,
    /// Number of inspections without losses that the next probe requires.
    wanted_calm: u32,
    /// Upper bound before the last probe, bit/s; `None` if that probe has succeeded.
    before_bps: Option<f64>,
}

const SUSPECT: Lowered =
    Lowered { most_bps: f64::INFINITY, strikes: 0, settling: 0, calm: 0, wanted_calm: CALM, before_bps: None };

/// Losses since the last inspection, and the links with lowered allocation.
#[derive(Debug, Default)]
pub(super) struct Overloads {
    next_ns: Ns,
    losses: BTreeMap<(u32, u32), f64>,
    links: BTreeMap<LinkId, Lowered>,
    changes: Vec<LinkLowering>,
    /// Lost rate at the last inspection, bit/s, by link.
    lost_bps: BTreeMap<LinkId, f64>,
}

impl Overloads {
    pub fn most_bps(&self, link: LinkId) -> f64 {
        self.links.get(&link).map_or(f64::INFINITY, |lowered| lowered.most_bps)
    }

    pub fn lost_bps(&self, link: LinkId) -> f64 {
        self.lost_bps.get(&link).copied().unwrap_or(0.0)
    }

    /// Ignores the losses at a link for a few inspections, since its allocation was lowered for unscheduled traffic.
    pub fn settle(&mut self, link: LinkId) {
        self.links.entry(link).or_insert(SUSPECT).settling = SETTLING;
    }

    /// Removes the upper bound and the loss history of a link.
    pub fn forget(&mut self, link: LinkId) {
        if self.links.remove(&link).is_some_and(|lowered| lowered.most_bps.is_finite()) {
            self.changes.push(LinkLowering { link, most_bps: None });
        }
    }

    /// Renumbers the links for a new network of `links` links; `was` returns a link's number in the previous network.
    pub fn rename(&mut self, was: &impl Fn(LinkId) -> Option<LinkId>, links: usize) {
        let before = std::mem::take(&mut self.links);
        let kept = (0..links).map(LinkId::from_index).filter_map(|link| Some((link, *before.get(&was(link)?)?)));
        self.links = kept.collect();
    }
}

/// Rates at a link in an inspection, bit/s: allocated, allocated to flows with losses, and lost.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    promised_bps: f64,
    losing_bps: f64,
    lost_bps: f64,
}

/// A flow with losses: its links, its rate and its loss rate.
struct Losing {
    links: Vec<LinkId>,
    bps: f64,
    share: f64,
}

impl Allocator {
    pub(super) fn take_losses(&mut self, from: u32, losses: &[FlowletLoss]) {
        for loss in losses {
            let share = f64::from(loss.share) / 65_535.0;
            let known = self.peer(from).is_some_and(|peer| peer.flowlets.contains_key(&loss.flowlet));
            if known && share >= LEAST_SHARE {
                self.overloads.losses.insert((from, loss.flowlet), share);
            }
        }
    }

    /// Changes of upper bounds since the last call.
    pub fn take_lowerings(&mut self) -> Vec<LinkLowering> {
        std::mem::take(&mut self.overloads.changes)
    }

    /// Upper bound of the allocated rate of a link because of losses, bit/s; `None` for no bound.
    pub fn lowered_bps(&self, link: LinkId) -> Option<f64> {
        Some(self.overloads.most_bps(link)).filter(|bps| bps.is_finite())
    }

    /// Finds the links with losses and adjusts their bounds; runs once per lease.
    pub(super) fn inspect(&mut self, now_ns: Ns) {
        if now_ns < self.overloads.next_ns {
            return;
        }
        self.overloads.next_ns = now_ns + self.settings.lease_ns;
        self.overloads.lost_bps.clear();
        if self.overloads.losses.is_empty() && self.overloads.links.is_empty() {
            return;
        }
        let losses = std::mem::take(&mut self.overloads.losses);
        let (found, losing) = self.find(&losses);
        let suspects = suspects(found.clone(), losing);
        let lost = suspects.iter().map(|(link, share)| (*link, share * found[link.index()].losing_bps));
        self.overloads.lost_bps = lost.collect();
        let mut links: Vec<LinkId> = self.overloads.links.keys().copied().collect();
        links.extend(suspects.keys().filter(|link| !self.overloads.links.contains_key(link)));
        for link in links {
            let before = self.overloads.links.get(&link).copied().unwrap_or(SUSPECT);
            let capacity_bps = self.capacity_bps[link];
            let after = match suspects.get(&link) {
                Some(&lost) => before.lose(lost, found[link.index()].promised_bps, capacity_bps),
                None => before.hold(capacity_bps),
            };
            match after {
                Some(after) => drop(self.overloads.links.insert(link, after)),
                None => drop(self.overloads.links.remove(&link)),
            }
            let most_bps = self.overloads.most_bps(link);
            if most_bps != before.most_bps {
                let most = Some(most_bps).filter(|bps| bps.is_finite());
                self.overloads.changes.push(LinkLowering { link, most_bps: most });
                // The capacity was valid before.
                let _ = self.set_capacity(link, capacity_bps);
            }
        }
    }

    fn find(&self, losses: &BTreeMap<(u32, u32), f64>) -> (Vec<Found>, Vec<Losing>) {
        let mut found = vec![Found::default(); self.capacity_bps.len()];
        let mut losing = Vec::new();
        let cluster = self.iteration.cluster();
        for (number, peer) in self.peers.iter().enumerate().filter_map(|(k, peer)| Some((k as u32, peer.as_ref()?))) {
            for (&flowlet, known) in &peer.flowlets {
                let Some(key) = known.key else { continue };
                let bps = self.slots[key.slot()].bps;
                let share = losses.get(&(number, flowlet)).copied();
                for link in cluster.path(key) {
                    let at = &mut found[link.index()];
                    at.promised_bps += bps;
                    at.losing_bps += share.map_or(0.0, |_| bps);
                    at.lost_bps += share.map_or(0.0, |share| share * bps);
                }
                losing.extend(share.map(|share| Losing { links: cluster.path(key).collect(), bps, share }));
            }
        }
        (found, losing)
    }
}

/// Links that explain the losses, with the loss rate at each. Of the links with mostly flows with losses, the one with
/// the highest rate of such flows is chosen first, together with links of the same rate. Flows over chosen links are
/// explained; the search continues with the other flows.
fn suspects(mut found: Vec<Found>, mut losing: Vec<Losing>) -> BTreeMap<LinkId, f64> {
    let mut suspects = BTreeMap::new();
    while !losing.is_empty() {
        let is_suspect = |at: &Found| at.losing_bps > 0.0 && at.losing_bps >= SUSPECTED * at.promised_bps;
        let most_bps = found.iter().filter(|at| is_suspect(at)).map(|at| at.losing_bps).fold(0.0, f64::max);
        let worst: Vec<LinkId> = (0..found.len())
            .filter(|&link| is_suspect(&found[link]) && found[link].losing_bps >= most_bps * (1.0 - 1e-9))
            .map(LinkId::from_index)
            .collect();
        if worst.is_empty() {
            break;
        }
        suspects
            .extend(worst.iter().map(|&link| (link, found[link.index()].lost_bps / found[link.index()].losing_bps)));
        losing.retain(|flow| {
            let is_explained = flow.links.iter().any(|link| worst.contains(link));
            if is_explained {
                for link in &flow.links {
                    let at = &mut found[link.index()];
                    at.losing_bps -= flow.bps;
                    at.lost_bps -= flow.bps * flow.share;
                }
                // Removes the residue of rounding.
                flow.links.iter().for_each(|link| {
                    let at = &mut found[link.index()];
                    at.losing_bps = if at.losing_bps < 1e-6 * at.promised_bps { 0.0 } else { at.losing_bps };
                });
            }
            !is_explained
        });
    }
    suspects
}

impl Lowered {
    /// Updates the bound after an inspection with losses; `share` is the loss rate.
    fn lose(self, share: f64, promised_bps: f64, capacity_bps: f64) -> Option<Lowered> {
        let mut after = Lowered { calm: 0, ..self };
        if after.settling > 0 {
            after.settling -= 1;
            return Some(after);
        }
        after.strikes += 1;
        if let Some(before_bps) = self.before_bps {
            // The last probe failed.
            after.most_bps = before_bps;
            after.wanted_calm = (2 * self.wanted_calm).min(MOST_CALM);
        } else if after.strikes >= STRIKES {
            let through = (1.0 - share).max(1.0 - MOST_STEP);
            after.most_bps = (promised_bps.min(self.most_bps) * through * MARGIN).max(FLOOR * capacity_bps);
        } else {
            return Some(after);
        }
        Some(Lowered { strikes: 0, settling: SETTLING, before_bps: None, ..after })
    }

    /// Updates the bound after an inspection without losses; `None` once the bound reaches the configured capacity.
    fn hold(self, capacity_bps: f64) -> Option<Lowered> {
        if self.most_bps.is_infinite() {
            return (self.settling > 0).then(|| Lowered { strikes: 0, settling: self.settling - 1, ..self });
        }
        let mut after = Lowered { strikes: 0, settling: self.settling.saturating_sub(1), calm: self.calm + 1, ..self };
        if self.before_bps.is_some() && after.calm > STRIKES {
            (after.before_bps, after.wanted_calm) = (None, CALM);
        }
        if after.calm >= after.wanted_calm {
            after = Lowered { before_bps: Some(self.most_bps), most_bps: self.most_bps * PROBE, calm: 0, ..after };
        }
        (after.most_bps < capacity_bps).then_some(after)
    }
}
