//! Random choices of cases: a stream of random numbers with the few distributions that they need.

use subak_core::rng::Stream;

/// Random choices of one case.
#[derive(Debug, Clone)]
pub struct Draw {
    /// The seed of the case.
    pub seed: u64,
    stream: Stream,
}

impl Draw {
    /// Those of a seed.
    pub fn new(seed: u64) -> Self {
        Draw { seed, stream: Stream::new(seed, "soak") }
    }

    /// 0 to `n` - 1.
    pub fn below(&mut self, n: usize) -> usize {
        self.stream.below(n)
    }

    /// From the one to the other, both possible.
    pub fn whole(&mut self, from: u64, to: u64) -> u64 {
        from + self.stream.below((to - from + 1) as usize) as u64
    }

    /// 0 to 1.
    pub fn unit(&mut self) -> f64 {
        self.stream.unit()
    }

    /// Whether something happens that does with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.stream.unit() < probability
    }

    /// One of them.
    pub fn of<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.stream.below(items.len())].clone()
    }

    /// From the one to the other; each order of magnitude is as likely.
    pub fn log(&mut self, from: f64, to: f64) -> f64 {
        from * libm::pow(to / from, self.stream.unit())
    }

    /// So many of the numbers below `n`, in random order.
    pub fn some(&mut self, n: usize, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..n).collect();
        self.stream.shuffle(&mut all);
        all.truncate(count);
        all
    }
}
