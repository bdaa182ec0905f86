//! A run on several threads has the same results as on one thread: for every scheme, every kind of fault, and every
//! time at which results are read.

use crate::common::schemes;
use crate::leaf_spine::{LeafSpine, MS, US};
use std::fmt::Write;
use subak_core::backend::{Backend, FlowPlan, Impairment, Injected, Kinds, Machine, PacketSizes, Sharing, Spread};
use subak_core::rng::Stream;
use subak_core::{FlowId, LinkId, Network, NodeId};

/// Network, flows and faults of a run.
pub struct ParallelScene {
    pub scheme: &'static str,
    pub net: LeafSpine,
    pub plans: Vec<FlowPlan>,
    pub faults: Vec<Injected>,
    pub seed: u64,
    at_sender: bool,
}

/// Runs `scene` on `threads` threads; returns all results that can be read, at each of several times.
fn seen(scene: &ParallelScene, threads: usize) -> String {
    let ParallelScene { scheme, net, faults, seed, .. } = scene;
    let (params, sizes) = (serde_json::Map::new(), PacketSizes::default());
    seen_of(scene, subak_packet::build_on(threads, scheme, &params, &net.network, sizes, faults, *seed).unwrap())
}

/// Runs `scene` in `sim`; returns all results that can be read, at each of several times.
pub fn seen_of(scene: &ParallelScene, mut sim: Box<dyn Backend>) -> String {
    let ParallelScene { net, plans, at_sender, .. } = scene;
    let network = &net.network;
    if *at_sender {
        sim.complete_at_sender();
    }
    crate::common::place_controller(&mut *sim, network);
    let (now, later) = plans.split_at(plans.len() / 2);
    let mut seen = String::new();
    let mut flows: Vec<FlowId> = now.iter().map(|plan| sim.add(plan.clone())).collect();
    sim.run_until(40 * US);
    look(&*sim, network, &flows, &mut seen);
    // Some flows are added later, change, or stop.
    flows.extend(later.iter().map(|plan| sim.add(plan.clone())));
    sim.set_weight(flows[0], 3.0, None);
    sim.run_until(40 * US + 1);
    sim.stop_flow(flows[1]);
    sim.reroute(flows[2], &[net.route(0, net.hosts() - 1, 1)]);
    look(&*sim, network, &flows, &mut seen);
    sim.run_until_finish(MS);
    look(&*sim, network, &flows, &mut seen);
    sim.restart_peaks();
    sim.run_until(300 * US);
    writeln!(seen, "{:?}", sim.take_finished()).unwrap();
    let mut gone = sim.forget();
    gone.sort_by_key(|&(flow, _)| flow);
    writeln!(seen, "{gone:?}").unwrap();
    sim.run_until_done(3 * MS);
    look(&*sim, network, &flows, &mut seen);
    writeln!(seen, "{:?} {:?}", sim.take_finished(), sim.waits_ns()).unwrap();
    seen
}

fn look(sim: &dyn Backend, network: &Network, flows: &[FlowId], seen: &mut String) {
    writeln!(seen, "{} {} {} {}", sim.now_ns(), sim.open_flows(), sim.events(), sim.packet_hops()).unwrap();
    for &flow in flows {
        writeln!(seen, "{flow:?} {:?} {:?}", sim.flow(flow), sim.paces(flow)).unwrap();
    }
    for link in network.links().ids() {
        writeln!(seen, "{link:?} {:?}", sim.link(link)).unwrap();
    }
    writeln!(seen, "{:?}", sim.deadlock()).unwrap();
}

