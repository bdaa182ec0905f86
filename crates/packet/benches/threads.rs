//! Speedup of a single run on several threads: wall-clock time on the permutation workload under DCTCP, alternately
//! on one thread and on several.
//!
//! The exit status is 1 if two threads have less than the speedup in [`BOUNDS`], or different results. With fewer
//! cores than threads nothing is measured, and the exit status is 0.
//!
//! `cargo bench -p subak-packet --bench threads -- [THREADS]` (default 2). With `model` the program predicts the
//! speedup on 8 and 64 cores from event counts of runs with as many logical processes (LPs). With a core for each LP,
//! a window takes as long as the LP with the most events. The cost of a packet that crosses between LPs, barriers
//! included, is fitted to the time of two threads at the first size, and checked at the other sizes. Cache effects of
//! smaller LPs make real runs faster than the model.

mod permutation;

use permutation::{Figures, HOSTS, LEAVES, measure_on};
use std::process::ExitCode;
use std::time::Instant;
use subak_core::backend::Sharing;

/// Leaves, milliseconds of simulated time, repetitions, and required speedup of two threads.
const BOUNDS: [(usize, u64, usize, f64); 3] = [(LEAVES, 20, 5, 1.3), (64, 4, 5, 1.6), (512, 1, 3, 1.7)];

fn main() -> ExitCode {
    if std::env::args().any(|arg| arg == "model") {
        model();
        return ExitCode::SUCCESS;
    }
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

/// Prints the speedup that the model predicts, and the speedup measured on two threads.
fn model() {
    println!(
        "{:>6} {:>6} {:>8} {:>14} {:>14} {:>14} {:>10} {:>10}",
        "hosts", "parts", "windows", "events, each", "of the busiest", "cross, an event", "by model", "measured"
    );
    let mut crossing_s = None;
    for (leaves, millis, turns, _) in BOUNDS {
        let alone: Vec<_> = (0..turns).map(|_| run(1, leaves, millis)).collect();
        let events = alone[0].0.events as f64;
        let alone_s = median(alone.into_iter().map(|(_, s)| s).collect());
        for parts in [2, 8, 64] {
            let runs: Vec<_> = (0..if parts == 2 { turns } else { 1 }).map(|_| run(parts, leaves, millis)).collect();
            let Sharing { parts, windows, longest_events, crossed } = runs[0].0.sharing;
            let several_s = median(runs.into_iter().map(|(_, s)| s).collect());
            let of_busiest_s = alone_s * longest_events as f64 / events;
            let crossed_each = crossed as f64 / parts as f64;
            let one_s = *crossing_s.get_or_insert((several_s - of_busiest_s) / crossed_each);
            let by_model = alone_s / (of_busiest_s + one_s * crossed_each);
            let measured = if parts == 2 { format!("{:.2}", alone_s / several_s) } else { String::new() };
            println!(
                "{:>6} {parts:>6} {windows:>8} {:>14.0} {:>14.0} {:>14.3} {by_model:>10.2} {measured:>10}",
                leaves * HOSTS,
                events / windows as f64 / parts as f64,
                longest_events as f64 / windows as f64,
                crossed as f64 / events
            );
        }
    }
    println!("a packet that crosses: {:.0} ns", crossing_s.unwrap_or(0.0) * 1e9);
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
