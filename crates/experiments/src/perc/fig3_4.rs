//! Figure 3.4 of the PERC thesis: the updates of the scheme s-PERC, one by one.

use super::traces::{THREE_ROUNDS, replay};
use crate::{Context, ExperimentInfo, ExperimentKind};
use subak_core::InputError;

pub(super) const ENTRY: ExperimentInfo =
    ExperimentInfo { name: "perc-fig3.4", kind: ExperimentKind::Rounds, settings: &[], compute };

fn compute(context: &mut Context) -> Result<(), InputError> {
    replay(context, "s-perc", THREE_ROUNDS, &["state", "ignore"])
}
