//! Facebook's distributions of flow sizes: the statistics of Flowtune's table 1, and the curves of its figure 18.

use crate::{Context, ExperimentInfo, ExperimentKind};
use serde_json::json;
use subak_core::InputError;
use subak_core::sizes::Sizes;

pub(super) const ENTRY: ExperimentInfo =
    ExperimentInfo { name: "flowtune-sizes", kind: ExperimentKind::Solver, settings: &[], compute };

const WORKLOADS: [&str; 3] = ["cache", "hadoop", "web"];
const PERCENTILES: [(&str, f64); 5] = [("median", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

fn compute(context: &mut Context) -> Result<(), InputError> {
    for workload in WORKLOADS {
        let name = format!("facebook-{workload}");
        let sizes = Sizes::published(&name).ok_or_else(|| {
            InputError::new("sizes", format!("there is no distribution {name}"), "name one that is there")
        })?;
        let report = &mut context.report;
        report.value(&format!("{workload} mean"), sizes.mean_bytes());
        for (statistic, share) in PERCENTILES {
            // The quantile just below `share`: a step of the distribution at `share` itself belongs to larger flows.
            report.value(&format!("{workload} {statistic}"), sizes.quantile(share - 1e-9).round());
        }
        let curve = (0..=1000).map(|k| json!([sizes.quantile(f64::from(k) / 1000.0), f64::from(k) / 1000.0]));
        context.report.table(workload, &["size_bytes", "share"], curve.collect());
    }
    (context.progress)(1, 1);
    Ok(())
}
