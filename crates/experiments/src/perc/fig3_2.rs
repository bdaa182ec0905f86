//! Figure 3.2: n-PERC, update by update.

use super::traces::{THREE_ROUNDS, replay};
use crate::{Backend, Context, Entry};
use subak_core::Fault;

pub(super) const ENTRY: Entry = Entry { name: "perc-fig3.2", backend: Backend::Rounds, settings: &[], compute };

fn compute(context: &mut Context) -> Result<(), Fault> {
    replay(context, "n-perc", THREE_ROUNDS, &["state"])
}
