//! Reads results from before 0.1.0, in which a trial is called a cell, under the new names.

use arrow_array::RecordBatch;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const OLD: &str = "cell";
const NEW: &str = "trial";

/// Folder of the trials' tables in the results directory `dir`, under its new or old name.
pub(crate) fn trials(dir: &Path) -> PathBuf {
    let (new, old) = (dir.join("trials"), dir.join("cells"));
    if !new.exists() && old.exists() { old } else { new }
}

/// Former name of column `name`, if it was renamed.
pub(crate) fn old_column(name: &str) -> Option<&'static str> {
    (name == NEW).then_some(OLD)
}

/// `batch` with the new column names.
pub(crate) fn batch(batch: RecordBatch) -> RecordBatch {
    let schema = batch.schema();
    if schema.index_of(NEW).is_ok() || schema.index_of(OLD).is_err() {
        return batch;
    }
    let field = |field: &Arc<arrow_schema::Field>| {
        if field.name() == OLD { Arc::new(field.as_ref().clone().with_name(NEW)) } else { field.clone() }
    };
    let fields: Vec<_> = schema.fields().iter().map(field).collect();
    let renamed = Arc::new(arrow_schema::Schema::new_with_metadata(fields, schema.metadata().clone()));
    RecordBatch::try_new(renamed, batch.columns().to_vec()).unwrap_or(batch)
}

/// The manifest with the new key names.
pub(crate) fn manifest(told: Map<String, Value>) -> Map<String, Value> {
    if told.contains_key("trials") || !told.get("cells").is_some_and(Value::is_array) {
        return told;
    }
    let rename = |map: Map<String, Value>, names: &[(&str, &str)]| -> Map<String, Value> {
        let new = |key: String| names.iter().find(|(old, _)| *old == key).map_or(key, |(_, new)| (*new).to_string());
        map.into_iter().map(|(key, value)| (new(key), value)).collect()
    };
    let mut told = rename(told, &[("cells", "trials"), ("settings", "sweep_points")]);
    for (list, names) in [("trials", [(OLD, NEW)]), ("warnings", [("cells", "trials")])] {
        for entry in told.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(map) = entry {
                *map = rename(std::mem::take(map), &names);
            }
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{StringArray, UInt64Array};
    use serde_json::json;

    #[test]
    fn an_old_manifest_has_the_new_names() {
        let old = json!({
            "cells": [{"cell": 0, "status": "complete"}],
            "settings": [{"axes": {}}],
            "warnings": [{"kind": "slow-link", "cells": [0]}],
        });
        let new = json!({
            "trials": [{"trial": 0, "status": "complete"}],
            "sweep_points": [{"axes": {}}],
            "warnings": [{"kind": "slow-link", "trials": [0]}],
        });
        let read = |told: &Value| Value::Object(manifest(told.as_object().unwrap().clone()));
        assert_eq!(read(&old), new);
        assert_eq!(read(&new), new);
    }

    #[test]
    fn an_old_column_has_the_new_name_and_others_stay() {
        let columns: Vec<(&str, arrow_array::ArrayRef)> =
            vec![("cell", Arc::new(UInt64Array::from(vec![3]))), ("kind", Arc::new(StringArray::from(vec!["flow"])))];
        let read = batch(RecordBatch::try_from_iter(columns).unwrap());
        assert_eq!(read.schema().fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>(), ["trial", "kind"]);
        assert_eq!(batch(read.clone()), read);
    }
}
