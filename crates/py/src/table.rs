//! Arrow tables handed to Python through the Arrow PyCapsule interface: polars, pandas, pyarrow and DuckDB take the
//! columns as they lie in memory, without copying.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A read-only table of Arrow columns.
///
/// Hand it to ``polars.DataFrame(table)``, ``pandas.DataFrame.from_arrow(table)`` or ``pyarrow.table(table)``.
#[pyclass(frozen, module = "subak", name = "Table")]
pub struct Table(RecordBatch);

impl Table {
    /// A table of columns of one length.
    pub fn new(columns: Vec<(&str, ArrayRef)>) -> PyResult<Self> {
        RecordBatch::try_from_iter(columns).map(Table).map_err(|e| PyRuntimeError::new_err(e.to_string()))
    }
}

#[pymethods]
impl Table {
    /// The Arrow C stream of this table, as the PyCapsule interface asks for it.
    ///
    /// ``requested_schema`` is a wish that the interface lets a producer leave unmet; the columns come as they are.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
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

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<subak.Table: {} rows of {}>", self.0.num_rows(), self.column_names().join(", "))
    }
}
