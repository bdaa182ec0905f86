//! Report of an experiment.

use crate::finite;
use serde_json::{Map, Value, json};

/// Setup, tables, series, values and notes, by name.
#[derive(Default)]
pub(crate) struct Report {
    setup: Map<String, Value>,
    tables: Map<String, Value>,
    series: Map<String, Value>,
    values: Map<String, Value>,
    notes: Vec<String>,
}

impl Report {
    /// Adds a parameter of the run to the setup.
    pub(crate) fn setup(&mut self, name: &str, value: impl Into<Value>) {
        self.setup.insert(name.into(), value.into());
    }

    pub(crate) fn table(&mut self, name: &str, columns: &[&str], rows: Vec<Value>) {
        self.tables.insert(name.into(), json!({"columns": columns, "rows": rows}));
    }

    pub(crate) fn series(&mut self, name: &str, series: Value) {
        self.series.insert(name.into(), series);
    }

    /// Adds an exact value: it is not estimated from random samples.
    pub(crate) fn value(&mut self, key: &str, value: impl Into<Value>) {
        self.values.insert(key.into(), value.into());
    }

    /// Adds the `statistic` (`median`, `p95`, `mean`, `max`) of `data`; `of` names the items, one value each.
    pub(crate) fn sample(&mut self, key: &str, statistic: &str, of: &str, data: &[f64]) {
        let data: Vec<Value> = data.iter().map(|x| finite(*x)).collect();
        self.value(key, json!({"statistic": statistic, "data": data, "of": of}));
    }

    /// Adds the ratio of the `statistic` of `data` to that of `over`. Both have one value per item, and `of` names
    /// the items.
    pub(crate) fn ratio(&mut self, key: &str, statistic: &str, of: &str, data: &[f64], over: &[f64]) {
        let [data, over] = [data, over].map(|side| side.iter().map(|x| finite(*x)).collect::<Vec<_>>());
        self.value(key, json!({"statistic": statistic, "data": data, "over": over, "of": of}));
    }

    /// Adds the fraction `hits` / `count`.
    pub(crate) fn share(&mut self, key: &str, of: &str, hits: usize, count: usize) {
        self.value(key, json!({"statistic": "share", "hits": hits, "count": count, "of": of}));
    }

    pub(crate) fn note(&mut self, note: &str) {
        self.notes.push(note.into());
    }

    pub(crate) fn into_json(self) -> Value {
        json!({
            "schema": 2,
            "setup": self.setup,
            "tables": self.tables,
            "series": self.series,
            "values": self.values,
            "notes": self.notes,
        })
    }
}
