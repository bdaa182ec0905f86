//! Figure 3.2 of the PERC thesis: the updates of the scheme n-PERC, one by one.

use super::traces::{THREE_ROUNDS, replay};
use crate::{Context, ExperimentInfo, ExperimentKind};
use subak_core::InputError;

pub(super) const ENTRY: ExperimentInfo =
    ExperimentInfo { name: "perc-fig3.2", kind: ExperimentKind::Rounds, settings: &[], compute };

fn compute(context: &mut Context) -> Result<(), InputError> {
    replay(context, "n-perc", THREE_ROUNDS, &["state"])
}
