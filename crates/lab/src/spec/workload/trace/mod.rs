//! Flows from a file: a CSV or Parquet table, or a flow file of the simulators HPCC or htsim.
//!
//! - `csv`, `parquet`: one row per flow with the columns `start` (or `start_ns`), `src`, `dst`, `size` (or `size_bytes`),
//!   and optionally `weight` and `id`. Plain numbers are seconds and bytes.
//! - `hpcc`: the number of flows, then one line per flow: source, destination, priority, port, bytes, seconds.
//!   ConWeave's files have no port. HPCC's generator starts at 2 s.
//! - `htsim`: a connection matrix: `Nodes N`, `Connections M`, then `src->dst id I start PICOSECONDS size BYTES`, and
//!   `trigger T` in place of `start` if the flow starts after others, and `send_done_trigger T` if others start after it. A
//!   connection of size 0 is endless. A trigger that is `oneshot` fires at the first end, `multishot` at each end for one
//!   more connection, and a `barrier` at the last.
//!
//! Hosts are given by name, or by number in the order of the network's hosts. Where the network's own names are
//! numbers, as in HPCC's topologies, a number is a name.

mod hpcc;
mod htsim;
mod parquet;

use self::hpcc::from_hpcc;
use self::htsim::{from_htsim, htsim_nodes};
use self::parquet::from_parquet;
use super::{Common, ExpectedFlows, FlowBuilder, Planned, Workload, WorkloadInfo, host};
use crate::files::Beside;
use crate::spec::topology::Topology;
use serde_json::Value;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use subak_core::backend::PacketSizes;
use subak_core::document::nearest;
use subak_core::formats::flows::separator;
use subak_core::keys::{Key, ValueType};
use subak_core::quantity::{bytes_from_json, ns_from_json, quoted};
use subak_core::section::Section;
use subak_core::{FlowId, IdVec, InputError, InputErrors, NodeId, Ns};

pub(super) const ENTRY: WorkloadInfo = WorkloadInfo {
    name: "trace",
    about: "flows read from a file: see below",
    keys: &[
        Key::required("file", ValueType::Text, "a file of flows beside the spec, such as \"flows.csv\""),
        Key::open("format", ValueType::Word(FORMATS), "by the file's name", "format of the file"),
        Key::open("origin", ValueType::Time, "0; 2 s with `hpcc`", "time in the file at which the run starts"),
    ],
    common: Common::Connections,
    read: |section, files| Ok(Some(Arc::new(read(section, files)?))),
};

/// The flows of a trace file.
#[derive(Debug)]
struct Trace {
    flows: Vec<Traced>,
    file: String,
    /// Errors of the file's rows, reported together with errors of host names.
    wrong: RowErrors,
    /// Notes for the user on how the trace was interpreted.
    notes: Vec<String>,
    /// Number of hosts that the file announces.
    announced_hosts: Option<usize>,
}

