//! A cell as one pure function: from a spec and a number to the bytes of a table.

use crate::error::Error;
use crate::results::store;
use crate::results::table::TableWriter;
use crate::runs::simulate::{self, Took};
use crate::spec::ValidSpec;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Why a cell failed.
pub(crate) struct CellError(pub String);

impl From<Error> for CellError {
    fn from(error: Error) -> Self {
        CellError(error.to_string())
    }
}

impl From<ParquetError> for CellError {
    fn from(error: ParquetError) -> Self {
        CellError(error.to_string())
    }
}

/// The table of cell `number`; `None` if it was cancelled. `progress` is told the share that is done.
pub(crate) fn table(
    spec: &ValidSpec,
    number: usize,
    cancel: &AtomicBool,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Option<Vec<u8>>, CellError> {
    let (setting, scheme) = spec.setting(number);
    let pair = |key: &str, value: u64| KeyValue::new(key.to_string(), value.to_string());
    let mut metadata = store::metadata(&spec.hash);
    metadata.push(pair("subak.cell", number as u64));
    let mut table = TableWriter::new(Vec::new(), spec, &setting.axis_values, metadata)?;
    let cell = simulate::Cell { number, setting, scheme, seed: spec.cell(number).seed, cancel, progress };
    let took = simulate::simulate(&cell, &mut |row| table.push(row).map_err(|e| Error::file(Path::new("cell"), e)))?;
    Ok(match took {
        None => None,
        Some(Took { events, packet_hops }) => {
            Some(table.close([pair("subak.events", events), pair("subak.packet_hops", packet_hops)])?)
        }
    })
}
