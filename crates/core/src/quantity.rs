//! Quantities with units: rates in bit/s, sizes in bytes, times in seconds or nanoseconds.
//!
//! A plain number is in base units. A string may carry a unit: `"10Gbps"`, `"100 Mb/s"`, `"64KiB"`, `"12us"`; b is
//! bit, B is byte, k M G T are decimal and Ki Mi Gi Ti binary. A decimal prefix moves the decimal point before the
//! text becomes binary, so that `"5.3us"` is the same number as `5.3e-6`.

use crate::{InputError, Ns};
use serde_json::Value;

/// Sizes must be below this, so that sums of a few of them fit in 64 bits.
const MOST_BYTES: u64 = 9_000_000_000_000_000_000;

/// The dimension of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// bit/s.
    Rate,
    /// Bytes.
    Size,
    /// Seconds.
    Time,
}

impl Dimension {
    /// Name of the dimension in messages.
    fn name(self) -> &'static str {
        match self {
            Dimension::Rate => "rate",
            Dimension::Size => "size",
            Dimension::Time => "time",
        }
    }

    /// The hint of an error: valid spellings.
    fn hint(self) -> &'static str {
        match self {
            Dimension::Rate => {
                "give bit/s as a number, or a rate with a unit such as \"10Gbps\", \"100 Mb/s\", \"1.25GB/s\""
            }
            Dimension::Size => "give bytes as a number, or a size with a unit such as \"64KiB\", \"1.5 GB\"",
            Dimension::Time => "give seconds as a number, or a time with a unit such as \"12us\", \"50ms\"",
        }
    }
}

/// Parses a rate, bit/s.
pub fn rate_bps(text: &str) -> Result<f64, InputError> {
    parse(text, Dimension::Rate, 0)
}

/// Parses a size, a whole number of bytes.
pub fn bytes(text: &str) -> Result<u64, InputError> {
    whole_bytes(parse(text, Dimension::Size, 0)?)
}

/// Parses a time, seconds.
pub fn seconds(text: &str) -> Result<f64, InputError> {
    parse(text, Dimension::Time, 0)
}

/// Parses a time, rounded to nanoseconds.
pub fn ns(text: &str) -> Result<Ns, InputError> {
    whole_ns(parse(text, Dimension::Time, 9)?)
}

/// A rate in bit/s, from a number or a string.
pub fn rate_bps_from_json(value: &Value) -> Result<f64, InputError> {
    from_json(value, Dimension::Rate, rate_bps)
}

/// A positive rate in bit/s, such as a capacity.
pub fn capacity_from_json(value: &Value) -> Result<f64, InputError> {
    match rate_bps_from_json(value)? {
        0.0 => Err(InputError::new("", "the capacity is zero", Dimension::Rate.hint())),
        bps => Ok(bps),
    }
}

/// A positive size in bytes, such as a buffer.
pub fn positive_bytes_from_json(value: &Value) -> Result<u64, InputError> {
    match bytes_from_json(value)? {
        0 => Err(InputError::new("", "the size is zero", Dimension::Size.hint())),
        bytes => Ok(bytes),
    }
}

/// A size in bytes, from a number or a string.
pub fn bytes_from_json(value: &Value) -> Result<u64, InputError> {
    match value.as_u64() {
        Some(whole) if whole < MOST_BYTES => Ok(whole),
        _ => whole_bytes(from_json(value, Dimension::Size, |text| parse(text, Dimension::Size, 0))?),
    }
}

/// A time in seconds, from a number or a string.
pub fn seconds_from_json(value: &Value) -> Result<f64, InputError> {
    from_json(value, Dimension::Time, seconds)
}

/// A time in nanoseconds, from a number of seconds or a string; rounded to a whole one.
pub fn ns_from_json(value: &Value) -> Result<Ns, InputError> {
    match value {
        // Parsed from text, so that 12e-6 and "12us" are the same number of nanoseconds.
        Value::Number(n) => ns(&n.to_string()),
        other => whole_ns(from_json(other, Dimension::Time, |text| parse(text, Dimension::Time, 9))?),
    }
}

/// A pure number that is finite and not negative.
pub fn number_from_json(value: &Value) -> Result<f64, InputError> {
    let x = value.as_f64().ok_or_else(|| {
        InputError::new("", format!("{} is not a number", shown(value)), "give a number, without quotes or a unit")
    })?;
    if x >= 0.0 {
        return Ok(x);
    }
    Err(InputError::new("", format!("the value is negative: {x}"), "give a finite number of zero or more"))
}

/// A value as text for messages: its JSON, shortened.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(map) => format!("a table of {}", map.len()),
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// Text in double quotes, shortened to what fits in a message.
pub fn quoted(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?} (and {} bytes more)", &text[..end], text.len() - end),
        None => format!("{text:?}"),
    }
}

