//! Nanoseconds a packet-hop on the permutation workload, for DCTCP on 16, 144 and 1024 hosts with the memory that takes,
//! then for every scheme on 144 beside DCTCP. CPU time of the thread; the median of five runs.
//!
//! `cargo bench -p subak-packet --bench packet_hop -- [MILLISECONDS [SCHEME]]`

mod permutation;

use permutation::{Figures, HOSTS, LEAVES, measure};

fn main() {
    let mut args = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let millis = args.next().and_then(|a| a.parse().ok()).unwrap_or(10);
    let only = args.next();
    println!(
        "{:<14} {:>6} {:>14} {:>14} {:>12} {:>10}",
        "scheme", "hosts", "ns/packet-hop", "Gb/s received", "packet-hops", ""
    );
    let mut dctcp_ns = None;
    for leaves in [1, LEAVES, 64] {
        let f = median("dctcp", leaves, (millis * LEAVES as u64 / leaves as u64).max(1));
        if leaves == LEAVES {
            dctcp_ns = Some(f.ns_per_hop);
        }
        // The sizes rise, so the most memory used so far is this size's.
        let memory = peak_megabytes().map_or(String::new(), |mb| format!("{mb:.0} MB"));
        row("dctcp", leaves, &f, &memory);
    }
    for info in subak_schemes::registry::schemes() {
        if only.as_ref().is_none_or(|name| name == info.name) {
            let f = median(info.name, LEAVES, millis);
            let ratio = dctcp_ns.map_or(String::new(), |d| format!("{:.2} x", f.ns_per_hop / d));
            row(info.name, LEAVES, &f, &ratio);
        }
    }
}

fn median(scheme: &str, leaves: usize, millis: u64) -> Figures {
    let mut runs: Vec<_> = (0..5).map(|_| measure(scheme, leaves, millis)).collect();
    runs.sort_by(|a, b| a.ns_per_hop.total_cmp(&b.ns_per_hop));
    runs.swap_remove(2)
}

fn row(scheme: &str, leaves: usize, f: &Figures, last: &str) {
    let hosts = leaves * HOSTS;
    println!("{scheme:<14} {hosts:>6} {:>14.1} {:>14.1} {:>12} {last:>10}", f.ns_per_hop, f.goodput_gbps, f.hops);
}

/// The most memory this process has held, where the system tells.
fn peak_megabytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok().map(|kb| kb / 1024.0)
}
