//! What the network generators say of themselves.

use pyo3::prelude::*;
use serde_json::{Value as Json, json};
use subak_core::generate::{GENERATORS, Generator};

/// Every kind of network that can be generated, with its keys, as a JSON list.
#[pyfunction]
pub fn generators() -> String {
    Json::from_iter(GENERATORS.iter().map(generator)).to_string()
}

fn generator(generator: &Generator) -> Json {
    let keys = generator.keys.iter().map(|key| {
        json!({
            "name": key.name,
            "unit": key.unit.name(),
            "default": key.default.describe(),
            "about": key.about,
        })
    });
    json!({"kind": generator.kind, "about": generator.about, "keys": Json::from_iter(keys)})
}
