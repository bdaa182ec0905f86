//! Networks and demands of SNDlib (Orlowski et al., 2010), native and XML. A file states no unit, so that one stands
//! beside it: `unit = "Mbps"`. A few XML files state `MBITPERSEC`.
//!
//! A link's capacity is what is installed. If that is 0, it is the module that may be installed; where modules differ, the
//! `range` beside the file chooses the smallest or the largest. Links are undirected: whether a problem takes them as
//! directed is in its model file.

use super::drawn::{Drawn, rate_in, words};
use super::{Defaults, End, at_line};
use crate::document::{line_and_column, shortened};
use crate::quantity::quoted;
use crate::{InputError, Network};
use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::{Value, json};

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

/// What a file has.
#[derive(Debug, Default)]
struct Problem<'a> {
    nodes: Vec<(usize, &'a str)>,
    links: Vec<InstalledLink<'a>>,
    demands: Vec<Wanted<'a>>,
    unit: Option<&'static str>,
}

/// A link, at a line. Capacities are text.
#[derive(Debug, Default, Clone)]
struct InstalledLink<'a> {
    line: usize,
    id: &'a str,
    ends: [&'a str; 2],
    installed: Option<&'a str>,
    modules: Vec<&'a str>,
}

/// A demand, at a line.
#[derive(Debug, Default, Clone)]
struct Wanted<'a> {
    line: usize,
    id: &'a str,
    ends: [&'a str; 2],
    /// Capacity that a unit of the demand takes.
    routing_unit: Option<&'a str>,
    value: Option<&'a str>,
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
        let amount = |word: Option<&str>| word.map_or(Some(1.0), |word| word.parse::<f64>().ok());
        let value = wanted.value.and_then(|value| amount(Some(value)));
        let product = value.zip(amount(wanted.routing_unit)).map(|(value, each)| value * each);
        let product = product.filter(|rate| rate.is_finite() && *rate >= 0.0).ok_or_else(|| {
            at_line(wanted.line, format!("demand {} has no value", quoted(wanted.id)), "give a number from 0 on")
        })?;
        let [src, dst] = wanted.ends;
        Ok((product > 0.0)
            .then(|| json!({"id": wanted.id, "src": src, "dst": dst, "demand": format!("{product}{unit}")})))
    };
    let flows: Result<Vec<_>, InputError> = problem.demands.iter().map(flow).collect();
    Ok(flows?.into_iter().flatten().collect())
}

impl Problem<'_> {
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
        for link in &self.links {
            let [from, to] = link.ends;
            drawn.check(from, link.line)?;
            drawn.check(to, link.line)?;
            let capacity = link.capacity(unit, beside)?;
            drawn.edge(from, to, capacity.map(|capacity| ("capacity", capacity)));
        }
        let beside = Defaults { unit: None, range: None, ..beside.of_backbone() };
        drawn.network(false, &beside)
    }
}

