//! Incast: many hosts send to one host.

use super::poisson::{Incasts, LOAD};
use super::{Common, ExpectedFlows, FlowBuilder, Workload, WorkloadInfo, host, sized};
use crate::spec::topology::Topology;
use std::sync::Arc;
use subak_core::backend::PacketSizes;
use subak_core::keys::{Key, ValueType};
use subak_core::rng::Stream;
use subak_core::section::Section;
use subak_core::{InputError, NodeId, Ns};

pub(super) const ENTRY: WorkloadInfo = WorkloadInfo {
    name: "incast",
    about: "many senders, one receiver; flows are endless without a `size`. With more senders than other hosts, some hosts send several flows",
    keys: &[
        Key::required("senders", ValueType::Whole(1, 1_000_000), "number of senders"),
        Key::open("size", ValueType::Size, "endless", "bytes of each flow"),
        Key::open("receiver", ValueType::Text, "the first host", "receiving host"),
        Key::new("interval", ValueType::Time, "0", "time between the starts of two senders"),
        Key::open(
            "load",
            LOAD,
            "none",
            "repeats incasts of `senders` and `size` at random times, each between random hosts, with this load in all; the flows of \
             one have its number as `flow_id`",
        ),
    ],
    common: Common::All,
    read: |section, _| Ok(Incast::read(section)),
};

#[derive(Debug)]
struct Incast {
    senders: usize,
    size_bytes: Option<u64>,
    receiver: Option<String>,
    interval_ns: Ns,
}

impl Incast {
    fn read(section: &mut Section) -> Option<Arc<dyn Workload>> {
        let senders = section.take("senders");
        let size_bytes: Option<u64> = section.given("size");
        let load: Option<f64> = section.given("load");
        let (receiver, interval_ns) = (section.given("receiver"), section.take("interval"));
        let Some(load) = load else {
            return Some(Arc::new(Incast { senders, size_bytes, receiver, interval_ns }));
        };
        let Some(size_bytes) = size_bytes else {
            section.note(InputError::new("size", "repeated incasts need a size", "give the bytes of each flow"));
            return None;
        };
        if receiver.is_some() {
            section.note(InputError::new("receiver", "each of repeated incasts draws its own", "leave it away"));
        }
        if interval_ns > 0 {
            section.note(InputError::new("interval", "the flows of repeated incasts start together", "leave it away"));
        }
        Some(Arc::new(RepeatedIncasts(Incasts { senders, size_bytes, load })))
    }
}

/// Incasts at random times between random hosts.
#[derive(Debug)]
struct RepeatedIncasts(Incasts);

impl Workload for RepeatedIncasts {
    fn has_sizes(&self) -> bool {
        true
    }
    fn may_strand(&self) -> bool {
        true
    }
    fn runs_both_ways(&self) -> bool {
        true
    }
    fn settles(&self) -> bool {
        false
    }
    fn loads(&self) -> Option<(f64, f64)> {
        Some((self.0.load, self.0.load))
    }
    fn flows(&self, builder: &mut FlowBuilder) -> Result<(), InputError> {
        self.0.flows(builder, 1, true)
    }
    fn expected(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> ExpectedFlows {
        self.0.expected(topology, packet, duration_ns)
    }
}

impl Workload for Incast {
    fn has_sizes(&self) -> bool {
        self.size_bytes.is_some()
    }
    fn may_strand(&self) -> bool {
        true
    }
    fn check(&self, topology: &Topology, _duration_ns: Ns) -> Result<(), InputError> {
        let Some(name) = &self.receiver else { return Ok(()) };
        host(topology, name).map(drop).map_err(|e| e.below("receiver"))
    }
    fn notes(&self, duration_ns: Ns) -> Vec<String> {
        let starts = (0..self.senders as Ns).map(|k| k.saturating_mul(self.interval_ns));
        let late = starts.filter(|&at_ns| at_ns >= duration_ns).count();
        super::left_out(late, self.senders).into_iter().collect()
    }
    fn unread(&self, _duration_ns: Ns) -> Vec<(String, &'static str)> {
        let is_unread = self.senders == 1 && self.interval_ns > 0;
        is_unread.then(|| ("interval".to_string(), "there is one sender")).into_iter().collect()
    }
    fn flows(&self, builder: &mut FlowBuilder) -> Result<(), InputError> {
        let to = match &self.receiver {
            Some(name) => host(builder.topology, name).map_err(|e| e.below("receiver"))?,
            None => builder.hosts[0],
        };
        let mut from: Vec<NodeId> = builder.hosts.iter().copied().filter(|&h| h != to).collect();
        Stream::new(builder.seed, "senders").shuffle(&mut from);
        // A flow that would start after the run is omitted.
        let starts = (0..self.senders as Ns).map(|k| k.saturating_mul(self.interval_ns));
        let duration_ns = builder.duration_ns;
        for (k, start_ns) in starts.take_while(|&at| at < duration_ns).enumerate() {
            builder.add(from[k % from.len()], to, start_ns, self.size_bytes, 1)?;
        }
        Ok(())
    }
    fn expected(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> ExpectedFlows {
        let endless = topology.capacity_bytes(duration_ns) / topology.hosts().len() as f64;
        sized(self.senders as f64, self.size_bytes, packet, endless)
    }
}
