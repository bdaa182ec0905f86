//! The flows of a case in a file of their own: a table of flows, or a matrix of demands between nodes.
//!
//! - CSV with the columns `src` and `dst`, and optionally `id`, `demand`, `weight`, `size`, `deadline`, `subflows`: one
//!   row per flow.
//! - Any other CSV: a traffic matrix. The first row names the destinations, the first column the sources. An empty cell
//!   or 0 means no flow.
//! - Demands of SNDlib (`.xml`, `.txt`) and REPETITA (`.demands`).
//! - JSON: a list of flows, in the format of a case's `flows`.
//! - Parquet or Arrow IPC: a table of flows. The calling program decodes the file into columns.
//!
//! A demand without a unit is in bit/s, or in the `unit` that the case states beside the file's name. `subflows` beside it
//! is that of each flow without its own.

use super::{repetita, sndlib};
use crate::InputError;
use crate::document::{check_keys, json, nearest, table, text};
use crate::quantity::quoted;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::HashMap;

/// The columns of a table of flows.
pub(crate) const COLUMNS: [&str; 8] = ["id", "src", "dst", "demand", "weight", "size", "deadline", "subflows"];

/// Error for a `unit` of demands where no flow has a demand.
pub(crate) fn no_demands() -> InputError {
    InputError::new("unit", "the flows have no demand", "remove unit, or give a column demand")
}

/// Appends the unit to a demand that is a plain number.
pub(crate) fn in_unit(demand: Value, unit: Option<&str>) -> Value {
    match (&demand, unit) {
        (Value::Number(number), Some(unit)) => Value::from(format!("{number}{unit}")),
        _ => demand,
    }
}

/// Names of the columns of sources and destinations, `src` and `dst` and what others write for them.
const ENDS: [&[&str]; 2] =
    [&["src", "source", "from", "sender", "origin"], &["dst", "destination", "dest", "to", "target", "receiver"]];

/// An error if `headers` have columns of sources and destinations under other names than `src` and `dst`. A matrix, whose
/// nodes may have these names, leaves its first cell empty.
fn check_ends(headers: &[String]) -> Result<(), InputError> {
    let named = |names: &[&str]| headers.iter().find(|h| names.contains(&h.to_lowercase().as_str()));
    let (Some(src), Some(dst)) = (named(ENDS[0]), named(ENDS[1])) else { return Ok(()) };
    if headers[0].is_empty() || (src == "src" && dst == "dst") {
        return Ok(());
    }
    let what = format!("the columns {} and {} are not those of a table of flows", quoted(src), quoted(dst));
    Err(at(1, what, "call them \"src\" and \"dst\"; a matrix leaves its first cell empty"))
}

/// An error if the columns are separated by another character than a comma, or if the first line is a comment.
pub fn separator(headers: &csv::StringRecord) -> Result<(), InputError> {
    if headers.get(0).is_some_and(|first| first.starts_with('#')) {
        let hint = "remove it: the first line has the names of the columns";
        return Err(InputError::new("", "the first line is a comment", hint));
    }
    let [only] = headers.iter().collect::<Vec<_>>()[..] else { return Ok(()) };
    let found = [(';', "a semicolon"), ('\t', "a tab"), ('|', "a bar"), (' ', "blanks")]
        .into_iter()
        .find(|(c, _)| only.contains(*c));
    found.map_or(Ok(()), |(_, name)| {
        Err(InputError::new("", format!("the columns are separated by {name}"), "separate them by commas"))
    })
}

/// `case` with `flows = {file = PATH}` replaced by the list of flows in that file.
pub fn resolved<'a>(
    case: &'a Value,
    read_file: &mut dyn FnMut(&str) -> Result<String, InputError>,
) -> Result<Cow<'a, Value>, InputError> {
    let (Value::Object(map), Some(given @ Value::Object(_))) = (case, case.get("flows")) else {
        return Ok(Cow::Borrowed(case));
    };
    let mut flows = read(given, read_file).map_err(|e| e.below("flows"))?;
    for flow in flows.iter_mut().filter_map(Value::as_object_mut) {
        if let Some(subflows) = given.get("subflows") {
            flow.entry("subflows").or_insert_with(|| subflows.clone());
        }
    }
    let mut map = map.clone();
    map.insert("flows".to_string(), Value::Array(flows));
    Ok(Cow::Owned(Value::Object(map)))
}

/// Whether `flows` in the JSON `source` may be a table: a quick test without parsing, which only rules out a list.
pub fn may_be_a_table(source: &str) -> bool {
    let mut rest = source;
    while let Some(at) = rest.find("\"flows\"") {
        rest = &rest[at + 7..];
        let value = rest.trim_start().strip_prefix(':').map(str::trim_start);
        if value.is_some_and(|v| v.starts_with('{')) {
            return true;
        }
    }
    false
}

