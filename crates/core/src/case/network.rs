//! Reading of a network in a case or spec, in each of its forms, and of its routing.

use crate::document::{Format, check_keys, json, list, parse, table, text};
use crate::formats::{self, Defaults, FILE_KEYS, kinds, node_link, refuse_beside, refuse_kind};
use crate::keys::{self, Key, ValueType};
use crate::quantity::{capacity_from_json, ns_from_json, positive_bytes_from_json, quoted, rate_bps_from_json, shown};
use crate::route::{Hash, Metric, Routing, SubflowPaths};
use crate::section::Section;
use crate::{IdVec, InputError, InputErrors, Link, Network, NodeId, generate};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Callback that returns the text of the file at a path. This crate does no I/O itself.
pub type ReadFile<'a> = dyn FnMut(&str) -> Result<String, InputError> + 'a;

/// Keys of `routing` that cases and specs share.
pub const ROUTING: [Key; 4] = [
    Key::new("seed", ValueType::Whole(0, u64::MAX), "0", "seed of the choice among equal paths"),
    Key::open("metric", ValueType::Word(&["hops", "delay"]), "the network's own", "length of a path"),
    Key::new("hash", ValueType::Word(&["flow", "pair"]), "flow", "hash key that selects among shortest paths"),
    Key::new(
        "paths",
        ValueType::Word(&["equal", "shortest", "disjoint"]),
        "equal",
        "paths of a flow's subflows or sprayed packets: equally long ones, the k shortest, or ones that share few links",
    ),
];

/// Key `symmetric` of `routing`.
pub const fn symmetric(default: &'static str) -> Key {
    Key::new("symmetric", ValueType::Flag, default, "whether ACKs take the reverse links of the data's path")
}

/// Keys of a case's `routing`.
pub(super) const OF_CASE: &[Key] = &[ROUTING[0], symmetric("false"), ROUTING[1], ROUTING[2], ROUTING[3]];

/// The routing of a case. `metric` is the default metric.
pub fn routing_from_value(value: Option<&Value>, metric: Metric) -> Result<Routing, InputError> {
    let Some(value) = value else { return Ok(Routing { metric, ..Routing::default() }) };
    let mut section = Section::of(value, OF_CASE)?;
    let routing = routing(&mut section, metric);
    section.end(Ok(routing))
}

/// Reads the keys `seed`, `symmetric`, `metric` and `hash`.
pub fn routing(section: &mut Section, metric: Metric) -> Routing {
    Routing {
        seed: section.take("seed"),
        symmetric: section.take("symmetric"),
        metric: match section.given::<String>("metric").as_deref() {
            Some("hops") => Metric::Hops,
            Some("delay") => Metric::Delay,
            _ => metric,
        },
        hash: match section.take::<String>("hash").as_str() {
            "pair" => Hash::Pair,
            _ => Hash::Flow,
        },
        paths: match section.take::<String>("paths").as_str() {
            "shortest" => SubflowPaths::Shortest,
            "disjoint" => SubflowPaths::Disjoint,
            _ => SubflowPaths::Equal,
        },
    }
}

/// The network that `value` describes, and its default routing metric. Forms: a list of links, `{"links": [...]}`, a
/// generator by its `kind`, a node-link graph, or `{"file": PATH}`.
pub fn network_from_value(value: &Value, read_file: &mut ReadFile) -> Result<(Network, Metric), InputError> {
    let Some(file) = value.get("file") else { return with_defaults(value, &Defaults::default()) };
    let map = table(value, "the network", "{\"file\": PATH}")?;
    check_keys(map, &FILE_KEYS)?;
    let defaults = Defaults::read(map)?;
    let path = text(file, "the network's file").map_err(|e| e.below("file"))?;
    let contents = read_file(path).map_err(|e| e.below("file"))?;
    let read = text_with_defaults(&contents, path, &defaults);
    read.map_err(|e| if e.place.starts_with("hosts") { e } else { e.in_file(path) })
}

/// The network in a file: a format of [`formats::read`], or JSON or TOML of any form except another file.
pub fn network_from_text(contents: &str, path: &str) -> Result<(Network, Metric), InputError> {
    text_with_defaults(contents, path, &Defaults::default())
}

