//! The papers' experiments that are computed in Rust.

use crate::errors::{OrInputError, input_error};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use subak_core::InputError;
use subak_experiments::ExperimentPlan;

/// Interval between checks for Ctrl-C and progress reports.
const LOOK: Duration = Duration::from_millis(50);

/// Names of the experiments of [`experiment`], each with its kind.
#[pyfunction]
pub fn experiments() -> Vec<(&'static str, &'static str)> {
    subak_experiments::all().into_iter().map(|(name, kind)| (name, kind.name())).collect()
}

/// Runs the experiment called `name` with `settings` (a JSON object) on `jobs` threads (0: one per processor).
/// Returns tables, series and values as JSON. Calls `progress(done, all, fraction)`.
#[pyfunction]
#[pyo3(signature = (name, runs, seed, settings, jobs, progress))]
pub fn experiment(
    py: Python<'_>,
    name: &str,
    runs: usize,
    seed: u64,
    settings: &[u8],
    jobs: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let settings: Map<String, Value> = serde_json::from_slice(settings).map_err(|e| {
        input_error(
            py,
            InputError::new("settings", format!("they are no JSON object: {e}"), "give names with their values"),
        )
    })?;
    let plan = ExperimentPlan { runs, seed, settings };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    let pool = pool.map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    let (done, all, cancel) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let mut note = |ran: usize, of: usize| {
        done.store(ran, Ordering::Relaxed);
        all.store(of, Ordering::Relaxed);
        if cancel.load(Ordering::Relaxed) {
            // Unwinds the worker without a panic message: there is no other way to stop an experiment.
            std::panic::resume_unwind(Box::new(()));
        }
    };
    let tell = |py: Python<'_>| {
        py.check_signals()?;
        let (done, all) = (done.load(Ordering::Relaxed), all.load(Ordering::Relaxed));
        let listener = progress.as_ref().filter(|_| all > 0);
        let share = done as f64 / all.max(1) as f64;
        listener.map_or(Ok(()), |listener| listener.call1(py, (done, all, share)).map(|_| ()))
    };
    let (ended, heard) = py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, wait) = mpsc::channel::<()>();
            let worker = scope.spawn(|| {
                let _sender = sender; // dropped at the end, however it comes
                pool.install(|| subak_experiments::run(name, &plan, &mut note))
            });
            let mut heard = Ok(());
            while wait.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if heard.is_ok() {
                    heard = Python::attach(tell);
                    cancel.store(heard.is_err(), Ordering::Relaxed);
                }
            }
            (worker.join(), heard)
        })
    });
    heard?;
    tell(py)?;
    match ended {
        Ok(report) => report.or_input_error(py).map(|report| report.to_string()),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
