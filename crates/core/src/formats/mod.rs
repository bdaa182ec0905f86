//! Network files. [`read`] has the formats by the file's name and beginning.
//!
//! In node-link JSON, GraphML, GML and DOT, an edge must have `capacity` and may have `delay` and `buffer`; an
//! undirected edge is two links. Nodes may have `kind` (or `type`) "host" or "switch". Links are named `A->B`,
//! parallel ones `A->B#1`; a directed edge may have an `id`. An edge of capacity 0 is a link that has failed, and one
//! that leads to its own node carries nothing: both are omitted. An unknown attribute is noted; one that resembles
//! the name of a known attribute is an error.

mod brite;
mod dot;
mod drawn;
pub mod flows;
pub mod gml;
pub mod graphml;
pub mod hpcc;
mod mininet;
pub mod node_link;
mod repetita;
mod rocketfuel;
mod sndlib;
mod teavar;
mod zoo;

use crate::document::{list, nearest, text, unknown_word};
use crate::network::Guess;
use crate::quantity::{capacity_from_json, ns_from_json, quoted, rate_bps, rate_bps_from_json};
use crate::{IdVec, InputError, Link, Network, NodeId, NodeKind, Ns};
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap, HashSet};
use zoo::{Doubtful, Speed};

/// Keys that a case or spec states beside a network file's name, for values that the file lacks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Defaults {
    /// Capacity of edges without one, bit/s; if `None`, such an edge is an error.
    pub capacity_bps: Option<f64>,
    /// Propagation delay of edges without one, ns; if `None`, it is 0.
    pub delay_ns: Option<Ns>,
    /// End to use where the file states a range of speeds; if `None`, a range is an error.
    pub range: Option<End>,
    /// Rule for which nodes are hosts; overrides the file.
    pub hosts: Option<HostRule>,
    /// Unit of capacities that the file has as plain numbers; if `None`, the format's own, or bit/s.
    pub unit: Option<String>,
}

/// An end of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The lowest speed.
    Low,
    /// The highest speed.
    High,
}

/// Rule for which nodes are hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRule {
    /// Every node.
    All,
    /// Nodes with one neighbour; there must be one.
    Leaves,
    /// Nodes with these names.
    Named(Vec<String>),
}

/// Keys of a network given as a file.
pub const FILE_KEYS: [&str; 6] = ["file", "capacity", "delay", "range", "hosts", "unit"];

impl Defaults {
    /// Reads the keys `capacity`, `delay`, `range`, `hosts` and `unit`.
    pub fn read(map: &Map<String, Value>) -> Result<Self, InputError> {
        let capacity = map.get("capacity").map(capacity_from_json).transpose();
        let delay = map.get("delay").map(ns_from_json).transpose();
        Ok(Defaults {
            capacity_bps: capacity.map_err(|e| e.below("capacity"))?,
            delay_ns: delay.map_err(|e| e.below("delay"))?,
            range: map.get("range").map(end_of_range).transpose().map_err(|e| e.below("range"))?,
            hosts: map.get("hosts").map(hosts_of).transpose().map_err(|e| e.below("hosts"))?,
            unit: map.get("unit").map(unit_of_rates).transpose().map_err(|e| e.below("unit"))?,
        })
    }

    /// These values, with those of `other` where a value is unset.
    #[must_use]
    pub fn or(&self, other: Self) -> Self {
        Defaults {
            capacity_bps: self.capacity_bps.or(other.capacity_bps),
            delay_ns: self.delay_ns.or(other.delay_ns),
            range: self.range.or(other.range),
            hosts: self.hosts.clone().or(other.hosts),
            unit: self.unit.clone().or(other.unit),
        }
    }

    /// These values, with every node a host unless they say otherwise: in the networks of backbones, all nodes send.
    fn of_backbone(&self) -> Self {
        Defaults { hosts: Some(self.hosts.clone().unwrap_or(HostRule::All)), ..self.clone() }
    }
}

/// A unit of rates, such as "Mbps".
fn unit_of_rates(value: &Value) -> Result<String, InputError> {
    let unit = text(value, "the unit")?;
    match unit.starts_with(|c: char| c.is_ascii_alphabetic()) && rate_bps(&format!("1{unit}")).is_ok() {
        true => Ok(unit.to_string()),
        false => Err(InputError::new("", format!("{} is no unit of rates", quoted(unit)), "give one such as \"Mbps\"")),
    }
}

