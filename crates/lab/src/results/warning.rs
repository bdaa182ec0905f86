//! A warning.

use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A condition that limits the validity of results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Warning {
    /// Kind of warning, such as `few-flows`.
    pub kind: &'static str,
    /// Label of the scheme, if the warning concerns a single scheme.
    pub scheme: Option<String>,
    /// Value of each axis, if the warning concerns a single sweep point.
    pub axes: BTreeMap<String, Value>,
    /// Numbers of the trials that the warning concerns.
    pub trials: Vec<u64>,
    /// One sentence: the problem and a hint.
    pub text: String,
}

impl Warning {
    /// Kind of the warning for runs in which no flow completed.
    pub const NOTHING_FINISHED: &str = "nothing-finished";
}
