//! Reading the tables of a spec: each key is asked for once, and what nobody asked for is refused by name. A key at fault
//! is noted, and the others are read all the same: whoever wrote the spec is told of every fault at once.

use serde_json::{Map, Value};
use subak_core::document::unknown_key;
use subak_core::quantity::shown;
use subak_core::{Fault, Faults};

/// A table of a spec while it is read. Places in faults are relative to the table.
pub(crate) struct Section<'a> {
    map: &'a Map<String, Value>,
    known: Vec<&'static str>,
    faults: Faults,
}

impl<'a> Section<'a> {
    /// `value` as a table.
    pub fn of(value: &'a Value) -> Result<Self, Fault> {
        let map = value.as_object().ok_or_else(|| {
            Fault::new("", format!("{} is not a table", shown(value)), "give a table of keys and values")
        })?;
        Ok(Section::over(map))
    }

    /// The table `map`.
    pub fn over(map: &'a Map<String, Value>) -> Self {
        Section { map, known: Vec::new(), faults: Faults::default() }
    }

    /// The value of `key`, if given.
    pub fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        self.map.get(key)
    }

    /// The value of `key` as `read` understands it, if given and sound.
    pub fn opt<T>(&mut self, key: &'static str, read: impl FnOnce(&'a Value) -> Result<T, Fault>) -> Option<T> {
        let value = self.get(key)?;
        self.faults.keep(read(value).map_err(|e| e.below(key)))
    }

    /// The value of `key`, which must be there; `mend` says what to give. Where it is at fault the rest is read with
    /// `stand_in`, and [`Section::end`] refuses the table.
    pub fn need<T>(
        &mut self,
        key: &'static str,
        mend: &str,
        stand_in: T,
        read: impl FnOnce(&'a Value) -> Result<T, Fault>,
    ) -> T {
        match self.get(key) {
            Some(value) => self.faults.keep(read(value).map_err(|e| e.below(key))).unwrap_or(stand_in),
            None => {
                self.note(Fault::new(key, format!("\"{key}\" is missing"), mend));
                stand_in
            }
        }
    }

    /// As [`Section::need`], where nothing else can be read without it.
    pub fn must<T>(
        &mut self,
        key: &'static str,
        mend: &str,
        read: impl FnOnce(&'a Value) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let value = self.get(key).ok_or_else(|| Fault::new(key, format!("\"{key}\" is missing"), mend))?;
        read(value).map_err(|e| e.below(key))
    }

    /// What came of a part, unless it is at fault.
    pub fn keep<T>(&mut self, part: Result<T, Fault>) -> Option<T> {
        self.faults.keep(part)
    }

    /// One more thing is wrong.
    pub fn note(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// What is wrong so far.
    pub fn faults(self) -> Fault {
        let none = || Fault::new("", "the table is at fault", "report this as a defect");
        self.faults.done().err().unwrap_or_else(none)
    }

    /// Whether nothing is wrong so far.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    /// How many things are wrong so far.
    pub fn wrong(&self) -> usize {
        self.faults.len()
    }

    /// What was `made` of the table, unless anything in it is wrong: keys that were not asked for too, if it was read to
    /// the end.
    pub fn end<T>(mut self, made: Result<T, Fault>) -> Result<T, Fault> {
        match made {
            Ok(made) => {
                let unknown = self.map.keys().filter(|k| !self.known.contains(&k.as_str()));
                unknown.for_each(|key| self.faults.push(unknown_key(key, &self.known)));
                self.faults.done().map(|()| made)
            }
            Err(fault) => {
                self.faults.push(fault);
                Err(self.faults.done().err().unwrap_or_else(|| Fault::new("", "it is at fault", "")))
            }
        }
    }

    /// As [`Section::end`], of parts some of which are missing where they were at fault.
    pub fn all<T>(self, made: Option<T>) -> Result<T, Fault> {
        self.end(Ok(()))?;
        made.ok_or_else(|| Fault::new("", "a part of the table is missing", "report this as a defect"))
    }

    /// As [`Section::end`], where what is made of it comes later.
    pub fn finish(self) -> Result<(), Fault> {
        self.end(Ok(()))
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
    let items = list(value)?;
    let mut faults = Faults::default();
    let mut made = Vec::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        made.extend(faults.keep(read(item).map_err(|e| e.below(&format!("[{i}]")))));
        if faults.is_full() {
            break;
        }
    }
    faults.done().map(|()| made)
}
