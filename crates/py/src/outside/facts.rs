//! Converts the metadata of a scheme that a user wrote in Python to the form of built-in schemes.

use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;
use subak_core::keys::{FromValue, Low, ParamValue, ValueType};
use subak_core::scheme::{
    Class, Goal, Headers, Info, Lossless, Param, Recovery, Rules, SchemeKind, Settles, Threshold, Utilities,
};
use subak_core::{InputError, Nic};
use subak_schemes::foreign::{BuiltInHop, Facts, Marking, QueueKind, QueueLength};
use subak_schemes::queue::SfqPlan;

/// Processor time per packet-hop of a Python scheme, relative to DCTCP.
const PER_HOP: f64 = 4.0;

fn get<'py, T>(said: &Bound<'py, PyDict>, key: &str) -> PyResult<T>
where
    T: FromPyObjectOwned<'py>,
{
    let value = said.get_item(key)?.ok_or_else(|| PyKeyError::new_err(key.to_string()))?;
    value.extract().map_err(Into::into)
}

/// Makes a text static by never freeing it, since [`Info`] consists of static texts.
fn leak(text: String) -> &'static str {
    text.leak()
}

/// Metadata of a scheme from `said`, the dict of `subak.outside.loading.define`; `name` replaces the scheme's own
/// name. The inner error is that of an invalid parameter.
pub fn info(said: &Bound<'_, PyDict>, name: Option<&str>) -> PyResult<Result<Info, InputError>> {
    let own: String = get(said, "name")?;
    let mut params = Vec::new();
    for one in get::<Vec<(String, Py<PyAny>, Py<PyAny>)>>(said, "params")? {
        match param(said.py(), &one.0, &one.1, &one.2)? {
            Ok(param) => params.push(param),
            Err(fault) => return Ok(Err(fault.below(&format!("params.{}", one.0)))),
        }
    }
    let settles: Option<(f64, f64)> = get(said, "settles")?;
    Ok(Ok(Info {
        name: leak(name.map_or(own, str::to_string)),
        about: leak(get(said, "about")?),
        paper: leak(get(said, "paper")?),
        kind: SchemeKind::Reactive,
        lives_on_control: false,
        // True to be safe: it is unknown whether the sources use a flow's weight.
        weights: true,
        goal: goal(&get::<String>(said, "goal")?),
        params: params.leak(),
        settles: settles.map_or(Settles::NEVER, |(within, rtts)| Settles { within, rtts }),
        ..Info::DEFAULT
    }))
}

fn goal(name: &str) -> Goal {
    match name {
        "max-min" => Goal::MaxMin,
        "equal-max-min" => Goal::EqualMaxMin,
        "utility" => Goal::Utility(Utilities::ALL),
        "alpha-fair" => Goal::Utility(Utilities::ALPHA_FAIR),
        _ => Goal::Own,
    }
}

fn param(py: Python<'_>, name: &str, default: &Py<PyAny>, unit: &Py<PyAny>) -> PyResult<Result<Param, InputError>> {
    let json: String = py.import("json")?.call_method1("dumps", (default,))?.extract()?;
    let value: Value = serde_json::from_str(&json).unwrap_or_default();
    let value_type = match unit.extract::<Vec<String>>(py) {
        Ok(words) if unit.extract::<String>(py).is_err() => {
            ValueType::Word(words.into_iter().map(leak).collect::<Vec<_>>().leak())
        }
        _ => match unit.extract::<String>(py)?.as_str() {
            "packets" => ValueType::Packets,
            "bytes" => ValueType::Bytes,
            "s" => ValueType::Time,
            "bit/s" => ValueType::Rate,
            "flag" => ValueType::Flag,
            _ => ValueType::Number(Low::From(f64::MIN), f64::MAX),
        },
    };
    let name = leak(name.to_string());
    let about = "of the user's scheme";
    Ok(ParamValue::read(value_type, &value).map(|default| match default {
        ParamValue::Number(x) => Param::number(name, x, value_type, about),
        ParamValue::Flag(yes) => Param::flag(name, yes, about),
        ParamValue::Word(word) => chosen(name, value_type, word, about),
    }))
}

/// A choice parameter whose default is `word`, not necessarily the first of its words.
fn chosen(name: &'static str, value_type: ValueType, word: &'static str, about: &'static str) -> Param {
    let ValueType::Word(words) = value_type else { unreachable!("a word is one of some") };
    let mut param = Param::choice(name, words, about);
    param.key.default = subak_core::keys::DefaultValue::Set(ParamValue::Word(word));
    param
}

