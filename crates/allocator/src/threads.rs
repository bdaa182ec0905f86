//! The number of threads that run iterations, chosen from the iterations' durations.

use subak_core::Ns;

/// Number of iterations between two choices.
const SETTLE: u32 = 256;

/// The choice of a number of threads. It doubles while the mean iteration takes more than half of the interval, and is
/// halved while it takes less than an eighth: twice the threads take at least half of the time.
#[derive(Debug, Clone, Copy)]
pub struct ThreadChoice {
    most: usize,
    threads: usize,
    mean_ns: f64,
    iterations: u32,
}

impl ThreadChoice {
    /// One thread, and at most `most`.
    pub fn new(most: usize) -> Self {
        ThreadChoice { most: most.max(1), threads: 1, mean_ns: 0.0, iterations: 0 }
    }

    /// The number of threads now.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Mean duration of the latest iterations, ns.
    pub fn mean_ns(&self) -> f64 {
        self.mean_ns
    }

    /// Handles an iteration that took `took_ns` of an interval of `interval_ns`; `true` if the number of threads
    /// changes.
    pub fn take(&mut self, took_ns: Ns, interval_ns: Ns) -> bool {
        self.iterations += 1;
        self.mean_ns += (took_ns as f64 - self.mean_ns) / f64::from(self.iterations.min(SETTLE / 4));
        if self.iterations < SETTLE {
            return false;
        }
        let part = self.mean_ns / interval_ns as f64;
        let wanted = match part {
            part if part > 0.5 => (2 * self.threads).min(self.most),
            part if part < 0.125 => self.threads.div_ceil(2),
            _ => self.threads,
        };
        let changes = wanted != self.threads;
        (self.threads, self.iterations) = (wanted, if changes { 0 } else { SETTLE });
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL_NS: Ns = 1_000_000;

    /// Threads after `count` iterations of `one_ns` on one thread, divided among the threads.
    fn after(choice: &mut ThreadChoice, count: usize, one_ns: Ns) -> usize {
        for _ in 0..count {
            choice.take(one_ns / choice.threads() as Ns, INTERVAL_NS);
        }
        choice.threads()
    }

    #[test]
    fn threads_double_until_iterations_take_less_than_half_of_the_interval() {
        let mut choice = ThreadChoice::new(6);
        assert_eq!(after(&mut choice, 10_000, 450_000), 1);
        assert_eq!(after(&mut choice, 10_000, 900_000), 2);
        assert_eq!(after(&mut choice, 10_000, 1_100_000), 4);
        assert_eq!(after(&mut choice, 10_000, 9_000_000), 6);
        assert_eq!(after(&mut choice, 10_000, 5_000), 1);
    }

    #[test]
    fn the_number_stays_where_it_is_right() {
        for load in 1..100 {
            let mut choice = ThreadChoice::new(8);
            let threads = after(&mut choice, 20_000, load * 100_000);
            for _ in 0..20_000 {
                assert!(!choice.take(load * 100_000 / threads as Ns, INTERVAL_NS), "{load}");
            }
        }
    }

    #[test]
    fn a_few_long_iterations_change_nothing() {
        let mut choice = ThreadChoice::new(8);
        for k in 0..10_000 {
            choice.take(if k % 100 == 0 { 10_000_000 } else { 20_000 }, INTERVAL_NS);
            assert_eq!(choice.threads(), 1);
        }
    }
}
