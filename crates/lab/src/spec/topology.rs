//! A network prepared for flows: with hosts, routing, and a reverse link for every link.

use crate::files::Beside;
use serde_json::{Map, Value};
use subak_core::backend::{Route, Spread};
use subak_core::case;
use subak_core::document::{nearest, unknown_word};
use subak_core::keys::{Key, ValueType};
use subak_core::quantity::{quoted, shown};
use subak_core::route::Metric;
use subak_core::route::{Router, Routing};
use subak_core::section::Section;
use subak_core::{IdVec, InputError, InputErrors, Link, LinkId, Network, Nic, NodeId, Ns};

/// A network with its hosts and routing.
#[derive(Debug)]
pub struct Topology {
    network: Network,
    /// The network as the spec describes it, without added reverse links. Routing uses only these links.
    described: Network,
    hosts: Vec<NodeId>,
    access_bps: IdVec<NodeId, f64>,
    reverse_links: IdVec<LinkId, LinkId>,
    routing: Routing,
    spreading: Spreading,
}

/// Load balancing over equal-cost paths of flows without an explicit path, and the largest number of paths.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spreading {
    pub spread: Option<Spread>,
    pub ways: usize,
    /// Delay from a link's failure or recovery to rerouting, ns; `None`: never.
    pub reroute_ns: Option<Ns>,
}

/// Error for an unknown link name.
pub(crate) fn unknown_link(name: &str, network: &Network) -> InputError {
    unknown_name(name, "link", &network.links().iter().map(|l| l.id.as_str()).collect::<Vec<_>>())
}

/// Error for an unknown name; lists the known names if they are few, otherwise the most similar ones.
pub(crate) fn unknown_name(name: &str, what: &str, known: &[&str]) -> InputError {
    if known.len() <= 16 {
        return unknown_word(name, what, known);
    }
    let hint = match nearest(name, known) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("name a {what} of the network, such as \"{}\"", known[0]),
    };
    InputError::new("", format!("unknown {what} {}", quoted(name)), hint)
}

/// Splits `network` into the description without the key `nic`, and the NIC scheduling, which only simulations
/// use.
fn nic(network: &Value) -> (Value, Result<Nic, InputError>) {
    let mut plain = network.clone();
    let Some(given) = plain.as_object_mut().and_then(|map| map.remove("nic")) else {
        return (plain, Ok(Nic::default()));
    };
    let found = Nic::ALL.iter().find(|(name, _)| given.as_str() == Some(name));
    let fault = || {
        let shown = given.as_str().map_or_else(|| shown(&given), str::to_string);
        unknown_word(&shown, "NIC", &Nic::ALL.map(|(name, _)| name)).below("network.nic")
    };
    (plain, found.map(|(_, nic)| *nic).ok_or_else(fault))
}

/// Keys of `[routing]`.
pub(super) const ROUTING: &[Key] = &[
    case::ROUTING[0],
    case::symmetric("true"),
    case::ROUTING[1],
    case::ROUTING[2],
    case::ROUTING[3],
    Key::new("kind", ValueType::Word(ROUTING_KINDS), "ecmp", "one path a flow, or its packets or flowlets spread"),
    Key::new("gap", ValueType::Time, "100us", "pause after which a flow may take another path (`flowlet`)"),
    Key::new("max_paths", ValueType::Whole(1, 64), "16", "maximum number of paths of a flow (`spray`, `flowlet`)"),
    Key::open("reroute", ValueType::Time, "never", "delay from a link's failure or recovery to rerouting"),
];

/// Reads the section `routing`.
fn read_routing(value: &Value, metric: Metric) -> Result<(Routing, Spreading), InputError> {
    let mut section = Section::of(value, ROUTING)?;
    let routing = case::routing(&mut section, metric);
    let spreading = spreading(&mut section);
    section.end(spreading.map(|spreading| (routing, spreading)))
}

/// Reads `kind`, `gap`, `max_paths` and `reroute` of the section `routing`.
fn spreading(section: &mut Section) -> Result<Spreading, InputError> {
    let [gap_given, ways_given] = ["gap", "max_paths"].map(|key| section.get(key).is_some());
    let (gap_ns, ways) = (section.take("gap"), section.take("max_paths"));
    let kind: String = section.take("kind");
    let spread = match kind.as_str() {
        "spray" => Some(Spread::Packets),
        "flowlet" => Some(Spread::Flowlets(gap_ns)),
        _ => None,
    };
    if gap_given && !matches!(spread, Some(Spread::Flowlets(_))) {
        return Err(InputError::new("gap", "it ends flowlets, and there are none", "take kind = \"flowlet\" for it"));
    }
    if ways_given && spread.is_none() {
        let hint = "take kind = \"spray\" or \"flowlet\" for it";
        return Err(InputError::new("max_paths", "it counts the paths of each flow, and each takes one", hint));
    }
    Ok(Spreading { spread, ways, reroute_ns: section.given("reroute") })
}

