//! Means, quantiles and confidence intervals.

use serde::Serialize;

/// Mean of a metric over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Stat {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95% confidence interval (Student's t); `None` below two seeds.
    pub ci95: Option<f64>,
    /// Number of seeds with a value.
    pub seeds: usize,
}

impl Stat {
    /// The mean of `values`, one for each seed; `None` without values.
    pub fn over(values: &[f64]) -> Option<Stat> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let ci95 = (n > 1).then(|| {
            let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1) as f64;
            student(n - 1, 0.05) * (variance / n as f64).sqrt()
        });
        Some(Stat { mean, ci95, seeds: n })
    }
}

/// The value that |t| exceeds with probability `tails`, for Student's t with `df` degrees of freedom: `student(df,
/// 0.05)` is the 0.975 quantile of t. `df` is limited to 1 to 10,000; there the quantile is within 0.01% of the normal
/// distribution's.
pub fn student(df: usize, tails: f64) -> f64 {
    let df = df.clamp(1, 10_000);
    let mut high = 1.0;
    while two_tails(high, df) > tails && high < 1e12 {
        high *= 2.0;
    }
    let mut low = 0.0;
    // Bisection: 60 halvings exceed the 53 bits of a double's significand.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        match two_tails(middle, df) > tails {
            true => low = middle,
            false => high = middle,
        }
    }
    0.5 * (low + high)
}

/// Two-sided p-value of the paired t-test on `differences`; `None` for fewer than two.
pub fn paired_p(differences: &[f64]) -> Option<f64> {
    let stat = Stat::over(differences)?;
    let error = stat.ci95? / student(differences.len() - 1, 0.05);
    if stat.mean == 0.0 {
        return Some(1.0);
    }
    Some(two_tails((stat.mean / error).abs(), differences.len() - 1))
}

/// Probability that |T| exceeds `t`, for Student's T with `df` degrees of freedom (Abramowitz and Stegun, 26.7.3 and
/// 26.7.4).
fn two_tails(t: f64, df: usize) -> f64 {
    let angle = libm::atan(t / (df as f64).sqrt());
    let (sin, cos) = (libm::sin(angle), libm::cos(angle));
    // The sum has a term in cos^k for each k below `df` that is odd or even as `df` is.
    let first = df % 2;
    let (mut term, mut sum) = (if first == 1 { cos } else { 1.0 }, 0.0);
    let mut power = first;
    while power + 2 <= df {
        sum += term;
        term *= cos * cos * (power + 1) as f64 / (power + 2) as f64;
        power += 2;
    }
    let inside = match first {
        1 => (angle + sin * sum) * std::f64::consts::FRAC_2_PI,
        _ => sin * sum,
    };
    (1.0 - inside).clamp(0.0, 1.0)
}

/// The quantile `q` of `sorted`, interpolated linearly; `None` without values.
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = q * last as f64;
    let low = at.floor() as usize;
    let high = (low + 1).min(last);
    Some(sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64))
}

/// The quantile `q` of a histogram of `(upper edge, count)`: the upper edge of its bin.
pub fn quantile_of_bins(bins: &[(u64, u64)], q: f64) -> Option<f64> {
    let total: u64 = bins.iter().map(|b| b.1).sum();
    let wanted = ((q * total as f64).ceil() as u64).max(1);
    let mut seen = 0;
    bins.iter()
        .find(|(_, n)| {
            seen += n;
            seen >= wanted
        })
        .map(|b| b.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_as_in_the_tables() {
        for (df, want) in [(1, 12.706), (4, 2.7764), (5, 2.5706), (9, 2.2622), (30, 2.0423), (1000, 1.9623)] {
            assert!((student(df, 0.05) - want).abs() < 1e-4 * want, "{df}: {}", student(df, 0.05));
        }
        let stat = Stat::over(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((stat.mean - 3.0).abs() < 1e-12 && (stat.ci95.unwrap() - 1.9634).abs() < 1e-3);
        assert_eq!(Stat::over(&[7.0]).unwrap().ci95, None);
        assert_eq!(Stat::over(&[]), None);
    }

    #[test]
    fn tails_as_in_the_tables() {
        for df in [1, 2, 3, 4, 5, 9, 10, 30] {
            for tails in [0.05, 0.05 / 42.0] {
                let p = two_tails(student(df, tails), df);
                assert!((p - tails).abs() < 1e-9, "{df}: {p}");
            }
        }
        // t = 6.0474 with two degrees of freedom: 1 - t / sqrt(t^2 + 2).
        let p = paired_p(&[-0.5, -0.7, -0.4]).unwrap();
        assert!((p - 0.0263).abs() < 1e-4, "{p}");
        assert_eq!(paired_p(&[0.0, 0.0]), Some(1.0));
        assert_eq!(paired_p(&[2.0, 2.0]), Some(0.0));
        assert_eq!(paired_p(&[2.0]), None);
    }

    #[test]
    fn quantiles() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.5), Some(2.0));
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), Some(3.0));
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile_of_bins(&[(10, 98), (20, 1), (30, 1)], 0.99), Some(20.0));
        assert_eq!(quantile_of_bins(&[(10, 98), (20, 1), (30, 1)], 0.5), Some(10.0));
    }
}