fn end_of_range(value: &Value) -> Result<End, InputError> {
    match text(value, "the end of a range")? {
        "low" => Ok(End::Low),
        "high" => Ok(End::High),
        other => Err(unknown_word(other, "end of a range", &["low", "high"])),
    }
}

fn hosts_of(value: &Value) -> Result<HostRule, InputError> {
    const EXAMPLE: &str = "[\"a\", \"b\"]";
    match value {
        Value::String(word) if word == "all" => Ok(HostRule::All),
        Value::String(word) if word == "leaves" => Ok(HostRule::Leaves),
        Value::String(word) => Err(unknown_word(word, "choice of hosts", &["all", "leaves"])
            .hinted(&format!("or list their names: {EXAMPLE}"))),
        other => {
            let name = |(i, name): (usize, &Value)| match name {
                Value::Number(n) if n.is_i64() || n.is_u64() => Ok(n.to_string()),
                other => text(other, "a host's name").map(str::to_string).map_err(|e| e.below(&format!("[{i}]"))),
            };
            let names = list(other, "the list of hosts", EXAMPLE)?;
            if names.is_empty() {
                let hint = format!("list their names: {EXAMPLE}; or say \"all\" or \"leaves\"");
                return Err(InputError::new("", "the list of hosts is empty", hint));
            }
            names.iter().enumerate().map(name).collect::<Result<_, _>>().map(HostRule::Named)
        }
    }
}

/// An error for a file name whose format is known but not supported.
pub fn refuse_kind(path: &str) -> Result<(), InputError> {
    let name = path.to_lowercase();
    let (what, hint) = match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("gml") => ("GML, a network", "name it as the network: network = {file = ...}"),
        Some("csv") => {
            ("CSV, a table", "name it as the flows of a case, flows = {file = ...}, or as a workload of kind \"trace\"")
        }
        Some("parquet") => ("Parquet, a table", "name it in a workload of kind \"trace\""),
        Some("dot" | "gv" | "graph" | "brite" | "cch" | "intra" | "mn") => {
            ("a network", "name it as the network: network = {file = ...}")
        }
        Some("demands") => ("a list of demands", "name it as the flows of a case: flows = {file = ...}"),
        Some("gexf" | "net" | "graph6" | "edgelist" | "adjlist") => (
            "a graph in a format that only networkx reads",
            "convert it: graph = networkx.read_...(path), then \
             json.dump(networkx.node_link_data(graph), open(\"network.json\", \"w\"))",
        ),
        Some("yaml" | "yml") => ("YAML", "write it as TOML or JSON"),
        Some("xlsx" | "ods") => ("a spreadsheet", "save the table as CSV"),
        Some("gz" | "zip" | "xz" | "zst") => ("compressed", "unpack it first"),
        Some("py") => ("Python", "run it with python"),
        _ => return Ok(()),
    };
    Err(InputError::new("", format!("{path} is {what}: it is not read here"), hint))
}

/// A reader of a network's text.
type ReadNetwork = fn(&str, &Defaults) -> Result<Network, InputError>;

/// Parses the network in `contents`, in the format that the name `path` or the beginning of the text tells; `None` if it
/// is none of them, or JSON or TOML.
pub fn read(contents: &str, path: &str, beside: &Defaults) -> Option<Result<Network, InputError>> {
    let name = path.to_lowercase();
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let body = contents.trim_start_matches('\u{feff}').trim_start();
    let reader: ReadNetwork = match ending {
        "gml" => gml::network_with,
        "dot" | "gv" => dot::network,
        "graph" => repetita::network,
        "brite" => brite::network,
        "cch" => rocketfuel::network_of_map,
        "intra" if name.contains("latenc") => rocketfuel::network_of_latencies,
        "intra" => rocketfuel::network_of_weights,
        "mn" => mininet::network,
        "txt" if sndlib::is_native(body) => sndlib::native_network,
        "txt" if teavar::is_topology(body) => teavar::network,
        "txt" => hpcc::network_with,
        _ if sndlib::is_xml(body) => sndlib::xml_network,
        _ if body.starts_with('<') => graphml::network_with,
        "json" if mininet::is_topology(body) => mininet::network,
        _ => return None,
    };
    Some(reader(contents, beside))
}

