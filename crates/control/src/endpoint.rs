//! An endpoint: it announces the start and end of flowlets to the allocator, and stores their rates.

use crate::ControlSettings;
use crate::channel::{self, Channel, Received};
use crate::pace::Pace;
use crate::peer::Acked;
use std::collections::{BTreeMap, BTreeSet};
use subak_core::Ns;
use subak_wire::{Datagram, Direction, FlowletEnd, FlowletLoss, GROUP_BYTES, Observed, Rate16, Start};

/// A flowlet, stored from its start until the allocator has ACKed its end.
#[derive(Debug)]
struct Flowlet {
    connection: u64,
    start: Start,
    /// Number of unfinished writes of the connection. A write that begins while another is unfinished joins its
    /// flowlet.
    sends: u32,
    /// Whether the flowlet has ended; the allocator may not have ACKed that yet.
    over: bool,
    told: Acked,
    rate: Option<Granted>,
}

#[derive(Debug, Clone, Copy)]
struct Granted {
    bps: f64,
    /// End of the lease if it cannot be renewed, ns: the allocator restarted, or has been told that the flowlet ends.
    until_ns: Option<Ns>,
}

/// State machine of one host's endpoint.
#[derive(Debug)]
pub struct Endpoint {
    settings: ControlSettings,
    number: u32,
    channel: Channel,
    last_flowlet: u32,
    flowlets: BTreeMap<u32, Flowlet>,
    /// Active flowlet by connection.
    active: BTreeMap<u64, u32>,
    /// Flowlets whose latest state the allocator has not ACKed.
    news: BTreeSet<u32>,
    observed: Option<Observed>,
    /// Loss rates of flowlets that are not reported yet, in units of 2^-16.
    losses: BTreeMap<u32, u16>,
    pace: Pace,
}

impl Endpoint {
    /// Creates endpoint `number`. Epochs start at 1 and grow with each restart.
    pub fn new(number: u32, epoch: u64, settings: ControlSettings) -> Self {
        Endpoint {
            settings,
            number,
            channel: Channel::new(epoch),
            last_flowlet: 0,
            flowlets: BTreeMap::new(),
            active: BTreeMap::new(),
            news: BTreeSet::new(),
            observed: None,
            losses: BTreeMap::new(),
            pace: Pace::default(),
        }
    }

    /// Limits the rate of messages, bit/s, with bursts of `burst_bytes`.
    pub fn set_pace(&mut self, bps: f64, burst_bytes: usize) {
        self.pace.set(bps, burst_bytes);
    }

    /// Arrival time of the allocator's latest datagram with changes, ns; 0 for never.
    pub fn heard_ns(&self) -> Ns {
        self.channel.heard_ns()
    }

    /// Whether both sides have proved their epochs to each other.
    pub fn is_joined(&self) -> bool {
        self.channel.is_joined()
    }

    /// Whether a reply of the allocator is due: it is unknown, it renews leases, or an ACK is outstanding.
    pub fn awaits_reply(&self) -> bool {
        !self.is_joined() || !self.flowlets.is_empty() || self.channel.awaits_ack()
    }

    /// Makes a liveness probe due at once, after a switch to another allocator.
    pub fn probe_at_once(&mut self) {
        self.channel.probe_at_once();
    }

    /// Begins a write of `connection` to endpoint `to`; `path` selects the path. Further writes join the flowlet
    /// while it is active (section 6).
    pub fn begin(&mut self, connection: u64, to: u32, path: u32, weight: f32) {
        if let Some(flowlet) = self.active.get(&connection).and_then(|id| self.flowlets.get_mut(id)) {
            flowlet.sends += 1;
            if !flowlet.over {
                return;
            }
        }
        let before = self.active.get(&connection).and_then(|id| self.flowlets.get(id));
        let (sends, rate) = before.map_or((1, None), |f| (f.sends, f.rate));
        // At one flowlet each 10 ns, numbers wrap around after 40 s, when the first flowlets have long ended.
        self.last_flowlet = self.last_flowlet.wrapping_add(1);
        let flowlet = self.last_flowlet;
        let start = Start { flowlet, to, path, weight, demand: None };
        self.flowlets.insert(flowlet, Flowlet { connection, start, sends, over: false, told: Acked::No, rate });
        if let Some(earlier) = self.active.insert(connection, flowlet) {
            self.forget_if_known(earlier);
        }
        self.news.insert(flowlet);
    }

