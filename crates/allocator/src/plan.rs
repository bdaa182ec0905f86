//! The network with its hosts, keys and routes, read from files and reloaded when they change.

use crate::config::{Config, PathRule, secret};
use crate::files;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use subak_control::{BigSwitch, Ecmp, Paths, Turns};
use subak_core::formats::node_link;
use subak_core::route::Routing;
use subak_core::{IdVec, LinkId, Network, NodeId, NodeKind, document};
use subak_wire::{Direction, Seal};

/// A network, its hosts, and the keys of the hosts' messages.
#[derive(Debug)]
pub struct NetworkPlan {
    /// Nodes and links.
    pub network: Network,
    /// Hosts in the order of their names.
    pub hosts: Vec<PlannedHost>,
    /// Name and quota of each tenant, in the order of the file.
    pub tenants: Vec<(String, Option<f64>)>,
    rule: PathRule,
    /// Next link at each node, by destination address.
    routes: Arc<HashMap<u32, IdVec<NodeId, Option<LinkId>>>>,
}

/// A host, as configured.
#[derive(Debug)]
pub struct PlannedHost {
    /// Name of the host.
    pub name: String,
    /// Address from which the host sends control datagrams.
    pub address: Ipv4Addr,
    /// Other addresses of the host.
    pub others: Vec<Ipv4Addr>,
    /// Node of the host in the network.
    pub node: NodeId,
    /// Index of the host's tenant in [`NetworkPlan::tenants`].
    pub tenant: u32,
    /// Authentication of datagrams from the host.
    pub up: Seal,
    /// Authentication of datagrams to the host.
    pub down: Seal,
    /// Rate limit of the host, datagrams per second.
    pub datagrams_per_s: f64,
    /// Largest number of flowlets of the host.
    pub most_flowlets: usize,
}

impl NetworkPlan {
    /// Reads the network and the keys that `config` names.
    pub fn read(config: &Config) -> Result<NetworkPlan, String> {
        let path = &config.network;
        let say = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
        let text = files::text(path, files::NETWORK)?;
        let value = document::parse(&text, document::Format::Json).map_err(|e| say(&e))?;
        let network = node_link::network(&value).map_err(|e| say(&e))?;
        let mut hosts = Vec::new();
        for (number, tenant) in config.tenants.iter().enumerate() {
            let secret = secret(&tenant.key)?;
            for name in &tenant.hosts {
                let node = network.find_node(name).ok_or_else(|| {
                    let what = format!("there is no node {name}, which is under [hosts] and of tenant {}", tenant.name);
                    say(&format!("{what}; give it one, or take it from both"))
                })?;
                if network.nodes()[node].kind != NodeKind::Host {
                    return Err(say(&format!("{name} is a switch; only hosts send")));
                }
                let addresses = config.hosts[name].all();
                let endpoint = u32::from(addresses[0]);
                hosts.push(PlannedHost {
                    name: name.clone(),
                    address: addresses[0],
                    others: addresses[1..].to_vec(),
                    node,
                    tenant: number as u32,
                    up: Seal::new(&secret, endpoint, Direction::Up),
                    down: Seal::new(&secret, endpoint, Direction::Down),
                    datagrams_per_s: tenant.datagrams_per_s,
                    most_flowlets: tenant.most_flowlets,
                });
            }
        }
        hosts.sort_by(|a, b| a.name.cmp(&b.name));
        let tenants = config.tenants.iter().map(|tenant| (tenant.name.clone(), tenant.weight)).collect();
        let routes = config.routes.as_ref().map_or(Ok(HashMap::new()), |path| routes(path, &network))?;
        Ok(NetworkPlan { network, hosts, tenants, rule: config.paths, routes: Arc::new(routes) })
    }

    /// Capacities of the links, bit/s: 0 for the links in `down`, and the values in `changed` in place of configured
    /// ones.
    pub fn capacity_bps(&self, down: &BTreeSet<String>, changed: &BTreeMap<String, f64>) -> Vec<f64> {
        let links = self.network.links().iter();
        links
            .map(|link| match down.contains(&link.id) {
                true => 0.0,
                false => changed.get(&link.id).copied().unwrap_or(link.capacity_bps),
            })
            .collect()
    }

    /// Path selection between `endpoints`. Paths avoid the links in `down`.
    pub fn paths(&self, endpoints: &Endpoints, down: &BTreeSet<String>) -> Box<dyn Paths> {
        let (nodes, by_address) = (endpoints.nodes(self), endpoints.by_address.clone());
        let routing = Routing::default();
        let network = &self.network;
        match self.rule {
            PathRule::Routed => {
                let ends = self.network.links().iter().map(|link| link.to).collect();
                let links = self.network.links();
                let down = links.ids().filter(|&link| down.contains(&links[link].id)).collect();
                let access = Ecmp::new(&self.network, routing);
                Box::new(Routed { nodes, routes: Arc::clone(&self.routes), ends, down, access })
            }
            PathRule::Told => Box::new(Numbered { nodes, by_address, inner: Turns::new(network) }),
            PathRule::Shortest => Box::new(Numbered { nodes, by_address, inner: self.shortest(routing, down) }),
            PathRule::Edges => Box::new(Numbered { nodes, by_address, inner: BigSwitch(self.shortest(routing, down)) }),
        }
    }