/// Error for a key such as `capacity` beside a network whose format states the value itself.
pub fn refuse_beside(beside: &Defaults, keys: &[&str], why: &str) -> Result<(), InputError> {
    let given = [
        ("capacity", beside.capacity_bps.is_some()),
        ("delay", beside.delay_ns.is_some()),
        ("range", beside.range.is_some()),
        ("hosts", beside.hosts.is_some()),
        ("unit", beside.unit.is_some()),
    ];
    let faults = given.into_iter().filter(|(key, given)| *given && (keys.is_empty() || keys.contains(key)));
    let fault = |(key, _)| InputError::new("", format!("\"{key}\" beside the file is not used: {why}"), "remove it");
    InputError::all(faults.map(fault)).map_or(Ok(()), Err)
}

/// Error at a line of a file.
fn at_line(line: usize, what: impl Into<String>, hint: &str) -> InputError {
    InputError::new(format!("line {line}"), what, hint)
}

/// A graph, collected while a file is read.
#[derive(Debug, Default)]
struct Graph {
    nodes: IdVec<NodeId, (String, Option<NodeKind>)>,
    by_name: HashMap<String, NodeId>,
    edges: Vec<Edge>,
    /// Whether parallel edges are an error.
    simple: bool,
    /// Names of edge attributes that are ignored.
    unread: BTreeSet<String>,
    /// Names of node attributes that resemble `kind` but whose values are neither host nor switch, or that edges have.
    unread_of_nodes: BTreeSet<String>,
    /// Number of edges by the source of their capacity.
    told: Told,
}

/// Counts of edges by the source of their capacity.
#[derive(Debug, Default)]
struct Told {
    own: usize,
    by_default: usize,
    /// Distinct labels from which no speed could be read.
    labels: Vec<String>,
    ranges: usize,
    /// Number of edges whose label contradicts their capacity.
    otherwise: usize,
    /// Number of edges without a capacity whose `LinkSpeedRaw` is no speed.
    no_raw: usize,
    /// Number of edges without a capacity whose numbers contradict their label.
    contradictions: usize,
}

#[derive(Debug)]
struct Edge {
    from: NodeId,
    to: NodeId,
    directed: bool,
    id: Option<String>,
    /// Capacity in bit/s; 0 if the link is down.
    capacity_bps: f64,
    delay_ns: Ns,
    buffer_bytes: Option<u64>,
}

impl Graph {
    /// Adds a node. Places of errors are relative to the node.
    fn node(&mut self, name: String, kind: Option<NodeKind>) -> Result<(), InputError> {
        if name.is_empty() {
            return Err(InputError::new("id", "the node's id is empty", "give every node a name"));
        }
        if self.by_name.insert(name.clone(), self.nodes.next_id()).is_some() {
            let what = format!("a second node has the id {}", quoted(&name));
            return Err(InputError::new("id", what, "give every node an id of its own"));
        }
        self.nodes.push((name, kind));
        Ok(())
    }

    /// Checks an attribute other than `kind`, of a node without a kind. It is an error if the name resembles `kind`
    /// and the value names a host or a switch (`tells`).
    fn other_of_node(&mut self, name: &str, tells: bool) -> Result<(), InputError> {
        if !may_be_kind(name) {
            return Ok(());
        }
        if tells {
            return Err(slip(name, "kind"));
        }
        self.unread_of_node(name);
        Ok(())
    }

    /// Notes the attribute of a node that is one of edges, such as `capacity`.
    fn of_edges(&mut self, name: &str) {
        if EDGE_KEYS.contains(&name) {
            self.unread_of_node(name);
        }
    }

    fn unread_of_node(&mut self, name: &str) {
        if self.unread_of_nodes.len() < 8 {
            self.unread_of_nodes.insert(name.to_string());
        }
    }

    /// The node called `name`. The error has no place.
    fn find(&self, name: &str) -> Result<NodeId, InputError> {
        self.by_name.get(name).copied().ok_or_else(|| {
            let what = format!("there is no node {}", quoted(name));
            InputError::new("", what, "name a node that the list of nodes has")
        })
    }

