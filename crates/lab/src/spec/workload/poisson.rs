//! Poisson arrivals: flows between random hosts, with optional incasts.

use super::sizes::{LARGEST, SIZE, SIZES, SMALLEST};
use super::{Common, ExpectedFlows, FlowBuilder, SUBFLOWS, Workload, WorkloadInfo, sizes};
use crate::files::Beside;
use crate::spec::topology::Topology;
use serde_json::Value;
use std::sync::Arc;
use subak_core::backend::PacketSizes;
use subak_core::keys::{Key, Low, ValueType};
use subak_core::rng::Stream;
use subak_core::section::Section;
use subak_core::sizes::Sizes;
use subak_core::{InputError, NodeId, Ns};

pub(super) const ENTRY: WorkloadInfo = WorkloadInfo {
    name: "poisson",
    about: "flows arrive as a Poisson process, each between two random hosts",
    keys: &[
        SIZES,
        SIZE,
        SMALLEST,
        LARGEST,
        Key::required(
            "load",
            LOAD,
            "offered load, such as 0.6: bytes on the wire, headers included, over the capacity of the hosts' links",
        ),
        SUBFLOWS,
        Key::new(
            "one_way",
            ValueType::Flag,
            "false",
            "only the first half of the hosts send, and only to the second half",
        ),
        Key::open(
            "incasts",
            ValueType::Table(INCASTS),
            "none",
            "additional incasts: at random times, several random hosts send to one host at once",
        ),
    ],
    common: Common::All,
    read: |section, files| Ok(Poisson::read(section, files).map(|poisson| Arc::new(poisson) as Arc<dyn Workload>)),
};

pub(super) const LOAD: ValueType = ValueType::Number(Low::Above(0.0), 1.0);

const INCASTS: &[Key] = &[
    Key::required("senders", ValueType::Whole(1, 100_000), "number of senders"),
    Key::required("size", ValueType::Size, "bytes that each sender sends"),
    Key::required("load", LOAD, "load that all incasts add"),
];

#[derive(Debug)]
struct Poisson {
    sizes: Sizes,
    /// Load without incasts: bytes on the wire over the capacity of the hosts' links.
    load: f64,
    subflows: usize,
    /// Whether the load is relative to the links of the sending hosts only.
    one_way: bool,
    incasts: Option<Incasts>,
}

/// Incasts: at random times several hosts send to one host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Incasts {
    pub senders: usize,
    /// Bytes that each sender sends.
    pub size_bytes: u64,
    /// Load of all incasts, in addition to the load of the other flows.
    pub load: f64,
}

impl Incasts {
    fn read(value: &Value) -> Result<Self, InputError> {
        let mut section = Section::of(value, INCASTS)?;
        let incasts =
            Incasts { senders: section.take("senders"), size_bytes: section.take("size"), load: section.take("load") };
        section.all(Some(incasts))
    }

    fn wire_bytes(&self, packet: PacketSizes) -> f64 {
        self.senders as f64 * packet.wire_bytes(self.size_bytes) as f64
    }

    /// Adds the flows of all incasts. `named`: those of an incast have its number as their name.
    pub fn flows(&self, builder: &mut FlowBuilder, subflows: usize, named: bool) -> Result<(), InputError> {
        let capacity_bps = capacity_bps(builder.topology, builder.topology.hosts());
        let gap_ns = self.wire_bytes(builder.packet) * 8e9 / (self.load * capacity_bps);
        let (seed, duration_ns) = (builder.seed, builder.duration_ns);
        let mut rng = Stream::new(seed, "incasts");
        for (number, at_ns) in
            times(&mut Stream::new(seed, "times of incasts"), gap_ns, duration_ns).into_iter().enumerate()
        {
            let mut hosts = builder.hosts.clone();
            rng.shuffle(&mut hosts);
            for k in 0..self.senders {
                let key = rng.bits();
                let src = hosts[1 + k % (hosts.len() - 1)];
                let carried = builder.add_over(src, hosts[0], at_ns, Some(self.size_bytes), subflows, key)?;
                let flow = if carried { builder.flows.last_mut() } else { builder.stranded.last_mut() };
                if let Some(flow) = flow.filter(|_| named) {
                    flow.id = Some(format!("incast {number}"));
                }
            }
        }
        Ok(())
    }

