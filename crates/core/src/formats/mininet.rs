//! Topologies of Mininet's editor (MiniEdit, `.mn`) and of P4: `topology.json` of the P4 tutorials and `p4app.json` of
//! p4-utils. Rates are in Mbit/s and delays in milliseconds, unless they have units.

use super::drawn::Drawn;
use super::{Defaults, refuse_beside};
use crate::document::{json, list, table, text};
use crate::quantity::{quoted, shown};
use crate::{InputError, Network, NodeKind};
use serde_json::{Map, Value};

/// Whether a text is a topology of P4: JSON whose hosts and switches are tables.
pub(super) fn is_topology(contents: &str) -> bool {
    contents.contains("\"hosts\"")
        && contents.contains("\"links\"")
        && json::parse(contents).is_ok_and(|value| {
            let map = value.get("topology").unwrap_or(&value);
            map.get("hosts").is_some_and(Value::is_object) && map.get("links").is_some_and(Value::is_array)
        })
}

/// Parses a topology.
pub(super) fn network(contents: &str, beside: &Defaults) -> Result<Network, InputError> {
    refuse_beside(beside, &["range"], "the format has no ranges")?;
    let value = json::parse(contents)?;
    let whole = value.get("topology").unwrap_or(&value);
    let map = table(whole, "the topology", "{\"hosts\": ..., \"switches\": ..., \"links\": ...}")?;
    let mut drawn = Drawn::default();
    for (key, kind) in [("hosts", NodeKind::Host), ("switches", NodeKind::Switch)] {
        for (i, name) in names(map.get(key), key)?.into_iter().enumerate() {
            if !drawn.node(&name, Some(kind)) {
                let what = format!("a second node is called {}", quoted(&name));
                return Err(InputError::new(format!("{key}[{i}]"), what, "give every node a name of its own"));
            }
        }
    }
    let links = map.get("links").map_or(Ok(&[][..]), |links| list(links, "the list of links", "[[\"h1\", \"s1\"]]"));
    for (i, link) in links.map_err(|e| e.below("links"))?.iter().enumerate() {
        let (ends, attributes) = read(link, map, &drawn).map_err(|e| e.below(&format!("links[{i}]")))?;
        drawn.edge_of(&ends[0], &ends[1], attributes);
    }
    drawn.network(false, &Defaults { unit: None, ..beside.clone() })
}

/// Names of the hosts or switches: keys of a table, or `opts.hostname` of the items of a list.
fn names(value: Option<&Value>, key: &str) -> Result<Vec<String>, InputError> {
    match value {
        None => Ok(Vec::new()),
        Some(Value::Object(map)) => Ok(map.keys().cloned().collect()),
        Some(Value::Array(items)) => {
            let name = |(i, item): (usize, &Value)| {
                let name = item.get("opts").and_then(|opts| opts.get("hostname")).unwrap_or(item);
                text(name, "a node's name").map(str::to_string).map_err(|e| e.below(&format!("{key}[{i}]")))
            };
            items.iter().enumerate().map(name).collect()
        }
        Some(other) => {
            Err(InputError::new(key, format!("{} is neither a list nor a table", shown(other)), "name the nodes"))
        }
    }
}

/// Ends and attributes of a link: `{src, dest, opts}`, `[a, b, delay, bandwidth]` or `[a, b, {delay, bw}]`.
fn read(
    link: &Value,
    whole: &Map<String, Value>,
    drawn: &Drawn,
) -> Result<([String; 2], Map<String, Value>), InputError> {
    let wrong = || {
        let hint = "write [node, node], with a delay and a bandwidth or a table behind them, or {src, dest, opts}";
        InputError::new("", "is no link", hint)
    };
    let empty = Map::new();
    let mut given = Map::new();
    let (from, to) = match link {
        Value::Object(map) => {
            given = map.get("opts").and_then(Value::as_object).unwrap_or(&empty).clone();
            map.get("src").zip(map.get("dest")).ok_or_else(wrong)?
        }
        Value::Array(items) => match &items[..] {
            [from, to] => (from, to),
            [from, to, Value::Object(map)] => {
                given = map.clone();
                (from, to)
            }
            [from, to, delay] => {
                given.insert("delay".to_string(), delay.clone());
                (from, to)
            }
            [from, to, delay, bw] => {
                given.insert("delay".to_string(), delay.clone());
                given.insert("bw".to_string(), bw.clone());
                (from, to)
            }
            _ => return Err(wrong()),
        },
        _ => return Err(wrong()),
    };
    let end = |value: &Value| -> Result<String, InputError> {
        let name = text(value, "a node's name")?;
        // In the tutorials, "s1-p2" is port 2 of s1.
        let node = name.rsplit_once("-p").filter(|(_, port)| !drawn.has(name) && port.parse::<u32>().is_ok());
        let node = node.map_or(name, |(node, _)| node);
        match drawn.has(node) {
            true => Ok(node.to_string()),
            false => Err(InputError::new("", format!("there is no node {}", quoted(node)), "name a host or a switch")),
        }
    };
    let ends = [end(from)?, end(to)?];
    // p4-utils has values for all links in `default`, and had them as `default_bw` and the like.
    let general = whole.get("default").and_then(Value::as_object).unwrap_or(&empty).clone();
    let older = ["bw", "delay", "loss"].map(|own| (own.to_string(), whole.get(&format!("default_{own}")).cloned()));
    let older = older.into_iter().filter_map(|(own, value)| Some((own, value?)));
    for (own, value) in general.into_iter().filter(|(own, _)| own != "auto_arp_tables").chain(older) {
        given.entry(own).or_insert(value);
    }
    if given.get("loss").is_some_and(|loss| loss.as_f64() != Some(0.0) && !loss.is_null()) {
        let hint = "remove it here, and give the spec a fault of kind \"loss\" at this link";
        return Err(InputError::new("loss", "the link loses packets", hint));
    }
    given.remove("loss");
    for (own, ours, unit) in [("bw", "capacity", "Mbps"), ("delay", "delay", "ms")] {
        if let Some(value) = given.remove(own).filter(|value| !value.is_null() && value != "") {
            let plain = match &value {
                Value::String(text) => text.parse::<f64>().ok().map(|_| text.clone()),
                other => Some(other.to_string()),
            };
            given.insert(ours.to_string(), plain.map_or(value, |number| format!("{number}{unit}").into()));
        }
    }
    Ok((ends, given))
}
