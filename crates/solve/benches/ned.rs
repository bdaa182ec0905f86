//! NED's iteration at the seven sizes of Flowtune's table (section 5.2) and a scalar loop for comparison. It measures
//! the best time of an iteration with and without F-NORM, in both precisions, with unequal weights, and on threads;
//! then a million flows. `cargo bench -p subak-solve --bench ned -- 4608/49152` runs that size alone; `quick` omits
//! FlowBlocks and the million flows.
//!
//! The exit status is 1 if an iteration in single precision is less than [`FASTER`] times as fast as the scalar loop.
//! With more flows than in the table, where both are memory-bound, it must not be slower.

use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Instant;
use subak_core::rng::Stream;
use subak_core::route::Router;
use subak_core::{Case, Flow, Flows, LinkId, Policy, generate};
use subak_solve::ned::parallel::{Parallel, Partition, ProcessIndex};
use subak_solve::ned::straight::{Straight, TwoTiers};
use subak_solve::ned::{Cluster, FlowKey, Ned, NedIteration, NewFlow, Normalizer, Real, Reciprocal};
use subak_solve::{SolveOptions, solve};

const RATE_BPS: f64 = TwoTiers::RATE_BPS;
/// Ten and a hundred times the flows of the table's last row.
const MORE: [(usize, usize); 2] = [(4608, 491_520), (4608, 4_915_200)];

/// Required ratio of the scalar loop's time to NED's.
const FASTER: f64 = 1.2;