    /// Capacity of an edge in bit/s: its own attribute, else from its speed labels, else the default in `beside`.
    fn capacity(
        &mut self,
        own: Option<&Value>,
        labels: &[Option<String>; 4],
        beside: &Defaults,
    ) -> Result<f64, InputError> {
        if let Some(own) = own {
            self.told.own += 1;
            let bps = rate_bps_from_json(&flows::in_unit(own.clone(), beside.unit.as_deref()))
                .map_err(|e| e.below("capacity"))?;
            let agrees = zoo::speed(labels).is_none_or(|speed| bps == 0.0 || speed.agrees(bps));
            self.told.otherwise += usize::from(!agrees);
            return Ok(bps);
        }
        match zoo::doubtful(labels) {
            Some(Doubtful::NoSpeed) => self.told.no_raw += 1,
            Some(Doubtful::Contradicts) => self.told.contradictions += 1,
            None => {}
        }
        match (zoo::speed(labels), beside.range) {
            (Some(Speed::One(bps)), _) => {
                self.told.own += 1;
                Ok(bps)
            }
            (Some(Speed::Range(low, high)), Some(end)) => {
                self.told.ranges += 1;
                Ok(if end == End::Low { low } else { high })
            }
            (Some(Speed::Range(low, high)), None) => {
                let said = labels[3].as_deref().or(labels[1].as_deref()).unwrap_or_default();
                let what = format!("{} tells two speeds, {low} and {high} bit/s", quoted(said));
                let hint = "choose an end beside the file, range = \"low\" or \"high\", or give the edge a capacity";
                Err(InputError::new("LinkLabel", what, hint))
            }
            (None, _) => {
                let bps = beside.capacity_bps.ok_or_else(no_capacity)?;
                self.told.by_default += 1;
                let said = |label: &&String| !label.is_empty();
                let label = labels[3].as_ref().filter(said).or(labels.iter().flatten().find(said));
                let label = label.filter(|label| self.told.labels.len() < 3 && !self.told.labels.contains(label));
                self.told.labels.extend(label.cloned());
                Ok(bps)
            }
        }
    }

    /// Builds the network; `list` is the file's name for its list of edges, for the places of errors.
    fn build(mut self, list: &str, beside: &Defaults) -> Result<Network, InputError> {
        let given = self.given_kinds(beside.hosts.as_ref())?;
        let ends: Vec<_> = self.edges.iter().filter(|e| e.from != e.to).map(|e| (e.from, e.to)).collect();
        let mut network = Network::new();
        for ((name, _), kind) in self.nodes.iter().zip(kinds(&given, &ends)) {
            network.node(name, kind);
        }
        if beside.hosts == Some(HostRule::Leaves) && !near_one(given.len(), &ends).contains(&true) {
            let hint = "name the hosts in a list, or say \"all\"";
            return Err(InputError::new("hosts", "no node has one neighbour, so there are no leaves", hint));
        }
        let unmarked = given.iter().filter(|kind| kind.is_none()).count();
        let guess = Guess { unmarked, hosts: network.hosts().filter(|&host| given[host].is_none()).count() };
        network.set_guess((beside.hosts.is_none() && unmarked > 0).then_some(guess));
        let mut seen = HashSet::new();
        for (i, edge) in std::mem::take(&mut self.edges).into_iter().enumerate() {
            self.add(edge, &mut network, &mut seen).map_err(|e| e.below(&format!("{list}[{i}]")))?;
        }
        if network.links().is_empty() && !ends.is_empty() {
            let hint = "give every edge a capacity such as \"10Gbps\"; 0 is that of a link that has failed";
            return Err(InputError::new(list, "every edge has the capacity 0", hint));
        }
        network.note_all(self.notes(beside));
        Ok(network)
    }

    /// Kind of each node as given; `None` where it must be inferred.
    fn given_kinds(&self, hosts: Option<&HostRule>) -> Result<IdVec<NodeId, Option<NodeKind>>, InputError> {
        Ok(match hosts {
            None => self.nodes.iter().map(|(_, kind)| *kind).collect(),
            Some(HostRule::All) => self.nodes.iter().map(|_| Some(NodeKind::Host)).collect(),
            Some(HostRule::Leaves) => self.nodes.iter().map(|_| None).collect(),
            Some(HostRule::Named(names)) => {
                let mut kinds = IdVec::filled(Some(NodeKind::Switch), self.nodes.len());
                for (i, name) in names.iter().enumerate() {
                    let node = self.find(name).map_err(|e| {
                        let known: Vec<&str> = self.nodes.iter().map(|(name, _)| name.as_str()).collect();
                        let near = nearest(name, &known).map(|near| format!("did you mean \"{near}\"?"));
                        InputError { hint: near.unwrap_or(e.hint), file: None, ..e }.below(&format!("hosts[{i}]"))
                    })?;
                    kinds[node] = Some(NodeKind::Host);
                }
                kinds
            }
        })
    }

