//! State of the daemon as data for programs, for the page and for metrics.

use crate::plan::NetworkPlan;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::net::SocketAddrV4;
use std::sync::Arc;
use subak_control::{AllocatorCounters, FlowletStatus, PeerState};
use subak_core::Ns;

/// Counters of datagrams and iterations since the start.
#[derive(Debug, Clone, Copy, Default)]
pub struct DaemonCounts {
    /// Datagrams received.
    pub received: u64,
    /// Datagrams from unknown hosts.
    pub unknown: u64,
    /// Datagrams with a wrong authentication code.
    pub forged: u64,
    /// Datagrams above their host's rate limit.
    pub limited: u64,
    /// Authenticated datagrams that do not parse.
    pub malformed: u64,
    /// Datagrams that arrived while this allocator did not serve.
    pub at_rest: u64,
    /// Datagrams passed to the kernel.
    pub sent: u64,
    /// Datagrams to hosts with no known address yet.
    pub nowhere: u64,
    /// Datagrams that the kernel refused.
    pub unsent: u64,
    /// System calls that sent or received.
    pub calls: u64,
    /// Iterations run.
    pub iterations: u64,
    /// Iterations skipped because the previous one was late.
    pub skipped: u64,
    /// Number of times that a link's allocation was lowered because flows lost packets there.
    pub lowered: u64,
}

/// An event of the log.
#[derive(Debug, Clone)]
pub struct LogEvent {
    /// Time by the calendar, ms since 1970.
    pub at_ms: u64,
    /// Kind of the event.
    pub kind: &'static str,
    /// Text of the event.
    pub what: String,
}

/// The latest events.
#[derive(Debug, Clone, Default)]
pub struct Events(VecDeque<LogEvent>);

impl Events {
    const MOST: usize = 256;

    /// Adds an event.
    pub fn add(&mut self, event: LogEvent) {
        if self.0.len() == Self::MOST {
            self.0.pop_front();
        }
        self.0.push_back(event);
    }
}

/// Histogram of durations in powers of two, from a microsecond.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    counts: [u64; Self::BOUNDS + 1],
    sum_ns: u64,
}

impl Histogram {
    const BOUNDS: usize = 16;

    /// Adds a duration.
    pub fn add(&mut self, ns: Ns) {
        let micros = ns.div_ceil(1000).max(1);
        let bucket = (u64::BITS - (micros - 1).leading_zeros()) as usize;
        self.counts[bucket.min(Self::BOUNDS)] += 1;
        self.sum_ns += ns;
    }

    /// The `share`-quantile, ns, rounded up to the upper edge of its bin; infinite beyond the last bin.
    pub fn quantile_ns(&self, share: f64) -> f64 {
        let all: u64 = self.counts.iter().sum();
        let mut left = ((all as f64 * share).ceil() as u64).max(1);
        for (bucket, &count) in self.counts.iter().enumerate() {
            if left <= count {
                return if bucket == Self::BOUNDS { f64::INFINITY } else { 1000.0 * f64::from(1u32 << bucket) };
            }
            left -= count;
        }
        0.0
    }

    /// Sum of all durations, s.
    pub fn sum_s(&self) -> f64 {
        self.sum_ns as f64 * 1e-9
    }

    fn metric(&self, out: &mut String, name: &str, help: &str) {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} histogram");
        let mut below = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            below += count;
            let bound = match bucket {
                Self::BOUNDS => "+Inf".to_string(),
                _ => format!("{}", 1e-6 * f64::from(1u32 << bucket)),
            };
            let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {below}");
        }
        let _ = writeln!(out, "{name}_sum {}\n{name}_count {below}", self.sum_ns as f64 * 1e-9);
    }
}

/// A host in a snapshot.
#[derive(Debug, Clone)]
pub struct HostLook {
    /// Number of the host; never reused.
    pub number: u32,
    /// Name of the host.
    pub name: String,
    /// Index of the host's tenant.
    pub tenant: u32,
    /// Source address of the host's datagrams; `None` before the first.
    pub address: Option<SocketAddrV4>,
    /// Number of leases that expired because the host was silent.
    pub lapses: u64,
}

