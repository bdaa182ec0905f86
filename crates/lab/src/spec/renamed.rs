//! Keys and values of specs that were renamed before the first release. The old names are accepted for one version,
//! with a note.

use serde_json::{Map, Value};
use subak_core::InputError;
use subak_core::quantity::quoted;

/// Table, old key, and new key. A name with a dot is a nested table.
const KEYS: &[(&str, &str, &str)] =
    &[("scheme", "fabric", "transport"), ("scheme", "driver", "backend"), ("routing", "ways", "max_paths")];

/// Table, key, old value, and new value.
const VALUES: &[(&str, &str, &str, &str)] = &[("network", "nic", "turns", "round-robin")];

/// Schemes, optimizers or transports, an old parameter of theirs, and its new name.
const PARAMS: &[(&[&str], &str, &str)] = &[
    (&["swift", "numfabric-swift", "numfabric", "xwi", "xwi-s-perc", "xwi-soze"], "slowdown", "time_scale"),
    (&["soze", "soze-virtual", "xwi-soze"], "alpha_gbps", "alpha_rate"),
    (&["soze"], "beta_gbps", "beta_rate"),
    (&["soze-virtual", "xwi-soze"], "queue", "queue_weight"),
    (&["rcp"], "probe", "request_timeout"),
    (&["pfabric"], "window", "initial_window"),
    (&["hpcc"], "window", "in_flight"),
    (&["hpcc", "dcqcn", "timely"], "acks", "ack_priority"),
];

/// Renames old keys and values of `tree`, and returns a note for each of them. If both names of a key are set, that
/// is an error.
pub(super) fn rename(tree: &mut Map<String, Value>) -> Result<Vec<String>, InputError> {
    let mut notes = Vec::new();
    for &(table, old, new) in KEYS {
        each(tree, table, &mut |map, place| rename_key(map, place, (old, new), &mut notes))?;
    }
    each(tree, "scheme", &mut |scheme, place| {
        let given = ["name", "optimizer", "transport"].map(|key| scheme.get(key).and_then(Value::as_str));
        let parts: Vec<String> =
            given.into_iter().flatten().flat_map(|name| name.split('/')).map(str::to_string).collect();
        // A scheme of the user's has parameters of its own.
        let is_own = ["python", "library"].iter().any(|key| scheme.contains_key(*key));
        let Some(Value::Object(params)) = scheme.get_mut("params").filter(|_| !is_own) else { return Ok(()) };
        let has = |names: &[&str]| parts.iter().any(|part| names.contains(&part.as_str()));
        for &(_, old, new) in PARAMS.iter().filter(|(names, ..)| has(names)) {
            if old.ends_with("_gbps") {
                params.get_mut(old).into_iter().for_each(as_rate);
            }
            rename_key(params, &format!("{place}.params"), (old, new), &mut notes)?;
        }
        Ok(())
    })?;
    for &(table, key, old, new) in VALUES {
        each(tree, table, &mut |map, place| {
            let Some(value) = map.get_mut(key) else { return Ok(()) };
            let listed = matches!(value, Value::Array(_));
            let found = match value {
                Value::Array(items) => items.iter_mut().collect(),
                one => vec![one],
            };
            for (k, value) in found.into_iter().enumerate().filter(|(_, value)| *value == old) {
                *value = Value::from(new);
                let place = if listed { format!("{place}.{key}[{k}]") } else { format!("{place}.{key}") };
                notes.push(note(&place, old, new));
            }
            Ok(())
        })?;
    }
    Ok(notes)
}

/// Numbers of Gb/s, alone or in a list, as rates.
fn as_rate(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(as_rate),
        Value::Number(gbps) => *value = Value::from(format!("{gbps}Gbps")),
        _ => {}
    }
}

fn note(place: &str, old: &str, new: &str) -> String {
    format!("{place}: {} is now called {}; the next version does not read the old name", quoted(old), quoted(new))
}

fn rename_key(
    map: &mut Map<String, Value>,
    place: &str,
    (old, new): (&str, &str),
    notes: &mut Vec<String>,
) -> Result<(), InputError> {
    if !map.contains_key(old) {
        return Ok(());
    }
    if map.contains_key(new) {
        let what = format!("\"{old}\" is the old name of \"{new}\", and both are given");
        return Err(InputError::new(format!("{place}.{old}"), what, format!("keep \"{new}\"")));
    }
    // The key is replaced in place: the order of keys determines the order of a sweep's axes.
    *map =
        std::mem::take(map).into_iter().map(|(key, v)| (if key == old { new.to_string() } else { key }, v)).collect();
    notes.push(note(place, old, new));
    Ok(())
}

