//! Quantities with units as text, and quantiles of Student's t distribution.

use crate::errors::OrInputError;
use pyo3::prelude::*;
use subak_core::quantity;

/// Parses a time such as 12us; returns nanoseconds.
#[pyfunction]
pub fn nanoseconds(py: Python<'_>, text: &str) -> PyResult<u64> {
    quantity::ns(text).or_input_error(py)
}

/// Parses a size such as 64KiB; returns bytes.
#[pyfunction]
pub fn bytes_of(py: Python<'_>, text: &str) -> PyResult<u64> {
    quantity::bytes(text).or_input_error(py)
}

/// Two-sided critical value of Student's t with `df` degrees of freedom: |t| exceeds it with probability `tails`.
#[pyfunction]
pub fn student(df: usize, tails: f64) -> f64 {
    subak_lab::stats::student(df, tails)
}
