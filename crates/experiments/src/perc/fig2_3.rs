//! Figure 2.3: Fair, update by update.

use super::traces::{B20, B30, W12, W30, replay};
use crate::{Backend, Context, Entry};
use subak_core::Fault;

pub(super) const ENTRY: Entry = Entry { name: "perc-fig2.3", backend: Backend::Rounds, settings: &[], compute };

fn compute(context: &mut Context) -> Result<(), Fault> {
    replay(context, "fair", &[[B20, B30, W30, W12], [W30, W12, B20, B30]], &[])
}
