//! Configuration of a testbed's hosts and switches, and the kernel programs that carry it out.

use serde::Deserialize;
use serde_json::{Map, Value};

/// Hosts, queues and the scheme of a testbed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostsConfig {
    /// Version of the document's format.
    pub schema: u32,
    /// `soze`, `soze-virtual`, `s-perc` or `s-perc-star`; `None` for queues that only set ECN marks.
    pub scheme: Option<String>,
    /// Name of the congestion control in the kernel.
    #[serde(default)]
    pub name: String,
    /// Parameters of the scheme, as in a spec.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// Scale factor: rate of the hosts / rate in the spec.
    #[serde(default = "one")]
    pub scale: f64,
    /// Largest base RTT between hosts, ns.
    #[serde(default)]
    pub rtt_ns: u64,
    /// Size of a full packet on the wire, bytes.
    #[serde(default = "full")]
    pub packet_bytes: u32,
    /// Congestion control of connections whose path carries no telemetry.
    #[serde(default = "cubic")]
    pub fallback: String,
    /// Whether all connections use the scheme; otherwise only those that select it by name.
    #[serde(default)]
    pub all: bool,
    /// Hosts, each a namespace whose connections are handled.
    #[serde(default)]
    pub hosts: Vec<HostOrder>,
    /// Output queues.
    #[serde(default)]
    pub queues: Vec<QueueOrder>,
    /// Weights by destination or control group: a prefix such as `10.0.0.0/8` or a folder, and a positive number.
    #[serde(default)]
    pub weights: Vec<(String, f64)>,
    /// Bounds of the weights that programs may request, with 16 fractional bits; an upper bound of 0 forbids requests.
    #[serde(default = "free")]
    pub requests: (u32, u32),
    /// Id of the process whose end removes the kernel programs; by default they are removed at the end of standard
    /// input.
    #[serde(default)]
    pub with: Option<u32>,
    /// Control packets, for schemes that send them.
    #[serde(default)]
    pub control: ControlOrder,
}

/// Parameters of control packets at links.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlOrder {
    /// Number of links of the longest path.
    pub hops: u8,
    /// Fraction of control packets that each link drops, for tests of losses.
    #[serde(default)]
    pub loss: f64,
    /// Seed of the losses.
    #[serde(default)]
    pub seed: u64,
}

impl Default for ControlOrder {
    fn default() -> Self {
        ControlOrder { hops: 8, loss: 0.0, seed: 0 }
    }
}

/// A host of the testbed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostOrder {
    /// File of the host's network namespace.
    pub netns: String,
    /// Rate of the host's link, bit/s.
    pub rate_bps: f64,
}

/// An output queue: a shaper between two devices, and the device by which packets leave after it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueOrder {
    /// File of the network namespace with the queue's devices.
    pub netns: String,
    /// Number of the device with the shaper.
    pub enter: u32,
    /// Number of the device behind the shaper.
    pub leave: u32,
    /// Number of the device by which packets leave.
    pub out: u32,
    /// Whether the queue is a host's own, and not a switch's.
    #[serde(default)]
    pub at_host: bool,
    /// Rate of the shaper, bit/s.
    pub rate_bps: f64,
    /// ECN threshold: queue length above which packets are marked, bytes; 0 for no marks.
    #[serde(default)]
    pub ecn_bytes: u64,
    /// For tests: time from the start during which the queue removes TCP options, as some middleboxes do, ns.
    #[serde(default)]
    pub strips_for_ns: u64,
    /// Index of the queue of the reverse link.
    #[serde(default)]
    pub twin: Option<u32>,
}

fn one() -> f64 {
    1.0
}

fn full() -> u32 {
    1500
}

/// Any weight.
fn free() -> (u32, u32) {
    (1, u32::MAX)
}

fn cubic() -> String {
    "cubic".to_string()
}

