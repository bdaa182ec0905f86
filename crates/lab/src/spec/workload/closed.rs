//! Closed loops: a client keeps a number of transfers outstanding. Some time after one completes, the client starts
//! the next.
//!
//! Each of a client's `outstanding` slots is a chain of dependent transfers. How many transfers run depends on the
//! network. A chain is therefore planned with as many transfers as its host's idle link could carry. Transfers that
//! never start have no row in the results. Each chain has a random stream of its own.

use super::sizes::{LARGEST, SIZE, SIZES, SMALLEST};
use super::{Common, ExpectedFlows, FlowBuilder, MOST_FLOWS, Workload, WorkloadInfo, host};
use crate::files::Beside;
use crate::spec::topology::Topology;
use std::sync::Arc;
use subak_core::backend::{Injected, LinkChange, PacketSizes};
use subak_core::idle::wire_time_ns;
use subak_core::keys::{Key, ValueType};
use subak_core::rng::{Stream, mix};
use subak_core::section::Section;
use subak_core::sizes::Sizes;
use subak_core::{FlowId, IdVec, InputError, LinkId, NodeId, Ns};

pub(super) const ENTRY: WorkloadInfo = WorkloadInfo {
    name: "closed",
    about: "clients that start a transfer when an earlier one ends: see below",
    keys: &[
        SIZES,
        SIZE,
        SMALLEST,
        LARGEST,
        Key::open("hosts", ValueType::List(&ValueType::Text), "all", "hosts with clients"),
        Key::open("to", ValueType::List(&ValueType::Text), "every other host", "hosts that transfers go to"),
        Key::new("clients", ValueType::Whole(1, 10_000), "1", "clients at each of these hosts"),
        Key::new("outstanding", ValueType::Whole(1, 10_000), "1", "transfers in flight per client"),
        Key::new("think", ValueType::Time, "0", "time between a transfer's end and the next one's start"),
        Key::new("spread", ValueType::Time, "0", "the first transfers start at random times within this period"),
        Key::open(
            "transfers",
            ValueType::Whole(1, 1_000_000),
            "as many as the run has time for",
            "number of transfers in each of a client's `outstanding` slots",
        ),
    ],
    common: Common::All,
    read: |section, files| Ok(Closed::read(section, files).map(|closed| Arc::new(closed) as Arc<dyn Workload>)),
};

#[derive(Debug)]
struct Closed {
    sizes: Sizes,
    /// Hosts with clients; `None`: all hosts.
    hosts: Option<Vec<String>>,
    /// Hosts to which transfers go; `None`: every other host.
    to: Option<Vec<String>>,
    /// Number of clients per host.
    clients: usize,
    /// Number of concurrent transfers of a client: its slots.
    outstanding: usize,
    /// Think time, ns: from the end of a transfer to the start of the next one.
    think_ns: Ns,
    /// Length of the interval in which the first transfers start at random times, ns.
    spread_ns: Ns,
    /// Number of transfers per slot; `None`: unlimited.
    transfers: Option<usize>,
}

impl Closed {
    fn read(section: &mut Section, files: &Beside) -> Option<Self> {
        let sizes = super::sizes::read(section, files);
        let sizes = section.keep(sizes);
        let [hosts, to] = ["hosts", "to"].map(|key| {
            let names = section.given::<Vec<String>>(key);
            if names.as_ref().is_some_and(Vec::is_empty) {
                section.note(InputError::new(key, "the list is empty", "name a host, or leave it out"));
            }
            names
        });
        let closed = |sizes| Closed {
            sizes,
            hosts,
            to,
            clients: section.take("clients"),
            outstanding: section.take("outstanding"),
            think_ns: section.take("think"),
            spread_ns: section.take("spread"),
            transfers: section.given("transfers"),
        };
        sizes.map(closed)
    }

    fn nodes(&self, names: Option<&Vec<String>>, key: &str, topology: &Topology) -> Result<Vec<NodeId>, InputError> {
        let Some(names) = names else { return Ok(topology.hosts().to_vec()) };
        let find = |(i, name): (usize, &String)| host(topology, name).map_err(|e| e.below(&format!("{key}[{i}]")));
        names.iter().enumerate().map(find).collect()
    }

    /// Hosts with clients, and destinations.
    fn ends(&self, topology: &Topology) -> Result<(Vec<NodeId>, Vec<NodeId>), InputError> {
        Ok((self.nodes(self.hosts.as_ref(), "hosts", topology)?, self.nodes(self.to.as_ref(), "to", topology)?))
    }

    /// Smallest time from the end of a transfer to the start of the next one, ns.
    fn gap_ns(&self, topology: &Topology) -> Ns {
        self.think_ns.max(topology.quickest_ns())
    }

