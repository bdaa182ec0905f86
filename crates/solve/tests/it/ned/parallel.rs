//! NED on threads computes the same bits as NED on one thread, with any number of threads, on two and three tiers.

use super::{overload, random_datacenter, start, worst};
use subak_core::rng::Stream;
use subak_core::{Case, Flow, Flows, Policy};
use subak_solve::ned::parallel::{Parallel, Partition};
use subak_solve::ned::{Ned, NewFlow, Normalizer, Real};

pub fn parallel<T: Real>(case: &Case, groups: usize, threads: usize) -> Parallel<T> {
    let (alpha, flows) = NewFlow::all_of(case).unwrap();
    let capacity_bps: Vec<f64> = case.network.links().iter().map(|l| l.capacity_bps).collect();
    let partition = Partition::of(&case.network, groups).unwrap();
    Parallel::new(&capacity_bps, alpha, &flows, &partition, None, threads).unwrap()
}

#[test]
fn it_is_the_sequential_answer_to_rounding() {
    for seed in 0..12 {
        let case = random_datacenter(seed, 1.0);
        let (mut ned, keys) = start::<f64, _>(&case, Ned::default());
        (0..40).for_each(|_| ned.step());
        for groups in [1, 2, 3, 4] {
            let mut threads = parallel::<f64>(&case, groups, 2);
            threads.run(40);
            let off = worst(&threads.rates_bps(false), &ned.rates_bps(Normalizer::None, &keys));
            assert!(off < 1e-10, "network {seed} in {groups} groups is off by {off}");
            assert!(overload(&case, &threads.rates_bps(true)) <= 1e-6);
        }
    }
}

/// A case for minimum FCT: each flow's weight is one over its size, and alpha is epsilon.
fn by_completion(seed: u64) -> Case {
    let logarithm = random_datacenter(seed, 1.0);
    let mut rng = Stream::new(seed, "sizes");
    let mut flows = Flows::new();
    for f in 0..logarithm.flows.len() {
        let size_bytes = Some(1000 + rng.below(1_000_000) as u64);
        flows.push(Flow { size_bytes, ..logarithm.flows.get(f) }, &logarithm.network).unwrap();
    }
    Case { flows, policy: Policy::Fct { epsilon: 0.5 }, ..logarithm }
}

#[test]
fn other_utilities_too() {
    for seed in 0..6 {
        for case in [random_datacenter(seed, 0.5), random_datacenter(seed, 2.0), by_completion(seed)] {
            let (mut ned, keys) = start::<f64, _>(&case, Ned::default());
            (0..200).for_each(|_| ned.step());
            let mut threads = parallel::<f64>(&case, 3, 2);
            threads.run(200);
            let off = worst(&threads.rates_bps(false), &ned.rates_bps(Normalizer::None, &keys));
            assert!(off < 1e-8, "network {seed}, {:?}: off by {off}", case.policy);
            assert!(overload(&case, &threads.rates_bps(true)) <= 1e-6);
        }
    }
}

#[test]
fn the_bits_do_not_depend_on_threads() {
    for seed in 0..6 {
        let case = random_datacenter(seed, 1.0);
        let bits = |threads: usize| {
            let mut ned = parallel::<f32>(&case, 4, threads);
            ned.run(25);
            ned.run(5);
            let all: Vec<u64> = ned.prices().into_iter().chain(ned.rates_bps(true)).map(f64::to_bits).collect();
            all
        };
        let one = bits(1);
        for threads in [2, 3, 5, 16, 100] {
            assert_eq!(bits(threads), one, "network {seed} on {threads} threads");
        }
    }
}

#[test]
fn pods_of_a_fat_tree_share_no_link_and_a_chain_is_refused() {
    let fat_tree = random_datacenter(1, 1.0);
    let partition = Partition::of(&fat_tree.network, 4).unwrap();
    assert_eq!(partition.groups(), 4);
    for f in 0..fat_tree.flows.len() {
        assert!(partition.flow_block(fat_tree.flows.links_of(f)).is_ok());
    }
    let plain = crate::common::Net::new(&[1e9]).flow(&[0]).case(subak_core::Policy::MaxMin);
    assert_eq!(Partition::of(&plain.network, 2).unwrap_err().place, "network");
}
