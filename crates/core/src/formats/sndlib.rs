//! Networks and demands of SNDlib (Orlowski et al., 2010), native and XML. A file states no unit, so that one stands
//! beside it: `unit = "Mbps"`. A few XML files state `MBITPERSEC`.
//!
//! A link's capacity is what is installed. If that is 0, it is the module that may be installed; where modules differ, the
//! `range` beside the file chooses the smallest or the largest. Links are undirected: whether a problem takes them as
//! directed is in its model file.

use super::drawn::{Drawn, rate_in, words};
use super::graphml::resolve;
use super::{Defaults, End, at_line};
use crate::document::{line_and_column, shortened};
use crate::quantity::quoted;
use crate::{InputError, Network};
use quick_xml::events::Event;
use quick_xml::{Reader, XmlVersion};
use serde_json::{Value, json};
use std::collections::HashSet;

/// Largest nesting depth of elements; SNDlib needs seven.
const DEEPEST: usize = 64;

/// Whether a text begins as SNDlib's native format.
pub(super) fn is_native(text: &str) -> bool {
    text.starts_with("?SNDlib native format")
}

/// Whether a text is SNDlib's XML: its first element is `network`.
pub(super) fn is_xml(text: &str) -> bool {
    let mut reader = Reader::from_str(text);
    for _ in 0..64 {
        match reader.read_event() {
            Ok(Event::Start(element)) => return element.local_name().as_ref() == "network",
            Ok(Event::Eof | Event::Empty(_)) | Err(_) => return false,
            Ok(_) => {}
        }
    }
    false
}

/// The nodes, links and demands of a file.
#[derive(Debug, Default)]
struct Problem {
    nodes: Vec<(usize, String)>,
    links: Vec<InstalledLink>,
    demands: Vec<Wanted>,
    unit: Option<&'static str>,
    /// Whether demands have admissible paths, which are not used.
    has_paths: bool,
}

/// A link, at a line. Capacities are text.
#[derive(Debug, Default, Clone)]
struct InstalledLink {
    line: usize,
    id: String,
    ends: [String; 2],
    installed: Option<String>,
    modules: Vec<String>,
}

/// A demand, at a line.
#[derive(Debug, Default, Clone)]
struct Wanted {
    line: usize,
    id: String,
    ends: [String; 2],
    /// Capacity that a unit of the demand takes.
    routing_unit: Option<String>,
    value: Option<String>,
}

/// Parses the network of a native file.
pub(super) fn native_network(text: &str, beside: &Defaults) -> Result<Network, InputError> {
    native(text)?.network(beside)
}

/// Parses the network of an XML file.
pub(super) fn xml_network(text: &str, beside: &Defaults) -> Result<Network, InputError> {
    xml(text)?.network(beside)
}

/// Parses the demands of either kind of file as the flows of a case.
pub(super) fn demands(text: &str, unit: Option<&str>) -> Result<Vec<Value>, InputError> {
    let body = text.trim_start_matches('\u{feff}').trim_start();
    let problem = if is_native(body) { native(text) } else { xml(text) }?;
    let unit = problem.unit_of_file(unit)?;
    let flow = |wanted: &Wanted| {
        let amount = |word: Option<&String>| word.map_or(Some(1.0), |word| word.parse::<f64>().ok());
        let value = wanted.value.as_ref().and_then(|value| amount(Some(value)));
        let product = value.zip(amount(wanted.routing_unit.as_ref())).map(|(value, each)| value * each);
        let product = product.filter(|rate| rate.is_finite() && *rate >= 0.0).ok_or_else(|| {
            at_line(wanted.line, format!("demand {} has no value", quoted(&wanted.id)), "give a number from 0 on")
        })?;
        let [src, dst] = &wanted.ends;
        let demand = format!("{product}{unit}");
        Ok((product > 0.0).then(|| json!({"id": wanted.id, "src": src, "dst": dst, "demand": demand})))
    };
    let flows: Result<Vec<_>, InputError> = problem.demands.iter().map(flow).collect();
    Ok(flows?.into_iter().flatten().collect())
}

