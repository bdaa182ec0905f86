//! The daemon's loop, in one thread with one clock: receives datagrams, runs iterations on time, and sends datagrams.

mod plans;
mod requests;

use crate::config::Config;
use crate::guard::Bucket;
use crate::plan::{Endpoints, NetworkPlan};
use crate::request::DaemonRequest;
use crate::sockets::Sockets;
use crate::standby::{Change, Standby};
use crate::state::{DaemonCounts, Events, Histogram, LogEvent};
use crate::threads::ThreadChoice;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use subak_control::{Allocator, ControlSettings, LinkLowering};
use subak_core::Ns;
use subak_wire::{Datagram, Seal, claimed_endpoint};

/// Interval between checks of an idle loop, ns.
const IDLE_NS: Ns = 5_000_000;
/// Number of iterations without a change after which the loop is idle.
const RESTING: u32 = 2000;
/// Largest number of host names in a log event.
const MOST_NAMES: usize = 10;
/// Largest number of batches of datagrams received between two iterations.
const BATCHES: usize = 64;

/// State of a host, by its permanent number.
struct ServedHost {
    name: String,
    /// Number of the host in datagrams.
    wire: u32,
    up: Seal,
    down: Seal,
    bucket: Bucket,
    /// Index of the host's tenant in the plan.
    tenant: u32,
    most_flowlets: usize,
    /// Source address of the host's last accepted datagram.
    address: Option<SocketAddrV4>,
    /// Number of leases that expired because the host was silent.
    lapses: u64,
    seen_lapses: u64,
    /// Address and epoch of an endpoint that asked to join and is not verified yet. Replies of that epoch are sent to
    /// that address.
    asker: Option<(SocketAddrV4, u64)>,
}

/// The daemon: loop, sockets and allocator core.
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
    /// The allocator's core; `None` while the other allocator serves.
    allocator: Option<Allocator>,
    standby: Option<Standby>,
    down: BTreeSet<String>,
    changed: BTreeMap<String, f64>,
    /// Quotas set by command since the configuration was read, by tenant.
    quotas: BTreeMap<String, f64>,
    begun: Instant,
    next_ns: Ns,
    /// Time of the last iteration, ns.
    last_ns: Ns,
    /// Number of iterations since the last change.
    at_rest: u32,
    is_draining: bool,
    /// Upper bound of the allocated rate on links where flows lost packets, bit/s.
    lowered: BTreeMap<String, f64>,
    counts: DaemonCounts,
    iterations: Histogram,
    threads: ThreadChoice,
    events: Events,
}

impl Server {
    /// Opens the sockets that `config` names. `requests` come from other threads.
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
            threads: ThreadChoice::new(config.most_threads()),
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

    /// Address at which the daemon receives datagrams.
    pub fn address(&self) -> std::io::Result<std::net::SocketAddr> {
        self.sockets.address()
    }

    fn now_ns(&self) -> Ns {
        // At least 1: time 0 means "never".
        self.begun.elapsed().as_nanos() as Ns + 1
    }

    /// Runs until [`DaemonCommand::End`](crate::request::DaemonCommand::End); calls `alive` in each loop.
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
        // Requests and signals are checked at this interval.
        due_ns.min(now_ns + IDLE_NS)
    }

    fn wait(&self, ns: Ns) {
        let mut waits = [PollFd::from_borrowed_fd(self.sockets.as_fd(), PollFlags::IN)];
        // A signal only ends the wait.
        let _ = poll(&mut waits, Timespec::try_from(Duration::from_nanos(ns)).ok().as_ref());
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
            // A change ends the idle interval.
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

    /// Begins to serve. Rates granted by the other allocator may be valid until `since_ns`.
    fn serve(&mut self, since_ns: Ns) -> Result<(), String> {
        let capacity_bps = self.plan.capacity_bps(&self.down, &self.changed);
        let paths = self.plan.paths(&self.endpoints, &self.down);
        let made = Allocator::new(since_ns, epoch(), &capacity_bps, paths, self.settings);
        let mut allocator = made.map_err(|e| format!("{}: {e}", self.config.network.display()))?;
        allocator.set_threads(self.threads.threads());
        self.allocator = Some(allocator);
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
        let Some(allocator) = &mut self.allocator else {
            // At rest no iteration is due, so none is late.
            (self.next_ns, self.last_ns) = (now_ns + IDLE_NS, now_ns);
            return;
        };
        let late = now_ns.saturating_sub(self.next_ns.max(self.last_ns + self.interval_ns));
        if self.next_ns > 0 && late >= self.interval_ns {
            self.counts.skipped += late / self.interval_ns;
        }
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
        // Missed iterations are skipped.
        self.next_ns = now_ns + interval_ns.max(took_ns);
        self.choose_threads(took_ns);
        self.note_lowerings();
        if after.lapsed > before.lapsed {
            self.note_lapses();
        }
    }

    fn choose_threads(&mut self, took_ns: Ns) {
        let before = self.threads;
        if !self.threads.take(took_ns, self.interval_ns) {
            return;
        }
        let threads = self.threads.threads();
        if let Some(allocator) = &mut self.allocator {
            allocator.set_threads(threads);
        }
        let (from, us) = (before.threads(), self.threads.mean_ns() / 1e3);
        self.note("threads", format!("{from} -> {threads}: an iteration took {us:.0} us on {from}"));
    }

    /// Logs hosts whose lease expired because they were silent.
    fn note_lapses(&mut self) {
        let peers: Vec<(u32, u64)> =
            self.allocator.iter().flat_map(|a| a.peers().map(|p| (p.endpoint, p.lapses))).collect();
        let mut names = Vec::new();
        for (number, lapses) in peers {
            let Some(host) = self.hosts.get_mut(number as usize).and_then(Option::as_mut) else { continue };
            // The count of a new core starts at 0.
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

    /// Logs links whose allocated rate is bounded below the configured capacity because of losses, and links that
    /// recovered.
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
                // Small changes, as the bound is probed and raised.
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
                // Datagrams of the core always fit.
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

/// Start value of epochs: larger than those of earlier runs, unless the machine's clock is set back.
fn epoch() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64)
}

fn unix_ms() -> u64 {
    epoch() / 1_000_000
}