fn main() -> ExitCode {
    if std::env::args().any(|a| a == "gamma") {
        gammas();
        return ExitCode::SUCCESS;
    }
    let sizes: Vec<(usize, usize)> = std::env::args().skip(1).filter_map(|a| parse(&a)).collect();
    let sizes = if sizes.is_empty() { [&TwoTiers::TABLE[..], &MORE].concat() } else { sizes };
    println!(
        "{:>6} {:>8} {:>5} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9} {:>8}",
        "nodes", "flows", "", "us", "F-NORM", "weighted", "-RT", "straight", "ratio", "Tbit/s"
    );
    let mut faults = Vec::new();
    for &(nodes, flows) in &sizes {
        let paths = TwoTiers { nodes }.paths(flows, 1);
        let (faster, least) = (line::<f32>("f32", nodes, &paths), if flows > 100_000 { 1.0 } else { FASTER });
        if faster < least {
            faults.push(format!(
                "{nodes}/{flows}: only {faster:.2} times as fast as the straight loop (at least {least})"
            ));
        }
        line::<f64>("f64", nodes, &paths);
    }
    if !std::env::args().any(|a| a == "quick") {
        blocks(&sizes);
    }
    faults.iter().for_each(|fault| println!("too slow: {fault}"));
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Loops and FlowBlocks on threads, FlowBlocks across processes, and a million flows.
fn blocks(sizes: &[(usize, usize)]) {
    println!("\nus an iteration on one thread and on two: flows and links in parts of loops, and in FlowBlocks");
    println!(
        "{:>6} {:>8} {:>5} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9}",
        "nodes", "flows", "", "blocks", "1", "1, F-NORM", "2", "2, F-NORM", "1 over 2"
    );
    for &(nodes, flows) in sizes.iter().filter(|(_, flows)| *flows <= 100_000) {
        let paths = TwoTiers { nodes }.paths(flows, 1);
        team::<f32>("f32", nodes, &paths);
        team::<f64>("f64", nodes, &paths);
        threads::<f32>("f32", nodes, &paths, 2);
        threads::<f64>("f64", nodes, &paths, 2);
        if nodes == 4608 {
            for groups in [4, 8] {
                threads::<f32>("f32", nodes, &paths, groups);
            }
        }
        across(nodes, &paths);
    }
    println!();
    million();
    println!("peak memory {} MB", peak_memory_mb());
    println!(
        "Flowtune: 184 Tbit/s on 64 cores, 2.88 a core, in 30.71 us; Fastpass: 2.2 Tbit/s on 8 cores, 0.28 a core"
    );
}

fn parse(size: &str) -> Option<(usize, usize)> {
    let (nodes, flows) = size.split_once('/')?;
    Some((nodes.parse().ok()?, flows.parse().ok()?))
}

/// Prints one row of the table: microseconds per iteration, and the network's total host rate. Returns the speedup
/// over the scalar loop.
fn line<T: Real>(name: &str, nodes: usize, paths: &[Vec<LinkId>]) -> f64 {
    let links = TwoTiers { nodes }.links();
    let (mut plain, _) = iteration::<T>(links, paths, false);
    let (mut weighted, _) = iteration::<T>(links, paths, true);
    let mut quick = iteration::<T>(links, paths, false).0.with_division(Reciprocal::Approximate);
    let mut straight = Straight::<T>::new(links, paths);
    let ours = best_us(|| plain.step());
    let mut rates = Vec::new();
    let with_norm = best_us(|| {
        plain.step();
        plain.normalize(Normalizer::Flow, &mut rates);
    });
    let heavy = best_us(|| weighted.step());
    let rt = best_us(|| quick.step());
    let peer = best_us(|| straight.step());
    println!(
        "{nodes:>6} {:>8} {name:>5} {ours:>10.2} {with_norm:>10.2} {heavy:>10.2} {rt:>10.2} {peer:>10.2} {:>9.2} {:>8.2}",
        paths.len(),
        peer / ours,
        nodes as f64 * RATE_BPS / 1e12
    );
    peer / ours
}

fn iteration<T: Real>(links: usize, paths: &[Vec<LinkId>], weighted: bool) -> (NedIteration<T, Ned>, Vec<FlowKey>) {
    let mut cluster = Cluster::new(&vec![RATE_BPS; links], 1.0).expect("capacities are sound");
    let weight = |f: usize| if weighted { (1 + f % 16) as f64 } else { 1.0 };
    let flow = |(f, path)| NewFlow { path, ln_gain: weight(f).ln(), demand_bps: f64::INFINITY };
    let flows: Vec<NewFlow<'_>> = paths.iter().map(|p| &p[..]).enumerate().map(flow).collect();
    let keys = cluster.add_all(&flows).expect("paths are sound");
    let mut iteration = NedIteration::new(cluster, Ned::default());
    (0..200).for_each(|_| iteration.step());
    (iteration, keys)
}

/// Iterations per measurement of time if threads are started for each.
const STEPS: usize = 200;

/// The same flows in FlowBlocks on one thread and on two, with and without F-NORM: microseconds per iteration.
fn threads<T: Real>(name: &str, nodes: usize, paths: &[Vec<LinkId>], groups: usize) {
    let tiers = TwoTiers { nodes };
    let partition = Partition::of(&tiers.network().expect("the network is sound"), groups).expect("there are racks");
    let (capacity_bps, flows) = (tiers.capacity_bps(), equal(paths));
    let on = |threads: usize| {
        let made = Parallel::<T>::new(&capacity_bps, 1.0, &flows, &partition, None, threads);
        let mut ned = made.expect("paths are sound");
        let plain = best_us(|| ned.run(STEPS)) / STEPS as f64;
        [plain, best_us(|| ned.run_normalized(STEPS)) / STEPS as f64]
    };
    one_and_two(nodes, paths.len(), name, &(groups * groups).to_string(), on);
}

/// The same flows in one table, whose loops are divided among threads, with and without F-NORM.
fn team<T: Real>(name: &str, nodes: usize, paths: &[Vec<LinkId>]) {
    let (mut ned, mut rates) = (iteration::<T>(TwoTiers { nodes }.links(), paths, false).0, Vec::new());
    let on = |threads: usize| {
        ned.set_threads(threads);
        let plain = best_us(|| ned.step());
        let with_norm = best_us(|| {
            ned.step();
            ned.normalize(Normalizer::Flow, &mut rates);
        });
        [plain, with_norm]
    };
    one_and_two(nodes, paths.len(), name, "none", on);
}

/// Prints a row with the microseconds of an iteration on one thread and on two: without F-NORM, and with it.
fn one_and_two(nodes: usize, flows: usize, name: &str, blocks: &str, mut on: impl FnMut(usize) -> [f64; 2]) {
    let ([one, one_norm], [two, two_norm]) = (on(1), on(2));
    println!(
        "{nodes:>6} {flows:>8} {name:>5} {blocks:>10} {one:>10.2} {one_norm:>10.2} {two:>10.2} {two_norm:>10.2} {:>9.2}",
        one / two
    );
}

/// FlowBlocks across two processes, represented by the two ends of a socket on two threads.
fn across(nodes: usize, paths: &[Vec<LinkId>]) {
    let tiers = TwoTiers { nodes };
    let partition = Partition::of(&tiers.network().expect("the network is sound"), 2).expect("there are racks");
    let (capacity_bps, flows) = (tiers.capacity_bps(), equal(paths));
    let member = |index: usize| {
        let share = ProcessIndex { index, count: 2 };
        Parallel::<f32>::share_of(share, &capacity_bps, 1.0, &flows, &partition, None, 1).expect("paths are sound")
    };
    let (mut first, mut second) = (member(0), member(1));
    let (a, b) = UnixStream::pair().expect("sockets can be had");
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || second.run_across(10 * STEPS, &mut [Some(b), None]).expect("the other end is there"));
        first.run_across(10 * STEPS, &mut [None, Some(a)]).expect("the other end is there");
    });
    let us = start.elapsed().as_secs_f64() * 1e6 / (10 * STEPS) as f64;
    println!(
        "{nodes:>6} {:>8}   f32 over a socket between two: {us:.2} us an iteration, {} bytes each way",
        paths.len(),
        first.bytes_sent()
    );
}