    /// Notes on how the edges were read.
    fn notes(&self, beside: &Defaults) -> Vec<String> {
        let Told { own, by_default, labels, ranges, otherwise, no_raw, contradictions } = &self.told;
        let mut notes = Vec::new();
        if let Some(bps) = beside.capacity_bps.filter(|_| *by_default > 0 && (own + ranges > 0 || !labels.is_empty())) {
            let labels: Vec<String> = labels.iter().map(|label| quoted(label)).collect();
            let such =
                if labels.is_empty() { String::new() } else { format!(" (labels such as {})", labels.join(", ")) };
            let all = own + ranges + by_default;
            notes.push(format!(
                "{by_default} of {all} edges tell no speed{such} and have the capacity beside the file, {bps} bit/s"
            ));
        }
        if *ranges > 0 {
            let end = if beside.range == Some(End::Low) { "low" } else { "high" };
            notes.push(format!("{ranges} edges tell a range of speeds and have its {end} end"));
        }
        if *otherwise > 0 {
            notes.push(format!(
                "{otherwise} edges have labels that tell another speed than their capacity, which counts"
            ));
        }
        if *no_raw > 0 {
            notes.push(format!(
                "{no_raw} edges have a LinkSpeedRaw that is no speed, such as 0: their other labels or the capacity beside the file \
                 count; give a link that has failed the capacity 0"
            ));
        }
        if *contradictions > 0 {
            notes.push(format!(
                "{contradictions} edges have a LinkSpeedRaw or LinkSpeed that contradicts their LinkLabel: the number counts, or the \
                 range of the label"
            ));
        }
        if !self.unread_of_nodes.is_empty() {
            let names: Vec<String> = self.unread_of_nodes.iter().map(|name| quoted(name)).collect();
            let names = names.join(", ");
            notes.push(format!(
                "attributes of nodes that are not read: {names}; kind is \"host\" or \"switch\", and capacity, delay and buffer are \
                 those of edges"
            ));
        }
        if !self.unread.is_empty() {
            let names: Vec<String> = self.unread.iter().take(8).map(|name| quoted(name)).collect();
            let more = if self.unread.len() > names.len() { ", ..." } else { "" };
            notes.push(format!("attributes of edges that are not read: {}{more}", names.join(", ")));
        }
        notes
    }

    fn add(
        &mut self,
        edge: Edge,
        network: &mut Network,
        seen: &mut HashSet<(NodeId, NodeId)>,
    ) -> Result<(), InputError> {
        let Edge { from, to, directed, capacity_bps, delay_ns, buffer_bytes, id } = edge;
        let again = !seen.insert((from, to)) || !(directed || seen.insert((to, from)));
        if self.simple && again && from != to {
            let name = |node: NodeId| &self.nodes[node].0;
            let what = format!("a second edge connects \"{}\" and \"{}\"", name(from), name(to));
            return Err(InputError::new("", what, "say \"multigraph\": true if parallel links are meant"));
        }
        if from == to || capacity_bps == 0.0 {
            let id = id.unwrap_or_default();
            if from != to && (network.is_down(&id) || network.find_link(&id).is_some()) {
                return Err(second_link(&id));
            }
            let link = Link { id, from: Some(from), to: Some(to), capacity_bps, delay_ns, buffer_bytes };
            network.leave_out(directed, link);
        } else if directed {
            let id = id.unwrap_or_else(|| network.free_id(from, to));
            if network.is_down(&id) {
                return Err(second_link(&id));
            }
            network.add(Link { id, from: Some(from), to: Some(to), capacity_bps, delay_ns, buffer_bytes })?;
        } else {
            network.connect(from, to, capacity_bps, delay_ns, buffer_bytes)?;
        }
        Ok(())
    }
}

/// Infers the kinds that are not given: nodes with one neighbour are hosts, the others switches. If that leaves no
/// host, every node counts as a host.
pub(crate) fn kinds(given: &IdVec<NodeId, Option<NodeKind>>, ends: &[(NodeId, NodeId)]) -> Vec<NodeKind> {
    let near_one = near_one(given.len(), ends);
    let guess = |n: NodeId| given[n].unwrap_or(if near_one[n] { NodeKind::Host } else { NodeKind::Switch });
    let kinds: Vec<_> = given.ids().map(guess).collect();
    if kinds.contains(&NodeKind::Host) {
        return kinds;
    }
    given.iter().map(|kind| kind.unwrap_or(NodeKind::Host)).collect()
}

