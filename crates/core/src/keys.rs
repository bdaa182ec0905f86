//! Keys of the tables that people write: what each holds, what stands in for it where it is not given, what it does.
//!
//! They are declared once. Readers, help, the JSON Schema and the tables of the documentation go by them.

use crate::document::unknown_word;
use crate::quantity::{
    bytes_from_json, capacity_from_json, ns_from_json, positive_bytes_from_json, seconds_from_json, shown,
};
use crate::{InputError, InputErrors};
use serde_json::{Map, Value, json};

/// A key of a table.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub holds: Holds,
    /// What stands in for it.
    pub default: Otherwise,
    /// What it is, as in "give ...".
    pub about: &'static str,
}

/// What a key holds.
#[derive(Debug, Clone, Copy)]
pub enum Holds {
    /// True or false.
    Flag,
    /// A whole number from the one to the other.
    Whole(u64, u64),
    /// A number above or from the one, up to and including the other.
    Number(Low, f64),
    /// A positive rate, bit/s.
    Rate,
    /// A time of zero or more.
    Time,
    /// A time from the one to the other, ns.
    Span(u64, u64),
    /// A size, bytes; one or more.
    Size,
    /// A size, from one byte to so many.
    SizeTo(u64),
    /// Bytes; zero or more.
    Bytes,
    /// A number of packets, zero or more; a part of one counts too.
    Packets,
    /// A text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of the words that this gives.
    Named(fn() -> Vec<&'static str>),
    /// A list of such values.
    List(&'static Holds),
    /// A list of two such values.
    Pair(&'static Holds),
    /// A table with these keys.
    Table(&'static [Key]),
    /// Any of these.
    Either(&'static [Holds]),
    /// What nothing here describes: its name, and its JSON Schema.
    Other(&'static str, fn() -> Value),
}

/// The lower end of a range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Low {
    /// Above it.
    Above(f64),
    /// From it.
    From(f64),
}

/// A number, a flag or a word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ParamValue {
    /// A number in base units: bit/s, seconds, bytes.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// One of a few words.
    Word(&'static str),
}

/// What stands in for a key that is not given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Otherwise {
    /// It must be given.
    Required,
    /// This, as if it were written so.
    Is(&'static str),
    /// This, in base units.
    Set(ParamValue),
    /// What the key of this name holds.
    Same(&'static str),
    /// Twice what the key of this name holds.
    Twice(&'static str),
    /// The largest in the list of this name.
    Largest(&'static str),
    /// The key stays open; the words say what that means.
    Open(&'static str),
}

/// A number of zero or more.
pub const AMOUNT: Holds = Holds::Number(Low::From(0.0), f64::INFINITY);
/// A share of a whole.
pub const SHARE: Holds = Holds::Number(Low::From(0.0), 1.0);

impl Key {
    /// A key that must be given.
    pub const fn required(name: &'static str, holds: Holds, about: &'static str) -> Self {
        Key { name, holds, default: Otherwise::Required, about }
    }
    /// A key for which `default` stands in, as if it were written so.
    pub const fn new(name: &'static str, holds: Holds, default: &'static str, about: &'static str) -> Self {
        Key { name, holds, default: Otherwise::Is(default), about }
    }
    /// A key without a default: `meaning` says what it means to leave it out.
    pub const fn open(name: &'static str, holds: Holds, meaning: &'static str, about: &'static str) -> Self {
        Key { name, holds, default: Otherwise::Open(meaning), about }
    }

    /// What `map` holds under it, or else its default; of a key that stays open, `None`.
    pub fn of<T: Taken>(&self, map: &Map<String, Value>) -> Result<Option<T>, InputError> {
        match (map.get(self.name), self.default) {
            (Some(value), _) => T::read(self.holds, value).map(Some).map_err(|e| e.below(self.name)),
            (None, Otherwise::Is(default)) => Ok(Some(self.stand_in(default))),
            (None, Otherwise::Required) => {
                Err(InputError::new(self.name, format!("\"{}\" is missing", self.name), format!("give {}", self.about)))
            }
            (None, _) => Ok(None),
        }
    }

    /// The default that is written so.
    fn stand_in<T: Taken>(&self, default: &str) -> T {
        let written = serde_json::from_str(default).unwrap_or_else(|_| Value::from(default));
        T::read(self.holds, &written).unwrap_or_else(|_| unreachable!("the default of {} is one", self.name))
    }

    /// Name, unit, default and meaning, as help and tables show them; of a table, its keys too.
    pub fn described(&self) -> Value {
        let (unit, default) = (self.holds.name(), self.default.describe());
        let mut told = json!({"name": self.name, "unit": unit, "default": default, "about": self.about});
        if let (Some(inner), Some(map)) = (self.holds.inner(), told.as_object_mut()) {
            map.insert("keys".into(), inner.iter().map(Key::described).collect());
        }
        told
    }
}

impl Holds {
    /// How help writes it.
    pub fn name(&self) -> String {
        let all = |some: &[Holds]| some.iter().map(Holds::name).collect::<Vec<_>>().join(" or ");
        match self {
            Holds::Flag => "true or false".into(),
            Holds::Whole(..) => "whole number".into(),
            Holds::Number(..) => "number".into(),
            Holds::Rate => "bit/s".into(),
            Holds::Time => "s".into(),
            Holds::Span(low, high) => format!("s, {} to {}", told_ns(*low), told_ns(*high)),
            Holds::Size | Holds::Bytes => "bytes".into(),
            Holds::SizeTo(most) => format!("bytes, up to {most}"),
            Holds::Packets => "packets".into(),
            Holds::Text => "text".into(),
            Holds::Word(words) => words.iter().map(|w| format!("\"{w}\"")).collect::<Vec<_>>().join(" or "),
            Holds::Named(_) => "name".into(),
            Holds::List(Holds::Table(_)) => "tables".into(),
            Holds::List(Holds::Pair(_)) => "list of pairs".into(),
            Holds::List(one) => format!("list of {}", one.name()),
            Holds::Pair(_) => "pair".into(),
            Holds::Table(_) => "table".into(),
            Holds::Either(some) => all(some),
            Holds::Other(name, _) => (*name).into(),
        }
    }

    /// Its JSON Schema (2020-12).
    pub fn schema(&self) -> Value {
        match self {
            Holds::Flag => json!({"type": "boolean"}),
            Holds::Whole(low, high) => json!({"type": "integer", "minimum": low, "maximum": high}),
            Holds::Number(low, high) => {
                let (word, bound) = match low {
                    Low::Above(bound) => ("exclusiveMinimum", bound),
                    Low::From(bound) => ("minimum", bound),
                };
                let mut range = Map::from_iter([("type".into(), "number".into()), (word.into(), json!(bound))]);
                range.extend(high.is_finite().then(|| ("maximum".into(), json!(high))));
                range.into()
            }
            Holds::Packets => AMOUNT.schema(),
            Holds::Rate | Holds::Time | Holds::Size | Holds::Bytes => {
                json!({"type": ["number", "string"], "description": "a number in base units, or text with a unit"})
            }
            Holds::Span(low, high) => span_schema(*low, *high),
            Holds::SizeTo(most) => json!({"type": ["number", "string"], "minimum": 1, "maximum": most}),
            Holds::Text => json!({"type": "string"}),
            Holds::Word(words) => json!({"enum": words}),
            Holds::Named(words) => json!({"enum": words()}),
            Holds::List(one) => json!({"type": "array", "items": one.schema()}),
            Holds::Pair(one) => json!({"type": "array", "items": one.schema(), "minItems": 2, "maxItems": 2}),
            Holds::Table(keys) => table(keys),
            Holds::Either(some) => json!({"anyOf": some.iter().map(Holds::schema).collect::<Vec<_>>()}),
            Holds::Other(_, schema) => schema(),
        }
    }

    /// The keys of the table that it is, or that are in it.
    pub fn inner(&self) -> Option<&'static [Key]> {
        match self {
            Holds::Table(keys) => Some(keys),
            Holds::List(one) | Holds::Pair(one) => one.inner(),
            Holds::Either(some) => some.iter().find_map(Holds::inner),
            _ => None,
        }
    }

    /// How deep lists lie in it by nature, 0 for what is no list: a list one deeper is a list of such values.
    pub fn depth(&self) -> usize {
        match self {
            Holds::List(one) | Holds::Pair(one) => 1 + one.depth(),
            Holds::Either(some) => some.iter().map(Holds::depth).max().unwrap_or(0),
            _ => 0,
        }
    }
}

impl Otherwise {
    /// How help writes it.
    pub fn describe(self) -> String {
        match self {
            Otherwise::Required => "required".into(),
            Otherwise::Is(value) | Otherwise::Open(value) => value.into(),
            Otherwise::Set(value) => value.to_string(),
            Otherwise::Same(key) => format!("{key}'s"),
            Otherwise::Twice(key) => format!("twice {key}"),
            Otherwise::Largest(key) => format!("the largest of {key}"),
        }
    }
}

/// A time in the largest unit that it is a whole number of.
fn told_ns(ns: u64) -> String {
    let units = [
        (86_400_000_000_000, " days"),
        (3_600_000_000_000, " h"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1000, "us"),
    ];
    let unit = units.into_iter().find(|(size, _)| ns >= *size && ns.is_multiple_of(*size));
    unit.map_or_else(|| format!("{ns}ns"), |(size, name)| format!("{}{name}", ns / size))
}

/// The JSON Schema of a time in bounds: of numbers, and of texts in ns where the lower bound is a power of ten.
fn span_schema(low: u64, high: u64) -> Value {
    let mut schema = json!({"type": ["number", "string"], "minimum": low as f64 / 1e9, "maximum": high as f64 / 1e9});
    let digits = low.max(1).ilog10();
    if digits > 0 && low == 10u64.pow(digits) {
        schema["not"] =
            json!({"type": "string", "pattern": format!("^\\s*0*[0-9]{{0,{digits}}}([.][0-9]*)?\\s*ns\\s*$")});
    }
    schema
}

/// A time from `low` to `high`, ns.
fn span(value: &Value, low: u64, high: u64) -> Result<u64, InputError> {
    let ns = ns_from_json(value)?;
    match (low..=high).contains(&ns) {
        true => Ok(ns),
        false => {
            let hint = format!("give a time from {} to {}", told_ns(low), told_ns(high));
            Err(InputError::new("", format!("{} is out of range", shown(value)), hint))
        }
    }
}

/// A size from one byte to `most`.
fn size_to(value: &Value, most: u64) -> Result<u64, InputError> {
    let bytes = positive_bytes_from_json(value)?;
    match bytes <= most {
        true => Ok(bytes),
        false => {
            Err(InputError::new("", format!("{} is out of range", shown(value)), format!("give 1 to {most} bytes")))
        }
    }
}

/// The JSON Schema of a table with these keys and no others.
pub fn table(keys: &[Key]) -> Value {
    let one = |key: &Key| {
        let mut schema = key.holds.schema();
        if let Some(map) = schema.as_object_mut() {
            map.insert("description".into(), format!("{} (default: {})", key.about, key.default.describe()).into());
        }
        (key.name.to_string(), schema)
    };
    let mut made = json!({
        "type": "object",
        "properties": Map::from_iter(keys.iter().map(one)),
        "additionalProperties": false,
    });
    let needed: Vec<_> = keys.iter().filter(|k| k.default == Otherwise::Required).map(|k| k.name).collect();
    if let (false, Some(map)) = (needed.is_empty(), made.as_object_mut()) {
        map.insert("required".into(), json!(needed));
    }
    made
}

/// A value that a key holds.
pub trait Taken: Sized {
    /// `value` as the key has it.
    fn read(holds: Holds, value: &Value) -> Result<Self, InputError>;
    /// With what to go on reading where it is at fault.
    fn stand_in(holds: Holds) -> Self;
}

impl Taken for bool {
    fn read(_: Holds, value: &Value) -> Result<Self, InputError> {
        flag(value)
    }
    fn stand_in(_: Holds) -> Self {
        false
    }
}

/// A whole number, a time in ns, or a size in bytes.
impl Taken for u64 {
    fn read(holds: Holds, value: &Value) -> Result<Self, InputError> {
        match holds {
            Holds::Whole(low, high) => whole(value, low, high),
            Holds::Time => ns_from_json(value),
            Holds::Span(low, high) => span(value, low, high),
            Holds::Size => positive_bytes_from_json(value),
            Holds::SizeTo(most) => size_to(value, most),
            other => unreachable!("{} is no whole number", other.name()),
        }
    }
    fn stand_in(holds: Holds) -> Self {
        if let Holds::Whole(low, _) | Holds::Span(low, _) = holds { low } else { 1 }
    }
}

impl Taken for usize {
    fn read(holds: Holds, value: &Value) -> Result<Self, InputError> {
        u64::read(holds, value).map(|n| n as usize)
    }
    fn stand_in(holds: Holds) -> Self {
        u64::stand_in(holds) as usize
    }
}

/// A number, a rate in bit/s, a time in seconds, or a size in bytes.
impl Taken for f64 {
    fn read(holds: Holds, value: &Value) -> Result<Self, InputError> {
        match holds {
            Holds::Number(Low::Above(low), high) => between(value, low, false, high),
            Holds::Number(Low::From(low), high) => between(value, low, true, high),
            Holds::Rate => capacity_from_json(value),
            Holds::Size => positive_bytes_from_json(value).map(|bytes| bytes as f64),
            Holds::Bytes => bytes_from_json(value).map(|bytes| bytes as f64),
            Holds::Time => seconds_from_json(value),
            Holds::Span(low, high) => span(value, low, high).map(|ns| ns as f64 * 1e-9),
            Holds::SizeTo(most) => size_to(value, most).map(|bytes| bytes as f64),
            Holds::Packets => f64::read(AMOUNT, value),
            other => unreachable!("{} is no number", other.name()),
        }
    }
    fn stand_in(holds: Holds) -> Self {
        if let Holds::Number(_, high) = holds { high.min(1.0) } else { 1e9 }
    }
}

impl Taken for ParamValue {
    fn read(holds: Holds, value: &Value) -> Result<Self, InputError> {
        match holds {
            Holds::Flag => flag(value).map(ParamValue::Flag),
            Holds::Word(words) => {
                let told = value.as_str().map_or_else(|| shown(value), str::to_string);
                let found = words.iter().find(|word| **word == told);
                found.map(|word| ParamValue::Word(word)).ok_or_else(|| unknown_word(&told, "choice", words))
            }
            _ => f64::read(holds, value).map(ParamValue::Number),
        }
    }
    fn stand_in(_: Holds) -> Self {
        ParamValue::Flag(false)
    }
}

impl std::fmt::Display for ParamValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ParamValue::Number(x) => x.fmt(f),
            ParamValue::Flag(yes) => yes.fmt(f),
            ParamValue::Word(word) => f.write_str(word),
        }
    }
}

impl Taken for String {
    fn read(holds: Holds, value: &Value) -> Result<Self, InputError> {
        let told = text(value)?;
        match holds {
            Holds::Word(words) if !words.contains(&told) => Err(unknown_word(told, "word", words)),
            _ => Ok(told.to_string()),
        }
    }
    fn stand_in(_: Holds) -> Self {
        String::new()
    }
}

impl<T: Taken> Taken for Vec<T> {
    fn read(holds: Holds, value: &Value) -> Result<Self, InputError> {
        let Holds::List(one) = holds else { unreachable!("{} is no list", holds.name()) };
        each(value, |v| T::read(*one, v))
    }
    fn stand_in(_: Holds) -> Self {
        Vec::new()
    }
}

/// Text.
pub fn text(value: &Value) -> Result<&str, InputError> {
    value
        .as_str()
        .ok_or_else(|| InputError::new("", format!("{} is not a text", shown(value)), "give a text in quotes"))
}

/// True or false.
pub fn flag(value: &Value) -> Result<bool, InputError> {
    value
        .as_bool()
        .ok_or_else(|| InputError::new("", format!("{} is neither true nor false", shown(value)), "give true or false"))
}

/// A list.
pub fn list(value: &Value) -> Result<&[Value], InputError> {
    let items = value.as_array();
    items
        .map(Vec::as_slice)
        .ok_or_else(|| InputError::new("", format!("{} is not a list", shown(value)), "give a list"))
}

/// A whole number from `low` to `high`.
pub fn whole(value: &Value, low: u64, high: u64) -> Result<u64, InputError> {
    value.as_u64().filter(|n| (low..=high).contains(n)).ok_or_else(|| {
        InputError::new(
            "",
            format!("{} is out of range", shown(value)),
            format!("give a whole number from {low} to {high}"),
        )
    })
}

/// A number above `low` (or from it, if `closed`) up to and including `high`.
pub fn between(value: &Value, low: f64, closed: bool, high: f64) -> Result<f64, InputError> {
    let inside = |x: &f64| *x <= high && (*x > low || (closed && *x == low));
    value.as_f64().filter(inside).ok_or_else(|| {
        let above = if closed { "from" } else { "above" };
        let top = if high.is_finite() { format!(" up to {high}") } else { String::new() };
        InputError::new("", format!("{} is out of range", shown(value)), format!("give a number {above} {low}{top}"))
    })
}

/// Each item of a list as `read` understands it.
pub fn each<T>(value: &Value, mut read: impl FnMut(&Value) -> Result<T, InputError>) -> Result<Vec<T>, InputError> {
    let items = list(value)?;
    let mut faults = InputErrors::default();
    let mut made = Vec::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        made.extend(faults.keep(read(item).map_err(|e| e.below(&format!("[{i}]")))));
        if faults.is_full() {
            break;
        }
    }
    faults.done().map(|()| made)
}