fn from_json(
    value: &Value,
    dimension: Dimension,
    text: impl Fn(&str) -> Result<f64, InputError>,
) -> Result<f64, InputError> {
    match value {
        Value::String(s) => text(s),
        Value::Number(n) => match n.as_f64() {
            Some(x) if x.is_finite() && x >= 0.0 => Ok(x),
            Some(x) if x < 0.0 => Err(negative(&n.to_string(), dimension)),
            _ => Err(InputError::new("", format!("{n} is not a finite number"), dimension.hint())),
        },
        other => Err(InputError::new("", format!("{} is not a {}", shown(other), dimension.name()), dimension.hint())),
    }
}

fn negative(text: &str, dimension: Dimension) -> InputError {
    InputError::new("", format!("the {} {} is negative", dimension.name(), quoted(text)), dimension.hint())
}

fn whole_bytes(x: f64) -> Result<u64, InputError> {
    if x.fract() != 0.0 {
        let hint = format!("give a whole number of bytes, such as {}", x.round());
        return Err(InputError::new("", format!("{x} bytes is not a whole number"), hint));
    }
    if x >= MOST_BYTES as f64 {
        return Err(InputError::new("", format!("{x} bytes is too large"), "give less than 9e18 bytes"));
    }
    Ok(x as u64)
}

fn whole_ns(x: f64) -> Result<Ns, InputError> {
    if x >= 9.0e18 {
        return Err(InputError::new("", format!("{} s is too long", x / 1e9), "give less than 9e9 seconds"));
    }
    Ok(x.round() as Ns)
}

/// Parses `text` as a number of base units times 10^`shift`.
fn parse(text: &str, dimension: Dimension, shift: i32) -> Result<f64, InputError> {
    let trimmed = text.trim();
    let refuse = |what: String| InputError::new("", what, dimension.hint());
    let body = trimmed.strip_prefix('+').unwrap_or(trimmed);
    if let Some(rest) = body.strip_prefix('-')
        && rest.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '.')
    {
        return Err(negative(trimmed, dimension));
    }
    let (mantissa, exponent, unit) =
        split(body).ok_or_else(|| refuse(format!("{} is not a {}", quoted(text), dimension.name())))?;
    let scale = scale_of(unit, dimension)
        .ok_or_else(|| refuse(format!("{} is not a unit of {} ({})", quoted(unit), dimension.name(), quoted(text))))?;
    let power = i64::from(exponent) + i64::from(scale.decimal) + i64::from(shift);
    let x: f64 =
        format!("{mantissa}e{power}").parse().map_err(|_| refuse(format!("{} is not a number", quoted(body))))?;
    let x = x * scale.factor;
    if !x.is_finite() {
        return Err(refuse(format!("{} is not a finite {}", quoted(text), dimension.name())));
    }
    Ok(x)
}

/// Splits a number from its unit: digits, the exponent of ten, the unit.
fn split(text: &str) -> Option<(&str, i32, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (mantissa, rest) = text.split_at(end);
    if !mantissa.contains(|c: char| c.is_ascii_digit()) || mantissa.matches('.').count() > 1 {
        return None;
    }
    let mut exponent = 0;
    let mut unit = rest;
    if let Some(after) = rest.strip_prefix(['e', 'E']) {
        let signed = after.strip_prefix(['+', '-']).unwrap_or(after);
        let digits = signed.find(|c: char| !c.is_ascii_digit()).unwrap_or(signed.len());
        if digits > 0 {
            let length = after.len() - signed.len() + digits;
            exponent = after[..length].parse::<i32>().ok()?;
            unit = &after[length..];
        }
    }
    Some((mantissa, exponent, unit.trim_start()))
}

/// The size of a unit in base units: 10^`decimal` times `factor`.
struct Scale {
    decimal: i32,
    factor: f64,
}

fn scale_of(unit: &str, dimension: Dimension) -> Option<Scale> {
    if unit.is_empty() {
        return Some(Scale { decimal: 0, factor: 1.0 });
    }
    match dimension {
        Dimension::Time => {
            let (decimal, factor) = match unit {
                "ps" => (-12, 1.0),
                "ns" => (-9, 1.0),
                "us" | "\u{b5}s" | "\u{3bc}s" => (-6, 1.0),
                "ms" => (-3, 1.0),
                "s" => (0, 1.0),
                "min" => (0, 60.0),
                "h" => (0, 3600.0),
                _ => return None,
            };
            Some(Scale { decimal, factor })
        }
        Dimension::Size => {
            let (prefix, bits) = bits_or_bytes(unit)?;
            prefixed(prefix, bits / 8.0)
        }
        Dimension::Rate => {
            let (prefix, bits) = bits_or_bytes(unit.strip_suffix("/s").or_else(|| unit.strip_suffix("ps"))?)?;
            prefixed(prefix, bits)
        }
    }
}

/// Splits the prefix off `unit`, and returns the number of bits of the rest: 1 for bits, 8 for bytes.
fn bits_or_bytes(unit: &str) -> Option<(&str, f64)> {
    let bit = unit.strip_suffix("bit").or_else(|| unit.strip_suffix('b'));
    bit.map(|prefix| (prefix, 1.0)).or_else(|| unit.strip_suffix('B').map(|prefix| (prefix, 8.0)))
}

