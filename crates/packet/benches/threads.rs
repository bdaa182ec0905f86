//! One run on one thread and on several, in turn: seconds by the wall on the permutation workload under DCTCP.
//!
//! It ends with 1 where two threads are less than [`BOUNDS`] times as fast as one, or come to other figures. Fewer cores than threads
//! say nothing: it ends with 0 and says so.
//!
//! `cargo bench -p subak-packet --bench threads -- [THREADS]`: 2 without a number.

mod permutation;

use permutation::{Figures, HOSTS, LEAVES, measure_on};
use std::process::ExitCode;
use std::time::Instant;

/// Leaves, milliseconds of network, turns, and how much faster two threads have to be.
const BOUNDS: [(usize, u64, usize, f64); 3] = [(LEAVES, 20, 5, 1.3), (64, 4, 5, 1.6), (512, 1, 3, 1.7)];

fn main() -> ExitCode {
    let threads = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(2);
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    println!(
        "{:>6} {:>12} {:>12} {:>8}   ({threads} threads, {cores} cores)",
        "hosts", "1 thread, s", "several, s", "faster"
    );
    let mut faults = Vec::new();
    for (leaves, millis, turns, bound) in BOUNDS {
        let (mut alone, mut several) = (Vec::new(), Vec::new());
        for _ in 0..turns {
            let ((one, one_s), (other, other_s)) = (run(1, leaves, millis), run(threads, leaves, millis));
            if (one.hops, one.events, one.goodput_gbps) != (other.hops, other.events, other.goodput_gbps) {
                faults.push(format!("{} hosts: other figures on {threads} threads", leaves * HOSTS));
            }
            alone.push(one_s);
            several.push(other_s);
        }
        let (alone_s, several_s) = (median(alone), median(several));
        println!("{:>6} {alone_s:>12.3} {several_s:>12.3} {:>8.2}", leaves * HOSTS, alone_s / several_s);
        if threads == 2 && alone_s < bound * several_s {
            faults.push(format!(
                "{} hosts: {:.2} times as fast (at least {bound})",
                leaves * HOSTS,
                alone_s / several_s
            ));
        }
    }
    faults.iter().for_each(|fault| println!("fault: {fault}"));
    if cores < threads {
        println!("{cores} cores say nothing about {threads} threads");
        return ExitCode::SUCCESS;
    }
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(threads: usize, leaves: usize, millis: u64) -> (Figures, f64) {
    let begun = Instant::now();
    let seconds = move || begun.elapsed().as_secs_f64();
    let took = std::cell::Cell::new(0.0);
    let clock = || {
        let now_s = seconds();
        took.set(now_s - took.get());
        now_s
    };
    let figures = measure_on(threads, "dctcp", leaves, millis * 1_000_000, clock);
    (figures, took.get())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
