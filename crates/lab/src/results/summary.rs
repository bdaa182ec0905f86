//! The comparison: for each scheme at each value of the axes, its metrics over the seeds.

use crate::error::Error;
use crate::results::read::{Results, flag, number, text, whole};
use crate::results::stats::{Stat, quantile, quantile_of_bins};
use arrow_array::RecordBatch;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Lower edges of the size bins, bytes; the last has no upper edge.
pub const SIZE_BINS: &[u64] = &[0, 10_000, 100_000, 1_000_000, 10_000_000];

/// The comparison of a run's schemes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// What the spec calls itself.
    pub name: String,
    /// Keys that were swept over.
    pub axes: Vec<String>,
    /// One for each scheme and choice of values, in the order of the cells.
    pub rows: Vec<SummaryRow>,
}

/// A scheme at one choice of the axes' values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SummaryRow {
    /// Label of the scheme.
    pub scheme: String,
    /// The value of each axis.
    pub axes: BTreeMap<String, Value>,
    /// How many runs it sums up.
    pub seeds: usize,
    /// Metrics by name, the unit in the name; those without a measured value are left out.
    #[serde(serialize_with = "as_map")]
    pub metrics: Vec<(&'static str, Stat)>,
    /// Completion by size of flow.
    pub sizes: Vec<SizeBin>,
    /// The metrics of each run by its seed.
    #[serde(skip)]
    pub(crate) runs: Vec<(u64, Measured)>,
}

