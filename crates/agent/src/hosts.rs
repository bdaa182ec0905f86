//! Orders for a testbed's hosts and switches, and the kernel programs that carry them out until they are dropped.

use serde::Deserialize;
use serde_json::{Map, Value};

/// Hosts, queues, and the scheme that shares.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostsConfig {
    /// Of this document.
    pub schema: u32,
    /// `soze`, `soze-virtual`, `s-perc` or `s-perc-star`; none for queues that mark alone.
    pub scheme: Option<String>,
    /// The name of the congestion control in the kernel.
    #[serde(default)]
    pub name: String,
    /// Of the scheme, as a spec has them.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// Rates of the hosts over those of the spec.
    #[serde(default = "one")]
    pub scale: f64,
    /// The longest idle round trip of the hosts, ns.
    #[serde(default)]
    pub rtt_ns: u64,
    /// A full packet on the wire, bytes.
    #[serde(default = "full")]
    pub packet_bytes: u32,
    /// The congestion control where no telemetry arrives.
    #[serde(default = "cubic")]
    pub fallback: String,
    /// Whether every connection has it, or those alone that ask.
    #[serde(default)]
    pub all: bool,
    /// Namespaces whose connections are looked at.
    #[serde(default)]
    pub hosts: Vec<HostOrder>,
    /// Output queues.
    #[serde(default)]
    pub queues: Vec<QueueOrder>,
    /// Weights by destination or control group: `10.0.0.0/8` or a folder, and a positive number.
    #[serde(default)]
    pub weights: Vec<(String, f64)>,
    /// The process that they are for: they end with it, rather than with standard input.
    #[serde(default)]
    pub with: Option<u32>,
    /// For schemes that send control packets.
    #[serde(default)]
    pub control: ControlOrder,
}

/// Parameters of control packets at links.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlOrder {
    /// Links of the longest path.
    pub hops: u8,
    /// For trials: the share of them that each link loses.
    #[serde(default)]
    pub loss: f64,
    /// Of the losses.
    #[serde(default)]
    pub seed: u64,
}

impl Default for ControlOrder {
    fn default() -> Self {
        ControlOrder { hops: 8, loss: 0.0, seed: 0 }
    }
}

/// A host.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostOrder {
    /// The file of its namespace.
    pub netns: String,
    /// Its link, bit/s.
    pub rate_bps: f64,
}

/// An output queue: a shaper between two devices, and the device that packets then leave by.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueOrder {
    /// The file of its namespace.
    pub netns: String,
    /// The device with the shaper.
    pub enter: u32,
    /// The one behind it.
    pub leave: u32,
    /// The one that packets leave by.
    pub out: u32,
    /// It is a host's own.
    #[serde(default)]
    pub at_host: bool,
    /// bit/s.
    pub rate_bps: f64,
    /// Packets are marked behind which more bytes wait; 0: none.
    #[serde(default)]
    pub ecn_bytes: u64,
    /// For trials: it strikes options out for so long from now on, as some middleboxes do, ns.
    #[serde(default)]
    pub strips_for_ns: u64,
    /// The place in the list of the queue that leads back.
    #[serde(default)]
    pub twin: Option<u32>,
}

fn one() -> f64 {
    1.0
}

fn full() -> u32 {
    1500
}

fn cubic() -> String {
    "cubic".to_string()
}

impl HostsConfig {
    /// Says what is wrong with it.
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
    use crate::kernel::weights::Weights;
    use crate::namespace::Namespace;
    use crate::sys::namespace_cookie;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    use serde::Serialize;
    use subak_schemes::soze::hosts::SozeHosts;

    /// The programs, at work until this is dropped.
    pub struct RunningHosts {
        soze: Option<soze::Loaded>,
        queues: Option<queues::Loaded>,
        _perc: Option<perc::Loaded>,
    }

    /// Where to ask how they do, and to tell them weights.
    #[derive(Debug, Clone, Copy, Serialize)]
    pub struct Ready {
        ready: bool,
        /// The number of the map with what queues do.
        queues: Option<u32>,
        weights: Option<Weights>,
    }

    impl RunningHosts {
        /// Puts them to work.
        pub fn new(order: &HostsConfig) -> Result<Self, String> {
            order.check()?;
            if let Some(scheme) =
                order.scheme.as_deref().filter(|name| subak_schemes::perc::hosts::SCHEMES.contains(name))
            {
                return Ok(RunningHosts { soze: None, queues: None, _perc: Some(links(order, scheme)?) });
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
            let soze = hosts.as_ref().map(|hosts| control(order, hosts)).transpose()?;
            Ok(RunningHosts { soze, queues: Some(queues), _perc: None })
        }

        /// Where to find them.
        pub fn ready(&self) -> Result<Ready, String> {
            let weights = self.soze.as_ref().map(soze::Loaded::weights).transpose()?;
            let queues = self.queues.as_ref().map(queues::Loaded::map).transpose()?;
            Ok(Ready { ready: true, queues, weights })
        }
    }

    /// Links that update control packets.
    fn links(order: &HostsConfig, scheme: &str) -> Result<perc::Loaded, String> {
        let most_bps = order.queues.iter().map(|q| q.rate_bps).fold(1.0, f64::max);
        let HostsConfig { params, scale, rtt_ns, packet_bytes, .. } = order;
        let hosts =
            subak_schemes::perc::hosts::PercHosts::new(scheme, params, *scale, *rtt_ns, most_bps, *packet_bytes);
        let hosts = hosts.map_err(|e| e.to_string())?;
        let mut loaded = perc::Loaded::new(&hosts)?;
        for queue in &order.queues {
            let ControlOrder { hops, loss, seed } = order.control;
            let link = PercLink { device: queue.out, twin: queue.twin, rate_bps: queue.rate_bps, hops, loss, seed };
            loaded.add(&Namespace::open(&queue.netns)?, link, &hosts)?;
        }
        Ok(loaded)
    }

    /// Refuses a congestion control that the kernel does not have.
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

    fn control(order: &HostsConfig, hosts: &SozeHosts) -> Result<soze::Loaded, String> {
        refuse_unknown(&order.fallback)?;
        let cgroup = control_groups()?;
        let wanted = Wanted {
            name: &order.name,
            fallback: &order.fallback,
            all: order.all,
            cgroup: &cgroup,
            hosts,
            packet_bytes: order.packet_bytes,
        };
        let loaded = soze::Loaded::new(&wanted)?;
        let weights = loaded.weights()?;
        for (whose, weight) in &order.weights {
            weights.set(&whose.parse()?, *weight)?;
        }
        for host in &order.hosts {
            let cookie = Namespace::open(&host.netns)?.within(|| {
                let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
                namespace_cookie(socket.map_err(|e| format!("a socket cannot be opened: {e}"))?)
            })?;
            loaded.add_host(cookie, host.rate_bps, &wanted)?;
        }
        Ok(loaded)
    }

    /// The root of the control groups of version 2, wherever it is mounted.
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