/// Snapshot of the daemon's state.
#[derive(Debug, Clone)]
pub struct Look {
    /// Network and tenants.
    pub plan: Arc<NetworkPlan>,
    /// Number of configurations that were loaded since the start.
    pub plans: u64,
    /// Time since the start, ns.
    pub now_ns: Ns,
    /// Time by the calendar, ms since 1970.
    pub at_ms: u64,
    /// Whether this allocator serves.
    pub is_serving: bool,
    /// Whether a command told this allocator to stop granting.
    pub is_draining: bool,
    /// Whether this allocator waits until the previous allocator's rates have expired.
    pub is_holding_back: bool,
    /// Time between iterations, ns.
    pub interval_ns: Ns,
    /// Lease: validity of rates without renewal, ns.
    pub lease_ns: Ns,
    /// Counters of datagrams and iterations.
    pub counts: DaemonCounts,
    /// Counters of the allocator's core.
    pub core: AllocatorCounters,
    /// Hosts by number.
    pub hosts: Vec<HostLook>,
    /// State of the endpoints, by number.
    pub peers: Vec<PeerState>,
    /// Flowlets of all hosts.
    pub flows: Vec<FlowletStatus>,
    /// Allocated rate of each link, bit/s.
    pub promised_bps: Vec<f64>,
    /// Rate of unscheduled traffic of each link, bit/s.
    pub unscheduled_bps: Vec<f64>,
    /// Capacity of each link, bit/s.
    pub capacity_bps: Vec<f64>,
    /// Rate of each link that may be allocated, bit/s.
    pub available_bps: Vec<f64>,
    /// Recently lost rate of each link, bit/s.
    pub lost_bps: Vec<f64>,
    /// Upper bound of each link's allocated rate where flows lost packets, bit/s.
    pub lowered_bps: Vec<Option<f64>>,
    /// Durations of iterations.
    pub iterations: Histogram,
    /// Number of threads that run an iteration.
    pub threads: usize,
    /// Latest log events.
    pub events: Events,
}

impl Look {
    fn names(&self) -> BTreeMap<u32, &str> {
        self.hosts.iter().map(|host| (host.number, host.name.as_str())).collect()
    }

    /// Summary of the state, as JSON.
    pub fn status(&self) -> Value {
        let joined = self.peers.iter().filter(|peer| peer.is_joined).count();
        json!({
            "schema": 1, "serving": self.is_serving, "holding_back": self.is_holding_back, "at_ms": self.at_ms,
            "up_s": self.now_ns as f64 * 1e-9, "interval_ns": self.interval_ns, "lease_ns": self.lease_ns,
            "hosts": self.hosts.len(), "joined": joined, "flowlets": self.flows.len(),
            "links": self.capacity_bps.len(), "down": self.capacity_bps.iter().filter(|bps| **bps == 0.0).count(),
            "iteration_p50_ns": finite(self.iterations.quantile_ns(0.5)),
            "iteration_p99_ns": finite(self.iterations.quantile_ns(0.99)), "threads": self.threads,
        })
    }

    /// Hosts as JSON, one entry each.
    pub fn peers(&self) -> Value {
        let peers: BTreeMap<u32, &PeerState> = self.peers.iter().map(|peer| (peer.endpoint, peer)).collect();
        let rows = self.hosts.iter().map(|host| {
            let peer = peers.get(&host.number);
            json!({
                "host": host.name, "tenant": self.plan.tenants.get(host.tenant as usize).map(|(name, _)| name),
                "address": host.address.map(|address| address.to_string()),
                "joined": peer.is_some_and(|peer| peer.is_joined), "flowlets": peer.map_or(0, |peer| peer.flowlets),
                "rtt_ns": peer.map_or(0, |peer| peer.rtt_ns), "lapses": host.lapses,
                "silent_s": peer.map(|peer| self.now_ns.saturating_sub(peer.heard_ns) as f64 * 1e-9),
            })
        });
        Value::Array(rows.collect())
    }

    /// Flowlets as JSON, one entry each; only those of `host` if given.
    pub fn flows(&self, host: Option<String>) -> Result<Value, String> {
        let names = self.names();
        let host = host.as_deref();
        if let Some(unknown) = host.filter(|host| !names.values().any(|name| name == host)) {
            return Err(format!("there is no host {unknown}"));
        }
        let name = |number: u32| names.get(&number).copied().unwrap_or("?");
        let rows =
            self.flows.iter().filter(|flow| host.is_none_or(|host| [flow.from, flow.to].map(name).contains(&host)));
        let rows = rows.map(|flow| {
            json!({"from": name(flow.from), "to": name(flow.to), "flowlet": flow.flowlet, "weight": flow.weight,
                "rate_bps": flow.bps})
        });
        Ok(Value::Array(rows.collect()))
    }

    /// Links as JSON, one entry each.
    pub fn links(&self) -> Value {
        let nodes = self.plan.network.nodes();
        let name = |node: Option<subak_core::NodeId>| node.map(|node| nodes[node].name.as_str());
        let rows = self.plan.network.links().iter().zip(&self.capacity_bps).enumerate().map(|(k, (link, capacity))| {
            json!({"link": link.id, "from": name(link.from), "to": name(link.to), "capacity_bps": capacity,
                "promised_bps": self.promised_bps.get(k), "unscheduled_bps": self.unscheduled_bps.get(k),
                "available_bps": self.available_bps.get(k), "lost_bps": self.lost_bps.get(k),
                "lowered_bps": self.lowered_bps.get(k).copied().flatten()})
        });
        Value::Array(rows.collect())
    }

