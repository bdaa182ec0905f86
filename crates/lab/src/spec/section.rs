//! Reads the tables of a spec by their declared keys. Unknown keys are errors. An invalid key is recorded and the
//! others are still read, so that all errors are reported at once.

use serde_json::{Map, Value};
use subak_core::document::unknown_key;
use subak_core::keys::Key;
use subak_core::quantity::shown;
use subak_core::{InputError, InputErrors};

pub(crate) use subak_core::keys::{FromValue, between, each, flag, list, text, whole};

/// Reader of one table of a spec. Places in errors are relative to the table.
pub(crate) struct Section<'a> {
    map: &'a Map<String, Value>,
    keys: Vec<&'static Key>,
    /// Keys read so far; at the end, all others are unknown.
    known: Vec<&'static str>,
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
        Section { map, keys: keys.iter().collect(), known: Vec::new(), faults: InputErrors::default() }
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
        let holds = self.declared(name).value_type;
        self.opt(name, |value| T::read(holds, value))
    }

    /// The unparsed value of `key`, if the key is set.
    pub fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        debug_assert_eq!(self.declared(key).name, key);
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.map.get(key)
    }

    /// The value of `key` as parsed by `read`, if the key is set and valid.
    pub fn opt<T>(&mut self, key: &'static str, read: impl FnOnce(&'a Value) -> Result<T, InputError>) -> Option<T> {
        let value = self.get(key)?;
        self.faults.keep(read(value).map_err(|e| e.below(key)))
    }

    /// The value of the required `key`. `hint` completes the error for a missing key. If the value is missing or
    /// invalid, `placeholder` is returned, so that the rest of the table can be read, and [`Section::end`] returns the
    /// error.
    pub fn need<T>(
        &mut self,
        key: &'static str,
        hint: &str,
        placeholder: T,
        read: impl FnOnce(&'a Value) -> Result<T, InputError>,
    ) -> T {
        match self.get(key) {
            Some(value) => self.faults.keep(read(value).map_err(|e| e.below(key))).unwrap_or(placeholder),
            None => {
                self.note(InputError::new(key, format!("\"{key}\" is missing"), hint));
                placeholder
            }
        }
    }

    /// The value of the required `key`, without which the rest of the table cannot be read: a missing or invalid value
    /// is an immediate error.
    pub fn must<T>(
        &mut self,
        key: &'static str,
        hint: &str,
        read: impl FnOnce(&'a Value) -> Result<T, InputError>,
    ) -> Result<T, InputError> {
        let value = self.get(key).ok_or_else(|| InputError::new(key, format!("\"{key}\" is missing"), hint))?;
        read(value).map_err(|e| e.below(key))
    }

    /// The value of `part`; records its error, if it has one.
    pub fn keep<T>(&mut self, part: Result<T, InputError>) -> Option<T> {
        self.faults.keep(part)
    }

    /// Records an error.
    pub fn note(&mut self, fault: InputError) {
        self.faults.push(fault);
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
                let unknown = self.map.keys().filter(|k| !self.known.contains(&k.as_str()));
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
