//! Python class of the exact solvers' answer.

use crate::table::{Table, given};
use arrow_array::builder::{Float64Builder, ListBuilder, StringBuilder};
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Float64Array, ListArray, StringArray, UInt32Array};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, Field};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::sync::Arc;
use subak_core::{Case, LinkId};
use subak_solve::LinkRow;
use subak_solve::ned::worst_off;

/// Rates, bottlenecks and prices of one allocation problem, with their certificate.
#[pyclass(frozen, module = "subak", name = "Answer")]
pub struct PyAnswer {
    /// Problem that was solved.
    pub case: Arc<Case>,
    /// Rates, prices and certificate.
    pub answer: subak_solve::Answer,
}

#[pymethods]
impl PyAnswer {
    /// Status of the solve; ``"optimal"`` if the certificate is within the tolerance.
    #[getter]
    fn status(&self) -> &'static str {
        self.answer.status.name()
    }

    /// Name of the policy.
    #[getter]
    fn policy(&self) -> &'static str {
        self.case.policy.name()
    }

    /// Name of the method that solved the case.
    #[getter]
    fn solver(&self) -> &'static str {
        self.answer.solver
    }

    /// Number of iterations. The solver defines what one iteration is.
    #[getter]
    fn iterations(&self) -> u64 {
        self.answer.iterations
    }

    /// Wall time of the solve, certificate included, s.
    #[getter]
    fn seconds(&self) -> f64 {
        self.answer.seconds
    }

    /// Relative residuals, recomputed from the answer and the case: ``infeasibility``, ``gap``, ``flow_gap`` and
    /// ``stationarity``.
    #[getter]
    fn certificate<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("infeasibility", self.answer.certificate.infeasibility)?;
        dict.set_item("gap", self.answer.certificate.gap)?;
        dict.set_item("flow_gap", self.answer.certificate.flow_gap)?;
        dict.set_item("stationarity", self.answer.certificate.stationarity)?;
        Ok(dict)
    }

    /// Logarithm of the unit of the links' ``price``, in utility per bit/s: 0, except where prices exceed the range
    /// of doubles.
    #[getter]
    fn ln_price_unit(&self) -> f64 {
        self.answer.ln_price_unit
    }

    /// Largest relative difference of a rate from that of another answer to the same case.
    fn off_by(&self, other: &PyAnswer) -> f64 {
        worst_off(&self.answer.rates_bps, &other.answer.rates_bps)
    }

    /// HTML representation for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("subak.notebook")?.call_method1("answer", (slf,))
    }

    /// One row per flow, in the order given: ``id``, ``rate_bps``, ``path_rates_bps``, ``paths``, ``bottlenecks``,
    /// ``status``. Each path is a list of links. ``status`` is null, or the reason why a flow cannot send:
    /// ``no-path`` or ``link-down``.
    #[getter]
    fn flows(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| {
            let given = &self.case.flows;
            let n = given.len() + given.stranded().len();
            let (mut ids, mut status) = (StringBuilder::with_capacity(n, 0), StringBuilder::new());
            let mut rates_bps = Vec::with_capacity(n);
            let mut paths = ListBuilder::new(Float64Builder::new());
            let mut bottlenecks = ListBuilder::new(StringBuilder::new());
            for flow in given.in_order() {
                match flow {
                    Ok(f) => {
                        ids.append_value(given.id(f));
                        status.append_null();
                        rates_bps.push(self.answer.rates_bps[f]);
                        paths.values().append_slice(&self.answer.path_rates_bps[given.paths_of(f)]);
                        for &l in self.answer.bottlenecks.row(f) {
                            bottlenecks.values().append_value(self.link_id(l));
                        }
                    }
                    Err(stranded) => {
                        ids.append_value(&stranded.id);
                        status.append_value(stranded.why.name());
                        rates_bps.push(0.0);
                    }
                }
                paths.append(true);
                bottlenecks.append(true);
            }
            Table::new(vec![
                ("id", Arc::new(ids.finish()) as ArrayRef),
                ("rate_bps", Arc::new(Float64Array::from(rates_bps))),
                ("path_rates_bps", Arc::new(paths.finish())),
                ("paths", self.paths()?),
                ("bottlenecks", Arc::new(bottlenecks.finish())),
                ("status", Arc::new(status.finish())),
            ])
        })
    }

    /// Warnings of the case's reader, one sentence each: edges with a default capacity, flows that cannot send.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.case.notes()
    }

    /// One row per link: ``id``, ``capacity_bps``, ``load_bps``, ``utilization``, ``price``. Links of capacity 0 come
    /// last, with load and utilization 0 and without a price.
    #[getter]
    fn links(&self) -> PyResult<Table> {
        let links = self.answer.links(&self.case);
        let column = |of: fn(&LinkRow) -> f64| Arc::new(links.iter().map(|l| Some(of(l))).collect::<Float64Array>());
        Table::new(vec![
            ("id", Arc::new(StringArray::from_iter_values(links.iter().map(|l| l.link.id.as_str()))) as ArrayRef),
            ("utilization", column(|l| l.utilization())),
            ("capacity_bps", column(|l| l.link.capacity_bps)),
            ("load_bps", column(|l| l.load_bps)),
            ("price", Arc::new(links.iter().map(|l| l.price).collect::<Float64Array>())),
        ])
    }

    /// ``flows`` as an Arrow C stream, from which data frames can be made.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.flows(py)?.__arrow_c_stream__(py, requested_schema)
    }

    /// The rows of ``flows`` as dicts.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        given(slf, "to_rows")
    }

    /// ``flows`` as a pandas frame.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        given(slf, "to_pandas")
    }

    /// ``flows`` as a polars frame.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        given(slf, "to_polars")
    }

    /// ``flows`` as a dict of numpy arrays.
    fn to_numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        given(slf, "to_numpy")
    }

    /// The answer as ``subak solve --json`` prints it.
    fn to_json(&self, py: Python<'_>) -> String {
        py.detach(|| self.answer.to_json(&self.case).to_string())
    }

    fn __repr__(&self) -> String {
        format!(
            "<subak.Answer: {}, {} flows, by {}>",
            self.status(),
            self.case.flows.len() + self.case.flows.stranded().len(),
            self.answer.solver
        )
    }
}

