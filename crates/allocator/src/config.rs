//! The file that says what a daemon is to do.

use crate::files;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use subak_control::{ControlSettings, PriceLaw};
use subak_core::{Ns, quantity};
use subak_wire::Secret;

/// The file as it is written. Paths in it are relative to its folder.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where endpoints speak to: an address and a UDP port.
    pub listen: SocketAddr,
    /// The network, as node-link JSON.
    pub network: PathBuf,
    /// The addresses of the network's hosts, by name. The first is the one that an endpoint speaks from.
    pub hosts: BTreeMap<String, Addresses>,
    /// Tenants: hosts with one key and one quota.
    #[serde(rename = "tenant")]
    pub tenants: Vec<Tenant>,
    /// The socket by which the daemon is told things.
    pub control: Option<PathBuf>,
    /// The page, its data, metrics and health.
    pub page: Option<Page>,
    /// A second allocator.
    pub standby: Option<StandbyConfig>,
    /// Time between iterations.
    #[serde(default = "interval")]
    pub interval: String,
    /// Validity of rates without renewal, such as 200ms.
    #[serde(default = "lease")]
    pub lease: String,
    /// Which paths flowlets take.
    #[serde(default)]
    pub paths: PathRule,
    /// The routes that `paths = "routed"` follows, as JSON: for each address, the link by which each node sends to it.
    pub routes: Option<PathBuf>,
    /// Price update: `accelerated` or `ned`.
    #[serde(default)]
    pub law: LawConfig,
    /// The share of each link that is left to traffic not scheduled yet, and to messages.
    pub reserve: Option<f64>,
    /// The share of a link that traffic which nobody schedules takes from the rest, at most.
    pub unscheduled: Option<f64>,
    /// A rate is told once it differs from the one told by more than this share.
    pub threshold: Option<f64>,
    /// The policy's alpha; 1 is proportional fairness.
    pub alpha: Option<f64>,
}

/// One address, or several.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "give an IPv4 address, such as \"10.0.0.1\", or a list of them")]
pub enum Addresses {
    /// Its only one.
    One(Ipv4Addr),
    /// The one that it speaks from, and others that it is sent to.
    Several(Vec<Ipv4Addr>),
}

impl Addresses {
    /// All of them.
    pub fn all(&self) -> &[Ipv4Addr] {
        match self {
            Addresses::One(address) => std::slice::from_ref(address),
            Addresses::Several(addresses) => addresses,
        }
    }
}

/// Hosts with one key and one quota.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Name of the tenant.
    pub name: String,
    /// The file with the key: 64 hexadecimal digits, which only the daemon may read.
    pub key: PathBuf,
    /// The hosts by name. Each is of one tenant.
    pub hosts: Vec<String>,
    /// Limit of the sum of its flowlets' weights.
    pub weight: Option<f64>,
    /// Datagrams a second that one of its hosts may send for long.
    #[serde(default = "datagrams")]
    pub datagrams_per_s: f64,
    /// Flowlets of one of its hosts, at most.
    #[serde(default = "flowlets")]
    pub most_flowlets: usize,
}

/// Where the page is served.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// An address and a TCP port.
    pub listen: SocketAddr,
    /// The file with the token that readers have to give, where the address is not of this machine alone.
    pub token: Option<PathBuf>,
}

/// The other of two allocators.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandbyConfig {
    /// Where the other one listens.
    pub peer: SocketAddr,
    /// The file with the key that both share.
    pub key: PathBuf,
    /// Where both start at once, this one serves.
    #[serde(default)]
    pub first: bool,
}

/// Which paths flowlets take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathRule {
    /// Shortest paths; where there are several, one by a hash of the connection.
    #[default]
    Shortest,
    /// The first and the last link alone count, as if the core were never full.
    Edges,
    /// As routers have them, by the address that a flowlet goes to: see `routes`.
    Routed,
    /// The turns that endpoints tell.
    Told,
}

/// Price update of the allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LawConfig {
    /// NED with restarted acceleration.
    #[default]
    Accelerated,
    /// The paper's.
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

/// The shortest lease: what a busy host takes to get its turn, several times over.
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
    /// Reads the file; an error names the file, the place and the hint.
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

    /// Settings of the control core.
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

    /// Time between iterations, ns.
    pub fn interval_ns(&self) -> Ns {
        // It was checked when the file was read.
        quantity::ns(&self.interval).unwrap_or(1_000_000)
    }
}

/// A key from its file.
pub fn secret(path: &Path) -> Result<Secret, String> {
    let text = files::secret(path)?;
    Secret::from_hex(&text)
        .map_err(|e| format!("{}: {e}; `subak-allocator key --output FILE` makes one", path.display()))
}
