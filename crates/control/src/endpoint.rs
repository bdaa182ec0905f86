//! An endpoint: it tells the allocator of flowlets that start and end, and knows the rates that they may send at.

use crate::Settings;
use crate::channel::{Channel, Taken};
use crate::peer::Told;
use std::collections::{BTreeMap, BTreeSet};
use subak_core::Ns;
use subak_wire::{Datagram, Direction, End, Observed, Rate, Start};

/// A flowlet, from its start until the allocator knows of its end.
#[derive(Debug)]
struct Flowlet {
    connection: u64,
    start: Start,
    /// Sends of the connection that have not finished: those that come while one is active join it.
    sends: u32,
    /// The allocator is told, or is to be told, that it is over.
    over: bool,
    told: Told,
    rate: Option<Granted>,
}

#[derive(Debug, Clone, Copy)]
struct Granted {
    bps: f64,
    /// The end of its lease, if the allocator that granted it was restarted: nothing prolongs it.
    until_ns: Option<Ns>,
}

/// One host's side.
#[derive(Debug)]
pub struct Endpoint {
    settings: Settings,
    number: u32,
    channel: Channel,
    last_flowlet: u32,
    flowlets: BTreeMap<u32, Flowlet>,
    /// The flowlet that each connection sends in.
    active: BTreeMap<u64, u32>,
    /// Flowlets of which the allocator does not know the newest.
    news: BTreeSet<u32>,
    observed: Option<Observed>,
    heard_ns: Option<Ns>,
}

impl Endpoint {
    /// Endpoint `number`, whose epochs rise with each restart and begin at 1 at least.
    pub fn new(number: u32, epoch: u64, settings: Settings) -> Self {
        Endpoint {
            settings,
            number,
            channel: Channel::new(epoch),
            last_flowlet: 0,
            flowlets: BTreeMap::new(),
            active: BTreeMap::new(),
            news: BTreeSet::new(),
            observed: None,
            heard_ns: None,
        }
    }

    /// `connection` has something to send to endpoint `to`; `path` decides the way. What comes while it is sending joins the
    /// flowlet (section 6).
    pub fn begin(&mut self, connection: u64, to: u32, path: u32, weight: f32) {
        if let Some(flowlet) = self.active.get(&connection).and_then(|id| self.flowlets.get_mut(id)) {
            flowlet.sends += 1;
            if !flowlet.over {
                return;
            }
        }
        let before = self.active.get(&connection).and_then(|id| self.flowlets.get(id));
        let (sends, rate) = before.map_or((1, None), |f| (f.sends, f.rate));
        // At a flowlet each 10 ns the numbers wrap around after 40 s, and the first are long over.
        self.last_flowlet = self.last_flowlet.wrapping_add(1);
        let flowlet = self.last_flowlet;
        let start = Start { flowlet, to, path, weight };
        self.flowlets.insert(flowlet, Flowlet { connection, start, sends, over: false, told: Told::No, rate });
        if let Some(earlier) = self.active.insert(connection, flowlet) {
            self.forget_if_known(earlier);
        }
        self.news.insert(flowlet);
    }

    /// One of the sends of `connection` is done.
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

    /// `connection` has `remaining_bytes` left in all: the allocator hears of its end ahead of time, so that others have its
    /// rate when it is done. It keeps its own until then, or until the lease is over.
    pub fn remaining(&mut self, now_ns: Ns, connection: u64, remaining_bytes: u64) {
        let Some(bps) = self.rate_bps(now_ns, connection) else { return };
        if remaining_bytes as f64 * 8e9 <= bps * self.settings.ahead_ns as f64
            && let Some(&id) = self.active.get(&connection)
        {
            self.end(id);
        }
    }

    fn end(&mut self, id: u32) {
        let Some(flowlet) = self.flowlets.get_mut(&id) else { return };
        if !flowlet.over {
            flowlet.over = true;
            flowlet.told = Told::No;
            self.news.insert(id);
        }
    }

    fn forget_if_known(&mut self, id: u32) {
        let Some(flowlet) = self.flowlets.get(&id) else { return };
        if flowlet.over && flowlet.told == Told::Yes && self.active.get(&flowlet.connection) != Some(&id) {
            self.flowlets.remove(&id);
        }
    }

    /// `connection` has another weight from now on.
    pub fn set_weight(&mut self, connection: u64, weight: f32) {
        let Some(&id) = self.active.get(&connection) else { return };
        if let Some(flowlet) = self.flowlets.get_mut(&id).filter(|f| !f.over && f.start.weight != weight) {
            flowlet.start.weight = weight;
            flowlet.told = Told::No;
            self.news.insert(id);
        }
    }

    /// Traffic of this host that no allocator schedules, bit/s.
    pub fn observe(&mut self, out_bps: f64, into_bps: f64) {
        self.observed = Some(Observed { out: Rate::at_most(out_bps), into: Rate::at_most(into_bps) });
    }