impl HostsConfig {
    /// Checks the configuration; the error names the problem.
    pub fn check(&self) -> Result<(), String> {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if self.schema != 1 {
            return Err(format!("schema: it is {}; this program reads 1", self.schema));
        }
        if !positive(self.scale) {
            return Err(format!("scale: it is {}; give a positive number", self.scale));
        }
        if self.hosts.iter().any(|h| !positive(h.rate_bps)) || self.queues.iter().any(|q| !positive(q.rate_bps)) {
            return Err("rate_bps: give positive rates".to_string());
        }
        if self.hosts.len() > 4096 || self.queues.len() > 8192 || self.weights.len() > 16_384 {
            return Err("at most 4096 hosts, 8192 queues and 16384 weights are possible".to_string());
        }
        if !(0.0..=1.0).contains(&self.control.loss) || !(1..=8).contains(&self.control.hops) {
            return Err("control: give a loss from 0 to 1, and 1 to 8 hops".to_string());
        }
        if self.queues.iter().any(|q| q.twin.is_some_and(|twin| twin as usize >= self.queues.len())) {
            return Err(format!("twin: there are queues 0 to {}", self.queues.len().saturating_sub(1)));
        }
        Ok(())
    }
}

#[cfg(feature = "bpf")]
mod running {
    use super::{ControlOrder, HostsConfig};
    use crate::kernel::perc::{self, PercLink};
    use crate::kernel::queues::{self, Queue};
    use crate::kernel::soze::{self, Wanted};
    use crate::kernel::weights::WeightMaps;
    use crate::namespace::Namespace;
    use crate::traffic::clock_ns;
    use crate::weight_log::WeightLog;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    use serde::Serialize;
    use std::path::Path;
    use std::time::Duration;
    use subak_schemes::hosts::perc::{PercHosts, is_run};
    use subak_schemes::hosts::soze::SozeHosts;

    /// Running kernel programs; dropping the value removes them.
    pub struct RunningHosts {
        soze: Option<soze::Loaded>,
        queues: Option<queues::Loaded>,
        _perc: Option<perc::Loaded>,
        log: Option<WeightLog>,
        lost: u64,
    }

    /// Interval between looks at the log's file without events.
    const IDLE: Duration = Duration::from_millis(500);

    /// Identifiers of the kernel maps for counters and weights.
    #[derive(Debug, Clone, Copy, Serialize)]
    pub struct Ready {
        ready: bool,
        /// Id of the map with the queues' counters.
        queues: Option<u32>,
        weights: Option<WeightMaps>,
    }

    impl RunningHosts {
        /// Loads the programs and attaches them. `log` is the file in which the weights of this namespace's connections
        /// are logged: call [`RunningHosts::turn`] then.
        pub fn new(order: &HostsConfig, log: Option<&Path>) -> Result<Self, String> {
            order.check()?;
            let log = log.map(WeightLog::open).transpose()?;
            if let Some(scheme) = order.scheme.as_deref().filter(|name| is_run(name)) {
                let perc = Some(links(order, scheme)?);
                return Ok(RunningHosts { soze: None, queues: None, _perc: perc, log, lost: 0 });
            }
            let line_bps = order.hosts.iter().map(|h| h.rate_bps).fold(0.0, f64::max);
            let made = |scheme: &String| {
                SozeHosts::new(scheme, &order.params, order.scale, order.rtt_ns.max(1), line_bps)
                    .map_err(|e| e.to_string())
            };
            let hosts = order.scheme.as_ref().map(made).transpose()?;
            let mut queues = queues::Loaded::new()?;
            for queue in &order.queues {
                let at = Queue {
                    enter: queue.enter,
                    leave: queue.leave,
                    out: queue.out,
                    at_host: queue.at_host,
                    rate_bps: queue.rate_bps,
                    ecn_bytes: queue.ecn_bytes,
                    strips_for_ns: queue.strips_for_ns,
                };
                queues.add(&Namespace::open(&queue.netns)?, at, hosts.as_ref())?;
            }
            let soze = hosts.as_ref().map(|hosts| control(order, hosts, log.is_some())).transpose()?;
            Ok(RunningHosts { soze, queues: Some(queues), _perc: None, log, lost: 0 })
        }

