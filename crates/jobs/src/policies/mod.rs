//! The policies, one file each, and the registry that finds them by name.

use crate::WeightPolicy;
use serde_json::{Map, Value};
use subak_core::document::{unknown_key, unknown_word};
use subak_core::keys::Key;
use subak_core::quantity::shown;
use subak_core::{InputError, InputErrors};

/// Metadata of a policy: name, description, parameters.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Name of the policy.
    pub name: &'static str,
    /// Description of the policy.
    pub about: &'static str,
    /// Paper and section.
    pub paper: &'static str,
    /// Keys of the policy's numeric parameters; an unset parameter without default is passed as 0.
    pub params: &'static [Key],
}

/// A policy selected in a spec, with the values of its parameters in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    which: usize,
    params: Vec<f64>,
}

/// How a policy uses samples of a job's progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looks {
    /// It does not.
    Unread,
    /// It also acts when a transfer starts or ends.
    Read,
    /// It acts at samples alone.
    Needed,
}

macro_rules! policies {
    ($($file:ident::$name:ident,)*) => {
        $(mod $file; pub use $file::$name;)*

        /// Metadata of every policy.
        pub const ABOUT: &[About] = &[$($name::ABOUT,)*];

        /// Names of all policies.
        pub const NAMES: &[&str] = &[$($name::ABOUT.name,)*];

        const MAKE: &[fn(&[f64]) -> Box<dyn WeightPolicy>] = &[$(|params| Box::new($name::new(params)),)*];
    };
}

policies! {
    even::Even,
    critical_path::CriticalPath,
    straggler::Straggler,
    constant_sum::ConstantSum,
    altruistic::Altruistic,
    shortest_first::ShortestFirst,
    longest_distance::LongestDistance,
    smallest_bottleneck::SmallestBottleneck,
}

impl Choice {
    /// Creates the policy's state for one job.
    pub fn make(&self) -> Box<dyn WeightPolicy> {
        MAKE[self.which](&self.params)
    }

    /// Name of the policy.
    pub fn name(&self) -> &'static str {
        NAMES[self.which]
    }

    /// When samples of the progress change the weights.
    pub fn looks(&self) -> Looks {
        match self.name() {
            "even" | "shortest-first" | "longest-distance" => Looks::Unread,
            "constant-sum" | "altruistic" | "straggler" => Looks::Needed,
            _ => Looks::Read,
        }
    }
}

impl Default for Choice {
    /// The first policy of the list: equal weights.
    fn default() -> Self {
        Choice { which: 0, params: Vec::new() }
    }
}

/// Parses `"critical-path"`, or `{kind = "critical-path", ratio = 2}`.
pub fn read(value: &Value) -> Result<Choice, InputError> {
    let none = Map::new();
    let (name, given) = match value {
        Value::String(name) => (name.as_str(), &none),
        Value::Object(given) => match given.get("kind").and_then(Value::as_str) {
            Some(name) => (name, given),
            None => {
                return Err(InputError::new(
                    "kind",
                    "the policy has no kind",
                    format!("choose one of: {}", NAMES.join(", ")),
                ));
            }
        },
        other => {
            let what = format!("{} is neither a name nor a table", shown(other));
            return Err(InputError::new("", what, format!("choose one of: {}", NAMES.join(", "))));
        }
    };
    let place = if value.is_object() { "kind" } else { "" };
    let which =
        NAMES.iter().position(|n| *n == name).ok_or_else(|| unknown_word(name, "policy", NAMES).below(place))?;
    let (mut faults, known) = (InputErrors::default(), ABOUT[which].params);
    let params = known.iter().map(|key| faults.keep(key.of(given)).flatten().unwrap_or(0.0)).collect();
    let keys: Vec<&'static str> = ["kind"].into_iter().chain(known.iter().map(|p| p.name)).collect();
    given.keys().filter(|k| !keys.contains(&k.as_str())).for_each(|key| faults.push(unknown_key(key, &keys)));
    faults.done().map(|()| Choice { which, params })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Job, JobStatus, Piece, TransferProgress, TransferState, Work};
    use serde_json::json;

    /// Weights of two transfers of 1 MB and 2 MB, of which 0 and 1.5 MB have arrived at a rate of 1 Gb/s.
    fn weights(policy: &Choice, look: bool) -> Vec<f64> {
        let piece = |bytes| Piece { work: Work::Transfer { bytes, line_bps: 1e10, ends: [0, 1] }, after: Vec::new() };
        let job = Job::new(vec![piece(1_000_000), piece(2_000_000)]).unwrap();
        let one = |received_bytes| TransferProgress {
            state: TransferState::Running,
            received_bytes,
            rate_bps: 1e9,
            weight: 1.0,
        };
        let progress = [one(0), one(1_500_000)];
        policy.make().weigh(&JobStatus { now_ns: 1, job: &job, progress: &progress, look }).unwrap()
    }

    #[test]
    fn policies_use_looks_as_they_say() {
        for name in NAMES {
            let policy = read(&json!(name)).unwrap();
            let even = |weights: &[f64]| weights.iter().all(|w| *w == weights[0]);
            let (without, with) = (weights(&policy, false), weights(&policy, true));
            match policy.looks() {
                Looks::Unread => assert_eq!(without, with, "{name}"),
                Looks::Needed => assert!(even(&without) && !even(&with), "{name}"),
                Looks::Read => assert!(!even(&without) && !even(&with), "{name}"),
            }
        }
    }
}
