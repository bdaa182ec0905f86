//! Soze on virtual queues as a fluid: the recurrence of its senders and links, without packets.
//!
//! A time step is a quarter of the largest base RTT. A step sums the rates at each link and updates virtual and real
//! queues. The step then updates each rate by the path's largest signal of one base RTT before. Target function,
//! update function and the links' logic are those of the packet simulation.

use super::{RateUpdate, Target, Virtual, VirtualLink};
use subak_core::{IdVec, InputError, LinkId, Ns};

/// Steps per RTT.
const EACH: usize = 4;

/// A flow of a [`SozeFluid`].
#[derive(Debug, Clone, PartialEq)]
pub struct NewFluidFlow {
    /// Links of the path.
    pub path: Vec<LinkId>,
    /// Weight.
    pub weight: f64,
    /// Base RTT, ns.
    pub rtt_ns: Ns,
}

/// Rates and queues of Soze on virtual queues, step by step.
#[derive(Debug, Clone)]
pub struct SozeFluid {
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
    peak_ns: f64,
    steps: u64,
}

#[derive(Debug, Clone)]
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

impl SozeFluid {
    /// Flows that start at time 0 over links with these capacities. The first links of all paths must have the same
    /// capacity, from which alpha follows.
    pub fn new(
        set: &Virtual,
        capacity_bps: IdVec<LinkId, f64>,
        new_flows: &[NewFluidFlow],
    ) -> Result<Self, InputError> {
        for (f, flow) in new_flows.iter().enumerate() {
            check(flow, &capacity_bps, &new_flows[0]).map_err(|e| e.below(&format!("flows[{f}]")))?;
        }
        let rtt_ns = new_flows.iter().map(|flow| flow.rtt_ns).max().unwrap_or(1);
        let links = set.link(rtt_ns);
        let step_ns = rtt_ns as f64 / EACH as f64;
        let mut path_links = Vec::new();
        let mut flows = Vec::with_capacity(new_flows.len());
        for &NewFluidFlow { ref path, weight, rtt_ns: own_rtt_ns } in new_flows {
            let line_bps = capacity_bps[path[0]];
            let target: Target = set.law.target(set.law.p_ns(rtt_ns), line_bps);
            let least_bps = target.least_bps(weight);
            let from = path_links.len();
            path_links.extend_from_slice(path);
            flows.push(FluidFlow {
                update: set.law.update(target),
                weight,
                rate_bps: (set.law.start_bps(target.alpha_bps) * weight).clamp(least_bps, line_bps),
                least_bps,
                most_bps: line_bps,
                rtts: step_ns / own_rtt_ns as f64,
                lag: ((own_rtt_ns as f64 / step_ns).round() as usize).clamp(1, EACH),
                path: from..path_links.len(),
            });
        }
        let used = capacity_bps.len();
        let begin = IdVec::filled(links.start_ns, used);
        Ok(SozeFluid {
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
            steps: 0,
        })
    }

    /// One step: a quarter of the largest base RTT.
    pub fn step(&mut self) {
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
        self.steps += 1;
    }

    /// Rate of each flow, bit/s.
    pub fn rates_bps(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        self.flows.iter().map(|flow| flow.rate_bps)
    }

    /// Largest real queueing delay so far, ns.
    pub fn peak_ns(&self) -> f64 {
        self.peak_ns
    }

    /// Length of a step, ns.
    pub fn step_ns(&self) -> f64 {
        self.step_ns
    }

    /// Number of steps.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Number of links of all paths, and of links.
    pub fn visits(&self) -> usize {
        self.path_links.len() + self.capacity_bps.len()
    }

    /// Fraction of the flows within the relative tolerance `within` of `want`.
    pub fn near(&self, want: &[f64], within: f64) -> f64 {
        let near = self.flows.iter().zip(want).filter(|(flow, want)| (flow.rate_bps / *want - 1.0).abs() <= within);
        near.count() as f64 / self.flows.len().max(1) as f64
    }
}

/// An error for a flow that the recurrence cannot run beside the `first`.
fn check(flow: &NewFluidFlow, capacity_bps: &IdVec<LinkId, f64>, first: &NewFluidFlow) -> Result<(), InputError> {
    let refuse = |place: &str, what: String, hint: &str| Err(InputError::new(place, what, hint));
    if let Some(link) = flow.path.iter().find(|l| l.index() >= capacity_bps.len()) {
        return refuse("path", format!("there is no link {link}"), "name links of the network");
    }
    let Some(&line) = flow.path.first() else {
        return refuse("path", "it is empty".into(), "name the links of the path");
    };
    if capacity_bps[line] != capacity_bps[first.path[0]] {
        let what = format!("its line rate is {} bit/s, and that of the first flow another", capacity_bps[line]);
        return refuse("path", what, "begin all paths at links of one capacity");
    }
    if !(flow.weight > 0.0 && flow.weight <= 1e12) {
        return refuse("weight", format!("it is {}", flow.weight), "give a number above 0, at most 1e12");
    }
    if flow.rtt_ns == 0 {
        return refuse("rtt_ns", "it is 0".into(), "give a base RTT above 0");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_come_to_weighted_max_min_and_what_cannot_run_is_refused() {
        let capacity_bps: IdVec<LinkId, f64> = vec![100e9, 100e9, 100e9, 40e9].into();
        let flow = |own: u32, weight: f64, rtt_ns| NewFluidFlow { path: vec![LinkId(own), LinkId(2)], weight, rtt_ns };
        let flows = [flow(0, 1.0, 8_000), flow(1, 3.0, 12_000)];
        let mut fluid = SozeFluid::new(&Virtual::STANDARD, capacity_bps.clone(), &flows).unwrap();
        assert_eq!((fluid.step_ns(), fluid.rates_bps().len()), (3_000.0, 2));
        (0..2000).for_each(|_| fluid.step());
        assert_eq!((fluid.near(&[24.5e9, 73.5e9], 0.02), fluid.steps()), (1.0, 2000));
        let place = |flow: NewFluidFlow| {
            SozeFluid::new(&Virtual::STANDARD, capacity_bps.clone(), &[flows[0].clone(), flow]).err().unwrap().place
        };
        assert_eq!(place(flow(0, -1.0, 8_000)), "flows[1].weight");
        assert_eq!(place(flow(0, 1.0, 0)), "flows[1].rtt_ns");
        assert_eq!(place(flow(9, 1.0, 8_000)), "flows[1].path");
        assert_eq!(place(flow(3, 1.0, 8_000)), "flows[1].path", "another line rate");
        assert_eq!(place(NewFluidFlow { path: Vec::new(), weight: 1.0, rtt_ns: 1 }), "flows[1].path");
    }
}
