//! PFC and the schemes that require it. No packet is dropped, pauses spread to flows outside the congestion, and a
//! deadlock of pauses is detected. HPCC, DCQCN and TIMELY converge to the values of their papers.

use crate::common::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use subak_core::backend::{Backend, Kinds, PacketSizes, Route};
use subak_core::route::Router;
use subak_core::{FlowId, LinkId, Network, NodeKind};

const US: u64 = 1000;
const MS: u64 = 1_000_000;

fn with(scheme: &str, params: &Value, network: &Network) -> Box<dyn Backend> {
    let params = params.as_object().unwrap();
    subak_packet::build(scheme, params, network, PacketSizes::default(), &[], 1).unwrap()
}

/// Parameters of DCQCN without ECN marks: only pauses slow the senders down.
fn unmarked(pfc: &str, threshold_bytes: u64) -> Value {
    json!({"k_min": 1e12, "k_max": 1e12, "pfc": pfc, "pfc_threshold": threshold_bytes})
}

fn dropped(sim: &dyn Backend, network: &Network) -> u64 {
    network.links().ids().map(|l| sim.link(l).dropped_packets).sum()
}

/// Mean received rates of flows on the wire over the next `span_ns`, Gb/s.
fn rates_gbps(sim: &mut dyn Backend, flows: &[FlowId], span_ns: u64) -> Vec<f64> {
    let wire = |sim: &dyn Backend| flows.iter().map(|&f| sim.flow(f).received_wire_bytes).collect::<Vec<_>>();
    let before = wire(sim);
    sim.run_until(sim.now_ns() + span_ns);
    wire(sim).iter().zip(before).map(|(now, then)| (now - then) as f64 * 8.0 / span_ns as f64).collect()
}

/// Jain's fairness index of `rates`.
fn fairness(rates: &[f64]) -> f64 {
    let (sum, squares): (f64, f64) = (rates.iter().sum(), rates.iter().map(|r| r * r).sum());
    sum * sum / (rates.len() as f64 * squares)
}

#[test]
fn hpcc_holds_an_incast_at_eta_with_short_queues() {
    // At 25 and 10 Gb/s the BDP is 10 and 5 packets. 16 flows then have less than a packet each, one queued packet is a
    // large part of HPCC's utilization estimate U, and HPCC stays at a load of 0.87 and 0.82. These cases are not
    // tested.
    for (senders, rate_gbps, max_stage) in
        [(2, 100.0, 5), (16, 100.0, 5), (2, 25.0, 5), (2, 10.0, 5), (2, 100.0, 0), (16, 100.0, 0)]
    {
        let network = star(senders + 1, rate_gbps * 1e9, 1000);
        let mut sim = with("hpcc", &json!({"max_stage": max_stage}), &network);
        let flows: Vec<_> = (1..=senders).map(|h| sim.add(plan(over_star(h, 0), 0, None))).collect();
        sim.run_until(4 * MS);
        sim.restart_peaks();
        let rates = rates_gbps(&mut *sim, &flows, 4 * MS);
        let load = rates.iter().sum::<f64>() / rate_gbps;
        // Base RTT of a packet on the star: two links out, two back.
        let rtt_ns = 4000.0 + 2.0 * (1500.0 + 64.0) * 8.0 / rate_gbps;
        let peak_bdp = sim.link(LinkId(1)).peak_queued_bytes as f64 * 8.0 / (rate_gbps * rtt_ns);
        println!(
            "hpcc {max_stage} {senders}:1 at {rate_gbps}: load {load:.4}, peak {peak_bdp:.3} BDP, fair {:.4}",
            fairness(&rates)
        );
        assert!((load / 0.95 - 1.0).abs() < 0.03, "{senders} to 1 at {rate_gbps} Gb/s: {load}");
        assert!(peak_bdp < 1.0, "{senders} to 1 at {rate_gbps} Gb/s: a queue of {peak_bdp} BDP");
        assert_eq!(dropped(&*sim, &network), 0);
    }
}

