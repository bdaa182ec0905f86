//! What the schemes say of themselves.

use pyo3::prelude::*;
use serde_json::{Value as Json, json};
use subak_core::scheme::{Info, Kind, Param, Value};

/// Every scheme as a JSON list: name, kind, parameters with defaults and units, paper, and the drivers that run it.
#[pyfunction]
pub fn schemes() -> String {
    Json::from_iter(subak_lab::drivers::all().iter().map(scheme)).to_string()
}

fn scheme(info: &Info) -> Json {
    let kind = match info.kind {
        Kind::Oracle => "oracle",
        Kind::Proactive => "proactive",
        Kind::Reactive => "reactive",
    };
    json!({
        "name": info.name,
        "kind": kind,
        "goal": info.goal.name(),
        "about": info.about,
        "paper": info.paper,
        "run": true,
        "converge": info.lives_on_control,
        "params": info.params.iter().map(param).collect::<Vec<_>>(),
    })
}

fn param(param: &Param) -> Json {
    let default = match param.default {
        Value::Number(x) => json!(x),
        Value::Flag(x) => json!(x),
    };
    json!({"name": param.name, "default": default, "unit": param.unit.name(), "about": param.about})
}
