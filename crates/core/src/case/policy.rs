//! Reading of a case's policy.

use crate::document::table;
use crate::keys::{self, AMOUNT, Key, Low, ValueType};
use crate::section::Section;
use crate::{InputError, Policy};
use serde_json::{Value, json};

const KINDS: [&str; 6] = ["max-min", "alpha-fair", "fct", "srpt", "edf", "bandwidth-function"];

const KIND: Key = Key::required("kind", ValueType::Word(&KINDS), "the kind of policy");
const ALPHA: Key =
    Key::required("alpha", AMOUNT, "a number of zero or more; 1 is proportional fairness, larger is nearer to max-min");
/// The default is NUMFabric's (section 6.3).
const EPSILON: Key = Key::new(
    "epsilon",
    ValueType::Number(Low::Above(0.0), 1.0),
    "0.125",
    "exponent of the utility: below 1, smaller favors short flows more",
);

/// The default is NUMFabric's (section 6.3).
const OF_UTILITIES: Key = Key::new(
    "alpha",
    ValueType::Number(Low::Above(0.0), 100.0),
    "5",
    "exponent of the utilities with which optimizers approximate the policy: larger is nearer to max-min in the fair share; the \
     exact rates do not depend on it",
);

/// Keys of the policies of kind `kind`.
pub(super) fn keys(kind: &str) -> &'static [Key] {
    match kind {
        "alpha-fair" => &[KIND, ALPHA],
        "fct" | "srpt" | "edf" => &[KIND, EPSILON],
        "bandwidth-function" => &[KIND, OF_UTILITIES],
        _ => &[KIND],
    }
}

/// JSON Schema of each kind of policy.
pub fn policies_described() -> Value {
    KINDS.iter().map(|kind| json!({"kind": kind, "schema": keys::table(&keys(kind)[1..])})).collect()
}

/// The policy that `value` describes.
pub fn policy_from_value(value: &Value) -> Result<Policy, InputError> {
    table(value, "the policy", "{\"kind\": \"max-min\"}")?;
    let kind: String = Section::of(value, &[KIND])?.must("kind").map_err(|fault| unknown_kind(fault, value))?;
    let mut section = Section::of(value, keys(&kind))?;
    section.get("kind");
    let policy = match kind.as_str() {
        "alpha-fair" => Policy::AlphaFair { alpha: section.take("alpha") },
        "fct" => Policy::Fct { epsilon: epsilon(&mut section) },
        "srpt" => Policy::Srpt { epsilon: epsilon(&mut section) },
        "edf" => Policy::Edf { epsilon: epsilon(&mut section) },
        "bandwidth-function" => Policy::BandwidthFunction { alpha: section.take("alpha") },
        _ => Policy::MaxMin,
    };
    section.end(Ok(policy))
}

/// Reads the key `epsilon`.
fn epsilon(section: &mut Section) -> f64 {
    let below_one = |epsilon| match epsilon < 1.0 {
        true => Ok(epsilon),
        false => Err(InputError::new("", "epsilon is 1", "give a number between 0 and 1")),
    };
    section.convert("epsilon", below_one).unwrap_or(0.5)
}

/// The error for an unknown policy, with a hint for the names of policies in other tools and papers.
fn unknown_kind(fault: InputError, value: &Value) -> InputError {
    let word = value.get("kind").and_then(Value::as_str).unwrap_or_default();
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
    fault.hinted(&format!("did you mean {meant}? known: {}", KINDS.join(", ")))
}