#[test]
fn nothing_is_dropped_in_an_incast_of_100_under_pfc() {
    for (scheme, given) in [
        ("hpcc", json!({})),
        ("dcqcn", json!({})),
        ("timely", json!({})),
        ("timely", json!({"patched": true})),
        ("dcqcn", unmarked("static", 20_000)),
        ("dctcp", json!({"pfc": "static", "pfc_threshold": 6000})),
        ("hpcc", json!({"pfc": "static", "pfc_threshold": 30_000, "pfc_buffer": 8_000_000})),
    ] {
        let mut network = star(101, 100e9, 1000);
        // Buffers of 40 KB per port fill, so that drops are avoided only by pauses.
        (0..202).for_each(|l| network.link_mut(LinkId(l)).buffer_bytes = Some(40_000));
        let mut sim = with(scheme, &given, &network);
        let flows: Vec<_> = (1..=100).map(|h| sim.add(plan(over_star(h, 0), 0, Some(500_000)))).collect();
        sim.run_until_done(200 * MS);
        let views: Vec<_> = flows.iter().map(|&f| sim.flow(f)).collect();
        assert!(views.iter().all(|v| v.finished_ns.is_some()), "{scheme} {given}");
        let again: u64 = views.iter().map(|v| v.retransmissions).sum();
        let pauses: u64 = (0..202).map(|l| sim.link(LinkId(l)).pauses).sum();
        let last = views.iter().filter_map(|v| v.finished_ns).max().unwrap();
        println!("{scheme} {given}: {pauses} pauses, all done after {} us", last / US);
        assert_eq!(dropped(&*sim, &network), 0, "{scheme} {given}");
        // Under DCTCP a pause may outlast the PTO of a flow's first RTTs: its probe is spurious.
        assert!(again <= if scheme == "dctcp" { 5 } else { 0 }, "{scheme} {given}: {again}");
        assert!(pauses > 0, "{scheme} {given}: nothing was paused");
        assert!(sim.deadlock().is_empty());
    }
}

/// Transmission times rounded down to whole nanoseconds make links faster than configured: by a twentieth for 1048
/// bytes at 400 Gb/s, by half for 99 bytes. The bytes that arrive after a pause grow in the same proportion, and must
/// not be dropped.
#[test]
fn nothing_is_dropped_where_links_are_faster_than_they_say() {
    let sizes = PacketSizes { mtu_bytes: 1048, header_bytes: 48, ack_bytes: 60 };
    for (gbps, flows, bytes) in [(100.0, 1, 2_000_000), (400.0, 1, 4_000_000), (400.0, 4000, 51), (800.0, 4000, 51)] {
        let network = star(9, gbps * 1e9, 1500);
        let mut given = unmarked("static", 20_000);
        given["clock"] = json!("whole-ns");
        let params = given.as_object().unwrap();
        let mut sim = subak_packet::build("dcqcn", params, &network, sizes, &[], 1).unwrap();
        let flows: Vec<_> = (1..=8)
            .flat_map(|h| std::iter::repeat_n(h, flows))
            .map(|h| sim.add(plan(over_star(h, 0), 0, Some(bytes))))
            .collect();
        sim.run_until_done(100 * MS);
        assert!(flows.iter().all(|&f| sim.flow(f).finished_ns.is_some()), "{gbps} Gb/s, {bytes} bytes");
        let pauses: u64 = network.links().ids().map(|l| sim.link(l).pauses).sum();
        assert!(pauses > 0, "{gbps} Gb/s, {bytes} bytes: nothing was paused");
        assert_eq!(dropped(&*sim, &network), 0, "{gbps} Gb/s, {bytes} bytes");
    }
}

