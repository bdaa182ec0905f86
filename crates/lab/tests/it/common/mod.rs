//! Functions that several tests share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use subak_lab::{RunOptions, RunOutcome, ValidSpec, run};

/// A directory for one test, removed at its end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        // Tests of one process run at the same time, and may use the same name.
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("subak-{}-{number}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a spec in a new directory. No trial may fail.
#[allow(dead_code)]
pub fn ran(name: &str, spec: &ValidSpec) -> (Scratch, RunOutcome) {
    let dir = Scratch::new(name);
    let cancel = AtomicBool::new(false);
    let options = RunOptions::alone(&cancel);
    let outcome = run(spec, &dir.0, &options).unwrap();
    assert!(outcome.merged, "{:?}", outcome.failed);
    (dir, outcome)
}

/// The rows of one kind, in the form that `export` writes.
#[allow(dead_code)]
pub fn rows(dir: &Path, kind: &str) -> Vec<BTreeMap<String, String>> {
    let mut text = Vec::new();
    subak_lab::export(dir, Some(kind), &mut text).unwrap();
    csv::Reader::from_reader(text.as_slice()).deserialize().map(Result::unwrap).collect()
}
