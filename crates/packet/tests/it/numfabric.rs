//! Rates under Swift (NUMFabric's transport), NUMFabric, DGD and RCP*, compared with exact rates.

use crate::leaf_spine::*;
use serde_json::json;
use subak_core::backend::{Backend, FlowPlan, PacketSizes};
use subak_core::rng::Stream;
use subak_core::scheme::{FlowInfo, Goal, Params, Port, Scheme, Settles};
use subak_core::{InputError, LinkId, Network, Ns, Policy, SubflowId, Utility};
use subak_schemes::optimizers::given::NoPrice;
use subak_schemes::over::{Feedback, Optimizer, OptimizerSource, Over, Part, Weight};
use subak_schemes::registry;
use subak_schemes::transports::swift::SwiftTransport;

fn deepest_queue(sim: &dyn Backend, network: &Network) -> u64 {
    (0..network.links().len() as u32).map(|l| sim.link(LinkId(l)).queued_packets).max().unwrap()
}

fn random_plans(net: &LeafSpine, seed: u64, flows: usize, weights: &[f64], log: bool) -> Vec<FlowPlan> {
    let mut rng = Stream::new(seed, "flows");
    let one = |_| {
        let weight = weights[rng.below(weights.len())];
        plan(vec![net.one_way(&mut rng)], weight, log.then(|| Utility::log(weight)))
    };
    (0..flows).map(one).collect()
}

#[test]
fn swift_reaches_weighted_max_min_with_short_queues() {
    let net = LeafSpine::new(4, 2, 8, 40e9);
    for seed in 0..6 {
        let plans = random_plans(&net, seed, 40, &[1.0, 2.0, 3.0, 5.0], false);
        let want = exact(&net.network, &plans, Policy::MaxMin);
        let mut sim = start("numfabric-swift", json!({}), &net.network);
        let flows: Vec<_> = plans.into_iter().map(|p| sim.add(p)).collect();
        sim.run_until(MS);
        let got = received_bps(&mut *sim, &flows, 5 * MS);
        assert_eq!(share_within(&got, &want, 0.05), 1.0, "seed {seed}: {got:?} beside {want:?}");
        let queue = deepest_queue(&*sim, &net.network);
        assert!(queue <= 16, "seed {seed}: {queue} packets wait in one queue");
    }
}

/// An optimizer whose weights change at a given time from w to 6 - w.
#[derive(Debug, Clone, Copy)]
struct Turning;
#[derive(Debug, Clone, Copy)]
struct TurningSource {
    before: f64,
    now_ns: Ns,
}
const TURN_NS: Ns = 2 * MS;

impl Optimizer for Turning {
    const PART: Part =
        Part { name: "turning", about: "", paper: "", params: &[], goal: Goal::Own, settles: Settles::AT_ONCE };
    type Wish = Weight;
    type Note = ();
    type Source = TurningSource;
    type Price = NoPrice;
    fn new(_params: &Params) -> Result<Self, InputError> {
        Ok(Turning)
    }
    fn source(&self, flow: &FlowInfo) -> TurningSource {
        TurningSource { before: flow.weight, now_ns: 0 }
    }
    fn price(&self, _port: &Port) -> NoPrice {
        NoPrice
    }
}

impl OptimizerSource<Turning> for TurningSource {
    fn wish(&self, _k: SubflowId) -> Weight {
        Weight(if self.now_ns < TURN_NS { self.before } else { 6.0 - self.before })
    }
    fn on_weight(&mut self, weight: f64, _utility: &std::sync::Arc<Utility>) {
        self.before = weight;
    }
    fn on_feedback(&mut self, _k: SubflowId, feedback: &Feedback) {
        self.now_ns = feedback.now_ns;
    }
}

