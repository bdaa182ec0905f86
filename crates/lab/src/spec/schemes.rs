//! The list of schemes of a spec.

use super::backends::{self, BackendKind};
use super::choice::SchemeChoice;
use super::outside::{Outside, OutsideKeys, Sources};
use super::sweep::Axis;
use super::swept::Swept;
use super::{any, policy, sweep, swept};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;
use subak_core::InputError;
use subak_core::case::policy_from_value;
use subak_core::keys::each;
use subak_core::keys::{Key, ValueType};
use subak_core::quantity::quoted;
use subak_core::scheme::Info;
use subak_core::section::Section;
use subak_schemes::over::Part;

/// The keys of `[[scheme]]`.
pub(super) const SCHEME: &[Key] = &[
    Key::open("name", ValueType::Text, "optimizer and transport", "one of those that `subak schemes` lists"),
    Key::open("optimizer", ValueType::Text, "name", "an optimizer"),
    Key::open("transport", ValueType::Text, "name", "the transport that it runs over"),
    Key::open("backend", ValueType::Word(&["packet", "fluid", "testbed"]), "the scheme's own", "what runs it"),
    Key::open("label", ValueType::Text, "its name", "label in results"),
    Key::open("policy", ValueType::Other("policy", any), "the spec's", "its own policy"),
    Key::open("python", ValueType::Text, "one of ours", "a class of your own, FILE:CLASS, such as \"mine.py:Mine\""),
    Key::open("library", ValueType::Text, "one of ours", "a shared object of your own, such as \"mine.so\""),
    Key::new("files", ValueType::List(&ValueType::Text), "[]", "files that the class imports (`python`)"),
    Key::new("hook_time", ValueType::Time, "10s", "longest time of a hook (`python`), by the clock of this machine"),
    Key::open("params", ValueType::Other("params", any), "the scheme's", "its parameters"),
];

/// Reads the list of schemes. A list as value of a parameter becomes one scheme for each value. `of_spec` is the
/// spec's policy.
pub(super) fn schemes(
    value: &Value,
    of_spec: Option<&Value>,
    sources: &Sources,
) -> Result<Vec<SchemeChoice>, InputError> {
    if value.is_object() {
        return Err(InputError::new(
            "",
            "it is one table, where a list of schemes is wanted",
            "write [[scheme]], not [scheme]",
        ));
    }
    let mut all: Vec<SchemeChoice> = Vec::new();
    for (place, choices) in each(value, |value| scheme(value, of_spec, sources))?.into_iter().enumerate() {
        all.extend(choices.into_iter().map(|choice| SchemeChoice { place, ..choice }));
    }
    if all.is_empty() {
        return Err(InputError::new("", "there is no scheme", "list at least one: [[scheme]] with a name"));
    }
    sources.check_used(&all.iter().map(|choice| choice.name.as_str()).collect::<Vec<_>>())?;
    for (i, choice) in all.iter().enumerate() {
        if all[..i].iter().any(|c| c.label == choice.label) {
            let what = format!("two schemes are called {}", quoted(&choice.label));
            return Err(InputError::new("", what, "give each a label of its own"));
        }
    }
    Ok(all)
}

