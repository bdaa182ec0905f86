//! Tests of equations 6, 7, 22 and 23 of the Soze paper by numbers, and of its lemmas on recurrences.

use super::*;
use proptest::prelude::*;
use subak_core::{Case, Flow, Flows, IdVec, Link, LinkId, Network, Policy};

/// Example of the Soze paper's appendix D: 100 Gb/s and 0.1 Gb/s, with p and k of section 4.
const PAPER: Target = Target { alpha_bps: 100e9, beta_bps: 0.1e9, p_ns: 20e3, k_ns: 3e3 };

fn near(got: f64, want: f64) {
    assert!((got / want - 1.0).abs() < 1e-9, "{got} where {want} is due");
}

#[test]
fn the_target_function_number_by_number() {
    near(PAPER.delay_ns(100e9), 3e3);
    near(PAPER.delay_ns(0.1e9), 23e3);
    near(PAPER.delay_ns(10e9), 3e3 + 20e3 / 3.0);
    near(PAPER.delay_ns(1e9), 3e3 + 40e3 / 3.0);
    near(PAPER.share_bps(23e3), 0.1e9);
    near(PAPER.share_bps(13e3), 100e9 / 1000f64.sqrt());
    // Delays below k mean that the link is not full: they map to alpha, the largest rate/weight.
    near(PAPER.share_bps(0.0), 100e9);
}

#[test]
fn the_update_function_number_by_number() {
    near(PAPER.ratio(1e9, 3e3, 0.25), 100f64.powf(0.25));
    near(PAPER.ratio(10e9, 23e3, 0.5), 0.1);
    near(PAPER.ratio(10e9, 3e3 + 20e3 / 3.0, 0.25), 1.0);
}

#[test]
fn least_integrals() {
    // u tan(u) = 1 at u = 0.8603335890193798.
    near(least_integral(1.0), libm::sin(0.860_333_589_019_379_8) / 0.860_333_589_019_379_8);
    assert!((least_integral(1e-9) - 1.0).abs() < 1e-6);
    assert!((least_integral(1e9) - std::f64::consts::FRAC_2_PI).abs() < 1e-6);
}

/// Soze's lemma 3.1: distance of two rates per weight, in logarithms, after `steps` updates at one delay, relative to
/// their initial distance.
fn apart(m: f64, steps: i32) -> f64 {
    let (mut a, mut b) = (4e9, 5e9);
    let before = libm::log(b / a);
    for _ in 0..steps {
        let delay_ns = PAPER.delay_ns(4.5e9);
        (a, b) = (a * PAPER.ratio(a, delay_ns, m), b * PAPER.ratio(b, delay_ns, m));
    }
    libm::log(b / a).abs() / before
}

#[test]
fn rates_per_weight_come_together_for_m_between_0_and_2_and_not_beyond() {
    for m in [0.01, 0.25, 0.5, 1.0, 1.5, 1.9, 1.99] {
        assert!(apart(m, 2000) < 1e-6, "m = {m}: {}", apart(m, 2000));
    }
    assert!((apart(2.0, 2000) - 1.0).abs() < 1e-6);
    for m in [2.01, 2.1, 2.5] {
        assert!(apart(m, 12) > 1.1, "m = {m}: {}", apart(m, 12));
    }
}

/// Soze's equations 28 and 29, starting 1% off the fixed point: the largest error of the last steps relative to the
/// first, and the number of changes of sign.
fn recurrence(p_over_dt_span: f64) -> (f64, usize) {
    let (dt_ns, weights, capacity_bps) = (1e3, 100.0, 100e9);
    let target = Target { p_ns: p_over_dt_span * dt_ns * PAPER.span(), ..PAPER };
    let end_ns = target.delay_ns(capacity_bps / weights);
    let mut off = vec![0.01 * target.p_ns / target.span()];
    for _ in 0..4000 {
        let delay_ns = end_ns + off.last().unwrap();
        let share_bps = target.share_bps(delay_ns);
        off.push(delay_ns + dt_ns * (weights * share_bps / capacity_bps - 1.0) - end_ns);
    }
    let signs = off.windows(2).filter(|pair| pair[0] * pair[1] < 0.0 && pair[0].abs() > 1e-6).count();
    let last = off[3990..].iter().fold(0.0f64, |worst, x| worst.max(x.abs()));
    (last / off[0].abs(), signs)
}

#[test]
fn delays_settle_above_the_bound_of_lemma_3_2_and_not_below() {
    for p in [0.505, 0.6, 0.9, 1.1, 5.0] {
        assert!(recurrence(p).0 < 1e-3, "p = {p} dt ln(alpha / beta): {:?}", recurrence(p));
    }
    for p in [0.495, 0.4, 0.3] {
        assert!(recurrence(p).0 > 1.0, "p = {p} dt ln(alpha / beta): {:?}", recurrence(p));
    }
    // Soze's appendix D.2: with a p twice as large, delays converge without oscillation.
    assert!(recurrence(1.01).1 == 0 && recurrence(0.9).1 > 0);
}

