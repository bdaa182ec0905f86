//! Flowtune with lost, duplicated and reordered control messages and two restarts of the allocator. Rates must fit
//! the links and converge to those of the exact solver, and every byte must arrive once.

use crate::common::*;
use serde_json::json;
use subak_core::backend::{Backend, FlowPlan, Impairment, Injected, Kinds, Machine, PacketSizes, Route};
use subak_core::rng::Stream;
use subak_core::route::Router;
use subak_core::{Case, Flow, FlowId, Flows, IdVec, LinkId, Network, Ns, Policy};
use subak_solve::{SolveOptions, solve};

const US: Ns = 1000;
const MS: Ns = 1_000_000;
/// Time, ns, after which no endless flow starts or stops.
const CALM_NS: Ns = 3 * MS;
const LEASE_NS: Ns = MS;
/// Time after the end of a lease by which rates must be exact. One RTO more is allowed if the first rate after a
/// restart is lost. While no rates are valid, TCP fills the queues, so that RTTs are up to 300 us.
const SOON_NS: Ns = 500 * US;
const TIMEOUT_NS: Ns = 1000 * US;
const RESERVE: f64 = 0.03;
const SHARE: f64 = 1.0 - 0.01 - RESERVE;
const CTL: Kinds = Kinds { data: false, ack: false, ctl: true };

struct Sending {
    flow: FlowId,
    links: Vec<LinkId>,
    weight: f64,
    start_ns: Ns,
    stop_ns: Option<Ns>,
    size_bytes: Option<u64>,
}

/// Outcome of the run with one seed.
#[derive(Debug, Default, Clone, Copy)]
struct Outcome {
    /// Largest relative error of the rates at the end.
    off: f64,
    /// Longest time for which the sum of the rates exceeded a link's capacity by more than 1%, ns.
    over_ns: Ns,
    /// Largest ratio of the sum of the rates to a link's capacity.
    most_over: f64,
    /// Whether convergence took one RTO longer.
    is_late: bool,
}

fn network(rng: &mut Stream) -> Network {
    let value = json!({"kind": "leaf-spine", "leaves": 2, "hosts_per_leaf": 2 + rng.below(2), "spines": 2,
        "host_rate": "10Gbps", "spine_rate": "10Gbps", "link_delay": "1us", "controller_rate": "40Gbps"});
    subak_core::generate::network(&value).unwrap().0
}

fn faults(rng: &mut Stream) -> Vec<Injected> {
    let mut faults: Vec<_> = [Impairment::Lost, Impairment::Doubled, Impairment::Late(50 * US)]
        .map(|what| impairment(what, 0.01, CTL))
        .into_iter()
        .collect();
    for from_ns in [300 * US, 1800 * US] {
        let at_ns = from_ns + rng.below(1000) as Ns * US;
        faults.push(Injected::Restart { machine: Machine::Controller, at_ns });
    }
    faults
}

/// Adds twelve flows between random hosts: six endless ones that stop, three endless ones that do not, and three
/// with a size.
fn send(sim: &mut dyn Backend, rng: &mut Stream, network: &Network) -> Vec<Sending> {
    let hosts: Vec<_> = network.hosts().collect();
    let mut router = Router::new(network, 0, true);
    let mut one = |k: u64| {
        let (a, b) = (rng.below(hosts.len()), rng.below(hosts.len() - 1));
        let (src, dst) = (hosts[a], hosts[if b >= a { b + 1 } else { b }]);
        let route: Route = router.route(src, dst, k).unwrap();
        let start_ns = rng.below((CALM_NS / US) as usize - 200) as Ns * US;
        let stop_ns = k
            .is_multiple_of(2)
            .then(|| start_ns + 50 * US + rng.below(((CALM_NS - start_ns) / US) as usize - 50) as Ns * US);
        let size_bytes = (k % 4 == 3).then(|| 1 + rng.below(200_000) as u64);
        let (links, weight) = (route.forward.clone(), (1 + rng.below(4)) as f64);
        let flow = sim.add(FlowPlan {
            weight,
            utility: Some(std::sync::Arc::new(subak_core::Utility::log(weight))),
            stop_ns: stop_ns.filter(|_| size_bytes.is_none()),
            ..plan(route, start_ns, size_bytes)
        });
        Sending { flow, links, weight, start_ns, stop_ns: stop_ns.filter(|_| size_bytes.is_none()), size_bytes }
    };
    (0..12).map(&mut one).collect()
}

fn is_open(sim: &dyn Backend, s: &Sending, now_ns: Ns) -> bool {
    s.start_ns < now_ns && s.stop_ns.is_none_or(|stop| now_ns < stop) && sim.flow(s.flow).finished_ns.is_none()
}

/// Time of the last start or end of a flow, ns. A flow with a size ends when it finishes.
fn last_change_ns(sim: &dyn Backend, sendings: &[Sending], now_ns: Ns) -> Ns {
    let sized = sendings.iter().filter(|s| s.size_bytes.is_some());
    sized.map(|s| sim.flow(s.flow).finished_ns.unwrap_or(now_ns)).fold(CALM_NS, Ns::max)
}

fn pace_bps(sim: &dyn Backend, s: &Sending) -> Option<f64> {
    sim.paces(s.flow).first().and_then(|p| p.pace_bps)
}

