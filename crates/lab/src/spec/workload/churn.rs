//! Endless flows between random hosts. At every epoch, many of the flows start or stop simultaneously.

use super::{Common, ExpectedFlows, FlowBuilder, SUBFLOWS, Workload, WorkloadInfo};
use crate::spec::topology::Topology;
use std::sync::Arc;
use subak_core::backend::PacketSizes;
use subak_core::keys::{Key, Low, SHARE, ValueType};
use subak_core::rng::Stream;
use subak_core::section::Section;
use subak_core::{FlowId, InputError, NodeId, Ns};

const PER_HOST: ValueType = ValueType::Number(Low::Above(0.0), 1e5);

pub(super) const ENTRY: WorkloadInfo = WorkloadInfo {
    name: "churn",
    about: "endless flows; at the end of every `epoch`, a share of them stops and as many new ones start (PERC thesis, section 4.3.1)",
    keys: &[
        Key::required("epoch", ValueType::Time, "time between changes, such as \"2ms\""),
        Key::new(
            "flows_per_host",
            PER_HOST,
            "20",
            "flows per host, on average over the hosts; with `most_per_host`, the minimum",
        ),
        Key::new("replace", SHARE, "0.4", "share of the flows that each change replaces"),
        SUBFLOWS,
        Key::new(
            "alternate",
            ValueType::Flag,
            "false",
            "changes alternate: one starts the share `replace` of flows, the next one stops as many (section 2.7.1)",
        ),
        Key::open(
            "most_per_host",
            PER_HOST,
            "none: see alternate",
            "with `alternate`, maximum of flows per host: each change moves the number of flows to a random value between \
             `flows_per_host` and this maximum",
        ),
        Key::open(
            "pairs_per_host",
            PER_HOST,
            "each flow draws its own pair",
            "number of pairs of hosts, with a path each, over the number of hosts. They are drawn once; a new flow takes one \
             that no other flow has (NUMFabric, section 6.1)",
        ),
    ],
    common: Common::All,
    read: |section, _| Ok(Some(Arc::new(Churn::read(section)))),
};

#[derive(Debug)]
struct Churn {
    /// Number of flows per host; the smallest number if it varies.
    flows_per_host: f64,
    /// Fraction of the flows that starts or stops at each epoch.
    replace: f64,
    /// Time between epochs, ns.
    epoch_ns: Ns,
    /// Subflows per flow.
    subflows: usize,
    /// Whether epochs alternate between starting and stopping flows (PERC thesis, section 2.7.1); otherwise flows are
    /// replaced (section 4.3.1).
    alternate: bool,
    /// With `alternate`: largest number of flows per host. Between the bounds, each epoch starts or stops flows at
    /// random (NUMFabric, section 6.1). `None`: starts and stops alternate.
    most_per_host: Option<f64>,
    /// Number of fixed random pairs of hosts, per host, each with a path: a new flow takes an unused pair. `None`:
    /// each flow draws a new pair.
    pairs_per_host: Option<f64>,
}

/// Numbers of flows in the whole network: lower and upper bound, and number changed per epoch.
#[derive(Debug, Clone, Copy)]
struct ChurnCounts {
    fewest: usize,
    most: usize,
    changed: usize,
}

/// A pair of hosts, and the hash key by which routing selects their path.
#[derive(Debug, Clone, Copy)]
struct Ends {
    src: NodeId,
    dst: NodeId,
    key: u64,
}

impl Churn {
    fn read(section: &mut Section) -> Self {
        let churn = Churn {
            flows_per_host: section.take("flows_per_host"),
            replace: section.take("replace"),
            epoch_ns: section.take("epoch"),
            subflows: section.take("subflows"),
            alternate: section.take("alternate"),
            most_per_host: section.given("most_per_host"),
            pairs_per_host: section.given("pairs_per_host"),
        };
        if churn.epoch_ns == 0 {
            section.note(InputError::new("epoch", "the time is 0", "give a time of at least 1ns"));
        }
        if churn.most_per_host.is_some() && !churn.alternate {
            let what = "the number of flows does not change";
            section.note(InputError::new("most_per_host", what, "set alternate = true, or leave it out"));
        }
        churn
    }

    fn counts(&self, hosts: usize) -> ChurnCounts {
        let whole = |per_host: f64| ((per_host * hosts as f64).round() as usize).max(1);
        let fewest = whole(self.flows_per_host);
        let changed = (self.replace * fewest as f64).round() as usize;
        let most = match self.most_per_host {
            Some(most) => whole(most),
            None => fewest + if self.alternate { changed } else { 0 },
        };
        ChurnCounts { fewest, most, changed }
    }
}