/// A random scene: flows of all kinds over a leaf-spine network, and faults of every kind if `has_faults`.
pub fn scene(scheme: &'static str, seed: u64, leaves: usize, spines: usize, has_faults: bool) -> ParallelScene {
    let mut rng = Stream::new(seed, "parts");
    let mut net = LeafSpine::new(leaves, spines, 3, [10e9, 25e9, 400e9][rng.below(3)]);
    // Different delays, so that events of links are at different times; or equal delays, so that many are
    // simultaneous.
    if rng.below(2) == 0 {
        for l in net.network.links().ids() {
            net.network.link_mut(l).delay_ns = [300, 1000, 5000, 20_000][rng.below(4)];
        }
    }
    let go_back = subak_schemes::scheme(scheme, &Default::default()).unwrap().rules().recovery.go_back;
    let hosts = net.hosts();
    let mut plans = vec![];
    for k in 0..24 {
        let src = if k == 2 { 0 } else { rng.below(hosts) };
        let dst = if k == 2 { hosts - 1 } else { (src + 1 + rng.below(hosts - 1)) % hosts };
        let route = net.route(src, dst, rng.below(spines));
        let start_ns = [0, rng.below(50_000) as u64, 40 * US][rng.below(3)];
        let size_bytes = [None, Some(0), Some(1000), Some(rng.below(300_000) as u64)][rng.below(4)];
        let stop_ns = (rng.below(4) == 0).then(|| start_ns + rng.below(150_000) as u64);
        let mut plan = FlowPlan { start_ns, stop_ns, size_bytes, ..FlowPlan::new(vec![route]) };
        if rng.below(5) == 0 && spines > 1 && k != 2 {
            plan.routes = (0..spines).map(|spine| net.route(src, dst, spine)).collect();
            let spread = [Spread::Packets, Spread::Flowlets(20 * US)][rng.below(2)];
            plan.spread = Some(spread).filter(|_| !go_back);
            plan.routes.truncate(if go_back { 1 } else { 8 });
        }
        plans.push(plan);
    }
    let kinds = Kinds { data: true, ack: true, ctl: true };
    let links = net.network.links().len();
    let packets = |impairment, probability| Injected::Packets {
        impairment,
        kinds,
        links: None,
        probability,
        from_ns: 0,
        until_ns: u64::MAX,
    };
    let faults = match has_faults {
        false => Vec::new(),
        true => vec![
            packets(Impairment::Lost, 0.01),
            packets(Impairment::Doubled, 0.01),
            packets(Impairment::Late(7000), 0.01),
            Injected::Down { link: LinkId(rng.below(links) as u32), down_ns: 30 * US, up_ns: 90 * US, keeps: false },
            Injected::Down { link: LinkId(rng.below(links) as u32), down_ns: 50 * US, up_ns: 51 * US, keeps: false },
            Injected::Capacity { link: LinkId(rng.below(links) as u32), capacity_bps: 3e9, at_ns: 60 * US },
            Injected::Restart { machine: Machine::Hop(LinkId(rng.below(links) as u32)), at_ns: 45 * US },
            Injected::Restart { machine: Machine::Node(NodeId(rng.below(leaves) as u32)), at_ns: 46 * US },
            Injected::Restart { machine: Machine::Controller, at_ns: 47 * US },
        ],
    };
    ParallelScene { scheme, net, plans, faults, seed, at_sender: rng.below(3) == 0 }
}

fn assert_same(scene: &ParallelScene, threads: &[usize]) {
    let alone = seen(scene, 1);
    for &threads in threads {
        let several = seen(scene, threads);
        let differs = alone.lines().zip(several.lines()).find(|(one, other)| one != other);
        assert_eq!(differs, None, "{}, seed {}, {threads} threads", scene.scheme, scene.seed);
        assert_eq!(alone.len(), several.len());
    }
}

#[test]
fn every_scheme_gives_the_same_bytes_on_any_number_of_threads() {
    for (seed, scheme) in (0..).zip(schemes()) {
        assert_same(&scene(scheme, seed, 4, 2, false), &[2, 3]);
        assert_same(&scene(scheme, seed + 1000, 5, 2, true), &[2, 7]);
    }
}

#[test]
fn what_is_shared_out_is_counted_and_no_clock_has_a_part_in_it() {
    let shared = |threads: usize| {
        let ParallelScene { net, plans, seed, .. } = scene("dctcp", 1, 4, 2, false);
        let (params, sizes) = (serde_json::Map::new(), PacketSizes::default());
        let mut sim = subak_packet::build_on(threads, "dctcp", &params, &net.network, sizes, &[], seed).unwrap();
        plans.into_iter().for_each(|plan| _ = sim.add(plan));
        sim.run_until(300 * US);
        sim.run_until_finish(400 * US);
        (sim.sharing(), sim.events())
    };
    let (sharing, events) = shared(3);
    assert_eq!(sharing.parts, 3);
    assert!(sharing.windows > 10 && sharing.crossed > 100, "{sharing:?}");
    assert!(3 * sharing.longest_events > events && sharing.longest_events < events, "{sharing:?} of {events}");
    assert_eq!(shared(3), (sharing, events));
    let alone = Sharing { parts: 1, windows: 0, longest_events: events, crossed: 0 };
    assert_eq!(shared(1), (alone, events));
}
