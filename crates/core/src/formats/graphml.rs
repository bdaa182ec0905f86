//! GraphML, as networkx and most graph editors write it.

use super::node_link::{kind_of, refuse_of_graph};
use super::{Defaults, EDGE_KEYS, Edge, Graph, refuse_other_name, refuse_slip, zoo};
use crate::document::{line_and_column, shortened};
use crate::quantity::{ns_from_json, positive_bytes_from_json, quoted};
use crate::{InputError, Network, Ns};
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Largest nesting depth of elements; GraphML needs five.
const DEEPEST: usize = 64;
/// Largest number of attributes of an element; GraphML needs six.
const MOST_ATTRIBUTES: usize = 64;

/// Parses a network.
pub fn network(text: &str) -> Result<Network, InputError> {
    network_with(text, &Defaults::default())
}

/// Like [`network`], with defaults for values that the file lacks.
pub fn network_with(text: &str, beside: &Defaults) -> Result<Network, InputError> {
    let mut reader = Reader::from_str(text);
    let mut state = ParserState::default();
    loop {
        let begun = reader.buffer_position();
        let event = reader.read_event().map_err(|e| {
            let place = line_and_column(text, reader.error_position() as usize);
            InputError::new(place, shortened(&e.to_string()), "write the file as XML has it")
        })?;
        let at = |fault: InputError| match fault.place.as_str() {
            "" => InputError { place: line_and_column(text, begun as usize), ..fault },
            _ => fault,
        };
        match event {
            Event::Start(element) => state.open(&element).map_err(at)?,
            Event::Empty(element) => state.open(&element).and_then(|()| state.close()).map_err(at)?,
            Event::End(_) => state.close().map_err(at)?,
            Event::Text(part) => state.text.push_str(&part.xml10_content()),
            Event::CData(part) => state.text.push_str(&part.xml10_content()),
            Event::GeneralRef(part) => state.text.push_str(&resolve(&part).map_err(at)?),
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
    state.finish(beside)
}

/// Resolves the five predefined entities of XML and character references; entities that a file defines are errors.
pub(super) fn resolve(part: &BytesRef) -> Result<String, InputError> {
    let name = part.xml10_content();
    let character = part.resolve_char_ref().ok().flatten().map(String::from);
    character
        .or_else(|| quick_xml::escape::resolve_predefined_entity(&name).map(str::to_string))
        .ok_or_else(|| InputError::new("", format!("unknown entity {}", quoted(&name)), "write the character itself"))
}

/// A `<key>` declaration.
#[derive(Debug, Default)]
struct Declared {
    name: String,
    domain: String,
    default: Option<String>,
}

/// The element that is being read.
#[derive(Debug)]
enum At {
    Key(String),
    Default,
    Graph,
    Node,
    Edge,
    Data(String),
    Other,
}

#[derive(Debug, Default)]
struct RawEdge {
    source: String,
    target: String,
    directed: Option<bool>,
    /// Values in the order of [`EDGE_KEYS`].
    values: [Option<String>; 3],
    id: Option<String>,
    /// Names of the edge's other attributes.
    others: Vec<String>,
    /// Topology Zoo attributes of the edge, in the order of [`zoo::KEYS`].
    zoo: [Option<String>; 4],
}

impl RawEdge {
    /// Sets an attribute, if the edge does not have it.
    fn set(&mut self, name: &str, value: String) {
        let slot = if let Some(k) = EDGE_KEYS.iter().position(|known| *known == name) {
            &mut self.values[k]
        } else if let Some(k) = zoo::KEYS.iter().position(|known| *known == name) {
            &mut self.zoo[k]
        } else if name == "id" {
            &mut self.id
        } else {
            if !self.others.iter().any(|other| other == name) {
                self.others.push(name.to_string());
            }
            return;
        };
        slot.get_or_insert(value);
    }
}

#[derive(Debug, Default)]
struct RawNode {
    id: String,
    kind: Option<String>,
    /// The node's other attributes, with their values.
    others: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct ParserState {
    open: Vec<At>,
    text: String,
    declared: BTreeMap<String, Declared>,
    directed: Option<bool>,
    nodes: Vec<RawNode>,
    edges: Vec<RawEdge>,
    /// Keys of the data of the node or edge that is being read.
    given: Vec<String>,
}

impl ParserState {
    fn open(&mut self, element: &BytesStart) -> Result<(), InputError> {
        if self.open.len() >= DEEPEST {
            return Err(InputError::new(
                "",
                "the document is nested too deeply",
                format!("nest at most {DEEPEST} elements"),
            ));
        }
        let get = attributes(element)?;
        let name = element.local_name();
        let at = match (name.as_ref(), self.open.last()) {
            ("graphml", None) => At::Other,
            (root, None) => {
                let hint = "give a GraphML file, or node-link JSON";
                return Err(InputError::new("", format!("the outermost element is {}", quoted(root)), hint));
            }
            ("key", _) => self.declare(&get)?,
            ("default", Some(At::Key(_))) => At::Default,
            ("graph", _) => self.graph(&get)?,
            ("node", Some(At::Graph)) => {
                self.given.clear();
                self.nodes.push(RawNode { id: required(&get, "node", "id")?, ..RawNode::default() });
                At::Node
            }
            ("edge", Some(At::Graph)) => self.edge(&get)?,
            ("hyperedge", _) => {
                return Err(InputError::new("", "the graph has a hyperedge", "connect nodes by edges only"));
            }
            ("data", Some(At::Graph | At::Node | At::Edge)) => At::Data(required(&get, "data", "key")?),
            _ => At::Other,
        };
        self.open.push(at);
        self.text.clear();
        Ok(())
    }

    fn declare(&mut self, get: &HashMap<String, String>) -> Result<At, InputError> {
        let id = required(get, "key", "id")?;
        let word = |name: &str| get.get(name).cloned().unwrap_or_default();
        let declared = Declared { name: word("attr.name"), domain: word("for"), default: None };
        if matches!(declared.domain.as_str(), "node" | "all")
            && declared.name != "kind"
            && declared.name.to_lowercase() == "kind"
        {
            return Err(InputError { place: String::new(), ..super::slip(&declared.name, "kind") });
        }
        if matches!(declared.domain.as_str(), "edge" | "all") {
            refuse_slip(&declared.name).map_err(|e| InputError { place: String::new(), ..e })?;
        }
        self.declared.insert(id.clone(), declared);
        Ok(At::Key(id))
    }

    fn graph(&mut self, get: &HashMap<String, String>) -> Result<At, InputError> {
        if self.directed.is_some() {
            return Err(InputError::new(
                "",
                "the file has a second graph",
                "give one graph, without graphs inside its nodes",
            ));
        }
        self.directed = Some(direction(get.get("edgedefault").map(String::as_str), "undirected", "directed")?);
        Ok(At::Graph)
    }

    fn edge(&mut self, get: &HashMap<String, String>) -> Result<At, InputError> {
        let directed = match get.get("directed") {
            Some(word) => Some(direction(Some(word), "false", "true")?),
            None => None,
        };
        self.given.clear();
        let (source, target) = (required(get, "edge", "source")?, required(get, "edge", "target")?);
        let mut edge = RawEdge { source, target, directed, ..RawEdge::default() };
        const OWN: &[&str] = &["source", "target", "directed", "id", "sourceport", "targetport"];
        for name in get.keys().filter(|name| !OWN.contains(&name.as_str())) {
            if EDGE_KEYS.contains(&name.as_str()) || zoo::KEYS.contains(&name.as_str()) {
                let what = format!("an <edge> has the attribute {}", quoted(name));
                return Err(InputError::new("", what, "declare it by a <key>, and give it as <data>"));
            }
            edge.set(name, String::new());
        }
        self.edges.push(edge);
        Ok(At::Edge)
    }

    fn close(&mut self) -> Result<(), InputError> {
        let text = std::mem::take(&mut self.text).trim().to_string();
        match (self.open.pop(), self.open.last()) {
            (Some(At::Default), Some(At::Key(id))) => {
                if let Some(declared) = self.declared.get_mut(id) {
                    declared.default = Some(text);
                }
            }
            (Some(At::Data(key)), Some(owner)) => {
                let declared = self.declared.get(&key).ok_or_else(|| {
                    InputError::new(
                        "",
                        format!("the key {} is not declared", quoted(&key)),
                        "declare it by a <key> before the graph",
                    )
                })?;
                let other = match (owner, declared.domain.as_str()) {
                    (At::Node, "edge") => Some(("edges", "a node")),
                    (At::Edge, "node") => Some(("nodes", "an edge")),
                    _ => None,
                };
                if let Some((domain, owner)) = other {
                    let what = format!("the key {} is declared for {domain}, and {owner} has it", quoted(&key));
                    return Err(InputError::new("", what, "declare it for=\"all\", or by a key of its own"));
                }
                if matches!(owner, At::Node | At::Edge) {
                    // Editors declare keys without a name.
                    let name = if declared.name.is_empty() { &key } else { &declared.name };
                    if self.given.contains(name) {
                        let what = format!("the data {} is given twice", quoted(name));
                        return Err(InputError::new("", what, "give it once in each node and edge"));
                    }
                    self.given.push(name.clone());
                }
                match (owner, declared.name.as_str(), self.nodes.last_mut(), self.edges.last_mut()) {
                    (At::Graph, name, ..) => refuse_of_graph(name).map_err(|e| e.below("graph"))?,
                    (At::Node, "kind", Some(node), _) => node.kind = Some(text),
                    (At::Node, name, Some(node), _) => {
                        node.others.insert(name.to_string(), text);
                    }
                    (At::Edge, name, _, Some(edge)) => {
                        edge.set(name, text);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self, beside: &Defaults) -> Result<Network, InputError> {
        let directed = self
            .directed
            .ok_or_else(|| InputError::new("", "the file has no graph", "give a GraphML file with a <graph>"))?;
        if !self.open.is_empty() {
            return Err(InputError::new("", "the file ends inside an element", "close every element"));
        }
        let default = |name: &str, domain: &str| {
            let fits = |d: &&Declared| d.name == name && (d.domain == domain || d.domain == "all");
            self.declared.values().find(fits).and_then(|d| d.default.clone())
        };
        let kind_default = default("kind", "node");
        let of_nodes =
            self.declared.values().filter(|d| matches!(d.domain.as_str(), "node" | "all") && d.name != "kind");
        let node_defaults: BTreeMap<String, String> =
            of_nodes.filter_map(|d| Some((d.name.clone(), d.default.clone()?))).collect();
        let of_edges = self.declared.values().filter(|d| matches!(d.domain.as_str(), "edge" | "all"));
        let edge_defaults: Vec<(String, String)> =
            of_edges.filter_map(|d| Some((d.name.clone(), d.default.clone()?))).collect();
        let mut graph = Graph::default();
        for (i, mut raw) in self.nodes.into_iter().enumerate() {
            raw.kind = raw.kind.or_else(|| kind_default.clone());
            for (name, value) in &node_defaults {
                raw.others.entry(name.clone()).or_insert_with(|| value.clone());
            }
            read_node(raw, &mut graph).map_err(|e| e.below(&format!("nodes[{i}]")))?;
        }
        for (i, mut raw) in self.edges.into_iter().enumerate() {
            edge_defaults.iter().for_each(|(name, value)| raw.set(name, value.clone()));
            let edge = read_edge(raw, directed, &mut graph, beside);
            graph.edges.push(edge.map_err(|e| e.below(&format!("edges[{i}]")))?);
        }
        graph.build("edges", beside)
    }
}

fn read_node(raw: RawNode, graph: &mut Graph) -> Result<(), InputError> {
    let kind = match (&raw.kind, raw.others.get("type")) {
        (Some(word), _) => Some(kind_of(word)?),
        // Other tools use `type` for other things, so that an unknown word is no error.
        (None, other) => other.and_then(|word| kind_of(word).ok()),
    };
    raw.others.iter().for_each(|(name, _)| graph.of_edges(name));
    if kind.is_none() {
        for (name, value) in &raw.others {
            let word = value.to_lowercase();
            graph.other_of_node(name, matches!(word.as_str(), "true" | "false") || kind_of(&word).is_ok())?;
        }
    }
    graph.node(raw.id, kind)
}

fn read_edge(raw: RawEdge, directed: bool, graph: &mut Graph, beside: &Defaults) -> Result<Edge, InputError> {
    let values = raw.values;
    let is_labelled = raw.zoo.iter().any(Option::is_some);
    let has = |own: &str| {
        let known = EDGE_KEYS.iter().zip(&values).any(|(key, value)| *key == own && value.is_some());
        known || (own == "capacity" && is_labelled)
    };
    for name in raw.others {
        refuse_other_name(&name, has)?;
        graph.unread.insert(name);
    }
    let [capacity, delay, buffer] = values.map(|text| text.map(Value::String));
    Ok(Edge {
        from: graph.find(&raw.source).map_err(|e| e.below("source"))?,
        to: graph.find(&raw.target).map_err(|e| e.below("target"))?,
        directed: raw.directed.unwrap_or(directed),
        id: raw.id.filter(|id| !id.is_empty()),
        capacity_bps: graph.capacity(capacity.as_ref(), &raw.zoo, beside)?,
        delay_ns: delay
            .as_ref()
            .map_or(Ok::<Ns, InputError>(beside.delay_ns.unwrap_or(0)), ns_from_json)
            .map_err(|e| e.below("delay"))?,
        buffer_bytes: buffer.as_ref().map(positive_bytes_from_json).transpose().map_err(|e| e.below("buffer"))?,
    })
}

fn direction(word: Option<&str>, no: &str, yes: &str) -> Result<bool, InputError> {
    match word {
        Some(word) if word == yes => Ok(true),
        Some(word) if word == no => Ok(false),
        None => Err(InputError::new("", "the graph has no edgedefault", format!("give \"{no}\" or \"{yes}\""))),
        Some(word) => Err(InputError::new(
            "",
            format!("{} is not a direction", quoted(word)),
            format!("give \"{no}\" or \"{yes}\""),
        )),
    }
}

fn required(get: &HashMap<String, String>, element: &str, name: &str) -> Result<String, InputError> {
    get.get(name)
        .cloned()
        .ok_or_else(|| InputError::new("", format!("a <{element}> has no attribute \"{name}\""), "give it"))
}

fn attributes(element: &BytesStart) -> Result<HashMap<String, String>, InputError> {
    let refuse = |what: String| InputError::new("", what, "write the file as XML has it");
    let mut get = HashMap::new();
    for (i, attribute) in element.attributes().with_checks(false).enumerate() {
        if i == MOST_ATTRIBUTES {
            return Err(refuse(format!("an element has more than {MOST_ATTRIBUTES} attributes")));
        }
        let attribute = attribute.map_err(|e| refuse(shortened(&format!("an attribute is malformed: {e}"))))?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0);
        let value = value.map_err(|e| refuse(shortened(&format!("an attribute is malformed: {e}"))))?;
        let name = attribute.key.as_ref().to_string();
        if get.contains_key(&name) {
            return Err(refuse(format!("the attribute {} is given twice", quoted(&name))));
        }
        get.insert(name, value.into_owned());
    }
    Ok(get)
}
