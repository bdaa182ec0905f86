//! Runs the packet simulator and ns-3, and compares them: time per packet-hop on the permutation workload under
//! DCTCP; FCTs of a few hundred flows of TCP NewReno, DCTCP and CUBIC over FqCoDel; and late flows of an incast. The
//! exit status is 1 if a median FCT differs from ns-3's by more than 10% (all of its 95% interval), if an incast has
//! more late flows than in ns-3, or if ns-3 takes less than [`FASTER`] times as long.
//!
//! `cargo bench -p subak-packet --bench against_ns3 -- FOLDER [hops | times [newreno|dctcp|cubic]]`. FOLDER has the
//! programs that `benches/ns3/build.sh` builds; without FOLDER nothing is compared. The flows have one receiver in a
//! star. The logarithm of their sizes is uniform from 1 KB to 1 MB, so that queues overflow at the higher load.

mod permutation;

use permutation::{HOSTS, LEAVES, measure};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use subak_core::backend::{FlowPlan, PacketSizes, Route};
use subak_core::rng::Stream;
use subak_core::{FlowId, LinkId, Network, NodeKind};

/// Tolerance of a median FCT, relative to ns-3's median.
const WITHIN: f64 = 0.1;
const FASTER: f64 = 20.0;
/// A scheme with its names in both simulators, and its window reduction after a loss in this one. ns-3's TCP uses
/// proportional rate reduction (RFC 6937) after losses, and immediate reduction after ECN marks. After an RTO both
/// mark all segments in flight as lost. ns-3 3.37 has no tail loss probes, so the comparison has none either; FCTs with
/// them are printed.
#[derive(Clone, Copy)]
struct Peer {
    scheme: &'static str,
    tcp: &'static str,
    reduction: &'static str,
    /// CoDel's target and interval, us, if the scheme uses CoDel.
    codel_us: Option<(u64, u64)>,
}
/// CUBIC is compared twice: with CoDel's published target and interval, under which the buffer overflows, and with
/// shorter ones, under which CoDel drops.
const PEERS: [Peer; 4] = [
    Peer { scheme: "reno", tcp: "newreno", reduction: "prr", codel_us: None },
    Peer { scheme: "dctcp", tcp: "dctcp", reduction: "immediate", codel_us: None },
    Peer { scheme: "cubic", tcp: "cubic", reduction: "prr", codel_us: Some((5000, 100_000)) },
    Peer { scheme: "cubic", tcp: "cubic", reduction: "prr", codel_us: Some((20, 200)) },
];
const SENDERS: usize = 8;
const FLOWS: usize = 400;
/// Number of seeds. With five, the ratio of medians at the higher load may differ by a tenth by chance.
const SEEDS: u64 = 20;
/// Number of bootstrap samples for a confidence interval.
const DRAWS: usize = 400;
const RATE_BPS: f64 = 10e9;
const DELAY_NS: u64 = 2000;
/// Minimum RTO in both simulators for the comparison of FCTs, ns.
const RTO_MIN_NS: u64 = 200_000;
const BUFFER_BYTES: u64 = 150_000;
/// Packet sizes of ns-3: IPv4 and TCP headers without options, two bytes of PPP.
const SIZES: PacketSizes = PacketSizes { mtu_bytes: 1502, header_bytes: 42, ack_bytes: 42 };

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self.codel_us {
            Some((target, interval)) => write!(f, "{} (CoDel {target}/{interval} us)", self.tcp),
            None => f.write_str(self.tcp),
        }
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let Some(folder) = arguments.next().map(PathBuf::from) else {
        println!("no folder with ns-3 programs was given: nothing to compare with");
        return ExitCode::SUCCESS;
    };
    if !folder.join("permutation").exists() {
        println!("{} holds no ns-3 programs: nothing to compare with", folder.display());
        return ExitCode::SUCCESS;
    }
    // `times` omits the time per packet-hop, `hops` everything else; a name after `times` selects one scheme.
    let part = arguments.next();
    let ratio = if part.as_deref() == Some("times") { f64::INFINITY } else { hops(&folder) };
    if ratio < FASTER {
        println!("ns-3 takes only {ratio:.1} times as long (at least {FASTER})");
        return ExitCode::FAILURE;
    }
    if part.as_deref() == Some("hops") {
        return ExitCode::SUCCESS;
    }
    let only = arguments.next();
    let mut off = Vec::new();
    for peer in PEERS.into_iter().filter(|p| only.as_deref().is_none_or(|name| name == p.tcp)) {
        for load in [0.3, 0.6, 0.8] {
            let (ratio, [low, high]) = completion_times(&folder, peer, load);
            if low > 1.0 + WITHIN || high < 1.0 - WITHIN {
                off.push(format!("{peer} at load {load}: {ratio:.3} of ns-3's median"));
            } else if (ratio - 1.0).abs() > WITHIN {
                println!("{peer} at load {load}: {ratio:.3}, further than {WITHIN}; the interval includes {WITHIN}");
            }
        }
        for rto_min_ns in [200_000, 1_000_000] {
            let (late, theirs) = incast(&folder, peer, rto_min_ns);
            if late > theirs {
                off.push(format!("{peer}: {late} late flows for ns-3's {theirs}"));
            }
        }
    }
    if off.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("further than {WITHIN} from ns-3: {}", off.join("; "));
    ExitCode::FAILURE
}

