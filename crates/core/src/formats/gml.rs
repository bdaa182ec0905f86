//! GML (Himsolt, 1996), as networkx and the Topology Zoo write it: keys with numbers, strings or lists in brackets.
//!
//! A node's `id` is its name, since several nodes may have one `label`.

use super::{Defaults, node_link};
use crate::quantity::quoted;
use crate::{InputError, Network};
use serde_json::{Map, Number, Value, json};

/// Largest nesting depth of lists; networks need two.
const DEEPEST: usize = 64;

/// Reads a network, with the keys beside the file.
pub fn network_with(text: &str, beside: &Defaults) -> Result<Network, InputError> {
    let mut parser = Parser { text, at: 0 };
    let mut graph = None;
    for entry in parser.list(0)? {
        let (Item::List(list), "graph") = (entry.item, entry.key) else { continue };
        if graph.replace(list).is_some() {
            return Err(parser.fault(entry.at, "the file has a second graph", "give one graph"));
        }
    }
    let hint = "give a file with graph [ node [ id 0 ] ... edge [ source 0 target 1 ] ... ]";
    let graph = graph.ok_or_else(|| InputError::new("", "the file has no graph", hint))?;
    let mut whole = json!({"nodes": [], "edges": [], "graph": {}});
    for Entry { key, at, item } in graph {
        match (key, item) {
            ("node", Item::List(list)) => push(&mut whole["nodes"], parser.table(list)?),
            ("edge", Item::List(list)) => push(&mut whole["edges"], parser.table(list)?),
            ("node" | "edge", _) => {
                return Err(parser.fault(at, &format!("{key} is no list"), "write what belongs to it in brackets"));
            }
            ("directed" | "multigraph", Item::One(value)) => whole[key] = value.as_i64().map_or(value, flag),
            (key, Item::One(value)) => whole["graph"][key] = value,
            (_, Item::List(_)) => {}
        }
    }
    node_link::network_with(&whole, beside)
}

fn push(list: &mut Value, table: Map<String, Value>) {
    if let Value::Array(list) = list {
        list.push(Value::Object(table));
    }
}

/// GML has 0 and 1 for false and true.
fn flag(number: i64) -> Value {
    match number {
        0 | 1 => Value::Bool(number == 1),
        other => other.into(),
    }
}

struct Entry<'a> {
    key: &'a str,
    /// Byte at which the key starts.
    at: usize,
    item: Item<'a>,
}

enum Item<'a> {
    One(Value),
    List(Vec<Entry<'a>>),
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn fault(&self, at: usize, what: &str, hint: &str) -> InputError {
        let line = self.text[..at].matches('\n').count() + 1;
        InputError::new(format!("line {line}"), what, hint)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Skips space, and lines that begin with `#`.
    fn skip(&mut self) {
        loop {
            self.at += self.rest().len()
                - self.rest().trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}').len();
            if !self.rest().starts_with('#') {
                return;
            }
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    /// The text up to the first character that does not belong to it.
    fn word(&mut self, belongs: fn(char) -> bool) -> &'a str {
        let word = self.rest();
        let word = &word[..word.find(|c: char| !belongs(c)).unwrap_or(word.len())];
        self.at += word.len();
        word
    }

    /// The entries of a list, up to its bracket, or to the end of the file at depth 0.
    fn list(&mut self, depth: usize) -> Result<Vec<Entry<'a>>, InputError> {
        let mut entries = Vec::new();
        loop {
            self.skip();
            let at = self.at;
            match self.rest().chars().next() {
                None if depth == 0 => return Ok(entries),
                None => return Err(self.fault(at, "the file ends inside a list", "close every list by ]")),
                Some(']') if depth > 0 => {
                    self.at += 1;
                    return Ok(entries);
                }
                Some(_) => {}
            }
            let key = self.word(|c| c.is_ascii_alphanumeric() || c == '_');
            if !key.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return Err(self.fault(at, "no key begins here", "write a key, and its value behind it"));
            }
            self.skip();
            entries.push(Entry { key, at, item: self.item(depth)? });
        }
    }

    fn item(&mut self, depth: usize) -> Result<Item<'a>, InputError> {
        let at = self.at;
        match self.rest().chars().next() {
            Some('[') if depth < DEEPEST => {
                self.at += 1;
                self.list(depth + 1).map(Item::List)
            }
            Some('[') => {
                Err(self.fault(at, "the lists are nested too deeply", &format!("nest at most {DEEPEST} lists")))
            }
            Some('"') => {
                self.at += 1;
                let raw = self.word(|c| c != '"');
                if self.rest().is_empty() {
                    return Err(self.fault(
                        at,
                        "the file ends inside a string",
                        "close the string by a quotation mark",
                    ));
                }
                self.at += 1;
                let plain = quick_xml::escape::unescape(raw).map_or(raw.to_string(), |plain| plain.into_owned());
                Ok(Item::One(plain.into()))
            }
            _ => {
                let word = self.word(|c| c.is_ascii_alphanumeric() || "+-._".contains(c));
                let whole = word.parse::<i64>().ok().map(Number::from);
                let number = whole.or_else(|| word.parse().ok().and_then(Number::from_f64));
                let value = number.map(|number| Item::One(Value::Number(number)));
                let shown = self
                    .rest()
                    .chars()
                    .next()
                    .map_or_else(|| word.to_string(), |c| if word.is_empty() { c.into() } else { word.into() });
                let what = format!("{} is no value", quoted(&shown));
                value.ok_or_else(|| {
                    self.fault(at, &what, "write a number, a string in quotation marks, or a list in brackets")
                })
            }
        }
    }

    /// A node or edge; lists in it, such as those of graphics, have no value.
    fn table(&self, list: Vec<Entry>) -> Result<Map<String, Value>, InputError> {
        let mut table = Map::new();
        for Entry { key, at, item } in list {
            let value = match item {
                Item::One(value) => value,
                Item::List(_) if table.contains_key(key) => continue,
                Item::List(_) => Value::Null,
            };
            if table.insert(key.to_string(), value).is_some_and(|before| !before.is_null()) {
                let what = format!("the key {} is given twice", quoted(key));
                return Err(self.fault(at, &what, "give it once in each node and edge"));
            }
        }
        Ok(table)
    }
}
