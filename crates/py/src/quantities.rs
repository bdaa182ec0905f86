//! Quantities with units as text; and Student's t.

use crate::errors::OrInputError;
use pyo3::prelude::*;
use subak_core::quantity;

/// A time, in ns, such as 12us.
#[pyfunction]
pub fn nanoseconds(py: Python<'_>, text: &str) -> PyResult<u64> {
    quantity::ns(text).or_input_error(py)
}

/// A size, in bytes, such as 64KiB.
#[pyfunction]
pub fn bytes_of(py: Python<'_>, text: &str) -> PyResult<u64> {
    quantity::bytes(text).or_input_error(py)
}

/// Value of Student's t with `df` degrees of freedom that is exceeded with probability `tails`, both sides together.
#[pyfunction]
pub fn student(df: usize, tails: f64) -> f64 {
    subak_lab::stats::student(df, tails)
}
