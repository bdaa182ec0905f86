//! Control messages of one scheme, advanced by the caller: flows are added and stopped between two steps.

use crate::backend::{Assigned, Conditions, FlowObservation, Rounds, Wire};
use crate::run::{RoundsPlan, params};
use crate::setup::{Setup, check};
use crate::theory::rounds_allowed;
use subak_core::scheme::{Bound, Scheme, UpdateRecord};
use subak_core::{Flow, FlowId, Flows, IdVec, InputError, LinkId, Network, Ns};
use subak_schemes::{Visitor, registry, with_scheme};

/// Events handled between two questions whether to stop.
const EVENTS: u64 = 200_000;

/// The round-based backend with the scheme's type erased.
trait Driven: Send {
    fn add(&mut self, path: Vec<LinkId>, weight: f64, start_ns: Ns, ideal_bps: f64) -> FlowId;
    fn stop(&mut self, flow: FlowId, at_ns: Ns);
    fn set_weight(&mut self, flow: FlowId, weight: f64);
    fn set_ideal(&mut self, flow: FlowId, ideal_bps: f64);
    fn run_some(&mut self, until_ns: Ns, most: u64) -> bool;
    fn now_ns(&self) -> Ns;
    fn seen(&self, flow: FlowId) -> &FlowObservation;
    fn updates(&self) -> u64;
    fn drops(&self) -> (u64, Option<Ns>);
    fn last_wrong_ns(&self) -> Option<Ns>;
    fn take_rates(&mut self) -> Vec<Assigned>;
    fn take_trace(&mut self) -> Vec<UpdateRecord>;
}

impl<S: Scheme> Driven for Rounds<S>
where
    Rounds<S>: Send,
{
    fn add(&mut self, path: Vec<LinkId>, weight: f64, start_ns: Ns, ideal_bps: f64) -> FlowId {
        Rounds::add(self, path, weight, start_ns, ideal_bps)
    }
    fn stop(&mut self, flow: FlowId, at_ns: Ns) {
        Rounds::stop(self, flow, at_ns);
    }
    fn set_weight(&mut self, flow: FlowId, weight: f64) {
        Rounds::set_weight(self, flow, weight);
    }
    fn set_ideal(&mut self, flow: FlowId, ideal_bps: f64) {
        Rounds::set_ideal(self, flow, ideal_bps);
    }
    fn run_some(&mut self, until_ns: Ns, most: u64) -> bool {
        Rounds::run_some(self, until_ns, most)
    }
    fn now_ns(&self) -> Ns {
        Rounds::now_ns(self)
    }
    fn seen(&self, flow: FlowId) -> &FlowObservation {
        Rounds::seen(self, flow)
    }
    fn updates(&self) -> u64 {
        Rounds::updates(self)
    }
    fn drops(&self) -> (u64, Option<Ns>) {
        Rounds::drops(self)
    }
    fn last_wrong_ns(&self) -> Option<Ns> {
        Rounds::last_wrong_ns(self)
    }
    fn take_rates(&mut self) -> Vec<Assigned> {
        Rounds::take_rates(self)
    }
    fn take_trace(&mut self) -> Vec<UpdateRecord> {
        Rounds::take_trace(self)
    }
}

/// Series that a [`SteppedRounds`] records, beside the state of its flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recorded {
    /// Every update of a message at a link.
    pub updates: bool,
    /// Every rate that is assigned to a source.
    pub rates: bool,
}

/// A run of the round-based backend between two steps. Exact rates are the max-min rates of all flows that were added
/// and not stopped, whether they have started or not.
pub struct SteppedRounds {
    driven: Box<dyn Driven>,
    network: Network,
    setup: Setup,
    stopped: IdVec<FlowId, bool>,
    starts_ns: IdVec<FlowId, Ns>,
    conditions: Conditions,
    bound: Bound,
    /// Whether flows or weights have changed since the exact rates were computed.
    changed: bool,
}

