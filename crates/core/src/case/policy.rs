//! Reading of a case's policy.

use crate::document::{check_keys, table, text, unknown_word};
use crate::quantity::{number_from_json, shown};
use crate::{InputError, InputErrors, Policy};
use serde_json::{Map, Value};

const KINDS: [&str; 6] = ["max-min", "alpha-fair", "fct", "srpt", "edf", "bandwidth-function"];
/// Default of the exponent epsilon of `fct`, `srpt` and `edf`, from NUMFabric's evaluation (section 6.3).
const EPSILON: f64 = 0.125;

/// The policy that `value` describes.
pub fn policy_from_value(value: &Value) -> Result<Policy, InputError> {
    let map = table(value, "the policy", "{\"kind\": \"max-min\"}")?;
    let kind = map.get("kind").ok_or_else(|| {
        InputError::new("kind", "the kind of policy is missing", format!("give one of: {}", KINDS.join(", ")))
    })?;
    let kind = text(kind, "the kind of policy").map_err(|e| e.below("kind"))?;
    let plain = |policy| check_keys(map, &["kind"]).map(|()| policy);
    match kind {
        "max-min" => plain(Policy::MaxMin),
        "bandwidth-function" => plain(Policy::BandwidthFunction),
        "alpha-fair" => alpha(map).map(|alpha| Policy::AlphaFair { alpha }),
        "fct" => epsilon(map).map(|epsilon| Policy::Fct { epsilon }),
        "srpt" => epsilon(map).map(|epsilon| Policy::Srpt { epsilon }),
        "edf" => epsilon(map).map(|epsilon| Policy::Edf { epsilon }),
        other => Err(unknown_kind(other).below("kind")),
    }
}

/// Error for an unknown policy. Its hint knows the names of policies in other tools and papers.
fn unknown_kind(word: &str) -> InputError {
    let fault = unknown_word(word, "kind of policy", &KINDS);
    let meant = match word.to_lowercase().replace(['_', ' '], "-").as_str() {
        "proportional-fair" | "proportional-fairness" | "proportional" | "log" => "kind = \"alpha-fair\", alpha = 1",
        "minimum-potential-delay" | "potential-delay" => "kind = \"alpha-fair\", alpha = 2",
        "throughput" | "max-throughput" | "maximum-throughput" => "kind = \"alpha-fair\", alpha = 0",
        "fair" | "equal" | "wfq" | "weighted-max-min" => "kind = \"max-min\"",
        "shortest-flow-first" | "sjf" => "kind = \"fct\"",
        "shortest-remaining" | "shortest-remaining-processing-time" => "kind = \"srpt\"",
        "deadline" | "earliest-deadline-first" => "kind = \"edf\"",
        _ => return fault,
    };
    InputError { hint: format!("did you mean {meant}? known: {}", KINDS.join(", ")), ..fault }
}

fn alpha(map: &Map<String, Value>) -> Result<f64, InputError> {
    let mut faults = InputErrors::default();
    faults.keep(check_keys(map, &["kind", "alpha"]));
    let value = map.get("alpha").ok_or_else(|| {
        InputError::new("alpha", "alpha-fair needs alpha", "give a number of zero or more; 1 is proportional fairness")
    });
    let alpha = faults.keep(value.and_then(|v| number_from_json(v).map_err(|e| e.below("alpha"))));
    faults.or(alpha)
}

fn epsilon(map: &Map<String, Value>) -> Result<f64, InputError> {
    let mut faults = InputErrors::default();
    faults.keep(check_keys(map, &["kind", "epsilon"]));
    let epsilon = map.get("epsilon").map_or(Ok(EPSILON), |value| match value.as_f64() {
        Some(x) if x > 0.0 && x < 1.0 => Ok(x),
        _ => Err(InputError::new("epsilon", format!("epsilon is {}", shown(value)), "give a number between 0 and 1")),
    });
    let epsilon = faults.keep(epsilon);
    faults.or(epsilon)
}
