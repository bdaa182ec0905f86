//! Flows in Parquet, as pandas and others write it.

use super::{MOST_FLOWS, RowErrors, Traced, from_csv};
use ::parquet::file::metadata::KeyValue;
use bytes::Bytes;
use serde_json::Value;
use std::sync::Arc;
use subak_core::InputError;
use subak_core::quantity::{ns_from_json, quoted};

/// Reads Parquet: each value is converted to text, and the text is read as CSV.
pub(super) fn from_parquet(file: Vec<u8>, wrong: &mut RowErrors) -> Result<Vec<Traced>, InputError> {
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
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::Field;
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
    use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use arrow_schema::{DataType, TimeUnit};
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
