//! Runs of specs: simulated on threads of their own while the interpreter stays free and answers to Ctrl-C.

use crate::errors::{OrInputError, input_error};
use crate::testbed::Hosts;
use crate::watched::Watched;
use crate::weights::callables;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, ErrorKind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use subak_core::Fault;
use subak_lab::{Error, Options, Progress, Testbed, ValidSpec};

/// How often Ctrl-C is looked for and progress is passed on.
const LOOK: Duration = Duration::from_millis(50);

/// A spec that was checked: whatever is wrong with it raised `subak.InputError`.
#[pyclass(frozen, module = "subak", name = "Spec")]
pub struct Spec(ValidSpec);

#[pymethods]
impl Spec {
    /// The spec in the file `path`; every scheme under `driver`, if one is given.
    #[staticmethod]
    #[pyo3(signature = (path, driver=None))]
    fn load(py: Python<'_>, path: PathBuf, driver: Option<&str>) -> PyResult<Self> {
        py.detach(|| under(subak_lab::Spec::load(&path)?, driver).validate()).or_input_error(py).map(Spec)
    }

    /// The spec in `json`; files that it names lie in `folder`.
    #[staticmethod]
    #[pyo3(signature = (json, folder, driver=None))]
    fn parse(py: Python<'_>, json: &[u8], folder: PathBuf, driver: Option<&str>) -> PyResult<Self> {
        let parsed = py.detach(|| {
            let tree: Value = serde_json::from_slice(json)
                .map_err(|e| Fault::new("", format!("it is not a spec: {e}"), "give the sections of a spec"))?;
            under(subak_lab::Spec::from_value(tree, folder)?, driver).validate()
        });
        parsed.or_input_error(py).map(Spec)
    }

    /// What the spec calls itself.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// Every cell with what it fixes and an estimate of its cost, as a JSON list.
    fn cells(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| to_json(&self.0.cells()))
    }

    /// The flows of `cell` as planned, with their paths, as a JSON list.
    fn paths(&self, py: Python<'_>, cell: usize) -> PyResult<String> {
        if cell >= self.0.len() {
            let mend = format!("the spec has cells 0 to {}", self.0.len() - 1);
            return Err(input_error(py, Fault::new("cell", format!("there is no cell {cell}"), mend)));
        }
        let paths = py.detach(|| self.0.paths(cell)).or_input_error(py)?;
        to_json(&paths)
    }

    /// Runs what is not in `out` yet; `progress(done, cells, fraction)` hears how far it is. `policies`: callables by name.
    /// `testbed`: carries what is for hosts, `testbed(errand, goes_on)` with JSON in and out. `watched` shows how it goes. What came
    /// of it, as JSON.
    #[pyo3(signature = (out, jobs, only, progress, policies=BTreeMap::new(), testbed=None, watched=None))]
    #[expect(clippy::too_many_arguments, reason = "they are the keywords of a Python function")]
    fn run(
        &self,
        py: Python<'_>,
        out: PathBuf,
        jobs: usize,
        only: Option<usize>,
        progress: Option<Py<PyAny>>,
        policies: BTreeMap<String, Py<PyAny>>,
        testbed: Option<Py<PyAny>>,
        watched: Option<Py<Watched>>,
    ) -> PyResult<String> {
        let policies = callables(policies);
        let hosts = testbed.map(Hosts);
        let cancel = AtomicBool::new(false);
        let latest = Mutex::new(None);
        let note = |p: Progress| *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(p);
        let options = Options {
            jobs,
            only,
            progress: &note,
            cancel: &cancel,
            testbed: hosts.as_ref().map(|h| h as &dyn Testbed),
            watched: watched.as_ref().map(|watched| &watched.get().0),
        };
        let (ended, result) = py.detach(|| {
            std::thread::scope(|scope| {
                let (done, wait) = mpsc::channel::<()>();
                let worker = scope.spawn(|| {
                    let _done = done; // dropped at the end, however it comes
                    subak_lab::run_with(&self.0, &out, &options, &policies)
                });
                let mut result = Ok(());
                while wait.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                    let news = latest.lock().unwrap_or_else(PoisonError::into_inner).take();
                    if result.is_ok() {
                        result = Python::attach(|py| tell(py, progress.as_ref(), news));
                        cancel.store(result.is_err(), Ordering::Relaxed);
                    }
                }
                (worker.join(), result)
            })
        });
        result?;
        let outcome = match ended {
            Ok(ended) => ended.map_err(|e| run_error(py, e))?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        tell(py, progress.as_ref(), latest.into_inner().unwrap_or_else(PoisonError::into_inner))?;
        to_json(&outcome)
    }
}

