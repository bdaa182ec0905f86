//! A marginal utility U' through points, for utilities of the user's own. ln U' is piecewise linear in ln x, and
//! continues beyond the first and last point with the slope there, so that each piece is an alpha-fair utility.

use crate::InputError;
use libm::{exp, log};

/// U' of a flow of weight 1: positive, and decreasing in the rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Points (ln of bit/s, ln U').
    points: Vec<(f64, f64)>,
}

/// Smallest and largest exponent of a piece. Solvers invert U': a smaller exponent means rates that a price hardly
/// determines.
const EXPONENTS: (f64, f64) = (1e-6, 1e3);

impl Curve {
    /// The curve through `points` (bit/s, U'). Places of errors are relative to the list of points.
    pub fn new(points: &[(f64, f64)]) -> Result<Self, InputError> {
        let fault = |k: usize, what: String, hint: &str| Err(InputError::new(format!("[{k}]"), what, hint.to_string()));
        if points.len() < 2 {
            let what = format!("{} of at least two points", points.len());
            return Err(InputError::new("", what, "give points [bit/s, marginal utility]"));
        }
        for (k, &(rate, marginal)) in points.iter().enumerate() {
            if !(rate > 0.0 && rate.is_finite()) {
                return fault(k, format!("the rate is {rate}"), "give a rate above 0");
            }
            if !(marginal > 0.0 && marginal.is_finite()) {
                return fault(k, format!("the marginal utility is {marginal}"), "give a finite number above 0");
            }
        }
        let curve = Curve { points: points.iter().map(|p| (log(p.0), log(p.1))).collect() };
        for k in 1..points.len() {
            let ((rate_before, before), (rate, marginal)) = (points[k - 1], points[k]);
            if rate <= rate_before {
                return fault(
                    k,
                    format!("the rate goes from {rate_before} to {rate}"),
                    "list rates in increasing order",
                );
            }
            let exponent = curve.exponent(k - 1);
            if exponent <= 0.0 {
                let what = format!("the marginal utility goes from {before} to {marginal}: the utility is not concave");
                return fault(k, what, "let the marginal utility decrease with the rate");
            }
            if !(EXPONENTS.0..=EXPONENTS.1).contains(&exponent) {
                let what = format!("the marginal utility falls as the rate to the power -{exponent:.2e}");
                return fault(k, what, "keep the exponent between 1e-6 and 1000");
            }
        }
        Ok(curve)
    }

    /// The curve exp(`ln_gain`) x^-`alpha`.
    pub fn power(alpha: f64, ln_gain: f64) -> Self {
        Curve { points: vec![(0.0, ln_gain), (1.0, ln_gain - alpha)] }
    }

    /// The curve of ln U' + `ln_marginal` over rates in a unit of exp(`ln_unit`).
    pub fn scaled(&self, ln_unit: f64, ln_marginal: f64) -> Self {
        Curve { points: self.points.iter().map(|p| (p.0 - ln_unit, p.1 + ln_marginal)).collect() }
    }

    /// Rate of the first point, bit/s.
    pub fn first_bps(&self) -> f64 {
        exp(self.points[0].0)
    }

    /// ln U' at the rate exp(`ln_rate`).
    pub fn ln_marginal(&self, ln_rate: f64) -> f64 {
        let k = self.piece_at(ln_rate);
        self.points[k].1 - self.exponent(k) * (ln_rate - self.points[k].0)
    }

    /// ln of the rate with U' = exp(`ln_marginal`).
    pub fn ln_rate(&self, ln_marginal: f64) -> f64 {
        let k = self.piece_of(ln_marginal);
        self.points[k].0 - (ln_marginal - self.points[k].1) / self.exponent(k)
    }

    /// -d ln U' / d ln x at the rate exp(`ln_rate`); at a point, that of the piece to its right.
    pub fn alpha_at(&self, ln_rate: f64) -> f64 {
        self.exponent(self.piece_at(ln_rate))
    }

    /// -d ln U' / d ln x where U' is exp(`ln_marginal`); at a point, that of the piece to its right.
    pub fn alpha_of(&self, ln_marginal: f64) -> f64 {
        self.exponent(self.piece_of(ln_marginal))
    }

    /// The smallest and the largest exponent of its pieces.
    pub fn alphas(&self) -> (f64, f64) {
        let pieces = (0..self.points.len() - 1).map(|k| self.exponent(k));
        pieces.fold((f64::INFINITY, 0.0), |(least, most), e| (least.min(e), most.max(e)))
    }