/// Takes the schemes that tables of `workload` name out of the list: the others are those of the runs. If every workload
/// names one, there is one run of each sweep point.
pub(super) fn beside(all: Vec<SchemeChoice>, workload: Option<&Value>) -> Result<Vec<SchemeChoice>, InputError> {
    if all.is_empty() {
        return Ok(all);
    }
    let one = workload.map(std::slice::from_ref).unwrap_or_default();
    let tables = workload.and_then(Value::as_array).map_or(one, Vec::as_slice);
    let mut labels: Vec<&str> = Vec::new();
    let mut is_joint = !tables.is_empty();
    for (i, table) in tables.iter().enumerate() {
        let named = table.get("scheme");
        is_joint &= named.is_some() && table.get("moved").is_none();
        let values = named.map(std::slice::from_ref).unwrap_or_default();
        let values = named.and_then(Value::as_array).map_or(values, Vec::as_slice);
        for label in values.iter().filter_map(Value::as_str) {
            if !all.iter().any(|choice| choice.label == label) {
                let place = if tables.len() > 1 { format!("workload[{i}].scheme") } else { "workload.scheme".into() };
                let known: Vec<&str> = all.iter().map(|choice| choice.label.as_str()).collect();
                let what = format!("no [[scheme]] has the label {}", quoted(label));
                return Err(InputError::new(place, what, format!("these are listed: {}", known.join(", "))));
            }
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
    }
    if labels.is_empty() {
        return Ok(all);
    }
    let of = |label: &&str| all.iter().find(|choice| choice.label == **label).cloned();
    let named: Vec<SchemeChoice> = labels.iter().filter_map(of).collect();
    for choice in &named {
        check_named(choice)?;
    }
    let mut runs: Vec<SchemeChoice> =
        all.iter().filter(|choice| !labels.contains(&choice.label.as_str())).cloned().collect();
    match (is_joint, runs.first()) {
        (true, Some(unused)) => {
            let what = format!("every workload names a scheme, and none names {}", quoted(&unused.label));
            return Err(InputError::new(format!("scheme[{}]", unused.place), what, "leave it away, or name it"));
        }
        (true, None) => {
            let joint = SchemeChoice { label: labels.join(" + "), is_joint, ..named[0].clone() };
            runs.push(SchemeChoice { base: None, swept: Default::default(), ..joint });
        }
        (false, None) => {
            let what = "workloads name every scheme, and one workload names none";
            return Err(InputError::new("scheme", what, "name one there, or list a further [[scheme]]"));
        }
        (false, Some(_)) => runs.iter().try_for_each(check_named)?,
    }
    let named: Arc<[SchemeChoice]> = named.into();
    Ok(runs.into_iter().map(|choice| SchemeChoice { named: Arc::clone(&named), ..choice }).collect())
}

/// An error for a scheme that cannot run beside another, whatever the network.
fn check_named(choice: &SchemeChoice) -> Result<(), InputError> {
    let (backend, _) = choice.backend()?;
    let place = format!("scheme[{}]", choice.place);
    let refusal = |what: String, hint: &str| Err(InputError::new(place.as_str(), what, hint));
    let label = quoted(&choice.label);
    if choice.policy.is_some() {
        let what = format!("scheme {label} runs beside others, and has a policy of its own");
        return refusal(what, "give the policy to the spec");
    }
    match backend.name() {
        "packet" => Ok(()),
        other => {
            let what = format!("scheme {label} runs beside others, and its backend is {}", quoted(other));
            refusal(what, "run it alone: the backend \"packet\" alone has several schemes on one network")
        }
    }
}

fn scheme(value: &Value, of_spec: Option<&Value>, sources: &Sources) -> Result<Vec<SchemeChoice>, InputError> {
    let mut section = Section::of(value, SCHEME)?;
    let outside = outside(&mut section, sources)?;
    let name = match &outside {
        Some(outside) => Some(outside.definition().info().name.to_string()),
        None => scheme_name(&mut section),
    };
    let asked: Option<String> = section.given("backend");
    let label: Option<String> = section.given("label");
    let params = section.nested("params", |v| Section::of(v, &[]).map(|_| v.as_object().cloned().unwrap_or_default()));
    let own_policy = section.nested("policy", |v| policy_from_value(v).map(|read| (v.clone(), read)));
    let found = name.and_then(|name| {
        let found = backend(&name, asked.as_deref(), outside.as_ref()).map(|found| (name, found));
        section.keep(found)
    });
    let (name, (backend, info)) = section.all(found)?;
    let own_name = || asked.as_ref().map_or_else(|| name.clone(), |backend| format!("{name} {backend}"));
    let (labelled, label) = (label.is_some(), label.unwrap_or_else(own_name));
    let params = params.unwrap_or_default();
    let only = || policy::only(info.goal, of_spec).map(|only| (json!({"kind": only.name()}), only));
    let (policy, own_policy) = own_policy.or_else(only).unzip();
    // The label includes the policy, to distinguish the same scheme under several policies.
    let label = match own_policy {
        Some(policy) if !labelled => format!("{label} ({})", policy::label(policy)),
        _ => label,
    };
    let mut axes = Vec::new();
    for (key, value) in &params {
        sweep::collect(key, value, &mut axes).map_err(|e| e.below("params"))?;
    }
    let bare = sweep::bare(&params, &axes);
    let swept: Vec<Vec<Swept>> = axes.iter().map(|axis| swept_params(axis, &info)).collect();
    let choice = |index| {
        let choice = sweep::choose(&axes, index);
        let params = sweep::fix(&bare, &axes, &choice);
        backend.rules(&name, &params).map_err(|e| in_half(e, &info))?;
        let base = (!axes.is_empty()).then(|| label.clone());
        let mut label = label.clone();
        for (axis, &k) in axes.iter().zip(&choice) {
            let value = &axis.values[k];
            let _ = write!(label, " {}={}", axis.key, value.as_str().map_or_else(|| value.to_string(), str::to_string));
        }
        let (name, backend, policy) = (name.clone(), asked.clone(), policy.clone());
        let of_axis =
            |((axis, swept), &k): ((&Axis, &Vec<Swept>), &usize)| (format!("params.{}", axis.key), swept[k].clone());
        let swept = axes.iter().zip(&swept).zip(&choice).map(of_axis).collect();
        Ok(SchemeChoice {
            name,
            label,
            backend,
            params,
            base,
            swept,
            policy,
            own_policy,
            place: 0,
            outside: outside.clone(),
            named: Arc::default(),
            is_joint: false,
        })
    };
    (0..sweep::count(&axes).map_err(|e| e.below("params"))?).map(choice).collect()
}

/// Backend of the scheme called `name`, and the scheme's metadata.
fn backend<'a>(
    name: &str,
    asked: Option<&str>,
    outside: Option<&'a Outside>,
) -> Result<(&'a dyn BackendKind, Info), InputError> {
    let Some(outside) = outside else { return backends::find(name, asked) };
    match asked {
        None | Some("packet") => Ok((outside.backend(), *outside.definition().info())),
        Some(other) => {
            let what = format!("the backend {} does not run a scheme from outside", quoted(other));
            Err(InputError::new("backend", what, "leave backend away: \"packet\" runs it"))
        }
    }
}

