//! Flowtune's endpoint on a host: gets flowlet events from the kernel and sets the rates that the allocator grants.
//!
//! The protocol logic is in `subak_control`, which the simulator runs too. For testbeds one process may serve several
//! hosts, each in a network namespace of its own.

use crate::shares::Weighing;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use subak_control::ControlSettings;
use subak_wire::Secret;

/// Configuration of the agent: its hosts and their allocators.
#[derive(Debug, Clone)]
pub struct FlowtuneConfig {
    /// Name of the congestion control in the kernel.
    pub name: String,
    /// Address and namespace file of each host.
    pub hosts: Vec<(Ipv4Addr, String)>,
    /// Whether sockets are opened in this process's namespace instead of the hosts'.
    pub sockets_here: bool,
    /// Addresses of the allocators; the agent uses the first that serves.
    pub allocators: Vec<SocketAddr>,
    /// Key shared with the allocator.
    pub secret: Secret,
    /// Settings of the control protocol, the same as the allocator's.
    pub settings: ControlSettings,
    /// Smallest flowlet that is scheduled, bytes; smaller ones use the kernel's congestion control.
    pub shortest_bytes: u32,
    /// Weights by destination or control group.
    pub weights: Vec<(String, f64)>,
    /// Rule for who sets weights.
    pub weighing: Weighing,
    /// Device whose traffic is measured; by default that of the host's address or default route.
    pub device: Option<String>,
    /// Addresses of hosts that run an agent, each with its prefix length in bits.
    pub partners: Vec<(Ipv4Addr, u32)>,
    /// IPv6 prefixes of hosts, each with its length in bits and the host's address at the allocator.
    pub known: Vec<(Ipv6Addr, u32, Ipv4Addr)>,
    /// Whether the machine's other network namespaces, also those that appear later, belong to the only host.
    pub containers: bool,
    /// File in which weights are logged.
    pub log: Option<PathBuf>,
}

/// Parses an IPv6 prefix of a host and its address at the allocator, such as `fd00:0:0:7::/64=10.0.0.7`.
pub fn known_of(text: &str) -> Result<(Ipv6Addr, u32, Ipv4Addr), String> {
    let read = || {
        let (prefix, host) = text.split_once('=')?;
        let (address, bits) = prefix.split_once('/').unwrap_or((prefix, "128"));
        let bits = bits.parse().ok().filter(|bits| *bits <= 128)?;
        Some((address.parse().ok()?, bits, host.parse().ok()?))
    };
    read().ok_or_else(|| format!("\"{text}\" is no prefix of a host, such as fd00:0:0:7::/64=10.0.0.7"))
}

#[cfg(feature = "bpf")]
mod running {
    use super::FlowtuneConfig;
    use crate::device::{Device, Unscheduled, leaving};
    use crate::hosts::control_groups;
    use crate::kernel::flowtune::{Event, EventKind, Loaded, Wanted};
    use crate::kernel::weights::WeightMaps;
    use crate::namespace::{self, Namespace};
    use crate::shares::Shares;
    use crate::sys::{device_of, namespace_cookie};
    use crate::traffic::clock_ns;
    use crate::weight_log::{WeightLog, WeightSet};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::collections::{BTreeMap, BTreeSet, VecDeque};
    use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
    use std::time::{SystemTime, UNIX_EPOCH};
    use subak_control::AuthenticatedEndpoint;

    /// A flowlet ends when no data arrives for this time, ns; data that arrives earlier continues it.
    const LINGER_NS: u64 = 1_000_000;
    /// Time without a reply of the allocator after which the agent logs that, ns.
    const WORTH_SAYING_NS: u64 = 2_000_000_000;
    /// Interval between checks without events, ns.
    const IDLE_NS: u64 = 100_000_000;
    /// At the smallest paced rate, a full packet takes the lease divided by this number.
    const PARTS_OF_LEASE: u64 = 4;
    /// Interval between searches for namespaces of other agents, ns.
    const OTHERS_NS: u64 = 1_000_000_000;