impl Problem {
    fn unit_of_file<'u>(&self, beside: Option<&'u str>) -> Result<&'u str, InputError> {
        beside.or(self.unit).ok_or_else(|| {
            InputError::new("unit", "SNDlib's files state no unit", "give one beside the file, such as unit = \"Mbps\"")
        })
    }

    fn network(&self, beside: &Defaults) -> Result<Network, InputError> {
        let unit = self.unit_of_file(beside.unit.as_deref())?;
        let mut drawn = Drawn::default();
        for (line, name) in &self.nodes {
            if !drawn.node(name, None) {
                return Err(at_line(
                    *line,
                    format!("a second node is called {}", quoted(name)),
                    "give each a name of its own",
                ));
            }
        }
        let mut ids = HashSet::new();
        for link in &self.links {
            if !ids.insert(&link.id) {
                let what = format!("a second link is called {}", quoted(&link.id));
                return Err(at_line(link.line, what, "give each an id of its own"));
            }
            let [from, to] = &link.ends;
            drawn.check(from, link.line)?;
            drawn.check(to, link.line)?;
            let capacity = link.capacity(unit, beside)?;
            drawn.edge(from, to, capacity.map(|capacity| ("capacity", capacity)));
        }
        let beside = Defaults { unit: None, range: None, ..beside.of_backbone() };
        let mut network = drawn.network(false, &beside)?;
        if self.has_paths {
            network.note_all(["admissible paths of demands are not read: flows take paths by routing".to_string()]);
        }
        Ok(network)
    }
}

impl InstalledLink {
    fn capacity(&self, unit: &str, beside: &Defaults) -> Result<Option<Value>, InputError> {
        let number = |word: &str| {
            let number = word.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
            number.ok_or_else(|| {
                at_line(self.line, format!("{} is no capacity", quoted(word)), "give a number from 0 on")
            })
        };
        if let Some(installed) = &self.installed
            && number(installed)? > 0.0
        {
            return rate_in(self.line, installed, unit).map(Some);
        }
        let modules = self.modules.iter().map(|word| number(word)).collect::<Result<Vec<_>, _>>()?;
        let modules = || modules.iter().copied().filter(|&module| module > 0.0);
        let (least, most) = (modules().fold(f64::INFINITY, f64::min), modules().fold(0.0, f64::max));
        let chosen = match beside.range {
            _ if most == 0.0 => return Ok(None),
            Some(End::High) => most,
            Some(End::Low) => least,
            None if least == most => most,
            None => {
                let what = format!("link {} has modules of {least} to {most}, and none is installed", quoted(&self.id));
                return Err(at_line(
                    self.line,
                    what,
                    "choose the smallest or largest beside the file: range = \"low\" or \"high\"",
                ));
            }
        };
        rate_in(self.line, &chosen.to_string(), unit).map(Some)
    }
}

/// The words of a native file with their lines; brackets are words.
struct NativeWords<'a> {
    words: std::iter::Peekable<std::vec::IntoIter<(usize, &'a str)>>,
    line: usize,
}

impl<'a> NativeWords<'a> {
    fn of(text: &'a str) -> Self {
        let split = |(line, word): (usize, &'a str)| {
            let ends = |c: char| c == '(' || c == ')';
            let parts = word.split_inclusive(ends).flat_map(move |part| match part.find(ends) {
                Some(at) => [&part[..at], &part[at..]],
                None => [part, ""],
            });
            parts.filter(|part| !part.is_empty()).map(move |part| (line, part))
        };
        let rows = words(text, "#").filter(|(_, row)| !row[0].starts_with("?SNDlib"));
        let all: Vec<_> =
            rows.flat_map(|(line, row)| row.into_iter().map(move |word| (line, word))).flat_map(split).collect();
        NativeWords { words: all.into_iter().peekable(), line: 1 }
    }

