//! Quantities of a run that defaults of parameters depend on.

/// A quantity that a parameter's default depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follows {
    /// The policy's alpha. A value that differs from the policy's is an error.
    Alpha,
    /// The share of a link that the ACKs of a saturated reverse link use. This share is added to the default.
    Acks,
    /// Whether the policy is max-min, which maximizes no utility function.
    MaxMin,
    /// Whether the policy prioritizes some flows (fct, srpt, edf). If so, the default is a bound that never binds.
    Urgency,
    /// The smallest weight of a subflow, if that is below the default, under schemes whose weights are the flows'.
    SmallestWeight,
    /// As [`Follows::SmallestWeight`]: the default, a number of flows of weight 1, as flows of that weight.
    SmallestFlows,
}