impl Workload for Churn {
    fn has_sizes(&self) -> bool {
        false
    }
    fn smallest_weight(&self) -> f64 {
        1.0 / self.subflows as f64
    }
    fn runs_both_ways(&self) -> bool {
        true
    }
    fn unread(&self, duration_ns: Ns) -> Vec<(String, &'static str)> {
        let why = "it is not shorter than run.duration, so that the flows never change; give a shorter one";
        (self.epoch_ns >= duration_ns).then(|| ("epoch".to_string(), why)).into_iter().collect()
    }
    /// An error if the bounds on the number of flows are closer than one epoch's change, or if there are too few
    /// pairs.
    fn check(&self, topology: &Topology, _duration_ns: Ns) -> Result<(), InputError> {
        let hosts = topology.hosts().len();
        let ChurnCounts { fewest, most, changed } = self.counts(hosts);
        if self.alternate && most < fewest + changed {
            let what = format!("from {fewest} flows, {changed} more are above the most of {most}");
            return Err(InputError::new("most_per_host", what, "raise it, or lower replace"));
        }
        let pairs = self.pairs_per_host.map_or(usize::MAX, |p| (p * hosts as f64).round() as usize);
        if pairs < most {
            let what = format!("{pairs} pairs are too few for {most} flows at once");
            return Err(InputError::new("pairs_per_host", what, "raise it, or leave it out"));
        }
        Ok(())
    }

    fn expected(&self, topology: &Topology, _packet: PacketSizes, duration_ns: Ns) -> ExpectedFlows {
        let hosts = topology.hosts().len() as f64;
        let epochs = (duration_ns / self.epoch_ns) as f64;
        let live = self.most_per_host.map_or(self.flows_per_host, |m| (m + self.flows_per_host) / 2.0) * hosts;
        let replaced = self.flows_per_host * hosts * self.replace * epochs;
        ExpectedFlows { flows: live + replaced, live, wire_bytes: topology.capacity_bytes(duration_ns) }
    }

    fn flows(&self, builder: &mut FlowBuilder) -> Result<(), InputError> {
        let hosts = builder.hosts.len();
        let counts = self.counts(hosts);
        let mut run = RunningChurn {
            subflows: self.subflows,
            choice: Stream::new(builder.seed, "churn"),
            idle: self
                .pairs_per_host
                .map(|p| (0..(p * hosts as f64).round() as usize).map(|_| ends(builder)).collect()),
            live: Vec::with_capacity(counts.most),
            builder,
        };
        run.start(counts.fewest, 0)?;
        let mut turns = Stream::new(run.builder.seed, "turns");
        let mut at_ns = self.epoch_ns;
        while at_ns < run.builder.duration_ns && counts.changed > 0 {
            let (may_start, may_stop) =
                (run.live.len() + counts.changed <= counts.most, run.live.len() >= counts.fewest + counts.changed);
            if !self.alternate {
                run.stop(counts.changed, at_ns);
                run.start(counts.changed, at_ns)?;
            } else if may_start && (!may_stop || turns.unit() < 0.5) {
                run.start(counts.changed, at_ns)?;
            } else {
                run.stop(counts.changed, at_ns);
            }
            at_ns = at_ns.saturating_add(self.epoch_ns);
        }
        Ok(())
    }
}

fn ends(builder: &mut FlowBuilder) -> Ends {
    let (src, dst) = builder.pair();
    Ends { src, dst, key: builder.paths.bits() }
}

struct RunningChurn<'a, 'b> {
    builder: &'a mut FlowBuilder<'b>,
    subflows: usize,
    choice: Stream,
    /// Unused pairs, if there is a fixed set of pairs.
    idle: Option<Vec<Ends>>,
    /// Running flows: index in the builder, and pair of hosts.
    live: Vec<(usize, Ends)>,
}

impl RunningChurn<'_, '_> {
    fn start(&mut self, count: usize, at_ns: Ns) -> Result<(), InputError> {
        for _ in 0..count {
            let ends = match &mut self.idle {
                Some(idle) => idle.swap_remove(self.choice.below(idle.len())),
                None => ends(self.builder),
            };
            self.live.push((self.builder.flows.len(), ends));
            self.builder.add_over(ends.src, ends.dst, at_ns, None, self.subflows, ends.key)?;
        }
        Ok(())
    }

    fn stop(&mut self, count: usize, at_ns: Ns) {
        for _ in 0..count {
            let (flow, ends) = self.live.swap_remove(self.choice.below(self.live.len()));
            self.builder.flows[FlowId::from_index(flow)].plan.stop_ns = Some(at_ns);
            if let Some(idle) = &mut self.idle {
                idle.push(ends);
            }
        }
    }
}
