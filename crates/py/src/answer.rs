//! The answer of the exact solvers, as Python holds it.

use crate::table::Table;
use arrow_array::builder::{Float64Builder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, Float64Array, StringArray};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use subak_core::{Case, LinkId};
use subak_solve::ned::worst_off;

/// Rates, bottlenecks and prices of one allocation problem, with their certificate.
#[pyclass(frozen, module = "subak", name = "Answer")]
pub struct Answer {
    /// What was solved.
    pub case: Arc<Case>,
    /// What was found.
    pub answer: subak_solve::Answer,
}

#[pymethods]
impl Answer {
    /// How the solve ended; ``"optimal"`` where the certificate is within tolerance.
    #[getter]
    fn status(&self) -> &'static str {
        self.answer.status.name()
    }

    /// The method that found it.
    #[getter]
    fn solver(&self) -> &'static str {
        self.answer.solver
    }

    /// Iterations of the solver, in its own unit.
    #[getter]
    fn iterations(&self) -> u64 {
        self.answer.iterations
    }

    /// Wall time of the solve, certificate included.
    #[getter]
    fn seconds(&self) -> f64 {
        self.answer.seconds
    }

    /// ``infeasibility``, ``gap``, ``flow_gap`` and ``stationarity``, recomputed from the answer and the case; all relative.
    #[getter]
    fn certificate<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("infeasibility", self.answer.certificate.infeasibility)?;
        dict.set_item("gap", self.answer.certificate.gap)?;
        dict.set_item("flow_gap", self.answer.certificate.flow_gap)?;
        dict.set_item("stationarity", self.answer.certificate.stationarity)?;
        Ok(dict)
    }

    /// The worst share by which a rate differs from that of another answer to the same case.
    fn off_by(&self, other: &Answer) -> f64 {
        worst_off(&self.answer.rates_bps, &other.answer.rates_bps)
    }

    /// What notebooks show.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("subak.notebook")?.call_method1("answer", (slf,))
    }

    /// One row a flow, in the order given: ``id``, ``rate_bps``, ``path_rates_bps``, ``bottlenecks``.
    #[getter]
    fn flows(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| {
            let n = self.case.flows.len();
            let mut paths = ListBuilder::new(Float64Builder::new());
            let mut bottlenecks = ListBuilder::new(StringBuilder::new());
            for f in 0..n {
                paths.values().append_slice(&self.answer.path_rates_bps[self.case.flows.paths_of(f)]);
                paths.append(true);
                for &l in self.answer.bottlenecks.row(f) {
                    bottlenecks.values().append_value(self.link_id(l));
                }
                bottlenecks.append(true);
            }
            Table::new(vec![
                ("id", Arc::new(StringArray::from_iter_values((0..n).map(|f| self.case.flows.id(f)))) as ArrayRef),
                ("rate_bps", Arc::new(Float64Array::from(self.answer.rates_bps.clone()))),
                ("path_rates_bps", Arc::new(paths.finish())),
                ("bottlenecks", Arc::new(bottlenecks.finish())),
            ])
        })
    }

    /// One row a link: ``id``, ``capacity_bps``, ``load_bps``, ``utilization``, ``price``.
    #[getter]
    fn links(&self) -> PyResult<Table> {
        let links = self.case.network.links();
        let capacity: Vec<f64> = links.iter().map(|l| l.capacity_bps).collect();
        let load = &self.answer.link_load_bps;
        let utilization = load.iter().zip(&capacity).map(|(load, c)| load / c);
        Table::new(vec![
            ("id", Arc::new(StringArray::from_iter_values(links.iter().map(|l| l.id.as_str()))) as ArrayRef),
            ("utilization", Arc::new(Float64Array::from_iter_values(utilization))),
            ("capacity_bps", Arc::new(Float64Array::from(capacity))),
            ("load_bps", Arc::new(Float64Array::from(load.to_vec()))),
            ("price", Arc::new(Float64Array::from(self.answer.link_price.to_vec()))),
        ])
    }

    /// The answer as ``subak solve --json`` prints it.
    fn to_json(&self, py: Python<'_>) -> String {
        py.detach(|| self.answer.to_json(&self.case).to_string())
    }

    fn __repr__(&self) -> String {
        format!("<subak.Answer: {}, {} flows, by {}>", self.status(), self.case.flows.len(), self.answer.solver)
    }
}

impl Answer {
    fn link_id(&self, link: LinkId) -> &str {
        &self.case.network.links()[link].id
    }
}
