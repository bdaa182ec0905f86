//! Cost of a trial: events, packet-hops, wall-clock and CPU time.

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};

/// Number of events and packet-hops of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Took {
    pub events: u64,
    pub packet_hops: u64,
}

/// Wall-clock and CPU time of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spent {
    /// Wall-clock time, s.
    pub wall_s: f64,
    /// CPU time, s; `None` if the trial used several threads, or if an old manifest lacks it.
    pub cpu_s: Option<f64>,
}

impl Spent {
    /// Current wall-clock time, and CPU time of the calling thread.
    pub fn now() -> Self {
        let seconds = |clock| {
            let time = clock_gettime(clock);
            time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
        };
        Spent { wall_s: seconds(ClockId::Monotonic), cpu_s: Some(seconds(ClockId::ThreadCPUTime)) }
    }

    /// Time spent since `begun`, a reading of the same thread.
    pub fn since(begun: Self) -> Self {
        let now = Spent::now();
        let cpu_s = now.cpu_s.zip(begun.cpu_s).map(|(now, begun)| now - begun);
        Spent { wall_s: now.wall_s - begun.wall_s, cpu_s }
    }

    /// Reads the times from a trial's entry in a manifest, if present.
    pub fn read(trial: &Value) -> Option<Self> {
        Some(Spent { wall_s: trial.get("wall_s")?.as_f64()?, cpu_s: trial.get("cpu_s").and_then(Value::as_f64) })
    }

    /// Writes the times into a trial's entry in a manifest.
    pub fn write(self, trial: &mut Map<String, Value>) {
        trial.insert("wall_s".into(), json!(self.wall_s));
        if let Some(cpu_s) = self.cpu_s {
            trial.insert("cpu_s".into(), json!(cpu_s));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_spends_no_processor_time_and_a_manifest_keeps_both() {
        let begun = Spent::now();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let spent = Spent::since(begun);
        assert!(spent.wall_s >= 0.05 && spent.cpu_s < Some(0.5 * spent.wall_s), "{spent:?}");
        let mut trial = Map::new();
        spent.write(&mut trial);
        assert_eq!(Spent::read(&Value::Object(trial)), Some(spent));
        assert_eq!(Spent::read(&json!({"wall_s": 2.0})), Some(Spent { wall_s: 2.0, cpu_s: None }));
    }
}