/// The kinds of routing.
pub(crate) const ROUTING_KINDS: &[&str] = &["ecmp", "spray", "flowlet"];

impl Topology {
    /// Reads the sections `network` and `routing` of a spec; the network may be one of `files`. By default
    /// ACKs take the data's links in reverse, as s-PERC requires.
    pub(crate) fn read(network: &Value, routing: Option<&Value>, files: &Beside) -> Result<Self, InputError> {
        let mut faults = InputErrors::default();
        let (network, nic) = nic(network);
        let nic = faults.keep(nic).unwrap_or_default();
        let read = crate::files::network(&network, files).map_err(|e| e.below("network"));
        let (mut described, metric) = faults.keep(read).unwrap_or_default();
        described.set_nic(nic);
        if let Some(slow) = described.links().iter().find(|l| l.capacity_bps < 1e3) {
            let what = format!("link {} has {} bit/s", quoted(&slow.id), slow.capacity_bps);
            faults.push(InputError::new("network", what, "give every link of a simulation at least 1 kb/s"));
        }
        let none = Value::Object(Map::new());
        let routing = faults.keep(read_routing(routing.unwrap_or(&none), metric).map_err(|e| e.below("routing")));
        let (chosen, spreading) = routing.unwrap_or_default();
        faults.done()?;
        Topology::over(described, chosen, spreading)
    }

    /// Adds a reverse link of the same capacity and delay to each link that lacks one, for ACKs.
    fn over(described: Network, routing: Routing, spreading: Spreading) -> Result<Self, InputError> {
        let mut network = described.clone();
        let mut reverse_links = IdVec::new();
        let mut added = Vec::new();
        for (l, &reverse_link) in described.reverse_links().iter_enumerated() {
            let reverse_link = match reverse_link {
                Some(reverse_link) => reverse_link,
                None => {
                    let link = &described.links()[l];
                    let id = format!("{}~back", link.id);
                    added.push(l);
                    network.add(Link { id, from: link.to, to: link.from, ..link.clone() })?
                }
            };
            reverse_links.push(reverse_link);
        }
        debug_assert_eq!(network.links().len(), described.links().len() + added.len());
        reverse_links.extend(added);
        let hosts: Vec<NodeId> = described.hosts().collect();
        let access = |h: NodeId| described.out_links(h).iter().map(|&l| described.links()[l].capacity_bps).sum();
        let mut access_bps = IdVec::filled(0.0, described.nodes().len());
        hosts.iter().for_each(|&h| access_bps[h] = access(h));
        Ok(Topology { network, described, hosts, access_bps, reverse_links, routing, spreading })
    }

    /// The network; added reverse links have the last numbers.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Delay from a link's failure or recovery to rerouting, ns; `None`: never.
    pub fn reroute_ns(&self) -> Option<Ns> {
        self.spreading.reroute_ns
    }

    /// Links that the spec describes, without added reverse links.
    pub fn described_links(&self) -> &IdVec<LinkId, Link> {
        self.described.links()
    }

    /// The hosts, in the order of node numbers.
    pub fn hosts(&self) -> &[NodeId] {
        &self.hosts
    }

    /// Whether `node` is a host.
    pub fn is_host(&self, node: NodeId) -> bool {
        self.hosts.binary_search(&node).is_ok()
    }

    /// Total capacity of the links out of `host`, bit/s.
    pub fn access_bps(&self, host: NodeId) -> f64 {
        self.access_bps[host]
    }

    /// Bytes that the hosts' outgoing links carry in `duration_ns`.
    pub fn capacity_bytes(&self, duration_ns: Ns) -> f64 {
        self.hosts.iter().map(|&h| self.access_bps(h)).sum::<f64>() * (duration_ns as f64 * 1e-9) / 8.0
    }

    /// Smallest delay of a link, ns, at least 1: lower bound of the delay between an event and a reaction to it.
    pub fn quickest_ns(&self) -> Ns {
        self.network.links().iter().map(|l| l.delay_ns).min().unwrap_or(1).max(1)
    }

    /// An error if some pair of hosts is not connected.
    pub(crate) fn check_connected(&self) -> Result<(), InputError> {
        let Some(&start) = self.hosts.first() else { return Ok(()) };
        for there in [true, false] {
            let reached = self.reached(start, there);
            if let Some(&far) = self.hosts.iter().find(|&&h| !reached[h]) {
                let name = |n: NodeId| quoted(&self.described.nodes()[n].name);
                let (from, to) = if there { (start, far) } else { (far, start) };
                return Err(InputError::new(
                    "",
                    format!("no path leads from host {} to host {}", name(from), name(to)),
                    "connect them in both directions, or use the workload \"steps\" between hosts that are connected",
                ));
            }
        }
        Ok(())
    }

    /// Whether every host can reach every other host, and the network's description has no failed link.
    pub(crate) fn is_whole(&self) -> bool {
        self.check_connected().is_ok() && !self.network.has_down()
    }

