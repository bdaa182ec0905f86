//! Updates in a given order: the worked examples of the PERC thesis, and counterexamples.

use crate::backend::flow_info;
use crate::run::{ConvergeOutcome, RoundsPlan, params};
use crate::setup::Setup;
use serde_json::Value;
use subak_core::scheme::{Effect, Hop, Io, Port, Scheme, Source, Visit};
use subak_core::{Case, FlowId, IdVec, InputError, LinkId, Ns, SubflowId};
use subak_schemes::{Visitor, with_scheme};

/// One step of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayStep {
    /// A link of the flow's path updates its message.
    Update(FlowId, LinkId),
    /// A round ends at every link: all timers expire.
    Round,
}

/// The steps of a replay, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpdateOrder(pub Vec<ReplayStep>);

impl UpdateOrder {
    /// Parses `[["fB", "l20"], ["fB", "l30"], "round", ...]`: pairs of a flow and a link of its path. `"round"` ends
    /// a round at every link.
    pub fn read(order: &Value, case: &Case) -> Result<Self, InputError> {
        let shape = |place: &str| {
            let hint = "give a list of [flow, link] pairs and of \"round\", such as [[\"fB\", \"l20\"], \"round\"]";
            InputError::new(place, "not a list of updates", hint)
        };
        let flows: std::collections::HashMap<String, usize> =
            (0..case.flows.len()).map(|f| (case.flows.id(f), f)).collect();
        let steps = order.as_array().ok_or_else(|| shape("order"))?;
        let step = |(k, step): (usize, &Value)| {
            let place = format!("order[{k}]");
            if step == "round" {
                return Ok(ReplayStep::Round);
            }
            let (flow, link) = match step.as_array().map(Vec::as_slice) {
                Some([Value::String(flow), Value::String(link)]) => (flow, link),
                _ => return Err(shape(&place)),
            };
            let &f = flows.get(flow).ok_or_else(|| {
                InputError::new(&place, format!("there is no flow \"{flow}\""), "name a flow of the case")
            })?;
            let path = case.flows.links_of(case.flows.paths_of(f).start);
            match case.network.find_link(link).filter(|l| path.contains(l)) {
                Some(l) => Ok(ReplayStep::Update(FlowId::from_index(f), l)),
                None => Err(InputError::new(
                    &place,
                    format!("link \"{link}\" is not on the path of flow \"{flow}\""),
                    "name a link of the flow's path",
                )),
            }
        };
        steps.iter().enumerate().map(step).collect::<Result<_, _>>().map(UpdateOrder)
    }
}

/// Replays `order` under the scheme called `name`. In the result, a rate that is not exact counts until the end of
/// the round of its update. In the trace, the time of an update is the middle of its round.
pub fn run(
    name: &str,
    setup: &Setup,
    ideal_bps: &IdVec<FlowId, f64>,
    plan: &RoundsPlan,
    order: &UpdateOrder,
) -> Result<ConvergeOutcome, InputError> {
    let round_ns = setup.rtt_ns(plan.jitter_ns);
    with_scheme(name, &params(name, plan, round_ns)?, Replay { setup, ideal_bps, plan, order, round_ns })
}

struct Replay<'a> {
    setup: &'a Setup,
    ideal_bps: &'a IdVec<FlowId, f64>,
    plan: &'a RoundsPlan,
    order: &'a UpdateOrder,
    round_ns: Ns,
}

impl Visitor for Replay<'_> {
    type Out = ConvergeOutcome;
    const CONTROL_ONLY: bool = true;

    fn visit<S: Scheme>(self, scheme: S) -> ConvergeOutcome {
        let Replay { setup, ideal_bps, plan, order, round_ns } = self;
        let mut bench = Bench::new(&scheme, setup, round_ns);
        let mut outcome = empty(setup.paths.len(), round_ns);
        let right = |rate: f64, ideal: f64| (rate - ideal).abs() <= plan.tolerance * ideal;
        let mut round = 0u32;
        for step in &order.0 {
            let ReplayStep::Update(f, link) = *step else {
                round += 1;
                bench.end_round();
                continue;
            };
            bench.io.now_ns = ((f64::from(round) + 0.5) * round_ns as f64) as Ns;
            let allocated = bench.update(setup, f, link);
            outcome.updates += 1;
            outcome.trace.extend(bench.io.take_trace());
            if allocated.is_some_and(|a| !right(a, ideal_bps[f])) {
                outcome.flow_rounds[f] = f64::from(round) + 1.0;
                outcome.flow_last_link[f] = Some(link);
            }
        }
        outcome.rates_bps = setup.paths.iter_enumerated().map(|(f, path)| bench.rate(f, path.len() as u16)).collect();
        outcome.rounds = outcome.flow_rounds.iter().copied().fold(0.0, f64::max);
        outcome.rounds_from_start = outcome.rounds;
        outcome.flow_rounds_from_start.clone_from(&outcome.flow_rounds);
        outcome.converged = outcome.rates_bps.iter().zip(ideal_bps).all(|(&rate, &ideal)| right(rate, ideal));
        outcome
    }
}

