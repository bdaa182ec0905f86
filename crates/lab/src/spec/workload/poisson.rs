//! Flows that arrive at random between random hosts, and incasts among them.

use super::{Expected, Maker, positive_bytes, sizes, subflows};
use crate::spec::section::{Section, between, flag, whole};
use crate::spec::topology::Topology;
use serde_json::Value;
use std::path::Path;
use subak_core::driver::PacketSizes;
use subak_core::rng::Stream;
use subak_core::sizes::Sizes;
use subak_core::{Fault, NodeId, Ns};

/// The kind `poisson`.
#[derive(Debug, Clone, PartialEq)]
pub struct Poisson {
    sizes: Sizes,
    /// Bytes on the wire over the capacity of the hosts' links, incasts aside.
    pub load: f64,
    subflows: usize,
    /// Only the first half of the hosts send, and only to the second half; the load is that of their links.
    pub one_way: bool,
    incasts: Option<Incasts>,
}

/// At times drawn at random, several hosts send to one at once.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Incasts {
    senders: usize,
    /// Bytes of each sender.
    size_bytes: u64,
    /// Of all incasts together, besides the other flows'.
    load: f64,
}

impl Incasts {
    fn read(value: &Value) -> Result<Self, Fault> {
        let mut section = Section::of(value)?;
        let incasts = Incasts {
            senders: section.need("senders", "give the number of senders", 1, |v| whole(v, 1, 100_000)) as usize,
            size_bytes: section.need("size", "give the bytes of each sender", 1, positive_bytes),
            load: section.need("load", "give the load of all incasts", 0.5, |v| between(v, 0.0, false, 1.0)),
        };
        section.all(Some(incasts))
    }

    fn wire_bytes(&self, packet: PacketSizes) -> f64 {
        self.senders as f64 * packet.wire_bytes(self.size_bytes) as f64
    }
}

impl Poisson {
    pub(super) fn read(section: &mut Section, base: &Path) -> Option<Self> {
        let sizes = sizes::read(section, base);
        let sizes = section.keep(sizes);
        let mend = "give the load of the hosts' links, such as 0.6";
        let load = section.need("load", mend, 0.5, |v| between(v, 0.0, false, 1.0));
        let (subflows, one_way) = (subflows(section), section.opt("one_way", flag).unwrap_or(false));
        let incasts = section.opt("incasts", Incasts::read);
        if one_way && incasts.is_some() {
            section.note(Fault::new("incasts", "incasts are between all hosts", "leave one_way or incasts away"));
        }
        sizes.map(|sizes| Poisson { sizes, load, subflows, one_way, incasts })
    }

    /// The load with that of incasts.
    pub fn whole_load(&self) -> f64 {
        self.load + self.incasts.map_or(0.0, |incasts| incasts.load)
    }

    pub(super) fn flows(&self, maker: &mut Maker, packet: PacketSizes) -> Result<(), Fault> {
        let (seed, duration_ns) = (maker.seed, maker.duration_ns);
        let (mut arrivals, mut drawn) = (Stream::new(seed, "arrivals"), Stream::new(seed, "sizes"));
        for at_ns in times(&mut arrivals, self.mean_gap_ns(maker.topology, packet), duration_ns) {
            let (src, dst) = if self.one_way { maker.pair_across() } else { maker.pair() };
            let size = self.sizes.draw(&mut drawn);
            maker.add(src, dst, at_ns, Some(size), self.subflows)?;
        }
        let Some(incasts) = self.incasts else { return Ok(()) };
        let gap_ns =
            incasts.wire_bytes(packet) * 8e9 / (incasts.load * capacity_bps(maker.topology, maker.topology.hosts()));
        let mut rng = Stream::new(seed, "incasts");
        for at_ns in times(&mut Stream::new(seed, "times of incasts"), gap_ns, duration_ns) {
            let mut hosts = maker.hosts.clone();
            rng.shuffle(&mut hosts);
            for k in 0..incasts.senders {
                let key = rng.bits();
                let src = hosts[1 + k % (hosts.len() - 1)];
                maker.add_over(src, hosts[0], at_ns, Some(incasts.size_bytes), self.subflows, key)?;
            }
        }
        maker.flows.sort_by_key(|flow| flow.plan.start_ns);
        Ok(())
    }

    pub(super) fn expected(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> Expected {
        let hosts = topology.hosts().len() as f64;
        let capacity = topology.hosts().iter().map(|&h| topology.access_bps(h)).sum::<f64>() * duration_ns as f64 / 8e9;
        let mut expected = Expected {
            flows: duration_ns as f64 / self.mean_gap_ns(topology, packet),
            // As many as there are in processor sharing; a load of 1 is not stationary.
            live: hosts * self.load / (1.0 - self.load).max(0.01),
            wire_bytes: self.load * if self.one_way { capacity / 2.0 } else { capacity },
        };
        if let Some(incasts) = self.incasts {
            expected.wire_bytes += incasts.load * capacity;
            expected.flows += incasts.load * capacity / packet.wire_bytes(incasts.size_bytes) as f64;
            expected.live += incasts.senders as f64;
        }
        expected
    }

    fn mean_gap_ns(&self, topology: &Topology, packet: PacketSizes) -> f64 {
        let hosts = topology.hosts();
        let senders = if self.one_way { &hosts[..hosts.len() / 2] } else { hosts };
        self.sizes.mean_wire_bytes(packet) * 8e9 / (self.load * capacity_bps(topology, senders))
    }
}

fn capacity_bps(topology: &Topology, hosts: &[NodeId]) -> f64 {
    hosts.iter().map(|&h| topology.access_bps(h)).sum()
}

/// Times with exponential gaps, up to `duration_ns`.
fn times(rng: &mut Stream, mean_gap_ns: f64, duration_ns: Ns) -> Vec<Ns> {
    let mut times = Vec::new();
    let mut at_ns = rng.exponential(mean_gap_ns);
    while at_ns < duration_ns as f64 {
        times.push(at_ns as Ns);
        at_ns += rng.exponential(mean_gap_ns);
    }
    times
}
