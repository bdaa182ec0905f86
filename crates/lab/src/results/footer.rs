//! Footers of results tables: the spec and the build that wrote them.

use crate::spec::ValidSpec;
use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData, ParquetMetaDataReader};
use std::fs::File;
use std::path::Path;

/// Version that the results record.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Hash of the sources, which the results record: another build may produce different bytes.
pub const BUILD: &str = env!("SUBAK_SOURCES");

/// Metadata of each results table of the spec with hash `spec_hash`.
pub(crate) fn metadata(spec_hash: &str) -> Vec<KeyValue> {
    [("subak.spec", spec_hash), ("subak.version", VERSION), ("subak.build", BUILD)]
        .map(|(key, value)| KeyValue::new(key.to_string(), value.to_string()))
        .to_vec()
}

/// Metadata of a trial's table.
pub(crate) fn metadata_of_trial(spec: &ValidSpec, trial: usize) -> Vec<KeyValue> {
    let pair = |key: &str, value: String| KeyValue::new(key.to_string(), value);
    let mut metadata = metadata(&spec.hash);
    metadata.extend([pair("subak.trial", trial.to_string()), pair("subak.identity", spec.identity(trial))]);
    metadata
}

/// Footer of a table that may be damaged. The reader panics at some damaged tables.
pub(crate) fn footer_of(table: &Bytes) -> Option<ParquetMetaData> {
    crate::quiet::catch(|| ParquetMetaDataReader::new().parse_and_finish(table).ok()).ok().flatten()
}

/// Whether `path` is a table of this build for the spec with hash `spec_hash`.
pub(crate) fn is_of_spec(path: &Path, spec_hash: &str) -> bool {
    let Ok(footer) = read_footer(path) else { return false };
    let pairs = footer.file_metadata().key_value_metadata().map_or(&[][..], Vec::as_slice);
    metadata(spec_hash).iter().all(|wanted| pairs.contains(wanted))
}

/// Footer of the table in `path`.
pub(crate) fn read_footer(path: &Path) -> Result<ParquetMetaData, ParquetError> {
    ParquetMetaDataReader::new().parse_and_finish(&File::open(path)?)
}
