//! Python interface of the exact solvers.

use crate::answer::PyAnswer;
use crate::errors::{OrInputError, fault_of};
use crate::inputs::{read, utf8};
use crate::network::PyNetwork;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use subak_core::case::{CaseColumn, FlowColumns, PathColumns, policy_from_value};
use subak_core::document::{Format, json};
use subak_core::formats::{flows::resolved, refuse_kind};
use subak_core::route::Metric;
use subak_core::{Flows, InputError, LinkId};
use subak_solve::SolveOptions;
use subak_solve::ned::{NedMethod, NedRun};

/// A checked allocation problem.
#[pyclass(frozen, module = "subak._subak", name = "Case")]
pub struct PyCase {
    /// The problem.
    pub case: Arc<subak_core::Case>,
    /// Metric of shortest-path routing for later flows without an explicit path.
    pub metric: Metric,
    /// File name for later errors.
    file: Option<String>,
}

#[pymethods]
impl PyCase {
    /// Parses the case in `text`, whose format is `json` or `toml` and whose name is `file`; files that it names are
    /// relative to `folder`.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &[u8], format: &str, file: Option<String>, folder: PathBuf) -> PyResult<Self> {
        let case = py.detach(|| parse_case(text, format, file.as_deref(), &folder)).or_input_error(py)?;
        Ok(PyCase { case: Arc::new(case), metric: Metric::default(), file })
    }

    /// Name of the policy.
    #[getter]
    fn policy(&self) -> &'static str {
        self.case.policy.name()
    }

    /// Reads flows, policy and routing from a JSON object, for `network`.
    #[staticmethod]
    fn over(py: Python<'_>, network: &PyNetwork, rest: &[u8]) -> PyResult<Self> {
        let (network, metric) = (network.network.clone(), network.metric);
        let parsed = py.detach(|| {
            let rest = json::parse(utf8(rest)?)?;
            let rest = resolved(&rest, &mut |name| read(Path::new("."), name))?;
            subak_core::Case::over(network, metric, &rest)
        });
        Ok(PyCase { case: Arc::new(parsed.or_input_error(py)?), metric, file: None })
    }

    /// Reads flows in compressed rows, for `network`.
    #[staticmethod]
    fn of_rows(py: Python<'_>, network: &PyNetwork, rows: CsrBuffers, policy: &[u8]) -> PyResult<Self> {
        let rows = (rows.0.to_vec(py)?, rows.1.to_vec(py)?, rows.2.to_vec(py)?, rows.3.to_vec(py)?);
        let (network, metric) = (network.network.clone(), network.metric);
        let read = || {
            let policy = policy_from_value(&json::parse(utf8(policy)?)?).map_err(|e| e.below("policy"))?;
            let (link_ptr, links, weight, demand_bps) = rows;
            let links = links.into_iter().map(LinkId).collect();
            let flows = Flows::from_rows(link_ptr, links, weight, demand_bps, &network)?;
            Ok(subak_core::Case { network, flows, policy })
        };
        let case: Result<subak_core::Case, InputError> = py.detach(read);
        Ok(PyCase { case: Arc::new(case.or_input_error(py)?), metric, file: None })
    }

    /// Reads flows in columns of `subak.columns`, for `network`. Plain numbers of demand are in `unit`.
    #[staticmethod]
    fn of_columns(
        py: Python<'_>,
        network: &PyNetwork,
        columns: Columns,
        unit: Option<String>,
        policy: &[u8],
    ) -> PyResult<Self> {
        let columns = flow_columns(py, columns)?;
        let (network, metric) = (network.network.clone(), network.metric);
        let read = || {
            let rest = serde_json::json!({"policy": json::parse(utf8(policy)?)?});
            subak_core::Case::over_columns(network, metric, &rest, &columns?, unit.as_deref())
        };
        let case: Result<subak_core::Case, InputError> = py.detach(read);
        Ok(PyCase { case: Arc::new(case.or_input_error(py)?), metric, file: None })
    }

    /// Solves the case by `solver`, without holding the interpreter's lock. NED and its baselines run `iterations`
    /// steps with step size `gamma`; the exact solvers accept a `tolerance` and the links' `prices` to start from.
    #[pyo3(signature = (solver, iterations = None, gamma = None, tolerance = None, prices = None))]
    fn solve(
        &self,
        py: Python<'_>,
        solver: &str,
        iterations: Option<u64>,
        gamma: Option<f64>,
        tolerance: Option<f64>,
        prices: Option<PyBuffer<f64>>,
    ) -> PyResult<PyAnswer> {
        let prices = prices.map(|prices| prices.to_vec(py)).transpose()?;
        let answer = match NedMethod::named(solver) {
            Ok(method) => {
                exact_only(tolerance.is_some(), prices.is_some()).or_input_error(py)?;
                let usual = NedRun::default();
                let run = NedRun { method, gamma, iterations: iterations.unwrap_or(usual.iterations), ..usual };
                py.detach(|| run.answer(&self.case))
            }
            Err(_) => {
                let mut options = options(solver, iterations, gamma).or_input_error(py)?;
                options.tolerance = tolerance_of(tolerance, options.tolerance).or_input_error(py)?;
                py.detach(|| subak_solve::solve_from(&self.case, &options, prices.as_deref()))
            }
        };
        Ok(PyAnswer { case: self.case.clone(), answer: answer.map_err(|e| self.in_file(e)).or_input_error(py)? })
    }
}