#[test]
fn without_pfc_the_same_incast_drops_and_both_repairs_deliver() {
    for recovery in ["go-back-n", "selective"] {
        let mut network = star(101, 100e9, 1000);
        network.link_mut(LinkId(1)).buffer_bytes = Some(400_000);
        let given = json!({"pfc": "off", "recovery": recovery, "rto_min": "1ms"});
        let mut sim = with("dcqcn", &given, &network);
        let flows: Vec<_> = (1..=100).map(|h| sim.add(plan(over_star(h, 0), 0, Some(500_000)))).collect();
        // With go-back-N at line rate into a full buffer, flows need many RTOs.
        sim.run_until_done(10_000 * MS);
        let last = flows.iter().filter_map(|&f| sim.flow(f).finished_ns).max().unwrap_or_default();
        let again: u64 = flows.iter().map(|&f| sim.flow(f).retransmissions).sum();
        println!(
            "{recovery} without pfc: last at {} us, {again} again, {} dropped",
            last / US,
            dropped(&*sim, &network)
        );
        assert!(flows.iter().all(|&f| sim.flow(f).received_bytes == 500_000), "{recovery}");
        assert!(dropped(&*sim, &network) > 100, "{recovery}");
        assert!((0..202).all(|l| sim.link(LinkId(l)).pauses == 0), "{recovery}");
    }
}

#[test]
fn go_back_n_sends_again_what_had_arrived_and_selective_repair_does_not() {
    let again = |recovery: &str| {
        let faults = [lose(0.002, Kinds { data: true, ack: false, ctl: false })];
        let given = json!({"recovery": recovery});
        let (params, network) = (given.as_object().unwrap(), star(2, 100e9, 5000));
        let mut sim = subak_packet::build("hpcc", params, &network, PacketSizes::default(), &faults, 4).unwrap();
        let flow = sim.add(plan(over_star(0, 1), 0, Some(20_000_000)));
        sim.run_until_done(1000 * MS);
        let view = sim.flow(flow);
        assert_eq!((view.received_bytes, view.finished_ns.is_some()), (20_000_000, true), "{recovery}");
        assert!(view.drops > 10, "{recovery}: the fault must bite");
        (view.retransmissions, view.drops, view.duplicate_bytes)
    };
    let (back, back_drops, back_bytes) = again("go-back-n");
    let (only, only_drops, only_bytes) = again("selective");
    println!("go-back-n {back} again for {back_drops}, selective {only} for {only_drops}");
    // In an RTT of 20 us about 170 packets are in flight.
    assert!(back > 50 * back_drops && back_bytes > 1_000_000, "{back} for {back_drops} drops");
    assert!(only <= only_drops + 3 && only_bytes < 10_000, "{only} for {only_drops} drops");
}

/// Four senders and the sender of a victim flow (the fifth) at one switch, two receivers at another. Link 2k is the
/// uplink of sender k. Link 10 joins the switches; 12 leads to the congested receiver, 14 to the victim's receiver.
fn chain_with_a_victim() -> (Network, Vec<Route>) {
    let mut network = Network::new();
    let [near, far] = ["near", "far"].map(|name| network.node(name, NodeKind::Switch));
    for k in 0..5 {
        let host = network.node(&format!("h{k}"), NodeKind::Host);
        network.connect(host, near, 10e9, 1000, None).unwrap();
    }
    network.connect(near, far, 100e9, 1000, None).unwrap();
    for name in ["crowded", "calm"] {
        let host = network.node(name, NodeKind::Host);
        network.connect(far, host, 10e9, 1000, None).unwrap();
    }
    let route = |k: u32, last: u32| route([2 * k, 10, last], [last + 1, 11, 2 * k + 1]);
    let routes = (0..4).map(|k| route(k, 12)).chain([route(4, 14)]).collect();
    (network, routes)
}