impl Workload for Trace {
    fn check(&self, topology: &Topology, _duration_ns: Ns) -> Result<(), InputError> {
        let mut wrong = self.wrong.clone();
        check(&self.flows, topology, &mut wrong);
        wrong.done().map_err(|e| e.in_file(self.file.as_str()))
    }
    fn notes(&self, duration_ns: Ns) -> Vec<String> {
        let all = self.flows.len();
        let late = self.flows.iter().filter(|flow| flow.after.is_empty() && flow.start_ns >= duration_ns).count();
        self.notes.iter().cloned().chain(super::left_out(late, all)).collect()
    }
    fn announced_hosts(&self) -> Option<usize> {
        self.announced_hosts
    }
    fn may_strand(&self) -> bool {
        self.flows.iter().all(|flow| flow.after.is_empty())
    }
    fn waits_for_some(&self) -> bool {
        self.flows.iter().any(|flow| flow.needed.is_some_and(|needed| needed.get() as usize != flow.after.len()))
    }
    fn has_sizes(&self) -> bool {
        self.flows.iter().all(|flow| flow.size_bytes.is_some())
    }
    fn has_weights(&self) -> bool {
        self.flows.iter().any(|flow| flow.weight != 1.0)
    }
    fn smallest_weight(&self) -> f64 {
        self.flows.iter().map(|flow| flow.weight).fold(f64::INFINITY, f64::min)
    }
    fn settles(&self) -> bool {
        false
    }
    fn flows(&self, builder: &mut FlowBuilder) -> Result<(), InputError> {
        flows(&self.flows, builder)
    }
    fn expected(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> ExpectedFlows {
        let (flows, hosts) = (self.flows.len() as f64, topology.hosts().len() as f64);
        let endless = self.flows.iter().filter(|flow| flow.size_bytes.is_none()).count() as f64 / hosts.max(1.0);
        let endless_bytes = topology.capacity_bytes(duration_ns) * endless.min(1.0);
        let wire_bytes = packet.wire_bytes(bytes(&self.flows, duration_ns)) as f64 + endless_bytes;
        ExpectedFlows { flows, live: flows.min(hosts * 100.0), wire_bytes }
    }
}

const FORMATS: &[&str] = &["csv", "parquet", "hpcc", "htsim"];

/// Start time of the first flow in HPCC's flow files, ns.
const HPCC_BEGIN_NS: Ns = 2_000_000_000;

/// Largest number of flows of a file.
const MOST_FLOWS: usize = 5_000_000;

/// Largest number of different errors reported for a file.
const MOST_CAUSES: usize = 50;

/// A flow of the file.
#[derive(Debug)]
struct Traced {
    /// Row or line in the file, from 1.
    line: u64,
    /// Whether `line` is a row number (Parquet) and not a line number.
    row: bool,
    id: Option<String>,
    src: String,
    dst: String,
    /// Size, bytes; `None` for an endless flow.
    size_bytes: Option<u64>,
    start_ns: Ns,
    weight: f64,
    /// Flows that must finish before this flow starts.
    after: Vec<FlowId>,
    /// Number of flows in `after` that suffice; `None`: all.
    needed: Option<NonZeroU32>,
}

/// Errors of a file's rows: each error once, with the number of rows that have it.
#[derive(Debug, Clone, Default)]
struct RowErrors(Vec<(InputError, u64)>);

impl RowErrors {
    /// The value of `part`; records its error, if it has one.
    fn keep<T>(&mut self, part: Result<T, InputError>) -> Option<T> {
        part.map_err(|fault| self.push(fault)).ok()
    }

    fn push(&mut self, fault: InputError) {
        for fault in fault.each() {
            self.count(fault);
        }
    }

    fn count(&mut self, fault: InputError) {
        let alike: Vec<usize> = (0..self.0.len()).filter(|&k| cause(&self.0[k].0.what) == cause(&fault.what)).collect();
        let same = alike.iter().copied().find(|&k| self.0[k].0.what == fault.what && self.0[k].0.hint == fault.hint);
        // For an error that many names share, only a few names are reported; the last of these reports counts the
        // others.
        let last = alike.last().copied().filter(|_| alike.len() >= MOST_ALIKE);
        if let Some(known) = same.or(last) {
            self.0[known].1 += 1;
        } else if self.0.len() < MOST_CAUSES {
            self.0.push((fault, 1));
        }
    }

