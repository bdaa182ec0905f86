//! Quantities with units, as people write them.

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
