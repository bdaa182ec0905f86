//! Names the build: a hash of every source that results depend on.

use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The crates below this one, and this one.
const CRATES: &[&str] = &["core", "solve", "schemes", "packet", "fluid", "lab"];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let crates = here.parent().expect("the crate lies in a folder");
    let mut files = Vec::new();
    for name in CRATES {
        println!("cargo::rerun-if-changed={}", crates.join(name).join("src").display());
        collect(&crates.join(name).join("src"), &mut files)?;
    }
    // What versions of libraries they are built with.
    let lock = crates.parent().expect("the crates lie in the workspace").join("Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    files.push(lock);
    let mut named: Vec<(String, PathBuf)> = files.into_iter().map(|path| (name(crates, &path), path)).collect();
    named.sort();
    let mut digest = Sha256::new();
    for (name, path) in named {
        let text = fs::read(path)?;
        digest.update(name);
        digest.update([0]);
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    let mut hex = String::new();
    for byte in &digest.finalize()[..8] {
        write!(hex, "{byte:02x}").expect("a string takes all");
    }
    println!("cargo::rustc-env=SUBAK_SOURCES={hex}");
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// The path below the crates, the same on every system.
fn name(crates: &Path, path: &Path) -> String {
    let below = path.strip_prefix(crates).unwrap_or(path.file_name().map(Path::new).unwrap_or(path));
    below.components().map(|c| c.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}
