//! Random early detection (RED): the marking probability of a packet as a function of the queue length.

use subak_core::rng::Stream;

/// Thresholds of RED: the probability rises from 0 at `low_bytes` to `most` at `high_bytes`, and is 1 from there on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Red {
    /// Queue length up to which no packet is marked, bytes.
    pub low_bytes: f64,
    /// Queue length from which on every packet is marked, bytes.
    pub high_bytes: f64,
    /// Probability just below `high_bytes`.
    pub most: f64,
}

impl Red {
    /// Probability of a mark while `queued_bytes` wait.
    pub fn probability(&self, queued_bytes: u64) -> f64 {
        let queued = queued_bytes as f64;
        match (queued - self.low_bytes) / (self.high_bytes - self.low_bytes) {
            _ if queued >= self.high_bytes => 1.0,
            share => self.most * share.max(0.0),
        }
    }
}

/// RED at one link, with random numbers of its own.
#[derive(Debug)]
pub struct RedMarker {
    red: Red,
    stream: Stream,
}

impl RedMarker {
    /// The marker of a port with this seed.
    pub fn new(red: Red, seed: u64) -> Self {
        RedMarker { red, stream: Stream::new(seed, "red") }
    }

    /// Draws whether a packet is marked while `queued_bytes` wait.
    #[inline]
    pub fn marks(&mut self, queued_bytes: u64) -> bool {
        queued_bytes as f64 > self.red.low_bytes && self.stream.unit() < self.red.probability(queued_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probability_rises_between_the_thresholds() {
        let red = Red { low_bytes: 1000.0, high_bytes: 3000.0, most: 0.2 };
        let at = |bytes| red.probability(bytes);
        assert_eq!([at(0), at(1000), at(2000), at(3000), at(9000)], [0.0, 0.0, 0.1, 1.0, 1.0]);
        let step = Red { low_bytes: 2000.0, high_bytes: 2000.0, most: 1.0 };
        assert_eq!([step.probability(1999), step.probability(2000)], [0.0, 1.0]);
    }

    #[test]
    fn marks_are_drawn_with_that_probability() {
        let mut marker = RedMarker::new(Red { low_bytes: 1000.0, high_bytes: 3000.0, most: 0.2 }, 7);
        let marked = (0..10_000).filter(|_| marker.marks(2000)).count();
        assert!((900..1100).contains(&marked), "{marked} of 10000");
        assert!(!marker.marks(1000) && marker.marks(3000));
    }
}
