//! A million hostile datagrams: the allocator's memory stays within its bound, and other endpoints keep their rates.

use subak_control::{Allocator, ControlSettings, Ecmp, Endpoint};
use subak_core::rng::Stream;
use subak_core::route::Routing;
use subak_core::{Network, NodeKind, Ns};
use subak_wire::{Datagram, Direction, FlowletEnd, FlowletRate, Rate16, Start};

const ENEMY: u32 = 3;
const MESSAGES: u64 = 1_000_000;

fn network() -> Network {
    let mut network = Network::new();
    let hosts: Vec<_> = (0..4).map(|h| network.node(&format!("h{h}"), NodeKind::Host)).collect();
    let hub = network.node("hub", NodeKind::Switch);
    for h in hosts {
        network.connect(h, hub, 10e9, 1000, None).unwrap();
    }
    network
}

/// A hostile datagram: well formed, from any endpoint's number, and then possibly corrupted.
fn hostile(rng: &mut Stream, k: u64, before: &mut Vec<Vec<u8>>) -> Vec<u8> {
    if rng.unit() < 0.1 && !before.is_empty() {
        return before[rng.below(before.len())].clone();
    }
    let endpoint = if rng.unit() < 0.3 { rng.bits() as u32 % 6 } else { ENEMY };
    // Joins without end: a new epoch every hundred datagrams, and some datagrams of earlier epochs.
    let epoch = (k / 100).saturating_sub(rng.below(3) as u64) + 1;
    let mut datagram = Datagram::new(Direction::Up, endpoint, epoch);
    datagram.number = if rng.unit() < 0.9 { k as u32 } else { rng.bits() as u32 };
    (datagram.peer_epoch, datagram.ack, datagram.ack_mask) = (1 << 32, rng.bits() as u32 % 100, rng.bits() as u32);
    for _ in 0..rng.below(20) {
        let (flowlet, to) = (rng.bits() as u32, rng.below(7) as u32);
        datagram.starts.push(Start {
            flowlet,
            to,
            path: rng.bits() as u32,
            weight: f32::MAX,
            demand: (rng.unit() < 0.5).then(|| Rate16::from_code(rng.bits() as u16)),
        });
        datagram.ends.push(FlowletEnd { flowlet: rng.bits() as u32 });
    }
    if rng.unit() < 0.1 {
        datagram.updates.push(FlowletRate { flowlet: 1, rate: Rate16::from_code(u16::MAX) });
    }
    let mut bytes = Vec::new();
    datagram.encode(&mut bytes).unwrap();
    if rng.unit() < 0.1 {
        bytes.truncate(rng.below(bytes.len()));
    } else if rng.unit() < 0.1 {
        // A corrupted epoch makes all later datagrams stale, so that epochs are corrupted only in the last tenth.
        let from = if k < MESSAGES * 9 / 10 { 16.min(bytes.len()) } else { 0 };
        let at = from + rng.below(bytes.len() - from);
        bytes[at] ^= 1 << rng.below(8);
    }
    if before.len() < 100 {
        before.push(bytes.clone());
    }
    bytes
}

#[test]
fn a_million_hostile_datagrams_take_no_memory_and_starve_nobody() {
    let settings = ControlSettings { most_flowlets: 64, most_weight: 16.0, ..ControlSettings::default() };
    let network = network();
    let capacity_bps: Vec<f64> = network.links().iter().map(|l| l.capacity_bps).collect();
    let paths = Box::new(Ecmp::new(&network, Routing::default()));
    let mut allocator = Allocator::new(0, 1 << 32, &capacity_bps, paths, settings).unwrap().first();
    (0..4).for_each(|h| allocator.join(h));
    // Two honest flowlets to one host share its link.
    let mut honest = [Endpoint::new(0, 1, settings), Endpoint::new(1, 1, settings)];
    honest.iter_mut().for_each(|e| e.begin(7, 2, 0, 1.0));
    let mut rng = Stream::new(1, "enemy");
    let mut before = Vec::new();
    let (mut malformed, mut least_bps) = (0, f64::INFINITY);
    for k in 0..MESSAGES {
        let bytes = hostile(&mut rng, k, &mut before);
        let now_ns = k as Ns * 20;
        match Datagram::decode(&bytes) {
            // The hostile host cannot send from another host's address, and the address identifies an endpoint.
            Ok(datagram) => allocator.take(now_ns, ENEMY, &datagram),
            Err(_) => malformed += 1,
        }
        if k % 500 == 0 {
            for (number, endpoint) in honest.iter_mut().enumerate() {
                while let Some(datagram) = endpoint.poll(now_ns) {
                    allocator.take(now_ns, number as u32, &datagram);
                }
            }
            allocator.step(now_ns);
            while let Some(datagram) = allocator.poll(now_ns) {
                if let Some(endpoint) = honest.get_mut(datagram.endpoint as usize) {
                    endpoint.take(now_ns, &datagram);
                }
            }
            assert!(allocator.flowlets() <= 2 + settings.most_flowlets, "{}", allocator.flowlets());
            if k > 10_000 {
                let rates = honest.iter().map(|e| e.rate_bps(now_ns, 7).expect("a rate that holds"));
                least_bps = rates.fold(least_bps, f64::min);
            }
        }
    }
    let counters = allocator.counters();
    assert!(malformed > 50_000 && counters.forged > 100_000 && counters.stale > 10_000, "{malformed}, {counters:?}");
    assert!(counters.refused > 1000, "the bound was met: {counters:?}");
    println!("{malformed} malformed, {counters:?}; an honest flowlet had {:.3} Gb/s at least", least_bps / 1e9);
    // An honest flowlet's rate beside the largest number of flowlets of the largest weight. A rate is sent once it
    // changes by a hundredth.
    let share = 10e9 * settings.share() / (2.0 + 64.0 * 16.0);
    assert!(least_bps > 0.95 * share, "{least_bps} of {share}");
}