#[test]
fn pauses_spread_along_a_chain_to_a_flow_that_is_not_to_blame() {
    let victim = |scheme: &str, given: &Value| {
        let (network, routes) = chain_with_a_victim();
        let mut sim = with(scheme, given, &network);
        let flows: Vec<_> = routes.into_iter().map(|r| sim.add(plan(r, 0, None))).collect();
        sim.run_until(5 * MS);
        let rates = rates_gbps(&mut *sim, &flows, 5 * MS);
        let paused = |l: LinkId| sim.link(l).pauses > 0;
        assert_eq!(sim.link(LinkId(14)).pauses + sim.link(LinkId(12)).pauses, 0, "receivers pause nobody");
        assert!(sim.deadlock().is_empty());
        (
            rates[4],
            paused(LinkId(10)),
            (0..5).map(|k| paused(LinkId(2 * k))).collect::<Vec<_>>(),
            sim.link(LinkId(10)).paused_ns,
        )
    };
    // Only pauses slow the senders: the far switch pauses the link between the switches, then the near switch pauses
    // all five senders. All five flows get equal rates, and four of them share 10 Gb/s: the victim gets 2.5 Gb/s.
    let (rate, trunk, senders, paused_ns) = victim("dcqcn", &unmarked("static", 30_000));
    println!("victim under pauses alone: {rate:.2} Gb/s, trunk paused {paused_ns} ns");
    assert!(trunk && senders.iter().all(|&s| s), "{senders:?}");
    assert!((rate - 2.5).abs() < 0.25, "{rate}");
    // The link carries 12.5 of 100 Gb/s, and is paused for most of the 10 ms.
    assert!((8 * MS..10 * MS).contains(&paused_ns), "{paused_ns}");
    // Without pauses the four senders lose packets, and the victim sends at line rate.
    let (rate, trunk, ..) = victim("dcqcn", &json!({"k_min": 1e12, "k_max": 1e12, "pfc": "off"}));
    assert!(!trunk && rate > 9.9, "{rate}");
    // HPCC keeps queues short: after convergence there are no pauses, and the victim has the fraction eta of its line
    // rate.
    let (rate, ..) = victim("hpcc", &json!({}));
    assert!((rate / 9.5 - 1.0).abs() < 0.03, "{rate}");
}

/// Three switches in a ring with one host each. Link 2k is the uplink of host k; link 6 + 2k leads from switch k to the
/// next.
fn ring() -> (Network, Vec<Route>) {
    let mut network = Network::new();
    let switches = ["a", "b", "c"].map(|name| network.node(name, NodeKind::Switch));
    for (k, &switch) in switches.iter().enumerate() {
        let host = network.node(&format!("h{k}"), NodeKind::Host);
        network.connect(host, switch, 10e9, 1000, None).unwrap();
    }
    for k in 0..3 {
        network.connect(switches[k], switches[(k + 1) % 3], 10e9, 1000, None).unwrap();
    }
    // Each host sends to the host two switches further, all in the same direction.
    let route = |k: u32| {
        let (next, last) = ((k + 1) % 3, (k + 2) % 3);
        let forward = [2 * k, 6 + 2 * k, 6 + 2 * next, 2 * last + 1];
        let back = [2 * last, 7 + 2 * next, 7 + 2 * k, 2 * k + 1];
        route(forward, back)
    };
    (network, (0..3).map(route).collect())
}

#[test]
fn a_circle_of_pauses_is_named() {
    for (given, is_stuck) in [(unmarked("static", 15_000), true), (json!({}), false)] {
        let (network, routes) = ring();
        let mut sim = with("dcqcn", &given, &network);
        let flows: Vec<_> = routes.into_iter().map(|r| sim.add(plan(r, 0, Some(3_000_000)))).collect();
        sim.run_until_done(50 * MS);
        let circle = sim.deadlock();
        let done = flows.iter().filter(|&&f| sim.flow(f).finished_ns.is_some()).count();
        println!("{given}: {circle:?}, {done} done");
        if is_stuck {
            assert_eq!(circle.iter().map(|c| c.0).collect::<Vec<_>>(), [6, 8, 10]);
            assert!(circle.iter().all(|c| c.1 > 0 && c.1 < 10 * MS) && done == 0, "{circle:?}");
        } else {
            // With ECN marks, queues stay too short for pauses.
            assert_eq!((circle.len(), done), (0, 3));
        }
    }
}

