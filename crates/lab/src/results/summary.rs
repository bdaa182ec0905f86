//! Comparison of schemes: for each scheme at each sweep point, the mean of its metrics over the seeds.

use crate::error::Error;
use crate::results::facts::{COLUMNS, FlowFact, Settled, TrialFacts, WHOLE, collect};
use crate::results::read::Results;
use crate::results::stats::{Stat, quantile, quantile_of_bins};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Lower edges of the bins of flow sizes, bytes; the last bin has no upper edge.
pub const SIZE_BINS: &[u64] = &[0, 10_000, 100_000, 1_000_000, 10_000_000];

/// The comparison of a run's schemes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The spec's name.
    pub name: String,
    /// Swept keys.
    pub axes: Vec<String>,
    /// One row for each scheme at each sweep point, in the order of the trials.
    pub rows: Vec<SummaryRow>,
}

/// A scheme at one sweep point.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SummaryRow {
    /// Label of the scheme.
    pub scheme: String,
    /// Value of each axis (swept key).
    pub axes: BTreeMap<String, Value>,
    /// Number of runs summarized.
    pub seeds: usize,
    /// Metrics by name, unit included; metrics without a value are omitted.
    #[serde(serialize_with = "as_map")]
    pub metrics: Vec<(&'static str, Stat)>,
    /// Metrics of flows by range of sizes.
    pub sizes: Vec<SizeBin>,
    /// Metrics of flows by class; empty if the workloads have no names.
    pub classes: Vec<ClassRow>,
    /// Metrics of each job by its name; empty without jobs, and with more than 20 jobs.
    pub jobs: Vec<JobRow>,
    /// Metrics of convergence for each criterion of the spec.
    pub convergence: Vec<CriterionRow>,
    /// The metrics of each run by its seed.
    #[serde(skip)]
    pub(crate) runs: Vec<(u64, Measured)>,
}

/// Metrics of the flows of one class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassRow {
    /// Name of the class.
    pub class: String,
    /// Label of its scheme, if its workload names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// Metrics by name.
    #[serde(serialize_with = "as_map")]
    pub metrics: Vec<(&'static str, Stat)>,
    /// Metrics of its flows by range of sizes.
    pub sizes: Vec<SizeBin>,
}

/// Largest number of jobs that are listed individually.
pub const MOST_JOBS: usize = 20;

/// Metrics of one job over the seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobRow {
    /// Name of the job.
    pub id: String,
    /// Metrics by name.
    #[serde(serialize_with = "as_map")]
    pub metrics: Vec<(&'static str, Stat)>,
}

/// Metrics of convergence by one criterion. They are never averaged over different criteria.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CriterionRow {
    /// Index of the criterion in the spec, from 0.
    pub criterion: u64,
    /// Metrics by name.
    #[serde(serialize_with = "as_map")]
    pub metrics: Vec<(&'static str, Stat)>,
}

