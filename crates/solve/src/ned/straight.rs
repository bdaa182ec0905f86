//! Baseline of NED's speed, for the benchmark and for the experiment of Flowtune's table: the iteration as a scalar
//! loop, and networks and flows of the table's sizes.

use super::real::Real;
use subak_core::rng::Stream;
use subak_core::{IdVec, InputError, LinkId, Network, Offsets, generate};

/// A two-tier network: racks of 48 servers and 8 spines, with 40 Gb/s links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TwoTiers {
    /// Number of servers, a multiple of 48.
    pub nodes: usize,
}

impl TwoTiers {
    /// Servers per rack.
    pub const RACK: usize = 48;
    /// Number of spines.
    pub const SPINES: usize = 8;
    /// Capacity of every link, bit/s.
    pub const RATE_BPS: f64 = 40e9;
    /// Nodes and flows of the rows of Flowtune's table (section 5.2).
    pub const TABLE: [(usize, usize); 7] =
        [(384, 3072), (768, 6144), (1536, 12288), (1536, 24576), (1536, 49152), (3072, 49152), (4608, 49152)];

    /// The number of links.
    pub fn links(self) -> usize {
        2 * self.nodes + 2 * self.nodes.div_ceil(Self::RACK) * Self::SPINES
    }

    /// Each link's capacity.
    pub fn capacity_bps(self) -> Vec<f64> {
        vec![Self::RATE_BPS; self.links()]
    }

    /// The network of [`TwoTiers::paths`].
    pub fn network(self) -> Result<Network, InputError> {
        let value = serde_json::json!({"kind": "leaf-spine", "leaves": self.nodes.div_ceil(Self::RACK),
            "hosts_per_leaf": Self::RACK, "spines": Self::SPINES, "host_rate": Self::RATE_BPS,
            "spine_rate": Self::RATE_BPS});
        let (network, _) = generate::network(&value)?;
        debug_assert_eq!(network.links().len(), self.links(), "racks are full");
        Ok(network)
    }

    /// The paths of `flows` flows between random servers over random spines.
    pub fn paths(self, flows: usize, seed: u64) -> Vec<Vec<LinkId>> {
        let (nodes, spines) = (self.nodes, Self::SPINES);
        let mut rng = Stream::new(seed, "bench");
        let up = |rack: usize, spine: usize| 2 * nodes + (rack * spines + spine) * 2;
        let path = |_| {
            let (src, spine) = (rng.below(nodes), rng.below(spines));
            let dst = (src + 1 + rng.below(nodes - 1)) % nodes;
            let (from, to) = (src / Self::RACK, dst / Self::RACK);
            let (first, last) = (2 * src, 2 * dst + 1);
            let links =
                if from == to { vec![first, last] } else { vec![first, up(from, spine), up(to, spine) + 1, last] };
            links.into_iter().map(LinkId::from_index).collect()
        };
        (0..flows).map(path).collect()
    }
}

/// NED as a scalar loop over flows that adds to link sums; weights and capacities are 1.
#[derive(Debug, Clone)]
pub struct Straight<T> {
    ptr: Offsets,
    links: Vec<LinkId>,
    rate: Vec<T>,
    price: IdVec<LinkId, T>,
    load: IdVec<LinkId, T>,
    answer: IdVec<LinkId, T>,
}

impl<T: Real> Straight<T> {
    /// Starts with prices of 8 on all `links` links.
    pub fn new(links: usize, paths: &[Vec<LinkId>]) -> Self {
        let (mut ptr, mut end) = (Offsets::default(), 0);
        for path in paths {
            end += path.len();
            ptr.push(end);
        }
        let zeros = IdVec::filled(T::ZERO, links);
        let price = IdVec::filled(T::of(8.0), links);
        let rate = vec![T::ZERO; paths.len()];
        Straight { ptr, links: paths.concat(), rate, price, load: zeros.clone(), answer: zeros }
    }

    /// One iteration with gamma 0.4.
    pub fn step(&mut self) {
        self.load.fill(T::ZERO);
        self.answer.fill(T::ZERO);
        for (f, rate) in self.rate.iter_mut().enumerate() {
            let path = &self.links[self.ptr.row(f)];
            let mut q = T::ZERO;
            path.iter().for_each(|&l| q += self.price[l]);
            let x = T::ONE / q.or_more(T::ONE);
            *rate = x;
            for &l in path {
                self.load[l] += x;
                self.answer[l] += x * x;
            }
        }
        for ((price, &load), &answer) in self.price.iter_mut().zip(&self.load).zip(&self.answer) {
            if answer > T::ZERO {
                *price = (*price + T::of(0.4) * (load - T::ONE) / answer).or_more(T::ZERO);
            }
        }
    }
}