/// Callback with a table and its place in the spec.
type Visit<'a> = dyn FnMut(&mut Map<String, Value>, &str) -> Result<(), InputError> + 'a;

/// Calls `visit` with each table called `name` in `tree`, and the table's place.
fn each(tree: &mut Map<String, Value>, name: &str, visit: &mut Visit<'_>) -> Result<(), InputError> {
    let (first, rest) = name.split_once('.').map_or((name, None), |(first, rest)| (first, Some(rest)));
    let Some(value) = tree.get_mut(first) else { return Ok(()) };
    let tables = match value {
        Value::Array(items) => {
            items.iter_mut().enumerate().map(|(k, v)| (format!("{first}[{k}]"), v)).collect::<Vec<_>>()
        }
        one => vec![(first.to_string(), one)],
    };
    for (place, table) in tables {
        let Value::Object(map) = table else { continue };
        match rest {
            Some(rest) => each(map, rest, &mut |inner, below| visit(inner, &format!("{place}.{below}")))?,
            None => visit(map, &place)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn renamed(mut tree: Value) -> (Value, Vec<String>) {
        let notes = rename(tree.as_object_mut().unwrap()).unwrap();
        (tree, notes)
    }

    #[test]
    fn old_names_become_new_ones_in_their_place() {
        let (tree, notes) = renamed(json!({
            "network": {"nic": ["queue", "turns"]},
            "routing": {"kind": "spray", "ways": [4, 8], "gap": 1},
            "scheme": [
                {"name": "dctcp", "driver": "packet"},
                {"optimizer": "xwi", "fabric": "swift", "params": {"slowdown": 2, "dt": "6us"}},
            ],
        }));
        let wanted = json!({
            "network": {"nic": ["queue", "round-robin"]},
            "routing": {"kind": "spray", "max_paths": [4, 8], "gap": 1},
            "scheme": [
                {"name": "dctcp", "backend": "packet"},
                {"optimizer": "xwi", "transport": "swift", "params": {"time_scale": 2, "dt": "6us"}},
            ],
        });
        assert_eq!(tree.to_string(), wanted.to_string());
        let places = ["scheme[1]: ", "scheme[0]: ", "routing: ", "scheme[1].params: ", "network.nic[1]: "];
        assert_eq!(notes.len(), places.len());
        for (note, place) in notes.iter().zip(places) {
            assert!(note.starts_with(place), "{note}");
        }
    }

    #[test]
    fn old_parameters_of_a_scheme_become_new_ones() {
        let (tree, notes) = renamed(json!({"scheme": [
            {"name": "soze", "params": {"alpha_gbps": [0.1, 40], "beta_gbps": 0.01}},
            {"optimizer": "xwi", "transport": "soze-virtual", "params": {"queue": 3, "beta": 0.5}},
            {"name": "cubic", "params": {"queue": "fifo", "probe": false}},
            {"name": "hpcc", "params": {"window": "payload", "acks": "all"}},
        ]}));
        let wanted = json!({"scheme": [
            {"name": "soze", "params": {"alpha_rate": ["0.1Gbps", "40Gbps"], "beta_rate": "0.01Gbps"}},
            {"optimizer": "xwi", "transport": "soze-virtual", "params": {"queue_weight": 3, "beta": 0.5}},
            {"name": "cubic", "params": {"queue": "fifo", "probe": false}},
            {"name": "hpcc", "params": {"in_flight": "payload", "ack_priority": "all"}},
        ]});
        assert_eq!(tree.to_string(), wanted.to_string());
        assert_eq!(notes.len(), 5);
    }

    #[test]
    fn new_names_stay_without_a_note() {
        let tree = json!({"network": {"nic": "queue"}, "scheme": [{"name": "x", "params": {"max_paths": 2}}, 3], "routing": 1});
        assert_eq!(renamed(tree.clone()), (tree, Vec::new()));
    }

    #[test]
    fn both_names_are_refused() {
        let mut tree = json!({"scheme": [{"backend": "fluid", "driver": "packet"}]});
        let fault = rename(tree.as_object_mut().unwrap()).unwrap_err();
        assert_eq!(fault.place, "scheme[0].driver");
        assert!(fault.what.contains("\"backend\""), "{fault}");
    }
}