    /// Ends one write of `connection`.
    pub fn finish(&mut self, connection: u64) {
        let Some(&id) = self.active.get(&connection) else { return };
        let Some(flowlet) = self.flowlets.get_mut(&id) else { return };
        flowlet.sends = flowlet.sends.saturating_sub(1);
        if flowlet.sends == 0 {
            self.active.remove(&connection);
            self.end(id);
            self.forget_if_known(id);
        }
    }

    /// Sets the remaining bytes of `connection`. The end is announced ahead of time, so that the rate is reallocated
    /// when the flowlet ends. Until then the connection keeps its rate under the present lease, which is not renewed.
    pub fn remaining(&mut self, now_ns: Ns, connection: u64, remaining_bytes: u64) {
        let Some(bps) = self.rate_bps(now_ns, connection) else { return };
        if remaining_bytes as f64 * 8e9 > bps * self.settings.ahead_ns as f64 {
            return;
        }
        let lease_until_ns = self.lease_until_ns();
        let Some(&id) = self.active.get(&connection) else { return };
        if let Some(granted) = self.flowlets.get_mut(&id).and_then(|f| f.rate.as_mut()) {
            granted.until_ns.get_or_insert(lease_until_ns);
        }
        self.end(id);
    }

    fn end(&mut self, id: u32) {
        let Some(flowlet) = self.flowlets.get_mut(&id) else { return };
        if !flowlet.over {
            flowlet.over = true;
            flowlet.told = Acked::No;
            self.news.insert(id);
        }
    }

    fn forget_if_known(&mut self, id: u32) {
        let Some(flowlet) = self.flowlets.get(&id) else { return };
        if flowlet.over && flowlet.told == Acked::Yes && self.active.get(&flowlet.connection) != Some(&id) {
            self.flowlets.remove(&id);
        }
    }

    /// Sets the weight of `connection`.
    pub fn set_weight(&mut self, connection: u64, weight: f32) {
        self.change(connection, |start| Start { weight, ..start });
    }

    /// Sets the demand of `connection`, bit/s; infinite for no limit.
    pub fn set_demand(&mut self, connection: u64, demand_bps: f64) {
        let demand = demand_bps.is_finite().then(|| Rate16::at_most(demand_bps));
        self.change(connection, |start| Start { demand, ..start });
    }

    /// Sets the path of `connection`, which keeps its rate until the allocator sends a new one.
    pub fn reroute(&mut self, connection: u64, path: u32) {
        self.change(connection, |start| Start { path, ..start });
    }

    fn change(&mut self, connection: u64, new: impl FnOnce(Start) -> Start) {
        let Some(&id) = self.active.get(&connection) else { return };
        let Some(flowlet) = self.flowlets.get_mut(&id).filter(|f| !f.over) else { return };
        let start = new(flowlet.start);
        if start != flowlet.start {
            (flowlet.start, flowlet.told) = (start, Acked::No);
            self.news.insert(id);
        }
    }

    /// Reports this host's unscheduled traffic, bit/s: sent, and received.
    pub fn observe(&mut self, out_bps: f64, into_bps: f64) {
        self.observed = Some(Observed { out: Rate16::at_most(out_bps), into: Rate16::at_most(into_bps) });
    }

    /// Records `share`, the fraction of lost packets of `connection`, which has an allocated rate; the allocator gets
    /// it with the next datagram.
    pub fn lose(&mut self, connection: u64, share: f64) {
        if let Some(&flowlet) = self.active.get(&connection) {
            self.losses.insert(flowlet, (share.clamp(0.0, 1.0) * 65_535.0).round() as u16);
        }
    }

