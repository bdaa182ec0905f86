//! Identity of a build: a hash of its sources.

#[path = "../../sources.rs"]
mod sources;

use crate::common::Scratch;
use std::fs;
use std::path::Path;

const CRATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
        return;
    }
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        copy(&path, &to.join(path.file_name().unwrap()));
    }
}

fn hash(crates: &Path) -> String {
    sources::hash(crates, &sources::parts(crates, "lab").unwrap()).unwrap()
}

/// Regression: changes of a weight policy, of the allocator's core or of a data table did not change the identity
/// of the build. Trials of the old code were then reused.
#[test]
fn a_byte_in_any_crate_below_or_in_its_data_makes_another_build() {
    let crates = &Path::new(CRATES).canonicalize().unwrap();
    let scratch = Scratch::new("sources");
    let copied = scratch.0.join("crates");
    copy(&sources::lock(crates), &sources::lock(&copied));
    let parts = sources::parts(crates, "lab").unwrap();
    for part in &parts {
        copy(part, &copied.join(part.strip_prefix(crates).unwrap()));
    }
    let before = hash(&copied);
    assert_eq!(before, hash(crates), "wherever it lies");
    for name in ["core", "solve", "wire", "control", "schemes", "packet", "fluid", "jobs", "lab"] {
        let source = copied.join(name).join("src/lib.rs");
        let text = fs::read(&source).unwrap();
        fs::write(&source, [&text[..], b"\n"].concat()).unwrap();
        assert_ne!(hash(&copied), before, "{name}");
        fs::write(&source, text).unwrap();
    }
    let data = copied.join("lab/src/spec/workload/jobs/tpch.toml");
    let text = fs::read(&data).unwrap();
    fs::write(&data, [&text[..], b"\n"].concat()).unwrap();
    assert_ne!(hash(&copied), before, "included data");
}
