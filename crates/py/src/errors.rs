//! Conversion of an [`InputError`] to the Python exception `subak.InputError`.

use pyo3::prelude::*;
use subak_core::InputError;

/// Converts an error to the exception `subak.InputError`.
pub fn input_error(py: Python<'_>, fault: InputError) -> PyErr {
    let raised = py.import("subak.errors").and_then(|m| m.getattr("InputError")).and_then(|class| {
        let more = fault.more.into_iter().flat_map(InputError::each);
        let more = more.map(|f| class.call1((f.file, f.place, f.what, f.hint))).collect::<PyResult<Vec<_>>>()?;
        class.call1((fault.file, fault.place, fault.what, fault.hint, more))
    });
    match raised {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

/// Converts the error of a result to `subak.InputError`.
pub trait OrInputError<T> {
    /// Returns the value, or the error as an exception.
    fn or_input_error(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrInputError<T> for Result<T, InputError> {
    fn or_input_error(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|fault| input_error(py, fault))
    }
}

/// Converts a `subak.InputError` back to its error. Another exception becomes an error with its message.
pub fn fault_of(py: Python<'_>, error: &PyErr) -> InputError {
    let value = error.value(py);
    let text = |name: &str| value.getattr(name).and_then(|v| v.extract::<String>());
    match (text("what"), text("hint")) {
        (Ok(what), Ok(hint)) => InputError::new(text("place").unwrap_or_default(), what, hint),
        _ => InputError::new("", error.to_string(), "report this as a defect, with the input"),
    }
}
