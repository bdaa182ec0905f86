//! Sweeps. A key with a list in place of a single value is an axis of the sweep. The scenarios of a spec are the
//! Cartesian product of its axes in the order of declaration; the last axis varies fastest. Axes in `run.zip` vary together.

use super::{ROOT, fault, workload};
use serde_json::{Map, Value};
use std::collections::HashMap;
use subak_core::InputError;
use subak_core::generate::GENERATORS;
use subak_core::keys::{Key, ValueType};
use subak_core::quantity::{bytes_from_json, capacity_from_json, number_from_json, seconds_from_json};

/// A key with a list of values to sweep over.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Place of the key, such as `workload.load` or `fault[0].probability`.
    pub key: String,
    /// Values of the key.
    pub values: Vec<Value>,
    /// Index of an earlier axis with which this one varies (`run.zip`); `None`: it varies by itself.
    pub with: Option<usize>,
}

/// Largest number of trials of a spec.
pub(crate) const MOST_TRIALS: u64 = 1_000_000;

/// Keys of networks in the spec whose values are lists, and thus not swept.
const OF_FILES: &[&str] = &["links", "nodes", "edges"];

/// Special values of `network.hosts` for a network in a file.
const HOSTS_WORDS: &[&str] = &["all", "leaves"];

/// Nesting depth of lists in a single value of `key`; a list one level deeper is a list of values to sweep over.
/// `key` is without indices of tables: `fault[].kinds`.
fn natural(key: &str) -> usize {
    let deepest =
        |tables: &[&'static [Key]], path: &[&str]| tables.iter().map(|keys| below(keys, path)).max().unwrap_or(0);
    match *key.split('.').collect::<Vec<_>>() {
        ["network", name] if OF_FILES.contains(&name) => 1,
        ["network", ref path @ ..] => {
            deepest(&GENERATORS.iter().map(|generator| generator.keys).collect::<Vec<_>>(), path)
        }
        ["workload" | "workload[]", ref path @ ..] => deepest(&workload::keys(), path),
        ["fault[]", ref path @ ..] => deepest(&fault::keys_of_all(), path),
        ref path => below(ROOT, path),
    }
}

/// Nesting depth of lists in a single value at `path` in a table with `keys`.
fn below(keys: &'static [Key], path: &[&str]) -> usize {
    let [name, rest @ ..] = path else { return 0 };
    let Some(key) = keys.iter().find(|key| key.name == *name) else { return 0 };
    if rest.is_empty() { key.value_type.depth() } else { key.value_type.inner().map_or(0, |inner| below(inner, rest)) }
}

/// Declared type of a swept key. If several tables declare the key, a numeric type is preferred.
pub(crate) fn declared(key: &str) -> Option<ValueType> {
    let plain: String = key.chars().filter(|c| !c.is_ascii_digit()).collect();
    let among = |tables: &[&'static [Key]], path: &[&str]| {
        let found: Vec<ValueType> = tables.iter().filter_map(|keys| at(keys, path)).collect();
        let amount = found
            .iter()
            .find(|h| !matches!(h, ValueType::Text | ValueType::Word(_) | ValueType::Named(_) | ValueType::Other(..)));
        amount.or(found.first()).copied()
    };
    match *plain.split('.').collect::<Vec<_>>() {
        ["network", ref path @ ..] => among(&GENERATORS.iter().map(|g| g.keys).collect::<Vec<_>>(), path),
        ["workload" | "workload[]", ref path @ ..] => among(&workload::keys(), path),
        ["fault[]", ref path @ ..] => among(&fault::keys_of_all(), path),
        ref path => at(ROOT, path),
    }
}

fn at(keys: &'static [Key], path: &[&str]) -> Option<ValueType> {
    let [name, rest @ ..] = path else { return None };
    let key = keys.iter().find(|key| key.name == *name)?;
    if rest.is_empty() { Some(key.value_type) } else { at(key.value_type.inner()?, rest) }
}

/// Top-level keys that are not searched for swept values.
const ASIDE: &[&str] = &["scheme", "schema", "name"];

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.first().map_or(0, depth),
        _ => 0,
    }
}

