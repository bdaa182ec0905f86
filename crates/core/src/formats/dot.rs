//! DOT, Graphviz' language: `graph` or `digraph`, with the attributes `capacity`, `delay` and `buffer` at edges and `kind`
//! at nodes, or for all that follow in `edge [...]` and `node [...]`.

use super::drawn::Drawn;
use super::{Defaults, at_line};
use crate::quantity::quoted;
use crate::{InputError, Network};
use serde_json::{Map, Number, Value};

/// Largest nesting depth of subgraphs.
const DEEPEST: usize = 64;
/// Largest number of edges that a file may describe: an edge between two subgraphs is one between any two of their nodes.
const MOST_EDGES: usize = 20_000_000;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token<'a> {
    /// An identifier, number or string, without its quotes.
    Word(&'a str),
    /// A string in quotation marks.
    Quoted(&'a str),
    Mark(&'a str),
}

/// Parses a network.
pub(super) fn network(text: &str, beside: &Defaults) -> Result<Network, InputError> {
    let mut parser =
        Parser { rest: tokens(text)?, at: 0, drawn: Drawn::default(), directed: false, strict: false, edges: 0 };
    parser.graph()?;
    let Parser { drawn, directed, .. } = parser;
    drawn.network(directed, beside)
}

fn tokens(text: &str) -> Result<Vec<(usize, Token<'_>)>, InputError> {
    let (mut tokens, mut line, mut rest) = (Vec::new(), 1, text.trim_start_matches('\u{feff}'));
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    while let Some(c) = rest.chars().next() {
        let len = if c.is_whitespace() {
            c.len_utf8()
        } else if rest.starts_with("//") || c == '#' {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").ok_or_else(|| at_line(line, "a comment does not end", "close it by */"))? + 2
        } else if c == '"' {
            let end = closing_quote(rest).ok_or_else(|| at_line(line, "a string does not end", "close it by \""))?;
            tokens.push((line, Token::Quoted(&rest[1..end])));
            end + 1
        } else if c == '<' {
            let end =
                closing_angle(rest).ok_or_else(|| at_line(line, "a label of HTML does not end", "close it by >"))?;
            tokens.push((line, Token::Quoted(&rest[1..end])));
            end + 1
        } else if rest.starts_with("->") || rest.starts_with("--") {
            tokens.push((line, Token::Mark(&rest[..2])));
            2
        } else if is_word(c) || c == '-' {
            let end = rest[c.len_utf8()..].find(|c| !is_word(c)).map_or(rest.len(), |end| end + c.len_utf8());
            tokens.push((line, Token::Word(&rest[..end])));
            end
        } else if "{}[];,=:+".contains(c) {
            tokens.push((line, Token::Mark(&rest[..1])));
            1
        } else {
            return Err(at_line(
                line,
                format!("{} does not belong here", quoted(&c.to_string())),
                "write the file as Graphviz reads it",
            ));
        };
        line += rest[..len].matches('\n').count();
        rest = &rest[len..];
    }
    Ok(tokens)
}

/// Place of the quotation mark that closes the string at the begin of `text`.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return Some(at),
            _ => escaped = c == '\\' && !escaped,
        }
    }
    None
}

