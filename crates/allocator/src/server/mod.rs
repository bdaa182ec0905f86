//! The loop: datagrams in, iterations at their times, datagrams out. One thread, one clock.

mod plans;
mod requests;

use crate::config::Config;
use crate::guard::Bucket;
use crate::plan::{Endpoints, NetworkPlan};
use crate::request::DaemonRequest;
use crate::sockets::Sockets;
use crate::standby::{Change, Standby};
use crate::state::{DaemonCounts, Events, Histogram, LogEvent};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use subak_control::{Allocator, ControlSettings, LinkLowering};
use subak_core::Ns;
use subak_wire::{Datagram, Seal, claimed_endpoint};

/// With nothing to do, the loop looks around so often.
const IDLE_NS: Ns = 5_000_000;
/// So many iterations without news, and there is nothing to do.
const RESTING: u32 = 2000;
/// Hosts that an event names, at most.
const MOST_NAMES: usize = 10;
/// Batches that are taken between two iterations, at most.
const BATCHES: usize = 64;

/// A host as the loop has it, by its number.
struct ServedHost {
    name: String,
    /// Its number in datagrams.
    wire: u32,
    up: Seal,
    down: Seal,
    bucket: Bucket,
    /// The place of its tenant in the plan.
    tenant: u32,
    most_flowlets: usize,
    /// Where its datagrams came from that the core took.
    address: Option<SocketAddrV4>,
    /// Times that it was silent for too long, and those of them that the allocator's core has counted.
    lapses: u64,
    seen_lapses: u64,
    /// Where an answer goes to that is of this epoch: to who asked, and is not believed yet.
    asker: Option<(SocketAddrV4, u64)>,
}

/// The daemon.
pub struct Server {
    config: Config,
    plan: Arc<NetworkPlan>,
    plans: u64,
    settings: ControlSettings,
    interval_ns: Ns,
    sockets: Sockets,
    requests: Receiver<DaemonRequest>,
    endpoints: Endpoints,
    hosts: Vec<Option<ServedHost>>,
    /// None while the other one serves.
    allocator: Option<Allocator>,
    standby: Option<Standby>,
    down: BTreeSet<String>,
    changed: BTreeMap<String, f64>,
    /// Quotas that were told since the configuration was read.
    quotas: BTreeMap<String, f64>,
    begun: Instant,
    next_ns: Ns,
    /// When the last iteration was, and how many there were since the last news.
    last_ns: Ns,
    at_rest: u32,
    is_draining: bool,
    /// What is promised at most on links where flows lost, bit/s.
    lowered: BTreeMap<String, f64>,
    counts: DaemonCounts,
    iterations: Histogram,
    events: Events,
}