    /// Rate of `connection`, bit/s. `None` before the first rate and after the lease: the host's own congestion
    /// control decides.
    pub fn rate_bps(&self, now_ns: Ns, connection: u64) -> Option<f64> {
        let granted = self.flowlets.get(self.active.get(&connection)?)?.rate?;
        (now_ns < granted.until_ns.unwrap_or(self.lease_until_ns())).then_some(granted.bps)
    }

    /// Latest rate of `connection`, bit/s, even if expired: the host's own congestion control continues from it.
    pub fn last_rate_bps(&self, connection: u64) -> Option<f64> {
        Some(self.flowlets.get(self.active.get(&connection)?)?.rate?.bps)
    }

    /// End of the lease without further messages, ns: a lease and an RTT after the send time of the latest datagram
    /// that the allocator ACKed.
    pub fn lease_until_ns(&self) -> Ns {
        let lease_ns = self.settings.lease_ns + self.channel.rtt().least_ns();
        self.channel.proof_ns().map_or(0, |proof_ns| proof_ns + lease_ns)
    }

    /// Handles a datagram of the allocator; returns the connections whose rate changed.
    pub fn take(&mut self, now_ns: Ns, datagram: &Datagram) -> Vec<u64> {
        if datagram.direction != Direction::Down || datagram.endpoint != self.number {
            return Vec::new();
        }
        let lease_until_ns = self.lease_until_ns();
        let Received::New { fresh, acked, lost } = self.channel.take(now_ns, datagram, &self.settings) else {
            return Vec::new();
        };
        if fresh {
            self.start_over(lease_until_ns);
        }
        for (number, ids) in acked {
            for id in ids {
                if self.flowlets.get_mut(&id).is_some_and(|f| f.told.acknowledge(number)) {
                    self.news.remove(&id);
                    self.forget_if_known(id);
                }
            }
        }
        self.tell_again(lost);
        let mut changed = Vec::new();
        if lease_until_ns <= now_ns && now_ns < self.lease_until_ns() {
            // The lease is renewed, so that expired rates are valid again.
            changed.extend(self.flowlets.values().filter(|f| f.rate.is_some()).map(|f| f.connection));
        }
        for update in &datagram.updates {
            if let Some(flowlet) = self.flowlets.get_mut(&update.flowlet) {
                let until_ns = flowlet.rate.and_then(|r| r.until_ns).filter(|_| flowlet.over);
                flowlet.rate = Some(Granted { bps: update.rate.bps(), until_ns });
                changed.push(flowlet.connection);
            }
        }
        changed
    }

    fn tell_again(&mut self, lost: channel::Fate) {
        for (number, ids) in lost {
            let needs_again = |id: &u32| self.flowlets.get(id).is_some_and(|f| f.told.needs_again(number));
            self.news.extend(ids.into_iter().filter(needs_again));
        }
    }

    /// Handles a restart of the allocator, which has lost all state: flowlets are announced again, and rates granted
    /// before expire with their lease.
    fn start_over(&mut self, lease_until_ns: Ns) {
        let Endpoint { flowlets, active, news, .. } = self;
        news.clear();
        flowlets.retain(|id, flowlet| {
            if let Some(granted) = &mut flowlet.rate {
                granted.until_ns.get_or_insert(lease_until_ns);
            }
            flowlet.told = if flowlet.over { Acked::Yes } else { Acked::No };
            if !flowlet.over {
                news.insert(*id);
            }
            !flowlet.over || active.get(&flowlet.connection) == Some(id)
        });
    }

    /// The next datagram to the allocator to send now. Call this method until it returns `None`.
    pub fn poll(&mut self, now_ns: Ns) -> Option<Datagram> {
        let overdue = self.channel.overdue(now_ns, &self.settings);
        self.tell_again(overdue);
        let mut asks = self.probe_due_ns().is_some_and(|due_ns| due_ns <= now_ns);
        let speaks = self.has_news() || self.channel.must_speak(now_ns) || asks;
        if !speaks || now_ns < self.pace.next_ns() {
            return None;
        }
        let mut datagram = Datagram::new(Direction::Up, self.number, 0);
        let mut told = Vec::new();
        if self.channel.may_speak() && !self.channel.is_answering() {
            datagram.observed = self.observed.take();
            // Without an ACK the endpoint would not notice that its reports reach nobody.
            asks |= datagram.observed.is_some_and(|seen| seen.out.bps() + seen.into.bps() > 0.0);
            told = self.tell(&mut datagram);
            self.tell_losses(&mut datagram);
        }
        self.channel.stamp(now_ns, &mut datagram, told, asks);
        self.pace.spend(now_ns, channel::bytes(&datagram) + self.settings.frame_bytes);
        Some(datagram)
    }

