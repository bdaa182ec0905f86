//! Random choices of a case, from a stream of random numbers.

use subak_core::rng::Stream;

/// Random choices of one case.
#[derive(Debug, Clone)]
pub struct Draw {
    /// The seed of the case.
    pub seed: u64,
    stream: Stream,
}

impl Draw {
    /// Random choices for a seed.
    pub fn new(seed: u64) -> Self {
        Draw { seed, stream: Stream::new(seed, "soak") }
    }

    /// An integer from 0 to `n` - 1.
    pub fn below(&mut self, n: usize) -> usize {
        self.stream.below(n)
    }

    /// An integer from `from` to `to`, both included.
    pub fn whole(&mut self, from: u64, to: u64) -> u64 {
        from + self.stream.below((to - from + 1) as usize) as u64
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        self.stream.unit()
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.stream.unit() < probability
    }

    /// A random item.
    pub fn of<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.stream.below(items.len())].clone()
    }

    /// A number between `from` and `to`, uniform in its logarithm.
    pub fn log(&mut self, from: f64, to: f64) -> f64 {
        from * libm::pow(to / from, self.stream.unit())
    }

    /// `count` distinct numbers below `n`, in random order.
    pub fn some(&mut self, n: usize, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..n).collect();
        self.stream.shuffle(&mut all);
        all.truncate(count);
        all
    }
}
