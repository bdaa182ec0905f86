//! Packets whose departure time is computed on arrival leave at the same time as with an event per departure. A
//! packet watcher causes such events, and must not change results.

use crate::leaf_spine::US;
use crate::parts::{ParallelScene, scene, seen_of};
use proptest::prelude::*;
use subak_core::backend::{Backend, PacketSizes, TraceRecord, Watcher};
use subak_core::{FlowId, LinkId, Ns};

/// A packet watcher that ignores all packets.
struct Blind;

impl Watcher for Blind {
    fn wants(&self, _at_ns: Ns, _flow: Option<FlowId>, _link: LinkId) -> bool {
        false
    }
    fn see(&mut self, _sighting: &TraceRecord) {}
}

fn build(scene: &ParallelScene, threads: usize) -> Box<dyn Backend> {
    let (params, sizes) = (serde_json::Map::new(), PacketSizes::default());
    subak_packet::build_on(threads, scene.scheme, &params, &scene.net.network, sizes, &[], scene.seed).unwrap()
}

fn assert_same(scene: &ParallelScene) {
    let mut watched = build(scene, 1);
    watched.watch(Box::new(Blind));
    let woken = seen_of(scene, watched);
    for threads in [1, 2] {
        let fixed = seen_of(scene, build(scene, threads));
        let differs = woken.lines().zip(fixed.lines()).find(|(one, other)| one != other);
        assert_eq!(differs, None, "{}, seed {}, {threads} threads", scene.scheme, scene.seed);
        assert_eq!(woken.len(), fixed.len());
    }
}

#[test]
fn nothing_that_can_be_seen_differs() {
    for seed in 0..40 {
        for scheme in ["dctcp", "reno", "google-swift", "flowtune"] {
            assert_same(&scene(scheme, seed, 3, 2, false));
        }
    }
}

#[test]
fn nor_where_packets_take_less_than_a_nanosecond() {
    for seed in 0..18 {
        let mut scene = scene("dctcp", seed, 3, 2, false);
        for link in scene.net.network.links().ids() {
            let link = scene.net.network.link_mut(link);
            (link.capacity_bps, link.delay_ns) =
                (link.capacity_bps * [1.0, 400.0][seed as usize % 2], [1, 0, 700][seed as usize % 3]);
        }
        assert_same(&scene);
    }
}

proptest! {
    /// A watcher does not change results that are read at any time, even within a nanosecond in which a flow
    /// finishes.
    #[test]
    fn nor_at_any_time(seed in 0u64..1000, times in prop::collection::vec(0u64..200, 1..60)) {
        let scene = scene(["dctcp", "reno"][seed as usize % 2], seed, 2, 1, false);
        let mut woken = build(&scene, 1);
        woken.watch(Box::new(Blind));
        let mut fixed = build(&scene, 1);
        for plan in &scene.plans {
            woken.add(plan.clone());
            fixed.add(plan.clone());
        }
        let mut at_ns = 0;
        for step in times {
            at_ns += step * US / 10;
            for sim in [&mut woken, &mut fixed] {
                if step % 3 == 0 { sim.run_until_finish(at_ns) } else { sim.run_until(at_ns) }
            }
            prop_assert_eq!(woken.take_finished(), fixed.take_finished());
            prop_assert_eq!((woken.events(), woken.packet_hops()), (fixed.events(), fixed.packet_hops()));
            for link in scene.net.network.links().ids() {
                prop_assert_eq!(woken.link(link), fixed.link(link));
            }
        }
    }
}