    fn next(&mut self) -> Option<&'a str> {
        let (line, word) = self.words.next()?;
        self.line = line;
        Some(word)
    }

    fn fault(&self, what: impl Into<String>, hint: &str) -> InputError {
        at_line(self.line, what, hint)
    }

    /// The next word, which is no bracket.
    fn name(&mut self, hint: &str) -> Result<String, InputError> {
        match self.next() {
            Some(word) if word != "(" && word != ")" => Ok(word.to_string()),
            Some(word) => Err(self.fault(format!("{word} is out of place"), hint)),
            None => Err(self.fault("the file ends inside a section", "close it by )")),
        }
    }

    fn bracket(&mut self, bracket: &str, hint: &str) -> Result<(), InputError> {
        match self.next() {
            Some(word) if word == bracket => Ok(()),
            Some(word) => Err(self.fault(format!("{} stands for {bracket}", quoted(word)), hint)),
            None => Err(self.fault("the file ends inside a section", "close it by )")),
        }
    }

    /// Whether the next word is a closing bracket, which is taken.
    fn closes(&mut self) -> bool {
        let is_closing = self.words.peek().is_some_and(|(_, word)| *word == ")");
        if is_closing {
            self.next();
        }
        is_closing
    }

    /// Skips what is in the bracket that has been opened; whether anything is.
    fn skip(&mut self) -> Result<bool, InputError> {
        let (mut depth, mut any) = (1, false);
        while depth > 0 {
            match self.next() {
                Some("(") => depth += 1,
                Some(")") => depth -= 1,
                Some(_) => any = true,
                None => return Err(self.fault("the file ends inside a section", "close it by )")),
            }
        }
        Ok(any)
    }
}

/// Parses a native file.
fn native(text: &str) -> Result<Problem, InputError> {
    const SECTIONS: &str = "begin a section: NODES (, LINKS (, DEMANDS ( or ADMISSIBLE_PATHS (";
    const LINK: &str = "give: id ( source target ) capacity cost routing-cost setup-cost ( module cost ... )";
    const DEMAND: &str = "give: id ( source target ) routing-unit value longest-path";
    let mut problem = Problem::default();
    let mut words = NativeWords::of(text);
    while let Some(title) = words.next() {
        words.bracket("(", SECTIONS)?;
        match title {
            "NODES" => {
                while !words.closes() {
                    let name = words.name("give: id ( x y )")?;
                    problem.nodes.push((words.line, name));
                    while words.words.peek().is_some_and(|(_, word)| *word == "(") {
                        words.next();
                        words.skip()?;
                    }
                }
            }
            "LINKS" => {
                while !words.closes() {
                    let id = words.name(LINK)?;
                    let line = words.line;
                    words.bracket("(", LINK)?;
                    let ends = [words.name(LINK)?, words.name(LINK)?];
                    words.bracket(")", LINK)?;
                    let [installed, ..] = [words.name(LINK)?, words.name(LINK)?, words.name(LINK)?, words.name(LINK)?];
                    words.bracket("(", LINK)?;
                    let mut modules = Vec::new();
                    while !words.closes() {
                        modules.push(words.name(LINK)?);
                        words.name(LINK)?;
                    }
                    problem.links.push(InstalledLink { line, id, ends, installed: Some(installed), modules });
                }
            }
            "DEMANDS" => {
                while !words.closes() {
                    let id = words.name(DEMAND)?;
                    let line = words.line;
                    words.bracket("(", DEMAND)?;
                    let ends = [words.name(DEMAND)?, words.name(DEMAND)?];
                    words.bracket(")", DEMAND)?;
                    let (routing_unit, value) = (Some(words.name(DEMAND)?), Some(words.name(DEMAND)?));
                    words.name(DEMAND)?;
                    problem.demands.push(Wanted { line, id, ends, routing_unit, value });
                }
            }
            "ADMISSIBLE_PATHS" => problem.has_paths = words.skip()?,
            "META" => drop(words.skip()?),
            other => return Err(words.fault(format!("{} is no section", quoted(other)), SECTIONS)),
        }
    }
    Ok(problem)
}