#[test]
fn swift_follows_a_change_of_weights_within_ten_round_trips() {
    let net = LeafSpine::new(4, 2, 8, 40e9);
    for seed in 0..4 {
        let plans = random_plans(&net, seed, 40, &[1.0, 2.0, 4.0, 5.0], false);
        let mut turned = plans.clone();
        turned.iter_mut().for_each(|p| p.weight = 6.0 - p.weight);
        let want = exact(&net.network, &turned, Policy::MaxMin);
        let before = exact(&net.network, &plans, Policy::MaxMin);
        let params = Params::resolve(registry::find("numfabric-swift").unwrap(), &serde_json::Map::new()).unwrap();
        let scheme = Over::<Turning, SwiftTransport>::new(&params).unwrap();
        let mut sim = subak_packet::Sim::new(scheme, &net.network, PacketSizes::default(), &[], 1);
        let flows: Vec<_> = plans.into_iter().map(|p| sim.add(p)).collect();
        sim.run_until(TURN_NS);
        sim.run_until(TURN_NS + 10 * 19 * US);
        let got = received_bps(&mut sim, &flows, MS);
        let (now, then) = (share_within(&got, &want, 0.05), share_within(&got, &before, 0.05));
        assert!(now >= 0.95 && then < 0.5, "seed {seed}: {now} within 5% of the new rates, {then} of the old");
    }
}

/// Rates measured over `span_ns` from `settle_ns` on, and the exact rates.
fn compare(
    scheme: &str,
    params: serde_json::Value,
    network: &Network,
    plans: Vec<FlowPlan>,
    (settle_ns, span_ns): (Ns, Ns),
) -> (Vec<f64>, Vec<f64>) {
    let want = exact(network, &plans, Policy::AlphaFair { alpha: 1.0 });
    let mut sim = start(scheme, params, network);
    let flows: Vec<_> = plans.into_iter().map(|p| sim.add(p)).collect();
    sim.run_until(settle_ns);
    (received_bps(&mut *sim, &flows, span_ns), want)
}

#[test]
fn every_optimizer_reaches_proportional_fairness_over_its_transport() {
    let net = LeafSpine::new(4, 2, 8, 40e9);
    // s-PERC leaves 10% of each link to control packets, ACKs and headroom.
    for (scheme, share, tolerance) in
        [("numfabric", 1.0, 0.1), ("xwi-s-perc", 0.9, 0.1), ("dgd", 1.0, 0.05), ("rcp-star", 0.98, 0.1)]
    {
        for seed in 0..3 {
            let plans = random_plans(&net, seed, 60, &[1.0, 2.0], true);
            let (got, want) = compare(scheme, json!({}), &net.network, plans, (4 * MS, 4 * MS));
            let want: Vec<f64> = want.iter().map(|w| w * share).collect();
            let near = share_within(&got, &want, tolerance);
            assert!(near >= 0.95, "{scheme}, seed {seed}: {near} within {tolerance}");
        }
    }
}

#[test]
fn unsynchronized_updates_reach_it_too() {
    let net = LeafSpine::new(4, 2, 8, 40e9);
    let plans = random_plans(&net, 1, 60, &[1.0], true);
    let (got, want) = compare("numfabric", json!({"synchronized": false}), &net.network, plans, (4 * MS, 4 * MS));
    assert!(share_within(&got, &want, 0.1) >= 0.95, "{got:?} beside {want:?}");
}

#[test]
fn numfabric_reaches_alpha_fairness_slowed_down_for_extreme_alphas() {
    let net = LeafSpine::new(4, 2, 8, 40e9);
    for alpha in [0.125, 0.25, 0.5, 2.0, 4.0] {
        for seed in 0..2 {
            let mut plans = random_plans(&net, seed, 60, &[1.0, 2.0], true);
            for p in &mut plans {
                p.utility = Some(std::sync::Arc::new(Utility::Power { alpha, ln_gain: alpha * p.weight.ln() }));
            }
            let utilities: Vec<_> = plans.iter().filter_map(|p| p.utility.clone()).collect();
            let time_scale = if (0.5..=2.0).contains(&alpha) { 1.0 } else { 2.0 };
            let params = json!({"time_scale": time_scale});
            let (got, want) = compare("numfabric", params, &net.network, plans, (6 * MS, 4 * MS));
            let near = share_within(&got, &want, 0.1);
            if alpha >= 0.25 {
                assert!(near >= 0.95, "alpha {alpha}, seed {seed}: {near} within 10%");
                continue;
            }
            // At alpha 0.125 most flows have almost no rate, so that relative errors mean little: the sum of
            // utilities is compared.
            let utility = |rates: &[f64]| utilities.iter().zip(rates).map(|(u, &r)| u.value(r.max(1.0))).sum::<f64>();
            let (got, best) = (utility(&got), utility(&want));
            assert!(got >= 0.97 * best, "alpha {alpha}, seed {seed}: a utility of {} of the best", got / best);
        }
    }
}