        /// Logs weights for a while. Returns warnings; `None` if there is nothing to log.
        pub fn turn(&mut self) -> Result<Option<Vec<String>>, String> {
            let (Some(soze), Some(log)) = (&self.soze, &mut self.log) else { return Ok(None) };
            let mut sets = soze.take_weights(IDLE)?;
            let lost = soze.lost_weights();
            if lost > self.lost {
                // The rest of what the ring buffer has is older than the weights of now.
                sets.append(&mut soze.take_weights(Duration::ZERO)?);
            }
            log.tick(clock_ns());
            sets.into_iter().for_each(|set| log.set(set));
            if lost > self.lost {
                log.miss(lost - std::mem::replace(&mut self.lost, lost));
                log.tick(clock_ns());
                match soze.present() {
                    Ok(present) => log.replace(&present),
                    Err(why) => log.note(format!("the weights that apply now cannot be logged: {why}")),
                }
            }
            log.flush();
            Ok(Some(log.notes()))
        }

        /// Ids of the kernel maps.
        pub fn ready(&self) -> Result<Ready, String> {
            let weights = self.soze.as_ref().map(soze::Loaded::weights).transpose()?;
            let queues = self.queues.as_ref().map(queues::Loaded::map).transpose()?;
            Ok(Ready { ready: true, queues, weights })
        }
    }

    /// The programs at links that update control packets.
    fn links(order: &HostsConfig, scheme: &str) -> Result<perc::Loaded, String> {
        let most_bps = order.queues.iter().map(|q| q.rate_bps).fold(1.0, f64::max);
        let HostsConfig { params, scale, rtt_ns, packet_bytes, .. } = order;
        let hosts = PercHosts::new(scheme, params, *scale, *rtt_ns, most_bps, *packet_bytes);
        let hosts = hosts.map_err(|e| e.to_string())?;
        let mut loaded = perc::Loaded::new(&hosts)?;
        for queue in &order.queues {
            let ControlOrder { hops, loss, seed } = order.control;
            let link = PercLink { device: queue.out, twin: queue.twin, rate_bps: queue.rate_bps, hops, loss, seed };
            loaded.add(&Namespace::open(&queue.netns)?, link, &hosts)?;
        }
        Ok(loaded)
    }

    /// An error if the kernel does not have this congestion control.
    fn refuse_unknown(congestion_control: &str) -> Result<(), String> {
        let system = |e: rustix::io::Errno| format!("--fallback: {congestion_control}: {e}");
        let socket =
            socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).map_err(system)?;
        rustix::net::sockopt::set_tcp_congestion(&socket, congestion_control).map_err(|e| {
            let known =
                std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
            format!("{}; the kernel has: {}", system(e), known.trim())
        })
    }

    fn control(order: &HostsConfig, hosts: &SozeHosts, logs: bool) -> Result<soze::Loaded, String> {
        refuse_unknown(&order.fallback)?;
        let cgroup = control_groups()?;
        let wanted = Wanted {
            name: &order.name,
            fallback: &order.fallback,
            all: order.all,
            cgroup: &cgroup,
            hosts,
            packet_bytes: order.packet_bytes,
            weights: order.requests,
            logs,
        };
        let loaded = soze::Loaded::new(&wanted)?;
        let weights = loaded.weights()?;
        for (whose, weight) in &order.weights {
            whose.parse().and_then(|whose| weights.set(&whose, *weight)).map_err(|e| format!("--weight: {e}"))?;
        }
        for host in &order.hosts {
            let cookie = Namespace::open(&host.netns)?.cookie()?;
            loaded.add_host(cookie, host.rate_bps, &wanted)?;
        }
        Ok(loaded)
    }

    /// Mount point of the version 2 control groups.
    pub(crate) fn control_groups() -> Result<String, String> {
        let mounts = std::fs::read_to_string("/proc/mounts").map_err(|e| format!("/proc/mounts: {e}"))?;
        let found = mounts.lines().find_map(|line| {
            let mut words = line.split(' ');
            let (path, kind) = (words.nth(1)?, words.next()?);
            (kind == "cgroup2").then(|| path.to_string())
        });
        found.ok_or_else(|| "no cgroup2 is mounted: mount -t cgroup2 none /sys/fs/cgroup".to_string())
    }
}

#[cfg(feature = "bpf")]
pub use running::RunningHosts;
#[cfg(feature = "bpf")]
pub(crate) use running::control_groups;
