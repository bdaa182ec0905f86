//! NUMFabric, figure 4a: how long flows take to their optimal rates after 100 of them start or stop.
//!
//! 128 hosts, 8 leaves, 4 spines, 10 and 40 Gb/s, 2 us a link; 1000 random paths, 300 to 500 flows at a time, proportional
//! fairness. An event has converged when 95% of the flows are within 10% of the exact rates and stay so for 5 ms; rates
//! are those received, through a filter of 80 us, whose rise of 185 us is subtracted. Capacities for the exact rates are
//! those that acknowledgements in the other direction leave. An event that takes more than 20 ms counts as never.
//!
//! `cargo run --release -p subak-packet --example numfabric_fig4a -- [EVENTS [SCHEME [PARAM=VALUE]...]]`

use std::sync::Arc;
use subak_core::driver::{Driver, FlowPlan, PacketSizes, Route};
use subak_core::rng::Stream;
use subak_core::scheme::Scheme;
use subak_core::{Case, Flow, FlowId, Flows, Network, NodeKind, Ns, Policy, Utility, utility::Urgency};

use subak_packet::Sim;
use subak_schemes::Visitor;

const LEAVES: usize = 8;
const SPINES: usize = 4;
const HOSTS: usize = 16;
const PATHS: usize = 1000;
const EVENT: usize = 100;
const SAMPLE_NS: Ns = 10_000;
const FILTER_NS: f64 = 80_000.0;
const RISE_NS: Ns = 185_000;
const HOLD_NS: Ns = 5_000_000;
const GIVE_UP_NS: Ns = 20_000_000;

struct Fabric {
    network: Network,
    routes: Vec<Route>,
}

fn fabric(rng: &mut Stream) -> Fabric {
    let mut network = Network::new();
    let spines: Vec<_> = (0..SPINES).map(|s| network.node(&format!("spine{s}"), NodeKind::Switch)).collect();
    let (mut access, mut core) = (Vec::new(), Vec::new());
    for leaf in 0..LEAVES {
        let node = network.node(&format!("leaf{leaf}"), NodeKind::Switch);
        let up = |s: &u32| network.connect(node, *s, 40e9, 2000, None).expect("a valid link");
        core.push(spines.iter().map(up).collect::<Vec<_>>());
        for h in 0..HOSTS {
            let host = network.node(&format!("h{}", leaf * HOSTS + h), NodeKind::Host);
            access.push(network.connect(host, node, 10e9, 2000, None).expect("a valid link"));
        }
    }
    let routes = (0..PATHS).map(|_| {
        let src = rng.below(LEAVES * HOSTS);
        let dst = (src + 1 + rng.below(LEAVES * HOSTS - 1)) % (LEAVES * HOSTS);
        let (a, b, s) = (src / HOSTS, dst / HOSTS, rng.below(SPINES));
        let (mut forward, mut back) = (vec![access[src].0], vec![access[dst].0]);
        if a != b {
            forward.extend([core[a][s].0, core[b][s].1]);
            back.extend([core[b][s].0, core[a][s].1]);
        }
        forward.push(access[dst].1);
        back.push(access[src].1);
        Route { forward, back }
    });
    Fabric { routes: routes.collect(), network }
}

/// Exact rates of the flows on `active` paths. What acknowledgements take of a link follows from the rates in the other
/// direction: found by solving twice.
fn exact(fabric: &Fabric, active: &[usize], share: f64) -> Vec<f64> {
    let sizes = PacketSizes::default();
    let ack_share = f64::from(sizes.ack_bytes) / f64::from(sizes.mtu_bytes);
    let mut network = fabric.network.clone();
    let mut rates = Vec::new();
    for _ in 0..3 {
        let mut flows = Flows::new();
        for &p in active {
            flows.push(Flow::over(format!("f{p}"), fabric.routes[p].forward.clone()), &network).expect("sound");
        }
        let case = Case { network: network.clone(), flows, policy: Policy::AlphaFair { alpha: 1.0 } };
        rates = subak_solve::solve(&case, &Default::default()).expect("sound").rates_bps;
        let mut left: Vec<f64> = fabric.network.links().iter().map(|l| l.capacity_bps * share).collect();
        for (&p, rate) in active.iter().zip(&rates) {
            fabric.routes[p].back.iter().for_each(|&l| left[l as usize] -= ack_share * rate);
        }
        for (l, &left) in left.iter().enumerate() {
            network.link_mut(l as u32).capacity_bps = left;
        }
    }
    rates
}

/// Starts or stops flows; the numbers of the paths that are active.
struct Churn {
    active: Vec<usize>,
    flow: Vec<Option<FlowId>>,
}