    /// Integral of U' from the rate `from` to the rate `to`, without cancellation.
    pub fn integral(&self, from: f64, to: f64) -> f64 {
        if from > to {
            return -self.integral(to, from);
        }
        let (first, last) = (self.piece_at(log(from)), self.piece_at(log(to)));
        let piece = |k: usize| {
            let begin = if k == first { from } else { exp(self.points[k].0) };
            let end = if k == last { to } else { exp(self.points[k + 1].0) };
            self.integral_of(k, begin, end)
        };
        (first..=last).map(piece).sum()
    }

    /// Integral of the power law of piece `k`.
    fn integral_of(&self, k: usize, from: f64, to: f64) -> f64 {
        let rest = 1.0 - self.exponent(k);
        let worth = |x: f64| x * exp(self.points[k].1 - self.exponent(k) * (log(x) - self.points[k].0));
        if from == 0.0 {
            return if rest > 0.0 { worth(to) / rest } else { f64::INFINITY };
        }
        let ln_ratio = log(to / from);
        worth(from) * if rest == 0.0 { ln_ratio } else { libm::expm1(rest * ln_ratio) / rest }
    }

    fn exponent(&self, k: usize) -> f64 {
        let (a, b) = (self.points[k], self.points[k + 1]);
        (a.1 - b.1) / (b.0 - a.0)
    }

    fn piece_at(&self, ln_rate: f64) -> usize {
        self.points[1..self.points.len() - 1].partition_point(|p| p.0 <= ln_rate)
    }

    fn piece_of(&self, ln_marginal: f64) -> usize {
        self.points[1..self.points.len() - 1].partition_point(|p| p.1 >= ln_marginal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve() -> Curve {
        // Exponents 0.5, 2 and 1 between 1e6, 1e8, 1e9 and 1e10 bit/s.
        Curve::new(&[(1e6, 1.0), (1e8, 0.1), (1e9, 1e-3), (1e10, 1e-4)]).unwrap()
    }

    #[test]
    fn rate_inverts_marginal_and_pieces_are_powers() {
        let curve = curve();
        for (rate, marginal, alpha) in [
            (1e5, 10f64.sqrt(), 0.5),
            (1e7, 0.1f64.sqrt(), 0.5),
            (2e8, 0.025, 2.0),
            (1e9, 1e-3, 1.0),
            (4e10, 2.5e-5, 1.0),
        ] {
            assert!((exp(curve.ln_marginal(log(rate))) / marginal - 1.0).abs() < 1e-12, "{rate}");
            assert!((exp(curve.ln_rate(log(marginal))) / rate - 1.0).abs() < 1e-10, "{marginal}");
            assert!((curve.alpha_at(log(rate * 1.0001)) - alpha).abs() < 1e-12);
            assert!((curve.alpha_of(log(marginal * 0.9999)) - alpha).abs() < 1e-12);
        }
        assert_eq!(curve.alphas().0, curve.alpha_at(0.0));
    }

    #[test]
    fn integral_equals_a_sum_of_thin_slices() {
        let curve = curve();
        let (from, to, slices) = (3e6f64, 2e10f64, 200_000);
        let edge = |i: usize| from * (to / from).powf(i as f64 / slices as f64);
        let slice = |i: usize| {
            let (a, b) = (edge(i), edge(i + 1));
            (b - a) * exp(curve.ln_marginal(log((a * b).sqrt())))
        };
        let sum: f64 = (0..slices).map(slice).sum();
        assert!((curve.integral(from, to) / sum - 1.0).abs() < 1e-6);
        assert_eq!(curve.integral(to, from), -curve.integral(from, to));
        // Below the first point U' = (1e6/x)^0.5, so that the integral from 0 is 2e6 at 1e6.
        assert!((curve.integral(0.0, 1e6) / 2e6 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_curve_that_no_solver_could_invert_is_refused() {
        let refused = |points: &[(f64, f64)]| Curve::new(points).unwrap_err().to_string();
        assert!(refused(&[(1e6, 1.0)]).contains("1 of at least two points"));
        assert!(refused(&[(1e6, 1.0), (1e7, 2.0)]).contains("the utility is not concave"));
        assert!(refused(&[(1e6, 1.0), (1e7, 1.0)]).contains("the utility is not concave"));
        assert!(refused(&[(1e7, 1.0), (1e6, 0.5)]).contains("the rate goes from 10000000 to 1000000"));
        assert!(refused(&[(0.0, 1.0), (1e6, 0.5)]).contains("the rate is 0"));
        assert!(refused(&[(1.0, 1.0), (1e6, -0.5)]).contains("the marginal utility is -0.5"));
        assert!(refused(&[(1.0, 1.0), (1e6, 0.999_999)]).contains("to the power -7.24e-8"));
    }
}