/// Place of the angle bracket that closes the label of HTML at the begin of `text`.
fn closing_angle(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(at, c)| {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// Attributes that a subgraph has for its nodes and edges.
#[derive(Debug, Clone, Default)]
struct General {
    node: Map<String, Value>,
    edge: Map<String, Value>,
}

struct Parser<'a> {
    rest: Vec<(usize, Token<'a>)>,
    at: usize,
    drawn: Drawn,
    directed: bool,
    /// Whether a second edge between two nodes adds to the first.
    strict: bool,
    edges: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.rest.get(self.at).map(|(_, token)| *token)
    }

    fn fault(&self, what: impl Into<String>, hint: &str) -> InputError {
        let line = self.rest.get(self.at).or(self.rest.last()).map_or(1, |(line, _)| *line);
        at_line(line, what, hint)
    }

    fn took(&mut self, mark: &str) -> bool {
        let is_there = self.peek() == Some(Token::Mark(mark));
        self.at += usize::from(is_there);
        is_there
    }

    fn need(&mut self, mark: &str) -> Result<(), InputError> {
        match self.took(mark) {
            true => Ok(()),
            false => Err(self.fault(format!("{mark} is missing"), "write the file as Graphviz reads it")),
        }
    }

    fn name(&mut self) -> Result<String, InputError> {
        let plain = |text: &str| text.replace("\\\r\n", "").replace("\\\n", "").replace("\\\"", "\"");
        let mut name = match self.peek() {
            Some(Token::Word(word)) => word.to_string(),
            Some(Token::Quoted(text)) => plain(text),
            _ => return Err(self.fault("a name is missing", "write the file as Graphviz reads it")),
        };
        self.at += 1;
        // Strings are joined by +.
        while self.took("+") {
            let Some(Token::Quoted(text)) = self.peek() else {
                return Err(self.fault("a string is missing", "write a string in quotation marks behind +"));
            };
            name += &plain(text);
            self.at += 1;
        }
        Ok(name)
    }

    /// Whether the next token is this keyword, in any case; it is taken.
    fn keyword(&mut self, keyword: &str) -> bool {
        let is_there = matches!(self.peek(), Some(Token::Word(word)) if word.eq_ignore_ascii_case(keyword));
        self.at += usize::from(is_there);
        is_there
    }

    fn graph(&mut self) -> Result<(), InputError> {
        self.strict = self.keyword("strict");
        self.directed = self.keyword("digraph");
        if !self.directed && !self.keyword("graph") {
            return Err(self.fault("neither graph nor digraph begins here", "begin with graph { or digraph {"));
        }
        if self.peek() != Some(Token::Mark("{")) {
            self.name()?;
        }
        self.need("{")?;
        self.statements(&General::default(), 0)?;
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.fault("the file has a second graph", "give one graph")),
        }
    }

    /// The statements up to the closing brace; returns the nodes that they name.
    fn statements(&mut self, general: &General, depth: usize) -> Result<Vec<String>, InputError> {
        if depth == DEEPEST {
            return Err(self.fault("the subgraphs are nested too deeply", "nest fewer"));
        }
        let (mut general, mut members) = (general.clone(), Vec::new());
        while !self.took("}") {
            if self.took(";") || self.took(",") {
                continue;
            }
            let begin = self.at;
            let keyword = ["graph", "node", "edge"].into_iter().find(|keyword| self.keyword(keyword));
            if let Some(keyword) = keyword.filter(|_| self.peek() == Some(Token::Mark("["))) {
                let attributes = self.attributes()?;
                match keyword {
                    "node" => general.node.extend(attributes),
                    "edge" => general.edge.extend(attributes),
                    _ => {}
                }
                continue;
            }
            self.at = begin;
            members.extend(self.chain(&general, depth)?);
        }
        Ok(members)
    }

    /// A node, a subgraph, an edge or a chain of edges, or an attribute of the graph.
    fn chain(&mut self, general: &General, depth: usize) -> Result<Vec<String>, InputError> {
        let (mut ends, mut port) = (vec![self.end(general, depth)?], self.port()?);
        if ends[0].len() == 1 && self.took("=") {
            self.name()?;
            return Ok(Vec::new());
        }
        let (arrow, other) = if self.directed { ("->", "--") } else { ("--", "->") };
        if self.peek() == Some(Token::Mark(other)) {
            return Err(self.fault(
                format!("{other} is no edge here"),
                &format!("write {arrow}, or begin with the other kind of graph"),
            ));
        }
        while self.took(arrow) {
            ends.push(self.end(general, depth)?);
            port = self.port()?.or(port);
        }
        let given = if self.peek() == Some(Token::Mark("[")) { self.attributes()? } else { Map::new() };
        if let [only] = &ends[..] {
            for name in only {
                if self.drawn.node(name, None) {
                    self.drawn.describe(name, general.node.clone());
                }
                self.drawn.describe(name, given.clone());
            }
            return Ok(ends.remove(0));
        }
        for name in ends.iter().flatten() {
            if self.drawn.node(name, None) {
                self.drawn.describe(name, general.node.clone());
            }
        }
        let mut attributes = general.edge.clone();
        attributes.extend(port.map(|port| ("port".to_string(), port.into())));
        attributes.extend(given);
        for pair in ends.windows(2) {
            self.edges = self.edges.saturating_add(pair[0].len().saturating_mul(pair[1].len()));
            if self.edges > MOST_EDGES {
                return Err(self.fault("the graph has too many edges", &format!("give at most {MOST_EDGES}")));
            }
            for (from, to) in pair[0].iter().flat_map(|from| pair[1].iter().map(move |to| (from, to))) {
                if self.strict {
                    self.drawn.only_edge_of(from, to, self.directed, attributes.clone());
                } else {
                    self.drawn.edge_of(from, to, attributes.clone());
                }
            }
        }
        Ok(ends.into_iter().flatten().collect())
    }

    /// The nodes at an end of an edge: one, or those of a subgraph.
    fn end(&mut self, general: &General, depth: usize) -> Result<Vec<String>, InputError> {
        if self.keyword("subgraph") && self.peek() != Some(Token::Mark("{")) {
            self.name()?;
        }
        if self.took("{") {
            let mut members = self.statements(general, depth + 1)?;
            members.sort();
            members.dedup();
            return Ok(members);
        }
        Ok(vec![self.name()?])
    }

    /// The port behind a node's name, as in `s1:eth0:n`.
    fn port(&mut self) -> Result<Option<String>, InputError> {
        let mut port = None;
        while self.took(":") {
            port = Some(self.name()?);
        }
        Ok(port)
    }

    fn attributes(&mut self) -> Result<Map<String, Value>, InputError> {
        let mut attributes = Map::new();
        while self.took("[") {
            while !self.took("]") {
                let name = self.name()?;
                let value = if self.took("=") { self.value()? } else { Value::Bool(true) };
                attributes.insert(name, value);
                while self.took(",") || self.took(";") {}
            }
        }
        Ok(attributes)
    }

    /// A value; one that reads as a number is one, with or without quotation marks.
    fn value(&mut self) -> Result<Value, InputError> {
        let text = self.name()?;
        let whole = text.parse::<i64>().ok().map(Number::from);
        let number = whole.or_else(|| text.parse().ok().and_then(Number::from_f64));
        Ok(number.map_or_else(|| text.into(), Value::Number))
    }
}
