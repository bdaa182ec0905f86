//! Comparison of two runs.

use crate::error::Error;
use crate::results::stats::{self, Stat};
use crate::results::summary::{Measured, Summary, SummaryRow, summary};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// Result of the comparison of two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Whether the results tables are equal byte for byte.
    pub identical: bool,
    /// Pairs of scheme and axis values that both runs have, in the order of the first run.
    pub rows: Vec<Pair>,
    /// Pairs of scheme and axis values that only the first run has.
    pub only_first: Vec<RowKey>,
    /// Pairs of scheme and axis values that only the second run has.
    pub only_second: Vec<RowKey>,
}

/// A scheme at one sweep point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowKey {
    /// Label of the scheme.
    pub scheme: String,
    /// Value of each axis (swept key).
    pub axes: BTreeMap<String, Value>,
}

/// A scheme at one sweep point, in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// Scheme and axis values.
    #[serde(flatten)]
    pub who: RowKey,
    /// Metrics of both runs.
    pub metrics: Vec<Compared>,
}

/// One metric in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Name of the metric, unit included.
    pub name: String,
    /// Mean in the first run.
    pub first: Stat,
    /// Mean in the second run.
    pub second: Stat,
    /// Mean of the second run over mean of the first; 1 if both are equal, `None` if only the first is 0.
    pub ratio: Option<f64>,
    /// Mean over common seeds of the second run's value minus the first's; `None` without common seeds.
    pub difference: Option<Stat>,
    /// p-value of the paired t-test; `None` below two common seeds.
    pub p_value: Option<f64>,
    /// Whether `p_value` is below 0.05; `None` without `p_value`.
    pub distinct: Option<bool>,
}

/// Compares the run in `second` with that in `first`.
pub fn diff(first: &Path, second: &Path) -> Result<Difference, Error> {
    let (a, b) = (summary(first)?, summary(second)?);
    let tables = [first, second].map(|dir| dir.join("results.parquet"));
    let identical = tables.iter().all(|t| t.exists()) && same_bytes(&tables[0], &tables[1])?;
    let pair = |row: &SummaryRow| {
        let other = find(&b, row)?;
        Some(Pair { who: who(row), metrics: compare(row, other) })
    };
    Ok(Difference {
        identical,
        rows: a.rows.iter().filter_map(pair).collect(),
        only_first: a.rows.iter().filter(|r| find(&b, r).is_none()).map(who).collect(),
        only_second: b.rows.iter().filter(|r| find(&a, r).is_none()).map(who).collect(),
    })
}

fn who(row: &SummaryRow) -> RowKey {
    RowKey { scheme: row.scheme.clone(), axes: row.axes.clone() }
}

fn find<'a>(summary: &'a Summary, row: &SummaryRow) -> Option<&'a SummaryRow> {
    summary.rows.iter().find(|r| r.scheme == row.scheme && r.axes == row.axes)
}

fn compare(first: &SummaryRow, second: &SummaryRow) -> Vec<Compared> {
    let one = |(name, a): &(&'static str, Stat)| {
        let b = second.metrics.iter().find(|m| m.0 == *name)?.1;
        let ratio = if a.mean == b.mean { Some(1.0) } else { Some(b.mean / a.mean).filter(|r| r.is_finite()) };
        let pairs = paired(first, second, name);
        let (difference, p_value) = (Stat::over(&pairs), stats::paired_p(&pairs));
        let distinct = p_value.map(|p| p < 0.05);
        Some(Compared { name: (*name).to_string(), first: *a, second: b, ratio, difference, p_value, distinct })
    };
    first.metrics.iter().filter_map(one).collect()
}

/// Value of metric `name` in the second row minus that in the first, for each seed that both have.
fn paired(first: &SummaryRow, second: &SummaryRow, name: &str) -> Vec<f64> {
    let value = |measured: &Measured| measured.iter().find(|m| m.0 == name).and_then(|m| m.1);
    let of_seed = |wanted: u64| second.runs.iter().find(|(seed, _)| *seed == wanted).and_then(|(_, m)| value(m));
    first.runs.iter().filter_map(|(seed, measured)| Some(of_seed(*seed)? - value(measured)?)).collect()
}

fn same_bytes(a: &Path, b: &Path) -> Result<bool, Error> {
    let open = |path: &Path| File::open(path).map(BufReader::new).map_err(|e| Error::file(path, e));
    let (mut x, mut y) = (open(a)?, open(b)?);
    let mut buffers = [vec![0; 1 << 16], vec![0; 1 << 16]];
    loop {
        let [left, right] = &mut buffers;
        let n = x.read(left).map_err(|e| Error::file(a, e))?;
        if n == 0 {
            return Ok(y.read(right).map_err(|e| Error::file(b, e))? == 0);
        }
        if y.read_exact(&mut right[..n]).is_err() || left[..n] != right[..n] {
            return Ok(false);
        }
    }
}