impl PyCase {
    /// Adds the case's file name to an error.
    pub fn in_file(&self, fault: InputError) -> InputError {
        match &self.file {
            Some(name) => fault.in_file(name),
            None => fault,
        }
    }
}

/// An error for options that only the exact solvers have.
fn exact_only(tolerance: bool, prices: bool) -> Result<(), InputError> {
    for (place, given) in [("tolerance", tolerance), ("prices", prices)] {
        if given {
            let what = "a method that goes step by step takes none";
            return Err(InputError::new(place, what, "leave it away, or take the solver auto"));
        }
    }
    Ok(())
}

fn tolerance_of(given: Option<f64>, usual: f64) -> Result<f64, InputError> {
    match given {
        None => Ok(usual),
        Some(tolerance) if (1e-12..=1e-2).contains(&tolerance) => Ok(tolerance),
        Some(other) => Err(InputError::new("tolerance", format!("it is {other}"), "give a number from 1e-12 to 0.01")),
    }
}

/// Options of the exact solver called `solver`, which accepts neither `iterations` nor `gamma`.
pub fn options(solver: &str, iterations: Option<u64>, gamma: Option<f64>) -> Result<SolveOptions, InputError> {
    let method = match solver {
        "auto" => subak_solve::SolveMethod::Own,
        "clarabel" => subak_solve::SolveMethod::Clarabel,
        other => {
            let what = format!("there is no solver \"{other}\"");
            let steps = NedMethod::ALL.map(NedMethod::name).join(", ");
            return Err(InputError::new("solver", what, format!("give auto or clarabel; of a case also {steps}")));
        }
    };
    for (place, given) in [("iterations", iterations.is_some()), ("gamma", gamma.is_some())] {
        if given {
            let hint = "leave it away, or name a solver that goes step by step, such as ned";
            return Err(InputError::new(place, format!("the solver {solver} takes none"), hint));
        }
    }
    Ok(SolveOptions { method, ..SolveOptions::default() })
}

/// Offsets, links, weights and demands.
type CsrBuffers = (PyBuffer<u32>, PyBuffer<u32>, PyBuffer<f64>, PyBuffer<f64>);

/// Distinct words, and the index of each cell's word.
type Words = (Vec<String>, PyBuffer<u32>);

/// Columns as `subak.columns` defines them: numbers, words and paths.
type Columns = (Vec<(String, PyBuffer<f64>)>, Vec<(String, Words)>, Option<(Words, PyBuffer<u32>, PyBuffer<u32>)>);

fn flow_columns(py: Python<'_>, (numbers, words, paths): Columns) -> PyResult<Result<FlowColumns, InputError>> {
    let column_of = |(words, of): Words| PyResult::Ok(CaseColumn::Words { words, of: of.to_vec(py)? });
    let mut columns = Vec::new();
    for (name, cells) in numbers {
        columns.push((name, CaseColumn::Numbers(cells.to_vec(py)?)));
    }
    for (name, cells) in words {
        columns.push((name, column_of(cells)?));
    }
    let paths_of = |(links, begins, missing): (Words, PyBuffer<u32>, PyBuffer<u32>)| {
        PyResult::Ok(PathColumns { links: column_of(links)?, begins: begins.to_vec(py)?, missing: missing.to_vec(py)? })
    };
    Ok(FlowColumns::new(columns, paths.map(paths_of).transpose()?))
}

/// Reads a Parquet or Arrow file that an input names, through the Python module `subak.columns`.
fn read_columns(folder: &Path, name: &str) -> Result<FlowColumns, InputError> {
    Python::attach(|py| {
        let read = || {
            let columns = py.import("subak.columns")?.call_method1("of_file", (folder.join(name),))?;
            flow_columns(py, columns.extract()?)
        };
        read().unwrap_or_else(|error: PyErr| Err(fault_of(py, &error)))
    })
}

/// Parses the case in `text`.
pub fn parse_case(
    text: &[u8],
    format: &str,
    file: Option<&str>,
    folder: &Path,
) -> Result<subak_core::Case, InputError> {
    let format = if format == "toml" { Format::Toml } else { Format::Json };
    file.map_or(Ok(()), refuse_kind)?;
    let parsed = utf8(text).and_then(|text| {
        let (mut read_file, mut columns) = (|name: &str| read(folder, name), |name: &str| read_columns(folder, name));
        subak_core::Case::parse_with(text, format, &mut read_file, &mut columns)
    });
    parsed.map_err(|fault| match file {
        Some(name) => fault.in_file(name),
        None => fault,
    })
}
