//! Check that memory stays constant over a soak test.

/// Growth that is not significant, bytes: memory allocators keep some freed memory.
const SLACK_BYTES: u64 = 64 << 20;
/// Largest number of stored samples; beyond it every other sample is dropped.
const MOST_LOOKS: usize = 4096;

/// Memory of this process, sampled after each case.
#[derive(Debug, Default)]
pub struct Memory {
    looks: Vec<u64>,
    every: usize,
    since: usize,
}

/// Resident memory of this process, bytes; `None` if the system does not report it.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

impl Memory {
    /// Records a sample.
    pub fn note(&mut self, bytes: u64) {
        self.since += 1;
        if self.since < self.every.max(1) {
            return;
        }
        self.since = 0;
        self.looks.push(bytes);
        if self.looks.len() > MOST_LOOKS {
            self.looks = self.looks.iter().copied().step_by(2).collect();
            self.every = 2 * self.every.max(1);
        }
    }

    /// Smallest sample in the second quarter of the test, after caches have filled, and in the last quarter. A large
    /// case raises memory only for a while; a leak raises the minimum.
    pub fn before_and_after(&self) -> Option<(u64, u64)> {
        let n = self.looks.len();
        let least = |from: usize, to: usize| self.looks.get(from..to)?.iter().min().copied();
        Some((least(n / 4, n / 2)?, least(n - n / 4, n)?))
    }

    /// An error if memory has grown.
    pub fn check(&self) -> Result<(), String> {
        let Some((before, after)) = self.before_and_after() else { return Ok(()) };
        crate::hold!(
            after <= before + SLACK_BYTES,
            "memory grows: {} MB were held at least after the warm-up, {} MB at the end",
            before >> 20,
            after >> 20
        );
        Ok(())
    }
}
