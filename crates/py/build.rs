//! Computes the extension's identity: a hash of its sources and of those of every crate that it depends on.

#[path = "../lab/sources.rs"]
mod sources;

use std::path::PathBuf;
use std::{env, io};

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let crates = here.parent().expect("the crate lies in a folder");
    let parts = sources::parts(crates, "py")?;
    for part in parts.iter().chain([&sources::lock(crates)]) {
        println!("cargo::rerun-if-changed={}", part.display());
    }
    println!("cargo::rustc-env=SUBAK_BUILT_FROM={}", sources::hash(crates, &parts)?);
    Ok(())
}
