//! Soze's figure 19: convergence time by size of a fat-tree and by number of flows, and the time of exact
//! water-filling on the same problem.

use super::draw::{SIZES, Setup, exact, idle_rtt_ns};
use super::fluid::{EACH, Fluid};
use super::watch::Averages;
use crate::{Context, ExperimentInfo, ExperimentKind, finite};
use serde_json::{Value, json};
use std::time::Instant;
use subak_core::backend::{Backend, FlowPlan, PacketSizes};
use subak_core::rng::Stream;
use subak_core::route::Router;
use subak_core::{FlowId, InputError, NodeId, generate};
use subak_schemes::soze::Virtual;

pub(super) const ENTRY: ExperimentInfo =
    ExperimentInfo { name: "soze-fig19", kind: ExperimentKind::Packets, settings: SETTINGS, compute };

/// `ports`: ports of the largest fat-tree's switches; `flows`: largest number of flows; `packet_ports`: largest
/// fat-tree simulated in packets; `packet_flows`: largest number of flows on the largest fat-tree that are simulated in
/// packets; `flows_by_size`: flows of figure 19a.
const SETTINGS: &[&str] = &["ports", "flows", "packet_ports", "packet_flows", "flows_by_size"];

const WITHIN: f64 = 0.03;
/// Fraction of the flows that must be within the tolerance.
const SHARE: f64 = 0.95;
/// Largest length of a run, RTTs.
const LIMIT: usize = 200;
/// Dwell time of convergence, RTTs.
const HELD: usize = 50;

/// Scheme and backend of a simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Model {
    /// `soze-virtual` as a fluid.
    Fluid,
    /// `soze-virtual` in packets.
    Packets,
    /// `soze` with a window in packets.
    Window,
}

#[derive(Debug, Clone, Copy)]
struct Fig19Job {
    ports: usize,
    flows: usize,
    model: Model,
    by: &'static str,
    seed: u64,
}

/// Result of one run.
#[derive(Debug, Clone, Copy)]
struct Fig19Result {
    settled_rtts: f64,
    near: f64,
    peak_us: f64,
    rtt_us: f64,
    solve_ms: f64,
}

fn compute(context: &mut Context) -> Result<(), InputError> {
    let ports = context.count("ports", 16, 32)?;
    let most = context.count("flows", 1_000_000, 10_000_000)?;
    let packet_ports = context.count("packet_ports", 8, 16)?;
    let packet_flows = context.count("packet_flows", 10_000, 1_000_000)?;
    let by_size = context.count("flows_by_size", 10_000, 1_000_000)?;
    let mut jobs = Vec::new();
    for seed in (0..context.runs() as u64).map(|k| context.seed() + k) {
        let job = |by, ports, flows, model| Fig19Job { by, ports, flows, model, seed };
        for k in (4..=ports).step_by(4) {
            jobs.push(job("size", k, by_size, Model::Fluid));
        }
        for k in (4..=packet_ports.min(ports)).step_by(4) {
            // Ten flows per host; a fat-tree of k-port switches has k^3 / 4 hosts.
            let few = 10 * k * k * k / 4;
            jobs.extend([Model::Packets, Model::Fluid, Model::Window].map(|model| job("few", k, few, model)));
            jobs.push(job("size", k, by_size, Model::Packets));
        }
        for flows in std::iter::successors(Some(10), |n| Some(10 * n)).take_while(|&n| n <= most) {
            jobs.push(job("flows", ports, flows, Model::Fluid));
            if flows <= packet_flows {
                jobs.extend([Model::Packets, Model::Window].map(|model| job("flows", ports, flows, model)));
            }
        }
    }
    // Sequentially, since each run is timed and the largest ones fill the memory.
    let mut seen = Vec::new();
    for (k, job) in jobs.iter().enumerate() {
        seen.push(run(job)?);
        (context.progress)(k + 1, jobs.len());
    }
    let all: Vec<(Fig19Job, Fig19Result)> = jobs.into_iter().zip(seen).collect();
    tell(context, &all);
    let columns = [
        "by",
        "ports",
        "flows",
        "backend",
        "seed",
        "settled_rtts",
        "near",
        "peak_us",
        "rtt_us",
        "solve_ms",
        "settled_ms",
    ];
    context.report.table("scale", &columns, all.iter().map(row).collect());
    Ok(())
}

