//! Checks of a run's tables of results.

use crate::hold;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Largest packet of a random spec, bytes.
const MOST_PACKET_BYTES: f64 = 9200.0;

/// A row of results: its non-empty columns by name.
pub type CsvRow = HashMap<String, String>;

/// Reads the rows of a run, by kind.
pub fn read(dir: &Path) -> Result<Vec<CsvRow>, String> {
    let mut text = Vec::new();
    subak_lab::export(dir, None, &mut text).map_err(|e| e.to_string())?;
    let mut reader = csv::Reader::from_reader(text.as_slice());
    let rows: Result<Vec<CsvRow>, _> = reader.deserialize().collect();
    let mut rows = rows.map_err(|e| e.to_string())?;
    rows.iter_mut().for_each(|row| row.retain(|_, value| !value.is_empty()));
    Ok(rows)
}

/// Checks the results in `dir` of a run of `spec`.
pub fn check(dir: &Path, spec: &Map<String, Value>) -> Result<(), String> {
    let rows = read(dir)?;
    let faults = spec.get("fault").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let resized = faults.iter().any(|fault| fault["kind"] == "capacity");
    let mut trials: BTreeMap<String, TrialSums> = BTreeMap::new();
    for row in &rows {
        let trial = trials.entry(row.get("trial").cloned().unwrap_or_default()).or_default();
        trial.take(row, resized).map_err(|what| format!("{what}: {row:?}"))?;
    }
    trials.iter().try_for_each(|(number, trial)| trial.check().map_err(|what| format!("trial {number}: {what}")))
}

/// Sums over the rows of a trial.
#[derive(Debug, Default)]
pub struct TrialSums {
    flows: f64,
    completed: f64,
    received: f64,
    summary: Option<CsvRow>,
}

fn number(row: &CsvRow, key: &str) -> Option<f64> {
    row.get(key)?.parse().ok()
}

impl TrialSums {
    /// Checks a row and adds it to the sums.
    pub fn take(&mut self, row: &CsvRow, resized: bool) -> Result<(), String> {
        let get = |key: &str| number(row, key);
        let zero = |key: &str| get(key).unwrap_or(0.0);
        for (key, value) in
            row.iter().filter(|(key, _)| key.ends_with("_ns") || key.ends_with("_bytes") || key.ends_with("_bps"))
        {
            let sound = value.parse::<f64>().is_ok_and(|x| x.is_finite() && x >= 0.0);
            hold!(sound, "{key} is {value}");
        }
        match row.get("kind").map(String::as_str) {
            Some("flow") => {
                self.flows += 1.0;
                self.received += zero("received_bytes");
                if let Some(size) = get("size_bytes") {
                    hold!(zero("received_bytes") <= size, "more bytes received than sent");
                    if get("fct_ns").is_some() {
                        self.completed += 1.0;
                        hold!(zero("received_bytes") == size, "finished without all of its bytes");
                    }
                }
                hold!(get("slowdown").is_none_or(|s| s > 0.0), "a slowdown that is none");
            }
            Some("link") => {
                // A packet may be in transmission at both ends of the measured time, and whole-nanosecond times make
                // links faster.
                let (sent, part) = (zero("data_bytes"), zero("utilization"));
                let most = if part > 0.0 { 1.06 * sent / part + 2.0 * MOST_PACKET_BYTES } else { 0.0 };
                hold!(resized || sent <= most, "a link carries more than it can");
            }
            Some("summary") => self.summary = Some(row.clone()),
            _ => {}
        }
        Ok(())
    }

    /// Checks that the summary agrees with the rows.
    pub fn check(&self) -> Result<(), String> {
        let summary = self.summary.as_ref().ok_or("there is no summary")?;
        let of = |key: &str| number(summary, key).unwrap_or(0.0);
        hold!(of("flows") == self.flows, "{} flows in the summary, {} rows", of("flows"), self.flows);
        hold!(
            of("completed") == self.completed,
            "{} completed by the summary, {} by rows",
            of("completed"),
            self.completed
        );
        hold!(
            of("received_bytes") == self.received,
            "{} bytes by the summary, {} by rows",
            of("received_bytes"),
            self.received
        );
        Ok(())
    }
}
