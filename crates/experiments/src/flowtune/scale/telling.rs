//! Distribution of rates to endpoints, directly or through intermediaries: load of the allocator's link, and cost of
//! the longer path. The experiment runs the real allocator core and endpoints. A datagram takes 10 us per hop, and
//! flows send at the rates that their endpoints have.

use crate::flowtune::{Fabric, web};
use std::collections::VecDeque;
use subak_control::{Allocator, ControlSettings, Ecmp, Endpoint, PriceLaw};
use subak_core::rng::Stream;
use subak_core::route::Routing;
use subak_core::{Case, Flow, Flows, InputError, LinkId, Ns, Policy};
use subak_solve::{SolveOptions, solve};
use subak_wire::{Bundle, Datagram};

const TICK_NS: Ns = 10_000;
const LOAD: f64 = 0.8;
const NIC_BPS: f64 = 10e9;
/// Flowtune, section 6: "Ethernet has 64-byte minimum frames and preamble and interframe gaps, which cost 84 bytes".
const LEAST_FRAME: usize = 84;
/// Header bytes: Ethernet with check sequence, preamble and gap; IPv4; UDP.
const HEADERS: usize = 38 + 20 + 8;
const MTU: usize = 1500 - 28;
/// Size of a rate in the paper's encoding, plus two bytes for the endpoint within a group.
const BARE_RECORD: usize = 8;
/// Steps between two comparisons with the optimum.
const EVERY: usize = 100;

/// Result of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Ran {
    /// Number of servers that one 10 Gb/s link can send rates to.
    pub servers_a_nic: f64,
    /// Sum of current rates relative to the optimum, percent, mean over the comparisons.
    pub of_optimum: f64,
    /// Mean number of rates in a datagram to an endpoint.
    pub records: f64,
    /// Bytes of the frames to endpoints, relative to full frames that contain nothing but rates in the paper's
    /// encoding.
    pub bare_gain: f64,
}

struct Sending {
    host: usize,
    connection: u64,
    path: Vec<LinkId>,
    left_bits: f64,
}

struct World {
    fabric: Fabric,
    allocator: Allocator,
    endpoints: Vec<Endpoint>,
    sendings: Vec<Sending>,
    /// Datagrams that reach the allocator in the next step.
    up: Vec<Datagram>,
    /// Datagrams to endpoints, by the number of steps until they arrive: one, or two through an intermediary.
    down: VecDeque<Vec<Datagram>>,
    bytes: usize,
    datagrams: usize,
    rates: usize,
}

/// Runs `warmup` steps, then `steps` measured ones, with intermediaries of `group` hosts each; 1 means none.
pub(super) fn run(seed: u64, group: usize, steps: usize, warmup: usize) -> Result<Ran, InputError> {
    let mut world = World::new(seed, group)?;
    let mut rng = Stream::new(seed, "telling");
    let sizes = web::sizes();
    let gap_s = 8.0 * sizes.mean_bytes() / (LOAD * web::HOST_BPS * world.endpoints.len() as f64);
    let (mut next_s, mut arrived) = (rng.exponential(gap_s), 0u64);
    let (mut of_optimum, mut looks) = (0.0, 0.0);
    for step in 0..warmup + steps {
        let now_ns = step as Ns * TICK_NS;
        if step == warmup {
            (world.bytes, world.datagrams, world.rates) = (0, 0, 0);
        }
        while next_s < now_ns as f64 * 1e-9 {
            let bits = 8.0 * sizes.draw(&mut rng) as f64;
            world.begin(&mut rng, arrived, bits)?;
            next_s += rng.exponential(gap_s);
            arrived += 1;
        }
        world.step(now_ns, group);
        if step >= warmup && step % EVERY == 0 && !world.sendings.is_empty() {
            of_optimum += world.look(now_ns)?;
            looks += 1.0;
        }
    }
    let seconds = steps as f64 * TICK_NS as f64 * 1e-9;
    let a_server_bps = 8.0 * world.bytes as f64 / seconds / world.endpoints.len() as f64;
    Ok(Ran {
        servers_a_nic: NIC_BPS / a_server_bps,
        of_optimum: of_optimum / looks,
        records: world.rates as f64 / world.datagrams as f64,
        bare_gain: world.bytes as f64 / (world.rates * BARE_RECORD) as f64 * MTU as f64 / (MTU + HEADERS) as f64,
    })
}

