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

use super::{Common, ExpectedFlows, FlowBuilder, Planned, Workload, WorkloadInfo, host};
use crate::files::Beside;
use crate::spec::section::{Section, text};
use crate::spec::topology::Topology;
use bytes::Bytes;
use parquet::file::metadata::KeyValue;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use subak_core::backend::PacketSizes;
use subak_core::document::{nearest, unknown_word};
use subak_core::formats::{flows::separator, hpcc};
use subak_core::keys::{Key, ValueType};
use subak_core::quantity::{bytes_from_json, ns_from_json, quoted};
use subak_core::{FlowId, IdVec, InputError, InputErrors, NodeId, Ns};

pub(super) const ENTRY: WorkloadInfo = WorkloadInfo {
    name: "trace",
    about: "flows read from a file: see below",
    keys: &[
        Key::required("file", ValueType::Text, "file of flows beside the spec, such as \"flows.csv\""),
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
        self.flows.iter().any(|flow| flow.needed.is_some_and(|needed| needed as usize != flow.after.len()))
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
    needed: Option<u32>,
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
    let name = section.must("file", "name a file of flows, such as \"flows.csv\"", text)?;
    let by_name = match name.rsplit_once('.').map(|(_, e)| e) {
        Some("csv") => Some("csv"),
        Some("parquet") => Some("parquet"),
        Some("cm") => Some("htsim"),
        _ => None,
    };
    let format = match section.opt("format", text).or(by_name) {
        Some(format) if FORMATS.contains(&format) => format,
        Some(other) => return Err(unknown_word(other, "format", FORMATS).below("format")),
        None => {
            let what = format!("what {} holds does not follow from its name", quoted(name));
            return Err(InputError::new("format", what, format!("give one of: {}", FORMATS.join(", "))));
        }
    };
    let standard = if format == "hpcc" { HPCC_BEGIN_NS } else { 0 };
    let origin_ns = section.given("origin").unwrap_or(standard);
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

/// Reads Parquet: each value is converted to text, and the text is read as CSV.
fn from_parquet(file: Vec<u8>, wrong: &mut RowErrors) -> Result<Vec<Traced>, InputError> {
    // The Parquet library panics on some damaged files.
    let text = crate::quiet::catch(|| parquet_as_csv(file)).unwrap_or_else(Err).map_err(|e| {
        InputError::new("", format!("cannot be read as Parquet: {e}"), "give a Parquet file with a row a flow")
    })?;
    // Line 2 is row 1, since Parquet has no header line.
    let as_row = |e: &mut InputError| {
        if let Some(line) = e.place.strip_prefix("line ").and_then(|n| n.parse::<u64>().ok()) {
            e.place = format!("row {}", line.saturating_sub(1));
        }
    };
    let mut flows = from_csv(&text, wrong).map_err(|mut e| {
        as_row(&mut e);
        e.more.iter_mut().for_each(as_row);
        e
    })?;
    wrong.0.iter_mut().for_each(|(fault, _)| as_row(fault));
    flows.iter_mut().for_each(|flow| (flow.line, flow.row) = (flow.line - 1, true));
    Ok(flows)
}

/// Beginning of the names that pandas gives the columns of an index without a name.
const UNNAMED: &str = "__index_level_";

/// A range index of pandas, which is only in the file's metadata and has no column: its name, and its first number and
/// step.
fn range_index(metadata: Option<&Vec<KeyValue>>) -> Option<(Option<String>, [i64; 2])> {
    let text = metadata?.iter().find(|pair| pair.key == "pandas")?.value.as_deref()?;
    let pandas: Value = serde_json::from_str(text).ok()?;
    let range = pandas.get("index_columns")?.as_array()?.iter().find(|index| index.is_object())?;
    let number = |key| range.get(key).and_then(Value::as_i64);
    let name = range.get("name").and_then(Value::as_str).map(str::to_string);
    Some((name, [number("start").unwrap_or(0), number("step").unwrap_or(1)]))
}

/// How the columns of a Parquet file are named in CSV; `None` for a column that is left out. An index of pandas without
/// a name is the column `id`. Numbers are left out if there are ids, since rows that pandas selected keep their old ones.
fn csv_names(columns: &[ParquetColumn]) -> Result<Vec<Option<&str>>, String> {
    let has_ids = columns.iter().any(|column| column.name == "id");
    let is_index = |column: &ParquetColumn| column.name.starts_with(UNNAMED);
    let indices = columns.iter().filter(|&column| is_index(column)).count();
    if indices > 1 {
        return Err(format!("the index has {indices} levels without names; name them, or reset_index(drop=True)"));
    }
    if columns.iter().any(|column| has_ids && is_index(column) && !column.whole) {
        return Err(
            "the index has no name, and there is a column \"id\"; name it, or reset_index(drop=True)".to_string()
        );
    }
    let is_kept = |column: &ParquetColumn| !is_index(column) || !has_ids;
    let names =
        columns.iter().map(|column| is_kept(column).then(|| if is_index(column) { "id" } else { &*column.name }));
    Ok(names.collect())
}

fn parquet_as_csv(file: Vec<u8>) -> Result<String, String> {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    let file = Bytes::from(file);
    let columns = parquet_columns(&file)?;
    let reader = SerializedFileReader::new(file).map_err(|e| e.to_string())?;
    let mut range = range_index(reader.metadata().file_metadata().key_value_metadata());
    if let Some((Some(name), _)) = &range {
        return Err(format!(
            "the index {} is a range of pandas, which is not stored as a column; reset_index() stores it",
            quoted(name)
        ));
    }
    let mut names = csv_names(&columns)?;
    // A range that counts the rows from 0 is no index of its own.
    range = range.filter(|(_, range)| *range != [0, 1] && !names.contains(&Some("id")));
    let own = names.len();
    names.extend(range.iter().map(|_| Some("id")));
    let mut text = csv::Writer::from_writer(Vec::new());
    text.write_record(names.iter().flatten()).map_err(|e| e.to_string())?;
    for (k, row) in reader.get_row_iter(None).map_err(|e| e.to_string())?.enumerate() {
        let row = row.map_err(|e| e.to_string())?;
        if k >= MOST_FLOWS {
            return Err(format!("it has more than {MOST_FLOWS} rows"));
        }
        let kept = row.get_column_iter().zip(&columns).zip(&names[..own]).filter(|(_, name)| name.is_some());
        let cells = kept.map(|(((_, field), column), _)| match field {
            Field::Null => String::new(),
            Field::Str(s) => s.clone(),
            Field::TimestampMillis(ms) => format!("{ms}ms"),
            Field::TimestampMicros(us) => format!("{us}us"),
            other if column.name == "start_ns" && !column.unit.is_empty() => {
                whole_of(&format!("{other}{}", column.unit))
            }
            other => format!("{other}{}", column.unit),
        });
        let number = range.iter().map(|(_, [start, step])| start.wrapping_add(step.wrapping_mul(k as i64)).to_string());
        text.write_record(cells.chain(number)).map_err(|e| e.to_string())?;
    }
    let text = text.into_inner().map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Nanoseconds of a time with a unit; the text itself if it is none.
fn whole_of(text: &str) -> String {
    ns_from_json(&Value::from(text)).map_or_else(|_| text.to_string(), |ns| ns.to_string())
}

/// A column of a Parquet file.
struct ParquetColumn {
    name: String,
    /// Unit of a column of durations.
    unit: &'static str,
    /// Whether it holds whole numbers.
    whole: bool,
}

fn parquet_columns(file: &Bytes) -> Result<Vec<ParquetColumn>, String> {
    use arrow_schema::{DataType, TimeUnit};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file.clone()).map_err(|e| e.to_string())?;
    let unit = |kind: &DataType| match kind {
        DataType::Duration(TimeUnit::Second) => "s",
        DataType::Duration(TimeUnit::Millisecond) => "ms",
        DataType::Duration(TimeUnit::Microsecond) => "us",
        // Milliseconds and microseconds of a timestamp have types of their own.
        DataType::Duration(TimeUnit::Nanosecond) | DataType::Timestamp(TimeUnit::Nanosecond, _) => "ns",
        _ => "",
    };
    let column = |field: &Arc<arrow_schema::Field>| ParquetColumn {
        name: field.name().clone(),
        unit: unit(field.data_type()),
        whole: field.data_type().is_integer(),
    };
    Ok(builder.schema().fields().iter().map(column).collect())
}

/// Reads HPCC's six columns, or ConWeave's five, without port. Lines after the announced number of flows are not read.
fn from_hpcc(text: &str, notes: &mut Vec<String>) -> Result<Vec<Traced>, InputError> {
    let mut lines = hpcc::lines(text).map(|(line, words)| (line as u64, words));
    let shape = "a flow is: source destination priority port bytes seconds, or without the port";
    let (head, first) =
        lines.next().ok_or_else(|| at_line(1, "the file is empty", "begin with the number of flows"))?;
    let count: usize =
        first.parse().map_err(|_| at_line(head, "is no number of flows", "begin with the number of flows"))?;
    if count > MOST_FLOWS {
        return Err(too_many());
    }
    let mut flows = Vec::new();
    let (mut priorities, mut ports) = (BTreeSet::new(), BTreeSet::new());
    for (line, words) in lines.by_ref().take(count) {
        let words: Vec<&str> = words.split_whitespace().collect();
        let (src, dst, bytes, start) = match words[..] {
            [src, dst, _, port, bytes, start] if !is_older(port, bytes, start) => (src, dst, bytes, start),
            [src, dst, _, bytes, start] => (src, dst, bytes, start),
            [_, _, _, packets, _, _] => {
                let what =
                    format!("a flow of {packets} packets from a start to a stop, as in older files, is not read");
                return Err(at_line(line, &what, shape));
            }
            _ => return Err(at_line(line, &format!("has {} words", words.len()), shape)),
        };
        priorities.insert(words[2]);
        ports.extend(words.get(3).filter(|_| words.len() == 6));
        flows.push(Traced {
            line,
            row: false,
            id: None,
            src: src.to_string(),
            dst: dst.to_string(),
            size_bytes: Some(size(line, &quantity(bytes))?),
            start_ns: ns_from_json(&quantity(start)).map_err(|e| at_line(line, &e.what, shape))?,
            weight: 1.0,
            after: Vec::new(),
            needed: None,
        });
    }
    if flows.len() < count {
        let what = format!("{count} flows are announced, {} follow", flows.len());
        return Err(at_line(head, &what, "give the number of the lines that follow"));
    }
    notes.extend(hpcc::behind(lines.count(), "flows"));
    for (what, numbers) in [("priorities", priorities), ("ports", ports)] {
        if numbers.len() > 1 {
            notes.push(format!("the flows have {} {what}, which are not read", numbers.len()));
        }
    }
    Ok(flows)
}

/// Whether a line has the columns of the simulator that preceded HPCC's: packets, start and stop in place of port,
/// bytes and start.
fn is_older(port: &str, bytes: &str, start: &str) -> bool {
    const LARGEST_PORT: f64 = 65535.0;
    let number = |text: &str| text.parse::<f64>().ok();
    let is_time = |text: &str| text.contains('.');
    let before = number(bytes).zip(number(start)).is_some_and(|(start, stop)| start <= stop);
    number(port).is_some_and(|port| port > LARGEST_PORT) || is_time(bytes) && is_time(start) && before
}

/// The number in the line `Nodes N` of a connection matrix.
fn htsim_nodes(text: &str) -> Option<usize> {
    text.lines().find_map(|line| line.trim().strip_prefix("Nodes ")?.trim().parse().ok())
}

fn from_htsim(text: &str, notes: &mut Vec<String>) -> Result<Vec<Traced>, InputError> {
    let mut flows: Vec<Traced> = Vec::new();
    // `fires`: flows whose end fires each trigger; `waits`: trigger that each flow waits for.
    let (mut fires, mut waits): (HashMap<u64, Vec<FlowId>>, Vec<Option<u64>>) = (HashMap::new(), Vec::new());
    let mut announced = None;
    let (mut announced_triggers, mut triggers) = (None, Triggers::default());
    for (k, row) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = k as u64 + 1;
        let row = row.split('#').next().unwrap_or_default().trim();
        let words: Vec<&str> = row.split_whitespace().collect();
        let Some((src, dst)) = words.first().and_then(|w| w.split_once("->")) else {
            match words.first() {
                Some(&"Connections") => {
                    announced = words.get(1).and_then(|count| count.parse::<usize>().ok());
                    continue;
                }
                Some(&"Triggers") => {
                    announced_triggers = words.get(1).and_then(|count| count.parse::<usize>().ok());
                    continue;
                }
                Some(&"trigger") => {
                    triggers.add(line, &words[1..])?;
                    continue;
                }
                Some(&"Failures") if words.get(1).is_some_and(|count| *count != "0") => {
                    let hint = "remove them, and give the spec a [[fault]] of kind \"down\" for each";
                    return Err(at_line(line, "failures of links are not read", hint));
                }
                None | Some(&"Nodes" | &"Failures") => continue,
                Some(word) => {
                    let what = format!("{} begins no line of a connection matrix", quoted(word));
                    return Err(at_line(line, &what, "a connection is: src->dst id I start PICOSECONDS size BYTES"));
                }
            }
        };
        let mut value: HashMap<&str, u64> = HashMap::new();
        for pair in words[1..].chunks(2) {
            let number = pair.get(1).and_then(|v| v.parse().ok());
            let number = number.ok_or_else(|| {
                at_line(line, &format!("{} has no whole number", quoted(pair[0])), "give one behind each word")
            })?;
            if !CONNECTION.contains(&pair[0]) {
                let what = unknown_word(pair[0], "word of a connection", CONNECTION);
                return Err(at_line(line, &what.what, &what.hint));
            }
            if value.insert(pair[0], number).is_some() {
                return Err(at_line(line, &format!("{} is there twice", quoted(pair[0])), "say it once"));
            }
        }
        let bytes = *value.get("size").ok_or_else(|| at_line(line, "there is no size", "give size and bytes"))?;
        let flow = FlowId::from_index(flows.len());
        for key in ["send_done_trigger", "recv_done_trigger"] {
            if let Some(&trigger) = value.get(key) {
                fires.entry(trigger).or_default().push(flow);
            }
        }
        waits.push(value.get("trigger").copied());
        let start_ns = match (value.get("start"), value.get("trigger")) {
            (Some(_), Some(_)) => {
                let hint = "leave one of them away; htsim refuses both, or drops the start";
                return Err(at_line(line, "the connection has a start and a trigger", hint));
            }
            (Some(ps), None) => ps / 1000,
            (None, Some(_)) => 0,
            (None, None) => return Err(at_line(line, "there is no start", "give start and picoseconds, or a trigger")),
        };
        flows.push(Traced {
            line,
            row: false,
            id: value.get("id").map(u64::to_string),
            src: src.to_string(),
            dst: dst.to_string(),
            // In htsim a connection of size 0 sends forever.
            size_bytes: if bytes == 0 { None } else { Some(size(line, &bytes.into())?) },
            start_ns,
            weight: 1.0,
            after: Vec::new(),
            needed: None,
        });
        if flows.len() > MOST_FLOWS {
            return Err(too_many());
        }
    }
    if let Some(count) = announced.filter(|count| *count != flows.len()) {
        notes.push(format!("{count} connections are announced, and {} follow: all that follow are read", flows.len()));
    }
    if let Some(count) = announced_triggers.filter(|count| *count != triggers.0.len()) {
        let listed = triggers.0.len();
        notes.push(format!("{count} triggers are announced, and {listed} follow: those of the connections are used"));
    }
    let firing = |trigger: &u64| fires.get(trigger).map_or(0, Vec::len);
    let waiting: Vec<u64> = waits.iter().flatten().copied().collect();
    notes.extend(triggers.notes(&waiting, firing));
    let fired: BTreeSet<u64> = fires.keys().copied().filter(|trigger| !waiting.contains(trigger)).collect();
    notes.extend(first_of(fired.iter().map(|id| format!("no connection waits for trigger {id}, which others fire"))));
    let endless: Vec<bool> = flows.iter().map(|flow| flow.size_bytes.is_none()).collect();
    let mut started: HashMap<u64, u32> = HashMap::new();
    for (flow, trigger) in flows.iter_mut().zip(waits) {
        let Some(trigger) = trigger else { continue };
        flow.after = fires.get(&trigger).cloned().ok_or_else(|| {
            at_line(
                flow.line,
                &format!("nothing fires trigger {trigger}"),
                "let a connection have it as send_done_trigger",
            )
        })?;
        if flow.after.iter().any(|before| endless[before.index()]) {
            let what = format!("trigger {trigger} is fired by a connection of size 0, which has no end");
            return Err(at_line(flow.line, &what, "give that connection a size"));
        }
        let before = started.entry(trigger).or_default();
        flow.needed = match triggers.0.get(&trigger) {
            Some(TriggerKind::OneShot) => Some(1),
            Some(TriggerKind::MultiShot) => Some(*before + 1),
            Some(TriggerKind::Barrier(_)) | None => None,
        };
        *before += 1;
    }
    Ok(flows)
}

/// When a trigger of htsim starts the connections that wait for it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum TriggerKind {
    /// All of them at the first end of a connection that fires it.
    OneShot,
    /// One of them at each end of a connection that fires it, in the order of the file.
    MultiShot,
    /// All of them once it has been fired this often.
    Barrier(Option<u64>),
}

