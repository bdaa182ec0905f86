//! Reads results tables.

use crate::error::Error;
use crate::files;
use crate::results::{footer, renamed};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use subak_core::InputError;

/// A directory of results, of all trials or of those that are complete so far.
pub(crate) struct Results {
    pub manifest: Map<String, Value>,
    tables: Vec<PathBuf>,
}

impl Results {
    /// Opens the results in `dir`; refuses a directory where no trial is complete.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let manifest = read_manifest(dir)?;
        let merged = dir.join("results.parquet");
        let tables = if merged.exists() { vec![merged] } else { complete_trials(dir, &manifest) };
        if tables.is_empty() {
            let fault =
                InputError::new("", "no trial of the run is complete", "resume it with `subak run` and the same --out");
            return Err(fault.in_file(dir.display().to_string()).into());
        }
        Ok(Results { manifest, tables })
    }

    pub fn name(&self) -> &str {
        self.manifest.get("name").and_then(Value::as_str).unwrap_or("run")
    }

    /// Passes the rows of all tables to `each` in batches, in order. `columns`: columns to read; `None`: all.
    pub fn batches(
        &self,
        columns: Option<&[&str]>,
        mut each: impl FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.tables.iter().try_for_each(|path| table_in(path, columns, &mut each))
    }
}

/// The manifest of a directory of results.
pub(crate) fn read_manifest(dir: &Path) -> Result<Map<String, Value>, Error> {
    let path = dir.join("manifest.json");
    let text = files::read_text(&path)?;
    match serde_json::from_str(&text) {
        Ok(Value::Object(map)) => Ok(renamed::manifest(map)),
        _ => Err(InputError::new("", "is no manifest of results", "give a directory that `subak run` wrote")
            .in_file(path.display().to_string())
            .into()),
    }
}

/// Passes the rows of the table in `path` to `each` in batches, in order. `columns`: columns to read; `None`: all.
pub(crate) fn table_in(
    path: &Path,
    columns: Option<&[&str]>,
    mut each: impl FnMut(&RecordBatch) -> Result<(), Error>,
) -> Result<(), Error> {
    let broken = |e: &dyn std::fmt::Display| Error::file(path, io::Error::other(e.to_string()));
    let file = File::open(path).map_err(|e| Error::file(path, e))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| broken(&e))?;
    let mask = match columns {
        None => ProjectionMask::all(),
        Some(names) => {
            let old = names.iter().filter_map(|name| renamed::old_column(name));
            ProjectionMask::columns(builder.parquet_schema(), names.iter().copied().chain(old))
        }
    };
    let reader = builder.with_projection(mask).with_batch_size(1 << 14).build().map_err(|e| broken(&e))?;
    for batch in reader {
        each(&renamed::batch(batch.map_err(|e| broken(&e))?))?;
    }
    Ok(())
}

/// Tables of complete trials, by the manifest or by their own metadata. The manifest may be out of date if several
/// processes run trials of the spec in `dir`.
fn complete_trials(dir: &Path, manifest: &Map<String, Value>) -> Vec<PathBuf> {
    let hash = manifest.get("spec_sha256").and_then(Value::as_str);
    let complete = |c: &Value| {
        let number = c.get("trial").and_then(Value::as_u64)?;
        let path = renamed::trials(dir).join(format!("{number}.parquet"));
        let is = c.get("status").and_then(Value::as_str) == Some("complete") && path.exists();
        (is || hash.is_some_and(|hash| footer::is_of_spec(&path, hash))).then_some(path)
    };
    manifest.get("trials").and_then(Value::as_array).into_iter().flatten().filter_map(complete).collect()
}

/// Function from a row to its value in an integer column; always `None` if the batch lacks the column.
pub(crate) fn whole<'a>(batch: &'a RecordBatch, name: &str) -> impl Fn(usize) -> Option<u64> + 'a {
    let column = batch.column_by_name(name).and_then(|c| c.as_primitive_opt::<UInt64Type>());
    move |i| column.filter(|c| c.is_valid(i)).map(|c| c.value(i))
}

/// Function from a row to its value in a column of doubles; always `None` if the batch lacks the column.
pub(crate) fn number<'a>(batch: &'a RecordBatch, name: &str) -> impl Fn(usize) -> Option<f64> + 'a {
    let column = batch.column_by_name(name).and_then(|c| c.as_primitive_opt::<Float64Type>());
    move |i| column.filter(|c| c.is_valid(i)).map(|c| c.value(i))
}

/// Function from a row to its value in a text column; always `None` if the batch lacks the column.
pub(crate) fn text<'a>(batch: &'a RecordBatch, name: &str) -> impl Fn(usize) -> Option<&'a str> + 'a {
    let column = batch.column_by_name(name).and_then(|c| c.as_string_opt::<i32>());
    move |i| column.filter(|c| c.is_valid(i)).map(|c| c.value(i))
}

/// Function from a row to its value in a Boolean column; always `None` if the batch lacks the column.
pub(crate) fn flag<'a>(batch: &'a RecordBatch, name: &str) -> impl Fn(usize) -> Option<bool> + 'a {
    let column = batch.column_by_name(name).and_then(|c| c.as_boolean_opt());
    move |i| column.filter(|c| c.is_valid(i)).map(|c| c.value(i))
}

/// Value in row `i` as text; empty if it is null.
pub(crate) fn shown(column: &dyn Array, i: usize) -> String {
    if column.is_null(i) {
        String::new()
    } else if let Some(c) = column.as_primitive_opt::<UInt64Type>() {
        c.value(i).to_string()
    } else if let Some(c) = column.as_primitive_opt::<Float64Type>() {
        c.value(i).to_string()
    } else if let Some(c) = column.as_string_opt::<i32>() {
        c.value(i).to_string()
    } else {
        column.as_boolean_opt().map_or_else(String::new, |c| c.value(i).to_string())
    }
}
