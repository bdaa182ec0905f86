//! Means, quantiles and confidence intervals.

use serde::Serialize;

/// A mean over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Stat {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95% confidence interval (Student's t); none below two seeds.
    pub ci95: Option<f64>,
    /// Seeds that gave a value.
    pub seeds: usize,
}

impl Stat {
    /// The mean of one value for each seed; `None` if there are none.
    pub fn over(values: &[f64]) -> Option<Stat> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let ci95 = (n > 1).then(|| {
            let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1) as f64;
            t975(n - 1) * (variance / n as f64).sqrt()
        });
        Some(Stat { mean, ci95, seeds: n })
    }
}

/// The 0.975 quantile of Student's t with `df` degrees of freedom: exact for one and two, else the expansion in 1/df of
/// Abramowitz and Stegun 26.7.5, whose error is below 0.2% from three on.
fn t975(df: usize) -> f64 {
    let z: f64 = 1.959_963_984_540_054;
    match df {
        1 => 12.706_204_736_432_1,
        2 => 4.302_652_729_911_28,
        3 => 3.182_446_305_284_26,
        4 => 2.776_445_105_198_1,
        _ => {
            let n = df as f64;
            let g = |coefficients: &[f64], over: f64| {
                coefficients.iter().rev().fold(0.0, |sum, c| sum * z * z + c) * z / over
            };
            z + g(&[1.0, 1.0], 4.0) / n
                + g(&[3.0, 16.0, 5.0], 96.0) / (n * n)
                + g(&[-15.0, 17.0, 19.0, 3.0], 384.0) / (n * n * n)
                + g(&[-945.0, -1920.0, 1482.0, 776.0, 79.0], 92160.0) / (n * n * n * n)
        }
    }
}

/// How probable a mean of `differences` as far from 0 as theirs is, if it is 0 in truth: the paired t-test, two-sided.
/// `None` below two differences.
pub fn paired_p(differences: &[f64]) -> Option<f64> {
    let stat = Stat::over(differences)?;
    let error = stat.ci95? / t975(differences.len() - 1);
    if stat.mean == 0.0 {
        return Some(1.0);
    }
    Some(two_tails((stat.mean / error).abs(), differences.len() - 1))
}

/// The probability beyond `t` on either side of Student's t with `df` degrees of freedom (Abramowitz and Stegun 26.7.3, 4).
fn two_tails(t: f64, df: usize) -> f64 {
    let angle = libm::atan(t / (df as f64).sqrt());
    let (sin, cos) = (libm::sin(angle), libm::cos(angle));
    // Terms of cos^k for k of the parity of `df`, below it.
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

/// The quantile `q` of `sorted`, linear between neighbours; `None` if there are no values.
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = q * last as f64;
    let low = at.floor() as usize;
    let high = (low + 1).min(last);
    Some(sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64))
}

/// The quantile `q` of a histogram of `(upper edge, count)`: the edge of the bin in which it falls.
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
            assert!((t975(df) - want).abs() < 2e-3 * want, "{df}: {}", t975(df));
        }
        let stat = Stat::over(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((stat.mean - 3.0).abs() < 1e-12 && (stat.ci95.unwrap() - 1.9634).abs() < 1e-3);
        assert_eq!(Stat::over(&[7.0]).unwrap().ci95, None);
        assert_eq!(Stat::over(&[]), None);
    }

    #[test]
    fn tails_as_in_the_tables() {
        for df in [1, 2, 3, 4, 5, 9, 10, 30] {
            let p = two_tails(t975(df), df);
            assert!((p - 0.05).abs() < 3e-4, "{df}: {p}");
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
