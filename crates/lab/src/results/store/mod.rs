//! Files of results: one table for each trial, written atomically. Once all are complete, they are merged in
//! order.

mod adopt;

use crate::error::Error;
use crate::files::{self, PartialFile};
use crate::results::footer::{BUILD, VERSION, footer_of, metadata, read_footer};
use crate::results::read::read_manifest;
use crate::results::renamed;
use crate::results::spent::{Spent, Took};
use crate::results::table::properties;
use crate::spec::ValidSpec;
use adopt::Adopted;
use bytes::Bytes;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::writer::SerializedFileWriter;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use subak_core::InputError;

/// A directory with the results of one spec.
#[derive(Debug)]
pub(crate) struct Store {
    dir: PathBuf,
    hash: String,
    /// Number of each reused trial before the spec was extended, and now.
    renumbered: Option<BTreeMap<usize, usize>>,
}

/// The files of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialFiles {
    /// Table of results.
    pub table: Vec<u8>,
    /// Table of recorded packets, if the spec requests it.
    pub packets: Option<Vec<u8>>,
}

/// The status of a trial.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TrialStatus {
    Complete(Took),
    Failed(String),
    Missing,
}

impl Store {
    /// Opens or creates `dir` for `spec`; refuses a directory with other content.
    pub fn open(dir: &Path, spec: &ValidSpec) -> Result<Self, Error> {
        let mut store = Store { dir: dir.to_path_buf(), hash: spec.hash.clone(), renumbered: None };
        let refuse =
            |what: String, hint: &str| Err(InputError::new("", what, hint).in_file(dir.display().to_string()).into());
        // Checked before the manifest: otherwise a manifest that another process writes in between would count as
        // a foreign file.
        let free = !dir.exists() || is_free(dir).map_err(|e| Error::file(dir, e))?;
        if store.manifest_path().exists() {
            let manifest = read_manifest(dir)?;
            let held = |key: &str| manifest.get(key).and_then(Value::as_str).unwrap_or("none").to_string();
            let other = || format!("the directory holds results of another spec, \"{}\"", held("name"));
            let hint = "choose another directory, or overwrite this one: --overwrite, or overwrite=True in Python";
            // An overwritten directory has a manifest without trials.
            let cleared = manifest.get("trials").and_then(Value::as_array).is_some_and(Vec::is_empty);
            let grown = !cleared && held("spec_sha256") != spec.hash;
            if grown && held("name") != spec.name {
                return refuse(other(), hint);
            }
            if (held("version").as_str(), held("build").as_str()) != (VERSION, BUILD) {
                let (version, build) = (held("version"), held("build"));
                let what =
                    format!("the results are of another build: {version} ({build}), this is {VERSION} ({BUILD})");
                return refuse(what, hint);
            }
            if grown {
                match adopt::adopt(&store, spec)? {
                    Adopted::All(renumbered) => store.renumbered = Some(renumbered),
                    Adopted::Refused { complete, foreign } => {
                        let what =
                            format!("{}: {foreign} of its {complete} complete trials are not in this one", other());
                        return refuse(what, hint);
                    }
                }
            }
        } else if !free {
            return refuse("the directory holds other files".into(), "choose an empty or a new directory");
        }
        let trials = store.make_room()?;
        files::remove_abandoned(&trials).map_err(|e| Error::file(&trials, e))?;
        Ok(store)
    }

    /// Prepares the empty folder `dir` for single trials of `spec`, without a manifest.
    pub fn bare(dir: &Path, spec: &ValidSpec) -> Result<Self, Error> {
        let store = Store { dir: dir.to_path_buf(), hash: spec.hash.clone(), renumbered: None };
        store.make_room()?;
        Ok(store)
    }

    fn make_room(&self) -> Result<PathBuf, Error> {
        let trials = self.dir.join("trials");
        fs::create_dir_all(&trials).map_err(|e| Error::file(&trials, e))?;
        Ok(trials)
    }