/// One link whose senders receive the delay after tau, starting 1% off the fixed point: the error after 400 tau
/// relative to the first. p is `integral` times ln(alpha / beta) tau; time is in hundredths of tau.
fn delayed(integral: f64, m: f64) -> f64 {
    const STEPS: usize = 100;
    let (mut share, mut delay) = (0.01f64, vec![0.0; STEPS + 1]);
    let (mut first, mut last) = (0.0f64, 0.0f64);
    for step in 0..400 * STEPS {
        let heard = delay[delay.len() - 1 - STEPS];
        share += (m / STEPS as f64) * (-heard / integral - share);
        delay.push(delay[delay.len() - 1] + (libm::exp(share) - 1.0) / STEPS as f64);
        let worst = if step < 20 * STEPS { &mut first } else { &mut last };
        if !(20 * STEPS..=380 * STEPS).contains(&step) {
            *worst = worst.max(share.abs());
        }
    }
    last / first
}

#[test]
fn with_feedback_delay_the_bound_on_p_is_that_of_the_page() {
    for m in [0.25, 0.5, 1.0, 1.9] {
        let least = least_integral(m);
        assert!(delayed(1.1 * least, m) < 0.1, "m = {m}: {}", delayed(1.1 * least, m));
        assert!(delayed(0.9 * least, m) > 1.0, "m = {m}: {}", delayed(0.9 * least, m));
    }
}

#[test]
fn the_field_holds_delays_to_a_unit_and_no_more_than_it_can() {
    let unit = DelayUnit::of(23e3);
    for delay_ns in [0.0, 1.0, 999.0, 3000.0, 22_999.0, 92_000.0] {
        assert!((f64::from(unit.ns(unit.put(delay_ns))) - delay_ns).abs() <= 1.0);
        assert_eq!(unit.put(delay_ns), unit.put_ns(delay_ns as u32));
    }
    assert_eq!(unit.put(1e9), MaxDelay(u16::MAX));
    assert_eq!(unit.put(-5.0), MaxDelay(0));
    assert!(unit.put(7000.0) > unit.put(6000.0), "a larger delay is the larger field");
}

/// A network of random links and flows, and its exact weighted max-min rates.
fn settled(links: usize, flows: &[(Vec<usize>, f64)], capacities: &[f64]) -> (Case, Vec<f64>) {
    let mut network = Network::new();
    for (l, &capacity_bps) in capacities.iter().take(links).enumerate() {
        let id = format!("l{l}");
        network.add(Link { id, from: None, to: None, capacity_bps, delay_ns: 0, buffer_bytes: None }).unwrap();
    }
    let mut all = Flows::new();
    for (f, (path, weight)) in flows.iter().enumerate() {
        let mut path: Vec<LinkId> = path.iter().map(|l| LinkId::from_index(l % links)).collect();
        path.sort_unstable();
        path.dedup();
        let mut flow = Flow::over(format!("f{f}"), path);
        flow.weight = *weight;
        all.push(flow, &network).unwrap();
    }
    let case = Case { network, flows: all, policy: Policy::MaxMin };
    let rates = subak_solve::solve(&case, &subak_solve::SolveOptions::default()).unwrap().rates_bps;
    (case, rates)
}

proptest! {
    /// Soze's lemma 3.3. At weighted max-min, the delay of a full link is T of the largest rate per weight on it. The
    /// largest delay of a flow's path is then T of the flow's own rate per weight. It occurs at the flow's bottleneck,
    /// and rates no longer change.
    #[test]
    fn the_signal_of_a_settled_network_comes_from_each_flows_bottleneck(
        flows in prop::collection::vec((prop::collection::vec(0usize..12, 1..5), 1.0..16.0f64), 1..40),
        capacities in prop::collection::vec(10e9..100e9f64, 12), links in 1usize..13,
    ) {
        let (case, rates) = settled(links, &flows, &capacities);
        let share = |f: usize| rates[f] / case.flows.weight()[f];
        let mut load = IdVec::<LinkId, f64>::filled(0.0, links);
        let mut largest = IdVec::<LinkId, f64>::filled(0.0, links);
        for (f, rate) in rates.iter().enumerate() {
            for &l in case.flows.links_of(f) {
                load[l] += rate;
                largest[l] = largest[l].max(share(f));
            }
        }
        let full = |l: LinkId| load[l] > (1.0 - 1e-9) * capacities[l.index()];
        let delay_ns = |l: LinkId| if full(l) { PAPER.delay_ns(largest[l]) } else { 0.0 };
        for f in 0..case.flows.len() {
            let heard_ns = case.flows.links_of(f).iter().map(|&l| delay_ns(l)).fold(0.0, f64::max);
            prop_assert!((heard_ns - PAPER.delay_ns(share(f))).abs() < 1e-3);
            prop_assert!((PAPER.ratio(share(f), heard_ns, 0.25) - 1.0).abs() < 1e-6, "a fixed point");
            for &l in case.flows.links_of(f) {
                let bottleneck = full(l) && share(f) >= largest[l] * (1.0 - 1e-9);
                prop_assert_eq!(bottleneck, delay_ns(l) >= heard_ns - 1e-3 && full(l));
            }
        }
    }
}
