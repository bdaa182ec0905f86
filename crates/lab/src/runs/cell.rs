//! A cell as one pure function: from a spec and a number to the bytes of a table.

use crate::error::Error;
use crate::results::files::Part;
use crate::results::packets::PacketTable;
use crate::results::store::{self, Store};
use crate::results::table::TableWriter;
use crate::runs::recorder::Shared;
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

/// The table of cell `number`; `None` if it was cancelled. `progress` is told the share that is done. Packets that the spec
/// wants recorded go to `store` while the run lasts; their file is there before the cell is complete.
pub(crate) fn table(
    spec: &ValidSpec,
    number: usize,
    store: &Store,
    cancel: &AtomicBool,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Option<Vec<u8>>, CellError> {
    let (setting, scheme) = spec.setting(number);
    let setting = &*setting.under(scheme);
    let pair = |key: &str, value: u64| KeyValue::new(key.to_string(), value.to_string());
    let metadata = store::metadata_of_cell(spec, number);
    let mut table = TableWriter::new(Vec::new(), spec, &setting.axis_values, metadata)?;
    let path = store.packets_path(number);
    let broken = |e: std::io::Error| Error::file(&path, e);
    let part = setting.measure.packets.is_some().then(|| Part::beside(&path)).transpose().map_err(broken)?;
    let packets = match &part {
        None => None,
        Some(part) => {
            let file = part.file.try_clone().map_err(broken)?;
            let network = setting.topology.network();
            Some(Shared::new(PacketTable::new(file, &spec.hash, number, network, setting.packet)?))
        }
    };
    let seed = spec.cell(number).seed;
    let cell = simulate::Cell { number, setting, scheme, seed, packets: packets.as_ref(), cancel, progress };
    let took = simulate::simulate(&cell, &mut |row| table.push(row).map_err(|e| Error::file(Path::new("cell"), e)))?;
    Ok(match took {
        None => None,
        Some(Took { events, packet_hops }) => {
            packets.map_or(Ok(()), |packets| packets.close())?;
            part.map_or(Ok(()), Part::keep).map_err(broken)?;
            Some(table.close([pair("subak.events", events), pair("subak.packet_hops", packet_hops)])?)
        }
    })
}