impl InstalledLink<'_> {
    fn capacity(&self, unit: &str, beside: &Defaults) -> Result<Option<Value>, InputError> {
        let number = |word: &str| {
            let number = word.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
            number.ok_or_else(|| {
                at_line(self.line, format!("{} is no capacity", quoted(word)), "give a number from 0 on")
            })
        };
        if let Some(installed) = self.installed
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
                let what = format!("link {} has modules of {least} to {most}, and none is installed", quoted(self.id));
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

/// Parses a native file.
fn native(text: &str) -> Result<Problem<'_>, InputError> {
    let mut problem = Problem::default();
    let mut section = None;
    for (line, row) in words(text, "#").filter(|(_, row)| !row[0].starts_with("?SNDlib")) {
        match (section, &row[..]) {
            (None, ["META", ..]) => section = Some("META"),
            (None, [title @ ("NODES" | "LINKS" | "DEMANDS" | "ADMISSIBLE_PATHS"), "("]) => section = Some(*title),
            (None, _) => {
                let hint = "begin a section: NODES (, LINKS (, DEMANDS ( or ADMISSIBLE_PATHS (";
                return Err(at_line(line, format!("{} is no section", quoted(row[0])), hint));
            }
            (Some(_), [")"]) => section = None,
            (Some("NODES"), [name, ..]) => problem.nodes.push((line, name)),
            (Some("LINKS"), [id, "(", from, to, ")", installed, _, _, _, "(", modules @ .., ")"]) => {
                let modules = modules.iter().step_by(2).copied().collect();
                problem.links.push(InstalledLink { line, id, ends: [from, to], installed: Some(installed), modules });
            }
            (Some("LINKS"), _) => {
                let hint = "give: id ( source target ) capacity cost routing-cost setup-cost ( module cost ... )";
                return Err(at_line(line, "is no link", hint));
            }
            (Some("DEMANDS"), [id, "(", from, to, ")", routing_unit, value, _]) => problem.demands.push(Wanted {
                line,
                id,
                ends: [from, to],
                routing_unit: Some(routing_unit),
                value: Some(value),
            }),
            (Some("DEMANDS"), _) => {
                return Err(at_line(
                    line,
                    "is no demand",
                    "give: id ( source target ) routing-unit value longest-path",
                ));
            }
            (Some(_), _) => {}
        }
    }
    match section {
        Some(title) => Err(InputError::new("", format!("the section {title} does not end"), "close it by )")),
        None => Ok(problem),
    }
}

/// Parses an XML file.
fn xml(text: &str) -> Result<Problem<'_>, InputError> {
    let mut reader = Reader::from_str(text);
    let mut problem = Problem::default();
    let mut open: Vec<&str> = Vec::new();
    // Line of the event, counted on from the last one.
    let (mut counted, mut line) = (0, 1);
    loop {
        let begun = reader.buffer_position() as usize;
        let event = reader.read_event().map_err(|e| {
            let place = line_and_column(text, reader.error_position() as usize);
            InputError::new(place, shortened(&e.to_string()), "write the file as XML has it")
        })?;
        let end = reader.buffer_position() as usize;
        line += text[counted..begun].matches('\n').count();
        counted = begun;
        match event {
            Event::Start(_) | Event::Empty(_) => {
                let inner = text[begun..end].trim_start_matches('<').trim_end_matches(['>', '/']);
                let (name, attributes) = inner.split_once(char::is_whitespace).unwrap_or((inner, ""));
                if open.len() == DEEPEST {
                    return Err(at_line(line, "the elements are nested too deeply", "nest them as SNDlib does"));
                }
                let name = name.rsplit_once(':').map_or(name, |(_, local)| local);
                problem.open(line, name, id_in(attributes));
                if matches!(event, Event::Start(_)) {
                    open.push(name);
                }
            }
            Event::End(_) => drop(open.pop()),
            Event::Text(_) => problem.set(&open, text[begun..end].trim()),
            Event::Eof if open.is_empty() => return Ok(problem),
            Event::Eof => {
                let what = format!("the file ends inside <{}>", open.last().unwrap_or(&""));
                return Err(at_line(line, what, "close every element: the file may be cut"));
            }
            _ => {}
        }
    }
}

/// The value of the attribute `id`.
fn id_in(attributes: &str) -> &str {
    let after = attributes.split_once("id=").map_or("", |(_, after)| after);
    let quote = after.chars().next().filter(|c| ['"', '\''].contains(c));
    quote.and_then(|quote| after[1..].split_once(quote)).map_or("", |(id, _)| id)
}

impl<'a> Problem<'a> {
    fn open(&mut self, line: usize, element: &str, id: &'a str) {
        match element {
            "node" => self.nodes.push((line, id)),
            "link" => self.links.push(InstalledLink { line, id, ..InstalledLink::default() }),
            "demand" => self.demands.push(Wanted { line, id, ..Wanted::default() }),
            _ => {}
        }
    }

    fn set(&mut self, open: &[&str], value: &'a str) {
        if value.is_empty() {
            return;
        }
        let of_link = open.contains(&"links");
        let (link, demand) = (self.links.last_mut(), self.demands.last_mut());
        match (open, link, demand) {
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
