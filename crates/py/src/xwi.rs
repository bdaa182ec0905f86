//! Python class of xWI over an ideal transport, run step by step.

use crate::errors::OrInputError;
use crate::solving::PyCase;
use crate::table::Table;
use arrow_array::Float64Array;
use pyo3::prelude::*;
use std::sync::Arc;
use subak_core::{Case, Utility};
use subak_solve::xwi::{XwiIteration, XwiPriceLaw, XwiSettings};

/// Work between two checks for Ctrl-C: the number of steps times the number of flows.
const VISITS: usize = 2_000_000;

/// The iteration behind `subak.Xwi`.
#[pyclass(subclass, module = "subak._subak", name = "Xwi")]
pub struct PyXwi {
    now: XwiIteration<Arc<Case>>,
    flows: usize,
}

#[pymethods]
impl PyXwi {
    /// xWI on `case` with prices of 0; an infinite `diminish_after` keeps the share of the new price constant.
    #[new]
    fn new(py: Python<'_>, case: &PyCase, beta: f64, eta: f64, diminish_after: f64) -> PyResult<Self> {
        let settings = XwiSettings { law: XwiPriceLaw { eta, beta }, diminish_after, ..XwiSettings::default() };
        let flows = case.case.flows.len();
        let make = || {
            let utilities = (0..flows).map(|f| Utility::of(&case.case, f).map(Arc::new)).collect::<Result<_, _>>()?;
            XwiIteration::new(case.case.clone(), utilities, settings)
        };
        let now = make().map_err(|e| case.in_file(e)).or_input_error(py)?;
        Ok(PyXwi { now, flows })
    }

    /// Runs `n` steps, without holding the interpreter's lock.
    fn steps(&mut self, py: Python<'_>, n: u64) -> PyResult<()> {
        let most = (VISITS / self.flows.max(1)).max(1) as u64;
        let mut left = n;
        while left > 0 {
            let these = left.min(most);
            py.detach(|| (0..these).for_each(|_| self.now.step()));
            left -= these;
            py.check_signals()?;
        }
        Ok(())
    }

    /// Number of steps.
    #[getter]
    fn iterations(&self) -> u64 {
        self.now.steps()
    }

    /// Rate of each flow, bit/s.
    fn rates_table(&self) -> PyResult<Table> {
        Table::new(vec![("rate_bps", Arc::new(Float64Array::from(self.now.rates_bps())))])
    }

    /// Price of each link, in utility per bit/s.
    fn prices_table(&self) -> PyResult<Table> {
        Table::new(vec![("price", Arc::new(self.now.prices().iter().copied().map(Some).collect::<Float64Array>()))])
    }

    fn __len__(&self) -> usize {
        self.flows
    }
}
