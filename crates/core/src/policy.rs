//! Allocation policies: the objective of a case.

/// An allocation objective. Every policy applies to the total rate of a flow over its paths (multipath, pooled).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Policy {
    /// Weighted max-min: at a shared bottleneck rates are proportional to weight.
    MaxMin,
    /// Alpha-fairness: utility w^alpha x^(1-alpha) / (1-alpha), w log x at alpha = 1. Alpha 0 is throughput.
    AlphaFair {
        /// Fairness parameter, zero or more.
        alpha: f64,
    },
    /// Short flows first: utility x^(1-epsilon) / (size (1-epsilon)) (NUMFabric, table 1).
    Fct {
        /// Exponent in the utility, in (0, 1). A smaller epsilon means a stricter priority.
        epsilon: f64,
    },
    /// Shortest remaining size first: the utility of `fct` with the remaining bytes in place of the size.
    Srpt {
        /// Exponent in the utility, in (0, 1). A smaller epsilon means a stricter priority.
        epsilon: f64,
    },
    /// Earliest deadline first: the utility of `fct` with the time left to the deadline in place of the size.
    Edf {
        /// Exponent in the utility, in (0, 1). A smaller epsilon means a stricter priority.
        epsilon: f64,
    },
    /// Max-min in the fair share of each flow's bandwidth function.
    BandwidthFunction {
        /// Exponent of the utilities with which optimizers approximate it: see [`Utility::BandwidthFunction`]. The exact
        /// rates do not depend on it.
        ///
        /// [`Utility::BandwidthFunction`]: crate::Utility::BandwidthFunction
        alpha: f64,
    },
    /// The largest sum of utilities that flows state, each its own: a curve, or the utility of a policy.
    Utility,
}

impl Policy {
    /// Bandwidth functions with NUMFabric's alpha (section 6.3).
    pub const BANDWIDTH_FUNCTION: Policy = Policy::BandwidthFunction { alpha: 5.0 };

    /// Whether flows have bandwidth functions under the policy.
    pub fn is_by_functions(self) -> bool {
        matches!(self, Policy::BandwidthFunction { .. })
    }

    /// Whether flows have sizes under the policy: `fct` and `srpt`.
    pub fn is_by_size(self) -> bool {
        matches!(self, Policy::Fct { .. } | Policy::Srpt { .. })
    }

    /// The policy's alpha: epsilon for `fct`, `srpt` and `edf`; `None` for max-min and bandwidth functions.
    pub fn alpha(self) -> Option<f64> {
        match self {
            Policy::AlphaFair { alpha } => Some(alpha),
            Policy::Fct { epsilon } | Policy::Srpt { epsilon } | Policy::Edf { epsilon } => Some(epsilon),
            Policy::MaxMin | Policy::BandwidthFunction { .. } | Policy::Utility => None,
        }
    }

    /// Whether the policy prioritizes some flows: `fct`, `srpt` and `edf`.
    pub fn ranks(self) -> bool {
        matches!(self, Policy::Fct { .. } | Policy::Srpt { .. } | Policy::Edf { .. })
    }

    /// Name of the policy in cases and specs.
    pub fn name(self) -> &'static str {
        match self {
            Policy::MaxMin => "max-min",
            Policy::AlphaFair { .. } => "alpha-fair",
            Policy::Fct { .. } => "fct",
            Policy::Srpt { .. } => "srpt",
            Policy::Edf { .. } => "edf",
            Policy::BandwidthFunction { .. } => "bandwidth-function",
            Policy::Utility => "utility",
        }
    }
}
