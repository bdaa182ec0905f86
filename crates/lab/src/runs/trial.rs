//! Runs one trial of a spec, and writes its table during the run.

use crate::error::Error;
use crate::files::PartialFile;
use crate::results::footer::metadata_of_trial;
use crate::results::packets::PacketTable;
use crate::results::spent::Took;
use crate::results::store::Store;
use crate::results::table::TableWriter;
use crate::runs::RunOptions;
use crate::runs::recorder::SharedTable;
use crate::runs::simulate;
use crate::runs::task::Trial;
use crate::spec::ValidSpec;
use crate::spec::workload::jobs::Policies;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use std::path::Path;
use std::sync::atomic::Ordering;

/// The outcome of a trial.
pub(crate) enum TrialEnd {
    Complete,
    Cancelled,
    /// The error message.
    Failed(String),
}

/// Runs trial `number` and stores its table in `store`. Calls `progress` with the fraction done. An error means
/// that files cannot be written, and stops all trials.
pub(crate) fn attempt(
    spec: &ValidSpec,
    number: usize,
    store: &Store,
    policies: &Policies,
    options: &RunOptions,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<TrialEnd, Error> {
    let mut caught = Err("it was not run".to_string());
    let mut work = || caught = crate::quiet::catch(|| run(spec, number, store, policies, options, progress));
    // Hooks of all schemes of a trial run on its thread, and one watcher interrupts them.
    let outside = spec.scenario(number).1.outsides().next();
    let is_outside = outside.is_some();
    match outside {
        Some(outside) => outside.definition().around(options.cancel, &mut work),
        None => work(),
    }
    match caught.unwrap_or_else(|panic| Err(TrialError::Run(format!("a defect of subak: {panic}")))) {
        Ok(true) => Ok(TrialEnd::Complete),
        Ok(false) => Ok(TrialEnd::Cancelled),
        // Ctrl-C interrupts the code of a scheme supplied by the user, which then fails.
        Err(TrialError::Run(_)) if is_outside && options.cancel.load(Ordering::Relaxed) => Ok(TrialEnd::Cancelled),
        Err(TrialError::Run(error)) => Ok(TrialEnd::Failed(error)),
        Err(TrialError::Files(error)) => Err(error),
    }
}

/// Reason of a trial's failure.
enum TrialError {
    /// The error message.
    Run(String),
    /// Files cannot be written, which also affects other trials.
    Files(Error),
}

impl From<Error> for TrialError {
    fn from(error: Error) -> Self {
        TrialError::Run(error.to_string())
    }
}

impl From<ParquetError> for TrialError {
    fn from(error: ParquetError) -> Self {
        TrialError::Run(error.to_string())
    }
}

/// Runs the trial; `false` if cancelled. The file of recorded packets is complete before the trial's table.
fn run(
    spec: &ValidSpec,
    number: usize,
    store: &Store,
    policies: &Policies,
    options: &RunOptions,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<bool, TrialError> {
    let (scenario, scheme) = spec.scenario(number);
    let seed = spec.trial(number).seed;
    let scenario = &*scenario.under(scheme);
    let scenario = &*scenario.drawn(seed);
    let pair = |key: &str, value: u64| KeyValue::new(key.to_string(), value.to_string());
    let metadata = metadata_of_trial(spec, number);
    let (rows, file) = store.begin(number).map_err(TrialError::Files)?;
    let mut table = TableWriter::new(file, spec, &scenario.axis_values, scheme, metadata)?;
    let path = store.packets_path(number);
    let broken = |e: std::io::Error| Error::file(&path, e);
    let part = scenario.measure.packets.is_some().then(|| PartialFile::beside(&path)).transpose().map_err(broken)?;
    let packets = match &part {
        None => None,
        Some(part) => {
            let file = part.file.try_clone().map_err(broken)?;
            let network = scenario.topology.network();
            Some(SharedTable::new(PacketTable::new(file, &spec.hash, number, network, scenario.packet)?))
        }
    };
    let trial = Trial {
        number,
        scenario,
        scheme,
        seed,
        packets: packets.as_ref(),
        policies,
        threads: options.threads,
        cancel: options.cancel,
        testbed: options.testbed,
        watched: options.watched,
        progress,
    };
    let took = simulate::simulate(&trial, &mut |row| table.push(row).map_err(|e| Error::file(Path::new("trial"), e)))?;
    let Some(Took { events, packet_hops }) = took else { return Ok(false) };
    packets.map_or(Ok(()), |packets| packets.close())?;
    part.map_or(Ok(()), PartialFile::keep).map_err(broken)?;
    table.close([pair("subak.events", events), pair("subak.packet_hops", packet_hops)])?;
    store.keep(number, rows).map_err(TrialError::Files)?;
    Ok(true)
}
