//! A trial to run, with its callbacks and outputs.

use crate::runs::recorder::SharedTable;
use crate::runs::watched::WatchedTrial;
use crate::spec::choice::SchemeChoice;
use crate::spec::scenario::Scenario;
use crate::spec::workload::jobs::Policies;
use std::sync::atomic::AtomicBool;
use subak_core::InputError;
use subak_testbed::{Recording, TestbedRequest};

/// A testbed that runs flows on real hosts; the caller of this crate implements it.
pub trait Testbed: Sync {
    /// Runs `request`. Calls `progress` with the fraction done, and stops with an error if it returns false.
    fn carry(&self, request: &TestbedRequest, progress: &(dyn Fn(f64) -> bool + Sync))
    -> Result<Recording, InputError>;
}

/// A trial to simulate, with callbacks and outputs.
pub(crate) struct Trial<'a> {
    pub number: usize,
    pub scenario: &'a Scenario,
    pub scheme: &'a SchemeChoice,
    pub seed: u64,
    /// Table for recorded packets.
    pub packets: Option<&'a SharedTable>,
    /// Weight policies supplied by the caller, by name.
    pub policies: &'a Policies,
    /// Number of threads that the simulation may use.
    pub threads: usize,
    pub cancel: &'a AtomicBool,
    /// Testbed for trials on real hosts, if the caller has one.
    pub testbed: Option<&'a dyn Testbed>,
    /// State for the live page, if there is one.
    pub watched: Option<&'a WatchedTrial>,
    /// Callback for the fraction done.
    pub progress: &'a (dyn Fn(f64) + Sync),
}