/// Runs an ns-3 program with `input` in a file given as `--flag=FILE`; returns its output lines.
fn ns3(folder: &Path, program: &str, flag: &str, input: &str, more: &[String]) -> Vec<String> {
    let file = folder.join(format!("{program}.in"));
    std::fs::write(&file, input).expect("the folder can be written to");
    let output = Command::new(folder.join(program)).arg(format!("--{flag}={}", file.display())).args(more).output();
    let output = output.expect("the program can be run");
    assert!(output.status.success(), "{program} failed: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_string).collect()
}

/// Ratio of ns-3's time per packet-hop to this simulator's.
fn hops(folder: &Path) -> f64 {
    let pairs = permutation::permutation(LEAVES * HOSTS);
    let input = pairs.iter().enumerate().fold(String::new(), |mut text, (src, dst)| {
        let _ = writeln!(text, "{src} {dst}");
        text
    });
    let lines = ns3(folder, "permutation", "pairs", &input, &[]);
    let theirs: Vec<f64> = lines[0].split_whitespace().map(|x| x.parse().expect("a number")).collect();
    let mut runs: Vec<_> = (0..5).map(|_| measure("dctcp", LEAVES, 10_000)).collect();
    runs.sort_by(|a, b| a.ns_per_hop.total_cmp(&b.ns_per_hop));
    let ours = &runs[2];
    println!("permutation of 144 DCTCP flows   ns/packet-hop   Gb/s received");
    println!("  subak                          {:>13.1}   {:>13.1}", ours.ns_per_hop, ours.goodput_gbps);
    println!("  ns-3                           {:>13.1}   {:>13.1}", theirs[1], theirs[2] * 1502.0 / 1448.0);
    let ratio = theirs[1] / ours.ns_per_hop;
    println!("  ratio                          {ratio:>13.1}");
    ratio
}

struct Flow {
    start_ns: u64,
    sender: usize,
    bytes: u64,
}

/// Flows to the receiver with Poisson arrivals; `load` is relative to the receiver's link.
fn flows(load: f64, seed: u64) -> Vec<Flow> {
    let mut rng = Stream::new(seed, "fct");
    let (low, high) = (1e3f64, 1e6f64);
    let mean_bytes = (high - low) / (high / low).ln() * f64::from(SIZES.mtu_bytes) / f64::from(SIZES.mss_bytes());
    let gap_ns = mean_bytes * 8e9 / (RATE_BPS * load);
    let mut at_ns = 0.0;
    let one = |_| {
        at_ns += rng.exponential(gap_ns);
        let bytes = low * (high / low).powf(rng.unit());
        Flow { start_ns: at_ns as u64, sender: 1 + rng.below(SENDERS), bytes: bytes as u64 }
    };
    (0..FLOWS).map(one).collect()
}

/// FCTs in ns-3, ns, in the order of the flows.
fn their_times(folder: &Path, peer: Peer, hosts: usize, rto_min_ns: u64, flows: &[Flow]) -> Vec<f64> {
    let input = flows.iter().fold(String::new(), |mut text, f| {
        let _ = writeln!(text, "{} {} 0 {}", f.start_ns, f.sender, f.bytes);
        text
    });
    let mut more = vec![format!("--tcp={}", peer.tcp), format!("--hosts={hosts}"), format!("--rtoMinNs={rto_min_ns}")];
    if let Some((target, interval)) = peer.codel_us {
        more.extend([format!("--targetUs={target}"), format!("--intervalUs={interval}")]);
    }
    ns3(folder, "fct", "flows", &input, &more).iter().map(|l| l.parse().expect("a time")).collect()
}

/// The `q`-quantile of a sorted list.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = ((sorted.len() - 1) as f64 * q) as usize;
    sorted[place]
}

/// 95% bootstrap interval of the ratio of this simulator's median FCT to ns-3's; seeds are resampled.
fn interval(ours: &[Vec<f64>], theirs: &[Vec<f64>]) -> [f64; 2] {
    let mut rng = Stream::new(1, "bootstrap");
    let draw = |_| {
        let seeds: Vec<usize> = ours.iter().map(|_| rng.below(ours.len())).collect();
        let of = |times: &[Vec<f64>]| quantile(&sorted(seeds.iter().flat_map(|&s| times[s].clone()).collect()), 0.5);
        of(ours) / of(theirs)
    };
    let ratios = sorted((0..DRAWS).map(draw).collect());
    [0.025, 0.975].map(|q| quantile(&ratios, q))
}

