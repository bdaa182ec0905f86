//! Soze on virtual queues as a fluid: the recurrence of its senders and links, without packets.
//!
//! A time step is a quarter of the largest base RTT. A step sums the rates at each link and updates virtual and real
//! queues. The step then updates each rate by the path's largest signal of one base RTT before. Target function,
//! update function and the links' logic are those of the packet simulation.

use super::draw::Setup;
use subak_core::{IdVec, LinkId};
use subak_schemes::soze::{RateUpdate, Target, Virtual, VirtualLink};

/// Steps per RTT.
pub(super) const EACH: usize = 4;

pub(super) struct Fluid {
    links: VirtualLink,
    capacity_bps: IdVec<LinkId, f64>,
    delay_ns: IdVec<LinkId, f64>,
    queued_ns: IdVec<LinkId, f64>,
    load_bps: IdVec<LinkId, f64>,
    /// Signals of the last steps, newest first.
    told: std::collections::VecDeque<IdVec<LinkId, f64>>,
    step_ns: f64,
    flows: Vec<FluidFlow>,
    /// Links of all paths, concatenated.
    path_links: Vec<LinkId>,
    /// Largest real queueing delay so far, ns.
    pub(super) peak_ns: f64,
}

struct FluidFlow {
    update: RateUpdate,
    weight: f64,
    rate_bps: f64,
    least_bps: f64,
    most_bps: f64,
    /// Length of a step in base RTTs of the flow.
    rtts: f64,
    /// Feedback delay in steps.
    lag: usize,
    /// Range of the flow's links in `path_links`.
    path: std::ops::Range<usize>,
}

impl Fluid {
    pub(super) fn new(set: &Virtual, setup: &Setup, own_rtt_ns: &[u64]) -> Self {
        let links = set.link(setup.rtt_ns);
        let step_ns = setup.rtt_ns as f64 / EACH as f64;
        let capacity_bps: IdVec<LinkId, f64> = setup.network.links().iter().map(|l| l.capacity_bps).collect();
        let mut path_links = Vec::new();
        let mut flows = Vec::with_capacity(setup.plans.len());
        for (plan, &rtt_ns) in setup.plans.iter().zip(own_rtt_ns) {
            let path = &plan.routes[0].forward;
            let line_bps = path.first().map_or(0.0, |&l| capacity_bps[l]);
            // All hosts have the same line rate here.
            let target: Target = set.law.target(set.law.p_ns(setup.rtt_ns), line_bps);
            let least_bps = target.least_bps(plan.weight);
            let from = path_links.len();
            path_links.extend_from_slice(path);
            flows.push(FluidFlow {
                update: set.law.update(target),
                weight: plan.weight,
                rate_bps: (set.law.start_bps(target.alpha_bps) * plan.weight).clamp(least_bps, line_bps),
                least_bps,
                most_bps: line_bps,
                rtts: step_ns / rtt_ns as f64,
                lag: ((rtt_ns as f64 / step_ns).round() as usize).clamp(1, EACH),
                path: from..path_links.len(),
            });
        }
        let used = capacity_bps.len();
        let begin = IdVec::filled(links.start_ns, used);
        Fluid {
            links,
            delay_ns: begin.clone(),
            queued_ns: IdVec::filled(0.0, used),
            load_bps: IdVec::filled(0.0, used),
            told: (0..=EACH).map(|_| begin.clone()).collect(),
            capacity_bps,
            step_ns,
            flows,
            path_links,
            peak_ns: 0.0,
        }
    }

    /// One step: a quarter of the largest base RTT.
    pub(super) fn step(&mut self) {
        self.load_bps.fill(0.0);
        for flow in &self.flows {
            for &l in &self.path_links[flow.path.clone()] {
                self.load_bps[l] += flow.rate_bps;
            }
        }
        let mut told = self.told.pop_back().unwrap_or_default();
        for (l, told) in told.iter_enumerated_mut() {
            // Traffic above the capacity queues here. This traffic also counts at later links, so that queues are not
            // underestimated.
            let came = self.load_bps[l] / self.capacity_bps[l];
            let queued_ns = &mut self.queued_ns[l];
            *queued_ns = (*queued_ns + (came - 1.0) * self.step_ns).max(0.0);
            self.peak_ns = self.peak_ns.max(*queued_ns);
            let drained_ns = self.links.drained_ns(self.delay_ns[l], self.step_ns, *queued_ns);
            self.delay_ns[l] = self.links.filled_ns(drained_ns, came * self.step_ns);
            *told = self.links.signal_ns(self.delay_ns[l], *queued_ns);
        }
        self.told.push_front(told);
        for flow in &mut self.flows {
            let told = &self.told[flow.lag];
            let path = &self.path_links[flow.path.clone()];
            let heard_ns = path.iter().map(|&l| told[l]).fold(0.0, f64::max);
            let next_bps = flow.update.next_bps(flow.rate_bps, flow.weight, heard_ns, flow.rtts);
            flow.rate_bps = next_bps.clamp(flow.least_bps, flow.most_bps);
        }
    }

    /// Fraction of the flows within the relative tolerance `within` of `want`.
    pub(super) fn near(&self, want: &[f64], within: f64) -> f64 {
        let near = self.flows.iter().zip(want).filter(|(flow, want)| (flow.rate_bps / *want - 1.0).abs() <= within);
        near.count() as f64 / self.flows.len().max(1) as f64
    }
}