#[test]
fn a_buffer_that_headroom_would_fill_is_refused() {
    let given = json!({"pfc_buffer": "20KB"});
    let network = star(4, 100e9, 1000);
    let refused = subak_packet::build("dcqcn", given.as_object().unwrap(), &network, PacketSizes::default(), &[], 1);
    let fault = refused.err().unwrap();
    assert_eq!(fault.place, "params.pfc_buffer");
    assert!(fault.what.contains("hub") && fault.hint.contains("at least"), "{fault}");
}

#[test]
fn a_resume_that_a_broken_link_lost_is_said_again() {
    use subak_core::backend::Injected;
    // The reverse link of the link between the switches fails three times: pause frames are lost, and so is the last
    // resume.
    let (network, routes) = chain_with_a_victim();
    let faults =
        [1, 2, 3].map(|k| Injected::Down { link: LinkId(11), down_ns: k * MS, up_ns: k * MS + 700 * US, keeps: false });
    let given = unmarked("static", 30_000);
    let mut sim =
        subak_packet::build("dcqcn", given.as_object().unwrap(), &network, PacketSizes::default(), &faults, 1).unwrap();
    let flows: Vec<_> = routes.into_iter().map(|r| sim.add(plan(r, 0, Some(2_000_000)))).collect();
    sim.run_until_done(500 * MS);
    assert!(flows.iter().all(|&f| sim.flow(f).finished_ns.is_some_and(|at| at < 60 * MS)));
}

/// Runs two TIMELY flows, the second `late_ns` after the first; returns their rates and the queue length at the end.
fn timely_pair(given: &Value, late_ns: u64) -> (Vec<f64>, f64) {
    let network = star(3, 10e9, 1000);
    let mut sim = with("timely", given, &network);
    let flows = [sim.add(plan(over_star(1, 0), 0, None)), sim.add(plan(over_star(2, 0), late_ns, None))];
    sim.run_until(200 * MS);
    let (mut queued, mut rates) = (0.0, vec![0.0; 2]);
    for _ in 0..1000 {
        let now = rates_gbps(&mut *sim, &flows, 50 * US);
        rates.iter_mut().zip(now).for_each(|(sum, r)| *sum += r / 1000.0);
        queued += sim.link(LinkId(1)).queued_bytes as f64 / 1000.0;
    }
    (rates, queued)
}

#[test]
fn patched_timely_comes_to_its_fixed_point_and_plain_timely_has_none() {
    for late_ns in [0, 5 * MS] {
        let (rates, queued) = timely_pair(&json!({"patched": true}), late_ns);
        // The RTT is 50 us (1 + N delta / (beta C)) = 62.5 us with two flows, of which 6.5 us are the base RTT.
        let expected = (62.5e-6 - 6.5e-6) * 10e9 / 8.0;
        println!("patched, {late_ns} late: {rates:?}, queue {queued:.0} of {expected:.0}");
        assert!(fairness(&rates) > 0.99 && rates.iter().sum::<f64>() > 9.9, "{rates:?}");
        assert!((queued / expected - 1.0).abs() < 0.1, "{queued} of {expected}");
    }
    let (rates, queued) = timely_pair(&json!({}), 5 * MS);
    println!("plain: {rates:?}, queue {queued:.0}");
    assert!(rates.iter().sum::<f64>() > 8.0, "{rates:?}");
    // The later flow keeps the larger rate, since every division of the link is a fixed point.
    assert!(fairness(&rates) < 0.95, "{rates:?}");
}