struct Build<'a> {
    wires: &'a IdVec<LinkId, Wire>,
    conditions: Conditions,
    tolerance: f64,
    recorded: Recorded,
}

impl Visitor for Build<'_> {
    type Out = Box<dyn Driven>;
    const CONTROL_ONLY: bool = true;

    fn visit<S: Scheme>(self, scheme: S) -> Box<dyn Driven> {
        let mut rounds = Rounds::new(scheme, self.wires, self.conditions, self.recorded.updates);
        rounds.tolerance = self.tolerance;
        if self.recorded.rates {
            rounds.log_rates();
        }
        Box::new(rounds)
    }
}

impl SteppedRounds {
    /// A run of `scheme` over the links of `network`, without flows. `plan` has the scheme's parameters and the
    /// tolerance; [`Conditions::rtt_ns`] is the length of a round.
    pub fn new(
        network: Network,
        scheme: &str,
        plan: &RoundsPlan,
        conditions: Conditions,
        recorded: Recorded,
    ) -> Result<Self, InputError> {
        let wire = |l: &subak_core::Link| Wire { capacity_bps: l.capacity_bps, delay_ns: l.delay_ns };
        let wires: IdVec<LinkId, Wire> = network.links().iter().map(wire).collect();
        let completed = params(scheme, plan, conditions.rtt_ns)?;
        let build = Build { wires: &wires, conditions, tolerance: plan.tolerance, recorded };
        let driven = with_scheme(scheme, &completed, build)?;
        Ok(SteppedRounds {
            driven,
            network,
            setup: Setup { wires, paths: IdVec::new(), weights: IdVec::new() },
            stopped: IdVec::new(),
            starts_ns: IdVec::new(),
            conditions,
            bound: registry::find(scheme)?.bound,
            changed: false,
        })
    }

    /// Adds flows, all of them or none, each with its path, weight and start time; returns the number of the first.
    pub fn add_all(&mut self, flows: Vec<(Vec<LinkId>, f64, Ns)>) -> Result<FlowId, InputError> {
        let mut checked = Flows::new();
        for (f, (path, weight, start_ns)) in flows.iter().enumerate() {
            let at = |e: InputError| e.below(&format!("flows[{f}]"));
            let flow = Flow { weight: *weight, ..Flow::over(f.to_string(), path.clone()) };
            checked.push(flow, &self.network).map_err(at)?;
            check(f, path, *weight, &self.setup.wires)?;
            self.check_times(path, *start_ns).map_err(at)?;
        }
        let first = self.setup.paths.next_id();
        for (path, weight, start_ns) in flows {
            self.driven.add(path.clone(), weight, start_ns, 0.0);
            self.setup.paths.push(path);
            self.setup.weights.push(weight);
            self.stopped.push(false);
            self.starts_ns.push(start_ns);
        }
        self.changed = true;
        Ok(first)
    }

    fn check_times(&self, path: &[LinkId], start_ns: Ns) -> Result<(), InputError> {
        let Conditions { jitter_ns, rtt_ns, .. } = self.conditions;
        let rtt = 2 * path.iter().map(|&l| self.setup.wires[l].delay_ns + jitter_ns).sum::<Ns>();
        if rtt == 0 {
            let what = "its messages take no time";
            return Err(InputError::new("path", what, "give the links a delay, or messages a jitter"));
        }
        if rtt > rtt_ns {
            let what = format!("its round trip takes {rtt} ns, and a round {rtt_ns} ns");
            return Err(InputError::new("path", what, "make the round at least as long as the longest round trip"));
        }
        if start_ns < self.now_ns() {
            let what = format!("{start_ns} ns is before the present, {} ns", self.now_ns());
            return Err(InputError::new("start", what, "start the flow now or later"));
        }
        Ok(())
    }

