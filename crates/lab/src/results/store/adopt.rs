//! Reuse of completed trials after a spec was extended. Trials are matched by identity, and their tables get the new
//! numbers, labels and axis columns. The tables are then byte for byte those of a run of the extended spec from the
//! start.

use super::{Store, copy_groups, packets_path};
use crate::error::Error;
use crate::files;
use crate::results::footer::{BUILD, VERSION, metadata, metadata_of_trial, read_footer};
use crate::results::read::table_in;
use crate::results::table::{TableWriter, properties};
use crate::spec::ValidSpec;
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::writer::SerializedFileWriter;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Result of [`adopt`].
pub(super) enum Adopted {
    /// Every complete trial was renumbered. Old number to new number.
    All(BTreeMap<usize, usize>),
    /// Nothing was changed: there are no complete trials, or `foreign` of them are not in the new spec.
    Refused { complete: usize, foreign: usize },
}

/// A complete trial on disk.
struct StoredTrial {
    path: PathBuf,
    footer: ParquetMetaData,
    identity: String,
    number: usize,
}

/// Renumbers the complete trials in the directory of `store` for `spec`.
///
/// Each table is first written to a file named by its identity, and then renamed. After an interruption the call can be
/// repeated.
pub(super) fn adopt(store: &Store, spec: &ValidSpec) -> Result<Adopted, Error> {
    let held = held(&store.dir.join("trials"))?;
    let places: HashMap<String, usize> = (0..spec.len()).map(|trial| (spec.identity(trial), trial)).collect();
    let foreign = held.iter().filter(|h| !places.contains_key(&h.identity)).count();
    if foreign > 0 || held.is_empty() {
        return Ok(Adopted::Refused { complete: held.len(), foreign });
    }
    let _ = fs::remove_file(store.results_path());
    let mut renumbered = BTreeMap::new();
    let mut ready: BTreeMap<usize, PathBuf> = BTreeMap::new();
    for trial in &held {
        let place = places[&trial.identity];
        renumbered.insert(trial.number, place);
        if ready.contains_key(&place) {
            continue;
        }
        let moving = store.dir.join("trials").join(format!("{}.moving.parquet", trial.identity));
        if trial.path != moving || get(&trial.footer, "subak.spec").as_ref() != Some(&spec.hash) {
            let from = packets_of(&trial.path, &store.dir, trial.number);
            if from.exists() {
                let to = packets_of(&moving, &store.dir, place);
                let write = |out: &mut File| recorded(&from, out, spec, place).map_err(io::Error::other);
                files::write_whole(&to, write).map_err(|e| Error::file(&to, e))?;
            }
            let write = |out: &mut File| rewritten(trial, out, spec, place).map_err(io::Error::other);
            files::write_whole(&moving, write).map_err(|e| Error::file(&moving, e))?;
        }
        ready.insert(place, moving);
    }
    clear(&store.dir.join("trials"))?;
    for (place, moving) in ready {
        let packets = packets_of(&moving, &store.dir, place);
        if packets.exists() {
            rename(&packets, &packets_path(&store.dir, place))?;
        }
        rename(&moving, &store.trial_path(place))?;
    }
    Ok(Adopted::All(renumbered))
}

fn get(footer: &ParquetMetaData, key: &str) -> Option<String> {
    footer.file_metadata().key_value_metadata()?.iter().find(|p| p.key == key).and_then(|p| p.value.clone())
}

/// Tables of complete trials of this build in the folder `trials`, by number. Tables that an interrupted call did not
/// rename are last.
fn held(trials: &Path) -> Result<Vec<StoredTrial>, Error> {
    let mut held = Vec::new();
    for entry in fs::read_dir(trials).into_iter().flatten() {
        let path = entry.map_err(|e| Error::file(trials, e))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let table = name.ends_with(".parquet") && !name.ends_with(".packets.parquet") && !name.starts_with('.');
        let Some(footer) = table.then(|| read_footer(&path).ok()).flatten() else { continue };
        let ours = get(&footer, "subak.version").as_deref() == Some(VERSION)
            && get(&footer, "subak.build").as_deref() == Some(BUILD);
        let (Some(identity), Some(number)) = (get(&footer, "subak.identity"), get(&footer, "subak.trial")) else {
            continue;
        };
        let Some(number) = number.parse().ok().filter(|_| ours) else { continue };
        held.push(StoredTrial { footer, identity, number, path });
    }
    held.sort_by_key(|h| (h.path.to_string_lossy().ends_with(".moving.parquet"), h.number));
    Ok(held)
}

/// Writes the table of `trial` into `out`, as the table of trial number `place` of `spec`.
fn rewritten(trial: &StoredTrial, out: &mut File, spec: &ValidSpec, place: usize) -> Result<(), Error> {
    let broken = |e: ParquetError| Error::file(&trial.path, io::Error::other(e));
    let (scenario, scheme) = spec.scenario(place);
    let metadata = metadata_of_trial(spec, place);
    let mut table = TableWriter::new(out, spec, &scenario.axis_values, scheme, metadata).map_err(broken)?;
    table_in(&trial.path, None, |batch| table.push_batch(batch, place as u64, &scheme.label).map_err(broken))?;
    let took = ["subak.events", "subak.packet_hops"].map(|key| KeyValue::new(key.to_string(), get(&trial.footer, key)));
    table.close(took).map(|_| ()).map_err(broken)
}

/// Copies the packet table `from` into `out`, as the packet table of trial number `place` of `spec`.
fn recorded(from: &Path, out: &mut File, spec: &ValidSpec, place: usize) -> Result<(), ParquetError> {
    let footer = read_footer(from)?;
    let mut said = metadata(&spec.hash);
    said.push(KeyValue::new("subak.trial".to_string(), place.to_string()));
    let pairs = footer.file_metadata().key_value_metadata().into_iter().flatten();
    said.extend(pairs.filter(|p| ["subak.network", "ARROW:schema"].contains(&p.key.as_str())).cloned());
    let schema = footer.file_metadata().schema_descr().root_schema_ptr();
    let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties(said)))?;
    copy_groups(&footer, &File::open(from)?, &mut writer)?;
    writer.close().map(|_| ())
}

/// Path of the packet table of the trial whose results are in `table`.
fn packets_of(table: &Path, dir: &Path, number: usize) -> PathBuf {
    let name = table.file_name().unwrap_or_default().to_string_lossy();
    match name.strip_suffix(".moving.parquet") {
        Some(identity) => table.with_file_name(format!("{identity}.moving.packets.parquet")),
        None => packets_path(dir, number),
    }
}

/// Removes the files named by trial numbers. The tables to keep have other names at that time.
fn clear(trials: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(trials).map_err(|e| Error::file(trials, e))? {
        let path = entry.map_err(|e| Error::file(trials, e))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let numbered = name.split('.').next().is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        if numbered && (name.ends_with(".parquet") || name.ends_with(".error.json")) {
            fs::remove_file(&path).map_err(|e| Error::file(&path, e))?;
        }
    }
    Ok(())
}

fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to).map_err(|e| Error::file(to, e))
}
