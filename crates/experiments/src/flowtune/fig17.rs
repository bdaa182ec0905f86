//! Flowtune's figure 17: throughput relative to the optimum, by optimizer and normalization.

use super::web::{LOADS, OPTIMIZERS, Ran, SETTINGS, finish, jobs, run, select};
use crate::{Context, ExperimentInfo, ExperimentKind};
use subak_core::InputError;

pub(super) const ENTRY: ExperimentInfo =
    ExperimentInfo { name: "flowtune-fig17", kind: ExperimentKind::Solver, settings: SETTINGS, compute };

fn compute(context: &mut Context) -> Result<(), InputError> {
    let entries = [OPTIMIZERS[0], OPTIMIZERS[2]];
    let jobs = jobs(context, &entries, true)?;
    let ran = context.each(&jobs, jobs.len(), run)?;
    for load in LOADS {
        let [ned, gradient] = entries.map(|entry| {
            let of = |get: fn(&Ran) -> f64| select(&jobs, &ran, entry, load, get);
            let (flow, uniform) = (of(|r| r.flow), of(|r| r.uniform));
            context.report.sample(&format!("F-NORM {} {load}", entry.name), "mean", "runs", &flow);
            context.report.sample(&format!("U-NORM {} {load}", entry.name), "mean", "runs", &uniform);
            context.report.ratio(&format!("F over U {} {load}", entry.name), "mean", "runs", &flow, &uniform);
            (flow, uniform)
        });
        context.report.ratio(&format!("NED over Gradient F-NORM {load}"), "mean", "runs", &ned.0, &gradient.0);
        context.report.ratio(&format!("Gradient over NED U-NORM {load}"), "mean", "runs", &gradient.1, &ned.1);
    }
    finish(context, &jobs, &ran);
    Ok(())
}
