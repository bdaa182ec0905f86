//! The allocator and its endpoints under flows that start and end, without packets: what the allocator's link carries,
//! and how near the rates are that endpoints have to the optimum.
//!
//! A datagram takes a tick, and one more through an intermediary, which serves a group of endpoints: datagrams for
//! them are packed into bundles. A flow sends at the rate that its endpoint has, and ends at the first tick after its
//! last byte.

use crate::{Allocator, ControlSettings, Ecmp, Endpoint, PriceLaw};
use std::collections::VecDeque;
use subak_core::route::{Router, Routing};
use subak_core::{Case, Flow, Flows, InputError, LinkId, Network, NodeId, Ns, Policy};
use subak_solve::{SolveOptions, solve};
use subak_wire::{Bundle, Datagram};

/// The smallest frame, bytes, with preamble and gap (Flowtune, section 6: "Ethernet has 64-byte minimum frames and
/// preamble and interframe gaps, which cost 84 bytes").
const LEAST_FRAME: usize = 84;
/// Header bytes of a datagram: Ethernet with check sequence, preamble and gap; IPv4; UDP.
pub const DATAGRAM_HEADERS: usize = 38 + 20 + 8;
/// Largest payload of a datagram, bytes.
pub const DATAGRAM_MTU: usize = 1500 - 28;

/// A flow that endpoints announce.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AnnouncedFlow {
    /// Index of its host among the network's hosts.
    pub src: usize,
    /// Index of the host to which it sends.
    pub dst: usize,
    /// Start, s.
    pub start_s: f64,
    /// Size, bytes.
    pub size_bytes: u64,
}

/// How flows are allocated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AllocationPlan {
    /// Seed of the paths.
    pub seed: u64,
    /// Time between two iterations, ns.
    pub tick_ns: Ns,
    /// Step size of NED; `None` for its default.
    pub gamma: Option<f64>,
    /// Number of hosts of an intermediary; 1: the allocator sends to each host.
    pub group: usize,
    /// Number of the tick from which on rates are compared with the optimum.
    pub compare_from: usize,
    /// Ticks between two comparisons; 0: no comparisons.
    pub compare_every: usize,
}

/// Observations of one tick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AllocationTick {
    /// Number of active flows, at the tick's end.
    pub flows: usize,
    /// Datagrams to endpoints that the allocator sent.
    pub datagrams: usize,
    /// Rates in these datagrams.
    pub rates: usize,
    /// Bytes of the frames on the allocator's link, with headers and gaps.
    pub bytes: usize,
    /// Sum of the rates that endpoints have, and of the optimal rates, bit/s, where they were compared.
    pub compared_bps: Option<(f64, f64)>,
}

struct Sending {
    host: usize,
    connection: u64,
    path: Vec<LinkId>,
    left_bits: f64,
}

/// An allocator, its endpoints and their flows.
pub struct Allocation {
    network: Network,
    hosts: Vec<NodeId>,
    router: Router,
    allocator: Allocator,
    endpoints: Vec<Endpoint>,
    flows: Vec<AnnouncedFlow>,
    plan: AllocationPlan,
    /// The next flow to start.
    next: usize,
    sendings: Vec<Sending>,
    /// Datagrams that reach the allocator in the next tick.
    up: Vec<Datagram>,
    /// Datagrams to endpoints, by the number of ticks until they arrive: one, or two through an intermediary.
    down: VecDeque<Vec<Datagram>>,
    ticks: usize,
}

impl Allocation {
    /// Allocates `flows`, in order of their starts, over `network`, whose first nodes are its hosts.
    pub fn new(network: Network, flows: Vec<AnnouncedFlow>, plan: AllocationPlan) -> Result<Self, InputError> {
        let hosts: Vec<NodeId> = network.hosts().collect();
        if hosts.iter().enumerate().any(|(h, host)| host.index() != h) {
            return Err(InputError::new("network", "it has switches before hosts", "name the hosts first"));
        }
        for (f, flow) in flows.iter().enumerate() {
            if flow.src.max(flow.dst) >= hosts.len() || flow.src == flow.dst {
                let what = format!("it goes from host {} to host {} of {}", flow.src, flow.dst, hosts.len());
                return Err(InputError::new(format!("flows[{f}]"), what, "name two hosts of the network"));
            }
        }
        if flows.windows(2).any(|pair| pair[0].start_s > pair[1].start_s) {
            return Err(InputError::new("start_s", "a flow starts before the one ahead of it", "sort flows by start"));
        }
        let settings =
            ControlSettings { law: PriceLaw::Ned, gamma: plan.gamma, reserve: 0.0, ..ControlSettings::default() };
        let paths = Ecmp::new(&network, Routing { seed: plan.seed, ..Routing::default() });
        let capacity_bps: Vec<f64> = network.links().iter().map(|l| l.capacity_bps).collect();
        let mut allocator = Allocator::new(0, 1, &capacity_bps, Box::new(paths), settings)?.first();
        hosts.iter().for_each(|&h| allocator.join(h.0));
        let endpoints = hosts.iter().map(|&h| Endpoint::new(h.0, 1, settings)).collect();
        let legs = if plan.group == 1 { 1 } else { 2 };
        Ok(Allocation {
            router: Router::new(&network, plan.seed, false),
            network,
            hosts,
            allocator,
            endpoints,
            flows,
            plan,
            next: 0,
            sendings: Vec::new(),
            up: Vec::new(),
            down: (0..legs).map(|_| Vec::new()).collect(),
            ticks: 0,
        })
    }

