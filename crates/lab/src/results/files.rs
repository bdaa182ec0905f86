//! Files in and out. Nothing else in the library touches them.

use serde_json::Value;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use subak_core::case::network_from_value;
use subak_core::route::Metric;
use subak_core::{Fault, Network};

/// The largest input that is read.
const MOST_BYTES: u64 = 256 << 20;

/// The text of an input file.
pub fn read_text(path: &Path) -> Result<String, Fault> {
    let named = |e: Fault| e.in_file(path.display().to_string());
    let refuse = |what: String| named(Fault::new("", what, "give the path of a readable text file"));
    let about = fs::metadata(path).map_err(|e| refuse(format!("cannot be read: {e}")))?;
    if !about.is_file() {
        return Err(refuse("is not a file".into()));
    }
    if about.len() > MOST_BYTES {
        return Err(refuse(format!("has {} bytes, more than {MOST_BYTES}", about.len())));
    }
    let bytes = fs::read(path).map_err(|e| refuse(format!("cannot be read: {e}")))?;
    String::from_utf8(bytes)
        .map_err(|e| refuse(format!("is not UTF-8 text: byte {} begins no character", e.utf8_error().valid_up_to())))
}

/// Writes `path` whole or not at all: into a file beside it, which then takes its name.
pub(crate) fn write_whole(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{:016x}.part", unlike_any_other()));
    // `create_new` fails rather than share a file with another machine.
    let written = File::create_new(&temporary).and_then(|mut file| {
        write(&mut file)?;
        file.flush()?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| fs::rename(&temporary, path));
    if renamed.is_err() {
        // It would only lie about; that it cannot be removed adds nothing to the error that is passed up.
        let _ = fs::remove_file(&temporary);
    }
    renamed
}

/// A number that no other process has, on this machine or on another that shares the folder: the hasher's keys are random,
/// and the time and the process are mixed in.
fn unlike_any_other() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.write_u128(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos()));
    hasher.finish()
}

/// A network as a spec describes it: links, a generator, or a file relative to `base`; and how to route over it.
pub(crate) fn network(value: &Value, base: &Path) -> Result<(Network, Metric), Fault> {
    network_from_value(value, &mut |path| read_text(&base.join(path)))
}

/// A tree as TOML, where it can be written so.
pub(crate) fn to_toml(tree: &serde_json::Map<String, Value>) -> Option<String> {
    toml::to_string(tree).ok()
}
