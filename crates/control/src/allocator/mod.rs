//! The allocator. It stores the flowlets of all endpoints, iterates NED, normalizes rates to the capacities (F-NORM),
//! and sends rates that changed (Flowtune, sections 2, 3 and 5.3).

mod links;
mod looks;
mod overload;
mod placing;
mod quotas;

pub use looks::{FlowletStatus, PeerState};
pub use overload::LinkLowering;

use crate::channel::{self, Fate, Received};
use crate::known::{Peer, Slot};
use crate::pace::Pace;
use crate::paths::Paths;
use crate::peer::Acked;
use crate::{ControlSettings, PriceLaw};
use overload::Overloads;
use quotas::Quotas;
use std::collections::VecDeque;
use subak_core::{IdVec, InputError, LinkId, Ns};
use subak_solve::ned::{self, Accelerated, Cluster, Ned, NedIteration, Normalizer};
use subak_wire::{Datagram, Direction, FlowletEnd, FlowletRate, GROUP_BYTES, Rate16};

fn law(settings: &ControlSettings) -> Box<dyn ned::PriceUpdate<f64> + Send> {
    match (settings.law, settings.gamma) {
        (PriceLaw::Ned, None) => Box::new(Ned::default()),
        (PriceLaw::Ned, Some(gamma)) => Box::new(Ned::with_gamma(gamma)),
        (PriceLaw::Accelerated, None) => Box::new(Accelerated::default()),
        (PriceLaw::Accelerated, Some(gamma)) => Box::new(Accelerated::with_gamma(gamma)),
    }
}

/// Counters of accepted and refused datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AllocatorCounters {
    /// Accepted datagrams.
    pub taken: u64,
    /// Refused datagrams: duplicate, late, or of an earlier epoch.
    pub stale: u64,
    /// Datagrams of an epoch that the endpoint has not proved to this allocator. They get a reply, but their content
    /// is ignored.
    pub unproven: u64,
    /// Refused datagrams: sent under another endpoint's number, or by an endpoint that did not join.
    pub forged: u64,
    /// Refused flowlets beyond an endpoint's limit.
    pub refused: u64,
    /// Number of times that an endpoint was silent for longer than `patience_ns` and its flowlets were removed.
    pub lapsed: u64,
    /// Rates sent.
    pub updates: u64,
    /// Retransmitted rates.
    pub again: u64,
}

/// The allocator's state.
pub struct Allocator {
    settings: ControlSettings,
    iteration: NedIteration<f64, Box<dyn ned::PriceUpdate<f64> + Send>>,
    paths: Box<dyn Paths>,
    epoch: u64,
    /// Endpoints by number; `None` for one that did not join, or left.
    peers: Vec<Option<Box<Peer>>>,
    slots: Vec<Slot>,
    /// Normalized rate of each slot, in the iteration's unit.
    rates: Vec<f64>,
    capacity_bps: IdVec<LinkId, f64>,
    unscheduled_bps: IdVec<LinkId, f64>,
    /// End of the initial lease, ns. No rates are sent until an RTT after it, since rates of an earlier allocator may
    /// be valid until then.
    quiet_until_ns: Ns,
    /// Endpoints for which there is something to send, served round robin.
    ready: VecDeque<u32>,
    /// Endpoints that must get an ACK, each with the deadline in ns; ordered by deadline.
    owing: VecDeque<(Ns, u32)>,
    pace: Pace,
    quotas: Quotas,
    overloads: Overloads,
    counters: AllocatorCounters,
}

impl Allocator {
    /// An allocator that starts at `now_ns`; endpoints [join](Allocator::join) later. Capacities are in bit/s.
    /// `epoch` must be positive and exceed every epoch of an earlier allocator. An epoch is a start value plus one
    /// for each expired endpoint, so that a start time in nanoseconds is a safe start value.
    pub fn new(
        now_ns: Ns,
        epoch: u64,
        capacity_bps: &[f64],
        paths: Box<dyn Paths>,
        settings: ControlSettings,
    ) -> Result<Self, InputError> {
        let share = settings.share();
        let scaled: Vec<f64> = capacity_bps.iter().map(|c| c * share).collect();
        let cluster = Cluster::new(&scaled, settings.alpha)?;
        Ok(Allocator {
            settings,
            iteration: NedIteration::new(cluster, law(&settings)),
            paths,
            epoch,
            peers: Vec::new(),
            slots: Vec::new(),
            rates: Vec::new(),
            capacity_bps: capacity_bps.to_vec().into(),
            unscheduled_bps: IdVec::filled(0.0, capacity_bps.len()),
            quiet_until_ns: now_ns + settings.lease_ns,
            ready: VecDeque::new(),
            owing: VecDeque::new(),
            pace: Pace::default(),
            quotas: Quotas::default(),
            overloads: Overloads::default(),
            counters: AllocatorCounters::default(),
        })
    }

