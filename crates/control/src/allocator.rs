//! The allocator: it knows the flowlets of all endpoints, iterates NED, normalizes to the capacities (F-NORM), and tells rates
//! that moved (Flowtune, sections 2, 3 and 5.3).

use crate::channel::{Channel, Taken};
use crate::paths::Paths;
use crate::peer::Told;
use crate::{Law, Settings};
use std::collections::BTreeMap;
use subak_core::{Fault, LinkId, Ns};
use subak_solve::ned::{self, Accelerated, Cluster, Iteration, Key, Ned, Normalizer};
use subak_wire::{Datagram, Direction, End, Rate, Start, Update};

/// The share of a link that traffic which nobody schedules leaves to the rest, at least.
const LEAST_SHARE: f64 = 0.05;
/// How much a new observation of such traffic counts beside those before.
const NEWEST: f64 = 0.25;

fn law(settings: &Settings) -> Box<dyn ned::Law<f64> + Send> {
    match (settings.law, settings.gamma) {
        (Law::Ned, None) => Box::new(Ned::default()),
        (Law::Ned, Some(gamma)) => Box::new(Ned::with_gamma(gamma)),
        (Law::Accelerated, None) => Box::new(Accelerated::default()),
        (Law::Accelerated, Some(gamma)) => Box::new(Accelerated::with_gamma(gamma)),
    }
}

/// A flowlet: its place in the iteration unless it has no path, and whether its endpoint knows its rate.
#[derive(Debug)]
struct Known {
    key: Option<Key>,
    told: Told,
}

/// Whose flow is in a slot of the iteration; the rate told last, bit/s: zero if none was, infinite if the slot is empty; and
/// whether it is news.
#[derive(Debug, Clone, Copy)]
struct Slot {
    told_bps: f64,
    endpoint: u32,
    flowlet: u32,
    is_news: bool,
}

const EMPTY: Slot = Slot { told_bps: f64::INFINITY, endpoint: 0, flowlet: 0, is_news: false };

/// An endpoint as the allocator knows it.
#[derive(Debug)]
struct Peer {
    channel: Channel,
    heard_ns: Ns,
    flowlets: BTreeMap<u32, Known>,
    /// Flowlets whose rate is to be told, some of which may be over.
    news: Vec<u32>,
}

/// What was not taken, and what was refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams taken.
    pub taken: u64,
    /// Doubled, late, or of an epoch that is over.
    pub stale: u64,
    /// Datagrams taken whose records were not, for the endpoint did not know of this allocator yet.
    pub early: u64,
    /// From one endpoint in another's name, or of an endpoint that there is not.
    pub forged: u64,
    /// Flowlets beyond the most that an endpoint may have.
    pub refused: u64,
    /// Times that an endpoint was silent for too long and lost its flowlets.
    pub lapsed: u64,
    /// Rates told.
    pub updates: u64,
}

/// The allocator's state.
pub struct Allocator {
    settings: Settings,
    iteration: Iteration<f64, Box<dyn ned::Law<f64> + Send>>,
    paths: Box<dyn Paths>,
    peers: Vec<Peer>,
    slots: Vec<Slot>,
    /// Normalized rates of the slots, in the iteration's unit.
    rates: Vec<f64>,
    capacity_bps: Vec<f64>,
    unscheduled_bps: Vec<f64>,
    quiet_until_ns: Ns,
    /// The peer that is asked next for a datagram.
    turn: usize,
    counters: Counters,
}

impl Allocator {
    /// An allocator that starts at `now_ns`. `endpoints` have the numbers from 0, links the capacities given (bit/s). `epoch` is
    /// above 0 and above all that the allocator before it can have had: that began at its own and rose by one each time that
    /// an endpoint was silent for too long. The start in ns times 2^16 leaves room for that.
    pub fn new(
        now_ns: Ns,
        epoch: u64,
        endpoints: usize,
        capacity_bps: &[f64],
        paths: Box<dyn Paths>,
        settings: Settings,
    ) -> Result<Self, Fault> {
        let share = settings.share();
        let scaled: Vec<f64> = capacity_bps.iter().map(|c| c * share).collect();
        let cluster = Cluster::new(&scaled, settings.alpha)?;
        let peer =
            || Peer { channel: Channel::new(epoch), heard_ns: now_ns, flowlets: BTreeMap::new(), news: Vec::new() };
        Ok(Allocator {
            settings,
            iteration: Iteration::new(cluster, law(&settings)),
            paths,
            peers: (0..endpoints).map(|_| peer()).collect(),
            slots: Vec::new(),
            rates: Vec::new(),
            capacity_bps: capacity_bps.to_vec(),
            unscheduled_bps: vec![0.0; capacity_bps.len()],
            quiet_until_ns: now_ns + settings.lease_ns,
            turn: 0,
            counters: Counters::default(),
        })
    }

