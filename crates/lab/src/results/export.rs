//! Results as CSV.

use crate::error::Error;
use crate::results::read::{Results, shown, text};
use std::io::Write;
use std::path::Path;
use subak_core::Fault;
use subak_core::document::unknown_word;

/// Writes the results in `dir` as CSV, all rows or those of one kind; gives the number of rows.
pub fn export(dir: &Path, kind: Option<&str>, out: impl Write) -> Result<u64, Error> {
    if let Some(kind) = kind.filter(|k| !crate::KINDS.contains(k)) {
        return Err(unknown_word(kind, "kind of row", crate::KINDS).below("kind").into());
    }
    let results = Results::open(dir)?;
    let mut writer = csv::Writer::from_writer(out);
    let broken = |e: csv::Error| match e.into_kind() {
        csv::ErrorKind::Io(e) => Error::file(Path::new("output"), e),
        other => Error::Fault(Fault::new("", format!("cannot be written as CSV: {other:?}"), "")),
    };
    let mut rows = 0;
    let mut headed = false;
    results.batches(None, |batch| {
        if !headed {
            headed = true;
            let names: Vec<&str> = batch.schema_ref().fields().iter().map(|f| f.name().as_str()).collect();
            writer.write_record(names).map_err(broken)?;
        }
        let row_kind = text(batch, "kind");
        for i in (0..batch.num_rows()).filter(|&i| kind.is_none() || row_kind(i) == kind) {
            writer.write_record(batch.columns().iter().map(|c| shown(c.as_ref(), i))).map_err(broken)?;
            rows += 1;
        }
        Ok(())
    })?;
    writer.flush().map_err(|e| Error::file(Path::new("output"), e))?;
    Ok(rows)
}
