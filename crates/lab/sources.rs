//! Hash of every source file that results depend on, for the build script and its test.

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Hash of all files in `parts` and of `Cargo.lock`.
pub fn hash(crates: &Path, parts: &[PathBuf]) -> io::Result<String> {
    let mut files = vec![lock(crates)];
    for part in parts {
        collect(part, &mut files)?;
    }
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
    Ok(hex)
}

/// Path of Cargo.lock, which has the versions of dependencies.
pub fn lock(crates: &Path) -> PathBuf {
    crates.parent().unwrap_or(crates).join("Cargo.lock")
}

/// Files that determine the results of crate `name`: manifests and sources of the crate and of its path dependencies.
pub fn parts(crates: &Path, name: &str) -> io::Result<Vec<PathBuf>> {
    let of = |name: String| ["Cargo.toml", "src"].map(|part| crates.join(&name).join(part));
    Ok(below(crates, name)?.into_iter().flat_map(of).collect())
}

/// Names of the crate `name` and of its dependencies in this workspace.
fn below(crates: &Path, name: &str) -> io::Result<BTreeSet<String>> {
    let (mut found, mut open) = (BTreeSet::new(), vec![name.to_string()]);
    while let Some(name) = open.pop() {
        let manifest = fs::read_to_string(crates.join(&name).join("Cargo.toml"))?;
        let section = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
        let listed = section.take_while(|line| !line.starts_with('['));
        let ours = listed.filter_map(|line| line.strip_prefix("subak-")?.split(['.', ' ', '=']).next());
        open.extend(ours.filter(|name| !found.contains(*name)).map(str::to_string));
        found.insert(name);
    }
    Ok(found)
}

/// Collects the file `part`, or every file below the folder `part`: sources and included data.
fn collect(part: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if part.is_file() {
        files.push(part.to_path_buf());
        return Ok(());
    }
    for entry in fs::read_dir(part)? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}

/// Path relative to the folder of crates, with the separator "/" on every system.
fn name(crates: &Path, path: &Path) -> String {
    let below = path.strip_prefix(crates).unwrap_or(path.file_name().map(Path::new).unwrap_or(path));
    below.components().map(|c| c.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}
