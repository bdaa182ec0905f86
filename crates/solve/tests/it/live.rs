//! Flows that start and end: exact solutions, and repairs within a tolerance, compared with solutions from scratch.

use crate::common;
use crate::common::{Net, certified, close};
use proptest::prelude::*;
use subak_core::rng::Stream;
use subak_core::{FlowId, LinkId, Policy};
use subak_solve::LiveMaxMin;

#[test]
fn one_comes_and_one_goes() {
    let mut live = LiveMaxMin::new(vec![12.0, 20.0, 30.0].into());
    let green = live.add(&LinkId::each([0, 2]), 1.0, f64::INFINITY);
    live.solve();
    assert_eq!(live.rate_bps(green), 12.0);
    let brown = live.add(&LinkId::each([1, 2]), 1.0, f64::INFINITY);
    let done = live.repair(1e-9);
    assert!(!done.exact || done.flows <= 2);
    close(&[live.rate_bps(green), live.rate_bps(brown)], &[12.0, 18.0], 1e-9);
    live.set_capacity(LinkId(2), 10.0);
    live.repair(1e-9);
    close(&[live.rate_bps(green), live.rate_bps(brown)], &[5.0, 5.0], 1e-9);
    live.set_weight(green, 4.0);
    live.repair(1e-9);
    close(&[live.rate_bps(green), live.rate_bps(brown)], &[8.0, 2.0], 1e-9);
    live.remove(green);
    live.repair(1e-9);
    assert_eq!((live.rate_bps(green), live.rate_bps(brown)), (0.0, 10.0));
}

#[test]
fn a_repair_moves_few() {
    // 2000 flows over 400 links: a coarse repair of one change solves for a small part of them.
    let mut random = Stream::new(3, "live");
    let mut live = LiveMaxMin::new(vec![10e9; 400].into());
    let add = |live: &mut LiveMaxMin, random: &mut Stream| {
        let mut path: Vec<LinkId> = (0..4).map(|_| LinkId::from_index(random.below(400))).collect();
        path.sort_unstable();
        path.dedup();
        live.add(&path, 1.0, f64::INFINITY)
    };
    let mut flows: Vec<FlowId> = (0..2000).map(|_| add(&mut live, &mut random)).collect();
    live.solve();
    let (mut solved, mut exact) = (0, 0);
    for _ in 0..100 {
        live.remove(flows.swap_remove(random.below(flows.len())));
        flows.push(add(&mut live, &mut random));
        let done = live.repair(0.05);
        solved += done.flows;
        exact += usize::from(done.exact);
        assert!(live.shortfall() <= 0.05, "{done:?} {}", live.shortfall());
    }
    assert!(exact == 0 && solved < 100 * 400, "{solved} flows, {exact} exact");
}

proptest! {
    #![proptest_config(common::config(200))]

    #[test]
    fn repairs_are_within_their_tolerance(net in common::mild_nets(1), seed in 0..1000u64, digits in 1..9i32) {
        let mut random = Stream::new(seed, "changes");
        let mut live = LiveMaxMin::new(net.capacity_bps.clone().into());
        let mut now = Net::new(&net.capacity_bps);
        let mut keys = Vec::new();
        let tolerance = 10f64.powi(-digits);
        for flow in &net.flows {
            keys.push(live.add(&flow.paths[0], flow.weight, flow.demand_bps.unwrap_or(f64::INFINITY)));
            now.flows.push(flow.clone());
            if random.unit() < 0.3 {
                let gone = random.below(keys.len());
                live.remove(keys.swap_remove(gone));
                now.flows.swap_remove(gone);
            }
            if random.unit() < 0.2 {
                let l = random.below(now.capacity_bps.len());
                now.capacity_bps[l] *= 0.5 + random.unit();
                live.set_capacity(LinkId(l as u32), now.capacity_bps[l]);
            }
            live.repair(tolerance);
            prop_assert!(live.shortfall() <= tolerance * (1.0 + 1e-9), "{}", live.shortfall());
            for (load, capacity) in live.load_bps().iter().zip(&now.capacity_bps) {
                prop_assert!(*load <= capacity * (1.0 + 1e-9));
            }
        }
        live.solve();
        let exact = certified(&now.case(Policy::MaxMin));
        let rates: Vec<f64> = keys.iter().map(|&k| live.rate_bps(k)).collect();
        close(&rates, &exact.rates_bps, 1e-9);
    }
}