    /// Whether there are changes that may be sent.
    fn has_news(&self) -> bool {
        (!self.news.is_empty() || self.observed.is_some() || !self.losses.is_empty()) && self.channel.may_speak()
    }

    /// Writes as many changes into `datagram` as fit; returns the flowlets in it.
    fn tell(&mut self, datagram: &mut Datagram) -> Vec<u32> {
        let number = self.channel.next_number();
        let mut told = Vec::new();
        // Leaves space for the headers of all groups that may be begun.
        let mut left = self.settings.most_bytes.saturating_sub(channel::bytes(datagram) + 3 * GROUP_BYTES);
        while let Some(&id) = self.news.first() {
            let flowlet = self.flowlets.get_mut(&id);
            let bytes = flowlet.as_ref().map_or(0, |f| if f.over { FlowletEnd::BYTES } else { f.start.bytes() });
            // At least one flowlet is written.
            if bytes > left && !told.is_empty() {
                break;
            }
            left = left.saturating_sub(bytes);
            self.news.remove(&id);
            let Some(flowlet) = flowlet else { continue };
            match flowlet.over {
                true => datagram.ends.push(FlowletEnd { flowlet: id }),
                false => datagram.starts.push(flowlet.start),
            }
            flowlet.told.tell(number);
            told.push(id);
        }
        told
    }

    /// Writes losses into the remaining space of `datagram`. Each is reported once; continuing losses are recorded
    /// again.
    fn tell_losses(&mut self, datagram: &mut Datagram) {
        let room = self.settings.most_bytes.saturating_sub(channel::bytes(datagram) + GROUP_BYTES) / FlowletLoss::BYTES;
        while datagram.losses.len() < room
            && let Some((flowlet, share)) = self.losses.pop_first()
        {
            datagram.losses.push(FlowletLoss { flowlet, share });
        }
    }

    /// Time of the next liveness probe, ns. While the endpoint sends, probes renew the lease; otherwise they only find
    /// out whether the allocator still serves.
    fn probe_due_ns(&self) -> Option<Ns> {
        let ControlSettings { beat_ns, idle_beat_ns, .. } = self.settings;
        let interval_ns = if self.flowlets.is_empty() { idle_beat_ns } else { beat_ns };
        (interval_ns > 0 && self.is_joined()).then(|| self.channel.probe_due_ns(interval_ns))
    }

    /// Time of the next datagram of [`Endpoint::poll`], ns, if no datagram arrives and no flowlet changes before.
    pub fn due_ns(&self) -> Option<Ns> {
        let at_once = (self.has_news() || self.channel.must_greet()).then_some(0);
        let speaks_ns = [at_once, self.channel.ack_due_ns(), self.probe_due_ns()].into_iter().flatten().min();
        let speaks_ns = speaks_ns.map(|at_ns| at_ns.max(self.pace.next_ns()));
        [speaks_ns, self.channel.due_ns(&self.settings)].into_iter().flatten().min()
    }

    /// Time at which the next rate expires without further messages, ns. Rates of an allocator that has restarted
    /// cannot be renewed.
    pub fn next_end_ns(&self, now_ns: Ns) -> Option<Ns> {
        let lease_until_ns = self.lease_until_ns();
        let ends_ns = self.flowlets.values().filter_map(|f| Some(f.rate?.until_ns.unwrap_or(lease_until_ns)));
        ends_ns.filter(|&end_ns| end_ns > now_ns).min()
    }

    /// Number of stored flowlets.
    pub fn flowlets(&self) -> usize {
        self.flowlets.len()
    }
}