/// Whether `value` at `key` is a list to sweep over. For a key whose value may be a text, a table or a list
/// (`sizes`), a list of texts or tables is swept.
fn swept(key: &str, value: &Value) -> bool {
    let Value::Array(items) = value else { return false };
    if key == "network" {
        // A list of links is a network; a list of networks is swept.
        let whole = |v: &Value| v.is_array() || ["kind", "file", "links", "nodes"].iter().any(|k| v.get(k).is_some());
        return items.is_empty() || items.iter().any(whole);
    }
    if key == "workload" && workload::is_mix(items) {
        return false;
    }
    let plain: String = key.chars().filter(|c| !c.is_ascii_digit()).collect();
    let natural = natural(&plain);
    natural == 0 || items.iter().any(|v| v.is_string() || v.is_object()) && natural == 2 || depth(value) > natural
}

/// The swept keys of `spec`, in the order of declaration.
pub fn axes(spec: &Map<String, Value>) -> Result<Vec<Axis>, InputError> {
    let mut found = Vec::new();
    for (key, value) in spec {
        if !ASIDE.contains(&key.as_str()) {
            collect(key, value, &mut found)?;
        }
    }
    Ok(found)
}

/// Appends the swept keys at and below `key`.
pub(crate) fn collect(key: &str, value: &Value, found: &mut Vec<Axis>) -> Result<(), InputError> {
    match value {
        _ if key == "run.seeds" => {}
        Value::Object(map) => {
            let names_hosts = |name: &str, value| key == "network" && name == "hosts" && is_list_of_hosts(map, value);
            for (inner, value) in map.iter().filter(|(name, value)| !names_hosts(name, value)) {
                collect(&format!("{key}.{inner}"), value, found)?;
            }
        }
        Value::Array(values) if swept(key, value) => {
            if values.is_empty() {
                return Err(InputError::new(
                    key,
                    "the list is empty",
                    "give a value, or a list of values to sweep over",
                ));
            }
            refuse_equal(key, values)?;
            found.push(Axis { key: key.to_string(), values: values.clone(), with: None });
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate().filter(|_| key == "fault" || key == "workload") {
                collect(&format!("{key}[{i}]"), item, found)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Whether `hosts` of a network with `file` is a list of host names: an entry that is a special word or a list means
/// that it is swept.
fn is_list_of_hosts(network: &Map<String, Value>, hosts: &Value) -> bool {
    let is_word = |v: &Value| v.is_array() || v.as_str().is_some_and(|word| HOSTS_WORDS.contains(&word));
    ["file", "nodes"].iter().any(|key| network.contains_key(*key))
        && hosts.as_array().is_some_and(|names| !names.iter().any(is_word))
}

/// An error if two values of an axis are equal, even in different units: their trials would be the same.
fn refuse_equal(key: &str, values: &[Value]) -> Result<(), InputError> {
    let mut seen = HashMap::new();
    for value in values {
        for one in readings(value) {
            if let Some(before) = seen.insert(one, value)
                && !std::ptr::eq(before, value)
            {
                let what = format!("the values {before} and {value} of the sweep are equal");
                return Err(InputError::new(key, what, "list each value once; run.seeds repeats a sweep point"));
            }
        }
    }
    Ok(())
}

/// Readings of a value by which it may equal another one: as a number, a rate, a size, a time, and literally.
fn readings(value: &Value) -> Vec<(usize, String)> {
    let readings = [
        number_from_json(value).ok(),
        capacity_from_json(value).ok(),
        bytes_from_json(value).ok().map(|bytes| bytes as f64),
        seconds_from_json(value).ok(),
    ];
    let numbers = readings.iter().enumerate().filter_map(|(i, number)| Some((i, format!("{:e}", (*number)? + 0.0))));
    numbers.chain([(readings.len(), value.to_string())]).collect()
}

/// Lets the axes called `keys` vary together: the first values of all, then the second ones. An error for keys without
/// a list, and for lists of different lengths.
pub(crate) fn zip(axes: &mut [Axis], keys: &[String]) -> Result<(), InputError> {
    let mut places = Vec::with_capacity(keys.len());
    for (i, key) in keys.iter().enumerate() {
        let place = format!("[{i}]");
        let Some(at) = axes.iter().position(|axis| axis.key == *key) else {
            let listed: Vec<&str> = axes.iter().map(|axis| axis.key.as_str()).collect();
            let hint = match listed.as_slice() {
                [] => "give the key a list of values".to_string(),
                listed => format!("keys with lists are: {}", listed.join(", ")),
            };
            return Err(InputError::new(place, format!("{key} has no list of values"), hint));
        };
        if places.contains(&at) {
            return Err(InputError::new(place, format!("{key} is listed twice"), "name each key once"));
        }
        places.push(at);
    }
    let [first, ..] = *places else { return Ok(()) };
    if let Some(&other) = places.iter().find(|&&k| axes[k].values.len() != axes[first].values.len()) {
        let [one, two] = [first, other].map(|k| format!("{} has {} values", axes[k].key, axes[k].values.len()));
        return Err(InputError::new("", format!("{one}, and {two}"), "give lists of equal lengths"));
    }
    let leader = places.iter().copied().min().unwrap_or(first);
    places.iter().filter(|&&k| k != leader).for_each(|&k| axes[k].with = Some(leader));
    Ok(())
}

/// The number of sweep points; an error above [`MOST_TRIALS`].
pub(crate) fn count(axes: &[Axis]) -> Result<u64, InputError> {
    axes.iter().filter(|axis| axis.with.is_none()).try_fold(1u64, |n, axis| {
        let product = n.checked_mul(axis.values.len() as u64).filter(|&n| n <= MOST_TRIALS);
        product.ok_or_else(|| {
            InputError::new(
                &axis.key,
                format!("the sweep has more than {MOST_TRIALS} trials"),
                "sweep over fewer values",
            )
        })
    })
}

/// Index of each axis's value at sweep point `index`; the last axis varies fastest.
pub(crate) fn choose(axes: &[Axis], index: u64) -> Vec<usize> {
    let mut rest = index;
    let mut choice: Vec<usize> = axes
        .iter()
        .rev()
        .map(|axis| {
            let n = if axis.with.is_some() { 1 } else { axis.values.len() as u64 };
            let at = rest % n;
            rest /= n;
            at as usize
        })
        .collect();
    choice.reverse();
    for (k, axis) in axes.iter().enumerate() {
        choice[k] = axis.with.map_or(choice[k], |leader| choice[leader]);
    }
    choice
}

/// `root` without the lists of swept values, so that [`fix`] need not copy them for every scenario.
pub(crate) fn bare(root: &Map<String, Value>, axes: &[Axis]) -> Map<String, Value> {
    let mut bare = root.clone();
    for axis in axes {
        if let Some(place) = find(&mut bare, &axis.key) {
            *place = Value::Null;
        }
    }
    bare
}

/// `bare` with one value of each axis inserted.
pub(crate) fn fix(bare: &Map<String, Value>, axes: &[Axis], choice: &[usize]) -> Map<String, Value> {
    let mut fixed = bare.clone();
    for (axis, &k) in axes.iter().zip(choice) {
        if let Some(place) = find(&mut fixed, &axis.key) {
            *place = axis.values[k].clone();
        }
    }
    fixed
}

/// The value at `key`, in the notation of [`Axis::key`]. A key of the spec that contains a dot is not found; the
/// reader of its section reports an error.
fn find<'a>(root: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Value> {
    let mut parts = key.split('.');
    let mut place = step(root, parts.next()?)?;
    for part in parts {
        place = step(place.as_object_mut()?, part)?;
    }
    Some(place)
}

fn step<'a>(map: &'a mut Map<String, Value>, part: &str) -> Option<&'a mut Value> {
    match part.strip_suffix(']').and_then(|p| p.split_once('[')) {
        Some((name, index)) => map.get_mut(name)?.as_array_mut()?.get_mut(index.parse::<usize>().ok()?),
        None => map.get_mut(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn axes_of(value: Value) -> Vec<(String, usize)> {
        let found = axes(value.as_object().unwrap()).unwrap();
        found.into_iter().map(|a| (a.key, a.values.len())).collect()
    }

    #[test]
    fn lists_by_nature_are_not_swept() {
        let one =
            axes_of(json!({"network": {"kind": "chain", "rates": [1, 2]}, "workload": {"sizes": [[1, 0], [2, 1]]}}));
        assert_eq!(one, []);
        let lists =
            axes_of(json!({"network": {"rates": [[1, 2], [3, 4, 5]]}, "workload": {"sizes": ["fixed", "web-search"]},
            "run": {"seeds": [3, 4]}, "fault": [{"probability": [0, 0.1, 0.2], "kinds": ["data"]}]}));
        let want = [("network.rates", 2), ("workload.sizes", 2), ("fault[0].probability", 3)];
        assert_eq!(lists, want.map(|(k, n)| (k.to_string(), n)));
        assert_eq!(axes_of(json!({"network": [{"id": "a", "capacity": 1}, {"id": "b", "capacity": 1}]})), []);
        assert_eq!(axes_of(json!({"network": [{"kind": "star"}, {"file": "x"}, {"kind": "chain"}]})).len(), 1);
        assert_eq!(axes_of(json!({"workload": {"sizes": [[[1, 0], [2, 1]], [[1, 0], [9, 1]]]}})).len(), 1);
        for (names, axes) in [
            (json!(["a", "b"]), 0),
            (json!([1, 2]), 0),
            (json!([["a", "b"], ["a", "c"]]), 1),
            (json!(["all", "leaves"]), 1),
            (json!("all"), 0),
        ] {
            assert_eq!(axes_of(json!({"network": {"file": "n.graphml", "hosts": names}})).len(), axes, "{names}");
        }
        let hosts = axes_of(json!({"network": {"kind": "star", "hosts": [4, 8]}, "workload": {"hosts": ["h0", "h1"]}}));
        assert_eq!(hosts, [("network.hosts".to_string(), 2)]);
        let fixed = json!({"workload": {"weights": {"uniform": [1, 2]}, "flows": [{}], "jobs": [{}], "to": ["h1"]},
            "network": {"links": [{}]}, "measure": {"convergence": [{}], "packets": {"flows": [1], "links": ["a"]}},
            "fault": [{"kinds": ["ack"], "links": ["a"]}]});
        assert_eq!(axes_of(fixed), []);
    }

    #[test]
    fn the_last_axis_runs_fastest() {
        let spec = json!({"network": {"leaves": [2, 4]}, "workload": {"load": [0.1, 0.2, 0.3]}, "fault": [{"probability": [0, 1]}]});
        let spec = spec.as_object().unwrap();
        let axes = axes(spec).unwrap();
        assert_eq!(count(&axes).unwrap(), 12);
        assert_eq!(choose(&axes, 0), [0, 0, 0]);
        assert_eq!(choose(&axes, 1), [0, 0, 1]);
        assert_eq!(choose(&axes, 11), [1, 2, 1]);
        let bare = bare(spec, &axes);
        assert_eq!(bare["workload"], json!({"load": null}));
        let fixed = fix(&bare, &axes, &choose(&axes, 9));
        let want = json!({"network": {"leaves": 4}, "workload": {"load": 0.2}, "fault": [{"probability": 1}]});
        assert_eq!(Value::Object(fixed), want);
    }

    #[test]
    fn zipped_axes_vary_together() {
        let spec = json!({"network": {"leaves": [2, 4]}, "workload": {"load": [0.1, 0.2, 0.3], "size": [1, 2]}});
        let mut axes = axes(spec.as_object().unwrap()).unwrap();
        let keys = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let said = |fault: Result<(), InputError>| fault.unwrap_err().to_string();
        for (names, part) in [
            (&["network.leaves", "network.spines"][..], "keys with lists are: network.leaves"),
            (&["network.leaves", "network.leaves"], "listed twice"),
            (&["workload.size", "workload.load"], "workload.size has 2 values, and workload.load has 3 values"),
        ] {
            let fault = said(zip(&mut axes, &keys(names)));
            assert!(fault.contains(part), "{fault}");
        }
        zip(&mut axes, &keys(&["workload.size", "network.leaves"])).unwrap();
        assert_eq!(count(&axes).unwrap(), 6);
        assert_eq!(choose(&axes, 0), [0, 0, 0]);
        assert_eq!(choose(&axes, 2), [0, 2, 0]);
        assert_eq!(choose(&axes, 3), [1, 0, 1]);
        assert_eq!(choose(&axes, 5), [1, 2, 1]);
    }

    #[test]
    fn empty_lists_and_endless_sweeps_are_refused() {
        assert!(axes(json!({"workload": {"load": []}}).as_object().unwrap()).is_err());
        let axis = |key: &str| Axis { key: key.into(), values: vec![Value::Null; 2000], with: None };
        assert_eq!(count(&[axis("a"), axis("b")]).unwrap_err().place, "b");
    }
}