fn prefixed(prefix: &str, factor: f64) -> Option<Scale> {
    let binary = |power: u32| Scale { decimal: 0, factor: factor * (1u64 << power) as f64 };
    let decimal = |decimal| Scale { decimal, factor };
    Some(match prefix {
        "" => decimal(0),
        "k" | "K" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn units_as_the_interfaces_say() {
        for (text, bps) in [
            ("10Gbps", 1e10),
            ("100 Mb/s", 1e8),
            ("1.25GB/s", 1e10),
            ("30e9", 3e10),
            ("1.6Tbit/s", 1.6e12),
            ("5 bps", 5.0),
            ("2Kibps", 2048.0),
            ("1kBps", 8000.0),
            (" 7e3 kbps ", 7e6),
        ] {
            assert_eq!(rate_bps(text), Ok(bps), "{text}");
        }
        for (text, size) in
            [("64KiB", 65536), ("1.5 GB", 1_500_000_000), ("8kb", 1000), ("3TiB", 3 << 40), ("1500", 1500)]
        {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for (text, time) in
            [("12us", 12_000), ("5.3us", 5_300), ("0.1", 100_000_000), ("2 min", 120_000_000_000), ("1ps", 0)]
        {
            assert_eq!(ns(text), Ok(time), "{text}");
        }
        assert_eq!(seconds("5.3us"), Ok(5.3e-6));
        assert_eq!(ns_from_json(&json!(12e-6)), Ok(12_000));
        assert_eq!(ns_from_json(&json!(2)), Ok(2_000_000_000));
        assert_eq!(bytes_from_json(&json!(1e6)), Ok(1_000_000));
        assert_eq!(bytes_from_json(&json!(u64::from(u32::MAX) + 1)), Ok(1 << 32));
        assert_eq!(rate_bps_from_json(&json!(30e9)), Ok(3e10));
    }

    #[test]
    fn everything_else_is_refused_by_name() {
        for (text, what) in [
            ("10Gbs", "\"Gbs\" is not a unit of rate (\"10Gbs\")"),
            ("10GB", "\"GB\" is not a unit of rate (\"10GB\")"),
            ("10 parsec/s", "\"parsec/s\" is not a unit of rate (\"10 parsec/s\")"),
            ("-10Gbps", "the rate \"-10Gbps\" is negative"),
            ("NaN", "\"NaN\" is not a rate"),
            ("inf", "\"inf\" is not a rate"),
            ("", "\"\" is not a rate"),
            (".", "\".\" is not a rate"),
            ("1.2.3", "\"1.2.3\" is not a rate"),
            ("1e999", "\"1e999\" is not a finite rate"),
            ("1e99999999999", "\"1e99999999999\" is not a rate"),
            ("1e", "\"e\" is not a unit of rate (\"1e\")"),
        ] {
            let fault = rate_bps(text).unwrap_err();
            assert_eq!(fault.what, what);
            assert!(fault.hint.contains("10Gbps"));
        }
        assert_eq!(bytes("0.1KiB").unwrap_err().what, "102.4 bytes is not a whole number");
        assert_eq!(bytes_from_json(&json!(-1)).unwrap_err().what, "the size \"-1\" is negative");
        assert!(bytes_from_json(&json!(u64::MAX)).unwrap_err().what.contains("too large"));
        assert_eq!(bytes_from_json(&json!([1])).unwrap_err().what, "a list of 1 is not a size");
        assert_eq!(rate_bps_from_json(&json!(null)).unwrap_err().what, "null is not a rate");
        assert_eq!(
            seconds("12 lightyears").unwrap_err().what,
            "\"lightyears\" is not a unit of time (\"12 lightyears\")"
        );
        assert!(ns_from_json(&json!(1e10)).unwrap_err().what.contains("too long"));
        assert_eq!(ns_from_json(&json!(-1.5)).unwrap_err().what, "the time \"-1.5\" is negative");
        assert!(rate_bps(&"9".repeat(1_000_000)).unwrap_err().what.len() < 200);
    }

    proptest! {
        #[test]
        fn a_prefix_only_moves_the_point(whole in 0u64..1_000_000_000, places in 0usize..9) {
            let digits = format!("{whole:010}");
            let (left, right) = digits.split_at(10 - places);
            for (unit, power) in [("bps", 0), ("kbps", 3), ("Mb/s", 6), ("Gbit/s", 9), ("Tbps", 12)] {
                let expected: f64 = format!("{left}.{right}e{power}").parse().unwrap();
                prop_assert_eq!(rate_bps(&format!("{left}.{right} {unit}")), Ok(expected));
            }
        }

        #[test]
        fn no_text_panics(text in "[-+0-9.eEkKMGTibBps/ \\PC]{0,12}") {
            let results = [rate_bps(&text), seconds(&text), bytes(&text).map(|b| b as f64), ns(&text).map(|n| n as f64)];
            prop_assert!(results.into_iter().flatten().all(|x| x.is_finite() && x >= 0.0));
        }
    }
}
