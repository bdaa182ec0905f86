//! Time per packet-hop on the permutation workload: for DCTCP on 16 to 101,312 hosts, with the memory used, then for
//! every scheme on 144 hosts, in turn with DCTCP. Times are CPU time of the thread, and the median of the runs; ratios
//! are the median of the turns'.
//!
//! The exit status is 1 if a hop at 1024 hosts takes more than [`MEMORY`] times as long as at 16. It is also 1 if a
//! scheme takes more than [`SCHEME`] times as long as DCTCP. The goals are stricter; what misses them is printed.
//!
//! `cargo bench -p subak-packet --bench packet_hop -- [SCHEME...]`: by default every scheme, and DCTCP beyond 1024
//! hosts too.

mod permutation;

use permutation::{Figures, HOSTS, LEAVES, measure};
use std::process::ExitCode;

/// Leaves, microseconds of simulated time, and runs.
const SIZES: [(usize, u64, usize); 6] =
    [(1, 90_000, 5), (LEAVES, 10_000, 5), (64, 1_000, 5), (512, 1_000, 1), (4096, 100, 1), (6332, 100, 1)];
/// Turns of 1024 and 8192 hosts.
const TURNS: usize = 3;
const MEMORY: f64 = 3.5;
const SCHEME: f64 = 2.5;
/// Goal for a hop at 8192 hosts, in hops at 1024.
const GOAL_FLAT: f64 = 1.3;
/// Goal for a scheme, in hops of DCTCP.
const GOAL_SCHEME: f64 = 1.5;

fn main() -> ExitCode {
    let only: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    println!(
        "{:<14} {:>6} {:>14} {:>14} {:>12} {:>10}",
        "scheme", "hosts", "ns/packet-hop", "Gb/s received", "packet-hops", ""
    );
    let mut faults = Vec::new();
    let mut dctcp_ns = Vec::new();
    for (leaves, micros, runs) in SIZES.into_iter().take(if only.is_empty() { SIZES.len() } else { 3 }) {
        let f = median("dctcp", leaves, micros, runs);
        dctcp_ns.push(f.ns_per_hop);
        // Sizes increase, so that the process's peak so far is the peak of this size.
        let memory = peak_megabytes().map_or(String::new(), |mb| format!("{mb:.0} MB"));
        row("dctcp", leaves, &f, &memory);
    }
    if dctcp_ns[2] > MEMORY * dctcp_ns[0] {
        faults.push(format!("1024 hosts take {:.2} times as long as 16 (at most {MEMORY})", dctcp_ns[2] / dctcp_ns[0]));
    }
    let mut misses = Vec::new();
    if only.is_empty() {
        let ((small, small_micros, _), (large, large_micros, _)) = (SIZES[2], SIZES[3]);
        let (_, ratio) = in_turn(TURNS, ("dctcp", large, large_micros), ("dctcp", small, small_micros));
        println!("8192 hosts, in turn with 1024: {ratio:.2} x");
        if ratio > GOAL_FLAT {
            misses.push(format!("8192 hosts: {ratio:.2} times 1024 (goal {GOAL_FLAT})"));
        }
    }
    let (_, micros, runs) = SIZES[1];
    for info in subak_schemes::registry::schemes() {
        if only.is_empty() || only.iter().any(|name| name == info.name) {
            let (f, ratio) = in_turn(runs, (info.name, LEAVES, micros), ("dctcp", LEAVES, micros));
            row(info.name, LEAVES, &f, &format!("{ratio:.2} x"));
            if ratio > SCHEME {
                faults.push(format!("{} takes {ratio:.2} times as long as dctcp (at most {SCHEME})", info.name));
            } else if ratio > GOAL_SCHEME {
                misses.push(format!("{}: {ratio:.2} times dctcp (goal {GOAL_SCHEME})", info.name));
            }
        }
    }
    misses.iter().for_each(|miss| println!("goal missed: {miss}"));
    faults.iter().for_each(|fault| println!("too slow: {fault}"));
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn median(scheme: &str, leaves: usize, micros: u64, runs: usize) -> Figures {
    middle((0..runs).map(|_| measure(scheme, leaves, micros)).collect())
}

fn middle(mut runs: Vec<Figures>) -> Figures {
    runs.sort_by(|a, b| a.ns_per_hop.total_cmp(&b.ns_per_hop));
    runs.swap_remove(runs.len() / 2)
}

/// Median figures of the first case (scheme, leaves, microseconds), and the median of its times over the second's.
fn in_turn(turns: usize, one: (&str, usize, u64), other: (&str, usize, u64)) -> (Figures, f64) {
    let turn = |_| {
        let f = measure(one.0, one.1, one.2);
        let ratio = f.ns_per_hop / measure(other.0, other.1, other.2).ns_per_hop;
        (f, ratio)
    };
    let (figures, mut ratios): (Vec<_>, Vec<_>) = (0..turns).map(turn).unzip();
    ratios.sort_by(f64::total_cmp);
    (middle(figures), ratios[turns / 2])
}

fn row(scheme: &str, leaves: usize, f: &Figures, last: &str) {
    let hosts = leaves * HOSTS;
    println!("{scheme:<14} {hosts:>6} {:>14.1} {:>14.1} {:>12} {last:>10}", f.ns_per_hop, f.goodput_gbps, f.hops);
}

/// Peak memory of this process, MB; `None` if the operating system does not report it.
fn peak_megabytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok().map(|kb| kb / 1024.0)
}