    /// Counters as JSON, by name.
    pub fn counters(&self) -> Value {
        let entries = self.counted().into_iter().map(|(name, _, value)| (name.to_string(), json!(value)));
        Value::Object(entries.collect())
    }

    /// Data of the live page as JSON, with short keys; hosts and links are given by number.
    pub fn page(&self, with_network: bool) -> Value {
        let flows: Vec<Value> = self
            .flows
            .iter()
            .map(|flow| json!([flow.from, flow.to, flow.flowlet, significant(flow.bps), significant(flow.weight)]))
            .collect();
        let load: Vec<Value> = self.promised_bps.iter().map(|bps| significant(*bps)).collect();
        let events: Vec<Value> =
            self.events.0.iter().map(|event| json!([event.at_ms, event.kind, event.what])).collect();
        let mut page = json!({"status": self.status(), "flows": flows, "load": load, "capacity": self.capacity_bps,
            "events": events, "counters": self.counters(), "network": self.plans});
        if with_network {
            let nodes = self.plan.network.nodes().iter();
            let hosts = self.hosts.iter().map(|host| (host.number.to_string(), json!(host.name)));
            page["nodes"] = nodes.map(|node| json!([node.name, node.kind == subak_core::NodeKind::Host])).collect();
            page["links"] = self
                .plan
                .network
                .links()
                .iter()
                .map(|link| json!([link.from.map(|n| n.0), link.to.map(|n| n.0), link.id]))
                .collect();
            page["hosts"] = Value::Object(hosts.collect());
        }
        page
    }

    fn counted(&self) -> Vec<(&'static str, &'static str, u64)> {
        let (counts, core) = (&self.counts, &self.core);
        vec![
            ("received", "datagrams received", counts.received),
            ("unknown", "datagrams of unknown hosts", counts.unknown),
            ("forged", "datagrams with a wrong authentication tag", counts.forged),
            ("limited", "datagrams above the limit of their host", counts.limited),
            ("malformed", "authenticated datagrams that could not be decoded", counts.malformed),
            ("at_rest", "datagrams received while another allocator served", counts.at_rest),
            ("taken", "accepted datagrams", core.taken),
            ("stale", "datagrams that were duplicates, late, or of an earlier session", core.stale),
            ("unproven", "datagrams of sessions that do not know this allocator yet", core.unproven),
            ("foreign", "datagrams that claim another host's identity", core.forged),
            ("refused", "flowlets above the limit of their host", core.refused),
            ("lapsed", "leases that expired because their host was silent", core.lapsed),
            ("updates", "rates sent", core.updates),
            ("again", "rates sent again", core.again),
            ("sent", "datagrams sent", counts.sent),
            ("nowhere", "datagrams to hosts that were never heard", counts.nowhere),
            ("unsent", "datagrams that the kernel refused to send", counts.unsent),
            ("calls", "system calls that sent or received datagrams", counts.calls),
            ("iterations", "iterations of the optimizer", counts.iterations),
            (
                "lowered",
                "times that the granted rates of a link were lowered because flows lost packets",
                counts.lowered,
            ),
            ("skipped", "iterations skipped because the previous one was late", counts.skipped),
        ]
    }

    fn host_metrics(&self, out: &mut String) {
        let peers: BTreeMap<u32, &PeerState> = self.peers.iter().map(|peer| (peer.endpoint, peer)).collect();
        let mut each = |name: &str, kind: &str, help: &str, value: &dyn Fn(&HostLook) -> Option<f64>| {
            head(out, name, kind, help);
            for host in &self.hosts {
                let tenant = self.plan.tenants.get(host.tenant as usize).map_or("", |(name, _)| name);
                let labels = format!("host=\"{}\",tenant=\"{}\"", escaped(&host.name), escaped(tenant));
                if let Some(value) = value(host) {
                    let _ = writeln!(out, "{name}{{{labels}}} {value}");
                }
            }
        };
        each("subak_host_joined", "gauge", "1 while the host has joined", &|host| {
            Some(f64::from(peers.get(&host.number).is_some_and(|peer| peer.is_joined)))
        });
        each("subak_host_silent_seconds", "gauge", "time since the host was last heard", &|host| {
            let heard_ns = peers.get(&host.number).map(|peer| peer.heard_ns).filter(|ns| *ns > 0)?;
            Some(self.now_ns.saturating_sub(heard_ns) as f64 * 1e-9)
        });
        each("subak_host_flowlets", "gauge", "flowlets of the host", &|host| {
            Some(peers.get(&host.number).map_or(0.0, |peer| peer.flowlets as f64))
        });
        each(
            "subak_host_lapses_total",
            "counter",
            "times that the lease of the host expired because it was silent",
            &|host| Some(host.lapses as f64),
        );
    }

