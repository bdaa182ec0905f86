//! Exact solvers on the K = 16 fat tree (6144 directed links) with random ECMP paths: time, and ratio to a scalar
//! loop and to Clarabel. `cargo bench -p subak-solve -- 1000 100000` runs these sizes. `clarabel=10000` sets the
//! largest size for Clarabel, which takes a minute there.
//!
//! The exit status is 1 if an answer is not certified. It is also 1 if max-min of 10,000 flows is less than
//! [`FASTER`] times as fast as the scalar loop. The same holds if it takes more than [`WHOLE`] times as long with its
//! certificate.

use std::process::ExitCode;
use std::time::Instant;
use subak_core::{Case, FlowId, Flows, IdVec, Link, LinkId, Network, Offsets, Policy, rng::Stream};
use subak_solve::{Answer, LiveMaxMin, MaxMin, SolveMethod, SolveOptions, Status, max_min, solve};

const K: usize = 16;
const HALF: usize = K / 2;
const HOSTS: usize = K * HALF * HALF;

/// Required ratio of the scalar loop's time to max-min's.
const FASTER: f64 = 10.0;
/// Largest ratio of the time with certificate to that of max-min alone.
const WHOLE: f64 = 2.5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut sizes: Vec<usize> = arguments.iter().filter_map(|a| a.parse().ok()).collect();
    let clarabel = arguments.iter().find_map(|a| a.strip_prefix("clarabel=")?.parse().ok()).unwrap_or(1000);
    if sizes.is_empty() {
        sizes = vec![10, 1_000, 10_000, 100_000, 1_000_000];
    }
    println!("{:>9} {:>14} {:>12} {:>14} {:>12}  certificate", "flows", "solver", "ms", "peer", "times peer");
    let mut faults = Vec::new();
    for n in sizes {
        let mut case = case(n);
        let (alone_ms, faster) = max_min_rows(n, &case);
        if n == 10_000 && faster < FASTER {
            faults.push(format!(
                "max-min of {n} flows is {faster:.1} times as fast as the straight loop (at least {FASTER})"
            ));
        }
        let whole = solve_best(&case, SolveOptions::default());
        let times = whole.seconds * 1e3 / alone_ms;
        report(n, "max-min, whole", &whole, &format!("{:>14} {times:>12.1}", "times alone"));
        if n == 10_000 && times > WHOLE {
            faults.push(format!(
                "max-min of {n} flows with its certificate takes {times:.1} times as long (at most {WHOLE})"
            ));
        }
        case.policy = Policy::AlphaFair { alpha: 1.0 };
        let own = solve_best(&case, SolveOptions::default());
        let peer = (n <= clarabel).then(|| {
            solve(&case, &SolveOptions { method: SolveMethod::Clarabel, ..SolveOptions::default() })
                .expect("the case is sound")
        });
        let beside = peer.map_or(String::new(), |p| format!("{:>14} {:>12.1}", p.solver, p.seconds / own.seconds));
        report(n, "log utility", &own, &beside);
        for (what, answer) in [("max-min", &whole), ("log utility", &own)] {
            if answer.status != Status::Optimal {
                faults.push(format!("{what} of {n} flows is {}", answer.status.name()));
            }
        }
        if n <= 1000 {
            let answer = solve(&pooled(&case), &SolveOptions { max_iterations: 200, ..SolveOptions::default() });
            report(n, "log, pooled", &answer.expect("the case is sound"), "");
            let fair = Case { policy: Policy::MaxMin, ..pooled(&case) };
            let answer = solve(&fair, &SolveOptions::default()).expect("the case is sound");
            report(n, "max-min, pooled", &answer, "");
            if answer.status != Status::Optimal {
                faults.push(format!("pooled max-min of {n} flows is {}", answer.status.name()));
            }
        }
        repairs(n, &case);
    }
    println!("peak memory {} MB", peak_memory_mb());
    faults.iter().for_each(|fault| println!("fails: {fault}"));
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints the time of max-min and its ratio to the scalar loop. Returns the time of max-min, ms, and the speedup over
/// the scalar loop.
fn max_min_rows(n: usize, case: &Case) -> (f64, f64) {
    let capacity: Vec<f64> = case.network.links().iter().map(|l| l.capacity_bps).collect();
    let rows = max_min::PathRows {
        capacity_bps: &capacity,
        link_ptr: case.flows.link_ptr(),
        links: case.flows.links(),
        weight: case.flows.weight(),
        demand_bps: case.flows.demand_bps(),
        active: None,
    };
    let mut solver = MaxMin::new();
    let (mut rates, mut straight) = (vec![0.0; n], vec![0.0; n]);
    let ours = best_ms(|| {
        solver.solve(&rows, &mut rates, &mut []);
    });
    let peer = best_ms(|| straight_loop(&rows, &mut straight));
    let worst = rates.iter().zip(&straight).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
    println!("{n:>9} {:>14} {ours:>12.3} {:>14} {:>12.1}  apart {worst:.0e}", "max-min", "straight loop", peer / ours);
    (ours, peer / ours)
}

/// Flows of up to two paths: `case` with every second flow replaced by a second path of the previous flow, where the
/// two paths differ.
fn pooled(case: &Case) -> Case {
    let mut flows = Flows::new();
    for f in (0..case.flows.len() - 1).step_by(2) {
        let mut flow = subak_core::Flow::over(f.to_string(), case.flows.links_of(f).to_vec());
        let other = case.flows.links_of(f + 1).to_vec();
        flow.paths.extend((other != flow.paths[0]).then_some(other));
        flows.push(flow, &case.network).expect("paths are sound");
    }
    Case { network: case.network.clone(), flows, policy: case.policy }
}