    /// Whether at least one host can reach another.
    pub(crate) fn has_a_pair(&self) -> bool {
        self.hosts.iter().any(|&h| {
            let reached = self.reached(h, true);
            self.hosts.iter().any(|&other| other != h && reached[other])
        })
    }

    /// Nodes that can be reached from `start` (`there`), or from which `start` can be reached. With symmetric
    /// routing, only links with a reverse link are used.
    fn reached(&self, start: NodeId, there: bool) -> IdVec<NodeId, bool> {
        let mut next: IdVec<NodeId, Vec<NodeId>> = IdVec::filled(Vec::new(), self.described.nodes().len());
        for (link, reverse_link) in self.described.links().iter().zip(self.described.reverse_links()) {
            if let (Some(from), Some(to)) = (link.from, link.to)
                && (reverse_link.is_some() || !self.routing.symmetric)
            {
                let (from, to) = if there { (from, to) } else { (to, from) };
                next[from].push(to);
            }
        }
        let mut reached = IdVec::filled(false, next.len());
        reached[start] = true;
        let mut frontier = vec![start];
        while let Some(node) = frontier.pop() {
            for &to in &next[node] {
                if !std::mem::replace(&mut reached[to], true) {
                    frontier.push(to);
                }
            }
        }
        reached
    }

    /// A new router, whose state belongs to one run.
    pub fn router(&self) -> Router {
        Router::by(&self.described, self.routing)
    }

    /// Same as [`Topology::router`], without the links `avoided`.
    pub(crate) fn router_avoiding(&self, avoided: &std::collections::BTreeSet<LinkId>) -> Router {
        Router::avoiding(&self.described, self.routing, |l| avoided.contains(&l))
    }

    /// Up to `subflows` different routes between two hosts.
    pub(crate) fn routes(
        &self,
        router: &mut Router,
        src: NodeId,
        dst: NodeId,
        key: u64,
        subflows: usize,
    ) -> Result<Vec<Route>, InputError> {
        if subflows == 1 { Ok(vec![router.route(src, dst, key)?]) } else { router.routes(src, dst, key, subflows) }
    }

    /// Whether ACKs take the reverse links of the data's path.
    pub(crate) fn is_symmetric(&self) -> bool {
        self.routing.symmetric
    }

    /// Per-packet load balancing over equal-cost paths, if any.
    pub(crate) fn spread(&self) -> Option<Spread> {
        self.spreading.spread
    }

    /// Routes of a flow between two hosts: one for each subflow, or the paths over which its packets are sprayed.
    pub(crate) fn ways(
        &self,
        router: &mut Router,
        src: NodeId,
        dst: NodeId,
        key: u64,
        subflows: usize,
    ) -> Result<(Vec<Route>, Option<Spread>), InputError> {
        let Spreading { spread, ways, .. } = self.spreading;
        let routes = self.routes(router, src, dst, key, if spread.is_some() { ways } else { subflows })?;
        let spread = spread.filter(|_| routes.len() > 1);
        Ok((routes, spread))
    }

    /// A route over `forward`, whose ACKs take the reverse links.
    pub(crate) fn route_over(&self, forward: Vec<LinkId>) -> Route {
        let back = forward.iter().rev().map(|&l| self.reverse_links[l]).collect();
        Route { forward, back }
    }

    /// The links with these names, which must form a path without repetition.
    pub(crate) fn path(&self, names: &[String]) -> Result<Vec<LinkId>, InputError> {
        if names.is_empty() {
            return Err(InputError::new("", "the path has no link", "name at least one link"));
        }
        let mut path: Vec<LinkId> = Vec::with_capacity(names.len());
        for (i, name) in names.iter().enumerate() {
            let at = |what: String, hint: &str| InputError::new(format!("[{i}]"), what, hint);
            let link = self
                .described
                .find_link(name)
                .ok_or_else(|| unknown_link(name, &self.described).below(&format!("[{i}]")))?;
            if path.contains(&link) {
                return Err(at(format!("the path crosses {} twice", quoted(name)), "name each link of a path once"));
            }
            let ends = |l: LinkId| (self.network.links()[l].from, self.network.links()[l].to);
            if let Some(&before) = path.last()
                && let (Some(arrives), Some(leaves)) = (ends(before).1, ends(link).0)
                && arrives != leaves
            {
                return Err(at(
                    format!("{} does not begin where the link before it ends", quoted(name)),
                    "name links in order",
                ));
            }
            path.push(link);
        }
        Ok(path)
    }

    /// First and last node of a path; `None` if its links have no nodes.
    pub(crate) fn ends(&self, path: &[LinkId]) -> (Option<NodeId>, Option<NodeId>) {
        let link = |l: &LinkId| &self.network.links()[*l];
        (path.first().and_then(|l| link(l).from), path.last().and_then(|l| link(l).to))
    }
}