fn text_with_defaults(contents: &str, path: &str, defaults: &Defaults) -> Result<(Network, Metric), InputError> {
    if let Some(network) = formats::read(contents, path, defaults) {
        return network.map(|network| (network, Metric::Hops));
    }
    refuse_kind(path)?;
    let format = Format::of(path);
    let value = if format == Format::Json { json::parse(contents)? } else { parse(contents, format)? };
    if value.get("file").is_some() {
        return Err(InputError::new("file", "a network file names another file", "give the network itself"));
    }
    with_defaults(&value, defaults)
}

fn with_defaults(value: &Value, defaults: &Defaults) -> Result<(Network, Metric), InputError> {
    let by_hops = |network| (network, Metric::Hops);
    let map = match value {
        Value::Array(links) => {
            refuse_beside(defaults, &[], LISTED)?;
            return network_from_links(links).map(by_hops);
        }
        Value::Object(map) => map,
        other => return Err(no_network(&format!("the network is {}", shown(other)))),
    };
    if map.contains_key("kind") {
        refuse_beside(defaults, &[], "a generator has keys of its own")?;
        generate::network(value)
    } else if map.contains_key("nodes") || map.contains_key("edges") {
        node_link::network_with(value, &defaults.or(Defaults::read(map)?)).map(by_hops)
    } else if let Some(links) = map.get("links") {
        refuse_beside(defaults, &[], LISTED)?;
        check_keys(map, &["links"])?;
        let links = list(links, "the list of links", "\"links\": [...]").map_err(|e| e.below("links"))?;
        network_from_links(links).map_err(|e| e.below("links")).map(by_hops)
    } else {
        match map.keys().next() {
            None => Err(no_network("the network is empty")),
            Some(_) => check_keys(map, &["links", "kind", "file", "nodes", "edges"])
                .and(Err(no_network("the network is neither of its kinds"))),
        }
    }
}

const LISTED: &str = "each link of a list says for itself";

fn no_network(what: &str) -> InputError {
    InputError::new(
        "",
        what,
        "give a list of links, {\"links\": [...]}, a generator {\"kind\": ...} or {\"file\": PATH}",
    )
}

/// Keys of a link.
pub(super) const LINK: [Key; 6] = [
    Key::open("id", ValueType::Text, "FROM->TO", "name of the link; required without `from` and `to`"),
    Key::required("capacity", ValueType::RateOrZero, "its capacity; 0 for a failed link"),
    Key::open("from", ValueType::Text, "none", "node at which the link begins; required where flows name their ends"),
    Key::open("to", ValueType::Text, "none", "node at which the link ends"),
    Key::new("delay", ValueType::Time, "0", "propagation delay"),
    Key::open("buffer", ValueType::Size, "the simulator's", "room in the queue before the link"),
];

/// Reads a list of directed links. Places of errors are relative to the list.
fn network_from_links(links: &[Value]) -> Result<Network, InputError> {
    let mut names = Names::default();
    let mut read = Vec::with_capacity(links.len());
    let mut faults = InputErrors::default();
    for (i, link) in links.iter().enumerate() {
        read.extend(faults.keep(read_link(link, &mut names).map_err(|e| e.below(&format!("[{i}]")))));
        if faults.is_full() {
            break;
        }
    }
    faults.done()?;
    if !read.is_empty() && read.iter().all(|(_, link)| link.capacity_bps == 0.0) {
        return Err(InputError::new(
            "[0].capacity",
            "every link has the capacity 0",
            "give a link a rate such as \"10Gbps\"",
        ));
    }
    let ends: Vec<_> = read.iter().filter_map(|(_, link)| Some((link.from?, link.to?))).collect();
    let kinds = kinds(&IdVec::filled(None, names.list.len()), &ends);
    let mut network = Network::new();
    for (name, kind) in names.list.iter().zip(kinds) {
        network.node(name, kind);
    }
    for (i, (id, link)) in read.into_iter().enumerate() {
        let id = match (id, link.from, link.to) {
            (None, Some(from), Some(to)) => network.free_id(from, to),
            (id, ..) => id.unwrap_or_default(),
        };
        if network.is_down(&id) || (link.capacity_bps == 0.0 && network.find_link(&id).is_some()) {
            let what = format!("a second link has the id {}", quoted(&id));
            return Err(InputError::new(format!("[{i}].id"), what, "give every link an id of its own"));
        }
        if link.capacity_bps == 0.0 {
            network.leave_out_link(Link { id, ..link });
        } else {
            network.add(Link { id, ..link }).map_err(|e| e.below(&format!("[{i}]")))?;
        }
    }
    Ok(network)
}

