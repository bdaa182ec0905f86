//! Results as CSV.

use crate::error::Error;
use crate::results::capture::trials_with_packets;
use crate::results::read::{Results, shown, table_in, text};
use arrow_array::RecordBatch;
use std::io::Write;
use std::path::Path;
use subak_core::InputError;
use subak_core::document::unknown_word;

/// The kind of row that selects recorded packets. They are in separate tables.
const PACKET: &str = "packet";

/// Writes the results in `dir` as CSV: rows of `kind`, by default all rows of the results table. Returns the number of
/// rows. Recorded packets are the kind "packet".
pub fn export(dir: &Path, kind: Option<&str>, out: impl Write) -> Result<u64, Error> {
    let mut sheet = Sheet { writer: csv::Writer::from_writer(out), headed: false, rows: 0 };
    match kind {
        Some(PACKET) => {
            for (trial, path) in trials_with_packets(dir)? {
                let trial = trial.to_string();
                table_in(&path, None, |batch| sheet.add(batch, Some(&trial), |_| true))?;
            }
        }
        Some(kind) if !crate::KINDS.contains(&kind) => {
            let known: Vec<&str> = crate::KINDS.iter().copied().chain([PACKET]).collect();
            return Err(unknown_word(kind, "kind of row", &known).below("kind").into());
        }
        _ => Results::open(dir)?.batches(None, |batch| {
            let row_kind = text(batch, "kind");
            sheet.add(batch, None, |i| kind.is_none() || row_kind(i) == kind)
        })?,
    }
    sheet.writer.flush().map_err(|e| Error::file(Path::new("output"), e))?;
    Ok(sheet.rows)
}

struct Sheet<W: Write> {
    writer: csv::Writer<W>,
    headed: bool,
    rows: u64,
}

impl<W: Write> Sheet<W> {
    /// Writes the rows for which `wanted` returns true. `trial`: first value of each row, for a table without that
    /// column.
    fn add(&mut self, batch: &RecordBatch, trial: Option<&str>, wanted: impl Fn(usize) -> bool) -> Result<(), Error> {
        if !self.headed {
            self.headed = true;
            let names = batch.schema_ref().fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>();
            self.writer.write_record(trial.map(|_| "trial").into_iter().chain(names)).map_err(broken)?;
        }
        for i in (0..batch.num_rows()).filter(|&i| wanted(i)) {
            let values = batch.columns().iter().map(|c| shown(c.as_ref(), i));
            self.writer.write_record(trial.map(str::to_string).into_iter().chain(values)).map_err(broken)?;
            self.rows += 1;
        }
        Ok(())
    }
}

fn broken(e: csv::Error) -> Error {
    match e.into_kind() {
        csv::ErrorKind::Io(e) => Error::file(Path::new("output"), e),
        other => Error::InputError(InputError::new("", format!("cannot be written as CSV: {other:?}"), "")),
    }
}
