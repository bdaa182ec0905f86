//! What is to go wrong in a run.

use subak_core::driver::{Kinds, LinkChange, Machine, Mishap};
use subak_core::rng::Stream;
use subak_core::{IdVec, LinkId, Ns};

subak_core::id! {
    /// A change of a link by its place in the order of time.
    pub(crate) struct ChangeId(u32);
    /// A restart of a machine by its place in the list of faults.
    pub(crate) struct RestartId(u32);
}

/// A rule by which something happens to packets.
pub(crate) struct Rule {
    pub mishap: Mishap,
    pub kinds: Kinds,
    pub links: Option<Vec<LinkId>>,
    pub probability: f64,
    pub from_ns: Ns,
    pub until_ns: Ns,
}

/// What goes wrong in the run.
#[derive(Default)]
pub(crate) struct Mishaps {
    pub rules: Vec<Rule>,
    /// Of what happens to packets: one a link, where anything does.
    pub rngs: IdVec<LinkId, Stream>,
    pub restarts: IdVec<RestartId, Machine>,
    pub has_downs: bool,
    pub link_changes: IdVec<ChangeId, (Ns, LinkId, LinkChange)>,
}
