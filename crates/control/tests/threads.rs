//! An allocator on several threads sends the same datagrams as on one, while flowlets start and end.

use subak_control::{Allocator, ControlSettings, Ecmp, Endpoint};
use subak_core::rng::Stream;
use subak_core::route::Routing;
use subak_core::{Network, NodeId, generate};
use subak_wire::Datagram;

const TICK_NS: u64 = 200_000;

/// An allocator and its endpoints.
struct World {
    allocator: Allocator,
    endpoints: Vec<Endpoint>,
}

impl World {
    fn new(network: &Network, threads: usize) -> Self {
        let settings = ControlSettings::default();
        let paths = Ecmp::new(network, Routing::default());
        let capacity_bps: Vec<f64> = network.links().iter().map(|l| l.capacity_bps).collect();
        let mut allocator = Allocator::new(0, 1, &capacity_bps, Box::new(paths), settings).unwrap().first();
        allocator.set_threads(threads);
        let hosts: Vec<NodeId> = network.hosts().collect();
        hosts.iter().for_each(|h| allocator.join(h.0));
        World { allocator, endpoints: hosts.iter().map(|h| Endpoint::new(h.0, 1, settings)).collect() }
    }

    /// Runs an iteration; returns the allocator's datagrams.
    fn tick(&mut self, now_ns: u64) -> Vec<Datagram> {
        for endpoint in &mut self.endpoints {
            while let Some(datagram) = endpoint.poll(now_ns) {
                self.allocator.take(now_ns, datagram.endpoint, &datagram);
            }
        }
        self.allocator.step(now_ns);
        let told: Vec<Datagram> = std::iter::from_fn(|| self.allocator.poll(now_ns)).collect();
        for datagram in &told {
            self.endpoints[datagram.endpoint as usize].take(now_ns, datagram);
        }
        told
    }
}

#[test]
fn threads_change_no_datagram() {
    let star = serde_json::json!({"kind": "leaf-spine", "leaves": 8, "hosts_per_leaf": 16, "spines": 4});
    let (network, _) = generate::network(&star).unwrap();
    let mut worlds = [1, 2, 3].map(|threads| World::new(&network, threads));
    let (mut rng, mut there, mut updates) = (Stream::new(7, "threads"), Vec::new(), 0);
    for tick in 0..60u64 {
        let starts = (0..if tick == 0 { 6000 } else { rng.below(400) }).map(|k| {
            let src = rng.below(128);
            (src, tick << 32 | k as u64, (src + 1 + rng.below(127)) % 128, (1 + rng.below(8)) as f32)
        });
        for (src, connection, dst, weight) in starts.collect::<Vec<_>>() {
            worlds.iter_mut().for_each(|w| w.endpoints[src].begin(connection, dst as u32, connection as u32, weight));
            there.push((src, connection));
        }
        for _ in 0..rng.below(400) {
            let (src, connection) = there.swap_remove(rng.below(there.len()));
            worlds.iter_mut().for_each(|w| w.endpoints[src].finish(connection));
        }
        let [one, others @ ..] = worlds.each_mut().map(|w| w.tick((1 + tick) * TICK_NS));
        assert!(others.iter().all(|told| *told == one), "tick {tick}");
        updates += one.iter().map(|datagram| datagram.updates.len()).sum::<usize>();
    }
    assert!(updates > 10_000, "{updates} rates");
}
