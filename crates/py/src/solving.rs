//! Cases in, answers out.

use crate::answer::{Answer, solve as solve_case};
use crate::errors::{OrInputError, input_error};
use crate::network::Network;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use subak_core::case::policy_from_value;
use subak_core::document::{Format, json};
use subak_core::{Case, Fault, Flows};

/// Solves the case in `text`, which is `json` or `toml` and called `file`; files that it names lie in `folder`.
#[pyfunction]
pub fn solve(
    py: Python<'_>,
    text: &[u8],
    format: &str,
    file: Option<String>,
    folder: PathBuf,
    solver: &str,
) -> PyResult<Answer> {
    let case = py.detach(|| parse_case(text, format, file.as_deref(), &folder));
    solve_case(py, case.or_input_error(py)?, file, solver)
}

/// The case in `text`.
pub fn parse_case(text: &[u8], format: &str, file: Option<&str>, folder: &Path) -> Result<Case, Fault> {
    let format = if format == "toml" { Format::Toml } else { Format::Json };
    let parsed = utf8(text).and_then(|text| Case::parse(text, format, &mut |name| read(folder, name)));
    parsed.map_err(|fault| match file {
        Some(name) => fault.in_file(name),
        None => fault,
    })
}

/// Solves for the flows, policy and routing of a JSON object over `network`.
#[pyfunction]
pub fn solve_flows(py: Python<'_>, network: &Network, rest: &[u8], solver: &str) -> PyResult<Answer> {
    let (network, metric) = (network.network.clone(), network.metric);
    let parsed = py.detach(|| Case::over(network, metric, &json::parse(utf8(rest)?)?));
    solve_case(py, parsed.or_input_error(py)?, None, solver)
}

/// Offsets, links, weights and demands.
type Rows = (PyBuffer<u32>, PyBuffer<u32>, PyBuffer<f64>, PyBuffer<f64>);

/// Solves for flows in compressed rows over `network`.
#[pyfunction]
pub fn solve_rows(py: Python<'_>, network: &Network, rows: Rows, policy: &[u8], solver: &str) -> PyResult<Answer> {
    let rows = (rows.0.to_vec(py)?, rows.1.to_vec(py)?, rows.2.to_vec(py)?, rows.3.to_vec(py)?);
    let network = network.network.clone();
    let read = || {
        let policy = policy_from_value(&json::parse(utf8(policy)?)?).map_err(|e| e.below("policy"))?;
        let (link_ptr, links, weight, demand_bps) = rows;
        let flows = Flows::from_rows(link_ptr, links, weight, demand_bps, &network)?;
        Ok(Case { network, flows, policy })
    };
    let case: Result<Case, Fault> = py.detach(read);
    solve_case(py, case.or_input_error(py)?, None, solver)
}

/// The network in a JSON value; a file that it names lies in `folder`.
pub fn network(py: Python<'_>, text: &[u8], folder: &Path) -> PyResult<Network> {
    let read = || {
        let value: Value = json::parse(utf8(text)?)?;
        subak_core::case::network_from_value(&value, &mut |name| read(folder, name))
    };
    match py.detach(read) {
        Ok((network, metric)) => Ok(Network { network, metric }),
        Err(fault) => Err(input_error(py, fault)),
    }
}

fn utf8(text: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(text).map_err(|e| {
        let what = format!("it is not text: byte {} is no UTF-8", e.valid_up_to());
        Fault::new("", what, "give a text file in UTF-8")
    })
}

/// The text of a file that an input names: what is wrong with it lies in the input, at that place.
fn read(folder: &Path, name: &str) -> Result<String, Fault> {
    subak_lab::read_text(&folder.join(name)).map_err(|fault| {
        let path = fault.file.unwrap_or_default();
        Fault::new("", format!("{path} {}", fault.what), fault.mend)
    })
}