    /// The first allocator of a network, where no rates are out yet, need not wait for a lease.
    pub fn first(mut self) -> Self {
        self.quiet_until_ns = 0;
        self
    }

    /// What was not taken, and why.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Flowlets of all endpoints.
    pub fn flowlets(&self) -> usize {
        self.peers.iter().map(|p| p.flowlets.len()).sum()
    }

    /// Takes a datagram that came from endpoint `from`, as its address tells.
    pub fn take(&mut self, now_ns: Ns, from: u32, datagram: &Datagram) {
        let is_its_own = datagram.direction == Direction::Up && datagram.endpoint == from;
        let Some(peer) = self.peers.get_mut(from as usize).filter(|_| is_its_own) else {
            self.counters.forged += 1;
            return;
        };
        let Taken::New { fresh, acked } = peer.channel.take(datagram) else {
            self.counters.stale += 1;
            return;
        };
        self.counters.taken += 1;
        peer.heard_ns = now_ns;
        for (number, ids) in acked {
            for id in ids {
                if let Some(known) = peer.flowlets.get_mut(&id).filter(|k| k.told == Told::In(number)) {
                    known.told = Told::Yes;
                }
            }
        }
        let is_told_to_us = datagram.peer_epoch == peer.channel.epoch();
        if fresh {
            self.drop_flowlets(from);
        }
        // What was told to the allocator before, and came late, may long be over. The answer makes the endpoint tell it again.
        if !is_told_to_us {
            self.counters.early += 1;
            return;
        }
        for End { flowlet } in &datagram.ends {
            let peer = &mut self.peers[from as usize];
            if let Some(key) = peer.flowlets.remove(flowlet).and_then(|known| known.key) {
                self.remove(key);
            }
        }
        for start in &datagram.starts {
            self.start(from, start);
        }
        if let Some(observed) = datagram.observed
            && let Some((out, into)) = self.paths.access(from)
        {
            self.observe(out, observed.out.bps());
            self.observe(into, observed.into.bps());
        }
    }

    fn start(&mut self, from: u32, start: &Start) {
        let weight = f64::from(start.weight).clamp(1.0 / self.settings.most_weight, self.settings.most_weight);
        let peer = &mut self.peers[from as usize];
        if let Some(known) = peer.flowlets.get(&start.flowlet) {
            if let Some(key) = known.key {
                let _ = self.iteration.cluster_mut().set_weight(key, weight);
            }
            return;
        }
        if peer.flowlets.len() >= self.settings.most_flowlets {
            self.counters.refused += 1;
            return;
        }
        let path = self.paths.path(from, start.to, start.path);
        let key = path.and_then(|links| self.iteration.cluster_mut().add(&links, weight).ok());
        peer.flowlets.insert(start.flowlet, Known { key, told: Told::Yes });
        if let Some(key) = key {
            if self.slots.len() <= key.slot() {
                self.slots.resize(key.slot() + 1, EMPTY);
            }
            self.slots[key.slot()] = Slot { told_bps: 0.0, endpoint: from, flowlet: start.flowlet, is_news: false };
        }
    }

    fn remove(&mut self, key: Key) {
        self.slots[key.slot()] = EMPTY;
        // The key was in the map, and so it is in the cluster.
        let _ = self.iteration.cluster_mut().remove(key);
    }

    fn drop_flowlets(&mut self, endpoint: u32) {
        let peer = &mut self.peers[endpoint as usize];
        peer.news.clear();
        for key in std::mem::take(&mut peer.flowlets).into_values().filter_map(|known| known.key) {
            self.remove(key);
        }
    }

    /// A link has another capacity, bit/s; zero if it failed. A fault where there is no such link, or the capacity makes no
    /// sense.
    pub fn set_capacity(&mut self, link: LinkId, capacity_bps: f64) -> Result<(), Fault> {
        let share = self.settings.share();
        let unscheduled_bps = self.unscheduled_bps.get(link as usize).copied().unwrap_or(0.0);
        let left_bps = (capacity_bps - unscheduled_bps).max(LEAST_SHARE * capacity_bps);
        self.iteration.cluster_mut().set_capacity(link, left_bps * share)?;
        self.capacity_bps[link as usize] = capacity_bps;
        Ok(())
    }

