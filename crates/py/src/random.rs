//! Python classes of the random numbers and the published distributions that simulations use.

use crate::errors::OrInputError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use subak_core::InputError;
use subak_core::sizes::Sizes;

/// A stream of random numbers for a seed and a name, the same on every machine.
///
/// Streams of different names are independent: more draws from one do not change another. Simulations draw from such
/// streams too.
#[pyclass(module = "subak", name = "Stream")]
pub struct PyStream(pub subak_core::rng::Stream);

#[pymethods]
impl PyStream {
    #[new]
    fn new(seed: u64, name: &str) -> Self {
        PyStream(subak_core::rng::Stream::new(seed, name))
    }

    /// A uniform number in [0, 1).
    fn unit(&mut self) -> f64 {
        self.0.unit()
    }

    /// A uniform integer from 0 to n - 1.
    fn below(&mut self, py: Python<'_>, n: usize) -> PyResult<usize> {
        if n == 0 {
            return Err(InputError::new("n", "it is 0", "give a number of at least 1")).or_input_error(py);
        }
        Ok(self.0.below(n))
    }

    /// An exponential variate with this mean.
    fn exponential(&mut self, mean: f64) -> f64 {
        self.0.exponential(mean)
    }

    /// Shuffles a list in place.
    fn shuffle(&mut self, items: &Bound<'_, PyList>) -> PyResult<()> {
        let mut order: Vec<Bound<'_, PyAny>> = items.iter().collect();
        self.0.shuffle(&mut order);
        items.set_slice(0, items.len(), PyList::new(items.py(), order)?.as_any())
    }
}

/// A published distribution of flow sizes, by the name that a spec's workload has for it, such as ``"web-search"``.
#[pyclass(frozen, module = "subak", name = "Sizes")]
pub struct PySizes(pub Sizes);

#[pymethods]
impl PySizes {
    #[new]
    fn new(py: Python<'_>, name: &str) -> PyResult<Self> {
        let unknown = || {
            let known: Vec<&str> = Sizes::names().collect();
            let what = format!("there is no distribution \"{name}\"");
            InputError::new("name", what, format!("give one of: {}", known.join(", ")))
        };
        Sizes::published(name).ok_or_else(unknown).or_input_error(py).map(PySizes)
    }

    /// Names of all distributions.
    #[staticmethod]
    fn names() -> Vec<&'static str> {
        Sizes::names().collect()
    }

    /// Mean size, bytes.
    #[getter]
    fn mean_bytes(&self) -> f64 {
        self.0.mean_bytes()
    }

    /// The size below which the fraction ``share`` of the flows is, bytes.
    fn quantile(&self, share: f64) -> f64 {
        self.0.quantile(share)
    }

    /// A random size, bytes, drawn from ``stream``.
    fn draw(&self, stream: &mut PyStream) -> u64 {
        self.0.draw(&mut stream.0)
    }
}
