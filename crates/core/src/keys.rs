//! Declarations of the keys of user-written tables: type, default and description.
//!
//! Parsers, help texts, the JSON Schema and the documentation are generated from them.

use crate::document::unknown_word;
use crate::quantity::{
    bytes_from_json, ns_from_json, positive_bytes_from_json, rate_bps_from_json, seconds_from_json, shown,
};
use crate::{InputError, InputErrors};
use serde_json::{Map, Value, json};

/// A key of a table.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Name of the key.
    pub name: &'static str,
    /// Type of the key's value.
    pub value_type: ValueType,
    /// Default of the key.
    pub default: DefaultValue,
    /// Description of the key, a noun phrase.
    pub about: &'static str,
}

/// The type and range of a key's value.
#[derive(Debug, Clone, Copy)]
pub enum ValueType {
    /// True or false.
    Flag,
    /// A whole number between two bounds, both included.
    Whole(u64, u64),
    /// A number with a lower bound and an upper bound that is included.
    Number(Low, f64),
    /// A positive rate, bit/s.
    Rate,
    /// A rate of zero or more, bit/s.
    RateOrZero,
    /// A time of zero or more: seconds, or text with a unit.
    Time,
    /// A time between two bounds, ns, both included.
    Span(u64, u64),
    /// A size, bytes; one or more.
    Size,
    /// A size from one byte to this many bytes.
    SizeTo(u64),
    /// A size, bytes; zero or more.
    Bytes,
    /// A number of packets, zero or more; fractions are allowed.
    Packets,
    /// Text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of the words that the function returns.
    Named(fn() -> Vec<&'static str>),
    /// A list of values of this type.
    List(&'static ValueType),
    /// A list of two values of these types.
    Pair(&'static ValueType, &'static ValueType),
    /// A table with these keys.
    Table(&'static [Key]),
    /// A value of any of these types.
    Either(&'static [ValueType]),
    /// Any other type: its name and its JSON Schema.
    Other(&'static str, fn() -> Value),
}

/// The lower end of a range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Low {
    /// Above this number.
    Above(f64),
    /// This number or above.
    From(f64),
}

/// Value of a parameter: a number, a flag or a word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ParamValue {
    /// A number in base units: bit/s, seconds, bytes.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// A word of the parameter's list.
    Word(&'static str),
}

/// The default of a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DefaultValue {
    /// No default: the key is required.
    Required,
    /// This text, parsed as if the user had written it.
    Is(&'static str),
    /// This value, in base units.
    Set(ParamValue),
    /// The value of the key of this name.
    Same(&'static str),
    /// Twice the value of the key of this name.
    Twice(&'static str),
    /// The largest value of the list key with this name.
    Largest(&'static str),
    /// No value; the text describes the behaviour without a value.
    Open(&'static str),
}

/// A number of zero or more.
pub const AMOUNT: ValueType = ValueType::Number(Low::From(0.0), f64::INFINITY);
/// A fraction, 0 to 1.
pub const SHARE: ValueType = ValueType::Number(Low::From(0.0), 1.0);

impl Key {
    /// A required key.
    pub const fn required(name: &'static str, value_type: ValueType, about: &'static str) -> Self {
        Key { name, value_type, default: DefaultValue::Required, about }
    }
    /// A key with a default, given as text and parsed as if the user had written it.
    pub const fn new(name: &'static str, value_type: ValueType, default: &'static str, about: &'static str) -> Self {
        Key { name, value_type, default: DefaultValue::Is(default), about }
    }
    /// A key without a default: `meaning` describes the behaviour if it is omitted.
    pub const fn open(name: &'static str, value_type: ValueType, meaning: &'static str, about: &'static str) -> Self {
        Key { name, value_type, default: DefaultValue::Open(meaning), about }
    }

    /// The key's value in `map`, else its default; `None` for an unset key without a default.
    pub fn of<T: FromValue>(&self, map: &Map<String, Value>) -> Result<Option<T>, InputError> {
        match (map.get(self.name), self.default) {
            (Some(value), _) => T::read(self.value_type, value).map(Some).map_err(|e| e.below(self.name)),
            (None, DefaultValue::Is(default)) => Ok(Some(self.parse_default(default))),
            (None, DefaultValue::Required) => {
                let words = self.value_type.words();
                let known = if words.is_empty() { String::new() } else { format!(": one of {}", words.join(", ")) };
                let hint = format!("give {}{known}", self.about);
                Err(InputError::new(self.name, format!("\"{}\" is missing", self.name), hint))
            }
            (None, _) => Ok(None),
        }
    }

    /// Parses the text of a default.
    fn parse_default<T: FromValue>(&self, default: &str) -> T {
        let written = serde_json::from_str(default).unwrap_or_else(|_| Value::from(default));
        T::read(self.value_type, &written).unwrap_or_else(|_| unreachable!("the default of {} is one", self.name))
    }

    /// The key as JSON for help and tables: name, unit, default, description; for a table, also its keys.
    pub fn described(&self) -> Value {
        let (unit, default) = (self.value_type.name(), self.default.describe());
        let mut told = json!({"name": self.name, "unit": unit, "default": default, "about": self.about});
        if let (Some(inner), Some(map)) = (self.value_type.inner(), told.as_object_mut()) {
            map.insert("keys".into(), inner.iter().map(Key::described).collect());
        }
        told
    }
}

impl ValueType {
    /// Name of the type in help.
    pub fn name(&self) -> String {
        let all = |some: &[ValueType]| some.iter().map(ValueType::name).collect::<Vec<_>>().join(" or ");
        match self {
            ValueType::Flag => "true or false".into(),
            ValueType::Whole(..) => "whole number".into(),
            ValueType::Number(..) => "number".into(),
            ValueType::Rate | ValueType::RateOrZero => "bit/s".into(),
            ValueType::Time => "s".into(),
            ValueType::Span(low, high) => format!("s, {} to {}", told_ns(*low), told_ns(*high)),
            ValueType::Size | ValueType::Bytes => "bytes".into(),
            ValueType::SizeTo(most) => format!("bytes, up to {most}"),
            ValueType::Packets => "packets".into(),
            ValueType::Text => "text".into(),
            ValueType::Word(words) => words.iter().map(|w| format!("\"{w}\"")).collect::<Vec<_>>().join(" or "),
            ValueType::Named(_) => "name".into(),
            ValueType::List(ValueType::Table(_)) => "tables".into(),
            ValueType::List(ValueType::Pair(..)) => "list of pairs".into(),
            ValueType::List(one) => format!("list of {}", one.name()),
            ValueType::Pair(..) => "pair".into(),
            ValueType::Table(_) => "table".into(),
            ValueType::Either(some) => all(some),
            ValueType::Other(name, _) => (*name).into(),
        }
    }

    /// JSON Schema (2020-12) of the type.
    pub fn schema(&self) -> Value {
        match self {
            ValueType::Flag => json!({"type": "boolean"}),
            ValueType::Whole(low, high) => json!({"type": "integer", "minimum": low, "maximum": high}),
            ValueType::Number(low, high) => {
                let (word, bound) = match low {
                    Low::Above(bound) => ("exclusiveMinimum", bound),
                    Low::From(bound) => ("minimum", bound),
                };
                let mut range = Map::from_iter([("type".into(), "number".into()), (word.into(), json!(bound))]);
                range.extend(high.is_finite().then(|| ("maximum".into(), json!(high))));
                range.into()
            }
            ValueType::Packets => AMOUNT.schema(),
            ValueType::Rate => amount("exclusiveMinimum", 0),
            ValueType::Time | ValueType::Bytes | ValueType::RateOrZero => amount("minimum", 0),
            ValueType::Size => amount("minimum", 1),
            ValueType::Span(low, high) => span_schema(*low, *high),
            ValueType::SizeTo(most) => json!({"type": ["number", "string"], "minimum": 1, "maximum": most}),
            ValueType::Text => json!({"type": "string"}),
            ValueType::Word(words) => json!({"enum": words}),
            ValueType::Named(words) => json!({"enum": words()}),
            ValueType::List(one) => json!({"type": "array", "items": one.schema()}),
            ValueType::Pair(first, second) => {
                let items = [first.schema(), second.schema()];
                json!({"type": "array", "prefixItems": items, "items": false, "minItems": 2})
            }
            ValueType::Table(keys) => table(keys),
            ValueType::Either(some) => json!({"anyOf": some.iter().map(ValueType::schema).collect::<Vec<_>>()}),
            ValueType::Other(_, schema) => schema(),
        }
    }

    /// The keys of a table type, or of the table inside a list type.
    pub fn inner(&self) -> Option<&'static [Key]> {
        match self {
            ValueType::Table(keys) => Some(keys),
            ValueType::List(one) => one.inner(),
            ValueType::Either(some) => some.iter().find_map(ValueType::inner),
            _ => None,
        }
    }

    /// The words that a value may be; none for other types.
    fn words(&self) -> Vec<&'static str> {
        match self {
            ValueType::Word(words) => words.to_vec(),
            ValueType::Named(words) => words(),
            ValueType::Either(some) => some.iter().flat_map(ValueType::words).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether the type holds tables, or has a name of its own: values that a reader of their own parses.
    pub fn is_nested(&self) -> bool {
        match self {
            ValueType::Table(_) | ValueType::Other(..) => true,
            ValueType::List(one) => one.is_nested(),
            ValueType::Either(some) => some.iter().any(ValueType::is_nested),
            _ => false,
        }
    }

    /// The value, or an error if it is not of this type. Tables, and types with a name of their own, are left to their
    /// readers.
    fn checked(self, value: &Value) -> Result<Value, InputError> {
        match self {
            ValueType::Flag => flag(value).map(Value::from),
            ValueType::Text | ValueType::Word(_) | ValueType::Named(_) => String::read(self, value).map(Value::from),
            ValueType::Whole(..) => u64::read(self, value).map(Value::from),
            ValueType::List(one) => each(value, |item| one.checked(item)).map(Value::from),
            ValueType::Pair(..) => <(Value, Value)>::read(self, value).map(|(a, b)| Value::from(vec![a, b])),
            ValueType::Table(_) | ValueType::Other(..) => Ok(value.clone()),
            ValueType::Either(some) => {
                let mut last = None;
                for one in some.iter().filter(|one| one.is_shaped_as(value)) {
                    match one.checked(value) {
                        Err(fault) => last = Some(fault),
                        valid => return valid,
                    }
                }
                let other = || {
                    let what = format!("{} is of another type", shown(value));
                    InputError::new("", what, format!("give {}", self.name()))
                };
                Err(last.unwrap_or_else(other))
            }
            _ => f64::read(self, value).map(|_| value.clone()),
        }
    }

    /// Whether `value` is of the JSON type that this type is written as.
    fn is_shaped_as(&self, value: &Value) -> bool {
        match self {
            ValueType::Flag => value.is_boolean(),
            ValueType::Text | ValueType::Word(_) | ValueType::Named(_) => value.is_string(),
            ValueType::Whole(..) | ValueType::Number(..) | ValueType::Packets => value.is_number(),
            ValueType::List(_) | ValueType::Pair(..) => value.is_array(),
            ValueType::Table(_) => value.is_object(),
            ValueType::Other(..) => true,
            ValueType::Either(some) => some.iter().any(|one| one.is_shaped_as(value)),
            _ => value.is_number() || value.is_string(),
        }
    }

    /// Nesting depth of lists; 0 for other types. In a spec, a list one level deeper contains the values of a sweep.
    pub fn depth(&self) -> usize {
        match self {
            ValueType::List(one) => 1 + one.depth(),
            ValueType::Pair(first, second) => 1 + first.depth().max(second.depth()),
            ValueType::Either(some) => some.iter().map(ValueType::depth).max().unwrap_or(0),
            _ => 0,
        }
    }
}

impl DefaultValue {
    /// Text of the default in help.
    pub fn describe(self) -> String {
        match self {
            DefaultValue::Required => "required".into(),
            DefaultValue::Is(value) | DefaultValue::Open(value) => value.into(),
            DefaultValue::Set(value) => value.to_string(),
            DefaultValue::Same(key) => format!("{key}'s"),
            DefaultValue::Twice(key) => format!("twice {key}"),
            DefaultValue::Largest(key) => format!("the largest of {key}"),
        }
    }
}

/// A time of `ns` nanoseconds in the largest unit in which it is a whole number.
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

/// JSON Schema of a quantity with a lower bound for plain numbers.
fn amount(bound: &str, least: u64) -> Value {
    let about = "a number in base units, or text with a unit";
    json!({"type": ["number", "string"], "description": about, bound: least})
}

/// JSON Schema of a time between two bounds: a number of seconds, or text with a unit. If the lower bound is a power
/// of ten, text in ns with too few digits is refused too.
fn span_schema(low: u64, high: u64) -> Value {
    let mut schema = json!({"type": ["number", "string"], "minimum": low as f64 / 1e9, "maximum": high as f64 / 1e9});
    let digits = low.max(1).ilog10();
    if digits > 0 && low == 10u64.pow(digits) {
        schema["not"] =
            json!({"type": "string", "pattern": format!("^\\s*0*[0-9]{{0,{digits}}}([.][0-9]*)?\\s*ns\\s*$")});
    }
    schema
}

/// Parses a time from `low` to `high`, ns.
fn span(value: &Value, low: u64, high: u64) -> Result<u64, InputError> {
    let (ns, exact_ns) = (ns_from_json(value)?, seconds_from_json(value)? * 1e9);
    // A time below the lower bound is not rounded up to it.
    match (low..=high).contains(&ns) && exact_ns >= low as f64 * (1.0 - 1e-9) {
        true => Ok(ns),
        false => {
            let hint = format!("give a time from {} to {}", told_ns(low), told_ns(high));
            Err(InputError::new("", format!("{} is out of range", shown(value)), hint))
        }
    }
}

/// Parses a size from one byte to `most` bytes.
fn size_to(value: &Value, most: u64) -> Result<u64, InputError> {
    let bytes = positive_bytes_from_json(value)?;
    match bytes <= most {
        true => Ok(bytes),
        false => {
            Err(InputError::new("", format!("{} is out of range", shown(value)), format!("give 1 to {most} bytes")))
        }
    }
}

/// The names of `keys`.
pub fn names<const N: usize>(keys: &[Key; N]) -> [&'static str; N] {
    keys.each_ref().map(|key| key.name)
}

/// JSON Schema of a table with these keys and no others.
pub fn table(keys: &[Key]) -> Value {
    let one = |key: &Key| {
        let mut schema = key.value_type.schema();
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
    let needed: Vec<_> = keys.iter().filter(|k| k.default == DefaultValue::Required).map(|k| k.name).collect();
    if let (false, Some(map)) = (needed.is_empty(), made.as_object_mut()) {
        map.insert("required".into(), json!(needed));
    }
    made
}

/// A type that a key's value is parsed into.
pub trait FromValue: Sized {
    /// Parses `value`, which must be of type `value_type`.
    fn read(value_type: ValueType, value: &Value) -> Result<Self, InputError>;
    /// Value with which reading continues after an error.
    fn placeholder(value_type: ValueType) -> Self;
}

impl FromValue for bool {
    fn read(_: ValueType, value: &Value) -> Result<Self, InputError> {
        flag(value)
    }
    fn placeholder(_: ValueType) -> Self {
        false
    }
}

/// Used for whole numbers, times in ns, and sizes in bytes.
impl FromValue for u64 {
    fn read(value_type: ValueType, value: &Value) -> Result<Self, InputError> {
        match value_type {
            ValueType::Whole(low, high) => whole(value, low, high),
            ValueType::Time => ns_from_json(value),
            ValueType::Span(low, high) => span(value, low, high),
            ValueType::Size => positive_bytes_from_json(value),
            ValueType::SizeTo(most) => size_to(value, most),
            other => unreachable!("{} is no whole number", other.name()),
        }
    }
    fn placeholder(value_type: ValueType) -> Self {
        if let ValueType::Whole(low, _) | ValueType::Span(low, _) = value_type { low } else { 1 }
    }
}

impl FromValue for usize {
    fn read(value_type: ValueType, value: &Value) -> Result<Self, InputError> {
        u64::read(value_type, value).map(|n| n as usize)
    }
    fn placeholder(value_type: ValueType) -> Self {
        u64::placeholder(value_type) as usize
    }
}

/// Used for numbers, rates in bit/s, times in seconds, and sizes in bytes.
impl FromValue for f64 {
    fn read(value_type: ValueType, value: &Value) -> Result<Self, InputError> {
        match value_type {
            ValueType::Number(Low::Above(low), high) => between(value, low, false, high),
            ValueType::Number(Low::From(low), high) => between(value, low, true, high),
            ValueType::Rate => match rate_bps_from_json(value)? {
                0.0 => Err(InputError::new("", "the rate is zero", "give a rate such as \"10Gbps\"")),
                rate_bps => Ok(rate_bps),
            },
            ValueType::RateOrZero => rate_bps_from_json(value),
            ValueType::Size => positive_bytes_from_json(value).map(|bytes| bytes as f64),
            ValueType::Bytes => bytes_from_json(value).map(|bytes| bytes as f64),
            ValueType::Time => seconds_from_json(value),
            ValueType::Span(low, high) => span(value, low, high).map(|ns| ns as f64 / 1e9),
            ValueType::SizeTo(most) => size_to(value, most).map(|bytes| bytes as f64),
            ValueType::Packets => f64::read(AMOUNT, value).map_err(|e| match value {
                Value::String(_) => e.hinted("it counts packets: write a number without a unit, such as 65"),
                _ => e,
            }),
            other => unreachable!("{} is no number", other.name()),
        }
    }
    fn placeholder(value_type: ValueType) -> Self {
        if let ValueType::Number(_, high) = value_type { high.min(1.0) } else { 1e9 }
    }
}

impl FromValue for ParamValue {
    fn read(value_type: ValueType, value: &Value) -> Result<Self, InputError> {
        match value_type {
            ValueType::Flag => flag(value).map(ParamValue::Flag),
            ValueType::Word(words) => {
                let told = value.as_str().map_or_else(|| shown(value), str::to_string);
                let found = words.iter().find(|word| **word == told);
                found.map(|word| ParamValue::Word(word)).ok_or_else(|| unknown_word(&told, "choice", words))
            }
            _ => f64::read(value_type, value).map(ParamValue::Number),
        }
    }
    fn placeholder(_: ValueType) -> Self {
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

impl FromValue for String {
    fn read(value_type: ValueType, value: &Value) -> Result<Self, InputError> {
        let (told, words) = (text(value)?, value_type.words());
        match words.is_empty() || words.contains(&told) {
            true => Ok(told.to_string()),
            false => Err(unknown_word(told, "value", &words)),
        }
    }
    fn placeholder(_: ValueType) -> Self {
        String::new()
    }
}

/// The value as written, of the declared type; a whole number is an integer, however it is written.
impl FromValue for Value {
    fn read(value_type: ValueType, value: &Value) -> Result<Self, InputError> {
        value_type.checked(value)
    }
    fn placeholder(_: ValueType) -> Self {
        Value::Null
    }
}

impl<A: FromValue, B: FromValue> FromValue for (A, B) {
    fn read(value_type: ValueType, value: &Value) -> Result<Self, InputError> {
        let ValueType::Pair(first, second) = value_type else { unreachable!("{} is no pair", value_type.name()) };
        let [a, b] = pair(value)?;
        let a = A::read(*first, a).map_err(|e| e.below("[0]"))?;
        Ok((a, B::read(*second, b).map_err(|e| e.below("[1]"))?))
    }
    fn placeholder(value_type: ValueType) -> Self {
        let ValueType::Pair(first, second) = value_type else { unreachable!("{} is no pair", value_type.name()) };
        (A::placeholder(*first), B::placeholder(*second))
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    fn read(value_type: ValueType, value: &Value) -> Result<Self, InputError> {
        let ValueType::List(one) = value_type else { unreachable!("{} is no list", value_type.name()) };
        each(value, |v| T::read(*one, v))
    }
    fn placeholder(_: ValueType) -> Self {
        Vec::new()
    }
}

/// Parses text.
pub fn text(value: &Value) -> Result<&str, InputError> {
    value
        .as_str()
        .ok_or_else(|| InputError::new("", format!("{} is not a text", shown(value)), "give a text in quotes"))
}

/// Parses a flag.
pub fn flag(value: &Value) -> Result<bool, InputError> {
    value
        .as_bool()
        .ok_or_else(|| InputError::new("", format!("{} is neither true nor false", shown(value)), "give true or false"))
}

/// Parses a list.
pub fn list(value: &Value) -> Result<&[Value], InputError> {
    let items = value.as_array();
    items
        .map(Vec::as_slice)
        .ok_or_else(|| InputError::new("", format!("{} is not a list", shown(value)), "give a list"))
}

/// The two items of a list.
fn pair(value: &Value) -> Result<&[Value; 2], InputError> {
    list(value)?.try_into().map_err(|_| {
        InputError::new("", format!("{} is not a pair", shown(value)), "give a list of two values, such as [1, 16]")
    })
}

/// Parses a whole number from `low` to `high`.
pub fn whole(value: &Value, low: u64, high: u64) -> Result<u64, InputError> {
    if !value.is_number() {
        let hint = if value.is_string() { "write it without quotes" } else { "give a whole number" };
        return Err(InputError::new("", format!("{} is not a number", shown(value)), hint));
    }
    const MOST_EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = |x: &f64| x.fract() == 0.0 && (0.0..=MOST_EXACT).contains(x);
    let number = value.as_u64().or_else(|| value.as_f64().filter(whole).map(|x| x as u64));
    number.filter(|n| (low..=high).contains(n)).ok_or_else(|| {
        InputError::new(
            "",
            format!("{} is out of range", shown(value)),
            format!("give a whole number from {low} to {high}"),
        )
    })
}

/// Parses a number above `low` (or from it, if `closed`) up to and including `high`.
pub fn between(value: &Value, low: f64, closed: bool, high: f64) -> Result<f64, InputError> {
    let inside = |x: &f64| *x <= high && (*x > low || (closed && *x == low));
    let Some(number) = value.as_f64() else {
        let hint = if value.is_string() { "write it without quotes" } else { "give a number" };
        return Err(InputError::new("", format!("{} is not a number", shown(value)), hint));
    };
    Some(number).filter(inside).ok_or_else(|| {
        let above = if closed { "from" } else { "above" };
        let top = if high.is_finite() { format!(" up to {high}") } else { String::new() };
        InputError::new("", format!("{} is out of range", shown(value)), format!("give a number {above} {low}{top}"))
    })
}

/// Parses each item of a list with `read`.
pub fn each<T>(value: &Value, read: impl FnMut(&Value) -> Result<T, InputError>) -> Result<Vec<T>, InputError> {
    each_of(list(value)?, read)
}

/// Converts each item with `read`.
pub fn each_of<I, T>(items: &[I], mut read: impl FnMut(&I) -> Result<T, InputError>) -> Result<Vec<T>, InputError> {
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