fn under(spec: subak_lab::Spec, driver: Option<&str>) -> subak_lab::Spec {
    match driver {
        Some(driver) => spec.under_driver(driver),
        None => spec,
    }
}

/// Passes `news` on; raises what Ctrl-C or the listener raised.
fn tell(py: Python<'_>, listener: Option<&Py<PyAny>>, news: Option<Progress>) -> PyResult<()> {
    py.check_signals()?;
    if let (Some(listener), Some(news)) = (listener, news) {
        listener.call1(py, (news.done, news.cells, news.fraction))?;
    }
    Ok(())
}

fn to_json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}

/// An error of the lab: a file that fails is an unusable path, unless it is a reader that went away.
fn run_error(py: Python<'_>, error: Error) -> PyErr {
    let fault = match error {
        Error::File { source, .. } if source.kind() == ErrorKind::BrokenPipe => return source.into(),
        Error::Fault(fault) => fault,
        Error::File { path, source } => {
            Fault::new("", source.to_string(), "check the path, its permissions and the room on the disk")
                .in_file(path.display().to_string())
        }
    };
    input_error(py, fault)
}

/// The comparison of the schemes of the run in `dir`, as JSON.
#[pyfunction]
pub fn summary(py: Python<'_>, dir: PathBuf) -> PyResult<String> {
    let summary = py.detach(|| subak_lab::summary(&dir)).map_err(|e| run_error(py, e))?;
    to_json(&summary)
}

/// How the runs in two folders differ, as JSON.
#[pyfunction]
pub fn diff(py: Python<'_>, first: PathBuf, second: PathBuf) -> PyResult<String> {
    let difference = py.detach(|| subak_lab::diff(&first, &second)).map_err(|e| run_error(py, e))?;
    to_json(&difference)
}

/// Writes the results in `dir` as CSV to `out`, or to standard output: all rows, or those of one kind. The number of rows.
#[pyfunction]
pub fn export(py: Python<'_>, dir: PathBuf, kind: Option<String>, out: Option<PathBuf>) -> PyResult<u64> {
    let written = py.detach(|| match &out {
        None => subak_lab::export(&dir, kind.as_deref(), std::io::stdout().lock()),
        Some(path) => {
            let file = File::create(path).map_err(|source| Error::File { path: path.clone(), source })?;
            subak_lab::export(&dir, kind.as_deref(), BufWriter::new(file))
        }
    });
    written.map_err(|e| run_error(py, e))
}

/// Writes the packets recorded in a cell of the run in `dir` as pcapng to `out`. What it holds, as JSON.
#[pyfunction]
pub fn capture(
    py: Python<'_>,
    dir: PathBuf,
    cell: Option<usize>,
    links: Vec<String>,
    out: PathBuf,
) -> PyResult<String> {
    let written = py.detach(|| {
        let file = File::create(&out).map_err(|source| Error::File { path: out.clone(), source })?;
        subak_lab::capture(&dir, cell, &links, BufWriter::new(file))
    });
    if written.is_err() {
        // Half a capture helps nobody; that it cannot be removed adds nothing to the error that is passed up.
        let _ = std::fs::remove_file(&out);
    }
    to_json(&written.map_err(|e| run_error(py, e))?)
}

/// The columns of a results table as a JSON list of `name` and `about`.
#[pyfunction]
pub fn columns() -> PyResult<String> {
    to_json(&subak_lab::COLUMNS)
}