    fn link_metrics(&self, out: &mut String) {
        let lowered: Vec<f64> = self.lowered_bps.iter().map(|bps| f64::from(u8::from(bps.is_some()))).collect();
        for (name, help, values) in [
            ("capacity_bps", "declared capacity; 0 if the link is down", &self.capacity_bps),
            ("available_bps", "rate that may be granted on the link", &self.available_bps),
            ("promised_bps", "sum of the granted rates", &self.promised_bps),
            ("unscheduled_bps", "unscheduled traffic", &self.unscheduled_bps),
            ("lost_bps", "rate of paced traffic that was lost in the last lease", &self.lost_bps),
            ("lowered", "1 while the granted rates are lowered because flows lost packets", &lowered),
        ] {
            head(out, &format!("subak_link_{name}"), "gauge", help);
            for (link, value) in self.plan.network.links().iter().zip(values) {
                let _ = writeln!(out, "subak_link_{name}{{link=\"{}\"}} {value}", escaped(&link.id));
            }
        }
    }

    /// State in the text format of Prometheus.
    pub fn metrics(&self) -> String {
        let mut out = String::new();
        for (name, help, value) in self.counted() {
            let _ = writeln!(out, "# HELP subak_{name}_total {help}\n# TYPE subak_{name}_total counter");
            let _ = writeln!(out, "subak_{name}_total {value}");
        }
        let joined = self.peers.iter().filter(|peer| peer.is_joined).count();
        let down = self.capacity_bps.iter().filter(|bps| **bps == 0.0).count();
        for (name, help, value) in [
            ("serving", "1 while this allocator serves", usize::from(self.is_serving)),
            ("hosts", "hosts that may join", self.hosts.len()),
            ("joined", "hosts that have joined", joined),
            ("flowlets", "known flowlets", self.flows.len()),
            ("links_down", "links that are down", down),
            ("links_lowered", "links with lowered granted rates", self.lowered_bps.iter().flatten().count()),
            ("threads", "threads that run an iteration", self.threads),
        ] {
            let _ = writeln!(out, "# HELP subak_{name} {help}\n# TYPE subak_{name} gauge\nsubak_{name} {value}");
        }
        self.host_metrics(&mut out);
        self.link_metrics(&mut out);
        let version = env!("CARGO_PKG_VERSION");
        let _ = writeln!(out, "# HELP subak_build_info the version of this program\n# TYPE subak_build_info gauge");
        let _ = writeln!(out, "subak_build_info{{version=\"{version}\"}} 1");
        if let Some(bytes) = resident_bytes() {
            let name = "process_resident_memory_bytes";
            let _ = writeln!(out, "# HELP {name} resident memory\n# TYPE {name} gauge\n{name} {bytes}");
        }
        self.iterations.metric(&mut out, "subak_iteration_seconds", "time of an iteration");
        out
    }
}

/// Writes the header of a metric.
fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// Escapes a label's value for Prometheus.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Resident memory of this process, bytes.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(1024 * line.split_whitespace().next()?.parse::<u64>().ok()?)
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Rounds to four significant digits.
fn significant(value: f64) -> Value {
    if value == 0.0 || !value.is_finite() {
        return json!(0);
    }
    let scale = 10f64.powi(3 - value.abs().log10().floor() as i32);
    let rounded = (value * scale).round() / scale;
    if rounded.fract() == 0.0 && rounded.abs() < 9e15 { json!(rounded as i64) } else { json!(rounded) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_below_their_bound() {
        let mut histogram = Histogram::default();
        for ns in [1, 999, 1000, 1001, 2000, 3000, 70_000_000] {
            histogram.add(ns);
        }
        assert_eq!(histogram.quantile_ns(0.4), 1000.0);
        assert_eq!(histogram.quantile_ns(5.0 / 7.0), 2000.0);
        assert_eq!(histogram.quantile_ns(6.0 / 7.0), 4000.0);
        assert_eq!(histogram.quantile_ns(1.0), f64::INFINITY);
        assert_eq!(Histogram::default().quantile_ns(0.5), 0.0);
    }

    #[test]
    fn four_digits_are_kept() {
        assert_eq!(significant(1_234_567.0), json!(1_235_000));
        assert_eq!(significant(0.123_456), json!(0.1235));
        assert_eq!(significant(f64::NAN), json!(0));
    }
}
