//! Trials on other machines. A trial is sent as its number and returned as the bytes of its files.

use super::Work;
use super::trial::{TrialEnd, attempt};
use crate::error::Error;
use crate::results::spent::Spent;
use crate::results::store::{Store, TrialFiles};
use crate::runs::RunOptions;
use crate::spec::ValidSpec;
use crate::spec::workload::jobs::Policies;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use subak_core::InputError;

/// Machines that run the trials of a spec.
pub trait RemoteWorkers: Sync {
    /// Runs `trials` and passes each result to `take`, in any order. While no result is ready, passes `None`
    /// periodically. Stops once `take` returns `false`.
    fn run(&self, trials: &[usize], take: &mut dyn FnMut(Option<RemoteTrial>) -> bool) -> Result<(), InputError>;
}

/// A finished remote trial.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteTrial {
    /// Number of the trial.
    pub trial: usize,
    /// Files of the trial, or its error message.
    pub files: Result<TrialFiles, String>,
    /// Wall-clock time, s.
    pub wall_s: f64,
    /// CPU time, s.
    pub cpu_s: f64,
}

/// Runs trial `trial` of `spec` on behalf of another machine, with temporary files in `dir`. `None` if it was cancelled.
pub fn run_trial(
    spec: &ValidSpec,
    trial: usize,
    dir: &Path,
    cancel: &AtomicBool,
) -> Result<Option<RemoteTrial>, Error> {
    spec.check_trial(trial)?;
    let store = Store::bare(dir, spec)?;
    let options = RunOptions::alone(cancel);
    let begun = Spent::now();
    let files = match attempt(spec, trial, &store, &Policies::new(), &options, &|_| ())? {
        TrialEnd::Cancelled => return Ok(None),
        TrialEnd::Failed(error) => Err(error),
        TrialEnd::Complete => {
            let read = |path: &Path| fs::read(path).map_err(|e| Error::file(path, e));
            let packets = store.packets_path(trial);
            let packets = packets.exists().then(|| read(&packets)).transpose()?;
            Ok(TrialFiles { table: read(&store.trial_path(trial))?, packets })
        }
    };
    let Spent { wall_s, cpu_s } = Spent::since(begun);
    Ok(Some(RemoteTrial { trial, files, wall_s, cpu_s: cpu_s.unwrap_or_default() }))
}

impl Work<'_> {
    /// Runs the missing trials on `machines`. An error means that results cannot be stored, or that the machines
    /// failed.
    pub(super) fn sent(&self, machines: &dyn RemoteWorkers) -> Result<(), Error> {
        let mut out: BTreeMap<usize, usize> = self.missing.iter().enumerate().map(|(at, &trial)| (trial, at)).collect();
        let mut kept = Ok(());
        let ran = machines.run(self.missing, &mut |came| {
            // A second result of the same trial is ignored.
            let news = came.and_then(|came| Some((out.remove(&came.trial)?, came)));
            match news {
                None => self.tell(None),
                Some((at, came)) => {
                    kept = self.take(at, came);
                }
            }
            kept.is_ok() && !self.options.cancel.load(Ordering::Relaxed)
        });
        kept?;
        ran?;
        match out.keys().next() {
            Some(trial) if !self.options.cancel.load(Ordering::Relaxed) => {
                let what = format!("trial {trial} was sent, and nothing came back: a defect of subak");
                Err(InputError::new("", what, "run again, and report it with the spec").into())
            }
            _ => Ok(()),
        }
    }

    fn take(&self, at: usize, came: RemoteTrial) -> Result<(), Error> {
        let kept = match came.files {
            Err(error) => Err(error),
            Ok(files) => self.store.take(came.trial, files, self.spec)?,
        };
        if let Err(error) = kept {
            self.store.keep_error(came.trial, &error)?;
        }
        self.note(came.trial, Spent { wall_s: came.wall_s, cpu_s: Some(came.cpu_s) });
        self.done.fetch_add(1, Ordering::Relaxed);
        self.tell(Some((at, 1.0)));
        Ok(())
    }
}