    /// What `connection` may send, bit/s. `None`: nothing was granted, or the lease is over, and the host's own congestion
    /// control decides.
    pub fn rate_bps(&self, now_ns: Ns, connection: u64) -> Option<f64> {
        let granted = self.flowlets.get(self.active.get(&connection)?)?.rate?;
        (now_ns < granted.until_ns.unwrap_or(self.lease_until_ns())).then_some(granted.bps)
    }

    /// The rate of `connection` that was granted last, whether or not it still holds: where the host's own congestion control
    /// starts from.
    pub fn last_rate_bps(&self, connection: u64) -> Option<f64> {
        Some(self.flowlets.get(self.active.get(&connection)?)?.rate?.bps)
    }

    /// Until when rates hold if the allocator is not heard again.
    pub fn lease_until_ns(&self) -> Ns {
        self.heard_ns.map_or(0, |heard_ns| heard_ns + self.settings.lease_ns)
    }

    /// Takes a datagram of the allocator: the connections that have another rate now.
    pub fn take(&mut self, now_ns: Ns, datagram: &Datagram) -> Vec<u64> {
        if datagram.direction != Direction::Down || datagram.endpoint != self.number {
            return Vec::new();
        }
        let lease_until_ns = self.lease_until_ns();
        let Taken::New { fresh, acked } = self.channel.take(datagram) else { return Vec::new() };
        if fresh {
            self.start_over(lease_until_ns);
        }
        self.heard_ns = Some(now_ns);
        for (number, ids) in acked {
            for id in ids {
                if let Some(flowlet) = self.flowlets.get_mut(&id).filter(|f| f.told == Told::In(number)) {
                    flowlet.told = Told::Yes;
                    self.forget_if_known(id);
                }
            }
        }
        let mut changed = Vec::new();
        for update in &datagram.updates {
            if let Some(flowlet) = self.flowlets.get_mut(&update.flowlet) {
                flowlet.rate = Some(Granted { bps: update.rate.bps(), until_ns: None });
                changed.push(flowlet.connection);
            }
        }
        changed
    }

    /// The allocator was restarted: it knows of nothing, and what was granted runs out.
    fn start_over(&mut self, lease_until_ns: Ns) {
        let Endpoint { flowlets, active, news, .. } = self;
        news.clear();
        flowlets.retain(|id, flowlet| {
            if let Some(granted) = &mut flowlet.rate {
                granted.until_ns.get_or_insert(lease_until_ns);
            }
            flowlet.told = if flowlet.over { Told::Yes } else { Told::No };
            if !flowlet.over {
                news.insert(*id);
            }
            !flowlet.over || active.get(&flowlet.connection) == Some(id)
        });
    }

    /// The next datagram to the allocator, if there is one to send now. Ask until there is none.
    pub fn poll(&mut self, now_ns: Ns) -> Option<Datagram> {
        for (number, ids) in self.channel.lost(now_ns, &self.settings) {
            let told_then = |id: &u32| self.flowlets.get(id).is_some_and(|f| f.told == Told::In(number));
            self.news.extend(ids.into_iter().filter(told_then));
        }
        let has_news = !self.news.is_empty() && self.channel.may_speak();
        let is_due = self.beat_ns().is_some_and(|due_ns| due_ns <= now_ns);
        if !(has_news || is_due || self.channel.owes_ack() || self.observed.is_some()) {
            return None;
        }
        let mut datagram = Datagram::new(Direction::Up, self.number, 0);
        datagram.observed = self.observed.take();
        let most = if has_news { self.settings.most_records } else { 0 };
        let told: Vec<u32> = self.news.iter().copied().take(most).collect();
        for id in &told {
            self.news.remove(id);
            match self.flowlets.get(id) {
                Some(flowlet) if flowlet.over => datagram.ends.push(End { flowlet: *id }),
                Some(flowlet) => datagram.starts.push(flowlet.start),
                None => {}
            }
        }
        let number = self.channel.stamp(now_ns, &mut datagram, told.clone());
        for id in told {
            if let Some(flowlet) = self.flowlets.get_mut(&id) {
                flowlet.told = Told::In(number);
            }
        }
        Some(datagram)
    }

    /// When a datagram is due though there is no news: while it sends, the endpoint must be heard.
    fn beat_ns(&self) -> Option<Ns> {
        (!self.flowlets.is_empty()).then(|| self.channel.spoke_ns() + self.settings.beat_ns)
    }

    /// When [`Endpoint::poll`] has something to do, if nothing happens before.
    pub fn due_ns(&self) -> Option<Ns> {
        let at_once = !self.news.is_empty() && self.channel.may_speak() || self.channel.owes_ack();
        if at_once || self.observed.is_some() {
            return Some(0);
        }
        [self.beat_ns(), self.channel.due_ns(&self.settings)].into_iter().flatten().min()
    }

    /// Flowlets that are remembered.
    pub fn flowlets(&self) -> usize {
        self.flowlets.len()
    }
}