/// State of a replay: the state machine of each link, and the message of each flow.
struct Bench<S: Scheme> {
    io: Io<S>,
    ports: IdVec<LinkId, Port>,
    hops: IdVec<LinkId, S::Hop>,
    /// Pending timers of each link.
    timers: Vec<Vec<u32>>,
    messages: IdVec<FlowId, Option<S::Ctl>>,
}

impl<S: Scheme> Bench<S> {
    fn new(scheme: &S, setup: &Setup, rtt_ns: Ns) -> Self {
        let mut io = Io::traced();
        let ports = ports(setup, rtt_ns);
        let mut hops: IdVec<LinkId, S::Hop> = ports.iter().map(|port| scheme.hop(port)).collect();
        let timers = hops.iter_mut().map(|hop| start(hop, &mut io)).collect();
        let messages = setup.paths.ids().map(|f| first_message(scheme, setup, f, &mut io)).collect();
        Bench { io, ports, hops, timers, messages }
    }

    /// Lets every pending timer expire.
    fn end_round(&mut self) {
        for ((hop, port), timers) in self.hops.iter_mut().zip(&self.ports).zip(&mut self.timers) {
            for timer in std::mem::take(timers) {
                hop.on_timer(&mut self.io, timer, port);
            }
            timers.extend(timers_of(&mut self.io));
        }
    }

    /// Lets the link update the flow's message; returns the link's allocation.
    fn update(&mut self, setup: &Setup, flow: FlowId, link: LinkId) -> Option<f64> {
        let hop = setup.paths[flow].iter().position(|&l| l == link)? as u16;
        let message = self.messages[flow].as_mut()?;
        let visit = Visit { flow, subflow: SubflowId(0), hop, forward: true };
        self.hops[link].on_ctl(&mut self.io, message, visit, &self.ports[link]);
        S::allocated(message, hop)
    }

    /// Smallest allocation in the flow's message, bit/s; 0 if there is none.
    fn rate(&self, flow: FlowId, hops: u16) -> f64 {
        let held = self.messages[flow].iter().flat_map(|m| (0..hops).filter_map(|k| S::allocated(m, k)));
        Some(held.fold(f64::INFINITY, f64::min)).filter(|rate| rate.is_finite()).unwrap_or(0.0)
    }
}

fn empty(flows: usize, round_ns: Ns) -> ConvergeOutcome {
    ConvergeOutcome {
        converged: false,
        rounds: 0.0,
        flow_rounds: IdVec::filled(0.0, flows),
        rounds_from_start: 0.0,
        flow_rounds_from_start: IdVec::filled(0.0, flows),
        flow_last_link: IdVec::filled(None, flows),
        rates_bps: IdVec::filled(0.0, flows),
        updates: 0,
        round_ns,
        start_ns: 0,
        drops: 0,
        rounds_after_drop: None,
        trace: Vec::new(),
        assigned: Vec::new(),
    }
}

fn ports(setup: &Setup, rtt_ns: Ns) -> IdVec<LinkId, Port> {
    let port = |(link, wire): (LinkId, &crate::Wire)| Port {
        link,
        capacity_bps: wire.capacity_bps,
        delay_ns: wire.delay_ns,
        buffer_bytes: 0,
        mtu_bytes: 0,
        rtt_ns,
        ..Port::example(link, 1.0)
    };
    setup.wires.iter_enumerated().map(port).collect()
}

fn start<S: Scheme>(hop: &mut S::Hop, io: &mut Io<S>) -> Vec<u32> {
    hop.on_start(io);
    timers_of(io)
}

fn timers_of<S: Scheme>(io: &mut Io<S>) -> Vec<u32> {
    let timer = |effect| match effect {
        Effect::Timer { timer, .. } => Some(timer),
        _ => None,
    };
    io.take_effects().filter_map(timer).collect()
}

/// The first message of a source.
fn first_message<S: Scheme>(scheme: &S, setup: &Setup, flow: FlowId, io: &mut Io<S>) -> Option<S::Ctl> {
    let wires: Vec<_> = setup.paths[flow].iter().map(|&l| setup.wires[l]).collect();
    let info = flow_info(flow, setup.weights[flow], &wires);
    scheme.source(&info).on_start(io);
    let message = |effect| match effect {
        Effect::Ctl { message, .. } => Some(message),
        _ => None,
    };
    io.take_effects().filter_map(message).next()
}