    /// Skips the initial lease: for the first allocator of a network, when no rates are valid yet.
    pub fn first(mut self) -> Self {
        self.quiet_until_ns = 0;
        self
    }

    /// Sets the number of threads that run an iteration; rates are the same for any number.
    pub fn set_threads(&mut self, threads: usize) {
        self.iteration.set_threads(threads);
    }

    /// Counters of accepted and refused datagrams.
    pub fn counters(&self) -> AllocatorCounters {
        self.counters
    }

    /// Flowlets of all endpoints.
    pub fn flowlets(&self) -> usize {
        self.peers.iter().flatten().map(|p| p.flowlets.len()).sum()
    }

    /// Limits the rate of messages on the allocator's link, bit/s, with bursts of `burst_bytes`. A delayed rate is
    /// sent with its latest value.
    pub fn set_pace(&mut self, bps: f64, burst_bytes: usize) {
        self.pace.set(bps, burst_bytes);
    }

    /// Places the allocator at the host of endpoint `number`, and reserves the rate of its messages on that host's
    /// links. Otherwise messages would queue behind data, and all rates would be outdated.
    pub fn set_place(&mut self, number: u32, into_bps: f64, out_bps: f64) {
        if let Some((out, into)) = self.paths.access(number) {
            // The link comes from the network, so that this cannot fail.
            let _ = self.set_unscheduled(out, out_bps);
            let _ = self.set_unscheduled(into, into_bps);
        }
    }

    /// Admits endpoint `number`, and greets it.
    pub fn join(&mut self, number: u32) {
        self.join_as(number, 0);
    }

    /// Admits endpoint `number` like [`Allocator::join`]; the weights of its flowlets count towards the quota of
    /// `tenant`.
    pub fn join_as(&mut self, number: u32, tenant: u32) {
        let place = number as usize;
        if self.peers.len() <= place {
            self.peers.resize_with(place + 1, || None);
        }
        if self.peers[place].as_ref().is_some_and(|peer| peer.tenant != tenant) {
            self.leave(number);
        }
        if self.peers[place].is_none() {
            self.peers[place] = Some(Box::new(Peer::new(self.epoch, tenant, self.settings.most_flowlets)));
            self.make_ready(number);
        }
    }

    /// Limits the number of flowlets of endpoint `number`; existing flowlets remain.
    pub fn set_most_flowlets(&mut self, number: u32, most: usize) {
        if let Some(peer) = self.peer(number) {
            peer.most_flowlets = most;
        }
    }

    /// Removes endpoint `number` and its flowlets, and refuses its datagrams afterwards.
    pub fn leave(&mut self, number: u32) {
        self.drop_flowlets(number);
        self.forget_observed_by(number);
        if let Some(peer) = self.peers.get_mut(number as usize).and_then(Option::take) {
            // If the endpoint joins again, earlier messages to it belong to an earlier epoch.
            self.epoch = self.epoch.max(peer.channel.epoch() + 1);
        }
        self.ready.retain(|&of| of != number);
    }

    fn peer(&mut self, number: u32) -> Option<&mut Peer> {
        self.peers.get_mut(number as usize)?.as_deref_mut()
    }

    fn make_ready(&mut self, number: u32) {
        if let Some(peer) = self.peers.get_mut(number as usize).and_then(Option::as_mut)
            && !std::mem::replace(&mut peer.is_ready, true)
        {
            self.ready.push_back(number);
        }
    }

    /// Whether a datagram of endpoint `from` is replayed, duplicate or late.
    pub fn is_stale(&self, now_ns: Ns, from: u32, datagram: &Datagram) -> bool {
        let peer = self.peers.get(from as usize).and_then(Option::as_ref);
        peer.is_some_and(|peer| peer.channel.is_stale(now_ns, datagram, &self.settings))
    }