impl World {
    fn new(seed: u64, group: usize) -> Result<Self, InputError> {
        let fabric = Fabric::of(&web::topology(), seed)?;
        let settings =
            ControlSettings { law: PriceLaw::Ned, gamma: Some(web::GAMMA), reserve: 0.0, ..ControlSettings::default() };
        let paths = Ecmp::new(&fabric.network, Routing { seed, ..Routing::default() });
        let mut allocator = Allocator::new(0, 1, &fabric.capacities_bps(), Box::new(paths), settings)?.first();
        fabric.hosts.iter().for_each(|&h| allocator.join(h.0));
        let endpoints = fabric.hosts.iter().map(|&h| Endpoint::new(h.0, 1, settings)).collect();
        let legs = if group == 1 { 1 } else { 2 };
        let down = (0..legs).map(|_| Vec::new()).collect();
        let (sendings, up) = (Vec::new(), Vec::new());
        Ok(World { fabric, allocator, endpoints, sendings, up, down, bytes: 0, datagrams: 0, rates: 0 })
    }

    fn begin(&mut self, rng: &mut Stream, connection: u64, bits: f64) -> Result<(), InputError> {
        let hosts = self.fabric.hosts.len();
        let host = rng.below(hosts);
        let (from, to) = (self.fabric.hosts[host], self.fabric.hosts[(host + 1 + rng.below(hosts - 1)) % hosts]);
        let path = self.fabric.router.path(from, to, connection)?;
        self.endpoints[host].begin(connection, to.0, connection as u32, 1.0);
        self.sendings.push(Sending { host, connection, path, left_bits: bits });
        Ok(())
    }

    fn step(&mut self, now_ns: Ns, group: usize) {
        for datagram in std::mem::take(&mut self.up) {
            self.allocator.take(now_ns, datagram.endpoint, &datagram);
        }
        self.allocator.step(now_ns);
        let told: Vec<Datagram> = std::iter::from_fn(|| self.allocator.poll(now_ns)).collect();
        self.count(&told, group);
        self.down.push_back(told);
        for datagram in self.down.pop_front().unwrap_or_default() {
            // Hosts have the first node numbers.
            let host = datagram.endpoint as usize;
            self.endpoints[host].take(now_ns, &datagram);
        }
        let World { endpoints, sendings, up, .. } = self;
        sendings.retain_mut(|s| {
            let endpoint = &mut endpoints[s.host];
            s.left_bits -= endpoint.rate_bps(now_ns, s.connection).unwrap_or(0.0) * TICK_NS as f64 * 1e-9;
            if s.left_bits <= 0.0 {
                endpoint.finish(s.connection);
            }
            s.left_bits > 0.0
        });
        up.extend(endpoints.iter_mut().flat_map(|e| std::iter::from_fn(move || e.poll(now_ns))));
    }

    fn count(&mut self, told: &[Datagram], group: usize) {
        self.datagrams += told.len();
        self.rates += told.iter().map(|d| d.updates.len()).sum::<usize>();
        let frame = |payload: usize| (payload + HEADERS).max(LEAST_FRAME);
        let bytes = |d: &Datagram| subak_wire::HEADER_BYTES + d.body_bytes();
        if group == 1 {
            self.bytes += told.iter().map(|d| frame(bytes(d))).sum::<usize>();
            return;
        }
        for theirs in told.chunk_by(|a, b| a.endpoint as usize / group == b.endpoint as usize / group) {
            let bundles = Bundle::pack(theirs.iter().cloned(), MTU);
            self.bytes += bundles.iter().map(|b| frame(b.parts.iter().map(bytes).sum())).sum::<usize>();
        }
    }

    /// Sum of current rates relative to the optimum of the active flows, percent.
    fn look(&self, now_ns: Ns) -> Result<f64, InputError> {
        let mut flows = Flows::new();
        for (f, s) in self.sendings.iter().enumerate() {
            flows.push(Flow::over(f.to_string(), s.path.clone()), &self.fabric.network)?;
        }
        let case = Case { network: self.fabric.network.clone(), flows, policy: Policy::AlphaFair { alpha: 1.0 } };
        let best = solve(&case, &SolveOptions { tolerance: 1e-6, ..SolveOptions::default() })?.rates_bps;
        let rate = |s: &Sending| self.endpoints[s.host].rate_bps(now_ns, s.connection).unwrap_or(0.0);
        Ok(100.0 * self.sendings.iter().map(rate).sum::<f64>() / best.iter().sum::<f64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles_cost_an_allocators_link_less_and_rates_stay() {
        let [direct, over] = [1, 16].map(|group| run(1, group, 100, 100).unwrap());
        assert!(over.servers_a_nic > 1.5 * direct.servers_a_nic, "{direct:?} {over:?}");
        assert!(direct.of_optimum > 50.0 && over.of_optimum > 50.0, "{direct:?} {over:?}");
    }
}