/// Prints quantiles of FCTs; returns the ratio of this simulator's median to ns-3's, and its interval.
fn completion_times(folder: &Path, peer: Peer, load: f64) -> (f64, [f64; 2]) {
    let (mut ours, mut theirs, mut probed, mut dropped) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for seed in 1..=SEEDS {
        let flows = flows(load, seed);
        theirs.push(their_times(folder, peer, SENDERS + 1, RTO_MIN_NS, &flows));
        let (times, drops) = our_times(peer, SENDERS + 1, RTO_MIN_NS, false, &flows);
        ours.push(times);
        dropped += drops;
        probed.push(our_times(peer, SENDERS + 1, RTO_MIN_NS, true, &flows).0);
    }
    println!("{SEEDS} x {FLOWS} {peer} flows at load {load}, {dropped} packets dropped: FCT in us");
    let [low, high] = interval(&ours, &theirs);
    let certain = [low, high];
    println!("  median of ours over ns-3's, 95% interval over seeds: {low:.3} to {high:.3}");
    let [low, high] = interval(&probed, &theirs);
    println!("  with tail loss probes {low:.3} to {high:.3}");
    let (ours, theirs, probed) = (sorted(ours.concat()), sorted(theirs.concat()), sorted(probed.concat()));
    let ratios = [("median", 0.5), ("p90", 0.9), ("p99", 0.99)].map(|(name, q)| {
        let (a, b) = (quantile(&ours, q) / 1e3, quantile(&theirs, q) / 1e3);
        let with_probes = quantile(&probed, q) / 1e3 / b;
        println!("  {name:<7} subak {a:>9.1}   ns-3 {b:>9.1}   ratio {:.3}, with probes {with_probes:.3}", a / b);
        a / b
    });
    (ratios[0], certain)
}

/// Number of late flows in this simulator and in ns-3, in eight incasts of 32 senders with 20 KB per flow. A late
/// flow takes more than twice the time that the whole incast needs at line rate.
fn incast(folder: &Path, peer: Peer, rto_min_ns: u64) -> (usize, usize) {
    const LATE_NS: f64 = 1.2e6;
    let flow = |k: usize| Flow { start_ns: (k / 32) as u64 * 5_000_000, sender: 1 + k % 32, bytes: 20_000 };
    let flows: Vec<Flow> = (0..256).map(flow).collect();
    let late = |times: &[f64]| times.iter().filter(|&&t| t == 0.0 || t > LATE_NS).count();
    let [ours, probed] = [false, true].map(|probe| late(&our_times(peer, 33, rto_min_ns, probe, &flows).0));
    let theirs = late(&their_times(folder, peer, 33, rto_min_ns, &flows));
    let rto_us = rto_min_ns / 1000;
    print!("incast of 8 x 32 {peer} flows, minimum RTO {rto_us} us, later than 1.2 ms: ");
    println!("subak {ours}, with probes {probed}, ns-3 {theirs}");
    (ours, theirs)
}

fn sorted(mut times: Vec<f64>) -> Vec<f64> {
    assert!(times.iter().all(|&t| t > 0.0), "every flow finishes");
    times.sort_by(f64::total_cmp);
    times
}

fn our_times(peer: Peer, hosts: usize, rto_min_ns: u64, probe: bool, flows: &[Flow]) -> (Vec<f64>, u64) {
    let mut network = Network::new();
    let hub = network.node("hub", NodeKind::Switch);
    for h in 0..hosts {
        let host = network.node(&format!("h{h}"), NodeKind::Host);
        network.connect(host, hub, RATE_BPS, DELAY_NS, Some(BUFFER_BYTES)).expect("a valid link");
    }
    // The minimum RTO is set in ns-3's program too.
    let rto_min_s = rto_min_ns as f64 * 1e-9;
    let params = serde_json::json!({
        "rto_min": rto_min_s, "reduction": peer.reduction, "timeout": "all", "probe": probe,
    });
    let mut params = params.as_object().expect("it is one").clone();
    if let Some((target, interval)) = peer.codel_us {
        params.extend(
            [("target", target), ("codel_interval", interval)].map(|(k, us)| (k.into(), (us as f64 * 1e-6).into())),
        );
        // A device of ns-3 queues one packet besides the one in transmission, and ns-3's CUBIC may be slower than
        // Reno.
        params.insert("device".into(), 1.into());
        params.insert("reno_friendly".into(), false.into());
    }
    let mut sim = subak_packet::build(peer.scheme, &params, &network, SIZES, &[], 1).expect("it is registered");
    for f in flows {
        let up = 2 * f.sender as u32;
        sim.add(FlowPlan {
            start_ns: f.start_ns,
            size_bytes: Some(f.bytes),
            ..FlowPlan::new(vec![Route { forward: vec![LinkId(up), LinkId(1)], back: vec![LinkId(0), LinkId(up + 1)] }])
        });
    }
    sim.run_until_done(10_000_000_000);
    let fct =
        |(k, f): (usize, &Flow)| sim.flow(FlowId(k as u32)).finished_ns.map_or(0.0, |end| (end - f.start_ns) as f64);
    (flows.iter().enumerate().map(fct).collect(), sim.link(LinkId(1)).dropped_packets)
}