    /// The cost of each trial, from the manifest.
    pub fn spent(&self) -> BTreeMap<usize, Spent> {
        let Ok(manifest) = read_manifest(&self.dir) else { return BTreeMap::new() };
        let now = |before: usize| self.renumbered.as_ref().map_or(Some(before), |moved| moved.get(&before).copied());
        let time = |c: &Value| Some((now(c.get("trial")?.as_u64()? as usize)?, Spent::read(c)?));
        manifest.get("trials").and_then(Value::as_array).into_iter().flatten().filter_map(time).collect()
    }

    /// File of a trial's table.
    pub fn trial_path(&self, trial: usize) -> PathBuf {
        self.dir.join("trials").join(format!("{trial}.parquet"))
    }

    /// File of a trial's recorded packets.
    pub fn packets_path(&self, trial: usize) -> PathBuf {
        packets_path(&self.dir, trial)
    }

    fn error_path(&self, trial: usize) -> PathBuf {
        self.dir.join("trials").join(format!("{trial}.error.json"))
    }

    fn manifest_path(&self) -> PathBuf {
        self.dir.join("manifest.json")
    }

    pub fn results_path(&self) -> PathBuf {
        self.dir.join("results.parquet")
    }

    /// Whether the merged table exists and is readable.
    pub fn is_joined(&self) -> bool {
        read_footer(&self.results_path()).is_ok()
    }

    /// The status of the trial, from the files on disk.
    pub fn standing(&self, trial: usize) -> TrialStatus {
        if let Ok(metadata) = read_footer(&self.trial_path(trial))
            && let Some(took) = self.took(&metadata, trial)
        {
            return TrialStatus::Complete(took);
        }
        let error =
            fs::read_to_string(self.error_path(trial)).ok().and_then(|s| serde_json::from_str::<Value>(&s).ok());
        match error.as_ref().and_then(|e| e.get("error")).and_then(Value::as_str) {
            Some(error) => TrialStatus::Failed(error.to_string()),
            None => TrialStatus::Missing,
        }
    }

    fn took(&self, metadata: &ParquetMetaData, trial: usize) -> Option<Took> {
        let pairs = metadata.file_metadata().key_value_metadata()?;
        let get = |key: &str| pairs.iter().find(|p| p.key == key).and_then(|p| p.value.clone());
        let ours = get("subak.spec")? == self.hash
            && get("subak.version")? == VERSION
            && get("subak.build")? == BUILD
            && get("subak.trial")? == trial.to_string();
        let number = |key: &str| get(key).and_then(|v| v.parse().ok());
        ours.then_some(Took { events: number("subak.events")?, packet_hops: number("subak.packet_hops")? })
    }

    /// Creates the temporary file of a trial's table.
    pub fn begin(&self, trial: usize) -> Result<(PartialFile, File), Error> {
        let path = self.trial_path(trial);
        let part = PartialFile::beside(&path).map_err(|e| Error::file(&path, e))?;
        let file = part.file.try_clone().map_err(|e| Error::file(&path, e))?;
        Ok((part, file))
    }

    /// Renames the finished table of a trial to its final name, and removes an earlier error.
    pub fn keep(&self, trial: usize, table: PartialFile) -> Result<(), Error> {
        table.keep().map_err(|e| Error::file(&self.trial_path(trial), e))?;
        let _ = fs::remove_file(self.error_path(trial));
        Ok(())
    }

    /// Stores the files of a trial that another machine ran. Files of another trial, spec or build give an error
    /// message.
    pub fn take(&self, trial: usize, came: TrialFiles, spec: &ValidSpec) -> Result<Result<(), String>, Error> {
        let (table, recorded) = (Bytes::from(came.table), came.packets.map(Bytes::from));
        if footer_of(&table).and_then(|footer| self.took(&footer, trial)).is_none() {
            return Ok(Err("what came back is no table of this trial: run it again".to_string()));
        }
        let wanted = spec.scenario(trial).0.measure.packets.is_some();
        if wanted != recorded.as_ref().is_some_and(|packets| footer_of(packets).is_some()) {
            return Ok(Err("what came back lacks the packets of this trial: run it again".to_string()));
        }
        let packets = self.packets_path(trial);
        if let Some(bytes) = &recorded {
            let written = files::write_whole(&packets, |file| io::Write::write_all(file, bytes));
            written.map_err(|e| Error::file(&packets, e))?;
        }
        let (mut part, _) = self.begin(trial)?;
        let path = self.trial_path(trial);
        io::Write::write_all(&mut part.file, &table).map_err(|e| Error::file(&path, e))?;
        self.keep(trial, part).map(Ok)
    }