/// Parses an XML file.
fn xml(text: &str) -> Result<Problem, InputError> {
    let mut reader = Reader::from_str(text);
    let mut problem = Problem::default();
    let mut open: Vec<String> = Vec::new();
    let mut content = String::new();
    // Line of the event, counted on from the last one.
    let (mut counted, mut line) = (0, 1);
    loop {
        let begun = reader.buffer_position() as usize;
        let event = reader.read_event().map_err(|e| {
            let place = line_and_column(text, reader.error_position() as usize);
            InputError::new(place, shortened(&e.to_string()), "write the file as XML has it")
        })?;
        line += text[counted..begun].matches('\n').count();
        counted = begun;
        match event {
            Event::Start(ref element) | Event::Empty(ref element) => {
                content.clear();
                if open.len() == DEEPEST {
                    return Err(at_line(line, "the elements are nested too deeply", "nest them as SNDlib does"));
                }
                let name = element.local_name().as_ref().to_string();
                let id = element.try_get_attribute("id").ok().flatten();
                let id = id.and_then(|id| id.normalized_value(XmlVersion::Implicit1_0).ok());
                problem.open(line, &name, id.as_deref().unwrap_or_default());
                if matches!(event, Event::Start(_)) {
                    open.push(name);
                }
            }
            Event::End(_) => {
                problem.set(&open, content.trim());
                content.clear();
                open.pop();
            }
            Event::Text(part) => content.push_str(&part.xml10_content()),
            Event::CData(part) => content.push_str(&part.xml10_content()),
            Event::GeneralRef(part) => {
                content.push_str(&resolve(&part).map_err(|e| at_line(line, e.what, &e.hint))?);
            }
            Event::Eof if open.is_empty() => return Ok(problem),
            Event::Eof => {
                let what = format!("the file ends inside <{}>", open.last().map_or("", String::as_str));
                return Err(at_line(line, what, "close every element: the file may be cut"));
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

impl Problem {
    fn open(&mut self, line: usize, element: &str, id: &str) {
        let id = id.to_string();
        match element {
            "node" => self.nodes.push((line, id)),
            "link" => self.links.push(InstalledLink { line, id, ..InstalledLink::default() }),
            "demand" => self.demands.push(Wanted { line, id, ..Wanted::default() }),
            "admissiblePath" => self.has_paths = true,
            _ => {}
        }
    }

    /// Takes the text of the innermost open element.
    fn set(&mut self, open: &[String], value: &str) {
        if value.is_empty() {
            return;
        }
        let open: Vec<&str> = open.iter().map(String::as_str).collect();
        let of_link = open.contains(&"links");
        let (link, demand) = (self.links.last_mut(), self.demands.last_mut());
        let value = value.to_string();
        match (&open[..], link, demand) {
            ([.., "meta", "unit"], ..) if value == "MBITPERSEC" => self.unit = Some("Mbps"),
            ([.., "link", "source"], Some(link), _) => link.ends[0] = value,
            ([.., "link", "target"], Some(link), _) => link.ends[1] = value,
            ([.., "preInstalledModule", "capacity"], Some(link), _) if of_link => link.installed = Some(value),
            ([.., "addModule", "capacity"], Some(link), _) if of_link => link.modules.push(value),
            ([.., "demand", "source"], _, Some(demand)) => demand.ends[0] = value,
            ([.., "demand", "target"], _, Some(demand)) => demand.ends[1] = value,
            ([.., "routingUnit"], _, Some(demand)) => demand.routing_unit = Some(value),
            ([.., "demandValue"], _, Some(demand)) => demand.value = Some(value),
            _ => {}
        }
    }
}