/// The metrics of one run.
pub(crate) type Measured = Vec<(&'static str, Option<f64>)>;

/// Metrics of the flows in a range of sizes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeBin {
    /// Lower bound, bytes, exclusive.
    pub above_bytes: u64,
    /// Upper bound, bytes; `None` for the last bin.
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

/// A scheme at one sweep point, and its runs, each with its trial number.
pub(crate) struct Group {
    pub row: SummaryRow,
    /// Seed of each run.
    seeds: Vec<u64>,
    pub runs: Vec<(u64, TrialFacts)>,
}

/// Reads the results in `dir` and compares their schemes.
pub fn summary(dir: &Path) -> Result<Summary, Error> {
    let (results, groups) = groups(dir)?;
    let strings = |key: &str| -> Vec<String> {
        let list = results.manifest.get(key).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(|v| v.as_str().map(str::to_string)).collect()
    };
    let rows = groups.into_iter().map(|group| group.row).collect();
    Ok(Summary { name: results.name().to_string(), axes: strings("axes"), rows })
}

/// Reads the results in `dir`; groups the trials of the same scheme and sweep point, in the order of the trials.
pub(crate) fn groups(dir: &Path) -> Result<(Results, Vec<Group>), Error> {
    let results = Results::open(dir)?;
    let mut runs: BTreeMap<u64, TrialFacts> = BTreeMap::new();
    results.batches(Some(COLUMNS), |batch| {
        collect(batch, &mut runs);
        Ok(())
    })?;
    let mut groups: Vec<Group> = Vec::new();
    for trial in results.manifest.get("trials").and_then(Value::as_array).into_iter().flatten() {
        let scheme = trial.get("scheme").and_then(Value::as_str).unwrap_or_default().to_string();
        let axes: BTreeMap<String, Value> = match trial.get("axes") {
            Some(Value::Object(map)) => map.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            _ => BTreeMap::new(),
        };
        // Failed and missing trials are omitted.
        let Some(number) = trial.get("trial").and_then(Value::as_u64) else { continue };
        let Some(run) = runs.remove(&number) else { continue };
        let seed = trial.get("seed").and_then(Value::as_u64).unwrap_or_default();
        match groups.last_mut().filter(|g| g.row.scheme == scheme && g.row.axes == axes) {
            Some(group) => {
                group.seeds.push(seed);
                group.runs.push((number, run));
            }
            None => {
                let row = SummaryRow { scheme, axes, ..SummaryRow::default() };
                groups.push(Group { row, seeds: vec![seed], runs: vec![(number, run)] });
            }
        }
    }
    groups.iter_mut().for_each(finish);
    Ok((results, groups))
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Metrics of a set of flows of a run that ended at `end_ns`. An unfinished flow counts with its time up to `end_ns`: a
/// mean over completed flows alone would fall as more flows are stuck.
fn of_flows<'a>(flows: impl Iterator<Item = &'a FlowFact> + Clone, end_ns: u64) -> Vec<(&'static str, Option<f64>)> {
    let slowdown = sorted(flows.clone().filter_map(|f| f.at_least(end_ns)));
    let fct = sorted(flows.clone().filter_map(|f| f.at_least_ns(end_ns).map(|ns| ns as f64)));
    let count = |is: fn(&FlowFact) -> bool| Some(flows.clone().filter(|f| is(f)).count() as f64);
    vec![
        ("flows", count(|_| true)),
        ("completed", count(|f| f.fct_ns.is_some())),
        ("unfinished", count(FlowFact::is_unfinished)),
        ("slowdown_mean", mean(&slowdown)),
        ("slowdown_p50", quantile(&slowdown, 0.5)),
        ("slowdown_p95", quantile(&slowdown, 0.95)),
        ("slowdown_p99", quantile(&slowdown, 0.99)),
        ("fct_mean_ns", mean(&fct)),
        ("fct_p50_ns", quantile(&fct, 0.5)),
        ("fct_p99_ns", quantile(&fct, 0.99)),
    ]
}

/// Metrics of the jobs of a run that ended at `end_ns`. An unfinished job counts with its time up to `end_ns`.
fn of_jobs<'a>(jobs: impl Iterator<Item = &'a FlowFact> + Clone, end_ns: u64) -> Measured {
    let times = sorted(jobs.clone().filter_map(|job| job.at_least_ns(end_ns).map(|ns| ns as f64)));
    let slowdown = sorted(jobs.clone().filter_map(|job| job.at_least(end_ns)));
    let count = |is: fn(&FlowFact) -> bool| Some(jobs.clone().filter(|job| is(job)).count() as f64);
    vec![
        ("jobs", count(|_| true)),
        ("jobs_completed", count(|job| job.fct_ns.is_some())),
        ("jobs_unfinished", count(FlowFact::is_unfinished)),
        ("job_time_mean_ns", mean(&times)),
        ("job_time_p99_ns", quantile(&times, 0.99)),
        ("job_slowdown_mean", mean(&slowdown)),
    ]
}

/// Metrics of convergence of one run by one criterion.
fn of_changes(changes: &[Settled]) -> Vec<(&'static str, Option<f64>)> {
    let times = sorted(changes.iter().map(|s| s.converged_ns.unwrap_or(f64::INFINITY)));
    let share = |n: usize| (!changes.is_empty()).then(|| n as f64 / changes.len() as f64);
    // A quantile among the changes without convergence has no value.
    let finite = |q: f64| quantile(&times, q).filter(|t| t.is_finite());
    let errors = sorted(changes.iter().filter_map(|s| s.end_error));
    vec![
        ("converged_share", share(times.iter().filter(|t| t.is_finite()).count())),
        ("near_at_end_share", share(changes.iter().filter(|s| s.near_at_end).count())),
        ("convergence_p50_ns", finite(0.5)),
        ("convergence_p95_ns", finite(0.95)),
        ("end_error_p50", quantile(&errors, 0.5).filter(|e| e.is_finite())),
        ("end_error_p95", quantile(&errors, 0.95).filter(|e| e.is_finite())),
    ]
}

/// All metrics of one run.
fn of_run(run: &TrialFacts) -> Vec<(&'static str, Option<f64>)> {
    let mut metrics = if run.flows.is_empty() { Vec::new() } else { of_flows(run.flows.iter(), run.end_ns) };
    if !run.jobs.is_empty() {
        metrics.extend(of_jobs(run.jobs.iter().map(|(_, job)| job), run.end_ns));
    }
    let whole = |name: &'static str| (name, run.whole.get(name).copied());
    metrics.push(("flows_ctl_lost", Some(run.ctl_lost as f64)));
    metrics.push(whole("utilization"));
    metrics.extend(WHOLE.iter().map(|name| whole(name)));
    let packets: u64 = run.waits.iter().map(|w| w.1).sum();
    let waited: f64 = run.waits.iter().map(|&(ns, n)| ns as f64 * n as f64).sum();
    metrics.push(("wait_mean_ns", (packets > 0).then(|| waited / packets as f64)));
    metrics.push(("wait_p99_ns", quantile_of_bins(&run.waits, 0.99)));
    let queued = sorted(run.queued.iter().copied());
    metrics.push(("queue_mean_bytes", mean(&queued)));
    metrics.push(("queue_p99_bytes", quantile(&queued, 0.99)));
    // With several criteria, convergence is reported only for each criterion.
    if let (1, Some(changes)) = (run.settled.len(), run.settled.values().next()) {
        metrics.extend(of_changes(changes));
    }
    metrics
}

