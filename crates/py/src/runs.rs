//! Python interface of runs. Trials run on separate threads, so that the interpreter can handle Ctrl-C.

use crate::errors::{OrInputError, input_error};
use crate::outside;
use crate::remote::{Machines, RemoteTrialRow, told};
use crate::testbed::PyTestbed;
use crate::watched::PyWatched;
use crate::weights::callables;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
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
use subak_core::InputError;
use subak_lab::{Error, Progress, RemoteWorkers, RunOptions, Testbed, ValidSpec};

/// Interval between checks for Ctrl-C and progress reports.
const LOOK: Duration = Duration::from_millis(50);

/// A checked spec.
#[pyclass(frozen, module = "subak", name = "Spec")]
pub struct PySpec(pub ValidSpec);

#[pymethods]
impl PySpec {
    /// Reads the spec file `path`. If `backend` is set, every scheme runs under this backend.
    #[staticmethod]
    #[pyo3(signature = (path, backend=None, schemes=BTreeMap::new()))]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        backend: Option<&str>,
        schemes: BTreeMap<String, Py<PyAny>>,
    ) -> PyResult<Self> {
        let given = outside::given(py, schemes)?;
        py.detach(|| checked(under(subak_lab::Spec::load(&path)?, backend).with_schemes(given)))
            .or_input_error(py)
            .map(PySpec)
    }

    /// Parses the spec in `json`; files that it names are relative to `folder`.
    #[staticmethod]
    #[pyo3(signature = (json, folder, backend=None, schemes=BTreeMap::new()))]
    fn parse(
        py: Python<'_>,
        json: &[u8],
        folder: PathBuf,
        backend: Option<&str>,
        schemes: BTreeMap<String, Py<PyAny>>,
    ) -> PyResult<Self> {
        let given = outside::given(py, schemes)?;
        py.detach(|| checked(under(tree(json, folder)?, backend).with_schemes(given))).or_input_error(py).map(PySpec)
    }

    /// Name of the spec.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// Parses the spec in `json`, with the contents of the files that it names, for a spec from another machine.
    #[staticmethod]
    fn brought(py: Python<'_>, json: &[u8], files: BTreeMap<String, Vec<u8>>) -> PyResult<Self> {
        py.detach(|| checked(tree(json, PathBuf::new())?.with_files(files))).or_input_error(py).map(PySpec)
    }

    /// Input for other machines: the spec as JSON, and the files that it names.
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<(String, BTreeMap<String, Bound<'py, PyBytes>>)> {
        let files = py.detach(|| self.0.files()).or_input_error(py)?;
        let files = files.into_iter().map(|(name, held)| (name, PyBytes::new(py, &held))).collect();
        Ok((to_json(self.0.tree())?, files))
    }

    /// Whether any scheme is a class in a file of Python.
    fn is_interpreted(&self) -> bool {
        let schemes = self.0.tree().get("scheme").and_then(Value::as_array);
        schemes.into_iter().flatten().any(|scheme| scheme.get("python").is_some())
    }

    /// Whether any trial runs on a testbed.
    fn is_on_hosts(&self) -> bool {
        (0..self.0.len()).any(|trial| self.0.is_on_hosts(trial))
    }

    /// Every trial with its parameters and estimated cost, as a JSON list.
    fn trials(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| to_json(&self.0.trials()))
    }

    /// The planned flows of `trial` with their paths, as a JSON list.
    fn paths(&self, py: Python<'_>, trial: usize) -> PyResult<String> {
        if trial >= self.0.len() {
            let hint = format!("the spec has trials 0 to {}", self.0.len() - 1);
            return Err(input_error(py, InputError::new("trial", format!("there is no trial {trial}"), hint)));
        }
        let paths = py.detach(|| self.0.paths(trial)).or_input_error(py)?;
        to_json(&paths)
    }

    /// Runs the missing trials into `out`: `jobs` concurrent trials on `threads` threads each (0: the default).
    /// `progress(done, trials, fraction)` is called regularly. `policies` are weight policies: callables by name.
    /// `testbed(request, goes_on)` runs trials on hosts; its request and result are JSON. `watched` is the state of a
    /// live page. `elsewhere` runs the trials on other machines. Returns the outcome as JSON.
    #[pyo3(signature = (out, jobs, only, progress, policies=BTreeMap::new(), testbed=None, watched=None, elsewhere=None, threads=0))]
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
        watched: Option<Py<PyWatched>>,
        elsewhere: Option<Py<PyAny>>,
        threads: usize,
    ) -> PyResult<String> {
        let policies = callables(policies);
        let hosts = testbed.map(PyTestbed);
        let machines = elsewhere.map(Machines);
        let cancel = AtomicBool::new(false);
        let latest = Mutex::new(None);
        let note = |p: Progress| *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(p);
        let options = RunOptions {
            jobs,
            threads,
            only,
            progress: &note,
            cancel: &cancel,
            testbed: hosts.as_ref().map(|h| h as &dyn Testbed),
            watched: watched.as_ref().map(|watched| &watched.get().0),
            remote: machines.as_ref().map(|m| m as &dyn RemoteWorkers),
        };
        let news = || latest.lock().unwrap_or_else(PoisonError::into_inner).take();
        let work = || subak_lab::run_with(&self.0, &out, &options, &policies);
        let ended = apart(py, &cancel, work, |py| tell(py, progress.as_ref(), news()))?;
        let outcome = ended.map_err(|e| run_error(py, e))?;
        tell(py, progress.as_ref(), news())?;
        to_json(&outcome)
    }

    /// Runs one trial for another machine, with temporary files in `folder`, while `goes_on()` returns true. Returns
    /// its outcome; `None` if it was cancelled.
    fn run_trial<'py>(
        &self,
        py: Python<'py>,
        trial: usize,
        folder: PathBuf,
        goes_on: &Bound<'py, PyAny>,
    ) -> PyResult<Option<RemoteTrialRow<Bound<'py, PyBytes>>>> {
        let goes_on = goes_on.clone().unbind();
        let cancel = AtomicBool::new(false);
        let look = |py: Python<'_>| {
            let stop = !goes_on.call0(py)?.is_truthy(py)?;
            cancel.fetch_or(stop, Ordering::Relaxed);
            Ok(())
        };
        let came = apart(py, &cancel, || subak_lab::run_trial(&self.0, trial, &folder, &cancel), look)?;
        Ok(came.map_err(|e| run_error(py, e))?.map(|came| told(py, came)))
    }
}