    /// Handles a datagram of endpoint `from`, which is identified by its address.
    pub fn take(&mut self, now_ns: Ns, from: u32, datagram: &Datagram) {
        let settings = self.settings;
        let is_its_own = datagram.direction == Direction::Up && datagram.endpoint == from;
        let Some(peer) = self.peer(from).filter(|_| is_its_own) else {
            self.counters.forged += 1;
            return;
        };
        let owed = peer.channel.ack_due_ns();
        let taken = peer.channel.take(now_ns, datagram, &settings);
        let owes = peer.channel.ack_due_ns();
        match owes {
            Some(due_ns) if due_ns <= now_ns => self.make_ready(from),
            Some(due_ns) if owes != owed => self.owing.push_back((due_ns, from)),
            _ => {}
        }
        let (fresh, acked, lost) = match taken {
            Received::Stale => {
                self.counters.stale += 1;
                return;
            }
            // Late messages to an earlier epoch may be obsolete: they are ignored.
            Received::Unproven => {
                self.counters.unproven += 1;
                return;
            }
            Received::New { fresh, acked, lost } => (fresh, acked, lost),
        };
        self.counters.taken += 1;
        if fresh {
            self.drop_flowlets(from);
        } else {
            self.settle(from, acked, lost);
        }
        for FlowletEnd { flowlet } in &datagram.ends {
            self.end(from, *flowlet);
        }
        for start in &datagram.starts {
            self.start(from, start);
        }
        self.take_losses(from, &datagram.losses);
        if let Some(observed) = datagram.observed
            && let Some((out, into)) = self.paths.access(from)
        {
            self.observe(out, observed.out.bps());
            self.observe(into, observed.into.bps());
            if let Some(peer) = self.peer(from) {
                peer.observed_ns = now_ns;
            }
        }
    }

    /// Handles ACKed and lost datagrams to `endpoint`.
    fn settle(&mut self, endpoint: u32, acked: Fate, lost: Fate) {
        let Some(peer) = self.peers.get_mut(endpoint as usize).and_then(Option::as_mut) else { return };
        for (number, ids) in acked {
            for id in ids {
                let Some(known) = peer.flowlets.get_mut(&id) else { continue };
                let slot = known.slot(&mut self.slots);
                // A rate queued for retransmission is removed if it was ACKed meanwhile.
                slot.is_news &= !slot.told.acknowledge(number);
            }
        }
        for (number, ids) in lost {
            for id in ids {
                let Some(known) = peer.flowlets.get_mut(&id) else { continue };
                let slot = known.slot(&mut self.slots);
                if slot.told.needs_again(number) && !std::mem::replace(&mut slot.is_news, true) {
                    self.counters.again += 1;
                    peer.news.push_back(id);
                }
            }
        }
    }

    /// Runs one iteration, and queues the rates that changed.
    pub fn step(&mut self, now_ns: Ns) {
        self.drop_silent(now_ns);
        self.forget_observed(now_ns);
        self.inspect(now_ns);
        self.keep_quotas();
        self.iteration.step();
        if !self.is_quiet(now_ns) {
            self.iteration.normalize(Normalizer::Flow, &mut self.rates);
            (1..self.settings.passes).for_each(|_| self.iteration.normalize_again(&mut self.rates));
            self.note_moved();
        }
        for endpoint in 0..self.peers.len() as u32 {
            self.look_after(now_ns, endpoint);
        }
    }

    fn is_quiet(&mut self, now_ns: Ns) -> bool {
        let rtts_ns = || self.peers.iter().flatten().map(|peer| peer.channel.rtt().least_ns());
        if self.quiet_until_ns > 0 && now_ns >= self.quiet_until_ns + rtts_ns().max().unwrap_or(0) {
            self.quiet_until_ns = 0;
        }
        self.quiet_until_ns > 0
    }

    /// Queues rates that changed by more than the threshold.
    fn note_moved(&mut self) {
        let unit_bps = self.iteration.cluster().unit_bps();
        for (slot, rate) in self.slots.iter_mut().zip(&self.rates) {
            let bps = rate * unit_bps;
            if (bps - slot.bps).abs() <= self.settings.threshold * slot.bps {
                continue;
            }
            (slot.bps, slot.told) = (Rate16::at_most(bps).bps(), Acked::No);
            if !std::mem::replace(&mut slot.is_news, true)
                && let Some(peer) = self.peers.get_mut(slot.endpoint as usize).and_then(Option::as_mut)
            {
                peer.news.push_back(slot.flowlet);
            }
        }
    }

