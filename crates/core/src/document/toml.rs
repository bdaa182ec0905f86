//! TOML parser: the same values as JSON, so dates and infinite numbers are errors.

use super::{line_and_column, place_of, shortened};
use crate::InputError;
use serde_json::{Map, Number, Value};

/// Largest size of a document, bytes. The parser needs about 40 times this memory, and takes seconds for larger ones.
const MOST_BYTES: usize = 4 << 20;

/// Parses `text`.
pub fn parse(text: &str) -> Result<Value, InputError> {
    if text.len() > MOST_BYTES {
        let what = format!("the document has {} bytes", text.len());
        return Err(InputError::new("", what, "write so much as JSON: TOML is read up to 4 MiB"));
    }
    let body = text.trim_start_matches('\u{feff}');
    match toml::from_str::<toml::Table>(body) {
        Ok(table) => table_to_json(table),
        Err(error) => {
            let place = error.span().map_or(String::new(), |span| line_and_column(body, span.start));
            let hint = match error.message().contains("duplicate key") {
                true => "give it once; a table that comes several times is written [[scheme]], [[fault]]",
                false => "write the document as TOML has it",
            };
            Err(InputError::new(place, shortened(error.message()), hint))
        }
    }
}

fn table_to_json(table: toml::Table) -> Result<Value, InputError> {
    let entry = |(key, value): (String, toml::Value)| {
        let value = to_json(value).map_err(|e: InputError| e.below(&place_of(&key)))?;
        Ok((key, value))
    };
    table.into_iter().map(entry).collect::<Result<Map<_, _>, _>>().map(Value::Object)
}

fn to_json(value: toml::Value) -> Result<Value, InputError> {
    Ok(match value {
        toml::Value::String(x) => Value::String(x),
        toml::Value::Integer(x) => Value::from(x),
        toml::Value::Boolean(x) => Value::Bool(x),
        toml::Value::Float(x) => Number::from_f64(x).map(Value::Number).ok_or_else(|| {
            InputError::new("", format!("the value is {x}"), "give a finite number, or leave the key away")
        })?,
        toml::Value::Datetime(x) => {
            return Err(InputError::new(
                "",
                format!("the value is a date, {x}"),
                "write it in double quotes if text is meant",
            ));
        }
        toml::Value::Array(items) => {
            let item = |(i, item)| to_json(item).map_err(|e| e.below(&format!("[{i}]")));
            Value::Array(items.into_iter().enumerate().map(item).collect::<Result<_, _>>()?)
        }
        toml::Value::Table(table) => table_to_json(table)?,
    })
}