/// Runs `work` on a thread of its own and calls `look` periodically; once `look` raises, sets `cancel` and waits for `work`.
pub fn apart<T: Send>(
    py: Python<'_>,
    cancel: &AtomicBool,
    work: impl FnOnce() -> T + Send,
    look: impl Fn(Python<'_>) -> PyResult<()> + Sync,
) -> PyResult<T> {
    let (ended, looked) = py.detach(|| {
        std::thread::scope(|scope| {
            let (done, wait) = mpsc::channel::<()>();
            let worker = scope.spawn(|| {
                let _done = done; // dropped at the end, however it comes
                work()
            });
            let mut looked = Ok(());
            while wait.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if looked.is_ok() {
                    looked = Python::attach(&look);
                    cancel.fetch_or(looked.is_err(), Ordering::Relaxed);
                }
            }
            (worker.join(), looked)
        })
    });
    looked?;
    Ok(ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// Checks the spec, whose schemes may be Python classes.
fn checked(spec: subak_lab::Spec) -> Result<ValidSpec, InputError> {
    spec.validate_with(&outside::PythonLoader)
}

/// Parses the spec in `json` without checking it; files that it names are relative to `folder`.
fn tree(json: &[u8], folder: PathBuf) -> Result<subak_lab::Spec, InputError> {
    let tree: Value = serde_json::from_slice(json)
        .map_err(|e| InputError::new("", format!("it is not a spec: {e}"), "give the sections of a spec"))?;
    subak_lab::Spec::from_value(tree, folder)
}

fn under(spec: subak_lab::Spec, backend: Option<&str>) -> subak_lab::Spec {
    match backend {
        Some(backend) => spec.under_backend(backend),
        None => spec,
    }
}

/// Passes `news` to the listener; raises its exception, or that of Ctrl-C.
fn tell(py: Python<'_>, listener: Option<&Py<PyAny>>, news: Option<Progress>) -> PyResult<()> {
    py.check_signals()?;
    if let (Some(listener), Some(news)) = (listener, news) {
        listener.call1(py, (news.done, news.trials, news.fraction))?;
    }
    Ok(())
}

fn to_json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}

/// Converts an error of the crate `lab`. A failed file becomes an unusable path, unless the reader of a pipe has
/// closed it.
fn run_error(py: Python<'_>, error: Error) -> PyErr {
    let fault = match error {
        Error::File { source, .. } if source.kind() == ErrorKind::BrokenPipe => return source.into(),
        Error::InputError(fault) => fault,
        Error::File { path, source } => {
            InputError::new("", source.to_string(), "check the path, its permissions and the room on the disk")
                .in_file(path.display().to_string())
        }
    };
    input_error(py, fault)
}

/// Comparison of the schemes of the run in `dir`, as JSON.
#[pyfunction]
pub fn summary(py: Python<'_>, dir: PathBuf) -> PyResult<String> {
    let summary = py.detach(|| subak_lab::summary(&dir)).map_err(|e| run_error(py, e))?;
    to_json(&summary)
}

/// Differences between the runs in two folders, as JSON.
#[pyfunction]
pub fn diff(py: Python<'_>, first: PathBuf, second: PathBuf) -> PyResult<String> {
    let difference = py.detach(|| subak_lab::diff(&first, &second)).map_err(|e| run_error(py, e))?;
    to_json(&difference)
}

/// Writes the results in `dir` as CSV to `out` or to standard output: all rows, or those of one kind. Returns the
/// number of rows.
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

/// Writes the recorded packets of a trial of the run in `dir` as pcapng to `out`. Returns their counts, as JSON.
#[pyfunction]
pub fn capture(
    py: Python<'_>,
    dir: PathBuf,
    trial: Option<usize>,
    links: Vec<String>,
    out: PathBuf,
) -> PyResult<String> {
    let written = py.detach(|| {
        let file = File::create(&out).map_err(|source| Error::File { path: out.clone(), source })?;
        subak_lab::capture(&dir, trial, &links, BufWriter::new(file))
    });
    if written.is_err() {
        // An incomplete capture is removed; a failure to remove it is not reported in addition.
        let _ = std::fs::remove_file(&out);
    }
    to_json(&written.map_err(|e| run_error(py, e))?)
}

/// The columns of a results table as a JSON list of `name` and `about`.
#[pyfunction]
pub fn columns() -> PyResult<String> {
    to_json(&subak_lab::COLUMNS)
}
