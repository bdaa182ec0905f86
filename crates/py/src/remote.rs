//! Trials on other machines, through a Python function. This machine may also run trials for others.

use crate::errors::fault_of;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator};
use subak_core::InputError;
use subak_lab::{RemoteTrial, RemoteWorkers, TrialFiles};

/// A Python function that accepts trial numbers and returns an iterator over their results. The iterator yields
/// `None` periodically while no result is ready.
pub struct Machines(pub Py<PyAny>);

/// Outcome of a trial as a Python tuple: number, table, packets, error, wall time and processor time in seconds.
pub type RemoteTrialRow<B> = (usize, Option<B>, Option<B>, Option<String>, f64, f64);

impl RemoteWorkers for Machines {
    fn run(&self, trials: &[usize], take: &mut dyn FnMut(Option<RemoteTrial>) -> bool) -> Result<(), InputError> {
        let fault = |error: PyErr| Python::attach(|py| fault_of(py, &error));
        let begin = |py: Python<'_>| PyResult::Ok(self.0.bind(py).call1((trials.to_vec(),))?.try_iter()?.unbind());
        let coming: Py<PyIterator> = Python::attach(begin).map_err(fault)?;
        let next = |py: Python<'_>| {
            coming
                .bind(py)
                .clone()
                .next()
                .transpose()?
                .map(|told| told.extract::<Option<RemoteTrialRow<Vec<u8>>>>())
                .transpose()
        };
        while let Some(told) = Python::attach(next).map_err(fault)? {
            if !take(told.map(came)) {
                return Python::attach(|py| coming.call_method0(py, "close").map(drop)).map_err(fault);
            }
        }
        Ok(())
    }
}

fn came((trial, table, packets, error, wall_s, cpu_s): RemoteTrialRow<Vec<u8>>) -> RemoteTrial {
    let files = match table {
        Some(table) => Ok(TrialFiles { table, packets }),
        None => Err(error.unwrap_or_else(|| "nothing came of it: a defect of subak".to_string())),
    };
    RemoteTrial { trial, files, wall_s, cpu_s }
}

/// Converts an outcome for Python.
pub fn told(py: Python<'_>, came: RemoteTrial) -> RemoteTrialRow<Bound<'_, PyBytes>> {
    let RemoteTrial { trial, files, wall_s, cpu_s } = came;
    match files {
        Ok(TrialFiles { table, packets }) => {
            let packets = packets.map(|packets| PyBytes::new(py, &packets));
            (trial, Some(PyBytes::new(py, &table)), packets, None, wall_s, cpu_s)
        }
        Err(error) => (trial, None, None, Some(error), wall_s, cpu_s),
    }
}
