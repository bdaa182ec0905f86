//! Arrow tables for Python through the Arrow PyCapsule interface: polars, pandas, pyarrow and DuckDB read the
//! columns in place, without copying.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A read-only table of Arrow columns.
///
/// ``to_pandas``, ``to_polars``, ``to_arrow`` and ``to_numpy`` convert it; ``pandas.DataFrame(table)``,
/// ``polars.DataFrame(table)`` and ``pyarrow.table(table)`` accept it directly. Iteration yields rows as dicts.
#[pyclass(frozen, module = "subak", name = "Table")]
pub struct Table(RecordBatch);

impl Table {
    /// Builds a table of columns of equal length.
    pub fn new(columns: Vec<(&str, ArrayRef)>) -> PyResult<Self> {
        RecordBatch::try_from_iter(columns).map(Table).map_err(|e| PyRuntimeError::new_err(e.to_string()))
    }
}

#[pymethods]
impl Table {
    /// Arrow C stream of this table, by the PyCapsule interface.
    ///
    /// ``requested_schema`` is ignored, which the interface allows: columns keep their types.
    #[pyo3(signature = (requested_schema = None))]
    pub fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|f| f.name().clone()).collect()
    }

    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    /// An Arrow table of the columns, without copying them.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        given(slf, "to_arrow")
    }

    /// A pandas frame.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        given(slf, "to_pandas")
    }

    /// A polars frame.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        given(slf, "to_polars")
    }

    /// A dict with a numpy array for each column.
    fn to_numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        given(slf, "to_numpy")
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        given(slf, "to_rows")
    }

    /// The dataframe interchange protocol.
    #[pyo3(signature = (nan_as_null = false, allow_copy = true))]
    fn __dataframe__<'py>(slf: &Bound<'py, Self>, nan_as_null: bool, allow_copy: bool) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("subak.tables")?.call_method1("interchange", (slf, nan_as_null, allow_copy))
    }

    /// HTML representation for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("subak.notebook")?.call_method1("table", (slf,))
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<subak.Table: {} rows of {}>", self.0.num_rows(), self.column_names().join(", "))
    }
}

/// Calls a function of `subak.tables` with a table.
pub fn given<'py, T: pyo3::PyTypeInfo>(table: &Bound<'py, T>, function: &str) -> PyResult<Bound<'py, PyAny>> {
    table.py().import("subak.tables")?.call_method1(function, (table,))
}
