//! Allocation policies: the objective of a case.

/// An allocation objective. Every policy pools a flow's paths: it applies to the sum of their rates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Policy {
    /// Weighted max-min: at a shared bottleneck rates are proportional to weight.
    MaxMin,
    /// Utility w^alpha x^(1-alpha) / (1-alpha), w log x at 1; 0 is the throughput optimum.
    AlphaFair {
        /// Fairness, zero or more.
        alpha: f64,
    },
    /// Short flows first: utility x^(1-epsilon) / (size (1-epsilon)) (NUMFabric, table 1).
    Fct {
        /// Smoothing, in (0, 1).
        epsilon: f64,
    },
    /// As `fct`, by the bytes that remain.
    Srpt {
        /// Smoothing, in (0, 1).
        epsilon: f64,
    },
    /// As `fct`, by the time that remains to the deadline.
    Edf {
        /// Smoothing, in (0, 1).
        epsilon: f64,
    },
    /// Max-min in the fair share of each flow's bandwidth function.
    BandwidthFunction,
}

impl Policy {
    /// Its alpha: the smoothing of those that put some flows before others; none where utilities have no common one.
    pub fn alpha(self) -> Option<f64> {
        match self {
            Policy::AlphaFair { alpha } => Some(alpha),
            Policy::Fct { epsilon } | Policy::Srpt { epsilon } | Policy::Edf { epsilon } => Some(epsilon),
            Policy::MaxMin | Policy::BandwidthFunction => None,
        }
    }

    /// Whether it puts some flows before others.
    pub fn ranks(self) -> bool {
        matches!(self, Policy::Fct { .. } | Policy::Srpt { .. } | Policy::Edf { .. })
    }

    /// Its kind, as cases and specs write it.
    pub fn name(self) -> &'static str {
        match self {
            Policy::MaxMin => "max-min",
            Policy::AlphaFair { .. } => "alpha-fair",
            Policy::Fct { .. } => "fct",
            Policy::Srpt { .. } => "srpt",
            Policy::Edf { .. } => "edf",
            Policy::BandwidthFunction => "bandwidth-function",
        }
    }
}
