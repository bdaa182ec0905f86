//! The registry: the experiments of each paper, by name.
//!
//! An experiment is one file in the folder of its paper, with its `ENTRY`, and one word in the list of the paper's module.

use crate::Context;
use subak_core::InputError;

/// Kind of computation of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExperimentKind {
    /// The round-based backend.
    Rounds,
    /// The exact solvers.
    Solver,
    /// The packet simulator.
    Packets,
}

impl ExperimentKind {
    /// Name in `experiment.toml`.
    pub fn name(self) -> &'static str {
        match self {
            ExperimentKind::Rounds => "rounds",
            ExperimentKind::Solver => "solver",
            ExperimentKind::Packets => "packets",
        }
    }
}

/// Description of an experiment.
pub(crate) struct ExperimentInfo {
    /// Name in `experiment.toml`.
    pub(crate) name: &'static str,
    pub(crate) kind: ExperimentKind,
    /// Names of the experiment's parameters.
    pub(crate) settings: &'static [&'static str],
    pub(crate) compute: fn(&mut Context) -> Result<(), InputError>,
}

/// Declares a module for each experiment of a paper and collects the `ENTRY` of each. If two experiments have one
/// name, a compile error shows the module.
macro_rules! experiments {
    ($($module:ident),* $(,)?) => {
        $(mod $module;)*

        /// All experiments of the paper.
        pub(crate) const ALL: &[crate::registry::ExperimentInfo] = &[$($module::ENTRY),*];

        $(const _: () = assert!(
            crate::registry::times($module::ENTRY.name) == 1,
            concat!("another experiment has the name of ", module_path!(), "::", stringify!($module)),
        );)*
    };
}

/// Declares a module for each paper, and collects their experiments.
macro_rules! papers {
    ($($paper:ident),* $(,)?) => {
        $(mod $paper;)*

        /// Experiments of all papers.
        pub(crate) const PAPERS: &[&[registry::ExperimentInfo]] = &[$($paper::ALL),*];
    };
}

/// All experiments.
pub(crate) fn entries() -> impl Iterator<Item = &'static ExperimentInfo> {
    crate::PAPERS.iter().copied().flatten()
}

/// Number of experiments called `name`.
pub(crate) const fn times(name: &str) -> usize {
    let (mut count, mut paper) = (0, 0);
    while paper < crate::PAPERS.len() {
        let mut k = 0;
        while k < crate::PAPERS[paper].len() {
            count += same(crate::PAPERS[paper][k].name, name) as usize;
            k += 1;
        }
        paper += 1;
    }
    count
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut k = 0;
    while k < a.len() && k < b.len() && a[k] == b[k] {
        k += 1;
    }
    k == a.len() && k == b.len()
}
