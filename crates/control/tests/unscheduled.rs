//! Traffic without allocated rates, as reported by endpoints: capacity is reserved for it, and returned afterwards.

use subak_control::{Allocator, ControlSettings, Ecmp, Endpoint};
use subak_core::route::Routing;
use subak_core::{LinkId, Network, NodeKind, Ns};

const RATE_BPS: f64 = 1e9;
const MS: Ns = 1_000_000;

fn network() -> Network {
    let mut network = Network::new();
    let hub = network.node("hub", NodeKind::Switch);
    for k in 0..3 {
        let host = network.node(&format!("h{k}"), NodeKind::Host);
        network.connect(host, hub, RATE_BPS, 1000, None).unwrap();
    }
    network
}

struct Told {
    allocator: Allocator,
    endpoints: Vec<Endpoint>,
}

impl Told {
    fn run(&mut self, from_ns: Ns, until_ns: Ns, mut each: impl FnMut(&mut Endpoint, Ns)) {
        for now_ns in (from_ns..until_ns).step_by(MS as usize / 10) {
            for endpoint in &mut self.endpoints {
                each(endpoint, now_ns);
                while let Some(datagram) = endpoint.poll(now_ns) {
                    self.allocator.take(now_ns, datagram.endpoint, &datagram);
                }
            }
            self.allocator.step(now_ns);
            while let Some(datagram) = self.allocator.poll(now_ns) {
                if let Some(endpoint) = self.endpoints.get_mut(datagram.endpoint as usize - 1) {
                    endpoint.take(now_ns, &datagram);
                }
            }
        }
    }
}

fn told(settings: ControlSettings) -> (Told, LinkId) {
    let network = network();
    let capacity_bps: Vec<f64> = network.links().iter().map(|l| l.capacity_bps).collect();
    let paths = Box::new(Ecmp::new(&network, Routing::default()));
    let mut allocator = Allocator::new(0, 1, &capacity_bps, paths, settings).unwrap().first();
    (1..4).for_each(|h| allocator.join(h));
    let endpoints = (1..4).map(|h| Endpoint::new(h, 1, settings)).collect();
    let into = network.links().iter_enumerated().find(|(_, link)| link.to == network.find_node("h2")).unwrap().0;
    (Told { allocator, endpoints }, into)
}

#[test]
fn what_an_endpoint_tells_is_given_up_until_it_tells_nothing_more() {
    let settings = ControlSettings::default();
    let (mut told, into) = told(settings);
    told.endpoints[0].begin(7, 3, 0, 1.0);
    let rate = |told: &Told, now_ns| told.endpoints[0].rate_bps(now_ns, 7).expect("a rate that holds");
    told.run(1, 20 * MS, |_, _| {});
    assert!((rate(&told, 20 * MS) / (settings.share() * RATE_BPS) - 1.0).abs() < 0.02);
    // The receiver measures 600 Mb/s of other traffic.
    told.run(20 * MS, 100 * MS, |endpoint, now_ns| {
        if endpoint.flowlets() == 0 && now_ns % MS < MS / 10 {
            endpoint.observe(0.0, 0.6 * RATE_BPS);
        }
    });
    assert!((told.allocator.unscheduled_bps(into) / (0.6 * RATE_BPS) - 1.0).abs() < 0.01);
    assert!((rate(&told, 100 * MS) / (settings.share() * 0.4 * RATE_BPS) - 1.0).abs() < 0.02);
    // The other traffic has ended: no capacity is reserved for it.
    told.run(100 * MS, 100 * MS + 12 * settings.patience_ns, |_, _| {});
    assert_eq!(told.allocator.unscheduled_bps(into), 0.0);
    assert!((rate(&told, 100 * MS + 12 * settings.patience_ns) / (settings.share() * RATE_BPS) - 1.0).abs() < 0.02);
}

#[test]
fn others_take_no_more_than_the_operator_lets_them() {
    let settings = ControlSettings { most_unscheduled: 0.3, ..ControlSettings::default() };
    let (mut told, _) = told(settings);
    told.endpoints[0].begin(7, 3, 0, 1.0);
    told.run(1, 100 * MS, |endpoint, now_ns| {
        if endpoint.flowlets() == 0 && now_ns % MS < MS / 10 {
            endpoint.observe(0.0, RATE_BPS);
        }
    });
    let rate_bps = told.endpoints[0].rate_bps(100 * MS, 7).expect("a rate that holds");
    assert!((rate_bps / (settings.share() * 0.7 * RATE_BPS) - 1.0).abs() < 0.02, "{rate_bps}");
}

/// Datagrams that `endpoint` sends within `ms` milliseconds without any answer, and whether it awaits one at the end.
fn unanswered(endpoint: &mut Endpoint, from_ns: Ns, ms: Ns, observes_bps: f64) -> (usize, bool) {
    let mut sent = 0;
    for now_ns in (from_ns..from_ns + ms * MS).step_by(MS as usize) {
        if now_ns == from_ns {
            endpoint.observe(observes_bps, 0.0);
        }
        sent += std::iter::from_fn(|| endpoint.poll(now_ns)).count();
    }
    (sent, endpoint.awaits_reply())
}

#[test]
fn an_endpoint_without_flowlets_notices_that_its_allocator_is_gone() {
    let settings = ControlSettings::for_hosts(200 * MS);
    let rested = || {
        let (mut told, _) = told(settings);
        told.run(1, 2950 * MS, |_, _| {});
        told.endpoints.remove(0)
    };
    assert!(!rested().awaits_reply(), "it rests between two probes");
    assert_eq!(unanswered(&mut rested(), 2950 * MS, 20, 0.0), (1, false), "no traffic needs no ACK");
    let (sent, awaits) = unanswered(&mut rested(), 2950 * MS, 1100, 0.0);
    assert!(awaits && sent >= 3, "a probe is due within a second, and repeated: {sent}");
    let (sent, awaits) = unanswered(&mut rested(), 2950 * MS, 100, RATE_BPS);
    assert!(awaits && sent >= 2, "a report of traffic has no ACK: {sent}");
    // The other allocator gets a probe at once.
    let mut endpoint = rested();
    endpoint.probe_at_once();
    assert!(endpoint.poll(2950 * MS).is_some_and(|datagram| datagram.asks));
}
