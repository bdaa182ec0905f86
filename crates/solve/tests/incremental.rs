//! Small changes, solved from the last answer.

mod common;

use common::{Net, close};
use subak_core::rng::Stream;
use subak_core::{Flow, Policy};
use subak_solve::{Incremental, Options, Status, solve};

const G: f64 = 1e9;

fn start(policy: Policy) -> Incremental {
    let network = Net::new(&[12.0 * G, 20.0 * G, 30.0 * G]).case(policy).network;
    let mut now = Incremental::new(network, policy);
    now.add(Flow::over("green", vec![0, 2])).unwrap();
    now.add(Flow::over("brown", vec![1, 2])).unwrap();
    now
}

#[test]
fn max_min_changes_and_repairs() {
    let mut now = start(Policy::MaxMin);
    let (_, answer) = now.solve(&Options::default()).unwrap();
    close(&answer.rates_bps, &[12.0 * G, 18.0 * G], 1e-14);
    now.set_capacity("l2", 10.0 * G).unwrap();
    now.set_weight("green", 4.0).unwrap();
    let (rates, _) = now.repair(1e-6).unwrap();
    close(&rates, &[8.0 * G, 2.0 * G], 1e-6);
    now.remove("green").unwrap();
    close(&now.repair(1e-6).unwrap().0, &[10.0 * G], 1e-6);
    now.set_demand("brown", Some(1.0 * G)).unwrap();
    close(&now.solve(&Options::default()).unwrap().1.rates_bps, &[1.0 * G], 1e-14);
}

#[test]
fn prices_carry_over() {
    let mut random = Stream::new(5, "incremental");
    let policy = Policy::AlphaFair { alpha: 1.0 };
    let network = Net::new(&[10.0 * G; 60]).case(policy).network;
    let mut now = Incremental::new(network, policy);
    let path = |random: &mut Stream| {
        let mut path: Vec<u32> = (0..4).map(|_| random.below(60) as u32).collect();
        path.sort_unstable();
        path.dedup();
        path
    };
    for f in 0..300 {
        now.add(Flow::over(format!("f{f}"), path(&mut random))).unwrap();
    }
    now.solve(&Options::default()).unwrap();
    let (mut warm, mut cold) = (0, 0);
    for f in 0..20 {
        now.remove(&format!("f{f}")).unwrap();
        now.add(Flow::over(format!("g{f}"), path(&mut random))).unwrap();
        let (case, answer) = now.solve(&Options::default()).unwrap();
        assert_eq!(answer.status, Status::Optimal, "{:?}", answer.certificate);
        let fresh = solve(&case, &Options::default()).unwrap();
        close(&answer.rates_bps, &fresh.rates_bps, 1e-6);
        warm += answer.iterations;
        cold += fresh.iterations;
    }
    assert!(warm < cold, "{warm} iterations warm, {cold} cold");
}

#[test]
fn what_is_not_there_is_refused() {
    let mut now = start(Policy::MaxMin);
    assert_eq!(now.add(Flow::over("green", vec![0])).unwrap_err().place, "id");
    assert_eq!(now.add(Flow::over("blue", vec![7])).unwrap_err().place, "path[0]");
    assert_eq!(now.remove("blue").unwrap_err().place, "id");
    assert_eq!(now.set_weight("green", -1.0).unwrap_err().place, "weight");
    assert_eq!(now.set_capacity("l9", 1.0).unwrap_err().place, "link");
    assert_eq!(now.set_capacity("l1", f64::NAN).unwrap_err().place, "capacity");
    assert_eq!(start(Policy::AlphaFair { alpha: 1.0 }).repair(0.1).unwrap_err().place, "policy");
}
