//! Computes the identity of the build: a hash of every source file that results depend on.

mod sources;

use std::path::PathBuf;
use std::{env, io};

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let crates = here.parent().expect("the crate lies in a folder");
    let parts = sources::parts(crates, "lab")?;
    for part in parts.iter().chain([&sources::lock(crates)]) {
        println!("cargo::rerun-if-changed={}", part.display());
    }
    println!("cargo::rustc-env=SUBAK_SOURCES={}", sources::hash(crates, &parts)?);
    Ok(())
}
