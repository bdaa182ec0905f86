//! Flowtune's experiments without packets: the optimizer alone (sections 5.2 and 5.4, table 1), and designs beyond
//! one allocator (section 6).

mod web;

use serde_json::Value;
use subak_core::route::Router;
use subak_core::{InputError, LinkId, Network, NodeId, generate};

experiments![sizes, gamma, fig16, fig17, table_multicore, scale];

/// A network with a router.
struct Fabric {
    network: Network,
    hosts: Vec<NodeId>,
    router: Router,
}

impl Fabric {
    fn of(value: &Value, seed: u64) -> Result<Self, InputError> {
        let (network, _) = generate::network(value)?;
        let hosts = network.hosts().collect();
        let router = Router::new(&network, seed, false);
        Ok(Fabric { network, hosts, router })
    }

    /// A path between two random hosts; `key` is the routing key.
    fn path(&mut self, rng: &mut subak_core::rng::Stream, key: u64) -> Result<Vec<LinkId>, InputError> {
        let src = rng.below(self.hosts.len());
        let dst = (src + 1 + rng.below(self.hosts.len() - 1)) % self.hosts.len();
        self.router.path(self.hosts[src], self.hosts[dst], key)
    }

    fn capacities_bps(&self) -> Vec<f64> {
        self.network.links().iter().map(|l| l.capacity_bps).collect()
    }
}