/// Properties of a scheme with parameters, from `said`, the dict of `subak.outside.loading.make`.
pub fn facts(said: &Bound<'_, PyDict>) -> PyResult<Facts> {
    let recovery = Recovery {
        reorder: get(said, "reorder")?,
        rto_min_ns: get(said, "rto_min_ns")?,
        rto_max_ns: get(said, "rto_max_ns")?,
        probe: get(said, "probe")?,
        go_back: get(said, "go_back")?,
        ..Recovery::default()
    };
    let ack_class: Option<String> = get(said, "ack_class")?;
    let nic: Option<String> = get(said, "nic")?;
    let rules = Rules {
        data_share: Some(get(said, "data_share")?),
        recovers: get(said, "recovers")?,
        one_path: get(said, "path_dependent")?,
        recovery,
        headers: Headers { data_bytes: get(said, "header_bytes")?, ack_bytes: get(said, "ack_header_bytes")? },
        acks: ack_class.and_then(|word| class(&word)),
        nic: nic.map(|word| if word == "round-robin" { Nic::TakesTurns } else { Nic::Queue }),
        lossless: get::<Option<Bound<'_, PyDict>>>(said, "pfc")?.map(|pfc| lossless(&pfc)).transpose()?,
        per_hop: PER_HOP,
        ..Rules::default()
    };
    Ok(Facts {
        rules,
        queue: queue(said)?,
        marks: if said.contains("mark")? { Some(marking(said)?) } else { None },
        hop: match get::<Option<(String, u8)>>(said, "built_in")? {
            None => BuiltInHop::None,
            Some((name, _)) if name == "Telemetry" => BuiltInHop::Telemetry,
            Some((_, number)) => BuiltInHop::LargestWait(number),
        },
        has_controller: get(said, "has_controller")?,
    })
}

/// Priority flow control from the dict of a `subak.Pfc`.
fn lossless(pfc: &Bound<'_, PyDict>) -> PyResult<Lossless> {
    let bytes = |key| PyResult::Ok(get::<Option<f64>>(pfc, key)?.map(|bytes| bytes as u64));
    Ok(Lossless {
        threshold: match bytes("threshold")? {
            Some(bytes) => Threshold::Static(bytes),
            None => Threshold::Dynamic(get(pfc, "alpha")?),
        },
        resume_bytes: get(pfc, "resume")?,
        reserve_bytes: get(pfc, "reserve")?,
        buffer_bytes: bytes("buffer")?,
        headroom_bytes: bytes("headroom")?,
    })
}

fn queue(said: &Bound<'_, PyDict>) -> PyResult<QueueKind> {
    Ok(match get::<String>(said, "queue")?.as_str() {
        "Priority" => QueueKind::Priority,
        "Rank" => QueueKind::Rank,
        "Stfq" => QueueKind::Stfq,
        "FairCodel" => QueueKind::FairCodel(SfqPlan::new(
            get(said, "target_ns")?,
            get(said, "interval_ns")?,
            get(said, "bins")?,
            get(said, "quantum")?,
        )),
        _ => QueueKind::Fifo,
    })
}

fn marking(said: &Bound<'_, PyDict>) -> PyResult<Marking> {
    let length = |length: f64, unit: String| {
        if unit == "bytes" { QueueLength::Bytes(length) } else { QueueLength::Packets(length) }
    };
    let (param, mark, unit): (String, f64, String) = get(said, "mark")?;
    let red = match said.contains("red")? {
        true => {
            let (high, unit, most): (f64, String, f64) = get(said, "red")?;
            Some((length(high, unit), most))
        }
        false => None,
    };
    Ok(Marking { param, threshold: length(mark, unit), red })
}

/// The class called `word`; refuses another word.
pub fn class_of(word: &str) -> PyResult<Class> {
    class(word).ok_or_else(|| PyValueError::new_err(format!("class {word:?}; give \"control\", \"high\" or \"low\"")))
}

/// The class called `word`.
fn class(word: &str) -> Option<Class> {
    Class::ALL.into_iter().find(|&class| class_name(class) == word)
}

/// The name of a class.
pub fn class_name(class: Class) -> &'static str {
    match class {
        Class::Control => "control",
        Class::High => "high",
        Class::Low => "low",
    }
}
