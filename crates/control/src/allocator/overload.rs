//! Links that carry less than they are declared with: paced flows lose there. The allocator promises less on the links that
//! flows with losses share until they stop, and comes back by probing.

use super::Allocator;
use std::collections::BTreeMap;
use subak_core::{LinkId, Ns};
use subak_wire::FlowletLoss;

/// Losses below this share are those of any network.
const LEAST_SHARE: f64 = 0.005;
/// A link is suspected if this share of its promised rates, or more, is of flows that lose.
const SUSPECTED: f64 = 0.75;
/// It is lowered after so many inspections in a row that suspect it.
const STRIKES: u32 = 2;
/// For so many inspections after that, losses are those of before.
const SETTLING: u32 = 3;
/// The share of what got through that is promised: the queue has to become empty.
const MARGIN: f64 = 0.96;
/// What is lowered at once, at most.
const MOST_STEP: f64 = 0.5;
/// Never less than this share of a link's capacity is promised.
const FLOOR: f64 = 0.01;
/// Probing promises so much more.
const PROBE: f64 = 1.05;
/// Inspections without losses before a probe, at first, and at most: the number doubles with each probe that fails, and is the first
/// again after one that holds.
const CALM: u32 = 5;
const MOST_CALM: u32 = 320;

/// A link on which more or less is promised from now on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkLowering {
    /// Which.
    pub link: LinkId,
    /// What is promised at most, bit/s; none for all that it is declared with.
    pub most_bps: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Lowered {
    /// Infinite while it is suspected only.
    most_bps: f64,
    strikes: u32,
    settling: u32,
    /// Inspections without losses, and how many there have to be before the next probe.
    calm: u32,
    wanted_calm: u32,
    /// What was promised before the last probe; nothing if it has held.
    before_bps: Option<f64>,
}

const SUSPECT: Lowered =
    Lowered { most_bps: f64::INFINITY, strikes: 0, settling: 0, calm: 0, wanted_calm: CALM, before_bps: None };

/// Losses since the last inspection, and the links that are lowered.
#[derive(Debug, Default)]
pub(super) struct Overloads {
    next_ns: Ns,
    losses: BTreeMap<(u32, u32), f64>,
    links: BTreeMap<LinkId, Lowered>,
    changes: Vec<LinkLowering>,
    /// At the last inspection, bit/s, by link.
    lost_bps: BTreeMap<LinkId, f64>,
}

impl Overloads {
    pub fn most_bps(&self, link: LinkId) -> f64 {
        self.links.get(&link).map_or(f64::INFINITY, |lowered| lowered.most_bps)
    }

    pub fn lost_bps(&self, link: LinkId) -> f64 {
        self.lost_bps.get(&link).copied().unwrap_or(0.0)
    }

    /// Nothing is known of a link any more.
    pub fn forget(&mut self, link: LinkId) {
        if self.links.remove(&link).is_some_and(|lowered| lowered.most_bps.is_finite()) {
            self.changes.push(LinkLowering { link, most_bps: None });
        }
    }

    /// Links have other numbers.
    pub fn rename(&mut self, was: &impl Fn(LinkId) -> Option<LinkId>, links: usize) {
        let before = std::mem::take(&mut self.links);
        let kept = (0..links).map(LinkId::from_index).filter_map(|link| Some((link, *before.get(&was(link)?)?)));
        self.links = kept.collect();
    }
}

/// What an inspection finds at a link, bit/s: what is promised there, to flows that lose, and what they lose of it.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    promised_bps: f64,
    losing_bps: f64,
    lost_bps: f64,
}

/// A flow that loses: its links, its rate and the share.
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

    /// Changes of what is promised on links, since this was asked last.
    pub fn take_lowerings(&mut self) -> Vec<LinkLowering> {
        std::mem::take(&mut self.overloads.changes)
    }

    /// What is promised on a link at most, because flows lost there, bit/s; none where nothing was lost.
    pub fn lowered_bps(&self, link: LinkId) -> Option<f64> {
        Some(self.overloads.most_bps(link)).filter(|bps| bps.is_finite())
    }

    /// Once a lease: which links lose, and what follows.
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
                // The capacity was one before.
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

/// Links that explain the losses, the one that explains most first, and the share that is lost at each. Where several explain the
/// same flows, each is suspected.
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
                // What rounding leaves is nothing.
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
    /// Flows lose this share of what is promised.
    fn lose(self, share: f64, promised_bps: f64, capacity_bps: f64) -> Option<Lowered> {
        let mut after = Lowered { calm: 0, ..self };
        if after.settling > 0 {
            after.settling -= 1;
            return Some(after);
        }
        after.strikes += 1;
        if let Some(before_bps) = self.before_bps {
            // The last probe was too much.
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

    /// Nothing is lost; none once it has all that it is declared with.
    fn hold(self, capacity_bps: f64) -> Option<Lowered> {
        if self.most_bps.is_infinite() {
            return None;
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
