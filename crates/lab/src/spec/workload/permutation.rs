//! Permutation: every host sends to one host and receives from one host, and these pairs form a single cycle.

use super::{Common, ExpectedFlows, FlowBuilder, SUBFLOWS, Workload, WorkloadInfo, sized};
use crate::spec::topology::Topology;
use std::sync::Arc;
use subak_core::backend::PacketSizes;
use subak_core::keys::{Key, ValueType};
use subak_core::rng::Stream;
use subak_core::section::Section;
use subak_core::{InputError, Ns};

pub(super) const ENTRY: WorkloadInfo = WorkloadInfo {
    name: "permutation",
    about: "every host sends to one other host and receives from one; flows are endless without a `size`",
    keys: &[
        Key::open("size", ValueType::Size, "endless", "bytes of each flow"),
        SUBFLOWS,
        Key::new(
            "one_way",
            ValueType::Flag,
            "false",
            "only the first half of the hosts send, each to one of the second half",
        ),
        Key::new("apart", ValueType::Flag, "false", "each subflow is a separate flow, without pooling"),
        Key::new(
            "hashed",
            ValueType::Flag,
            "false",
            "each subflow takes a random path, so that two of a flow may share one; otherwise paths differ",
        ),
    ],
    common: Common::All,
    read: |section, _| Ok(Some(Arc::new(Permutation::read(section)))),
};

#[derive(Debug)]
struct Permutation {
    size_bytes: Option<u64>,
    subflows: usize,
    one_way: bool,
    apart: bool,
    hashed: bool,
}

impl Permutation {
    fn read(section: &mut Section) -> Self {
        Permutation {
            size_bytes: section.given("size"),
            subflows: section.take("subflows"),
            one_way: section.take("one_way"),
            apart: section.take("apart"),
            hashed: section.take("hashed"),
        }
    }
}

impl Workload for Permutation {
    fn has_sizes(&self) -> bool {
        self.size_bytes.is_some()
    }
    fn smallest_weight(&self) -> f64 {
        1.0 / self.subflows as f64
    }
    fn may_strand(&self) -> bool {
        true
    }
    fn runs_both_ways(&self) -> bool {
        !self.one_way
    }
    fn unread(&self, _duration_ns: Ns) -> Vec<(String, &'static str)> {
        let why = "each flow has one subflow; give workload.subflows = 2 or more";
        let keys = [("apart", self.apart), ("hashed", self.hashed)];
        keys.into_iter()
            .filter(|&(_, given)| given && self.subflows == 1)
            .map(|(key, _)| (key.to_string(), why))
            .collect()
    }
    fn flows(&self, builder: &mut FlowBuilder) -> Result<(), InputError> {
        let (n, mut order) = (builder.hosts.len(), Stream::new(builder.seed, "permutation"));
        let to = if self.one_way { across(n, &mut order) } else { cycle(n, &mut order) };
        for (i, &j) in to.iter().enumerate() {
            let subflows = if self.hashed { 1 } else { self.subflows };
            if !builder.add(builder.hosts[i], builder.hosts[j], 0, self.size_bytes, subflows)? {
                continue;
            }
            if self.hashed {
                builder.hash_more(self.subflows - 1)?;
            }
            if self.apart {
                builder.take_apart();
            } else if self.hashed {
                builder.merge_paths();
            }
        }
        Ok(())
    }
    fn expected(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> ExpectedFlows {
        let share = if self.one_way { 0.5 } else { 1.0 };
        let each = if self.apart { self.subflows as f64 } else { 1.0 };
        let flows = topology.hosts().len() as f64 * share * each;
        sized(flows, self.size_bytes, packet, topology.capacity_bytes(duration_ns) * share)
    }
}

/// A random cyclic permutation of `0..n` (Sattolo's algorithm): no element stays in place.
fn cycle(n: usize, stream: &mut Stream) -> Vec<usize> {
    let mut to: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        to.swap(i, stream.below(i));
    }
    to
}

/// A different random element of the second half of `0..n` for each element of the first half.
fn across(n: usize, stream: &mut Stream) -> Vec<usize> {
    let mut to: Vec<usize> = (n / 2..n).collect();
    stream.shuffle(&mut to);
    to.truncate(n / 2);
    to
}
