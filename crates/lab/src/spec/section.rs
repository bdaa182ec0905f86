//! Reading the tables of a spec: each key is asked for once, and what nobody asked for is refused by name.

use serde_json::{Map, Value};
use subak_core::Fault;
use subak_core::document::unknown_key;
use subak_core::quantity::shown;

/// A table of a spec while it is read. Places in faults are relative to the table.
pub(crate) struct Section<'a> {
    map: &'a Map<String, Value>,
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// `value` as a table.
    pub fn of(value: &'a Value) -> Result<Self, Fault> {
        let map = value.as_object().ok_or_else(|| {
            Fault::new("", format!("{} is not a table", shown(value)), "give a table of keys and values")
        })?;
        Ok(Section { map, known: Vec::new() })
    }

    /// The table `map`.
    pub fn over(map: &'a Map<String, Value>) -> Self {
        Section { map, known: Vec::new() }
    }

    /// The value of `key`, if given.
    pub fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        self.map.get(key)
    }

    /// The value of `key` as `read` understands it, if given.
    pub fn opt<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&'a Value) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        self.get(key).map(|v| read(v).map_err(|e| e.below(key))).transpose()
    }

    /// The value of `key`, which must be there; `mend` says what to give.
    pub fn need<T>(
        &mut self,
        key: &'static str,
        mend: &str,
        read: impl FnOnce(&'a Value) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.opt(key, read)?.ok_or_else(|| Fault::new(key, format!("\"{key}\" is missing"), mend))
    }

    /// Refuses keys that were not asked for.
    pub fn finish(self) -> Result<(), Fault> {
        match self.map.keys().find(|k| !self.known.contains(&k.as_str())) {
            None => Ok(()),
            Some(key) => Err(unknown_key(key, &self.known)),
        }
    }
}

/// Text.
pub(crate) fn text(value: &Value) -> Result<&str, Fault> {
    value.as_str().ok_or_else(|| Fault::new("", format!("{} is not a text", shown(value)), "give a text in quotes"))
}

/// True or false.
pub(crate) fn flag(value: &Value) -> Result<bool, Fault> {
    value
        .as_bool()
        .ok_or_else(|| Fault::new("", format!("{} is neither true nor false", shown(value)), "give true or false"))
}

/// A list.
pub(crate) fn list(value: &Value) -> Result<&[Value], Fault> {
    let items = value.as_array();
    items.map(Vec::as_slice).ok_or_else(|| Fault::new("", format!("{} is not a list", shown(value)), "give a list"))
}

/// A whole number from `low` to `high`.
pub(crate) fn whole(value: &Value, low: u64, high: u64) -> Result<u64, Fault> {
    value.as_u64().filter(|n| (low..=high).contains(n)).ok_or_else(|| {
        Fault::new("", format!("{} is out of range", shown(value)), format!("give a whole number from {low} to {high}"))
    })
}

/// A number above `low` (or from it, if `closed`) up to and including `high`.
pub(crate) fn between(value: &Value, low: f64, closed: bool, high: f64) -> Result<f64, Fault> {
    let inside = |x: &f64| *x <= high && (*x > low || (closed && *x == low));
    value.as_f64().filter(inside).ok_or_else(|| {
        let above = if closed { "from" } else { "above" };
        let top = if high.is_finite() { format!(" up to {high}") } else { String::new() };
        Fault::new("", format!("{} is out of range", shown(value)), format!("give a number {above} {low}{top}"))
    })
}

/// Each item of a list as `read` understands it.
pub(crate) fn each<T>(value: &Value, mut read: impl FnMut(&Value) -> Result<T, Fault>) -> Result<Vec<T>, Fault> {
    let item = |(i, v)| read(v).map_err(|e: Fault| e.below(&format!("[{i}]")));
    list(value)?.iter().enumerate().map(item).collect()
}