    /// Expected flows and bytes in a run of `duration_ns`.
    pub fn expected(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> ExpectedFlows {
        let wire_bytes = self.load * capacity_bps(topology, topology.hosts()) * duration_ns as f64 / 8e9;
        ExpectedFlows {
            flows: wire_bytes / packet.wire_bytes(self.size_bytes) as f64,
            live: self.senders as f64,
            wire_bytes,
        }
    }
}

impl Poisson {
    fn read(section: &mut Section, files: &Beside) -> Option<Self> {
        let sizes = sizes::read(section, files);
        let sizes = section.keep(sizes);
        let (load, subflows, one_way) = (section.take("load"), section.take("subflows"), section.take("one_way"));
        let incasts = section.nested("incasts", Incasts::read);
        if one_way && incasts.is_some() {
            section.note(InputError::new("incasts", "incasts are between all hosts", "leave one_way or incasts away"));
        }
        sizes.map(|sizes| Poisson { sizes, load, subflows, one_way, incasts })
    }

    fn mean_gap_ns(&self, topology: &Topology, packet: PacketSizes) -> f64 {
        let hosts = topology.hosts();
        let senders = if self.one_way { &hosts[..hosts.len() / 2] } else { hosts };
        self.sizes.mean_wire_bytes(packet) * 8e9 / (self.load * capacity_bps(topology, senders))
    }
}

impl Workload for Poisson {
    fn may_strand(&self) -> bool {
        true
    }
    fn has_sizes(&self) -> bool {
        true
    }
    fn smallest_weight(&self) -> f64 {
        1.0 / self.subflows as f64
    }
    fn draws_sizes(&self) -> bool {
        true
    }
    fn runs_both_ways(&self) -> bool {
        !self.one_way
    }
    fn settles(&self) -> bool {
        false
    }
    fn loads(&self) -> Option<(f64, f64)> {
        Some((self.load, self.load + self.incasts.map_or(0.0, |incasts| incasts.load)))
    }
    fn flows(&self, builder: &mut FlowBuilder) -> Result<(), InputError> {
        let packet = builder.packet;
        let (seed, duration_ns) = (builder.seed, builder.duration_ns);
        let (mut arrivals, mut drawn) = (Stream::new(seed, "arrivals"), Stream::new(seed, "sizes"));
        for at_ns in times(&mut arrivals, self.mean_gap_ns(builder.topology, packet), duration_ns) {
            let (src, dst) = if self.one_way { builder.pair_across() } else { builder.pair() };
            let size = self.sizes.draw(&mut drawn);
            builder.add(src, dst, at_ns, Some(size), self.subflows)?;
        }
        let Some(incasts) = self.incasts else { return Ok(()) };
        incasts.flows(builder, self.subflows, false)?;
        builder.flows.sort_by_key(|flow| flow.plan.start_ns);
        Ok(())
    }

    fn expected(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> ExpectedFlows {
        let hosts = topology.hosts().len() as f64;
        let capacity = topology.hosts().iter().map(|&h| topology.access_bps(h)).sum::<f64>() * duration_ns as f64 / 8e9;
        let mut expected = ExpectedFlows {
            flows: duration_ns as f64 / self.mean_gap_ns(topology, packet),
            // Mean number of flows in processor sharing; at load 1 there is no stationary state.
            live: hosts * self.load / (1.0 - self.load).max(0.01),
            wire_bytes: self.load * if self.one_way { capacity / 2.0 } else { capacity },
        };
        if let Some(incasts) = self.incasts {
            let ExpectedFlows { flows, live, wire_bytes } = incasts.expected(topology, packet, duration_ns);
            expected.wire_bytes += wire_bytes;
            expected.flows += flows;
            expected.live += live;
        }
        expected
    }
}

fn capacity_bps(topology: &Topology, hosts: &[NodeId]) -> f64 {
    hosts.iter().map(|&h| topology.access_bps(h)).sum()
}

/// Times of a Poisson process up to `duration_ns`, ns.
fn times(rng: &mut Stream, mean_gap_ns: f64, duration_ns: Ns) -> Vec<Ns> {
    let mut times = Vec::new();
    let mut at_ns = rng.exponential(mean_gap_ns);
    while at_ns < duration_ns as f64 {
        times.push(at_ns as Ns);
        at_ns += rng.exponential(mean_gap_ns);
    }
    times
}
