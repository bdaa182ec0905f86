//! A testbed implemented by a Python function.

use crate::errors::fault_of;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use subak_core::InputError;
use subak_lab::Testbed;
use subak_testbed::{Recording, TestbedRequest};

/// Interval between progress reports, each of which returns whether to continue.
const LOOK: Duration = Duration::from_millis(50);

/// A Python function that carries out a request on a testbed. Its arguments are the request and a [`GoesOn`]; it
/// returns a recording. Request and recording are JSON.
pub struct PyTestbed(pub Py<PyAny>);

/// Callback with the fraction done; returns whether to continue.
#[pyclass(frozen, module = "subak")]
struct GoesOn {
    share: AtomicU64,
    stop: AtomicBool,
}

#[pymethods]
impl GoesOn {
    fn __call__(&self, share: f64) -> bool {
        self.share.store(share.to_bits(), Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed)
    }
}

impl Testbed for PyTestbed {
    fn carry(
        &self,
        request: &TestbedRequest,
        progress: &(dyn Fn(f64) -> bool + Sync),
    ) -> Result<Recording, InputError> {
        let broken = |what: String| InputError::new("backend", what, "report this as a defect, with the spec");
        let request = serde_json::to_string(request).map_err(|e| broken(e.to_string()))?;
        let goes_on = Python::attach(|py| {
            Py::new(py, GoesOn { share: AtomicU64::new(0f64.to_bits()), stop: AtomicBool::new(false) })
        });
        let goes_on = goes_on.map_err(|e| broken(e.to_string()))?;
        let told = Python::attach(|py| goes_on.clone_ref(py));
        let answer = std::thread::scope(|scope| {
            let call = || Python::attach(|py| self.0.call1(py, (request, told))?.extract::<String>(py));
            let call = scope.spawn(call);
            while !call.is_finished() {
                std::thread::sleep(LOOK);
                let goes_on = goes_on.get();
                let share = f64::from_bits(goes_on.share.load(Ordering::Relaxed));
                goes_on.stop.store(!progress(share), Ordering::Relaxed);
            }
            call.join()
        });
        let answer = answer.map_err(|_| broken("the testbed panicked".to_string()))?;
        let answer = answer.map_err(|e| Python::attach(|py| fault_of(py, &e)))?;
        serde_json::from_str(&answer).map_err(|e| broken(format!("the recording is malformed: {e}")))
    }
}
