//! Quantities with units.

use crate::Fault;

/// seconds
pub fn seconds_from_json(_v: &serde_json::Value) -> Result<f64, Fault> {
    todo!()
}
/// bytes
pub fn bytes_from_json(_v: &serde_json::Value) -> Result<u64, Fault> {
    todo!()
}