    /// So much of a link, bit/s, is taken by traffic that nobody schedules (section 6, "External traffic").
    pub fn set_unscheduled(&mut self, link: LinkId, bps: f64) -> Result<(), Fault> {
        let Some(unscheduled) = self.unscheduled_bps.get_mut(link as usize) else {
            let what = format!("there is no link {link}");
            return Err(Fault::new("link", what, "give the number of a link of the network"));
        };
        *unscheduled = if bps.is_finite() { bps.max(0.0) } else { 0.0 };
        self.set_capacity(link, self.capacity_bps[link as usize])
    }

    fn observe(&mut self, link: LinkId, bps: f64) {
        let Some(before_bps) = self.unscheduled_bps.get(link as usize) else { return };
        let _ = self.set_unscheduled(link, before_bps + NEWEST * (bps - before_bps));
    }

    /// One iteration: rates that moved are news to their endpoints.
    pub fn step(&mut self, now_ns: Ns) {
        self.drop_silent(now_ns);
        self.iteration.step();
        if now_ns < self.quiet_until_ns {
            return;
        }
        self.iteration.normalize(Normalizer::Flow, &mut self.rates);
        let unit_bps = self.iteration.cluster().unit_bps();
        for (slot, rate) in self.slots.iter_mut().zip(&self.rates) {
            let bps = rate * unit_bps;
            if (bps - slot.told_bps).abs() > self.settings.threshold * slot.told_bps {
                slot.told_bps = Rate::at_most(bps).bps();
                if !std::mem::replace(&mut slot.is_news, true) {
                    self.peers[slot.endpoint as usize].news.push(slot.flowlet);
                }
            }
        }
    }

    fn drop_silent(&mut self, now_ns: Ns) {
        for endpoint in 0..self.peers.len() as u32 {
            let peer = &mut self.peers[endpoint as usize];
            if !peer.flowlets.is_empty() && now_ns > peer.heard_ns + self.settings.patience_ns {
                peer.channel.lapse();
                self.counters.lapsed += 1;
                self.drop_flowlets(endpoint);
            }
        }
    }

    /// The next datagram, if there is one to send now: it names the endpoint. Ask until there is none.
    pub fn poll(&mut self, now_ns: Ns) -> Option<Datagram> {
        while self.turn < self.peers.len() {
            let endpoint = self.turn;
            if let Some(datagram) = self.poll_peer(now_ns, endpoint) {
                return Some(datagram);
            }
            self.turn += 1;
        }
        self.turn = 0;
        None
    }

    fn poll_peer(&mut self, now_ns: Ns, endpoint: usize) -> Option<Datagram> {
        let Allocator { settings, peers, slots, counters, .. } = self;
        let Peer { channel, flowlets, news, .. } = &mut peers[endpoint];
        for (number, ids) in channel.lost(now_ns, settings) {
            for id in ids {
                let known = flowlets.get(&id).filter(|known| known.told == Told::In(number));
                if let Some(key) = known.and_then(|known| known.key)
                    && !std::mem::replace(&mut slots[key.slot()].is_news, true)
                {
                    news.push(id);
                }
            }
        }
        let has_news = !news.is_empty() && channel.may_speak();
        let is_due = !flowlets.is_empty() && channel.spoke_ns() + settings.beat_ns <= now_ns;
        if !(has_news || is_due || channel.owes_ack()) {
            return None;
        }
        let mut datagram = Datagram::new(Direction::Down, endpoint as u32, 0);
        let most = if has_news { settings.most_records.min(news.len()) } else { 0 };
        let number = channel.next_number();
        let mut told = Vec::with_capacity(most);
        for id in news.drain(..most) {
            let Some(known) = flowlets.get_mut(&id) else { continue };
            let Some(key) = known.key else { continue };
            let slot = &mut slots[key.slot()];
            slot.is_news = false;
            known.told = Told::In(number);
            datagram.updates.push(Update { flowlet: id, rate: Rate::at_most(slot.told_bps) });
            told.push(id);
        }
        counters.updates += datagram.updates.len() as u64;
        channel.stamp(now_ns, &mut datagram, told);
        Some(datagram)
    }
}
