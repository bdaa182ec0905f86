//! Flowtune's figure 16: over-allocation of links by each optimizer, at each load.

use super::web::{LOADS, OPTIMIZERS, Ran, SETTINGS, finish, jobs, run, select};
use crate::{Context, ExperimentInfo, ExperimentKind};
use subak_core::InputError;

pub(super) const ENTRY: ExperimentInfo =
    ExperimentInfo { name: "flowtune-fig16", kind: ExperimentKind::Solver, settings: SETTINGS, compute };

fn compute(context: &mut Context) -> Result<(), InputError> {
    let jobs = jobs(context, &OPTIMIZERS, false)?;
    let ran = context.each(&jobs, jobs.len(), run)?;
    for entry in OPTIMIZERS {
        for load in LOADS {
            let of = |get: fn(&Ran) -> f64| select(&jobs, &ran, entry, load, get);
            let name = format!("{} {load}", entry.name);
            context.report.sample(&format!("over {name}"), "mean", "runs", &of(|r| r.over_gbps));
            context.report.sample(&format!("most {name}"), "mean", "runs", &of(|r| r.most_over_gbps));
            if let Some(exact) = OPTIMIZERS.into_iter().find(|e| entry.name.strip_suffix("-RT") == Some(e.name)) {
                let plain = select(&jobs, &ran, exact, load, |r| r.over_gbps);
                context.report.ratio(&format!("rt {name}"), "mean", "runs", &of(|r| r.over_gbps), &plain);
            }
        }
    }
    for load in LOADS {
        let [ned, gradient, fgm] = [0, 2, 4].map(|e| select(&jobs, &ran, OPTIMIZERS[e], load, |r| r.over_gbps));
        context.report.ratio(&format!("NED over Gradient {load}"), "mean", "runs", &ned, &gradient);
        context.report.ratio(&format!("FGM over NED {load}"), "mean", "runs", &fgm, &ned);
    }
    finish(context, &jobs, &ran);
    Ok(())
}
