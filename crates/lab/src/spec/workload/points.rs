//! Points of a cumulative distribution of flow sizes, listed in the spec or in a file.
//!
//! A file is CSV with the columns `size_bytes` and `probability`, the fraction of flows up to that size. Sizes
//! increase, probabilities do not decrease, and the last is 1.

use crate::files::Beside;
use serde_json::Value;
use subak_core::InputError;
use subak_core::formats::flows::separator;
use subak_core::keys::{Key, ValueType};
use subak_core::keys::{between, list};
use subak_core::quantity::{bytes_from_json, quoted};
use subak_core::section::Section;

/// Largest number of points of a distribution.
const MOST_POINTS: usize = 1_000_000;

/// Points collected so far: (bytes, fraction of flows up to this size).
#[derive(Default)]
struct Points(Vec<(f64, f64)>);

impl Points {
    fn push(&mut self, bytes: f64, share: f64) -> Result<(), InputError> {
        if self.0.last().is_some_and(|&(b, p)| bytes <= b || share < p) {
            let hint = "order them by size, each size once, shares never falling";
            return Err(InputError::new("", "the points do not rise", hint));
        }
        if self.0.len() == MOST_POINTS {
            return Err(InputError::new("", format!("more than {MOST_POINTS} points"), "give fewer"));
        }
        self.0.push((bytes, share));
        Ok(())
    }

    fn finish(self) -> Result<Vec<(f64, f64)>, InputError> {
        let Points(mut points) = self;
        if points.last().is_none_or(|&(_, share)| share != 1.0) {
            return Err(InputError::new("", "the last share is not 1", "end with the largest size and share 1"));
        }
        // Leading points of probability 0 are dropped: interpolation would divide by zero.
        let first = points.iter().position(|&(_, p)| p > 0.0).unwrap_or(0).saturating_sub(1);
        points.drain(..first);
        Ok(points)
    }
}

/// The columns of a file.
const COLUMNS: [&str; 2] = ["size_bytes", "probability"];

/// Parses `[[bytes, fraction of flows up to this size], ...]`.
pub(super) fn listed(value: &Value) -> Result<Vec<(f64, f64)>, InputError> {
    let shape = || InputError::new("", "the point is not a pair", "give [bytes, share of flows up to it]");
    let mut points = Points::default();
    for (i, point) in list(value)?.iter().enumerate() {
        let at = |e: InputError| e.below(&format!("[{i}]"));
        let [bytes, share] = list(point).map_err(at)? else { return Err(at(shape())) };
        let bytes = bytes_from_json(bytes).map_err(at)? as f64;
        points.push(bytes, between(share, 0.0, true, 1.0).map_err(at)?).map_err(at)?;
    }
    points.finish()
}

/// Keys of a table that names a file of sizes.
pub(super) const FILE: &[Key] =
    &[Key::required("file", ValueType::Text, "a CSV file with the columns size_bytes and probability")];

/// Reads the points from the file named by `{file = "sizes.csv"}`.
pub(super) fn of_file(value: &Value, files: &Beside) -> Result<Vec<(f64, f64)>, InputError> {
    let mut section = Section::of(value, FILE)?;
    let name: String = section.must("file")?;
    section.finish()?;
    from_csv(&files.text(&name)?).map_err(|e| e.in_file(files.shown(&name)))
}

/// Line of `text` in which `record` begins. The CSV reader's own line number does not count the empty lines before
/// the record.
pub(super) fn line_of(record: &csv::StringRecord, text: &str) -> u64 {
    let Some(position) = record.position() else { return 0 };
    let rest = text.as_bytes().get(position.byte() as usize..).unwrap_or_default();
    let empty = rest.iter().take_while(|b| matches!(b, b'\n' | b'\r')).filter(|&&b| b == b'\n').count();
    position.line() + empty as u64
}

fn from_csv(text: &str) -> Result<Vec<(f64, f64)>, InputError> {
    let shape = "give the columns size_bytes and probability in every line, and their names in the first";
    let at_line = |line: u64, what: &str, hint: &str| InputError::new(format!("line {line}"), what, hint);
    let unreadable = |e: csv::Error| {
        let line = e.position().map_or(1, csv::Position::line);
        at_line(line, &format!("is no row of the table: {e}"), shape)
    };
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let headers = reader.headers().map_err(unreadable)?.clone();
    separator(&headers).map_err(|e| at_line(1, &e.what, &e.hint))?;
    let column = |name: &str| {
        let found = headers.iter().position(|h| h == name);
        found.ok_or_else(|| at_line(1, &format!("there is no column \"{name}\""), shape))
    };
    let (sizes, shares) = (column(COLUMNS[0])?, column(COLUMNS[1])?);
    for (k, name) in headers.iter().enumerate() {
        if !COLUMNS.contains(&name) {
            let what = format!("unknown column {}", quoted(name));
            return Err(at_line(1, &what, "remove it: the columns are size_bytes and probability"));
        }
        if headers.iter().take(k).any(|other| other == name) {
            return Err(at_line(1, &format!("the column {} is there twice", quoted(name)), "leave one of them away"));
        }
    }
    let mut points = Points::default();
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        let line = line_of(&record, text);
        let number = |k: usize, least: f64, most: f64, hint: &str| {
            let trial = record.get(k).unwrap_or_default();
            let number = trial.parse::<f64>().ok().filter(|x| (least..=most).contains(x));
            number.ok_or_else(|| at_line(line, &format!("{} is \"{trial}\"", &headers[k]), hint))
        };
        let bytes = number(sizes, 1.0, 1e18, "give a number of bytes, at least 1")?;
        let share = number(shares, 0.0, 1.0, "give the share of flows up to that size, from 0 to 1")?;
        points.push(bytes, share).map_err(|e| at_line(line, &e.what, &e.hint))?;
    }
    points.finish()
}