    /// Runs the next tick.
    pub fn tick(&mut self) -> Result<AllocationTick, InputError> {
        let AllocationPlan { tick_ns, compare_from, compare_every, .. } = self.plan;
        let now_ns = self.ticks as Ns * tick_ns;
        while let Some(flow) = self.flows.get(self.next).filter(|flow| flow.start_s < now_ns as f64 * 1e-9) {
            let (flow, connection) = (*flow, self.next as u64);
            let (from, to) = (self.hosts[flow.src], self.hosts[flow.dst]);
            let path = self.router.path(from, to, connection)?;
            self.endpoints[flow.src].begin(connection, to.0, connection as u32, 1.0);
            let left_bits = 8.0 * flow.size_bytes as f64;
            self.sendings.push(Sending { host: flow.src, connection, path, left_bits });
            self.next += 1;
        }
        let mut seen = self.exchange(now_ns);
        let compares = compare_every > 0 && self.ticks >= compare_from && self.ticks.is_multiple_of(compare_every);
        if compares && !self.sendings.is_empty() {
            seen.compared_bps = Some(self.compare(now_ns)?);
        }
        self.ticks += 1;
        Ok(seen)
    }

    fn exchange(&mut self, now_ns: Ns) -> AllocationTick {
        for datagram in std::mem::take(&mut self.up) {
            self.allocator.take(now_ns, datagram.endpoint, &datagram);
        }
        self.allocator.step(now_ns);
        let told: Vec<Datagram> = std::iter::from_fn(|| self.allocator.poll(now_ns)).collect();
        let (datagrams, bytes) = (told.len(), self.frame_bytes(&told));
        let rates = told.iter().map(|d| d.updates.len()).sum::<usize>();
        self.down.push_back(told);
        for datagram in self.down.pop_front().unwrap_or_default() {
            let host = datagram.endpoint as usize;
            self.endpoints[host].take(now_ns, &datagram);
        }
        let Allocation { endpoints, sendings, up, plan, .. } = self;
        sendings.retain_mut(|s| {
            let endpoint = &mut endpoints[s.host];
            s.left_bits -= endpoint.rate_bps(now_ns, s.connection).unwrap_or(0.0) * plan.tick_ns as f64 * 1e-9;
            if s.left_bits <= 0.0 {
                endpoint.finish(s.connection);
            }
            s.left_bits > 0.0
        });
        up.extend(endpoints.iter_mut().flat_map(|e| std::iter::from_fn(move || e.poll(now_ns))));
        AllocationTick { flows: sendings.len(), datagrams, rates, bytes, compared_bps: None }
    }

    /// Bytes of the frames with these datagrams on the allocator's link.
    fn frame_bytes(&self, told: &[Datagram]) -> usize {
        let group = self.plan.group;
        let frame = |payload: usize| (payload + DATAGRAM_HEADERS).max(LEAST_FRAME);
        let bytes = |d: &Datagram| subak_wire::HEADER_BYTES + d.body_bytes();
        if group == 1 {
            return told.iter().map(|d| frame(bytes(d))).sum();
        }
        let groups = told.chunk_by(|a, b| a.endpoint as usize / group == b.endpoint as usize / group);
        let bundles = groups.flat_map(|theirs| Bundle::pack(theirs.iter().cloned(), DATAGRAM_MTU));
        bundles.map(|b| frame(b.parts.iter().map(bytes).sum())).sum()
    }

    /// Sums of the present and of the optimal rates of the active flows.
    fn compare(&self, now_ns: Ns) -> Result<(f64, f64), InputError> {
        let mut flows = Flows::new();
        for (f, s) in self.sendings.iter().enumerate() {
            flows.push(Flow::over(f.to_string(), s.path.clone()), &self.network)?;
        }
        let case = Case { network: self.network.clone(), flows, policy: Policy::AlphaFair { alpha: 1.0 } };
        let best = solve(&case, &SolveOptions { tolerance: 1e-6, ..SolveOptions::default() })?.rates_bps;
        let rate = |s: &Sending| self.endpoints[s.host].rate_bps(now_ns, s.connection).unwrap_or(0.0);
        Ok((self.sendings.iter().map(rate).sum(), best.iter().sum()))
    }
}