/// A reader of a file's demands, in a unit.
type ReadDemands = fn(&str, Option<&str>) -> Result<Vec<Value>, InputError>;

fn read(
    given: &Value,
    read_file: &mut dyn FnMut(&str) -> Result<String, InputError>,
) -> Result<Vec<Value>, InputError> {
    let map = table(given, "the flows", "{\"file\": PATH}")?;
    check_keys(map, &["file", "unit", "subflows"])?;
    let (path, unit) = named(map)?;
    let name = path.to_lowercase();
    if name.ends_with(".csv") {
        let contents = read_file(path).map_err(|e| e.below("file"))?;
        return used(from_csv(&contents, unit).map_err(|e| e.in_file(path))?, path, unit);
    }
    let reader: Option<ReadDemands> = match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "demands" => Some(repetita::demands),
        "xml" | "txt" => Some(sndlib::demands),
        _ => None,
    };
    if let Some(demands) = reader {
        let contents = read_file(path).map_err(|e| e.below("file"))?;
        return used(demands(&contents, unit).map_err(|e| e.in_file(path))?, path, None);
    }
    if !name.ends_with(".json") {
        let what = format!("what {} holds does not follow from its name", quoted(path));
        let hint = "name a .csv (a table or a matrix), a .parquet or .arrow (a table), a .json (a list), a .xml or .txt (SNDlib) or a \
                    .demands (REPETITA)";
        return Err(InputError::new("file", what, hint));
    }
    let contents = read_file(path).map_err(|e| e.below("file"))?;
    match json::parse(&contents).map_err(|e| e.in_file(path))? {
        Value::Array(mut flows) => {
            for demand in flows.iter_mut().filter_map(|flow| flow.get_mut("demand")) {
                *demand = in_unit(demand.take(), unit);
            }
            used(flows, path, unit)
        }
        _ => Err(InputError::new("", "it holds no list", "write the flows as a list").in_file(path)),
    }
}

/// Checks the flows of a file: an error if there is none, or if `unit` is given and no flow has a demand.
fn used(flows: Vec<Value>, path: &str, unit: Option<&str>) -> Result<Vec<Value>, InputError> {
    if flows.is_empty() {
        let hint = "give a row for each flow, or a matrix with a demand above 0";
        return Err(InputError::new("", "the file has no flows", hint).in_file(path));
    }
    if unit.is_some() && flows.iter().all(|flow| flow.get("demand").is_none()) {
        return Err(no_demands());
    }
    Ok(flows)
}

/// File name and unit of demands in the table `flows`.
fn named(map: &Map<String, Value>) -> Result<(&str, Option<&str>), InputError> {
    let file = map.get("file").ok_or_else(|| {
        InputError::new(
            "file",
            "it is missing",
            "name a CSV, Parquet, Arrow or JSON file, or write the flows as a list",
        )
    })?;
    let path = text(file, "the file of flows").map_err(|e| e.below("file"))?;
    let unit = map.get("unit").map(|unit| text(unit, "the unit")).transpose().map_err(|e| e.below("unit"))?;
    Ok((path, unit))
}

/// Path and unit in the table `flows`, if the path is that of a file in columns (Parquet or Arrow); `None` otherwise.
pub fn of_columns(case: &Value) -> Result<Option<(&str, Option<&str>)>, InputError> {
    let Some(map) = case.get("flows").and_then(Value::as_object) else { return Ok(None) };
    let Ok((path, unit)) = named(map) else { return Ok(None) };
    let name = path.to_lowercase();
    if ![".parquet", ".arrow", ".feather"].iter().any(|end| name.ends_with(end)) {
        return Ok(None);
    }
    if map.contains_key("subflows") {
        let what = "a file of columns has its own number of subflows";
        return Err(InputError::new("flows.subflows", what, "give the file a column \"subflows\""));
    }
    check_keys(map, &["file", "unit"]).map_err(|e| e.below("flows"))?;
    Ok(Some((path, unit)))
}

fn at(line: u64, what: impl Into<String>, hint: &str) -> InputError {
    InputError::new(format!("line {line}"), what, hint)
}