impl PyAnswer {
    /// Links of each path of each flow, dictionary-encoded: each id is stored once.
    fn paths(&self) -> PyResult<ArrayRef> {
        let flows = &self.case.flows;
        let broken = |e: ArrowError| PyRuntimeError::new_err(e.to_string());
        let ids = self.case.network.links().iter().map(|l| l.id.as_str());
        let places = UInt32Array::from_iter_values(flows.links().iter().map(|l| l.0));
        let links = DictionaryArray::<UInt32Type>::try_new(places, Arc::new(StringArray::from_iter_values(ids)));
        let paths = list(flows.link_ptr().iter().map(|&p| p as usize), Arc::new(links.map_err(broken)?));
        let ends = flows.in_order().scan(0, |end, flow| {
            *end = flow.map_or(*end, |f| flows.paths_of(f).end);
            Some(*end)
        });
        let flows = paths.and_then(|paths| list(std::iter::once(0).chain(ends), paths));
        flows.map_err(broken)
    }

    fn link_id(&self, link: LinkId) -> &str {
        &self.case.network.links()[link].id
    }
}

/// A list column: list `i` has the values between two successive `ends`, of which the first is 0.
pub fn list(ends: impl Iterator<Item = usize>, values: ArrayRef) -> Result<ArrayRef, ArrowError> {
    let offsets = ends.map(i32::try_from).collect::<Result<Vec<i32>, _>>();
    let offsets = offsets.map_err(|_| ArrowError::ComputeError("the paths have more than 2^31 links".into()))?;
    let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    Ok(Arc::new(ListArray::try_new(item, offsets, values, None)?))
}