/// Loads the user's scheme that the table of `[[scheme]]` names, if it names one.
fn outside(section: &mut Section, sources: &Sources) -> Result<Option<Outside>, InputError> {
    let word = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_string);
    let name = word(section.get("name"));
    let keys = OutsideKeys {
        python: section.given("python"),
        library: section.given("library"),
        files: section.take("files"),
        hook_s: section.given("hook_time"),
    };
    if section.wrong() > 0 {
        return Ok(None);
    }
    let found = sources.find(name.as_deref(), &keys)?;
    let of_python = [("files", !keys.files.is_empty()), ("hook_time", keys.hook_s.is_some())];
    let of_pair = ["optimizer", "transport"].map(|key| (key, section.get(key).is_some()));
    let has = |keys: &[(&'static str, bool)]| keys.iter().find(|(_, given)| *given).map(|(key, _)| *key);
    let is_python = found.is_some() && keys.library.is_none();
    if let Some(key) = has(&of_python).filter(|_| !is_python) {
        return Err(InputError::new(key, "it goes with python alone", "leave it away, or add python"));
    }
    if let Some(key) = has(&of_pair).filter(|_| found.is_some()) {
        let what = "a scheme of your own has no optimizer and no transport";
        return Err(InputError::new(key, what, "leave it away"));
    }
    Ok(found)
}

/// Values of a swept parameter of the scheme `info`, as numbers where possible.
fn swept_params(axis: &Axis, info: &Info) -> Vec<Swept> {
    let param = info.params.iter().find(|p| p.key.name == axis.key);
    swept::read(param.map(|p| &p.key.value_type), &axis.values)
}

/// Name of the scheme in a table of `[[scheme]]`: `name`, or `optimizer` and `transport`. `None` if they are invalid.
fn scheme_name(section: &mut Section) -> Option<String> {
    let wrong = section.wrong();
    let mut word = |key| section.given::<String>(key);
    let words = (word("name"), word("optimizer"), word("transport"));
    if section.wrong() > wrong {
        return None;
    }
    let name = match words {
        (Some(name), None, None) => Ok(name),
        (None, Some(optimizer), Some(transport)) => Ok(format!("{optimizer}/{transport}")),
        (None, None, None) => {
            let known: Vec<&str> = backends::all().iter().map(|s| s.name).collect();
            let hint = format!("choose one of: {}; or give an optimizer and a transport", known.join(", "));
            Err(InputError::new("name", "it is missing", hint))
        }
        (Some(_), ..) => {
            let what = "a scheme has a name, or an optimizer and a transport, not both";
            Err(InputError::new("name", what, "leave name away, or optimizer and transport"))
        }
        (None, Some(_), None) => Err(InputError::new(
            "transport",
            "it is missing",
            format!("choose one of: {}", names(subak_schemes::TRANSPORTS)),
        )),
        (None, None, Some(_)) => Err(InputError::new(
            "optimizer",
            "it is missing",
            format!("choose one of: {}", names(subak_schemes::OPTIMIZERS)),
        )),
    };
    section.keep(name)
}

fn names(parts: &[Part]) -> String {
    parts.iter().map(|p| p.name).collect::<Vec<_>>().join(", ")
}

/// If an unknown parameter belongs to another optimizer or transport, adds its name to the error.
fn in_half(mut fault: InputError, info: &Info) -> InputError {
    fault.more = fault.more.into_iter().map(|f| in_half(f, info)).collect();
    let name = fault.place.strip_prefix("params.").unwrap_or_default();
    let has = |part: &&Part| part.params.iter().any(|p| p.key.name == name);
    let elsewhere = subak_schemes::OPTIMIZERS.iter().chain(subak_schemes::TRANSPORTS).find(has);
    match elsewhere.filter(|_| info.name.contains('/') && info.params.iter().all(|p| p.key.name != name)) {
        Some(part) => InputError { what: format!("{}; it is one of \"{}\"", fault.what, part.name), ..fault },
        None => fault,
    }
}