    fn shortest(&self, routing: Routing, down: &BTreeSet<String>) -> Ecmp {
        let links = self.network.links();
        Ecmp::avoiding(&self.network, routing, |link: LinkId| down.contains(&links[link].id))
    }
}

/// Reads the routes file: the next link at each node, by address.
fn routes(path: &Path, network: &Network) -> Result<HashMap<u32, IdVec<NodeId, Option<LinkId>>>, String> {
    let say = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
    let text = files::text(path, files::NETWORK)?;
    let read: HashMap<Ipv4Addr, HashMap<String, String>> = serde_json::from_str(&text).map_err(|e| say(&e))?;
    let mut routes = HashMap::new();
    for (address, hops) in read {
        let mut next = IdVec::filled(None, network.nodes().len());
        for (node, link) in hops {
            let at = network.find_node(&node).ok_or_else(|| say(&format!("{address}: there is no node {node}")))?;
            let by = network.find_link(&link).ok_or_else(|| say(&format!("{address}: there is no link {link}")))?;
            if network.links()[by].from != Some(at) {
                return Err(say(&format!("{address}: link {link} does not leave {node}")));
            }
            next[at] = Some(by);
        }
        routes.insert(u32::from(address), next);
    }
    Ok(routes)
}

/// Paths by routers' tables, which depend on the destination address alone.
struct Routed {
    nodes: Vec<Option<NodeId>>,
    routes: Arc<HashMap<u32, IdVec<NodeId, Option<LinkId>>>>,
    ends: IdVec<LinkId, Option<NodeId>>,
    down: BTreeSet<LinkId>,
    access: Ecmp,
}

impl Paths for Routed {
    fn path(&mut self, from: u32, to: u32, _path: u32) -> Option<Vec<LinkId>> {
        let mut at = self.nodes.get(from as usize).copied().flatten()?;
        let next = self.routes.get(&to)?;
        let mut links = Vec::new();
        while let Some(link) = next[at] {
            // A routing loop gives no path.
            if links.len() == next.len() || self.down.contains(&link) {
                return None;
            }
            links.push(link);
            at = self.ends[link]?;
        }
        (!links.is_empty()).then_some(links)
    }

    fn access(&self, endpoint: u32) -> Option<(LinkId, LinkId)> {
        self.access.access(self.nodes.get(endpoint as usize).copied().flatten()?.0)
    }
}

/// Paths between endpoints with permanent numbers, which survive changes of the network. A destination is given by
/// address and may be unknown yet.
struct Numbered<P> {
    nodes: Vec<Option<NodeId>>,
    by_address: HashMap<u32, u32>,
    inner: P,
}

impl<P: Paths> Numbered<P> {
    fn node(&self, endpoint: u32) -> Option<u32> {
        self.nodes.get(endpoint as usize).copied().flatten().map(|node| node.0)
    }
}

impl<P: Paths> Paths for Numbered<P> {
    fn path(&mut self, from: u32, to: u32, path: u32) -> Option<Vec<LinkId>> {
        let to = *self.by_address.get(&to)?;
        let (from, to) = (self.node(from)?, self.node(to)?);
        self.inner.path(from, to, path)
    }

    fn access(&self, endpoint: u32) -> Option<(LinkId, LinkId)> {
        self.inner.access(self.node(endpoint)?)
    }
}

/// Permanent numbers of endpoints and tenants. They are kept while the daemon runs, even if a host leaves and joins
/// again.
#[derive(Debug, Default)]
pub struct Endpoints {
    numbers: BTreeMap<String, u32>,
    tenants: BTreeMap<String, u32>,
    by_address: HashMap<u32, u32>,
}

impl Endpoints {
    /// Assigns numbers to new hosts and tenants of `plan`.
    pub fn learn(&mut self, plan: &NetworkPlan) {
        self.by_address.clear();
        for (name, _) in &plan.tenants {
            let next = self.tenants.len() as u32;
            self.tenants.entry(name.clone()).or_insert(next);
        }
        for host in &plan.hosts {
            let next = self.numbers.len() as u32;
            let number = *self.numbers.entry(host.name.clone()).or_insert(next);
            for address in std::iter::once(&host.address).chain(&host.others) {
                self.by_address.insert(u32::from(*address), number);
            }
        }
    }

    /// Number of the host with this name.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// Number of the tenant at this index of `plan`.
    pub fn tenant(&self, plan: &NetworkPlan, place: u32) -> u32 {
        let tenant = plan.tenants.get(place as usize);
        tenant.and_then(|(name, _)| self.tenants.get(name)).copied().unwrap_or(u32::MAX)
    }

    /// Number of the host with this address.
    pub fn of_address(&self, address: u32) -> Option<u32> {
        self.by_address.get(&address).copied()
    }

    /// Number of hosts that have a number.
    pub fn count(&self) -> usize {
        self.numbers.len()
    }

    fn nodes(&self, plan: &NetworkPlan) -> Vec<Option<NodeId>> {
        let mut nodes = vec![None; self.count()];
        for host in &plan.hosts {
            if let Some(node) = self.number(&host.name).and_then(|number| nodes.get_mut(number as usize)) {
                *node = Some(host.node);
            }
        }
        nodes
    }
}