/// The metrics of one run.
pub(crate) type Measured = Vec<(&'static str, Option<f64>)>;

/// Flows of a range of sizes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeBin {
    /// Larger than this, bytes.
    pub above_bytes: u64,
    /// Up to this; none for the last bin.
    pub up_to_bytes: Option<u64>,
    /// Metrics by name.
    #[serde(serialize_with = "as_map")]
    pub metrics: Vec<(&'static str, Stat)>,
}

fn as_map<S: Serializer>(metrics: &[(&'static str, Stat)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(metrics.len()))?;
    for (name, stat) in metrics {
        map.serialize_entry(name, stat)?;
    }
    map.end()
}

/// Reads the results in `dir` and compares its schemes.
pub fn summary(dir: &Path) -> Result<Summary, Error> {
    let results = Results::open(dir)?;
    let mut runs: BTreeMap<u64, Run> = BTreeMap::new();
    results.batches(Some(COLUMNS), |batch| {
        collect(batch, &mut runs);
        Ok(())
    })?;
    let strings = |key: &str| -> Vec<String> {
        let list = results.manifest.get(key).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(|v| v.as_str().map(str::to_string)).collect()
    };
    let mut rows: Vec<(SummaryRow, Vec<(u64, Run)>)> = Vec::new();
    for cell in results.manifest.get("cells").and_then(Value::as_array).into_iter().flatten() {
        let scheme = cell.get("scheme").and_then(Value::as_str).unwrap_or_default().to_string();
        let axes: BTreeMap<String, Value> = match cell.get("axes") {
            Some(Value::Object(map)) => map.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            _ => BTreeMap::new(),
        };
        // A cell that failed, or is not there yet, is left out.
        let Some(run) = cell.get("cell").and_then(Value::as_u64).and_then(|c| runs.remove(&c)) else { continue };
        let seed = cell.get("seed").and_then(Value::as_u64).unwrap_or_default();
        match rows.last_mut().filter(|(row, _)| row.scheme == scheme && row.axes == axes) {
            Some((_, runs)) => runs.push((seed, run)),
            None => {
                let (metrics, sizes, runs) = (Vec::new(), Vec::new(), Vec::new());
                let row = SummaryRow { scheme, axes, seeds: 0, metrics, sizes, runs };
                rows.push((row, vec![(seed, run)]));
            }
        }
    }
    let finished = rows.into_iter().map(|(row, runs)| finish(row, runs)).collect();
    Ok(Summary { name: results.name().to_string(), axes: strings("axes"), rows: finished })
}

const COLUMNS: &[&str] = &[
    "cell",
    "kind",
    "size_bytes",
    "fct_ns",
    "slowdown",
    "measured",
    "wait_ns",
    "packets",
    "converged",
    "convergence_ns",
    "flows",
    "completed",
    "utilization",
    "dropped_packets",
    "lost_packets",
    "retransmissions",
    "packet_hops",
    "queued_bytes",
    "within_share",
];

/// What one cell measured.
#[derive(Debug, Default)]
struct Run {
    /// (size, completion time, slowdown) of the flows that count.
    flows: Vec<(u64, Option<u64>, Option<f64>)>,
    waits: Vec<(u64, u64)>,
    queued: Vec<f64>,
    /// Time to settle after each change, ns; infinite where it did not.
    settled_ns: Vec<f64>,
    whole: BTreeMap<&'static str, f64>,
}

fn collect(batch: &RecordBatch, runs: &mut BTreeMap<u64, Run>) {
    let (cell, kind) = (whole(batch, "cell"), text(batch, "kind"));
    let (size, fct, slowdown) = (whole(batch, "size_bytes"), whole(batch, "fct_ns"), number(batch, "slowdown"));
    let (measured, wait, packets) = (flag(batch, "measured"), whole(batch, "wait_ns"), whole(batch, "packets"));
    let (converged, settled) = (flag(batch, "converged"), whole(batch, "convergence_ns"));
    let queued = whole(batch, "queued_bytes");
    for i in 0..batch.num_rows() {
        let Some(number_of_cell) = cell(i) else { continue };
        let run = runs.entry(number_of_cell).or_default();
        match kind(i) {
            Some("flow") if measured(i) == Some(true) => {
                run.flows.extend(size(i).map(|bytes| (bytes, fct(i), slowdown(i))));
            }
            Some("wait") => run.waits.extend(wait(i).zip(packets(i))),
            Some("queue") if measured(i) != Some(false) => run.queued.extend(queued(i).map(|b| b as f64)),
            Some("convergence") => {
                let at = settled(i).filter(|_| converged(i) == Some(true));
                run.settled_ns.push(at.map_or(f64::INFINITY, |ns| ns as f64));
            }
            Some("summary") => {
                for name in ["dropped_packets", "lost_packets", "retransmissions", "packet_hops"] {
                    run.whole.extend(whole(batch, name)(i).map(|v| (name, v as f64)));
                }
                run.whole.extend(number(batch, "utilization")(i).map(|v| ("utilization", v)));
            }
            _ => {}
        }
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The metrics of a set of flows of one run.
fn of_flows(flows: &[(u64, Option<u64>, Option<f64>)]) -> Vec<(&'static str, Option<f64>)> {
    let slowdown = sorted(flows.iter().filter_map(|f| f.2));
    let fct = sorted(flows.iter().filter_map(|f| f.1.map(|ns| ns as f64)));
    vec![
        ("flows", Some(flows.len() as f64)),
        ("completed", Some(fct.len() as f64)),
        ("slowdown_mean", mean(&slowdown)),
        ("slowdown_p50", quantile(&slowdown, 0.5)),
        ("slowdown_p95", quantile(&slowdown, 0.95)),
        ("slowdown_p99", quantile(&slowdown, 0.99)),
        ("fct_mean_ns", mean(&fct)),
        ("fct_p50_ns", quantile(&fct, 0.5)),
        ("fct_p99_ns", quantile(&fct, 0.99)),
    ]
}

/// All metrics of one run.
fn of_run(run: &Run) -> Vec<(&'static str, Option<f64>)> {
    let mut metrics = if run.flows.is_empty() { Vec::new() } else { of_flows(&run.flows) };
    let whole = |name: &'static str| (name, run.whole.get(name).copied());
    metrics.extend(["utilization", "dropped_packets", "lost_packets", "retransmissions", "packet_hops"].map(whole));
    let packets: u64 = run.waits.iter().map(|w| w.1).sum();
    let waited: f64 = run.waits.iter().map(|&(ns, n)| ns as f64 * n as f64).sum();
    metrics.push(("wait_mean_ns", (packets > 0).then(|| waited / packets as f64)));
    metrics.push(("wait_p99_ns", quantile_of_bins(&run.waits, 0.99)));
    let queued = sorted(run.queued.iter().copied());
    metrics.push(("queue_mean_bytes", mean(&queued)));
    metrics.push(("queue_p99_bytes", quantile(&queued, 0.99)));
    let settled = sorted(run.settled_ns.iter().copied());
    let share = settled.iter().filter(|t| t.is_finite()).count() as f64 / settled.len() as f64;
    metrics.push(("converged_share", (!settled.is_empty()).then_some(share)));
    // A quantile that falls among those that did not settle has no value.
    let finite = |q: f64| quantile(&settled, q).filter(|t| t.is_finite());
    metrics.push(("convergence_p50_ns", finite(0.5)));
    metrics.push(("convergence_p95_ns", finite(0.95)));
    metrics
}

/// Joins the metrics of the runs, one for each seed, name by name.
fn over_seeds(runs: &[Vec<(&'static str, Option<f64>)>]) -> Vec<(&'static str, Stat)> {
    let Some(longest) = runs.iter().max_by_key(|r| r.len()) else { return Vec::new() };
    let stat = |&(name, _): &(&'static str, Option<f64>)| {
        let find = |run: &Vec<(&'static str, Option<f64>)>| run.iter().find(|m| m.0 == name).and_then(|m| m.1);
        let values: Vec<f64> = runs.iter().filter_map(find).collect();
        Stat::over(&values).map(|stat| (name, stat))
    };
    longest.iter().filter_map(stat).collect()
}

fn finish(mut row: SummaryRow, runs: Vec<(u64, Run)>) -> SummaryRow {
    row.seeds = runs.len();
    row.runs = runs.iter().map(|(seed, run)| (*seed, of_run(run))).collect();
    row.metrics = over_seeds(&row.runs.iter().map(|(_, measured)| measured.clone()).collect::<Vec<_>>());
    let runs: Vec<Run> = runs.into_iter().map(|(_, run)| run).collect();
    for (k, &above_bytes) in SIZE_BINS.iter().enumerate() {
        let up_to_bytes = SIZE_BINS.get(k + 1).copied();
        let inside =
            |f: &&(u64, Option<u64>, Option<f64>)| f.0 > above_bytes && up_to_bytes.is_none_or(|top| f.0 <= top);
        let of_bin = |run: &Run| of_flows(&run.flows.iter().filter(inside).copied().collect::<Vec<_>>());
        let metrics: Vec<_> = runs.iter().map(of_bin).collect();
        if metrics.iter().any(|m| m[0].1 > Some(0.0)) {
            row.sizes.push(SizeBin { above_bytes, up_to_bytes, metrics: over_seeds(&metrics) });
        }
    }
    row
}