impl Server {
    /// Listens as `config` says. `requests` come from other threads.
    pub fn new(config: Config, plan: NetworkPlan, requests: Receiver<DaemonRequest>) -> Result<Server, String> {
        let settings = config.settings()?;
        let sockets = Sockets::bind(config.listen).map_err(|e| format!("listen: {}: {e}", config.listen))?;
        let begun = Instant::now();
        let standby = match &config.standby {
            Some(other) => {
                let secret = crate::config::secret(&other.key)?;
                Some(Standby::new(0, &secret, settings.lease_ns, other.first))
            }
            None => None,
        };
        let mut server = Server {
            interval_ns: config.interval_ns(),
            config,
            plan: Arc::new(plan),
            plans: 1,
            settings,
            sockets,
            requests,
            endpoints: Endpoints::default(),
            hosts: Vec::new(),
            allocator: None,
            standby,
            down: BTreeSet::new(),
            changed: BTreeMap::new(),
            quotas: BTreeMap::new(),
            begun,
            next_ns: 0,
            last_ns: 0,
            at_rest: 0,
            is_draining: false,
            lowered: BTreeMap::new(),
            counts: DaemonCounts::default(),
            iterations: Histogram::default(),
            events: Events::default(),
        };
        server.take_hosts();
        if server.standby.is_none() {
            server.serve(0)?;
        }
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> std::io::Result<std::net::SocketAddr> {
        self.sockets.address()
    }

    fn now_ns(&self) -> Ns {
        // Never 0: that is before everything.
        self.begun.elapsed().as_nanos() as Ns + 1
    }

    /// Runs until somebody says [`DaemonCommand::End`](crate::request::DaemonCommand::End); `alive` is called at each turn.
    pub fn run(&mut self, mut alive: impl FnMut()) -> Result<(), String> {
        loop {
            let now_ns = self.now_ns();
            let due_ns = self.due_ns(now_ns);
            self.wait(due_ns.saturating_sub(now_ns));
            let mut batches = 0;
            while self.take_batch() && batches < BATCHES {
                batches += 1;
            }
            if !self.answer_requests()? {
                self.sockets.flush();
                return Ok(());
            }
            let now_ns = self.now_ns();
            self.stand_by(now_ns)?;
            if now_ns >= self.next_ns {
                self.iterate(now_ns);
            }
            self.speak(self.now_ns());
            self.sockets.flush();
            alive();
        }
    }

    fn due_ns(&self, now_ns: Ns) -> Ns {
        let mut due_ns = self.next_ns;
        if let Some(at_ns) = self.allocator.as_ref().and_then(Allocator::due_ns) {
            due_ns = due_ns.min(at_ns);
        }
        if let Some(standby) = &self.standby {
            due_ns = due_ns.min(standby.due_ns());
        }
        // Others may have something to say.
        due_ns.min(now_ns + IDLE_NS)
    }

    fn wait(&self, ns: Ns) {
        let mut waits = [PollFd::new(self.sockets.as_fd(), PollFlags::POLLIN)];
        // A signal ends the wait, and that is all it does.
        let _ = ppoll(&mut waits, Some(TimeSpec::from_duration(Duration::from_nanos(ns))), None);
    }

    fn take_batch(&mut self) -> bool {
        let now_ns = self.now_ns();
        let Server { sockets, hosts, endpoints, allocator, standby, counts, at_rest, is_draining, .. } = self;
        let mut change = Change::None;
        let taken = sockets.take(|from, bytes| {
            counts.received += 1;
            if Standby::is_ours(bytes) {
                if let Some(standby) = standby.as_mut() {
                    let said = standby.take(now_ns, bytes);
                    change = if said == Change::None { change } else { said };
                }
                return;
            }
            let number = claimed_endpoint(bytes).and_then(|wire| Some((wire, endpoints.of_address(wire)?)));
            let host = number.and_then(|(wire, number)| {
                let host = hosts.get_mut(number as usize)?.as_mut().filter(|host| host.wire == wire)?;
                Some((number, host))
            });
            let Some((number, host)) = host else {
                counts.unknown += 1;
                return;
            };
            let Some(bytes) = host.up.open(bytes) else {
                counts.forged += 1;
                return;
            };
            let Ok(mut datagram) = Datagram::decode(bytes) else {
                counts.malformed += 1;
                return;
            };
            let Some(allocator) = allocator.as_mut().filter(|_| !*is_draining) else {
                counts.at_rest += 1;
                return;
            };
            datagram.endpoint = number;
            // Replayed datagrams do not count against the host's rate limit.
            if !allocator.is_stale(now_ns, number, &datagram) && !host.bucket.take(now_ns) {
                counts.limited += 1;
                return;
            }
            let before = allocator.counters();
            allocator.take(now_ns, number, &datagram);
            let after = allocator.counters();
            if after.taken > before.taken {
                host.address = Some(from);
            } else if after.unproven > before.unproven {
                host.asker = Some((from, datagram.epoch));
            }
            if !(datagram.starts.is_empty() && datagram.ends.is_empty()) {
                *at_rest = 0;
            }
        });
        if change == Change::Rest {
            self.rest(now_ns);
        }
        if self.at_rest == 0 {
            // News do not wait for one who rests.
            self.next_ns = self.next_ns.min(self.last_ns + self.interval_ns);
        }
        taken > 0
    }

    fn stand_by(&mut self, now_ns: Ns) -> Result<(), String> {
        let Some(standby) = &mut self.standby else { return Ok(()) };
        if now_ns < standby.due_ns() || self.is_draining && !standby.is_serving() {
            return Ok(());
        }
        let (message, change) = standby.wake(now_ns, epoch());
        if let (Some(message), Some(other)) = (message, &self.config.standby)
            && let std::net::SocketAddr::V4(to) = other.peer
        {
            self.sockets.give(to, |room| room.extend(message));
        }
        match change {
            Change::Serve(since_ns) => self.serve(since_ns),
            Change::Rest | Change::None => Ok(()),
        }
    }

    /// Serves from now on; rates of another may have been told until `since_ns`.
    fn serve(&mut self, since_ns: Ns) -> Result<(), String> {
        let capacity_bps = self.plan.capacity_bps(&self.down, &self.changed);
        let paths = self.plan.paths(&self.endpoints, &self.down);
        let made = Allocator::new(since_ns, epoch(), &capacity_bps, paths, self.settings);
        self.allocator = Some(made.map_err(|e| format!("{}: {e}", self.config.network.display()))?);
        for host in self.hosts.iter_mut().flatten() {
            (host.address, host.asker, host.seen_lapses) = (None, None, 0);
        }
        self.join_all();
        self.at_rest = 0;
        self.note("serves", String::new());
        Ok(())
    }

    fn rest(&mut self, _now_ns: Ns) {
        if self.allocator.take().is_some() {
            self.note("rests", "the other allocator serves".to_string());
        }
    }

    fn iterate(&mut self, now_ns: Ns) {
        let late = now_ns.saturating_sub(self.next_ns.max(self.last_ns + self.interval_ns));
        if self.next_ns > 0 && late >= self.interval_ns {
            self.counts.skipped += late / self.interval_ns;
        }
        let Some(allocator) = &mut self.allocator else {
            self.next_ns = now_ns + IDLE_NS;
            return;
        };
        self.last_ns = now_ns;
        let before = allocator.counters();
        allocator.step(now_ns);
        let after = allocator.counters();
        self.at_rest = if after.updates > before.updates { 0 } else { self.at_rest.saturating_add(1) };
        let took_ns = self.now_ns() - now_ns;
        self.iterations.add(took_ns);
        self.counts.iterations += 1;
        let flowlets = self.allocator.as_ref().map_or(0, Allocator::flowlets);
        let interval_ns = if flowlets == 0 || self.at_rest > RESTING { IDLE_NS } else { self.interval_ns };
        // What was missed is not made up for.
        self.next_ns = now_ns + interval_ns.max(took_ns);
        self.note_lowerings();
        if after.lapsed > before.lapsed {
            self.note_lapses();
        }
    }

    /// Hosts that were silent for too long.
    fn note_lapses(&mut self) {
        let peers: Vec<(u32, u64)> =
            self.allocator.iter().flat_map(|a| a.peers().map(|p| (p.endpoint, p.lapses))).collect();
        let mut names = Vec::new();
        for (number, lapses) in peers {
            let Some(host) = self.hosts.get_mut(number as usize).and_then(Option::as_mut) else { continue };
            // Another core begins at 0.
            let new = lapses - host.seen_lapses.min(lapses);
            host.lapses += new;
            host.seen_lapses = lapses;
            names.extend((new > 0).then(|| host.name.clone()));
        }
        let more = names.len().saturating_sub(MOST_NAMES);
        names.truncate(MOST_NAMES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        self.note("lapsed", format!("silent: {}{more}", names.join(", ")));
    }

    /// Links on which less is promised than they are declared with, or all of it again.
    fn note_lowerings(&mut self) {
        let lowerings = self.allocator.as_mut().map(Allocator::take_lowerings).unwrap_or_default();
        for LinkLowering { link, most_bps } in lowerings {
            let Some(found) = self.plan.network.links().get(link) else { continue };
            let name = found.id.clone();
            let what = match most_bps {
                Some(bps) if self.lowered.insert(name.clone(), bps).is_none_or(|before| bps < 0.95 * before) => {
                    self.counts.lowered += 1;
                    format!("flows lose on {name}: {:.3} Gb/s are promised; check its capacity", bps * 1e-9)
                }
                // Probes, and the way back from them.
                Some(_) => continue,
                None => {
                    self.lowered.remove(&name);
                    format!("nothing is lost on {name} any more: all of it is promised again")
                }
            };
            self.note("overload", what);
        }
    }

    fn speak(&mut self, now_ns: Ns) {
        let Some(allocator) = &mut self.allocator else { return };
        while let Some(mut datagram) = allocator.poll(now_ns) {
            let Some(host) = self.hosts.get_mut(datagram.endpoint as usize).and_then(Option::as_mut) else { continue };
            let asked = host.asker.filter(|(_, epoch)| *epoch == datagram.peer_epoch && datagram.updates.is_empty());
            let to = match asked {
                Some((asker, _)) => {
                    host.asker = None;
                    Some(asker)
                }
                None => host.address,
            };
            let Some(to) = to else {
                self.counts.nowhere += 1;
                continue;
            };
            datagram.endpoint = host.wire;
            self.counts.sent += 1;
            self.sockets.give(to, |room| {
                // What the core makes fits a datagram.
                let _ = datagram.encode(room);
                host.down.seal(room);
            });
        }
    }

    fn note(&mut self, kind: &'static str, what: String) {
        tracing::info!(event = kind, what);
        self.events.add(LogEvent { at_ms: unix_ms(), kind, what });
    }
}

/// Above all epochs of earlier lives, as long as the machine's clock does not go back.
fn epoch() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64)
}

fn unix_ms() -> u64 {
    epoch() / 1_000_000
}