/// Whether each node has exactly one neighbour.
fn near_one(nodes: usize, ends: &[(NodeId, NodeId)]) -> IdVec<NodeId, bool> {
    let mut near = IdVec::<NodeId, _>::filled(BTreeSet::new(), nodes);
    for &(a, b) in ends {
        // A node with two distinct neighbours is no host; further neighbours do not matter.
        if near[a].len() < 2 {
            near[a].insert(b);
        }
        if near[b].len() < 2 {
            near[b].insert(a);
        }
    }
    near.iter().map(|near| near.len() == 1).collect()
}

fn second_link(id: &str) -> InputError {
    InputError::new("id", format!("a second link has the id {}", quoted(id)), "give every link an id of its own")
}

/// Edge attributes that are read.
const EDGE_KEYS: [&str; 3] = ["capacity", "delay", "buffer"];

/// Other common names of the attributes in [`EDGE_KEYS`].
const OTHER_NAMES: [(&str, &[&str]); 3] = [
    (
        "capacity",
        &["bw", "bandwidth", "rate", "cap", "speed", "linkspeed", "datarate", "linkcapacity", "linkbandwidth"],
    ),
    ("delay", &["latency", "lat", "propdelay", "propagationdelay", "linkdelay", "linklatency"]),
    ("buffer", &["buf", "buffersize", "queuesize", "qsize", "queue", "queuelimit"]),
];

/// Units that may follow an attribute's name, as in `delay_ms`.
const UNITS: [&str; 16] =
    ["bps", "kbps", "mbps", "gbps", "tbps", "gbs", "mbs", "ns", "us", "ms", "s", "bytes", "b", "kb", "mb", "packets"];

/// The known attribute that `name` resembles, with or without a unit suffix.
fn meant(name: &str) -> Option<&'static str> {
    let low = name.to_lowercase().replace(['-', ' '], "_");
    let plain = low.rsplit_once('_').filter(|(_, unit)| UNITS.contains(unit)).map_or(low.as_str(), |(name, _)| name);
    let plain = plain.replace('_', "");
    let known = OTHER_NAMES.iter().find(|(own, others)| others.contains(&plain.as_str()) || *own == plain);
    known.map(|(own, _)| *own)
}

/// Other names of the attribute `kind`, which distinguishes hosts and switches.
const NAMES_OF_KIND: [&str; 20] = [
    "type",
    "role",
    "nodetype",
    "nodekind",
    "noderole",
    "nodeclass",
    "class",
    "kinds",
    "ishost",
    "isswitch",
    "isserver",
    "host",
    "switch",
    "server",
    "tier",
    "layer",
    "level",
    "hosts",
    "numhosts",
    "nhosts",
];

/// Whether `name` is another name of the node attribute `kind`.
fn may_be_kind(name: &str) -> bool {
    NAMES_OF_KIND.contains(&name.to_lowercase().replace(['_', '-', ' '], "").as_str())
}

/// An error if `name` is a likely misspelling of a known attribute.
fn refuse_slip(name: &str) -> Result<(), InputError> {
    let low = name.to_lowercase();
    let near = |known: &&str| name != *known && low.len() < 40 && strsim::osa_distance(&low, known) <= 1;
    match EDGE_KEYS.iter().find(|known| near(known)) {
        Some(known) => Err(slip(name, known)),
        None => Ok(()),
    }
}

fn slip(name: &str, known: &str) -> InputError {
    let hint = format!("did you mean \"{known}\"? rename the attribute, or remove it");
    InputError::new(name, format!("unknown attribute {}", quoted(name)), hint)
}

/// An error if `name` is another name of a known attribute that the edge lacks.
fn refuse_other_name(name: &str, has: impl Fn(&str) -> bool) -> Result<(), InputError> {
    refuse_slip(name)?;
    match meant(name) {
        Some(own) if name != own && !has(own) => Err(slip(name, own)),
        _ => Ok(()),
    }
}

/// Error of an edge without capacity.
fn no_capacity() -> InputError {
    let hint = "give every edge one, such as \"10Gbps\", or one for all beside the file: capacity = \"10Gbps\"";
    InputError::new("capacity", "the edge has no capacity", hint)
}
