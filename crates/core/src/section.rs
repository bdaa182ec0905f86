//! Reads the tables of a case or a spec by their declared keys. Unknown keys are errors. An invalid key is recorded and the
//! others are still read, so that all errors are reported at once.

use crate::document::unknown_key;
use crate::keys::{FromValue, Key};
use crate::quantity::shown;
use crate::{InputError, InputErrors};
use serde_json::{Map, Value};

/// Reader of one table. Places in errors are relative to the table.
#[derive(Debug)]
pub struct Section<'a> {
    map: &'a Map<String, Value>,
    keys: Vec<&'static Key>,
    /// Keys read so far; at the end, all others are unknown.
    known: Vec<&'static str>,
    /// Keys that the table does not have, refused already.
    refused: Vec<String>,
    faults: InputErrors,
}

impl<'a> Section<'a> {
    /// Reader of `value`, which must be a table, with the declared `keys`.
    pub fn of(value: &'a Value, keys: &'static [Key]) -> Result<Self, InputError> {
        let map = value.as_object().ok_or_else(|| {
            InputError::new("", format!("{} is not a table", shown(value)), "give a table of keys and values")
        })?;
        Ok(Section::over(map, keys))
    }

    /// Reader of the table `map` with the declared `keys`.
    pub fn over(map: &'a Map<String, Value>, keys: &'static [Key]) -> Self {
        Section {
            map,
            keys: keys.iter().collect(),
            known: Vec::new(),
            refused: Vec::new(),
            faults: InputErrors::default(),
        }
    }

    /// Declares further keys.
    pub fn also(&mut self, keys: &'static [Key]) {
        self.keys.extend(keys);
    }

    fn declared(&self, name: &str) -> &'static Key {
        let found = self.keys.iter().copied().find(|key| key.name == name);
        found.unwrap_or_else(|| unreachable!("{name} is a key that the table declares"))
    }

    /// Reads the value of key `name`; its default if the key is not set.
    pub fn take<T: FromValue>(&mut self, name: &'static str) -> T {
        self.known.push(name);
        let key = self.declared(name);
        self.faults.keep(key.of(self.map)).flatten().unwrap_or_else(|| T::placeholder(key.value_type))
    }

    /// Reads the value of key `name`, if the key is set and valid.
    pub fn given<T: FromValue>(&mut self, name: &'static str) -> Option<T> {
        let value_type = self.declared(name).value_type;
        let value = self.get(name)?;
        self.faults.keep(T::read(value_type, value).map_err(|e| e.below(name)))
    }

    /// The unparsed value of `key`, if the key is set.
    pub fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        debug_assert_eq!(self.declared(key).name, key);
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.map.get(key)
    }

    /// Reads the value of key `name`, or its default, and converts it. `None` if the value is missing or invalid.
    pub fn convert<T: FromValue, U>(
        &mut self,
        name: &'static str,
        convert: impl FnOnce(T) -> Result<U, InputError>,
    ) -> Option<U> {
        self.known.push(name);
        let value = self.faults.keep(self.declared(name).of(self.map)).flatten()?;
        self.faults.keep(convert(value).map_err(|e| e.below(name)))
    }

    /// Like [`Section::convert`], for a table of which only key `name` is read here.
    pub fn only<T: FromValue, U>(
        &mut self,
        name: &'static str,
        convert: impl FnOnce(T) -> Result<U, InputError>,
    ) -> Result<U, InputError> {
        let key = self.declared(name);
        let value = key.of(self.map)?.unwrap_or_else(|| T::placeholder(key.value_type));
        convert(value).map_err(|e| e.below(name))
    }

    /// Reads the value of the required key `name`, without which the rest of the table cannot be read: a missing or
    /// invalid value is an immediate error.
    pub fn must<T: FromValue>(&mut self, name: &'static str) -> Result<T, InputError> {
        self.known.push(name);
        let key = self.declared(name);
        Ok(key.of(self.map)?.unwrap_or_else(|| T::placeholder(key.value_type)))
    }

    /// The tables in key `name`, or the type that has a name of its own, as parsed by `read`, which goes by the
    /// declarations inside. `None` if the key is not set or invalid; a missing required key is an error.
    pub fn nested<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&'a Value) -> Result<T, InputError>,
    ) -> Option<T> {
        let key = self.declared(name);
        debug_assert!(key.value_type.is_nested(), "{name} is read as it is declared: use take, given or convert");
        match self.get(name) {
            Some(value) => self.faults.keep(read(value).map_err(|e| e.below(name))),
            None => {
                self.faults.keep(key.of::<Value>(self.map));
                None
            }
        }
    }

    /// The value of `part`; records its error, if it has one.
    pub fn keep<T>(&mut self, part: Result<T, InputError>) -> Option<T> {
        self.faults.keep(part)
    }

    /// Records an error.
    pub fn note(&mut self, fault: InputError) {
        self.faults.push(fault);
    }

    /// Records the error of a key that the table does not have, at the place of the error.
    pub fn refuse(&mut self, fault: InputError) {
        self.refused.push(fault.place.clone());
        self.note(fault);
    }

    /// Returns the errors recorded so far as one error.
    pub fn faults(self) -> InputError {
        let none = || InputError::new("", "the table is at fault", "report this as a defect");
        self.faults.done().err().unwrap_or_else(none)
    }

    /// Whether there are no errors so far.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    /// Number of errors so far.
    pub fn wrong(&self) -> usize {
        self.faults.len()
    }

    /// Returns `made`, or all errors of the table. If `made` is `Ok`, unknown keys are errors too.
    pub fn end<T>(mut self, made: Result<T, InputError>) -> Result<T, InputError> {
        match made {
            Ok(made) => {
                let is_unknown = |k: &&String| !self.known.contains(&k.as_str()) && !self.refused.contains(*k);
                let unknown = self.map.keys().filter(is_unknown);
                unknown.for_each(|key| self.faults.push(unknown_key(key, &self.known)));
                self.faults.done().map(|()| made)
            }
            Err(fault) => {
                self.faults.push(fault);
                Err(self.faults.done().err().unwrap_or_else(|| InputError::new("", "the table is invalid", "")))
            }
        }
    }

    /// Same as [`Section::end`], for a result that is `None` if some part of the table is invalid.
    pub fn all<T>(self, made: Option<T>) -> Result<T, InputError> {
        self.end(Ok(()))?;
        made.ok_or_else(|| InputError::new("", "a part of the table is missing", "report this as a defect"))
    }

    /// Same as [`Section::end`], without a result.
    pub fn finish(self) -> Result<(), InputError> {
        self.end(Ok(()))
    }
}
