//! What a cell is, whatever its number: a hash of all that its results depend on. A spec that gets more seeds, values or
//! schemes counts its cells anew, and knows by this hash which of them have run.

use super::{ValidSpec, files_of, hex, sweep};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

impl ValidSpec {
    /// SHA-256 of the setting of cell `index`, of its scheme without the label, and of its seed, in hexadecimal.
    pub(crate) fn identity(&self, index: usize) -> String {
        let per_setting = self.schemes.len() * self.seeds.len();
        let choice = sweep::choose(&self.axes, (index / per_setting) as u64);
        let mut tree = sweep::fix(&self.spec.tree, &self.axes, &choice);
        let (_, scheme) = self.setting(index);
        ["name", "schema", "scheme"].iter().for_each(|key| drop(tree.remove(*key)));
        if let Some(run) = tree.get_mut("run").and_then(Value::as_object_mut) {
            run.remove("seeds");
        }
        if let Some(policy) = &scheme.policy {
            tree.insert("policy".to_string(), policy.clone());
        }
        let mut names = Vec::new();
        ["network", "workload"].iter().filter_map(|key| tree.get(*key)).for_each(|v| files_of(v, &mut names));
        let files: Vec<_> = names.iter().map(|name| self.files.get(*name)).collect();
        let scheme = json!({"name": scheme.name, "driver": scheme.driver, "params": scheme.params});
        let seed = self.seeds[index % self.seeds.len()];
        let whole = json!({"files": files, "scheme": sorted(&scheme), "seed": seed, "setting": sorted_map(&tree)});
        hex(Sha256::new_with_prefix(whole.to_string()))
    }
}

/// The same tree with keys in order: in which order a spec has them changes no results.
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