/// Removes and adds a flow: compares a repair to a tolerance of 1% with an exact solve.
fn repairs(n: usize, case: &Case) {
    let mut live = LiveMaxMin::new(case.network.links().iter().map(|l| l.capacity_bps).collect());
    for f in 0..n {
        live.add(case.flows.links_of(f), 1.0, f64::INFINITY);
    }
    let mut moved = 0;
    let change = |live: &mut LiveMaxMin| {
        live.remove(FlowId(0));
        live.add(case.flows.links_of(0), 1.0, f64::INFINITY);
    };
    live.solve();
    let ours = best_ms(|| {
        change(&mut live);
        moved = live.repair(0.01).flows;
    });
    let peer = best_ms(|| {
        change(&mut live);
        live.solve();
    });
    println!("{n:>9} {:>14} {ours:>12.3} {:>14} {:>12.1}  {moved} flows", "repair to 1%", "exact solve", peer / ours);
}

/// The fastest answer of repeated solves within a second.
fn solve_best(case: &Case, options: SolveOptions) -> Answer {
    let start = Instant::now();
    let run = || solve(case, &options).expect("the case is sound");
    let mut best = run();
    while start.elapsed().as_secs_f64() < 1.0 {
        let next = run();
        if next.seconds < best.seconds {
            best = next;
        }
    }
    best
}

/// Prints one line; `beside` has the two columns of the compared method.
fn report(n: usize, what: &str, answer: &Answer, beside: &str) {
    let c = answer.certificate;
    println!(
        "{n:>9} {what:>14} {:>12.3} {beside:>27}  {} in {}: {:.0e} {:.0e} {:.0e}",
        answer.seconds * 1e3,
        answer.status.name(),
        answer.iterations,
        c.infeasibility,
        c.gap,
        c.stationarity
    );
}

fn best_ms(mut run: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < 1.0 {
        let one = Instant::now();
        run();
        best = best.min(one.elapsed().as_secs_f64() * 1e3);
    }
    best
}

/// Water-filling without a heap: every round scans all links for the lowest water level.
fn straight_loop(rows: &max_min::PathRows, rates: &mut [f64]) {
    let links = rows.capacity_bps.len();
    let mut members = IdVec::<LinkId, _>::filled(Vec::new(), links);
    let mut weight = IdVec::<LinkId, f64>::filled(0.0, links);
    let mut residual = IdVec::<LinkId, f64>::from(rows.capacity_bps.to_vec());
    let offsets = Offsets::from(rows.link_ptr.to_vec());
    let path = |f: usize| &rows.links[offsets.row(f)];
    for f in 0..rates.len() {
        for &l in path(f) {
            members[l].push(f);
            weight[l] += rows.weight[f];
        }
    }
    let mut open = vec![true; rates.len()];
    let level = |l: LinkId, residual: &IdVec<LinkId, f64>, weight: &IdVec<LinkId, f64>| residual[l] / weight[l];
    while let Some(l) = LinkId::first(links)
        .filter(|&l| weight[l] > 1e-9)
        .min_by(|&a, &b| level(a, &residual, &weight).total_cmp(&level(b, &residual, &weight)))
    {
        let at = level(l, &residual, &weight);
        for &f in &members[l] {
            if std::mem::replace(&mut open[f], false) {
                rates[f] = at * rows.weight[f];
                for &m in path(f) {
                    residual[m] -= rates[f];
                    weight[m] -= rows.weight[f];
                }
            }
        }
        weight[l] = 0.0;
    }
}

/// `n` flows between random hosts over random shortest paths.
fn case(n: usize) -> Case {
    let mut network = Network::new();
    for l in 0..6 * HOSTS {
        let link =
            Link { id: l.to_string(), from: None, to: None, capacity_bps: 10e9, delay_ns: 0, buffer_bytes: None };
        network.add(link).expect("ids differ");
    }
    let mut random = Stream::new(1, "bench");
    let (mut link_ptr, mut links) = (vec![0u32], Vec::with_capacity(6 * n));
    for _ in 0..n {
        let from = random.below(HOSTS);
        let to = (from + 1 + random.below(HOSTS - 1)) % HOSTS;
        path(from, to, random.below(HALF), random.below(HALF), &mut links);
        link_ptr.push(links.len() as u32);
    }
    let flows = Flows::from_rows(link_ptr, links, Vec::new(), Vec::new(), &network).expect("paths are sound");
    Case { network, flows, policy: Policy::MaxMin }
}

/// Adds the links of a path: up through aggregation switch `a` of the source's pod and core `c` of the switch's group,
/// then down.
fn path(from: usize, to: usize, a: usize, c: usize, links: &mut Vec<LinkId>) {
    let (edge, pod) = (|h: usize| h / HALF, |h: usize| h / (HALF * HALF));
    let block = |kind: usize, i: usize| LinkId::from_index(kind * HOSTS + i);
    links.push(block(0, from));
    if edge(from) != edge(to) {
        links.push(block(2, edge(from) * HALF + a));
        if pod(from) != pod(to) {
            links.push(block(4, (pod(from) * HALF + a) * HALF + c));
            links.push(block(5, (pod(to) * HALF + a) * HALF + c));
        }
        links.push(block(3, edge(to) * HALF + a));
    }
    links.push(block(1, to));
}

fn peak_memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kb = status.lines().find_map(|l| l.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse::<u64>().ok());
    kb.unwrap_or(0) / 1024
}
