//! Configuration file of the daemon.

use crate::files;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use subak_control::{ControlSettings, PriceLaw};
use subak_core::{Ns, quantity};
use subak_wire::Secret;

/// Upper bound of `threads`.
const MOST_THREADS: usize = 64;

/// The configuration file. Relative paths in it are relative to the file's folder.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address and UDP port to which endpoints send.
    pub listen: SocketAddr,
    /// File of the network, node-link JSON.
    pub network: PathBuf,
    /// Addresses of the network's hosts, by name. A host sends control datagrams from its first address.
    pub hosts: BTreeMap<String, Addresses>,
    /// Tenants: groups of hosts with one key and one quota.
    #[serde(rename = "tenant")]
    pub tenants: Vec<Tenant>,
    /// Path of the control socket.
    pub control: Option<PathBuf>,
    /// HTTP server: live page, data, metrics and probes.
    pub page: Option<Page>,
    /// The standby: a second allocator.
    pub standby: Option<StandbyConfig>,
    /// Time between iterations, such as 1ms.
    #[serde(default = "interval")]
    pub interval: String,
    /// Lease: validity of rates without renewal, such as 200ms.
    #[serde(default = "lease")]
    pub lease: String,
    /// Rule for the paths of flowlets.
    #[serde(default)]
    pub paths: PathRule,
    /// File of the routes for `paths = "routed"`, JSON: for each address and node the link to it.
    pub routes: Option<PathBuf>,
    /// Price update: `accelerated` or `ned`.
    #[serde(default)]
    pub law: LawConfig,
    /// Fraction of each link reserved for traffic that is not scheduled yet, and for control messages.
    pub reserve: Option<f64>,
    /// Largest fraction of a link that unscheduled traffic may take from scheduled traffic.
    pub unscheduled: Option<f64>,
    /// Relative change of a rate above which it is sent to the host.
    pub threshold: Option<f64>,
    /// The policy's alpha; 1 is proportional fairness.
    pub alpha: Option<f64>,
    /// Largest number of threads for iterations; the default is the number of processors.
    pub threads: Option<usize>,
}

/// One or several addresses of a host.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "give an IPv4 address, such as \"10.0.0.1\", or a list of them")]
pub enum Addresses {
    /// A single address.
    One(Ipv4Addr),
    /// Several: the first sends control datagrams, the others only receive traffic.
    Several(Vec<Ipv4Addr>),
}

impl Addresses {
    /// All addresses.
    pub fn all(&self) -> &[Ipv4Addr] {
        match self {
            Addresses::One(address) => std::slice::from_ref(address),
            Addresses::Several(addresses) => addresses,
        }
    }
}

/// Group of hosts with one key and one quota.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Name of the tenant.
    pub name: String,
    /// File of the key: 64 hexadecimal digits, readable only by the daemon's user.
    pub key: PathBuf,
    /// Names of the hosts. A host belongs to one tenant.
    pub hosts: Vec<String>,
    /// Limit of the sum of the weights of the tenant's flowlets.
    pub weight: Option<f64>,
    /// Rate limit of each host, datagrams per second.
    #[serde(default = "datagrams")]
    pub datagrams_per_s: f64,
    /// Largest number of flowlets of each host.
    #[serde(default = "flowlets")]
    pub most_flowlets: usize,
}

/// HTTP server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// Address and TCP port.
    pub listen: SocketAddr,
    /// File of the token that readers must send; required unless the address is a loopback address.
    pub token: Option<PathBuf>,
}

/// The other allocator of the pair.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandbyConfig {
    /// Address and port of the other allocator.
    pub peer: SocketAddr,
    /// File of the key shared by both allocators.
    pub key: PathBuf,
    /// Whether this allocator serves if both start at the same time.
    #[serde(default)]
    pub first: bool,
}

/// Rule for the paths of flowlets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathRule {
    /// Shortest paths; among several, one by a hash of the connection.
    #[default]
    Shortest,
    /// Only the first and the last link of a path; the links of the core are assumed never full.
    Edges,
    /// The routers' paths, by destination address: see `routes`.
    Routed,
    /// Each endpoint chooses the paths: a flowlet's start message encodes its path.
    Told,
}

/// Price update of the allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LawConfig {
    /// NED with restarted acceleration.
    #[default]
    Accelerated,
    /// NED as in the paper.
    Ned,
}

fn interval() -> String {
    "200us".to_string()
}

fn lease() -> String {
    "200ms".to_string()
}

fn datagrams() -> f64 {
    20_000.0
}

fn flowlets() -> usize {
    1 << 16
}

/// Shortest lease, ns: several times the scheduling delay of a busy host.
const LEAST_LEASE_NS: Ns = 10_000_000;

impl Page {
    /// Token required of readers; `None` for a page that only this machine can reach.
    pub fn token(&self) -> Result<Option<String>, String> {
        let Some(path) = &self.token else { return Ok(None) };
        match files::text(path, files::SECRET)?.trim() {
            "" => Err(format!("{}: there is no token in it; write one", path.display())),
            token => Ok(Some(token.to_string())),
        }
    }
}

