//! Identity of specs and trials. A spec's hash covers the spec and the files that it names. A trial's hash covers
//! everything that its results depend on, except its number. By this hash completed trials are recognized after
//! seeds, values or schemes were added to the spec.

use super::choice::SchemeChoice;
use super::{Spec, ValidSpec, outside, sweep};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use subak_core::InputError;

impl ValidSpec {
    /// Contents of the files that the spec names; an error if a file changed after the spec was validated.
    pub fn files(&self) -> Result<BTreeMap<String, Vec<u8>>, InputError> {
        let read = |(name, hash): (&String, &String)| {
            let held = self.spec.beside.bytes(name)?;
            if hex(Sha256::new_with_prefix(&held)) != *hash {
                let what = "the file has changed since the spec was checked";
                return Err(InputError::new("", what, "start again").in_file(self.spec.beside.shown(name)));
            }
            Ok((name.clone(), held))
        };
        self.files.iter().map(read).collect()
    }

    /// SHA-256, in hexadecimal, of the trial's scenario, of its scheme without the label, and of its seed.
    pub(crate) fn identity(&self, index: usize) -> String {
        let per_scenario = self.schemes.len() * self.seeds.len();
        let choice = sweep::choose(&self.axes, (index / per_scenario) as u64);
        let mut tree = sweep::fix(&self.spec.tree, &self.axes, &choice);
        let (_, scheme) = self.scenario(index);
        ["name", "schema", "scheme"].iter().for_each(|key| drop(tree.remove(*key)));
        if let Some(run) = tree.get_mut("run").and_then(Value::as_object_mut) {
            run.remove("seeds");
            run.remove("zip");
        }
        if let Some(policy) = &scheme.policy {
            tree.insert("policy".to_string(), policy.clone());
        }
        let mut names = Vec::new();
        ["network", "workload"].iter().filter_map(|key| tree.get(*key)).for_each(|v| files_of(v, &mut names));
        let files: Vec<_> = names.iter().map(|name| self.files.get(*name)).collect();
        let mut held = json!({"name": scheme.name, "backend": scheme.backend, "params": scheme.params});
        if let Some(outside) = &scheme.outside {
            held["definition"] = json!(outside.digest);
        }
        let of_named = |other: &SchemeChoice| {
            let digest = other.outside.as_ref().map(|outside| outside.digest.clone());
            json!([other.label, other.name, other.params, digest])
        };
        if !scheme.named.is_empty() {
            held["beside"] = scheme.named.iter().map(of_named).collect();
        }
        let seed = self.seeds[index % self.seeds.len()];
        let whole = json!({"files": files, "scheme": sorted(&held), "seed": seed, "scenario": sorted_map(&tree)});
        hex(Sha256::new_with_prefix(whole.to_string()))
    }
}

/// `value` with sorted keys, since the order of keys does not affect results.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => sorted_map(map),
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        plain => plain.clone(),
    }
}

fn sorted_map(map: &Map<String, Value>) -> Value {
    let mut keys: Vec<&String> = map.keys().collect();
    keys.sort_unstable();
    Value::Object(keys.into_iter().map(|key| (key.clone(), sorted(&map[key]))).collect())
}

/// Hash of the spec with the contents of its files, and hash of each file by name.
pub(super) fn hash(spec: &Spec, schemes: &[SchemeChoice]) -> Result<(String, BTreeMap<String, String>), InputError> {
    let mut files = BTreeMap::new();
    let mut digest = Sha256::new();
    digest.update(Value::Object(spec.tree.clone()).to_string());
    let mut names = Vec::new();
    spec.tree.get("network").iter().for_each(|n| files_of(n, &mut names));
    spec.tree.get("workload").iter().for_each(|w| files_of(w, &mut names));
    spec.tree
        .get("scheme")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .for_each(|s| outside::files_of(s, &mut names));
    for scheme in schemes.iter().filter_map(|scheme| scheme.outside.as_ref()) {
        digest.update(&scheme.digest);
    }
    for name in names {
        digest.update([0]);
        let held = spec.beside.bytes(name)?;
        digest.update(&held);
        files.entry(name.to_string()).or_insert_with(|| hex(Sha256::new_with_prefix(&held)));
    }
    Ok((hex(digest), files))
}

fn hex(digest: Sha256) -> String {
    digest.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Collects the names of files that a network or a workload refers to, directly or in `sizes`, or in a list of these.
fn files_of<'a>(section: &'a Value, names: &mut Vec<&'a str>) {
    match section {
        Value::Array(list) => list.iter().for_each(|n| files_of(n, names)),
        Value::Object(map) => {
            match map.get("file") {
                Some(Value::Array(list)) => names.extend(list.iter().filter_map(Value::as_str)),
                Some(file) => names.extend(file.as_str()),
                None => {}
            }
            map.get("sizes").iter().for_each(|sizes| files_of(sizes, names));
        }
        _ => {}
    }
}