    fn done(self) -> Result<(), InputError> {
        let told = self.0.into_iter().map(|(mut fault, rows)| {
            if rows > 1 {
                fault.what += &format!(" (and {} more like it)", rows - 1);
            }
            fault
        });
        InputError::all(told).map_or(Ok(()), Err)
    }
}

/// Largest number of reported errors that differ only in names or numbers.
const MOST_ALIKE: usize = 4;

/// The error message without names and numbers, to group errors by cause.
fn cause(what: &str) -> String {
    what.split('"').step_by(2).flat_map(str::chars).filter(|c| !c.is_ascii_digit()).collect()
}

/// Reads the keys `file`, `format` and `origin`, and the flows of the file.
fn read(section: &mut Section, files: &Beside) -> Result<Trace, InputError> {
    let origin_ns: Option<Ns> = section.given("origin");
    let name: String = section.must("file")?;
    let name = name.as_str();
    let by_name = match name.rsplit_once('.').map(|(_, e)| e) {
        Some("csv") => Some("csv"),
        Some("parquet") => Some("parquet"),
        Some("cm") => Some("htsim"),
        _ => None,
    };
    let given: Option<String> = section.given("format");
    let format = match given.as_deref().or(by_name) {
        Some(format) => format,
        None => {
            let what = format!("what {} holds does not follow from its name", quoted(name));
            return Err(InputError::new("format", what, format!("give one of: {}", FORMATS.join(", "))));
        }
    };
    let standard = if format == "hpcc" { HPCC_BEGIN_NS } else { 0 };
    let origin_ns = origin_ns.unwrap_or(standard);
    let shown = files.shown(name);
    let named = |e: InputError| e.in_file(&shown);
    let (mut wrong, mut notes, mut announced_hosts) = (RowErrors::default(), Vec::new(), None);
    let mut flows = match format {
        "parquet" => from_parquet(files.bytes(name)?, &mut wrong).map_err(named)?,
        "csv" => from_csv(&files.text(name)?, &mut wrong).map_err(named)?,
        "hpcc" => from_hpcc(&files.text(name)?, &mut notes).map_err(named)?,
        _ => {
            let text = files.text(name)?;
            announced_hosts = htsim_nodes(&text);
            from_htsim(&text, &mut notes).map_err(named)?
        }
    };
    for flow in flows.iter_mut().filter(|flow| flow.after.is_empty()) {
        let start_ns = flow.start_ns.checked_sub(origin_ns).ok_or_else(|| {
            let what = format!("the flow starts before the origin of time, {} s", origin_ns as f64 * 1e-9);
            at(flow, &what, "give the time at which the run begins as origin")
        });
        flow.start_ns = wrong.keep(start_ns).unwrap_or_default();
    }
    Ok(Trace { flows, file: shown, wrong, notes, announced_hosts })
}

fn at(flow: &Traced, what: &str, hint: &str) -> InputError {
    let word = if flow.row { "row" } else { "line" };
    InputError::new(format!("{word} {}", flow.line), what, hint)
}

fn at_line(line: u64, what: &str, hint: &str) -> InputError {
    InputError::new(format!("line {line}"), what, hint)
}

fn too_many() -> InputError {
    InputError::new("", format!("more than {MOST_FLOWS} flows"), "split the file")
}

/// Parses a time or a size: a plain number is in seconds or bytes, and a text may have a unit.
fn quantity(text: &str) -> Value {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    number.map_or_else(|| Value::from(text.trim()), Value::from)
}

fn size(line: u64, value: &Value) -> Result<u64, InputError> {
    let found = bytes_from_json(value).map_err(|e| at_line(line, &e.what, &e.hint))?;
    if found == 0 {
        return Err(at_line(line, "the size is 0", "give at least one byte"));
    }
    Ok(found)
}

fn weight(line: u64, weight: f64) -> Result<f64, InputError> {
    if weight.is_finite() && weight > 0.0 {
        return Ok(weight);
    }
    Err(at_line(line, &format!("the weight is {weight}"), "give a positive number"))
}

/// Columns of a table of flows, each with its alternative name.
const COLUMNS: [&[&str]; 6] =
    [&["src"], &["dst"], &["start", "start_ns"], &["size", "size_bytes"], &["weight"], &["id"]];

/// Index in the file of each of [`COLUMNS`]; `weight` and `id` are optional. An unknown column is an error.
fn columns(headers: &csv::StringRecord) -> Result<[Option<usize>; 6], InputError> {
    const MEND: &str = "the columns are start, src, dst, size, and where wanted weight and id";
    let known = COLUMNS.concat();
    let mut faults = InputErrors::default();
    for (k, name) in headers.iter().enumerate() {
        let column = COLUMNS.iter().find(|names| names.contains(&name));
        let same = |other: &&str| *other == name || column.is_some_and(|names| names.contains(other));
        if column.is_none() {
            let near = nearest(name, &known).map_or(String::new(), |near| format!("did you mean \"{near}\"? "));
            faults.push(at_line(1, &format!("unknown column {}", quoted(name)), &format!("{near}{MEND}")));
        } else if let Some(other) = headers.iter().take(k).find(same) {
            let what = format!("the columns {} and {} say the same", quoted(other), quoted(name));
            faults.push(at_line(1, &what, "leave one of them away"));
        }
    }
    let places = COLUMNS.map(|names| headers.iter().position(|h| names.contains(&h)));
    for (names, _) in COLUMNS.iter().zip(&places).take(4).filter(|(_, place)| place.is_none()) {
        faults.push(at_line(1, &format!("there is no column \"{}\"", names[0]), MEND));
    }
    faults.done().map(|()| places)
}

/// A whole number of nanoseconds; also accepts `2000.0`, which data frames write.
fn whole_ns(text: &str) -> Option<Ns> {
    const MOST: f64 = 9e15;
    let float = || text.parse::<f64>().ok().filter(|ns| ns.fract() == 0.0 && (0.0..MOST).contains(ns));
    text.parse().ok().or_else(|| float().map(|ns| ns as Ns))
}

/// Reads CSV. Invalid rows are returned too, so that their host names are checked.
fn from_csv(text: &str, wrong: &mut RowErrors) -> Result<Vec<Traced>, InputError> {
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let bad = |e: csv::Error| {
        let line = e.position().map_or(1, |p| p.line());
        at_line(line, &format!("is no row of the table: {e}"), "give every row the columns of the first line")
    };
    let headers = reader.headers().map_err(bad)?.clone();
    separator(&headers).map_err(|e| at_line(1, &e.what, &e.hint))?;
    let [src, dst, start, sizes, weights, ids] = columns(&headers)?;
    let in_ns = start.is_some_and(|k| &headers[k] == "start_ns");
    let mut flows = Vec::new();
    for record in reader.records() {
        let Some(record) = wrong.keep(record.map_err(bad)) else { continue };
        let line = super::points::line_of(&record, text);
        let cell = |k: Option<usize>| k.and_then(|k| record.get(k)).unwrap_or_default();
        let start_ns = match in_ns {
            true => {
                whole_ns(cell(start)).ok_or_else(|| at_line(line, "start_ns is no whole number", "give nanoseconds"))
            }
            false => ns_from_json(&quantity(cell(start))).map_err(|e| at_line(line, &e.what, &e.hint)),
        };
        let given = Some(cell(weights)).filter(|w| !w.is_empty()).unwrap_or("1");
        let number = given.parse().map_err(|_| at_line(line, "the weight is no number", "give a number"));
        flows.push(Traced {
            line,
            row: false,
            id: Some(cell(ids)).filter(|id| !id.is_empty()).map(str::to_string),
            src: cell(src).to_string(),
            dst: cell(dst).to_string(),
            size_bytes: Some(wrong.keep(size(line, &quantity(cell(sizes)))).unwrap_or(1)),
            start_ns: wrong.keep(start_ns).unwrap_or_default(),
            weight: wrong.keep(number.and_then(|number| weight(line, number))).unwrap_or(1.0),
            after: Vec::new(),
            needed: None,
        });
        if flows.len() > MOST_FLOWS {
            return Err(too_many());
        }
    }
    Ok(flows)
}

/// The host called `name`. If no host name is a number, `name` may be an index into the list of hosts.
fn node(topology: &Topology, name: &str) -> Result<NodeId, InputError> {
    let is_number = |text: &str| text.parse::<usize>().is_ok();
    let (hosts, network) = (topology.hosts(), topology.network());
    let named = |h: NodeId| network.nodes()[h].name.as_str();
    match name.parse::<usize>() {
        Ok(k) if network.find_node(name).is_none() && !hosts.iter().take(1).any(|&h| is_number(named(h))) => {
            hosts.get(k).copied().ok_or_else(|| {
                let what = format!("there is no host number {k}");
                let last = hosts.len().saturating_sub(1);
                InputError::new("", what, format!("the network's hosts have the numbers 0 to {last}"))
            })
        }
        _ => host(topology, name),
    }
}

fn ends(flow: &Traced, topology: &Topology) -> Result<(NodeId, NodeId), InputError> {
    let find = |name: &str| node(topology, name).map_err(|e| at(flow, &e.what, &e.hint));
    let (src, dst) = match (find(&flow.src), find(&flow.dst)) {
        (Ok(src), Ok(dst)) => (src, dst),
        (Err(src), Err(dst)) => return Err(InputError { more: vec![dst], ..src }),
        (Err(fault), Ok(_)) | (Ok(_), Err(fault)) => return Err(fault),
    };
    if src == dst {
        return Err(at(flow, "source and destination are the same host", "name two hosts"));
    }
    Ok((src, dst))
}

/// Records an error for each id that two flows share.
fn check_ids(flows: &[Traced], wrong: &mut RowErrors) {
    let mut seen: HashMap<&str, u64> = HashMap::new();
    for flow in flows {
        let Some(id) = flow.id.as_deref() else { continue };
        if let Some(first) = seen.insert(id, flow.line) {
            let word = if flow.row { "row" } else { "line" };
            let what = format!("{word} {first} has the id {} already", quoted(id));
            wrong.push(at(flow, &what, "give every flow an id of its own"));
        }
    }
}

/// Resolves hosts; duplicate ids and cyclic dependencies are errors.
fn check(flows: &[Traced], topology: &Topology, wrong: &mut RowErrors) {
    for flow in flows {
        wrong.keep(ends(flow, topology));
    }
    check_ids(flows, wrong);
    let after: IdVec<FlowId, Vec<FlowId>> = flows.iter().map(|f| f.after.clone()).collect();
    if let Some(circle) = super::steps::circle(&after) {
        let line = flows[circle[0].index()].line;
        wrong.push(at_line(line, "connections wait for each other in a circle", "let one of them start by itself"));
    }
}

/// The flows, in the order of the file.
fn flows(traced: &[Traced], builder: &mut FlowBuilder) -> Result<(), InputError> {
    let topology = builder.topology;
    let waiting = traced.iter().any(|flow| !flow.after.is_empty());
    let duration_ns = builder.duration_ns;
    for flow in traced.iter().filter(|flow| waiting || flow.start_ns < duration_ns) {
        let (src, dst) = ends(flow, topology)?;
        let carried = builder.add(src, dst, flow.start_ns, flow.size_bytes, 1)?;
        let made = if carried { builder.flows.last_mut() } else { builder.stranded.last_mut() };
        if let Some(Planned { id, after, needed, plan, .. }) = made {
            id.clone_from(&flow.id);
            after.clone_from(&flow.after);
            *needed = flow.needed;
            plan.weight = flow.weight;
        }
        if flow.after.is_empty() && flow.start_ns >= duration_ns {
            let id = FlowId::from_index(builder.flows.len() - 1);
            builder.flows[id].leave_out(id);
        }
    }
    Ok(())
}

/// Total size of the flows that start before the end of the duration, bytes.
fn bytes(traced: &[Traced], duration_ns: Ns) -> u64 {
    traced.iter().filter(|f| f.start_ns < duration_ns).filter_map(|f| f.size_bytes).sum()
}
