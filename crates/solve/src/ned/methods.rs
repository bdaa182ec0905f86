//! Price updates by name, and runs of a case for comparison with the exact answer.

use super::iteration::{NedIteration, Reciprocal};
use super::normalize::Normalizer;
use super::real::Real;
use super::{Accelerated, Cluster, Fgm, Gradient, Ned, Newton, NewtonLike, PriceUpdate};
use crate::answer::Answer;
use crate::options::SolveOptions;
use crate::solver::finish;
use std::time::Instant;
use subak_core::document::unknown_word;
use subak_core::{Case, InputError};

/// A price update chosen at run time.
pub type AnyUpdate<T> = Box<dyn PriceUpdate<T> + Send + Sync>;

/// A central optimizer, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NedMethod {
    /// Newton-Exact-Diagonal.
    #[default]
    Ned,
    /// NED with restarted acceleration.
    Accelerated,
    /// Gradient projection.
    Gradient,
    /// The fast gradient method with step sizes by link.
    Fgm,
    /// Newton-like: NED with its diagonal estimated from loads.
    NewtonLike,
    /// The full Newton method.
    Newton,
}

impl NedMethod {
    /// All methods.
    pub const ALL: [NedMethod; 6] = [
        NedMethod::Ned,
        NedMethod::Accelerated,
        NedMethod::Gradient,
        NedMethod::Fgm,
        NedMethod::NewtonLike,
        NedMethod::Newton,
    ];

    /// Name of the method.
    pub fn name(self) -> &'static str {
        match self {
            NedMethod::Ned => "ned",
            NedMethod::Accelerated => "accelerated",
            NedMethod::Gradient => "gradient",
            NedMethod::Fgm => "fgm",
            NedMethod::NewtonLike => "newton-like",
            NedMethod::Newton => "newton",
        }
    }

    /// The method called `name`.
    pub fn named(name: &str) -> Result<Self, InputError> {
        let names = NedMethod::ALL.map(NedMethod::name);
        let found = NedMethod::ALL.into_iter().find(|m| m.name() == name);
        found.ok_or_else(|| unknown_word(name, "method", &names).below("method"))
    }

    /// The price update with this `gamma`, or with its default.
    pub fn law<T: Real>(self, gamma: Option<f64>) -> Result<AnyUpdate<T>, InputError> {
        if let Some(gamma) = gamma.filter(|g| !(g.is_finite() && *g > 0.0)) {
            return Err(InputError::new("gamma", format!("it is {gamma}"), "give a positive number, such as 0.4"));
        }
        Ok(match (self, gamma) {
            (NedMethod::Ned, None) => Box::new(Ned::default()),
            (NedMethod::Ned, Some(gamma)) => Box::new(Ned::with_gamma(gamma)),
            (NedMethod::Accelerated, None) => Box::new(Accelerated::default()),
            (NedMethod::Accelerated, Some(gamma)) => Box::new(Accelerated::with_gamma(gamma)),
            (NedMethod::Gradient, None) => Box::new(Gradient::default()),
            (NedMethod::Gradient, Some(gamma)) => Box::new(Gradient::with_gamma(gamma)),
            (NedMethod::NewtonLike, None) => Box::new(NewtonLike::default()),
            (NedMethod::NewtonLike, Some(gamma)) => Box::new(NewtonLike::with_gamma(gamma)),
            (NedMethod::Newton, None) => Box::new(Newton::default()),
            (NedMethod::Newton, Some(gamma)) => Box::new(Newton::with_gamma(gamma)),
            (NedMethod::Fgm, None) => Box::new(Fgm::default()),
            (NedMethod::Fgm, Some(_)) => {
                let what = "fgm has no gamma: its steps follow from a bound on the curvature";
                return Err(InputError::new("gamma", what, "leave it away"));
            }
        })
    }
}

/// Options of [`NedRun::answer`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NedRun {
    /// Method.
    pub method: NedMethod,
    /// Step size gamma; `None` for the default.
    pub gamma: Option<f64>,
    /// Number of steps.
    pub iterations: u64,
    /// Normalization of the final rates.
    pub normalizer: Normalizer,
    /// Whether to compute in single precision.
    pub single: bool,
    /// Whether to use approximate reciprocals in single precision: the -RT variants.
    pub approximate: bool,
}

impl Default for NedRun {
    fn default() -> Self {
        NedRun {
            method: NedMethod::Ned,
            gamma: None,
            iterations: 1000,
            normalizer: Normalizer::Flow,
            single: false,
            approximate: false,
        }
    }
}

impl NedRun {
    /// Rates and prices of `case` after the iterations, from prices of 1, with their certificate. Policies without a
    /// common power utility, and pooled paths, are errors.
    pub fn answer(&self, case: &Case) -> Result<Answer, InputError> {
        let start = Instant::now();
        let answer = match self.single || self.approximate {
            true => self.iterate::<f32>(case),
            false => self.iterate::<f64>(case),
        }?;
        Ok(finish(case, answer, &SolveOptions::default(), start, None))
    }

    fn iterate<T: Real>(&self, case: &Case) -> Result<Answer, InputError> {
        let law = self.method.law::<T>(self.gamma)?;
        let (cluster, keys) = Cluster::<T>::of(case)?;
        let division = if self.approximate { Reciprocal::Approximate } else { Reciprocal::Exact };
        let mut iteration = NedIteration::new(cluster, law).with_division(division);
        (0..self.iterations).for_each(|_| iteration.step());
        iteration.respond();
        let rates_bps = iteration.rates_bps(self.normalizer, &keys);
        Ok(Answer {
            path_rates_bps: rates_bps.clone(),
            rates_bps,
            link_price: iteration.prices().collect(),
            iterations: self.iterations,
            ..Answer::empty(self.method.name())
        })
    }
}

/// Largest relative difference of a rate from its entry in `want`; 0 without flows.
pub fn worst_off(rates_bps: &[f64], want: &[f64]) -> f64 {
    let off = |(got, want): (&f64, &f64)| if got == want { 0.0 } else { (got / want - 1.0).abs() };
    rates_bps.iter().zip(want).map(off).fold(0.0, f64::max)
}