    struct Host {
        address: Ipv4Addr,
        authenticated: AuthenticatedEndpoint,
        socket: UdpSocket,
        /// Index of the allocator in use.
        allocator: usize,
        /// Index of the allocator to which the socket is connected. The kernel drops datagrams of other senders.
        connected: Option<usize>,
        /// Time since which that allocator's reply is missing, ns.
        silent_since_ns: u64,
        /// Time of the last reply, or of the last moment without a pending request, ns.
        heard_ns: u64,
        is_alone: bool,
        lease_ns: u64,
        /// Measurement of the device's unscheduled traffic.
        unscheduled: Option<Unscheduled>,
        /// Connections with an active flowlet.
        active: BTreeSet<u64>,
        /// Weights of the connections with an active flowlet.
        shares: Shares,
        /// Start time of flowlets without a rate yet, ns, by connection.
        started: BTreeMap<u64, u64>,
        /// Time at which idle flowlets end unless more data arrives, ns, by connection.
        ending: BTreeMap<u64, u64>,
    }

    /// A running agent; dropping it stops the agent.
    pub struct RunningFlowtune {
        loaded: Loaded,
        hosts: Vec<Host>,
        allocators: Vec<SocketAddr>,
        patience_ns: u64,
        room: Vec<u8>,
        notes: Vec<String>,
        counts: Counts,
        /// Time of the next search for namespaces of other agents, ns; `None` without containers.
        others_due_ns: Option<u64>,
        /// Connections that left pacing since the last log message.
        left: Vec<(u32, Ipv4Addr)>,
        /// Earliest time of the next log message about them, ns.
        left_due_ns: u64,
        log: Option<WeightLog>,
        /// Number of lost events so far, as the log counts them.
        lost: u64,
    }

    /// Counters of an agent, and the delays of its latest flowlets.
    #[derive(Debug, Default)]
    struct Counts {
        flowlets: u64,
        rates: u64,
        /// Delays from a flowlet's start event in the kernel to its first rate in the kernel, ns.
        first_ns: VecDeque<u64>,
    }

    /// Largest number of datagrams per batch, so that other work proceeds under load.
    const BATCH: usize = 256;
    /// Number of latest first-rate delays that are kept.
    const KEPT: usize = 100_000;

    /// The device with this host address; the device of the default route if only the loopback device has the address.
    fn device(address: Ipv4Addr) -> Option<String> {
        let of_loopback = |name: &String| name == "lo" && !address.is_loopback();
        device_of(address).filter(|name| !of_loopback(name)).or_else(leaving)
    }

    impl RunningFlowtune {
        /// Loads the kernel programs and opens the sockets.
        pub fn new(order: &FlowtuneConfig) -> Result<Self, String> {
            if order.allocators.is_empty() {
                return Err("give the address of an allocator".to_string());
            }
            if order.containers && order.hosts.len() > 1 {
                let what = "--containers: the namespaces belong to one host";
                return Err(format!("{what}, and there are {}; give one --host", order.hosts.len()));
            }
            let log = order.log.as_deref().map(WeightLog::open).transpose()?;
            let lease_ns = order.settings.lease_ns;
            let least_pace = 1500 * 1_000_000_000 * PARTS_OF_LEASE / lease_ns.max(1);
            let wanted = Wanted {
                name: &order.name,
                cgroup: &control_groups()?,
                shortest_bytes: order.shortest_bytes,
                window_ns: lease_ns / 2,
                weights: order.weighing.bounds(),
                containers: order.containers,
                least_pace: u32::try_from(least_pace).unwrap_or(u32::MAX),
            };
            let mut loaded = Loaded::new(&wanted)?;
            let weights = loaded.weights()?;
            for (whose, weight) in &order.weights {
                whose.parse().and_then(|whose| weights.set(&whose, *weight)).map_err(|e| format!("--weight: {e}"))?;
            }
            let epoch = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64);
            let own = Namespace::open("/proc/self/ns/net")?;
            for (address, bits) in &order.partners {
                loaded.add_partners(*address, *bits)?;
            }
            for (prefix, bits, host) in &order.known {
                loaded.add_known(*prefix, *bits, *host)?;
            }
            let (mut hosts, mut notes) = (Vec::new(), Vec::new());
            for (number, (address, netns)) in order.hosts.iter().enumerate() {
                let here = if order.sockets_here { Ipv4Addr::UNSPECIFIED } else { *address };
                let bind = || {
                    UdpSocket::bind((here, 0))
                        .map_err(|e| format!("--host: {here}: {e}; give an address that this host has"))
                };
                let namespace = Namespace::open(netns).map_err(|e| format!("--host: {e}"))?;
                let (there, device) = namespace.within(|| {
                    let socket = bind()?;
                    loaded.add_host(namespace_cookie(&socket)?, number as u32)?;
                    // Connections that begin from now on are registered by the kernel program.
                    loaded.take_over(number as u32)?;
                    let device = order.device.clone().or_else(|| device(*address));
                    let device = device.map(|name| Device::open(&name).map_err(|e| format!("--device: {e}")));
                    Ok((socket, device.transpose()?))
                })?;
                let socket = if order.sockets_here { own.within(bind)? } else { there };
                socket.set_nonblocking(true).map_err(|e| format!("{here}: {e}"))?;
                if device.is_none() {
                    let what = "traffic that nobody schedules is not measured";
                    notes.push(format!("no device has the address {address}, and {what}: name one with --device"));
                }
                let authenticated =
                    AuthenticatedEndpoint::new(u32::from(*address), epoch, order.settings, &order.secret);
                hosts.push(Host {
                    address: *address,
                    authenticated,
                    socket,
                    allocator: 0,
                    connected: None,
                    silent_since_ns: clock_ns(),
                    heard_ns: clock_ns(),
                    is_alone: false,
                    lease_ns: 0,
                    unscheduled: device.map(Unscheduled::new),
                    active: BTreeSet::new(),
                    shares: Shares::new(order.weighing),
                    started: BTreeMap::new(),
                    ending: BTreeMap::new(),
                });
            }
            if order.containers {
                loaded.find_others()?;
                let known: Vec<&str> = order.hosts.iter().map(|(_, netns)| netns.as_str()).collect();
                let taken = namespace::others(&known).iter().try_for_each(|other| {
                    let is_of_others = loaded.is_of_others(other.cookie()?);
                    if is_of_others { Ok(()) } else { other.within(|| loaded.take_over(0)) }
                });
                own.within(|| taken)?;
            }
            Ok(RunningFlowtune {
                loaded,
                hosts,
                allocators: order.allocators.clone(),
                patience_ns: lease_ns / 2,
                room: Vec::new(),
                notes,
                counts: Counts::default(),
                others_due_ns: order.containers.then(clock_ns),
                left: Vec::new(),
                left_due_ns: 0,
                log,
                lost: 0,
            })
        }