    fn drop_silent(&mut self, now_ns: Ns) {
        for endpoint in 0..self.peers.len() as u32 {
            let patience_ns = self.settings.patience_ns;
            let Some(peer) = self.peer(endpoint).filter(|peer| !peer.flowlets.is_empty()) else { continue };
            if now_ns > peer.channel.heard_ns() + patience_ns + peer.channel.rtt().smoothed_ns() {
                peer.channel.lapse();
                peer.lapses += 1;
                self.counters.lapsed += 1;
                self.drop_flowlets(endpoint);
            }
        }
    }

    /// Adds `endpoint` to the ready queue if there is a datagram to send to it.
    fn look_after(&mut self, now_ns: Ns, endpoint: u32) {
        let settings = self.settings;
        let Some(peer) = self.peer(endpoint) else { return };
        let overdue = peer.channel.overdue(now_ns, &settings);
        if !overdue.is_empty() {
            self.settle(endpoint, Fate::new(), overdue);
        }
        let Some(peer) = self.peer(endpoint) else { return };
        if !peer.news.is_empty() && peer.channel.may_speak() || peer.channel.must_speak(now_ns) {
            self.make_ready(endpoint);
        }
    }

    /// Time of the next datagram of [`Allocator::poll`], ns, if no iteration runs before.
    pub fn due_ns(&self) -> Option<Ns> {
        match self.ready.is_empty() {
            false => Some(self.pace.next_ns()),
            true => self.owing.front().map(|&(due_ns, _)| due_ns.max(self.pace.next_ns())),
        }
    }

    /// The next datagram to send now; its header has the endpoint's number. Call this method until it returns `None`:
    /// after each iteration, after each received datagram, and at [`Allocator::due_ns`].
    pub fn poll(&mut self, now_ns: Ns) -> Option<Datagram> {
        while let Some(&(due_ns, endpoint)) = self.owing.front()
            && due_ns <= now_ns
        {
            self.owing.pop_front();
            if self.peer(endpoint).is_some_and(|peer| peer.channel.must_speak(now_ns)) {
                self.make_ready(endpoint);
            }
        }
        if now_ns < self.pace.next_ns() {
            return None;
        }
        let endpoint = self.ready.pop_front()?;
        let datagram = self.speak(now_ns, endpoint)?;
        self.pace.spend(now_ns, channel::bytes(&datagram) + self.settings.frame_bytes);
        Some(datagram)
    }

    /// The next datagram to `endpoint`, which remains in the ready queue while there is more to send.
    fn speak(&mut self, now_ns: Ns, endpoint: u32) -> Option<Datagram> {
        let Allocator { settings, peers, slots, counters, ready, .. } = self;
        let Peer { channel, flowlets, news, is_ready, .. } = peers.get_mut(endpoint as usize)?.as_deref_mut()?;
        let mut datagram = Datagram::new(Direction::Down, endpoint, 0);
        let mut told = Vec::new();
        if channel.may_speak() && !channel.is_answering() {
            let number = channel.next_number();
            let room = settings.most_bytes.saturating_sub(channel::bytes(&datagram) + GROUP_BYTES) / FlowletRate::BYTES;
            while told.len() < room.max(1)
                && let Some(id) = news.pop_front()
            {
                let Some(known) = flowlets.get_mut(&id) else { continue };
                let slot = known.slot(slots);
                // The rate was ACKed meanwhile.
                if !std::mem::replace(&mut slot.is_news, false) {
                    continue;
                }
                slot.told.tell(number);
                datagram.updates.push(FlowletRate { flowlet: id, rate: Rate16::at_most(slot.bps) });
                told.push(id);
            }
            counters.updates += told.len() as u64;
        }
        channel.stamp(now_ns, &mut datagram, told, false);
        *is_ready = channel.is_answering() || !news.is_empty() && channel.may_speak();
        if *is_ready {
            ready.push_back(endpoint);
        }
        Some(datagram)
    }
}