fn from_csv(contents: &str, unit: Option<&str>) -> Result<Vec<Value>, InputError> {
    let body = contents.trim_start_matches('\u{feff}');
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(body.as_bytes());
    let bad = |e: csv::Error| {
        let line = e.position().map_or(1, csv::Position::line);
        at(line, format!("is no row of the table: {e}"), "give every row the columns of the first")
    };
    let headers: Vec<String> = reader.headers().map_err(bad)?.iter().map(str::to_string).collect();
    separator(reader.headers().map_err(bad)?).map_err(|e| at(1, e.what, &e.hint))?;
    check_ends(&headers)?;
    let rows = ["src", "dst"].iter().all(|end| headers.iter().any(|h| h == end));
    if let Some(unknown) = headers.iter().find(|h| rows && !COLUMNS.contains(&h.as_str())) {
        let what = format!("unknown column {}", quoted(unknown));
        let near = nearest(unknown, &COLUMNS).map_or(String::new(), |near| format!("did you mean \"{near}\"? "));
        return Err(at(1, what, &format!("{near}the columns are {}", COLUMNS.join(", "))));
    }
    if let [first, others @ ..] = &headers[..]
        && first == "dst"
        && !others.iter().any(|h| COLUMNS.contains(&h.as_str()))
    {
        let hint =
            "exchange rows and columns, and leave the first cell empty; or give a table of flows a column \"src\"";
        return Err(at(1, "the first column is headed \"dst\", and that of a matrix holds the sources", hint));
    }
    // A matrix may have its sources anywhere in the first column; a table of flows without `src` or `dst` has other
    // known columns.
    let first = usize::from(headers.first().is_some_and(|h| h == "src"));
    if let Some(known) = headers.iter().skip(first).find(|h| !rows && COLUMNS.contains(&h.as_str()) && *h != "id") {
        let what = format!("there is a column {}, and no column \"src\" or \"dst\"", quoted(known));
        return Err(at(1, what, "give a table of flows both, or a matrix the names of nodes"));
    }
    if let Some(twice) = headers.iter().enumerate().find(|(k, h)| headers[..*k].contains(h) && !h.is_empty()) {
        let what = format!("the column {} is there twice", quoted(twice.1));
        return Err(at(1, what, "leave one of them away"));
    }
    let mut flows = Vec::new();
    let mut sources: HashMap<String, u64> = HashMap::new();
    for record in reader.records() {
        let record = record.map_err(bad)?;
        let line = record.position().map_or(0, csv::Position::line);
        if rows {
            flows.push(row(line, &headers, &record, unit)?);
        } else {
            let src = record.get(0).unwrap_or_default();
            if let Some(first) = sources.insert(src.to_string(), line) {
                let what = format!("the row of {} is there twice, first in line {first}", quoted(src));
                return Err(at(line, what, "leave one of them away"));
            }
            matrix_row(line, &headers, &record, unit, &mut flows)?;
        }
    }
    Ok(flows)
}

fn row(line: u64, headers: &[String], record: &csv::StringRecord, unit: Option<&str>) -> Result<Value, InputError> {
    let mut flow = Map::new();
    for (name, cell) in headers.iter().zip(record.iter()).filter(|(_, cell)| !cell.is_empty()) {
        let value = match name.as_str() {
            "id" | "src" | "dst" => Value::from(cell),
            "demand" => demand(cell, unit),
            _ => plain(cell),
        };
        flow.insert(name.clone(), value);
    }
    for end in ["src", "dst"] {
        if !flow.contains_key(end) {
            return Err(at(line, format!("\"{end}\" is empty"), "give both ends"));
        }
    }
    Ok(Value::Object(flow))
}

fn matrix_row(
    line: u64,
    headers: &[String],
    record: &csv::StringRecord,
    unit: Option<&str>,
    flows: &mut Vec<Value>,
) -> Result<(), InputError> {
    let src = record.get(0).unwrap_or_default();
    for (dst, cell) in headers.iter().zip(record.iter()).skip(1).filter(|(_, cell)| !cell.is_empty()) {
        if cell.parse::<f64>() == Ok(0.0) {
            continue;
        }
        if dst == src {
            return Err(at(line, format!("a demand from {} to itself", quoted(src)), "leave the diagonal empty or 0"));
        }
        flows.push(json!({"id": format!("{src}->{dst}"), "src": src, "dst": dst, "demand": demand(cell, unit)}));
    }
    Ok(())
}

fn plain(cell: &str) -> Value {
    match (cell.parse::<u64>(), cell.parse::<f64>()) {
        (Ok(whole), _) => Value::from(whole),
        (_, Ok(number)) if number.is_finite() => Value::from(number),
        _ => Value::from(cell),
    }
}

/// Appends the unit to a demand that is a plain number.
fn demand(cell: &str, unit: Option<&str>) -> Value {
    match (plain(cell), unit) {
        (Value::Number(number), Some(unit)) => Value::from(format!("{number}{unit}")),
        (value, _) => value,
    }
}