fn row((job, seen): &(Fig19Job, Fig19Result)) -> Value {
    json!([
        job.by,
        job.ports,
        job.flows,
        match job.model {
            Model::Fluid => "fluid",
            Model::Packets => "packets",
            Model::Window => "packets, soze",
        },
        job.seed,
        finite(seen.settled_rtts),
        seen.near,
        seen.peak_us,
        seen.rtt_us,
        seen.solve_ms,
        finite(seen.settled_rtts * seen.rtt_us / 1e3),
    ])
}

/// Groups in the report: name, the varied quantity, and the model.
const GROUPS: [(&str, &str, Model); 8] = [
    ("size", "size", Model::Fluid),
    ("flows", "flows", Model::Fluid),
    ("few packets", "few", Model::Packets),
    ("few fluid", "few", Model::Fluid),
    ("few window", "few", Model::Window),
    ("size packets", "size", Model::Packets),
    ("flows packets", "flows", Model::Packets),
    ("flows window", "flows", Model::Window),
];

fn tell(context: &mut Context, all: &[(Fig19Job, Fig19Result)]) {
    for (name, by, model) in GROUPS {
        let mine: Vec<&(Fig19Job, Fig19Result)> = all.iter().filter(|(j, _)| j.by == by && j.model == model).collect();
        if mine.is_empty() {
            continue;
        }
        let least_near = mine.iter().map(|(_, s)| s.near).fold(1.0, f64::min);
        context.report.value(&format!("{name} near"), (1e4 * least_near).round() / 100.0);
        let level_of = |job: &Fig19Job| if by == "flows" { job.flows } else { job.ports };
        let levels: std::collections::BTreeSet<usize> = mine.iter().map(|(j, _)| level_of(j)).collect();
        let mut medians = Vec::new();
        for level in levels {
            let times = |get: fn(&Fig19Result) -> f64| {
                mine.iter().filter(|(j, _)| level_of(j) == level).map(|(_, s)| get(s)).collect::<Vec<f64>>()
            };
            let mut rtts = times(|s| s.settled_rtts);
            context.report.sample(&format!("{name} {level} rtts"), "median", "networks", &rtts);
            context.report.sample(&format!("{name} {level} solve"), "median", "networks", &times(|s| s.solve_ms));
            medians.push(crate::quantile(&mut rtts, 0.5));
        }
        let (low, high) = medians.iter().fold((f64::INFINITY, 0.0f64), |(l, h), &x| (l.min(x), h.max(x)));
        context.report.value(&format!("{name} flat"), finite((100.0 * high / low).round() / 100.0));
    }
}

/// A fat-tree as in Soze's section 5, with flows of weights 1 to 4 between random hosts.
fn draw(job: &Fig19Job) -> Result<(Setup, Vec<u64>), InputError> {
    let told = json!({"kind": "fat-tree", "k": job.ports, "rate": "100Gbps", "link_delay": "1us"});
    let (network, _) = generate::network(&told)?;
    let hosts: Vec<NodeId> = network.hosts().collect();
    let mut rng = Stream::new(job.seed, &format!("soze scale {} {}", job.ports, job.flows));
    let mut router = Router::new(&network, job.seed, true);
    let mut plans = Vec::with_capacity(job.flows);
    let mut own_rtt_ns = Vec::with_capacity(job.flows);
    for key in 0..job.flows as u64 {
        let src = rng.below(hosts.len());
        let dst = (src + 1 + rng.below(hosts.len() - 1)) % hosts.len();
        let route = router.route(hosts[src], hosts[dst], key)?;
        own_rtt_ns.push(idle_rtt_ns(&network, &route));
        plans.push(FlowPlan { weight: 1.0 + 3.0 * rng.unit(), ..FlowPlan::new(vec![route]) });
    }
    let rtt_ns = own_rtt_ns.iter().copied().max().unwrap_or(1);
    Ok((Setup { network, plans, rtt_ns }, own_rtt_ns))
}