/// The nodes that links name, in the order of their first use.
#[derive(Default)]
struct Names {
    list: IdVec<NodeId, String>,
    by_name: HashMap<String, NodeId>,
}

impl Names {
    fn node(&mut self, map: &Map<String, Value>, key: &str) -> Result<Option<NodeId>, InputError> {
        let Some(value) = map.get(key) else { return Ok(None) };
        let name = text(value, "a node's name").and_then(not_empty).map_err(|e| e.below(key))?;
        if let Some(&id) = self.by_name.get(name) {
            return Ok(Some(id));
        }
        let id = self.list.push(name.to_string());
        self.by_name.insert(name.to_string(), id);
        Ok(Some(id))
    }
}

fn not_empty(name: &str) -> Result<&str, InputError> {
    if name.is_empty() { Err(InputError::new("", "the name is empty", "give a name")) } else { Ok(name) }
}

/// Reads a link and its id. The id is optional if the link names both ends.
fn read_link(value: &Value, names: &mut Names) -> Result<(Option<String>, Link), InputError> {
    let map = table(value, "a link", "{\"id\": \"l1\", \"capacity\": \"10Gbps\"}")?;
    let mut faults = InputErrors::default();
    faults.keep(check_keys(map, &keys::names(&LINK)));
    let id = map.get("id").map(|id| text(id, "a link's id").and_then(not_empty).map(str::to_string)).transpose();
    let id = faults.keep(id.map_err(|e| e.below("id")));
    let ends = names.node(map, "from").and_then(|from| Ok((from, names.node(map, "to")?)));
    let ends = faults.keep(ends.and_then(|ends| check_ends(ends, map.contains_key("id")).map(|()| ends)));
    let capacity = map
        .get("capacity")
        .ok_or_else(|| InputError::new("capacity", "the link has no capacity", "give one, such as \"10Gbps\""))
        // A failed link has capacity 0.
        .and_then(|v| match rate_bps_from_json(v) {
            Ok(0.0) => Ok(0.0),
            _ => capacity_from_json(v).map_err(|e| e.below("capacity")),
        });
    let capacity = faults.keep(capacity);
    let delay = faults.keep(map.get("delay").map_or(Ok(0), ns_from_json).map_err(|e| e.below("delay")));
    let buffer = map.get("buffer").map(positive_bytes_from_json).transpose();
    let buffer = faults.keep(buffer.map_err(|e| e.below("buffer")));
    let made = || {
        let ((from, to), capacity_bps, delay_ns, buffer_bytes) = (ends?, capacity?, delay?, buffer?);
        Some((id?, Link { id: String::new(), from, to, capacity_bps, delay_ns, buffer_bytes }))
    };
    let made = made();
    faults.or(made)
}

/// An error if only one end is given, or neither end and no id.
fn check_ends(ends: (Option<NodeId>, Option<NodeId>), has_id: bool) -> Result<(), InputError> {
    match ends {
        (Some(from), Some(to)) if from == to => {
            Err(InputError::new("to", "the link leads from a node to itself", "connect two different nodes"))
        }
        (Some(_), None) => Err(InputError::new("to", "the link has \"from\" but no \"to\"", "give both or neither")),
        (None, Some(_)) => Err(InputError::new("from", "the link has \"to\" but no \"from\"", "give both or neither")),
        (None, None) if !has_id => Err(InputError::new("id", "the link has no id", "give it one, such as \"l1\"")),
        _ => Ok(()),
    }
}
