//! Rounds of s-PERC and of Fair on the same random setups (abstract of the s-PERC paper).

use crate::{Context, ExperimentInfo, ExperimentKind, largest, quantile};
use serde_json::json;
use subak_core::InputError;
use subak_core::scheme::Bound;
use subak_rounds::{CapacityDraw, Random, RoundsPlan, run};

pub(super) const ENTRY: ExperimentInfo =
    ExperimentInfo { name: "perc-rounds", kind: ExperimentKind::Rounds, settings: SETTINGS, compute };

/// `mixed`: 1 for capacities of 1 to 100 Gb/s instead of 10 Gb/s everywhere.
const SETTINGS: &[&str] = &["mixed"];
const P: [usize; 5] = [3, 5, 10, 20, 40];

fn compute(context: &mut Context) -> Result<(), InputError> {
    let count = context.runs();
    let mixed = context.number("mixed", 0.0, 0.0, 1.0)? > 0.0;
    let capacities = if mixed { CapacityDraw::Mixed } else { CapacityDraw::Equal };
    let jobs: Vec<(usize, u64)> = (0..count).map(|k| (P[k % P.len()], context.seed() + k as u64)).collect();
    let both = |&(hops, seed): &(usize, u64)| {
        let random = Random { links: 100, flows: 100, hops, capacities, heaviest: 1, seed };
        let setup = random.draw();
        let (ideal_bps, _) = setup.exact();
        let plan = RoundsPlan { seed, ..RoundsPlan::default() };
        let fair = run("fair", &setup, &ideal_bps, &plan)?;
        let stateless = run("s-perc", &setup, &ideal_bps, &plan)?;
        let allowed = setup.bounded(Bound::SixW2).1.unwrap_or(f64::INFINITY);
        Ok((fair.converged && stateless.converged, fair.rounds, stateless.rounds, allowed))
    };
    let taken = context.each(&jobs, count, both)?;
    let ratio = |&(_, fair, stateless, _): &(bool, f64, f64, f64)| stateless / fair;
    let mut rows = Vec::new();
    for hops in P {
        let mine = || jobs.iter().zip(&taken).filter(move |((p, _), _)| *p == hops).map(|(_, t)| t);
        let mut ratios: Vec<f64> = mine().map(ratio).collect();
        let (fair, stateless): (Vec<f64>, Vec<f64>) = mine().map(|t| (t.1, t.2)).unzip();
        let under = mine().map(|t| t.3 / t.2).fold(f64::INFINITY, f64::min);
        let quantiles = [0.05, 0.5, 0.95, 1.0].map(|q| quantile(&mut ratios, q));
        rows.push(json!([hops, ratios.len(), largest(&fair), largest(&stateless), quantiles, under]));
    }
    let columns =
        ["P", "setups", "fair_rounds_max", "s_perc_rounds_max", "ratio_p5_p50_p95_max", "bound_over_rounds_min"];
    context.report.table("rounds", &columns, rows);
    let ratios: Vec<f64> = taken.iter().map(ratio).collect();
    for (key, statistic) in [("median", "median"), ("p5", "p5"), ("p95", "p95"), ("p99", "p99")] {
        context.report.sample(key, statistic, "setups", &ratios);
    }
    context.report.value("max", largest(&ratios));
    let histogram: Vec<_> = (0..30)
        .map(|k| 0.5 + 0.1 * f64::from(k))
        .map(|low| json!([low, ratios.iter().filter(|r| (low..low + 0.1).contains(*r)).count()]))
        .collect();
    context.report.series("ratio", json!({"columns": ["from", "setups"], "points": histogram}));
    context.report.value("under_bound", taken.iter().map(|t| t.3 / t.2).fold(f64::INFINITY, f64::min));
    let twice = taken.iter().filter(|t| t.3 / t.2 >= 2.0).count();
    context.report.share("twice_under", "setups", twice, taken.len());
    let exact = taken.iter().filter(|t| t.0).count();
    context.report.share("exact", "setups", exact, taken.len());
    context.report.note(
        "Rounds are counted from one round after the last start. The largest ratios are of setups that Fair had all but \
         finished by then.",
    );
    let told = if mixed { "1 to 100 Gb/s" } else { "10 Gb/s" };
    context.report.setup("links_and_flows", format!("J = K = 100, {told}, 10 us a link"));
    Ok(())
}
