//! File input and output. No other module reads or writes files.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use subak_core::case::network_from_value;
use subak_core::route::Metric;
use subak_core::{InputError, Network};

/// Largest input file, bytes.
const MOST_BYTES: u64 = 256 << 20;

/// Reads the text of an input file.
pub fn read_text(path: &Path) -> Result<String, InputError> {
    utf8(read_bytes(path)?).map_err(|e| e.in_file(path.display().to_string()))
}

fn utf8(bytes: Vec<u8>) -> Result<String, InputError> {
    String::from_utf8(bytes).map_err(|e| {
        let what = format!("is not UTF-8 text: byte {} begins no character", e.utf8_error().valid_up_to());
        InputError::new("", what, "give the path of a readable text file")
    })
}

/// Reads the bytes of an input file.
fn read_bytes(path: &Path) -> Result<Vec<u8>, InputError> {
    let named = |e: InputError| e.in_file(path.display().to_string());
    let refuse = |what: String| named(InputError::new("", what, "give the path of a readable file"));
    let about = fs::metadata(path).map_err(|e| refuse(format!("cannot be read: {e}")))?;
    if !about.is_file() {
        return Err(refuse("is not a file".into()));
    }
    if about.len() > MOST_BYTES {
        return Err(refuse(format!("has {} bytes, more than {MOST_BYTES}", about.len())));
    }
    fs::read(path).map_err(|e| refuse(format!("cannot be read: {e}")))
}

/// Source of the files that a spec names.
#[derive(Debug, Clone)]
pub(crate) enum Beside {
    /// Files in this folder.
    Folder(PathBuf),
    /// Contents of files that were sent with the spec, by the names in the spec.
    Brought(BTreeMap<String, Vec<u8>>),
}

impl Beside {
    /// Path of the file `name`, for messages.
    pub fn shown(&self, name: &str) -> String {
        match self {
            Beside::Folder(folder) => folder.join(name).display().to_string(),
            Beside::Brought(_) => name.to_string(),
        }
    }

    /// Names of the files whose name ends in `end`, in alphabetical order.
    pub fn names(&self, end: &str) -> Vec<String> {
        let mut names: Vec<String> = match self {
            Beside::Folder(folder) => {
                let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
                let entries = fs::read_dir(folder).into_iter().flatten().flatten();
                entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
            }
            Beside::Brought(files) => files.keys().cloned().collect(),
        };
        names.retain(|name| name.ends_with(end));
        names.sort_unstable();
        names
    }

    /// Reads the file `name`.
    pub fn bytes(&self, name: &str) -> Result<Vec<u8>, InputError> {
        match self {
            Beside::Folder(folder) => read_bytes(&folder.join(name)),
            Beside::Brought(files) => files.get(name).cloned().ok_or_else(|| {
                InputError::new("", "did not come with the spec", "send it along with the spec").in_file(name)
            }),
        }
    }

    /// Reads the text of the file `name`.
    pub fn text(&self, name: &str) -> Result<String, InputError> {
        utf8(self.bytes(name)?).map_err(|e| e.in_file(self.shown(name)))
    }
}

/// Writes `path` atomically: into a temporary file in the same folder, which is then renamed.
pub(crate) fn write_whole(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut part = PartialFile::beside(path)?;
    write(&mut part.file)?;
    part.keep()
}

/// Temporary file that is renamed to its destination by [`PartialFile::keep`], and removed otherwise. A file lock
/// shows other processes that it is in use.
pub(crate) struct PartialFile {
    pub file: File,
    temporary: PathBuf,
    path: PathBuf,
    kept: bool,
}

impl PartialFile {
    /// Creates the temporary file of `path`.
    pub fn beside(path: &Path) -> io::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        loop {
            let temporary = path.with_file_name(format!(".{name}.{:016x}.part", unlike_any_other()));
            // `create_new` fails instead of sharing the file with another machine.
            let file = File::create_new(&temporary)?;
            // Without file locks, files of killed processes are not removed.
            let locked_by_another = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            // Before the lock, another process may take the file for one of a killed process.
            if !locked_by_another && temporary.exists() {
                return Ok(PartialFile { file, temporary, path: path.to_path_buf(), kept: false });
            }
        }
    }

    /// Renames the temporary file to its destination.
    pub fn keep(mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.sync_all()?;
        fs::rename(&self.temporary, &self.path)?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.kept {
            // A temporary file that cannot be removed does not fail the run.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Calls `with` with the path of a new temporary file that contains `bytes`, and then removes the file.
pub(crate) fn with_temporary(bytes: &[u8], extension: &str, with: &mut dyn FnMut(&Path)) -> io::Result<()> {
    let path = std::env::temp_dir().join(format!("subak-{:016x}.{extension}", unlike_any_other()));
    let written = File::create_new(&path).and_then(|mut file| file.write_all(bytes));
    if written.is_ok() {
        with(&path);
    }
    // A file that stays in the system's folder for temporary files does no harm.
    let _ = fs::remove_file(&path);
    written
}

/// Removes temporary files of killed processes from `dir`.
pub(crate) fn remove_abandoned(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let in_the_making = path.extension().is_some_and(|e| e == "part");
        // The lock is kept until the file is removed: its writer then notices.
        let Some(file) = in_the_making.then(|| File::open(&path).ok()).flatten() else { continue };
        if file.try_lock().is_ok()
            && let Err(error) = fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
    }
    Ok(())
}

/// A random number for the name of a temporary file. It differs between processes and between machines that share the
/// folder: a hash of random keys, the process id and the time.
fn unlike_any_other() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.write_u128(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos()));
    hasher.finish()
}

/// Reads the network of a spec, inline or from one of `files`, and its default routing metric.
pub(crate) fn network(value: &Value, files: &Beside) -> Result<(Network, Metric), InputError> {
    network_from_value(value, &mut |name| files.text(name))
}

/// `tree` as TOML; `None` if it cannot be written as TOML.
pub(crate) fn to_toml(tree: &serde_json::Map<String, Value>) -> Option<String> {
    toml::to_string(tree).ok()
}

#[cfg(test)]
mod tests {
    use super::{remove_abandoned, write_whole};
    use std::fs;
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Another process that begins in the same folder removes neither a file that is being written nor a finished one.
    #[test]
    fn files_written_beside_a_removal_are_kept() -> std::io::Result<()> {
        let folder = std::env::temp_dir().join(format!("subak-beside-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let ended = AtomicBool::new(false);
        let written = std::thread::scope(|scope| {
            let removal = scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    remove_abandoned(&folder)?;
                }
                Ok::<_, std::io::Error>(())
            });
            let written =
                (0..2000).try_for_each(|i| write_whole(&folder.join(i.to_string()), |file| file.write_all(b"whole")));
            ended.store(true, Ordering::Relaxed);
            written.and(removal.join().expect("the removal does not panic"))
        });
        let mut whole = 0;
        for entry in fs::read_dir(&folder)? {
            whole += usize::from(fs::read(entry?.path())? == b"whole");
        }
        fs::remove_dir_all(&folder)?;
        written?;
        assert_eq!(whole, 2000);
        Ok(())
    }

    /// The file of a killed process holds no lock.
    #[test]
    fn abandoned_files_are_removed() -> std::io::Result<()> {
        let folder = std::env::temp_dir().join(format!("subak-abandoned-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(".0.parquet.0.part"), b"half")?;
        remove_abandoned(&folder)?;
        let left = fs::read_dir(&folder)?.count();
        fs::remove_dir_all(&folder)?;
        assert_eq!(left, 0);
        Ok(())
    }
}
