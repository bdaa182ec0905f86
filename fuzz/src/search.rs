//! Search by random mutation: inputs with a new trace are kept.

use crate::entries::EntryPoint;
use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};
use subak_core::rng::Stream;

/// Largest input, bytes.
const MOST_BYTES: usize = 4096;
/// Largest number of inputs kept in one search.
const MOST_FOUND: usize = 50;

/// Known inputs, and their traces.
pub struct Search {
    entry: EntryPoint,
    inputs: Vec<Vec<u8>>,
    traces: HashSet<u64>,
    rng: Stream,
    /// Number of inputs tried.
    pub tried: u64,
    /// New inputs with a new trace.
    pub found: Vec<Vec<u8>>,
}

impl Search {
    /// Starts from the inputs in the folder `corpus`, if it exists.
    pub fn new(entry: EntryPoint, corpus: &Path, seed: u64) -> std::io::Result<Self> {
        let mut files: Vec<_> = match std::fs::read_dir(corpus) {
            Ok(files) => files.map(|f| f.map(|f| f.path())).collect::<Result<_, _>>()?,
            Err(_) => Vec::new(),
        };
        files.sort();
        let mut search = Search {
            entry,
            inputs: vec![Vec::new()],
            traces: HashSet::new(),
            rng: Stream::new(seed, "fuzz"),
            tried: 0,
            found: Vec::new(),
        };
        for file in files {
            let input = std::fs::read(file)?;
            search.traces.insert(entry(&input));
            search.inputs.push(input);
        }
        Ok(search)
    }

    /// Tries new inputs for this duration.
    pub fn run(&mut self, time: Duration) {
        let begin = Instant::now();
        while begin.elapsed() < time {
            for _ in 0..100 {
                self.try_one();
            }
        }
    }

    /// Tries one new input. If its entry point panics, the input is printed first.
    pub fn try_one(&mut self) {
        let input = self.changed();
        let entry = self.entry;
        let trace = std::panic::catch_unwind(|| entry(&input)).unwrap_or_else(|panic| {
            eprintln!("the input {}", input.iter().map(|b| format!("{b:02x}")).collect::<String>());
            std::panic::resume_unwind(panic)
        });
        self.tried += 1;
        if self.found.len() < MOST_FOUND && self.traces.insert(trace) {
            self.inputs.push(input.clone());
            self.found.push(input);
        }
    }

    fn changed(&mut self) -> Vec<u8> {
        let rng = &mut self.rng;
        let mut input = self.inputs[rng.below(self.inputs.len())].clone();
        for _ in 0..1 + rng.below(8) {
            let at = rng.below(input.len() + 1);
            match rng.below(6) {
                0 if at < input.len() => input[at] ^= 1 << rng.below(8),
                1 if at < input.len() => input[at] = [0, 1, 0x7F, 0x80, 0xFF, rng.bits() as u8][rng.below(6)],
                2 => input.insert(at, rng.bits() as u8),
                3 => input.truncate(at),
                4 => {
                    // Copies a part of another input, or of this one.
                    let other = &self.inputs[rng.below(self.inputs.len())];
                    let from = rng.below(other.len() + 1);
                    let until = from + rng.below(other.len() - from + 1);
                    let piece = other[from..until].to_vec();
                    input.splice(at..at, piece);
                }
                _ => {
                    let until = (at + rng.below(16)).min(input.len());
                    input.drain(at..until);
                }
            }
        }
        input.truncate(MOST_BYTES);
        input
    }
}