        /// Access to the weights in the kernel.
        pub fn weights(&self) -> Result<WeightMaps, String> {
            self.loaded.weights()
        }

        /// Counters since the start, and quantiles of the delay to the first rate, ns. The log of weights ends.
        pub fn report(&mut self) -> serde_json::Value {
            let mut sorted: Vec<u64> = self.counts.first_ns.iter().copied().collect();
            sorted.sort_unstable();
            let quantile = |share: f64| sorted.get((share * (sorted.len().max(1) - 1) as f64).round() as usize);
            let (logged, missing) = self.log.as_mut().map(WeightLog::end).unzip();
            serde_json::json!({
                "weights_logged": logged, "weights_missing": missing,
                "flowlets": self.counts.flowlets, "rates": self.counts.rates, "lost_events": self.loaded.lost_events(),
                "first_rates": sorted.len(), "first_rate_p50_ns": quantile(0.5), "first_rate_p99_ns": quantile(0.99),
            })
        }

        /// Log messages since the previous call.
        pub fn notes(&mut self) -> Vec<String> {
            std::mem::take(&mut self.notes)
        }

        /// Waits for events and handles what is due.
        pub fn turn(&mut self) -> Result<(), String> {
            self.wait()?;
            if self.others_due_ns.is_some_and(|due_ns| clock_ns() >= due_ns) {
                self.others_due_ns = Some(clock_ns() + OTHERS_NS);
                self.loaded.find_others()?;
            }
            // Changes of one turn have one time in the log: the weights of a group move to another connection at once.
            let events = self.loaded.take_events()?;
            let now_ns = clock_ns();
            if let Some(log) = &mut self.log {
                log.tick(now_ns);
            }
            for event in events {
                self.hear(event, now_ns);
            }
            self.note_left(clock_ns());
            for host in 0..self.hosts.len() {
                self.take(host)?;
                self.look(host, now_ns)?;
                self.measure(host, clock_ns())?;
                let host_state = &mut self.hosts[host];
                for (connection, weight) in host_state.shares.moved() {
                    host_state.authenticated.endpoint.set_weight(connection, weight as f32);
                    if let Some(log) = &mut self.log {
                        log.change(connection, weight);
                    }
                }
                self.speak(host, clock_ns());
            }
            self.log();
            Ok(())
        }

