//! How a link divides (section 4.1, "Approximating division").

/// The way b = (C - SumE) / NumB is computed.
#[derive(Debug, Clone, Default)]
pub enum Division {
    /// To the last bit of a float.
    #[default]
    Exact,
}

impl Division {
    /// `x / y`.
    #[inline]
    pub fn divide(&self, x: f64, y: f64) -> f64 {
        match self {
            Division::Exact => x / y,
        }
    }
}
