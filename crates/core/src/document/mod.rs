//! JSON and TOML documents, parsed to one type of value and checked key by key.
//!
//! Unknown keys are errors with a hint: the nearest known key.

pub mod json;
pub mod toml;

use crate::InputError;
use crate::input_error::MOST_FAULTS;
use crate::quantity::{quoted, shown};
use serde_json::{Map, Value};

/// The syntax of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    Json,
    /// TOML.
    Toml,
}

impl Format {
    /// The format by file name: TOML for `.toml`, otherwise JSON.
    pub fn of(file: &str) -> Self {
        if file.to_lowercase().ends_with(".toml") { Format::Toml } else { Format::Json }
    }
}

/// Parses `text`. A syntax error names its line and column.
pub fn parse(text: &str, format: Format) -> Result<Value, InputError> {
    match format {
        Format::Json => json::parse(text),
        Format::Toml => toml::parse(text),
    }
}

/// A parser's message, truncated: some parsers quote the document at any length.
pub(crate) fn shortened(message: &str) -> String {
    message.chars().take(200).collect()
}

/// The line and column, both from 1, of byte `offset` of `text`.
pub(crate) fn line_and_column(text: &str, offset: usize) -> String {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    let start = before.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
    format!("line {line}, column {}", String::from_utf8_lossy(&before[start..]).chars().count() + 1)
}

/// The table in `value`, or an error that names the type found. `what` names the value: "a flow", "the policy".
pub fn table<'a>(value: &'a Value, what: &str, example: &str) -> Result<&'a Map<String, Value>, InputError> {
    value.as_object().ok_or_else(|| {
        InputError::new(
            "",
            format!("{what} is a table of keys and values, not {}", shown(value)),
            format!("write {example}"),
        )
    })
}

/// The list in `value`, or an error that names the type found.
pub fn list<'a>(value: &'a Value, what: &str, example: &str) -> Result<&'a [Value], InputError> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| {
        InputError::new("", format!("{what} is a list, not {}", shown(value)), format!("write {example}"))
    })
}

/// The text in `value`, or an error that names the type found.
pub fn text<'a>(value: &'a Value, what: &str) -> Result<&'a str, InputError> {
    value.as_str().ok_or_else(|| {
        InputError::new("", format!("{what} is a string, not {}", shown(value)), "write it in double quotes")
    })
}

/// An error for each key of `map` that is not in `known`.
pub fn check_keys(map: &Map<String, Value>, known: &[&str]) -> Result<(), InputError> {
    let unknown = map.keys().filter(|key| !known.contains(&key.as_str())).take(MOST_FAULTS);
    InputError::all(unknown.map(|key| unknown_key(key, known))).map_or(Ok(()), Err)
}

/// Error of an unknown key, placed at the key.
pub fn unknown_key(key: &str, known: &[&str]) -> InputError {
    InputError::new(place_of(key), format!("unknown key {}", quoted(key)), suggest(key, known, "known keys"))
}

/// Error of a word that is not in `known`; `what` names the kind of word.
pub fn unknown_word(word: &str, what: &str, known: &[&str]) -> InputError {
    InputError::new("", format!("unknown {what} {}", quoted(word)), suggest(word, known, "known"))
}

/// Names of keys in other tools, each with the name in Subak.
const OTHER_NAMES: [(&str, &str); 6] = [
    ("rate", "demand"),
    ("bandwidth", "capacity"),
    ("bw", "capacity"),
    ("latency", "delay"),
    ("prob", "probability"),
    ("priority", "weight"),
];

/// The known word nearest to `word`, if it is near enough for a hint.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    const LONGEST: usize = 40;
    if word.len() > LONGEST {
        return None;
    }
    let word = word.to_lowercase().replace(['_', ' '], "-");
    let means = |k: &&&str| OTHER_NAMES.contains(&(word.as_str(), **k));
    if let Some(meant) = known.iter().find(means) {
        return Some(meant);
    }
    // For example "link-down", which contains the known word "down".
    let holds = |k: &&&str| k.len() > 2 && word.split('-').any(|part| part == **k);
    if let Some(held) = known.iter().find(holds) {
        return Some(held);
    }
    let distance = |k: &&str| strsim::osa_distance(&word, &k.replace('_', "-"));
    known.iter().copied().map(|k| (distance(&k), k)).min().filter(|(d, k)| *d <= 1 + k.len() / 4).map(|(_, k)| k)
}

/// `key` as the place of an error shows it: in brackets and quotes if it is long or has unusual characters.
pub fn place_of(key: &str) -> String {
    let plain = !key.is_empty() && key.len() <= 40 && key.chars().all(|c| c.is_alphanumeric() || "_-#>".contains(c));
    if plain { key.to_string() } else { format!("[{}]", quoted(key)) }
}

fn suggest(word: &str, known: &[&str], label: &str) -> String {
    let all = known.join(", ");
    match nearest(word, known) {
        Some(near) => format!("did you mean \"{near}\"? {label}: {all}"),
        None => format!("{label}: {all}"),
    }
}