    /// Adds the transfers of one slot, each dependent on the previous one; `least_ns` is the smallest time between
    /// two starts.
    fn chain(
        &self,
        builder: &mut FlowBuilder,
        src: NodeId,
        others: &[NodeId],
        least_ns: &dyn Fn(u64) -> Ns,
        stream: &mut Stream,
    ) -> Result<(), InputError> {
        let mut at_ns = (self.spread_ns as f64 * stream.unit()) as Ns;
        let mut before: Option<FlowId> = None;
        let is_late = at_ns >= builder.duration_ns;
        builder.late = (builder.late.0 + usize::from(is_late), builder.late.1 + 1);
        for _ in 0..self.transfers.unwrap_or(usize::MAX) {
            if at_ns >= builder.duration_ns {
                break;
            }
            if builder.flows.len() as f64 >= MOST_FLOWS {
                let what = format!("more than {MOST_FLOWS:.0} transfers could be made");
                return Err(InputError::new(
                    "workload",
                    what,
                    "shorten the run, or give fewer clients, or transfers = N",
                ));
            }
            let (dst, size) = (others[stream.below(others.len())], self.sizes.draw(stream));
            let start_ns = if before.is_some() { self.think_ns } else { at_ns };
            let number = FlowId::from_index(builder.flows.len());
            builder.add_over(src, dst, start_ns, Some(size), 1, stream.bits())?;
            if let Some(transfer) = builder.flows.last_mut() {
                transfer.after.extend(before);
                transfer.spare = before.is_some();
            }
            at_ns = at_ns.saturating_add(least_ns(size));
            before = Some(number);
        }
        Ok(())
    }
}

impl Workload for Closed {
    fn unread(&self, _duration_ns: Ns) -> Vec<(String, &'static str)> {
        let is_unread = self.transfers == Some(1) && self.think_ns > 0;
        is_unread.then(|| ("think".to_string(), "each client has one transfer")).into_iter().collect()
    }
    fn has_sizes(&self) -> bool {
        true
    }
    fn draws_sizes(&self) -> bool {
        true
    }
    fn runs_both_ways(&self) -> bool {
        true
    }
    fn may_be_late(&self, duration_ns: Ns) -> bool {
        self.spread_ns > duration_ns
    }
    fn settles(&self) -> bool {
        false
    }
    /// An error for unknown hosts, and for clients without destinations.
    fn check(&self, topology: &Topology, _duration_ns: Ns) -> Result<(), InputError> {
        let (from, to) = self.ends(topology)?;
        match from.iter().find(|&src| to.iter().all(|dst| dst == src)) {
            None => Ok(()),
            Some(&alone) => {
                let name = &topology.network().nodes()[alone].name;
                let what = format!("the clients of {name} have no other host to send to");
                Err(InputError::new("to", what, "name another host, or leave out hosts that send nothing"))
            }
        }
    }

    fn expected(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> ExpectedFlows {
        let (from, to) = self.ends(topology).unwrap_or_default();
        let rate = |hosts: &[NodeId]| hosts.iter().map(|&h| topology.access_bps(h)).sum::<f64>();
        let capacity_bps = rate(&from).min(rate(&to));
        let chains = (from.len() * self.clients * self.outstanding) as f64;
        let wire = self.sizes.mean_wire_bytes(packet);
        let each_ns = wire * 8e9 * from.len() as f64 / rate(&from) + self.gap_ns(topology) as f64;
        let possible = (chains * (1.0 + duration_ns as f64 / each_ns))
            .min(self.transfers.map_or(f64::INFINITY, |n| chains * n as f64));
        let wire_bytes = (possible * wire).min(capacity_bps * duration_ns as f64 / 8e9);
        ExpectedFlows { flows: possible, live: chains, wire_bytes }
    }
    fn flows(&self, builder: &mut FlowBuilder) -> Result<(), InputError> {
        let (topology, packet) = (builder.topology, builder.packet);
        let (from, to) = self.ends(topology)?;
        // The smallest possible time: the smallest delay, and the fastest outgoing link of the host, with faults that
        // raise its capacity.
        let mut fastest_bps: IdVec<LinkId, f64> = topology.network().links().iter().map(|l| l.capacity_bps).collect();
        for (_, link, change) in Injected::link_changes(builder.faults) {
            if let LinkChange::Capacity(bps) = change {
                fastest_bps[link] = fastest_bps[link].max(bps);
            }
        }
        let between_ns = topology.quickest_ns().saturating_add(self.gap_ns(topology));
        for &src in &from {
            let others: Vec<NodeId> = to.iter().copied().filter(|&dst| dst != src).collect();
            let line_bps = topology.network().out_links(src).iter().map(|&l| fastest_bps[l]).fold(1.0, f64::max);
            let least_ns = |size| {
                let sending_ns = wire_time_ns(packet.wire_bytes(size) as f64, line_bps);
                sending_ns.saturating_add(between_ns)
            };
            for place in 0..self.clients * self.outstanding {
                let seed = mix(builder.seed ^ mix(u64::from(src)));
                let mut stream = Stream::new(mix(seed ^ place as u64), "client");
                self.chain(builder, src, &others, &least_ns, &mut stream)?;
            }
        }
        Ok(())
    }
}