/// Mean of each metric over `runs`, of which each has another seed.
fn over_seeds(runs: &[Vec<(&'static str, Option<f64>)>]) -> Vec<(&'static str, Stat)> {
    let Some(longest) = runs.iter().max_by_key(|r| r.len()) else { return Vec::new() };
    let stat = |&(name, _): &(&'static str, Option<f64>)| {
        let find = |run: &Vec<(&'static str, Option<f64>)>| run.iter().find(|m| m.0 == name).and_then(|m| m.1);
        let values: Vec<f64> = runs.iter().filter_map(find).collect();
        Stat::over(&values).map(|stat| (name, stat))
    };
    longest.iter().filter_map(stat).collect()
}

/// Metrics by range of sizes of the flows of each run, which ended at that time, ns.
fn size_bins(runs: &[(Vec<FlowFact>, u64)]) -> Vec<SizeBin> {
    let mut bins = Vec::new();
    for (k, &above_bytes) in SIZE_BINS.iter().enumerate() {
        let up_to_bytes = SIZE_BINS.get(k + 1).copied();
        let inside = |f: &&FlowFact| f.size_bytes > above_bytes && up_to_bytes.is_none_or(|top| f.size_bytes <= top);
        let of_bin = |(flows, end_ns): &(Vec<FlowFact>, u64)| of_flows(flows.iter().filter(inside), *end_ns);
        let metrics: Vec<_> = runs.iter().map(of_bin).collect();
        if metrics.iter().any(|m| m[0].1 > Some(0.0)) {
            bins.push(SizeBin { above_bytes, up_to_bytes, metrics: over_seeds(&metrics) });
        }
    }
    bins
}

fn finish(group: &mut Group) {
    let Group { row, seeds, runs } = group;
    let runs: Vec<&TrialFacts> = runs.iter().map(|(_, run)| run).collect();
    row.seeds = runs.len();
    let measured: Vec<_> = runs.iter().map(|run| of_run(run)).collect();
    row.metrics = over_seeds(&measured);
    row.runs = seeds.iter().copied().zip(measured).collect();
    row.sizes = size_bins(&runs.iter().map(|run| (run.flows.clone(), run.end_ns)).collect::<Vec<_>>());
    let mut classes: Vec<&String> = Vec::new();
    for name in runs.iter().flat_map(|run| &run.classes) {
        if !classes.contains(&name) {
            classes.push(name);
        }
    }
    for name in classes {
        let of_class = |run: &TrialFacts| {
            let number = run.classes.iter().position(|class| class == name);
            let is_of = |f: &&FlowFact| f.class.is_some() && f.class == number;
            run.flows.iter().filter(is_of).copied().collect::<Vec<FlowFact>>()
        };
        let flows: Vec<(Vec<FlowFact>, u64)> = runs.iter().map(|run| (of_class(run), run.end_ns)).collect();
        let metrics: Vec<_> = flows.iter().map(|(flows, end_ns)| of_flows(flows.iter(), *end_ns)).collect();
        let sizes = size_bins(&flows);
        let found = runs.iter().find_map(|run| {
            let class = run.classes.iter().position(|class| class == name)?;
            run.class_schemes.get(class)
        });
        let scheme = found.filter(|scheme| **scheme != row.scheme).cloned();
        row.classes.push(ClassRow { class: name.clone(), scheme, metrics: over_seeds(&metrics), sizes });
    }
    let names: BTreeSet<&String> = runs.iter().flat_map(|run| run.jobs.iter().map(|(id, _)| id)).collect();
    for id in names.iter().filter(|_| names.len() <= MOST_JOBS) {
        let of_name =
            |run: &&TrialFacts| of_jobs(run.jobs.iter().filter(|(of, _)| of == *id).map(|(_, job)| job), run.end_ns);
        let metrics = over_seeds(&runs.iter().map(of_name).collect::<Vec<_>>());
        row.jobs.push(JobRow { id: (*id).clone(), metrics });
    }
    let criteria: BTreeSet<u64> = runs.iter().flat_map(|run| run.settled.keys().copied()).collect();
    for criterion in criteria {
        let metrics: Vec<_> =
            runs.iter().filter_map(|run| run.settled.get(&criterion)).map(|c| of_changes(c)).collect();
        row.convergence.push(CriterionRow { criterion, metrics: over_seeds(&metrics) });
    }
}