fn run(job: &Fig19Job) -> Result<Fig19Result, InputError> {
    let (setup, own_rtt_ns) = draw(job)?;
    let share = match job.model {
        Model::Fluid => Virtual::STANDARD.eta,
        // ACKs share links with data: the capacity that they may use is kept free in addition.
        Model::Packets => IN_PACKETS,
        // Its ACKs have one byte.
        Model::Window => 1.0,
    };
    let (want, _) = exact(&setup.network, &setup.plans, share)?;
    let mut seen = match job.model {
        Model::Fluid => as_fluid(&Virtual::STANDARD, &setup, &own_rtt_ns, &want),
        Model::Packets | Model::Window => in_packets(job, &setup, &want)?,
    };
    seen.rtt_us = setup.rtt_ns as f64 / 1e3;
    seen.solve_ms = solve_ms(&setup)?;
    Ok(seen)
}

/// Fraction of a link for data if 64-byte ACKs of 1048-byte packets cross the link too.
const IN_PACKETS: f64 = 0.92;

fn as_fluid(set: &Virtual, setup: &Setup, own_rtt_ns: &[u64], want: &[f64]) -> Fig19Result {
    let mut fluid = Fluid::new(set, setup, own_rtt_ns);
    let (mut settled_rtts, mut near) = (0.0, 0.0);
    for step in 1..=LIMIT * EACH {
        fluid.step();
        near = fluid.near(want, WITHIN);
        let now = step as f64 / EACH as f64;
        if near < SHARE {
            settled_rtts = now;
        } else if now - settled_rtts >= HELD as f64 {
            break;
        }
    }
    let settled_rtts = if near < SHARE { f64::INFINITY } else { settled_rtts };
    Fig19Result { settled_rtts, near, peak_us: fluid.peak_ns / 1e3, rtt_us: 0.0, solve_ms: 0.0 }
}

fn in_packets(job: &Fig19Job, setup: &Setup, want: &[f64]) -> Result<Fig19Result, InputError> {
    let mut params = serde_json::Map::new();
    let (scheme, sizes) = match job.model {
        Model::Window => ("soze", PacketSizes { ack_bytes: 1, ..SIZES }),
        Model::Fluid | Model::Packets => {
            params.insert("headroom".into(), json!(1.0 - IN_PACKETS));
            ("soze-virtual", SIZES)
        }
    };
    let mut sim: Box<dyn Backend> = subak_packet::build(scheme, &params, &setup.network, sizes, &[], job.seed)?;
    let flows: Vec<FlowId> = setup.plans.iter().map(|plan| sim.add(plan.clone())).collect();
    let mut averages = Averages::new(flows.len());
    let (mut settled_rtts, mut near) = (0.0, 0.0);
    for step in 1..=LIMIT * Averages::EACH {
        sim.run_until(step as u64 * setup.rtt_ns / Averages::EACH as u64);
        averages.add(flows.iter().map(|&f| sim.flow(f).assigned_bps).collect());
        let close = averages.now().iter().zip(want).filter(|(got, want)| (*got / *want - 1.0).abs() <= WITHIN).count();
        near = close as f64 / flows.len() as f64;
        let now = step as f64 / Averages::EACH as f64;
        if near < SHARE {
            settled_rtts = now;
        } else if now - settled_rtts >= HELD as f64 {
            break;
        }
    }
    let peak_us = super::watch::peak_us(&*sim, setup);
    let settled_rtts = if near < SHARE { f64::INFINITY } else { settled_rtts };
    Ok(Fig19Result { settled_rtts, near, peak_us, rtt_us: 0.0, solve_ms: 0.0 })
}

/// Time of water-filling on the problem, ms, the shorter of two.
fn solve_ms(setup: &Setup) -> Result<f64, InputError> {
    let mut best = f64::INFINITY;
    let case = super::draw::case(&setup.network, &setup.plans, 1.0)?;
    for _ in 0..2 {
        let start = Instant::now();
        let answer = subak_solve::solve(&case, &subak_solve::SolveOptions::default())?;
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
        drop(answer);
    }
    Ok(best)
}