impl Churn {
    fn turn(&mut self, rng: &mut Stream, sim: &mut Sim<impl Scheme>, fabric: &Fabric) {
        let start = self.active.len() <= 300 || (self.active.len() < 500 && rng.unit() < 0.5);
        for _ in 0..EVENT {
            if start {
                let idle: Vec<usize> = (0..PATHS).filter(|p| self.flow[*p].is_none()).collect();
                let p = idle[rng.below(idle.len())];
                let plan = FlowPlan {
                    routes: vec![fabric.routes[p].clone()],
                    start_ns: sim.now_ns(),
                    stop_ns: None,
                    size_bytes: None,
                    weight: 1.0,
                    demand_bps: f64::INFINITY,
                    utility: Some(Arc::new(Utility::log(1.0))),
                    urgency: Urgency::Constant,
                    controller: None,
                };
                self.flow[p] = Some(sim.add(plan));
                self.active.push(p);
            } else {
                let p = self.active.swap_remove(rng.below(self.active.len()));
                sim.stop(self.flow[p].take().expect("it is active"));
            }
        }
    }
}

/// Rates through the filter.
struct Meter {
    seen: Vec<(u64, f64)>,
}

impl Meter {
    fn sample(&mut self, sim: &dyn Driver, flow: FlowId) -> f64 {
        self.seen.resize(self.seen.len().max(flow as usize + 1), (0, 0.0));
        let (before, rate) = &mut self.seen[flow as usize];
        let now = sim.flow(flow).received_wire_bytes;
        let sample = (now - *before) as f64 * 8e9 / SAMPLE_NS as f64;
        *before = now;
        *rate += (1.0 - (-(SAMPLE_NS as f64) / FILTER_NS).exp()) * (sample - *rate);
        *rate
    }
}

fn converge(sim: &mut dyn Driver, meter: &mut Meter, flows: &[FlowId], want: &[f64]) -> (Option<Ns>, f64) {
    let begin = sim.now_ns();
    let mut since = None;
    loop {
        sim.run_until(sim.now_ns() + SAMPLE_NS);
        let at = sim.now_ns() - begin;
        let near = |(&f, w): (&FlowId, &f64)| usize::from((meter.sample(sim, f) / w - 1.0).abs() <= 0.1);
        let last = flows.iter().zip(want).map(near).sum::<usize>() as f64 / flows.len() as f64;
        since = if last >= 0.95 { since.or(Some(at)) } else { None };
        match since {
            Some(since) if at >= since + HOLD_NS => return (Some(since.saturating_sub(RISE_NS)), last),
            None if at >= GIVE_UP_NS => return (None, last),
            _ => {}
        }
    }
}

/// The experiment, for the scheme that the name stands for.
struct Experiment {
    events: usize,
    /// Of a link, to data.
    share: f64,
}

impl Visitor for Experiment {
    type Out = Vec<Ns>;

    fn visit<S: Scheme>(self, scheme: S) -> Vec<Ns> {
        let mut rng = Stream::new(1, "semi-dynamic");
        let fabric = fabric(&mut rng);
        let mut sim = Sim::new(scheme, &fabric.network, PacketSizes::default(), &[], 1);
        let mut churn = Churn { active: Vec::new(), flow: vec![None; PATHS] };
        let mut meter = Meter { seen: Vec::new() };
        for _ in 0..3 {
            churn.turn(&mut rng, &mut sim, &fabric);
        }
        let mut times = Vec::new();
        for event in 0..=self.events {
            churn.turn(&mut rng, &mut sim, &fabric);
            let want = exact(&fabric, &churn.active, self.share);
            let flows: Vec<FlowId> = churn.active.iter().map(|&p| churn.flow[p].expect("it is active")).collect();
            let (time, last) = converge(&mut sim, &mut meter, &flows, &want);
            eprintln!("event {event}: {} flows, {time:?} ns, {last:.3} within 10% at the end", flows.len());
            if event > 0 {
                times.push(time.unwrap_or(Ns::MAX));
            }
        }
        times
    }
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let events: usize = args.next().and_then(|a| a.parse().ok()).unwrap_or(30);
    let name = args.next().unwrap_or_else(|| "numfabric".into());
    let mut params = serde_json::Map::new();
    for arg in args {
        let (param, value) = arg.split_once('=').expect("a parameter is NAME=VALUE");
        params.insert(param.into(), serde_json::from_str(value).unwrap_or(value.into()));
    }
    let share = if name == "xwi-s-perc" { 0.94 } else { 1.0 };
    let mut times = subak_schemes::with_scheme(&name, &params, Experiment { events, share })
        .unwrap_or_else(|fault| panic!("{fault:?}"));
    times.sort_unstable();
    let never = times.iter().filter(|&&t| t == Ns::MAX).count();
    let at = |q: f64| match times[((times.len() as f64 * q) as usize).min(times.len() - 1)] {
        Ns::MAX => "never".to_string(),
        ns => format!("{} us", ns / 1000),
    };
    println!("{name}: median {}, p95 {} of {} events, {never} never", at(0.5), at(0.95), times.len());
}
