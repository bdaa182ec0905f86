//! Whether memory stays flat over a soak.

/// Growth that says nothing yet: allocators keep some of what was freed.
const SLACK_BYTES: u64 = 64 << 20;
/// Looks that are kept; beyond, every other one is dropped.
const MOST_LOOKS: usize = 4096;

/// Memory of this process, looked at after each case.
#[derive(Debug, Default)]
pub struct Memory {
    looks: Vec<u64>,
    every: usize,
    since: usize,
}

/// Bytes that this process holds in memory; `None` where the system does not say.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

impl Memory {
    /// Notes a look.
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

    /// The least that was held in the second quarter of the looks, once caches are warm, and in the last quarter. A large case
    /// lifts a look for a while; only what is never given back lifts the least of many.
    pub fn before_and_after(&self) -> Option<(u64, u64)> {
        let n = self.looks.len();
        let least = |from: usize, to: usize| self.looks.get(from..to)?.iter().min().copied();
        Some((least(n / 4, n / 2)?, least(n - n / 4, n)?))
    }

    /// Says so if memory has grown.
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
