//! Results of the test build (with overflow checks, and with dependencies that are hardly optimized) are the bytes in
//! `tests/data/same/bytes.json`. `tests/simulate/test_same_bytes.py` compares the release build's with the same file.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use subak_core::document::Format;
use subak_core::{Case, InputError};
use subak_lab::{RunOptions, Spec};
use subak_solve::ned::{Cluster, Ned, NedIteration, Real, Reciprocal};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/same")
}

fn digest(bytes: impl AsRef<[u8]>) -> Value {
    json!(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

fn case(name: &str) -> Case {
    let text = std::fs::read_to_string(folder().join(name)).unwrap();
    let no_files = &mut |_: &str| Err(InputError::new("", "no files here", "give everything in the case"));
    Case::parse(&text, Format::Json, no_files).unwrap()
}

fn solved(name: &str) -> Value {
    let answer = subak_solve::solve(&case(name), &subak_solve::SolveOptions::default()).unwrap();
    digest(answer.rates_bps.iter().flat_map(|rate| rate.to_le_bytes()).collect::<Vec<_>>())
}

fn iterated<T: Real>(division: Reciprocal) -> Value {
    let (cluster, _) = Cluster::<T>::of(&case("utility.json")).unwrap();
    let mut ned = NedIteration::new(cluster, Ned::default()).with_division(division);
    (0..100).for_each(|_| ned.step());
    digest(ned.prices().flat_map(f64::to_le_bytes).collect::<Vec<_>>())
}

fn run() -> Value {
    let spec = Spec::load(&folder().join("run.toml")).unwrap().validate().unwrap();
    let dir = std::env::temp_dir().join(format!("subak-same-bytes-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let cancel = AtomicBool::new(false);
    let options = RunOptions {
        jobs: 2,
        threads: 2,
        only: None,
        progress: &|_| {},
        cancel: &cancel,
        testbed: None,
        watched: None,
        remote: None,
    };
    assert!(subak_lab::run(&spec, &dir, &options).unwrap().merged);
    let mut text = Vec::new();
    subak_lab::export(&dir, None, &mut text).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    digest(text)
}

#[test]
fn the_same_bytes_from_this_build() {
    let mut got = Map::new();
    got.insert("run.toml".to_string(), run());
    for name in ["max-min.json", "utility.json", "pooled.json"] {
        got.insert(name.to_string(), solved(name));
    }
    got.insert("ned double".to_string(), iterated::<f64>(Reciprocal::Exact));
    got.insert("ned single".to_string(), iterated::<f32>(Reciprocal::Exact));
    got.insert("ned approximate".to_string(), iterated::<f32>(Reciprocal::Approximate));
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(folder().join("bytes.json")).unwrap()).unwrap();
    let text = serde_json::to_string_pretty(&got).unwrap();
    assert_eq!(Value::Object(got), kept, "a change of behaviour, or a build of its own mind; now it is\n{text}");
}
