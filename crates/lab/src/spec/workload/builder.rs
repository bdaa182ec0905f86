//! Creates flows between hosts, with a separate random stream for each purpose.

use super::Planned;
use crate::spec::topology::Topology;
use subak_core::backend::{FlowPlan, Injected, PacketSizes, Route, Spread};
use subak_core::flows::{Extra, Narrow};
use subak_core::rng::Stream;
use subak_core::route::Router;
use subak_core::{FlowId, IdVec, InputError, NodeId, Ns};

/// Builds flows between hosts.
pub(crate) struct FlowBuilder<'a> {
    pub topology: &'a Topology,
    pub router: Router,
    pub hosts: Vec<NodeId>,
    pub seed: u64,
    pairs: Stream,
    /// Random stream of path choices.
    pub paths: Stream,
    pub packet: PacketSizes,
    /// Injected faults: some raise link capacities, on which workloads may depend.
    pub faults: &'a [Injected],
    pub duration_ns: Ns,
    /// Flows built so far.
    pub flows: IdVec<FlowId, Planned>,
    /// Flows without a path.
    pub stranded: Vec<Planned>,
    /// Whether flows without a path are added to `stranded`; otherwise they are errors.
    pub strands: bool,
    /// Flows with fewer paths than subflows.
    pub narrow: Narrow,
    /// Chains of dependent transfers omitted, since they start after the run, and all of them.
    pub late: (usize, usize),
}

impl<'a> FlowBuilder<'a> {
    pub fn new(
        topology: &'a Topology,
        seed: u64,
        packet: PacketSizes,
        faults: &'a [Injected],
        duration_ns: Ns,
    ) -> Self {
        FlowBuilder {
            topology,
            router: topology.router(),
            hosts: topology.hosts().to_vec(),
            seed,
            pairs: Stream::new(seed, "pairs"),
            paths: Stream::new(seed, "paths"),
            packet,
            faults,
            duration_ns,
            flows: IdVec::new(),
            stranded: Vec::new(),
            strands: false,
            narrow: Narrow::default(),
            late: (0, 0),
        }
    }

    /// Like [`FlowBuilder::new`], with the router and the stream of path choices of an earlier builder.
    pub fn resumed(topology: &'a Topology, seed: u64, packet: PacketSizes, (router, paths): (Router, Stream)) -> Self {
        FlowBuilder {
            topology,
            router,
            hosts: topology.hosts().to_vec(),
            seed,
            pairs: Stream::new(seed, "pairs"),
            paths,
            packet,
            faults: &[],
            duration_ns: Ns::MAX,
            flows: IdVec::new(),
            stranded: Vec::new(),
            strands: false,
            narrow: Narrow::default(),
            late: (0, 0),
        }
    }

    /// A random pair of different hosts.
    pub fn pair(&mut self) -> (NodeId, NodeId) {
        let n = self.hosts.len();
        let src = self.pairs.below(n);
        let other = self.pairs.below(n - 1);
        (self.hosts[src], self.hosts[if other < src { other } else { other + 1 }])
    }

    /// A random host of the first half, and one of the second half.
    pub fn pair_across(&mut self) -> (NodeId, NodeId) {
        let (n, half) = (self.hosts.len(), self.hosts.len() / 2);
        (self.hosts[self.pairs.below(half)], self.hosts[half + self.pairs.below(n - half)])
    }

    /// Adds a flow of weight 1. A flow without a size stops at the end of the duration. Returns `false` if the flow
    /// has no path.
    pub fn add(
        &mut self,
        src: NodeId,
        dst: NodeId,
        start_ns: Ns,
        size: Option<u64>,
        subflows: usize,
    ) -> Result<bool, InputError> {
        let key = self.paths.bits();
        self.add_over(src, dst, start_ns, size, subflows, key)
    }

    /// Same as [`FlowBuilder::add`], over the paths that routing selects by the hash key `key`.
    pub fn add_over(
        &mut self,
        src: NodeId,
        dst: NodeId,
        start_ns: Ns,
        size: Option<u64>,
        subflows: usize,
        key: u64,
    ) -> Result<bool, InputError> {
        let (routes, spread) = match self.ways(src, dst, key, subflows) {
            Err(_) if self.strands && src != dst => (Vec::new(), None),
            ways => ways?,
        };
        let plan = FlowPlan {
            spread,
            start_ns,
            stop_ns: if size.is_none() { Some(self.duration_ns) } else { None },
            size_bytes: size,
            ..FlowPlan::new(routes)
        };
        let extra = Extra { size_bytes: size, ..Extra::default() };
        let carried = !plan.routes.is_empty();
        let flow = Planned {
            id: None,
            src: Some(src),
            dst: Some(dst),
            extra,
            after: Vec::new(),
            needed: None,
            delays_ns: Vec::new(),
            earliest_ns: 0,
            weights: Vec::new(),
            connections: 1,
            spare: false,
            class: None,
            plan,
        };
        if carried {
            self.flows.push(flow);
        } else {
            self.stranded.push(flow);
        }
        Ok(carried)
    }

    /// Routes of a flow between two hosts: see [`Topology::ways`].
    pub fn ways(
        &mut self,
        src: NodeId,
        dst: NodeId,
        key: u64,
        subflows: usize,
    ) -> Result<(Vec<Route>, Option<Spread>), InputError> {
        let ways = self.topology.ways(&mut self.router, src, dst, key, subflows)?;
        if self.topology.spread().is_none() {
            self.narrow.count(subflows, ways.0.len());
        }
        Ok(ways)
    }

    /// Adds `more` subflows to the last flow; each path is selected by another hash key.
    pub fn hash_more(&mut self, more: usize) -> Result<(), InputError> {
        let Some(flow) = self.flows.last_mut() else { return Ok(()) };
        if let (Some(src), Some(dst)) = (flow.src, flow.dst) {
            for _ in 0..more {
                flow.plan.routes.extend(self.topology.routes(&mut self.router, src, dst, self.paths.bits(), 1)?);
            }
        }
        Ok(())
    }

    /// Merges subflows of the last flow that take the same path: a second subflow on a path does not change the
    /// flow's optimal rate.
    pub fn merge_paths(&mut self) {
        let Some(flow) = self.flows.last_mut() else { return };
        let mut seen = Vec::new();
        flow.plan.routes.retain(|route| {
            let new = !seen.contains(&route.forward);
            seen.push(route.forward.clone());
            new
        });
    }

    /// Turns each subflow of the last flow into a separate flow of the full size.
    pub fn take_apart(&mut self) {
        let Some(whole) = self.flows.pop() else { return };
        self.flows.extend(whole.plan.routes.iter().map(|route| {
            let mut one = whole.clone();
            one.plan.routes = vec![route.clone()];
            one
        }));
    }
}
