//! Strict JSON parser: a key given twice in one table is an error.

use super::shortened;
use crate::InputError;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Parses `text`.
pub fn parse(text: &str) -> Result<Value, InputError> {
    read(text, Strict)
}

/// Parses the table in `text` with the value of `key` omitted; see [`each`].
pub fn without(text: &str, key: &str) -> Result<Value, InputError> {
    read(text, Without(key))
}

/// Calls `item` with each element of the list at `key` of the table in `text`, so that a list of millions is never in
/// memory whole. Stops at the first error.
pub fn each(
    text: &str,
    key: &str,
    item: &mut dyn FnMut(usize, &Value) -> Result<(), InputError>,
) -> Result<(), InputError> {
    let mut fault = None;
    let result = read(text, Each { key, item, fault: &mut fault });
    fault.map_or(result, Err)
}

fn read<'de, S: DeserializeSeed<'de>>(text: &'de str, seed: S) -> Result<S::Value, InputError> {
    let body = text.trim_start_matches('\u{feff}');
    let mut reader = serde_json::Deserializer::from_str(body);
    let value = seed.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    value.map_err(|e| fault(&e, body))
}

fn fault(error: &serde_json::Error, text: &str) -> InputError {
    let place = format!("line {}, column {}", error.line(), error.column());
    if text.trim().is_empty() {
        return InputError::new("", "the document is empty", "give a JSON document");
    }
    if let Some(word) = not_a_number(error, text) {
        let what = format!("JSON has no {word}");
        return InputError::new(place, what, "give a finite number, or leave the key away");
    }
    let full = error.to_string();
    let what = full.rfind(" at line ").map_or(full.as_str(), |end| &full[..end]);
    match what {
        "recursion limit exceeded" => {
            InputError::new(place, "the document is nested too deeply", "nest at most 127 levels")
        }
        "number out of range" => InputError::new(place, "the number is too large", "give a finite number"),
        _ => InputError::new(place, shortened(what), "write the document as JSON has it"),
    }
}

/// The non-JSON word for a number (such as NaN) that stopped the parser, if that is the error.
fn not_a_number(error: &serde_json::Error, text: &str) -> Option<&'static str> {
    let line = text.split('\n').nth(error.line().checked_sub(1)?)?.as_bytes();
    let end = error.column().min(line.len());
    let near = &line[end.saturating_sub(2)..];
    let starts = |word: &str| (0..=1.min(near.len())).any(|skip| near[skip..].starts_with(word.as_bytes()));
    ["NaN", "Infinity"].into_iter().find(|word| starts(word))
}

/// Deserializes any value; a duplicate key is an error.
#[derive(Clone, Copy)]
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("a value")
    }
    fn visit_bool<E>(self, x: bool) -> Result<Value, E> {
        Ok(Value::Bool(x))
    }
    fn visit_i64<E>(self, x: i64) -> Result<Value, E> {
        Ok(Value::from(x))
    }
    fn visit_u64<E>(self, x: u64) -> Result<Value, E> {
        Ok(Value::from(x))
    }
    fn visit_f64<E: serde::de::Error>(self, x: f64) -> Result<Value, E> {
        Number::from_f64(x).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }
    fn visit_str<E>(self, x: &str) -> Result<Value, E> {
        Ok(Value::from(x))
    }
    fn visit_string<E>(self, x: String) -> Result<Value, E> {
        Ok(Value::from(x))
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Strict)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            refuse_twice(&map, &key)?;
            let value = entries.next_value_seed(Strict)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

fn refuse_twice<E: serde::de::Error>(map: &Map<String, Value>, key: &str) -> Result<(), E> {
    if map.contains_key(key) {
        return Err(E::custom(format!("the key {} is given twice", crate::quantity::quoted(key))));
    }
    Ok(())
}

/// Like [`Strict`], but the value of one key of the outermost table is only checked for syntax and becomes null.
struct Without<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Without<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Without<'_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("a table of keys and values")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            refuse_twice(&map, &key)?;
            let value = match key == self.0 {
                true => entries.next_value::<IgnoredAny>().map(|_| Value::Null)?,
                false => entries.next_value_seed(Strict)?,
            };
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// Deserializer behind [`each`].
struct Each<'a> {
    key: &'a str,
    item: &'a mut dyn FnMut(usize, &Value) -> Result<(), InputError>,
    fault: &'a mut Option<InputError>,
}

impl<'de> DeserializeSeed<'de> for Each<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Each<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "a list in \"{}\"", self.key)
    }
    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        while let Some(key) = entries.next_key::<String>()? {
            if key == self.key {
                entries.next_value_seed(Items(&mut self))?;
            } else {
                entries.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct Items<'a, 'b>(&'a mut Each<'b>);

impl<'de> DeserializeSeed<'de> for Items<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        self.0.expecting(out)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut count = 0;
        while let Some(item) = items.next_element_seed(Strict)? {
            if let Err(fault) = (self.0.item)(count, &item) {
                *self.0.fault = Some(fault);
                return Err(A::Error::custom(""));
            }
            count += 1;
        }
        Ok(())
    }
}