fn exact(network: &Network, open: &[&Sending]) -> Vec<f64> {
    let mut network = network.clone();
    for l in 0..network.links().len() {
        network.link_mut(LinkId::from_index(l)).capacity_bps *= SHARE;
    }
    let mut flows = Flows::new();
    for s in open {
        flows.push(Flow { weight: s.weight, ..Flow::over(s.flow.to_string(), s.links.clone()) }, &network).unwrap();
    }
    let case = Case { network, flows, policy: Policy::AlphaFair { alpha: 1.0 } };
    solve(&case, &SolveOptions::default()).unwrap().rates_bps
}

/// Largest relative error of a pacing rate; infinite if a flow has none.
fn off(sim: &dyn Backend, sendings: &[Sending], network: &Network, now_ns: Ns) -> f64 {
    let open: Vec<_> = sendings.iter().filter(|s| is_open(sim, s, now_ns)).collect();
    let one = |(s, want): (&&Sending, f64)| pace_bps(sim, s).map_or(f64::INFINITY, |bps| (bps / want - 1.0).abs());
    open.iter().zip(exact(network, &open)).map(one).fold(0.0, f64::max)
}

fn run(seed: u64) -> Outcome {
    let mut rng = Stream::new(seed, "flowtune faults");
    let network = network(&mut rng);
    let faults = faults(&mut rng);
    let params = json!({"reserve": RESERVE, "lease": LEASE_NS as f64 * 1e-9}).as_object().unwrap().clone();
    let mut sim = subak_packet::build("flowtune", &params, &network, PacketSizes::default(), &faults, seed).unwrap();
    place_controller(&mut *sim, &network);
    let sendings = send(&mut *sim, &mut rng, &network);
    let mut outcome = Outcome::default();
    let mut over_since = IdVec::<LinkId, _>::filled(None, network.links().len());
    let mut now_ns = 0;
    loop {
        let calm_ns = now_ns - last_change_ns(&*sim, &sendings, now_ns).min(now_ns);
        if calm_ns >= LEASE_NS + SOON_NS {
            outcome.off = off(&*sim, &sendings, &network, now_ns);
            if outcome.off < 0.02 || calm_ns >= LEASE_NS + SOON_NS + TIMEOUT_NS {
                break;
            }
            outcome.is_late = true;
        }
        now_ns += 10 * US;
        sim.run_until(now_ns);
        let mut load_bps = IdVec::<LinkId, f64>::filled(0.0, network.links().len());
        for s in sendings.iter().filter(|s| is_open(&*sim, s, now_ns)) {
            let bps = pace_bps(&*sim, s).unwrap_or(0.0);
            s.links.iter().for_each(|&l| load_bps[l] += bps);
        }
        for (l, load) in load_bps.iter_enumerated() {
            let over = load / network.links()[l].capacity_bps;
            outcome.most_over = outcome.most_over.max(over);
            let since_ns = *over_since[l].get_or_insert(now_ns);
            if over <= 1.01 {
                over_since[l] = None;
            } else {
                outcome.over_ns = outcome.over_ns.max(now_ns - since_ns);
            }
        }
    }
    let open: Vec<_> = sendings.iter().filter(|s| is_open(&*sim, s, now_ns)).collect();
    // Flows with a size finish.
    open.iter().filter(|s| s.size_bytes.is_none()).for_each(|s| sim.stop_flow(s.flow));
    sim.run_until_done(now_ns + 100 * MS);
    for s in sendings.iter() {
        let view = sim.flow(s.flow);
        match s.size_bytes {
            Some(size) => {
                assert!(view.finished_ns.is_some(), "seed {seed}, flow {}: {view:?}", s.flow);
                assert_eq!(view.received_bytes, size, "seed {seed}, flow {}", s.flow);
            }
            // Packets in flight when the flow is stopped need not have arrived.
            None => assert!(view.received_bytes <= view.sent_bytes, "seed {seed}, flow {}: {view:?}", s.flow),
        }
    }
    outcome
}

/// Number of seeds: the environment variable `SUBAK_FAULT_SEEDS`, by default 1000.
fn seeds() -> u64 {
    std::env::var("SUBAK_FAULT_SEEDS").map_or(1000, |n| n.parse().expect("SUBAK_FAULT_SEEDS is a number"))
}

#[test]
fn rates_fit_the_links_and_end_at_the_optimum_whatever_happens_to_messages() {
    let (mut worst, mut late) = (Outcome::default(), 0);
    let seeds = seeds();
    for seed in 0..seeds {
        let Outcome { off, over_ns, most_over, is_late } = run(seed);
        assert!(off < 0.02, "seed {seed}: {off} off");
        // A lease and an RTT; rates are sampled every 10 us.
        assert!(over_ns <= LEASE_NS + 50 * US, "seed {seed}: a link is over for {over_ns} ns");
        late += usize::from(is_late);
        worst.off = worst.off.max(off);
        worst.over_ns = worst.over_ns.max(over_ns);
        worst.most_over = worst.most_over.max(most_over);
    }
    println!("{worst:?}, {late} took a timeout longer");
    assert!(late <= seeds as usize / 100, "{late} took a timeout longer");
}