impl Config {
    /// Reads the file. An error names the file, the place and a hint.
    pub fn read(path: &Path) -> Result<Config, String> {
        let text = files::text(path, files::CONFIG)?;
        let mut config: Config = toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let place = |file: &mut PathBuf| *file = folder.join(&*file);
        place(&mut config.network);
        config.tenants.iter_mut().for_each(|tenant| place(&mut tenant.key));
        config.control.iter_mut().for_each(place);
        config.routes.iter_mut().for_each(place);
        config.page.iter_mut().filter_map(|page| page.token.as_mut()).for_each(place);
        config.standby.iter_mut().for_each(|standby| place(&mut standby.key));
        config.check().map_err(|what| format!("{}: {what}", path.display()))?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        self.settings()?;
        let mut owner = BTreeMap::new();
        for (name, addresses) in &self.hosts {
            if addresses.all().is_empty() {
                return Err(format!("hosts.{name}: it has no address; give one"));
            }
            for address in addresses.all() {
                if address.is_unspecified() || address.is_multicast() || address.is_broadcast() {
                    return Err(format!("hosts.{name}: {address} is not the address of one host; give its own"));
                }
                if let Some(other) = owner.insert(address, name) {
                    return Err(format!("hosts.{name}: {address} is {other}'s, too; give each address to one host"));
                }
            }
        }
        if !self.listen.is_ipv4() {
            return Err(format!("listen: {} is of IPv6; hosts speak IPv4: give such an address", self.listen));
        }
        if let Some(standby) = &self.standby {
            if !standby.peer.is_ipv4() {
                return Err(format!("standby: {} is of IPv6; give the other allocator's IPv4 address", standby.peer));
            }
            if standby.peer == self.listen {
                return Err(format!("standby: {} is this allocator; give the other's address", standby.peer));
            }
        }
        let mut tenant_of = BTreeMap::new();
        for (k, tenant) in self.tenants.iter().enumerate() {
            for host in &tenant.hosts {
                if !self.hosts.contains_key(host) {
                    return Err(format!("tenant {}: host {host} has no address; add it under [hosts]", tenant.name));
                }
                if let Some(other) = tenant_of.insert(host, &tenant.name) {
                    return Err(format!("tenant {}: host {host} is of tenant {other}, too", tenant.name));
                }
            }
            if self.tenants[..k].iter().any(|other| other.name == tenant.name) {
                return Err(format!("tenant {}: there are two of this name", tenant.name));
            }
            let positive = |value: f64| value.is_finite() && value > 0.0;
            if !tenant.weight.is_none_or(positive) || !positive(tenant.datagrams_per_s) {
                return Err(format!("tenant {}: weight and datagrams_per_s are positive numbers", tenant.name));
            }
        }
        if let Some(host) = self.hosts.keys().find(|host| !tenant_of.contains_key(host)) {
            return Err(format!("hosts.{host}: it is of no tenant; add it to the hosts of one"));
        }
        if (self.paths == PathRule::Routed) != self.routes.is_some() {
            return Err("routes: give their file where paths = \"routed\", and only there".to_string());
        }
        if let Some(page) = &self.page
            && !page.listen.ip().is_loopback()
            && page.token.is_none()
        {
            return Err("page: others than this machine may read it: give the file of a token".to_string());
        }
        Ok(())
    }

    /// Settings of the allocator's core, from the file's values and the defaults.
    pub fn settings(&self) -> Result<ControlSettings, String> {
        let ns = |name: &str, text: &str| quantity::ns(text).map_err(|e| format!("{name}: {e}"));
        let (interval_ns, lease_ns) = (ns("interval", &self.interval)?, ns("lease", &self.lease)?);
        if interval_ns == 0 {
            return Err("interval: it is 0; give a time, such as 200us".to_string());
        }
        if lease_ns < LEAST_LEASE_NS.max(20 * interval_ns) {
            return Err("lease: give 10ms at least, and 20 intervals".to_string());
        }
        let share = |name: &str, given: Option<f64>, usual: f64| match given.unwrap_or(usual) {
            value if (0.0..=0.5).contains(&value) => Ok(value),
            value => Err(format!("{name}: it is {value}; give a share from 0 to 0.5")),
        };
        let alpha = self.alpha.unwrap_or(ControlSettings::DEFAULT.alpha);
        if !(alpha.is_finite() && alpha > 0.0 && alpha <= 16.0) {
            return Err(format!("alpha: it is {alpha}; give a number above 0, 16 at most"));
        }
        let most_unscheduled = self.unscheduled.unwrap_or(ControlSettings::DEFAULT.most_unscheduled);
        if !(0.0..=0.95).contains(&most_unscheduled) {
            return Err(format!("unscheduled: it is {most_unscheduled}; give a share from 0 to 0.95"));
        }
        if let Some(threads) = self.threads.filter(|threads| !(1..=MOST_THREADS).contains(threads)) {
            return Err(format!("threads: {threads} is not from 1 to {MOST_THREADS}"));
        }
        Ok(ControlSettings {
            most_unscheduled,
            law: match self.law {
                LawConfig::Accelerated => PriceLaw::Accelerated,
                LawConfig::Ned => PriceLaw::Ned,
            },
            alpha,
            reserve: share("reserve", self.reserve, ControlSettings::DEFAULT.reserve)?,
            threshold: share("threshold", self.threshold, ControlSettings::DEFAULT.threshold)?,
            most_flowlets: self.tenants.iter().map(|tenant| tenant.most_flowlets).max().unwrap_or(0),
            ..ControlSettings::for_hosts(lease_ns)
        })
    }

    /// Largest number of threads for iterations.
    pub fn most_threads(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(processors).min(MOST_THREADS)
    }

    /// Time between iterations, ns.
    pub fn interval_ns(&self) -> Ns {
        // The value was checked when the file was read.
        quantity::ns(&self.interval).unwrap_or(1_000_000)
    }
}

/// Reads a key from the file at `path`.
pub fn secret(path: &Path) -> Result<Secret, String> {
    let text = files::secret(path)?;
    Secret::from_hex(&text)
        .map_err(|e| format!("{}: {e}; `subak-allocator key --output FILE` makes one", path.display()))
}