        /// Writes logged weights to the file.
        fn log(&mut self) {
            let Some(log) = &mut self.log else { return };
            let lost = self.loaded.lost_events();
            if lost > self.lost {
                log.miss(lost - std::mem::replace(&mut self.lost, lost));
            }
            log.flush();
            self.notes.append(&mut log.notes());
        }

        fn wait(&self) -> Result<(), String> {
            let now_ns = clock_ns();
            let due_ns = self.hosts.iter().flat_map(|host| {
                let ends_ns = host.ending.values().copied().min();
                let measure_ns = host.unscheduled.as_ref().map(Unscheduled::due_ns);
                [host.authenticated.endpoint.due_ns(), ends_ns, measure_ns].into_iter().flatten()
            });
            let wait_ns = due_ns.min().map_or(IDLE_NS, |at_ns| at_ns.saturating_sub(now_ns)).min(IDLE_NS);
            let mut waits: Vec<PollFd> = self.hosts.iter().map(|h| PollFd::new(&h.socket, PollFlags::IN)).collect();
            waits.push(PollFd::from_borrowed_fd(self.loaded.events_fd(), PollFlags::IN));
            let timeout =
                Timespec { tv_sec: (wait_ns / 1_000_000_000) as i64, tv_nsec: (wait_ns % 1_000_000_000) as i64 };
            match poll(&mut waits, Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
                Err(e) => Err(format!("sockets cannot be waited for: {e}")),
            }
        }

        fn hear(&mut self, event: Event, now_ns: u64) {
            let Some(host) = self.hosts.get_mut(event.host as usize) else { return };
            let connection = event.connection;
            match event.kind {
                EventKind::Begins => {}
                EventKind::Ends | EventKind::Leaves => {
                    if event.kind == EventKind::Leaves {
                        self.left.push((event.host, event.to));
                    }
                    if host.active.contains(&connection) {
                        host.ending.insert(connection, now_ns + LINGER_NS);
                    }
                    return;
                }
                EventKind::Loses(share) => {
                    host.authenticated.endpoint.lose(connection, share);
                    return;
                }
            }
            host.ending.remove(&connection);
            let weight = host.shares.set(connection, &event.asked);
            if let Some(log) = &mut self.log {
                log.set(WeightSet { time_ns: now_ns, connection, ends: event.ends, weight });
            }
            let weight = weight as f32;
            if host.active.insert(connection) {
                self.counts.flowlets += 1;
                host.started.insert(connection, event.time_ns);
                host.authenticated.endpoint.begin(connection, u32::from(event.to), event.path, weight);
            } else {
                host.authenticated.endpoint.set_weight(connection, weight);
            }
        }

        /// Logs at most once in two seconds that paced connections have lost their rates.
        fn note_left(&mut self, now_ns: u64) {
            let Some(&(host, to)) = self.left.first().filter(|_| now_ns >= self.left_due_ns) else { return };
            let of = self.hosts[host as usize].address;
            let others = match self.left.len() - 1 {
                0 => String::new(),
                count => format!(", and {count} more"),
            };
            self.notes.push(format!(
                "a connection of {of} to {to}{others}: no longer paced, given another congestion control; \
                 is another agent responsible for its network namespace?"
            ));
            self.left.clear();
            self.left_due_ns = now_ns + WORTH_SAYING_NS;
        }

        fn take(&mut self, host: usize) -> Result<(), String> {
            let RunningFlowtune { loaded, hosts, counts, .. } = self;
            let host_number = host as u32;
            let host = &mut hosts[host];
            let mut bytes = [0; 2048];
            for _ in 0..BATCH {
                // An error belongs to an earlier datagram, or the socket is empty.
                let Ok(count) = host.socket.recv(&mut bytes) else { break };
                let now_ns = clock_ns();
                let changed: BTreeSet<u64> = host.authenticated.take(now_ns, &bytes[..count]).into_iter().collect();
                // A replayed datagram does not show that the allocator is alive.
                if host.authenticated.endpoint.heard_ns() == now_ns {
                    (host.silent_since_ns, host.heard_ns) = (now_ns, now_ns);
                }
                // Set the lease first: a rate is valid only within a lease.
                let lease_ns = host.authenticated.endpoint.lease_until_ns();
                if lease_ns != host.lease_ns {
                    host.lease_ns = lease_ns;
                    loaded.set_lease(host_number, lease_ns)?;
                }
                for connection in changed {
                    let granted = host.authenticated.endpoint.rate_bps(now_ns, connection);
                    loaded.grant(connection, granted, u64::MAX)?;
                    counts.rates += 1;
                    if granted.is_some()
                        && let Some(start_ns) = host.started.remove(&connection)
                    {
                        if counts.first_ns.len() == KEPT {
                            counts.first_ns.pop_front();
                        }
                        counts.first_ns.push_back(clock_ns().saturating_sub(start_ns));
                    }
                }
            }
            Ok(())
        }

