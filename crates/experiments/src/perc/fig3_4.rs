//! Figure 3.4: s-PERC, update by update.

use super::traces::{THREE_ROUNDS, replay};
use crate::{Backend, Context, Entry};
use subak_core::Fault;

pub(super) const ENTRY: Entry = Entry { name: "perc-fig3.4", backend: Backend::Rounds, settings: &[], compute };

fn compute(context: &mut Context) -> Result<(), Fault> {
    replay(context, "s-perc", THREE_ROUNDS, &["state", "ignore"])
}
