//! Figure 2.3 of the PERC thesis: the updates of the scheme Fair, one by one.

use super::traces::{B20, B30, W12, W30, replay};
use crate::{Context, ExperimentInfo, ExperimentKind};
use subak_core::InputError;

pub(super) const ENTRY: ExperimentInfo =
    ExperimentInfo { name: "perc-fig2.3", kind: ExperimentKind::Rounds, settings: &[], compute };

fn compute(context: &mut Context) -> Result<(), InputError> {
    replay(context, "fair", &[[B20, B30, W30, W12], [W30, W12, B20, B30]], &[])
}