    fn known(&self, flow: FlowId) -> Result<(), InputError> {
        match self.stopped.get(flow) {
            Some(false) => Ok(()),
            Some(true) => Err(InputError::new("flow", format!("flow {} was stopped", flow.0), "name a flow that runs")),
            None => {
                Err(InputError::new("flow", format!("there is no flow {}", flow.0), "give a number that add returned"))
            }
        }
    }

    /// Stops a flow.
    pub fn stop(&mut self, flow: FlowId) -> Result<(), InputError> {
        self.known(flow)?;
        self.driven.stop(flow, self.now_ns().max(self.starts_ns[flow]));
        self.stopped[flow] = true;
        self.changed = true;
        Ok(())
    }

    /// Changes a flow's weight. Its source tells the links with its next message.
    pub fn set_weight(&mut self, flow: FlowId, weight: f64) -> Result<(), InputError> {
        self.known(flow)?;
        check(flow.index(), &self.setup.paths[flow], weight, &self.setup.wires)?;
        self.driven.set_weight(flow, weight);
        self.setup.weights[flow] = weight;
        self.changed = true;
        Ok(())
    }

    /// Advances to `until_ns`. `goes_on` is asked from time to time; once it says no, the run stands at an earlier time
    /// and can go on.
    pub fn run_until(&mut self, until_ns: Ns, mut goes_on: impl FnMut() -> bool) {
        self.follow();
        while !self.driven.run_some(until_ns, EVENTS) {
            if !goes_on() {
                return;
            }
        }
    }

    /// Computes the exact rates anew if flows or weights have changed.
    pub fn follow(&mut self) {
        if !std::mem::take(&mut self.changed) {
            return;
        }
        let running: Vec<FlowId> = self.running().collect();
        let (ideal_bps, _) = self.running_setup().exact();
        for (&flow, &ideal) in running.iter().zip(&ideal_bps) {
            self.driven.set_ideal(flow, ideal);
        }
    }

    /// The number of rounds that theory allows for these flows; `None` without flows, or if no bound is known.
    pub fn bound_rounds(&self) -> Option<f64> {
        let setup = self.running_setup();
        if setup.paths.is_empty() { None } else { rounds_allowed(&setup, self.bound) }
    }

    fn running(&self) -> impl Iterator<Item = FlowId> + '_ {
        self.stopped.iter_enumerated().filter(|(_, stopped)| !**stopped).map(|(flow, _)| flow)
    }

    fn running_setup(&self) -> Setup {
        Setup {
            wires: self.setup.wires.clone(),
            paths: self.running().map(|f| self.setup.paths[f].clone()).collect(),
            weights: self.running().map(|f| self.setup.weights[f]).collect(),
        }
    }

    /// Current time, ns.
    pub fn now_ns(&self) -> Ns {
        self.driven.now_ns()
    }
    /// The flows in order: path, weight, start time, whether it was stopped, and observations.
    pub fn flows(&self) -> impl Iterator<Item = (FlowId, f64, Ns, bool, &FlowObservation)> {
        let row = |(f, &stopped)| (f, self.setup.weights[f], self.starts_ns[f], stopped, self.driven.seen(f));
        self.stopped.iter_enumerated().map(row)
    }
    /// The links and their names.
    pub fn network(&self) -> &Network {
        &self.network
    }
    /// Number of updates at links.
    pub fn updates(&self) -> u64 {
        self.driven.updates()
    }
    /// Number of lost messages, and time of the last loss, ns.
    pub fn drops(&self) -> (u64, Option<Ns>) {
        self.driven.drops()
    }
    /// Time of the last update whose rate differed from its flow's exact rate, over the running flows, ns.
    pub fn last_wrong_ns(&self) -> Option<Ns> {
        self.driven.last_wrong_ns()
    }
    /// Rates assigned since the last call, if they are recorded.
    pub fn take_rates(&mut self) -> Vec<Assigned> {
        self.driven.take_rates()
    }
    /// Updates since the last call, if they are recorded.
    pub fn take_updates(&mut self) -> Vec<UpdateRecord> {
        self.driven.take_trace()
    }
}
