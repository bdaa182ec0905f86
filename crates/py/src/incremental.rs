//! Python class of a problem that is solved again after small changes.

use crate::answer::PyAnswer;
use crate::errors::OrInputError;
use crate::inputs::utf8;
use crate::solving::{PyCase, options};
use pyo3::prelude::*;
use serde_json::Value;
use std::collections::HashSet;
use subak_core::case::{flows_from_value, routing_from_value};
use subak_core::document::json;
use subak_core::quantity::{capacity_from_json, rate_bps_from_json};
use subak_core::route::Metric;
use subak_core::{Flow, InputError};

/// A case and its last answer.
#[pyclass(subclass, module = "subak._subak", name = "Incremental")]
pub struct PyIncremental {
    now: subak_solve::Incremental,
    /// Metric of shortest-path routing for flows without an explicit path.
    metric: Metric,
}

/// Parses JSON; an error names the place.
fn value(text: &[u8]) -> Result<Value, InputError> {
    json::parse(utf8(text)?)
}

#[pymethods]
impl PyIncremental {
    #[new]
    fn new(py: Python<'_>, case: &PyCase) -> Self {
        let now = py.detach(|| subak_solve::Incremental::new(subak_core::Case::clone(&case.case)));
        PyIncremental { now, metric: case.metric }
    }

    /// Adds the flows of a JSON object with `flows` and optionally `routing`: all of them, or none if one is invalid.
    fn add_flows(&mut self, py: Python<'_>, text: &[u8]) -> PyResult<()> {
        let added = py.detach(|| {
            let value = value(text)?;
            let routing = routing_from_value(value.get("routing"), self.metric)?;
            let flows = flows_from_value(&value, self.now.network(), self.now.policy(), routing)?;
            let flows: Vec<Flow> = (0..flows.len()).map(|f| flows.get(f)).collect();
            if let Some(f) = flows.iter().position(|flow| self.now.contains(&flow.id)) {
                let what = format!("there is a flow \"{}\" already", flows[f].id);
                return Err(InputError::new(format!("flows[{f}].id"), what, "give it another id"));
            }
            flows.into_iter().try_for_each(|flow| self.now.add(flow))
        });
        added.or_input_error(py)
    }

    /// Removes the flows called `ids`: all of them, or none if one is unknown.
    fn remove_flows(&mut self, py: Python<'_>, ids: Vec<String>) -> PyResult<()> {
        let mut seen = HashSet::new();
        if let Some(id) = ids.iter().find(|id| !self.now.contains(id) || !seen.insert(*id)) {
            let fault = match seen.contains(id) {
                true => InputError::new("ids", format!("\"{id}\" is named twice"), "name each flow once"),
                false => InputError::new("ids", format!("there is no flow \"{id}\""), "name a flow that is there"),
            };
            return Err(fault).or_input_error(py);
        }
        py.detach(|| ids.iter().try_for_each(|id| self.now.remove(id))).or_input_error(py)
    }

    /// Changes a flow's weight.
    fn set_weight(&mut self, py: Python<'_>, id: &str, weight: f64) -> PyResult<()> {
        self.now.set_weight(id, weight).or_input_error(py)
    }

    /// Changes a flow's demand, given as JSON: bit/s or text such as `"5Gbps"`; null for no demand.
    fn set_demand_json(&mut self, py: Python<'_>, id: &str, demand: &[u8]) -> PyResult<()> {
        let rate = |value: &Value| rate_bps_from_json(value).map_err(|e| e.below("demand"));
        let demand = value(demand).and_then(|v| if v.is_null() { Ok(None) } else { rate(&v).map(Some) });
        demand.and_then(|demand| self.now.set_demand(id, demand)).or_input_error(py)
    }

    /// Changes a link's capacity, given as JSON: bit/s or text such as `"10Gbps"`.
    fn set_capacity_json(&mut self, py: Python<'_>, link: &str, capacity: &[u8]) -> PyResult<()> {
        let capacity = value(capacity).and_then(|v| capacity_from_json(&v).map_err(|e| e.below("capacity")));
        capacity.and_then(|capacity| self.now.set_capacity(link, capacity)).or_input_error(py)
    }

    /// Solves the changed problem exactly.
    #[pyo3(signature = (solver = "auto"))]
    fn solve(&mut self, py: Python<'_>, solver: &str) -> PyResult<PyAnswer> {
        let options = options(solver, None, None).or_input_error(py)?;
        let (case, answer) = py.detach(|| self.now.solve(&options)).or_input_error(py)?;
        Ok(PyAnswer { case, answer })
    }

    /// Updates the last rates until their error is within `tolerance`. Returns the number of flows solved for, the
    /// number of rounds, and whether the repair ended in an exact solve of all flows.
    fn repair_within(&mut self, py: Python<'_>, tolerance: f64) -> PyResult<(usize, usize, bool)> {
        let done = py.detach(|| self.now.repair(tolerance)).or_input_error(py)?;
        Ok((done.flows, done.rounds, done.exact))
    }

    /// Certified rates of the latest ``solve`` or ``repair``; the status is ``"inaccurate"`` after later changes.
    /// Only for max-min over single paths.
    fn answer(&mut self, py: Python<'_>) -> PyResult<PyAnswer> {
        let (case, answer) = py.detach(|| self.now.answer()).or_input_error(py)?;
        Ok(PyAnswer { case, answer })
    }

    /// Rate of one flow after the latest ``solve`` or ``repair``, bit/s. Only for max-min over single paths.
    fn rate_bps(&self, py: Python<'_>, id: &str) -> PyResult<f64> {
        self.now.rate_bps(id).or_input_error(py)
    }

    fn __len__(&self) -> usize {
        self.now.len()
    }

    fn __contains__(&self, id: &str) -> bool {
        self.now.contains(id)
    }

    fn __repr__(&self) -> String {
        format!("<subak.Incremental: {} flows>", self.now.len())
    }
}
