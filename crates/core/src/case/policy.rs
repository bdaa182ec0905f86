//! Reading of a case's policy.

use crate::curve::Curve;
use crate::document::{list, table};
use crate::flows::FlowUtility;
use crate::keys::{self, AMOUNT, Key, Low, ValueType};
use crate::quantity::{self, quoted, shown};
use crate::section::Section;
use crate::{InputError, Policy};
use serde_json::{Value, json};
use std::sync::Arc;

const KINDS: [&str; 7] = ["max-min", "alpha-fair", "fct", "srpt", "edf", "bandwidth-function", "utility"];

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
        "utility" => Policy::Utility,
        _ => Policy::MaxMin,
    };
    section.end(Ok(policy))
}

const UTILITY: &str = "[[\"1Mbps\", 1], [\"1Gbps\", 0.001]]";

/// Type of a flow's `utility`: points, or a policy.
pub const FLOW_UTILITY: ValueType = ValueType::Either(&[
    ValueType::List(&ValueType::Pair(&ValueType::Rate, &ValueType::Number(Low::Above(0.0), f64::INFINITY))),
    ValueType::Other("policy", policies_of_flows),
]);

/// JSON Schema of the policies that a flow may state.
fn policies_of_flows() -> Value {
    let one = |kind: &&str| {
        let mut table = keys::table(keys(kind));
        table["properties"]["kind"] = json!({"const": kind});
        if *kind == "alpha-fair" {
            table["properties"]["alpha"] = json!({"type": "number", "exclusiveMinimum": 0});
        }
        table
    };
    let all: Vec<Value> = ["alpha-fair", "fct", "srpt", "edf"].iter().map(one).collect();
    json!({"anyOf": all})
}

/// The utility that a flow states: points `[bit/s, marginal utility]`, or a policy.
pub fn flow_utility_from_value(value: &Value) -> Result<FlowUtility, InputError> {
    if value.is_object() {
        return match policy_from_value(value)? {
            Policy::AlphaFair { alpha } if alpha <= 0.0 => {
                Err(InputError::new("alpha", "alpha is 0: the utility is linear", "give an alpha above 0"))
            }
            own @ (Policy::AlphaFair { .. } | Policy::Fct { .. } | Policy::Srpt { .. } | Policy::Edf { .. }) => {
                Ok(FlowUtility::Of(own))
            }
            other => {
                let what = format!("{} has no utility that adds to those of other flows", quoted(other.name()));
                Err(InputError::new(
                    "kind",
                    what,
                    "give alpha-fair, fct, srpt or edf, or points [bit/s, marginal utility]",
                ))
            }
        };
    }
    let given = list(value, "a utility", UTILITY)?;
    let mut points = Vec::with_capacity(given.len());
    for (i, point) in given.iter().enumerate() {
        let Some([rate, marginal]) = point.as_array().and_then(|p| <&[Value; 2]>::try_from(p.as_slice()).ok()) else {
            let what = format!("{} is not a point [bit/s, marginal utility]", shown(point));
            return Err(InputError::new(format!("[{i}]"), what, format!("write it as {UTILITY}")));
        };
        let rate = quantity::rate_bps_from_json(rate).map_err(|e| e.below(&format!("[{i}][0]")))?;
        let marginal = quantity::number_from_json(marginal).map_err(|e| e.below(&format!("[{i}][1]")))?;
        points.push((rate, marginal));
    }
    Curve::new(&points).map(|curve| FlowUtility::Curve(Arc::new(curve)))
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
        "custom" | "own" | "utilities" | "num" => "kind = \"utility\"",
        _ => return fault,
    };
    fault.hinted(&format!("did you mean {meant}? known: {}", KINDS.join(", ")))
}
