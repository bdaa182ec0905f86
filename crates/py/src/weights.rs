//! Weight policies that are Python callables, and the list of built-in ones.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::BTreeMap;
use std::sync::Arc;
use subak_core::InputError;
use subak_jobs::{JobStatus, Sum, WeightPolicy, policies};
use subak_lab::Policies;

/// A callable that sets the weights of one job.
struct Callable {
    call: Arc<Py<PyAny>>,
    job: String,
    names: Vec<String>,
}

/// Converts Python callables to weight policies of a run.
pub fn callables(given: BTreeMap<String, Py<PyAny>>) -> Policies {
    let mut made = Policies::new();
    for (name, call) in given {
        let call = Arc::new(call);
        made.insert(
            name,
            Box::new(move |placed| {
                let (call, job, names) = (Arc::clone(&call), placed.id.clone(), placed.names.clone());
                Box::new(Callable { call, job, names })
            }),
        );
    }
    made
}

impl Callable {
    fn ask(&self, py: Python<'_>, standing: &JobStatus) -> PyResult<Vec<f64>> {
        let to_end_s = standing.least_to_end_s();
        let flows = PyList::empty(py);
        for i in standing.running() {
            let (flow, progress) = (PyDict::new(py), &standing.progress[i]);
            flow.set_item("id", &self.names[i])?;
            flow.set_item("size_bytes", standing.job.pieces()[i].work.bytes())?;
            flow.set_item("left_bytes", standing.left_bytes(i))?;
            flow.set_item("rate_bps", progress.rate_bps)?;
            flow.set_item("weight", progress.weight)?;
            flow.set_item("to_end_s", to_end_s[i])?;
            flows.append(flow)?;
        }
        let told = PyDict::new(py);
        told.set_item("job", &self.job)?;
        told.set_item("time_ns", standing.now_ns)?;
        told.set_item("look", standing.look)?;
        told.set_item("flows", flows)?;
        self.call.call1(py, (told,))?.extract(py)
    }
}

impl WeightPolicy for Callable {
    fn sum(&self) -> Sum {
        Sum::AtMost
    }

    fn weigh(&mut self, standing: &JobStatus) -> Result<Vec<f64>, InputError> {
        Python::attach(|py| self.ask(py, standing)).map_err(|error| {
            let hint = "give a function that takes a dict and returns a list of numbers, one a flow";
            InputError::new("policy", format!("the callable failed: {error}"), hint)
        })
    }
}

/// The built-in weight policies, as JSON.
#[pyfunction]
pub fn weight_policies() -> String {
    let about = policies::ABOUT.iter().map(|one| {
        let params: Vec<_> = one.params.iter().map(subak_core::keys::Key::described).collect();
        serde_json::json!({"name": one.name, "about": one.about, "paper": one.paper, "params": params})
    });
    serde_json::Value::Array(about.collect()).to_string()
}
