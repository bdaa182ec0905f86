//! Descriptions of the schemes, and of optimizers and transports.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use subak_core::Nic;
use subak_core::keys::{ParamValue, ValueType};
use subak_core::scheme::{Info, Param, SchemeKind};
use subak_schemes::over::Part;
use subak_schemes::{OPTIMIZERS, TRANSPORTS, registry};

/// Every named scheme, as a list of dictionaries.
#[pyfunction]
pub fn schemes(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    list(py, subak_lab::backends::all().iter().map(|info| scheme(py, info)))
}

/// Every valid optimizer/transport pair, in the form of `schemes`, with the name `OPTIMIZER/TRANSPORT`.
#[pyfunction]
pub fn pairs(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    list(py, registry::pairs().iter().map(|info| scheme(py, info)))
}

/// Every optimizer, then every transport, as dictionaries; `role` distinguishes them.
#[pyfunction]
pub fn parts(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let optimizers = OPTIMIZERS.iter().map(|one| ("optimizer", one, subak_schemes::kind_of_optimizer(one.name)));
    let transports = TRANSPORTS.iter().map(|one| ("transport", one, subak_schemes::kind_of_transport(one.name)));
    list(py, optimizers.chain(transports).map(|(role, one, wish)| part(py, role, one, wish)))
}

fn list<'py>(
    py: Python<'py>,
    items: impl Iterator<Item = PyResult<Bound<'py, PyDict>>>,
) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)
}

fn scheme<'py>(py: Python<'py>, info: &Info) -> PyResult<Bound<'py, PyDict>> {
    let kind = match info.kind {
        SchemeKind::Oracle => "oracle",
        SchemeKind::Proactive => "proactive",
        SchemeKind::Reactive => "reactive",
    };
    let made = PyDict::new(py);
    made.set_item("name", info.name)?;
    made.set_item("kind", kind)?;
    made.set_item("goal", info.goal.name())?;
    made.set_item("policies", info.goal.policies())?;
    let traits = subak_lab::backends::traits(info.name).ok();
    made.set_item("controller", traits.map(|t| t.controller))?;
    made.set_item("recovers", traits.map(|t| t.recovers))?;
    made.set_item("lossless", traits.map(|t| t.lossless))?;
    made.set_item("about", info.about)?;
    made.set_item("paper", info.paper)?;
    made.set_item("run", true)?;
    made.set_item("converge", info.lives_on_control)?;
    let settles = info.settles.within.is_finite().then_some(info.settles);
    made.set_item("settles_within", settles.map(|s| s.within))?;
    made.set_item("settles_rtts", settles.map(|s| s.rtts))?;
    let nic = subak_schemes::scheme(info.name, &serde_json::Map::new()).ok().and_then(|scheme| scheme.rules().nic);
    made.set_item("nic", nic.map(Nic::name))?;
    made.set_item("on_hosts", info.on_hosts.name())?;
    made.set_item("made_of", registry::halves(info.name))?;
    made.set_item("params", params(py, info.params)?)?;
    Ok(made)
}

fn part<'py>(py: Python<'py>, role: &str, part: &Part, wish: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
    let made = PyDict::new(py);
    made.set_item("name", part.name)?;
    made.set_item("role", role)?;
    made.set_item("wish", wish)?;
    made.set_item("about", part.about)?;
    made.set_item("paper", part.paper)?;
    made.set_item("params", params(py, part.params)?)?;
    Ok(made)
}

/// Text of parameter values, such as `k_min 160000, notify acks`.
fn settings(of: &[(&str, ParamValue)]) -> String {
    of.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

fn params<'py>(py: Python<'py>, params: &[Param]) -> PyResult<Bound<'py, PyList>> {
    let one = |param: &Param| {
        let made = PyDict::new(py);
        made.set_item("name", param.key.name)?;
        match param.default() {
            ParamValue::Number(x) => made.set_item("default", x)?,
            ParamValue::Flag(x) => made.set_item("default", x)?,
            ParamValue::Word(x) => made.set_item("default", x)?,
        }
        match param.key.value_type {
            ValueType::Number(..) => made.set_item("unit", "")?,
            ValueType::Word(words) => {
                made.set_item("unit", "a word")?;
                made.set_item("choices", words)?;
            }
            value_type => made.set_item("unit", value_type.name())?,
        }
        let presets: Vec<_> =
            param.presets.iter().map(|(word, others)| format!("{word}: {}", settings(others))).collect();
        if !presets.is_empty() {
            made.set_item("presets", presets)?;
        }
        made.set_item("about", param.key.about)?;
        Ok(made)
    };
    list(py, params.iter().map(one))
}