        /// Ends idle flowlets, and switches to the next allocator if there is no reply.
        fn look(&mut self, host: usize, now_ns: u64) -> Result<(), String> {
            let RunningFlowtune { loaded, hosts, allocators, patience_ns, notes, log, .. } = self;
            let host = &mut hosts[host];
            let over: Vec<u64> = host.ending.iter().filter(|(_, at_ns)| **at_ns <= now_ns).map(|(c, _)| *c).collect();
            for connection in over {
                host.ending.remove(&connection);
                host.active.remove(&connection);
                host.shares.remove(connection);
                if let Some(log) = log {
                    log.change(connection, 0.0);
                }
                host.started.remove(&connection);
                host.authenticated.endpoint.finish(connection);
                loaded.grant(connection, None, 0)?;
            }
            let endpoint = &mut host.authenticated.endpoint;
            if !endpoint.awaits_reply() {
                (host.silent_since_ns, host.heard_ns) = (now_ns, now_ns);
            } else if now_ns > host.silent_since_ns + *patience_ns {
                host.silent_since_ns = now_ns;
                host.allocator = (host.allocator + 1) % allocators.len();
                // The socket's local address may be gone: connect it again.
                host.connected = None;
                endpoint.probe_at_once();
                if let Some([out_bps, into_bps]) = host.unscheduled.as_ref().and_then(Unscheduled::told) {
                    endpoint.observe(out_bps, into_bps);
                }
            }
            let is_alone = now_ns > host.heard_ns + WORTH_SAYING_NS;
            if is_alone != std::mem::replace(&mut host.is_alone, is_alone) {
                let asked = allocators.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                notes.push(match is_alone {
                    true => format!("no allocator answers at {asked}: is one there, does it know this host, and is the key the same?"),
                    false => format!("an allocator answers at {}", allocators[host.allocator]),
                });
            }
            Ok(())
        }

        /// Reports the rates of unscheduled traffic to the allocator.
        fn measure(&mut self, host: usize, now_ns: u64) -> Result<(), String> {
            let number = host as u32;
            let Host { unscheduled: Some(unscheduled), authenticated, .. } = &mut self.hosts[host] else {
                return Ok(());
            };
            if now_ns >= unscheduled.due_ns()
                && let Some([out_bps, into_bps]) = unscheduled.look(now_ns, self.loaded.carried(number)?)
            {
                authenticated.endpoint.observe(out_bps, into_bps);
            }
            Ok(())
        }

        fn speak(&mut self, host: usize, now_ns: u64) {
            let RunningFlowtune { hosts, allocators, room, .. } = self;
            let host = &mut hosts[host];
            while host.authenticated.poll(now_ns, room) {
                if host.connected != Some(host.allocator) {
                    let made = host.socket.connect(allocators[host.allocator]);
                    host.connected = made.is_ok().then_some(host.allocator);
                }
                // A send error counts as a lost datagram.
                if host.connected.is_some() {
                    let _ = host.socket.send(room);
                }
            }
        }
    }
}

#[cfg(feature = "bpf")]
pub use running::RunningFlowtune;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_hosts_are_read() {
        let host = Ipv4Addr::new(10, 0, 0, 7);
        let prefix = Ipv6Addr::new(0xfd00, 0, 0, 7, 0, 0, 0, 0);
        assert_eq!(known_of("fd00:0:0:7::/64=10.0.0.7"), Ok((prefix, 64, host)));
        assert_eq!(known_of("::1=10.0.0.7"), Ok((Ipv6Addr::LOCALHOST, 128, host)));
        for wrong in ["fd00::/129=10.0.0.7", "fd00::/64", "10.0.0.7=fd00::", "fd00::/x=10.0.0.7", ""] {
            assert!(known_of(wrong).is_err_and(|e| e.contains("such as fd00:0:0:7::/64=10.0.0.7")), "{wrong}");
        }
    }
}