    /// Stores the error of a failed trial.
    pub fn keep_error(&self, trial: usize, error: &str) -> Result<(), Error> {
        self.write_json(&self.error_path(trial), &json!({"trial": trial, "error": error}))
    }

    pub fn write_json(&self, path: &Path, value: &Value) -> Result<(), Error> {
        let text = format!("{value:#}\n");
        files::write_whole(path, |file| io::Write::write_all(file, text.as_bytes())).map_err(|e| Error::file(path, e))
    }

    pub fn write_manifest(&self, manifest: &Value) -> Result<(), Error> {
        self.write_json(&self.manifest_path(), manifest)
    }

    /// Writes the spec into the results directory: the original text if it was TOML.
    pub fn write_spec(&self, spec: &ValidSpec) -> Result<(), Error> {
        let path = self.dir.join("spec.toml");
        let text = match &spec.spec.toml {
            Some(text) => text.clone(),
            None => files::to_toml(spec.tree())
                .unwrap_or_else(|| format!("# The spec in JSON: {}\n", Value::Object(spec.tree().clone()))),
        };
        files::write_whole(&path, |file| io::Write::write_all(file, text.as_bytes())).map_err(|e| Error::file(&path, e))
    }

    /// Merges the tables of all trials, in order, without decoding them.
    pub fn merge(&self, trials: usize) -> Result<(), Error> {
        let path = self.results_path();
        let joined = |out: &mut File| self.join(trials, out).map_err(io::Error::other);
        files::write_whole(&path, joined).map_err(|e| Error::file(&path, e))
    }

    fn join(&self, trials: usize, out: &mut File) -> Result<(), ParquetError> {
        let first = read_footer(&self.trial_path(0))?;
        let schema = first.file_metadata().schema_descr().root_schema_ptr();
        let mut metadata = metadata(&self.hash);
        let pairs = first.file_metadata().key_value_metadata();
        metadata.extend(pairs.into_iter().flatten().filter(|p| p.key == "ARROW:schema").cloned());
        let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties(metadata)))?;
        for trial in 0..trials {
            let path = self.trial_path(trial);
            let footer = read_footer(&path)?;
            let input = File::open(&path)?;
            copy_groups(&footer, &input, &mut writer)?;
        }
        writer.close().map(|_| ())
    }
}

/// Copies the row groups of `input` without decoding them.
fn copy_groups<W: io::Write + Send>(
    footer: &ParquetMetaData,
    input: &File,
    writer: &mut SerializedFileWriter<W>,
) -> Result<(), ParquetError> {
    for group in footer.row_groups() {
        let mut copied = writer.next_row_group()?;
        for column in group.columns() {
            let result = ColumnCloseResult {
                bytes_written: column.compressed_size() as u64,
                rows_written: group.num_rows() as u64,
                metadata: column.clone(),
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            copied.append_column(input, result)?;
        }
        copied.close()?;
    }
    Ok(())
}

/// Path of a trial's packet table in the results directory `dir`.
pub(crate) fn packets_path(dir: &Path, trial: usize) -> PathBuf {
    renamed::trials(dir).join(format!("{trial}.packets.parquet"))
}

/// Whether a folder is empty, except for files that an interrupted start may leave.
fn is_free(dir: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let left_over = entry.file_name() == "trials" && fs::read_dir(entry.path())?.next().is_none();
        if !left_over && !entry.file_name().to_string_lossy().ends_with(".part") {
            return Ok(false);
        }
    }
    Ok(true)
}