fn equal(paths: &[Vec<LinkId>]) -> Vec<NewFlow<'_>> {
    paths.iter().map(|path| NewFlow { path, ln_gain: 0.0, demand_bps: f64::INFINITY }).collect()
}

/// Steps until F-NORM's rates stay within a thousandth of the optimum, from prices of 1, by gamma; a dash means never
/// in 5000.
fn gammas() {
    const GAMMAS: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5];
    let tiers = [
        serde_json::json!({"kind": "leaf-spine", "leaves": 8, "hosts_per_leaf": 48, "spines": 8,
            "host_rate": RATE_BPS, "spine_rate": RATE_BPS}),
        serde_json::json!({"kind": "fat-tree", "k": 8, "rate": RATE_BPS}),
    ];
    println!("{:>12} {:>8} {}", "network", "flows", GAMMAS.map(|g| format!("{g:>7}")).join(""));
    for value in tiers {
        let (network, _) = generate::network(&value).expect("the network is sound");
        let hosts: Vec<_> = network.hosts().collect();
        for a_host in [1, 8, 64] {
            let mut rng = Stream::new(2, "gamma");
            let mut router = Router::new(&network, 2, false);
            let mut flows = Flows::new();
            for f in 0..a_host * hosts.len() {
                let src = rng.below(hosts.len());
                let dst = (src + 1 + rng.below(hosts.len() - 1)) % hosts.len();
                let path = router.path(hosts[src], hosts[dst], f as u64).expect("there is a path");
                flows.push(Flow::over(f.to_string(), path), &network).expect("the flow is sound");
            }
            let case = Case { network: network.clone(), flows, policy: Policy::AlphaFair { alpha: 1.0 } };
            let want = solve(&case, &SolveOptions::default()).expect("the case is sound").rates_bps;
            let steps = GAMMAS.map(|gamma| match settle(&case, &want, gamma) {
                Some(steps) => format!("{steps:>7}"),
                None => format!("{:>7}", "-"),
            });
            println!("{:>12} {:>8} {}", value["kind"].as_str().unwrap_or(""), case.flows.len(), steps.join(""));
        }
    }
}

fn settle(case: &Case, want: &[f64], gamma: f64) -> Option<usize> {
    let (cluster, keys) = Cluster::<f64>::of(case).expect("the case has prices");
    let mut ned = NedIteration::new(cluster, Ned::with_gamma(gamma));
    let mut since = None;
    for step in 1..=5000 {
        ned.step();
        let rates = ned.rates_bps(Normalizer::Flow, &keys);
        let off = rates.iter().zip(want).map(|(g, w)| (g / w - 1.0).abs()).fold(0.0, f64::max);
        since = if off <= 1e-3 { since.or(Some(step)) } else { None };
        if since.is_some_and(|s| step >= s + 20) {
            return since;
        }
    }
    None
}

/// A million flows of 8192 hosts: time per iteration, and per change of flows.
fn million() {
    let tiers = TwoTiers { nodes: 8160 };
    let paths = tiers.paths(1_000_000, 1);
    let (mut ned, mut keys) = iteration::<f32>(tiers.links(), &paths, false);
    let step = best_us(|| ned.step());
    let mut rates = Vec::new();
    let norm = best_us(|| ned.normalize(Normalizer::Flow, &mut rates));
    let mut turn = 0;
    let churn = best_us(|| {
        let f = turn % keys.len();
        ned.cluster_mut().remove(keys[f]).expect("the flow is there");
        keys[f] = ned.cluster_mut().add(&paths[f], 1.0).expect("the path is sound");
        turn += 7919;
    });
    println!(
        "a million flows, f32: {:.2} ms an iteration, {:.2} ms F-NORM, {churn:.2} us to swap a flow",
        step / 1e3,
        norm / 1e3
    );
}

fn best_us(mut run: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < 0.3 {
        let one = Instant::now();
        run();
        best = best.min(one.elapsed().as_secs_f64() * 1e6);
    }
    best
}

fn peak_memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kb = status.lines().find_map(|l| l.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse::<u64>().ok());
    kb.unwrap_or(0) / 1024
}
