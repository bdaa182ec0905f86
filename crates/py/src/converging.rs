//! Python interface of the round-based backend: a scheme's control messages on the flows of a case.

use crate::errors::OrInputError;
use crate::solving::parse_case;
use pyo3::prelude::*;
use serde_json::Value;
use std::path::PathBuf;
use subak_core::InputError;
use subak_core::document::json;
use subak_rounds::{ConvergeOptions, RoundsPlan};

/// Runs `scheme` on the case in `text` (see `solve`) with `options`, a JSON object; returns the result as JSON.
#[pyfunction]
pub fn converge(
    py: Python<'_>,
    text: &[u8],
    format: &str,
    file: Option<String>,
    folder: PathBuf,
    scheme: &str,
    options: &[u8],
) -> PyResult<String> {
    let answer: Result<Value, InputError> = py.detach(|| {
        let options = read(&json::parse(&String::from_utf8_lossy(options))?);
        let case = parse_case(text, format, file.as_deref(), &folder)?;
        subak_rounds::converge(&case, scheme, &options)
    });
    answer.or_input_error(py).map(|answer| answer.to_string())
}

/// Parses options whose types the command `subak converge` has checked; a missing option has its default.
fn read(given: &Value) -> ConvergeOptions {
    let default = RoundsPlan::default();
    let number = |key: &str, default: f64| given[key].as_f64().unwrap_or(default);
    let plan = RoundsPlan {
        seed: given["seed"].as_u64().unwrap_or(default.seed),
        max_rounds: number("max_rounds", default.max_rounds),
        drop: number("drop", default.drop),
        traced: given["trace"].as_bool().unwrap_or(false),
        params: given["params"].as_object().cloned().unwrap_or_default(),
        ..default
    };
    ConvergeOptions { plan, order: given.get("order").cloned() }
}