/// The triggers that have a line of their own.
#[derive(Debug, Default)]
struct Triggers(BTreeMap<u64, TriggerKind>);

impl Triggers {
    /// Reads a line `trigger id ID oneshot`, `multishot` or `barrier count COUNT`, without its first word.
    fn add(&mut self, line: u64, words: &[&str]) -> Result<(), InputError> {
        const SHAPE: &str = "a trigger is: trigger id ID, then oneshot, multishot, or barrier count COUNT";
        let (mut id, mut kind, mut count) = (None, None, None);
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            let twice = match word {
                "id" => id.replace(words.next().and_then(|number| number.parse::<u64>().ok())).is_some(),
                "count" => count.replace(words.next().and_then(|number| number.parse::<u64>().ok())).is_some(),
                "oneshot" => kind.replace(TriggerKind::OneShot).is_some(),
                "multishot" => kind.replace(TriggerKind::MultiShot).is_some(),
                "barrier" => kind.replace(TriggerKind::Barrier(None)).is_some(),
                other => {
                    let known = ["id", "count", "oneshot", "multishot", "barrier"];
                    let what = unknown_word(other, "word of a trigger", &known);
                    return Err(at_line(line, &what.what, &what.hint));
                }
            };
            if twice {
                return Err(at_line(line, "the trigger has two ids, kinds or counts", SHAPE));
            }
        }
        let id = id.flatten().ok_or_else(|| at_line(line, "the trigger has no id", SHAPE))?;
        let kind = match (kind, count) {
            (None, _) => return Err(at_line(line, "the trigger has no kind", SHAPE)),
            (Some(TriggerKind::Barrier(_)), count) => TriggerKind::Barrier(count.flatten()),
            (Some(_), Some(_)) => return Err(at_line(line, "only a barrier has a count", SHAPE)),
            (Some(kind), None) => kind,
        };
        if self.0.insert(id, kind).is_some() {
            let what = format!("trigger {id} is there twice");
            return Err(at_line(line, &what, "give every trigger one line"));
        }
        Ok(())
    }

    /// Notes on triggers whose firing may surprise. `waits`: trigger of each connection that waits for one; `firing`:
    /// number of connections that fire a trigger.
    fn notes(&self, waits: &[u64], firing: impl Fn(&u64) -> usize) -> Vec<String> {
        let mut notes = Vec::new();
        let counts = |(&id, &kind): (&u64, &TriggerKind)| match kind {
            TriggerKind::Barrier(Some(count)) if count != firing(&id) as u64 => Some(format!(
                "trigger {id} counts {count} connections, and {} fire it: it waits for these",
                firing(&id)
            )),
            _ => None,
        };
        notes.extend(first_of(self.0.iter().filter_map(counts)));
        let early = |(&id, &kind): (&u64, &TriggerKind)| {
            (kind == TriggerKind::OneShot && firing(&id) > 1).then(|| {
                format!(
                    "trigger {id} is a oneshot, and {} connections fire it: it fires when the first of them ends",
                    firing(&id)
                )
            })
        };
        notes.extend(first_of(self.0.iter().filter_map(early)));
        let never = |(&id, &kind): (&u64, &TriggerKind)| {
            let waiting = waits.iter().filter(|&&trigger| trigger == id).count();
            (kind == TriggerKind::MultiShot && waiting > firing(&id)).then(|| {
                format!(
                    "trigger {id} is a multishot, which starts one connection each time it is fired: {} fire it and {waiting} \
                     wait for it, so that {} never start",
                    firing(&id),
                    waiting - firing(&id)
                )
            })
        };
        notes.extend(first_of(self.0.iter().filter_map(never)));
        let unknown: BTreeSet<u64> = waits.iter().copied().filter(|trigger| !self.0.contains_key(trigger)).collect();
        let unknown = unknown.iter().map(|id| {
            format!(
                "trigger {id} has no line that says its kind: it waits for all {} connections that fire it",
                firing(id)
            )
        });
        notes.extend(first_of(unknown));
        notes
    }
}

/// The first of the notes, with the number of the others.
fn first_of(mut notes: impl Iterator<Item = String>) -> Option<String> {
    let first = notes.next()?;
    Some(match notes.count() {
        0 => first,
        n => format!("{first}; more such triggers: {n}"),
    })
}

/// Keywords of a connection, each followed by a number.
const CONNECTION: &[&str] = &["id", "start", "size", "trigger", "send_done_trigger", "recv_done_trigger"];

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
