//! One allocation problem: a network, its flows and the policy.

use crate::{Flows, Network, Policy};

/// One allocation problem.
#[derive(Debug, Clone)]
pub struct Case {
    /// The links.
    pub network: Network,
    /// The flows over them.
    pub flows: Flows,
    /// What is wanted.
    pub policy: Policy,
}