#[test]
fn dcqcn_shares_a_link() {
    let network = star(5, 40e9, 1000);
    let mut sim = with("dcqcn", &json!({}), &network);
    let flows: Vec<_> = (1..=4).map(|h| sim.add(plan(over_star(h, 0), 0, None))).collect();
    sim.run_until(100 * MS);
    let rates = rates_gbps(&mut *sim, &flows, 50 * MS);
    println!("dcqcn: {rates:?}");
    assert!(rates.iter().sum::<f64>() > 0.9 * 40.0 && fairness(&rates) > 0.95, "{rates:?}");
    assert_eq!(dropped(&*sim, &network), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// For random rates, delays, thresholds and buffers, headroom is enough: nothing is dropped, and every byte
    /// arrives.
    #[test]
    fn headroom_is_enough(
        seed in any::<u64>(),
        rates in prop::collection::vec(1u32..40, 7),
        delays in prop::collection::vec(1u64..20_000, 7),
        dynamic in any::<bool>(), threshold in 1u64..60_000, alpha in 0.01f64..8.0, buffer in 3_000u64..100_000,
        pauses_late in any::<bool>(),
    ) {
        let mut network = Network::new();
        let [near, far] = ["near", "far"].map(|name| network.node(name, NodeKind::Switch));
        let connect = |network: &mut Network, a, b, k: usize| {
            let (there, back) = network.connect(a, b, f64::from(rates[k]) * 1e9, delays[k], None).unwrap();
            [there, back].into_iter().for_each(|l| network.link_mut(l).buffer_bytes = Some(buffer));
        };
        for k in 0..5 {
            let host = network.node(&format!("h{k}"), NodeKind::Host);
            connect(&mut network, host, near, k);
        }
        connect(&mut network, near, far, 5);
        let receiver = network.node("receiver", NodeKind::Host);
        connect(&mut network, far, receiver, 6);
        let given = json!({
            "k_min": if pauses_late { 1e12 } else { 5e3 }, "k_max": 1e12, "pfc_alpha": alpha,
            "pfc": if dynamic { "dynamic" } else { "static" }, "pfc_threshold": threshold,
        });
        let params = given.as_object().unwrap();
        let mut sim = subak_packet::build("dcqcn", params, &network, PacketSizes::default(), &[], seed).unwrap();
        let route = |k: u32| route([2 * k, 10, 12], [13, 11, 2 * k + 1]);
        let flows: Vec<_> = (0..5).map(|k| sim.add(plan(route(k), seed % 7 * u64::from(k) * 100, Some(200_000)))).collect();
        sim.run_until_done(2_000 * MS);
        prop_assert_eq!(dropped(&*sim, &network), 0);
        for f in flows {
            prop_assert_eq!(sim.flow(f).received_bytes, 200_000);
        }
    }
}

/// Four hosts of another leaf send to one host. Data arrives at a switch at 400 Gb/s and leaves at 100 Gb/s. The
/// ingress link is four times as fast as a host's link, and therefore may use four times the share of the buffer.
#[test]
fn faster_links_have_a_larger_share_of_the_buffer() {
    let network = json!({"kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 4, "host_rate": 100e9,
        "spine_rate": 400e9});
    let (network, _) = subak_core::generate::network(&network).unwrap();
    let hosts: Vec<_> = network.hosts().collect();
    let pauses = |alpha: f64| {
        let params = json!({"k_min": 1e12, "k_max": 1e12, "pfc_alpha": alpha, "pfc_buffer": "4MB"});
        let mut sim = with("dcqcn", &params, &network);
        let mut router = Router::new(&network, 1, false);
        for (k, &host) in hosts[4..].iter().enumerate() {
            sim.add(plan(router.route(host, hosts[0], k as u64).unwrap(), 0, Some(250_000)));
        }
        sim.run_until_done(1000 * MS);
        network.links().ids().map(|l| sim.link(l).pauses).sum::<u64>()
    };
    // At most 750,000 of a million bytes are queued. An eighth of 4 MB is less, and half of the free buffer is more.
    assert_eq!(pauses(0.125), 0);
    assert!(pauses(0.03) > 0, "an eighth of what is free is not enough");
}
