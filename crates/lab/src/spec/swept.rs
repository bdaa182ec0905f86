//! Swept values such as `["50KB", "100KB"]` as numbers, for the axes of figures.

use super::sweep::{Axis, declared};
use serde::Serialize;
use serde_json::Value;
use subak_core::keys::{FromValue, Low, ValueType};

/// The unit of a swept key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum AxisUnit {
    /// Bit/s.
    #[serde(rename = "bps")]
    Bps,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Ns,
    /// Bytes.
    #[serde(rename = "bytes")]
    Bytes,
    /// Packets.
    #[serde(rename = "packets")]
    Packets,
    /// A plain number.
    #[serde(rename = "")]
    One,
}

/// A swept value, as written and as a number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Swept {
    /// Value in the spec.
    pub value: Value,
    /// The value as a number in `unit`; `None` if it is not a number.
    pub number: Option<f64>,
    /// Unit of `number`.
    pub unit: Option<AxisUnit>,
}

/// Types tried for undeclared keys, such as those of a network file.
const AMOUNTS: [ValueType; 4] = [
    ValueType::Number(Low::From(f64::NEG_INFINITY), f64::INFINITY),
    ValueType::Bytes,
    ValueType::Time,
    ValueType::Rate,
];

impl AxisUnit {
    /// Name of the column for the numbers of `key`, which ends in the unit.
    pub fn column(self, key: &str) -> String {
        match self {
            AxisUnit::Bps => format!("{key}_bps"),
            AxisUnit::Ns => format!("{key}_ns"),
            AxisUnit::Bytes => format!("{key}_bytes"),
            AxisUnit::Packets => format!("{key}_packets"),
            AxisUnit::One => key.to_string(),
        }
    }

    fn of(value_type: &ValueType) -> Option<AxisUnit> {
        match value_type {
            ValueType::Rate => Some(AxisUnit::Bps),
            ValueType::Time | ValueType::Span(..) => Some(AxisUnit::Ns),
            ValueType::Size | ValueType::SizeTo(_) | ValueType::Bytes => Some(AxisUnit::Bytes),
            ValueType::Packets => Some(AxisUnit::Packets),
            ValueType::Whole(..) | ValueType::Number(..) => Some(AxisUnit::One),
            _ => None,
        }
    }
}

/// `value`, of type `value_type`, as a number in `unit`.
fn number(value_type: ValueType, unit: AxisUnit, value: &Value) -> Option<f64> {
    let read = match value_type {
        ValueType::Whole(..) => value.as_f64(),
        _ => f64::read(value_type, value).ok(),
    };
    // Times are read in seconds.
    read.map(|x| if unit == AxisUnit::Ns { (x * 1e9).round() } else { x })
}

/// `values` as numbers in one unit; `None` if any value is not such a number.
fn numbers(value_type: &ValueType, values: &[Value]) -> Option<(AxisUnit, Vec<f64>)> {
    if let ValueType::Either(some) = value_type {
        return some.iter().find_map(|one| numbers(one, values));
    }
    let unit = AxisUnit::of(value_type)?;
    values.iter().map(|v| number(*value_type, unit, v)).collect::<Option<Vec<_>>>().map(|numbers| (unit, numbers))
}

/// The values of a key of type `value_type` as written, and as numbers if all are numbers.
pub(crate) fn read(value_type: Option<&ValueType>, values: &[Value]) -> Vec<Swept> {
    let found = match value_type {
        Some(value_type) => numbers(value_type, values),
        None => AMOUNTS.iter().find_map(|one| numbers(one, values)),
    };
    let number = |i: usize| found.as_ref().map(|(_, numbers)| numbers[i]);
    let swept = |(i, value): (usize, &Value)| Swept {
        value: value.clone(),
        number: number(i),
        unit: found.as_ref().map(|(unit, _)| *unit),
    };
    values.iter().enumerate().map(swept).collect()
}

impl Axis {
    /// The axis's values as written, and as numbers if all are numbers.
    pub fn read(&self) -> Vec<Swept> {
        read(declared(&self.key).as_ref(), &self.values)
    }
}
