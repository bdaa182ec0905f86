//! Updates in a given order: the worked examples of the thesis, and counterexamples that someone wants to look at.

use crate::run::{Outcome, Plan, params};
use crate::setup::Setup;
use serde_json::Value;
use std::sync::Arc;
use subak_core::scheme::{Ask, FlowInfo, Hop, Io, PathInfo, Port, Scheme, Source, Visit};
use subak_core::{Case, Fault, FlowId, LinkId, Ns, Utility};
use subak_schemes::{Visitor, with_scheme};

/// One step of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The flow's message is updated at a link of its path.
    Update(FlowId, LinkId),
    /// A round ends at every link.
    Round,
}

/// The steps, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Order(pub Vec<Step>);

impl Order {
    /// Reads `[["fB", "l20"], ["fB", "l30"], "round", ...]`: pairs of a flow's id and a link's on its path; `"round"` ends
    /// a round at every link.
    pub fn read(order: &Value, case: &Case) -> Result<Self, Fault> {
        let shape = |place: &str| {
            let mend = "give a list of [flow, link] pairs and of \"round\", such as [[\"fB\", \"l20\"], \"round\"]";
            Fault::new(place, "not a list of updates", mend)
        };
        let flows: std::collections::HashMap<String, usize> =
            (0..case.flows.len()).map(|f| (case.flows.id(f), f)).collect();
        let steps = order.as_array().ok_or_else(|| shape("order"))?;
        let step = |(k, step): (usize, &Value)| {
            let place = format!("order[{k}]");
            if step == "round" {
                return Ok(Step::Round);
            }
            let (flow, link) = match step.as_array().map(Vec::as_slice) {
                Some([Value::String(flow), Value::String(link)]) => (flow, link),
                _ => return Err(shape(&place)),
            };
            let &f = flows
                .get(flow)
                .ok_or_else(|| Fault::new(&place, format!("there is no flow \"{flow}\""), "name a flow of the case"))?;
            let path = case.flows.links_of(case.flows.paths_of(f).start);
            match case.network.find_link(link).filter(|l| path.contains(l)) {
                Some(l) => Ok(Step::Update(f as FlowId, l)),
                None => Err(Fault::new(
                    &place,
                    format!("link \"{link}\" is not on the path of flow \"{flow}\""),
                    "name a link of the flow's path",
                )),
            }
        };
        steps.iter().enumerate().map(step).collect::<Result<_, _>>().map(Order)
    }
}

/// Replays `order` under the scheme called `name`. Rounds count the ends of rounds; an update lies in the middle of its
/// round.
pub fn run(name: &str, setup: &Setup, ideal_bps: &[f64], plan: &Plan, order: &Order) -> Result<Outcome, Fault> {
    let round_ns = setup.rtt_ns(plan.jitter_ns);
    with_scheme(name, &params(name, plan, round_ns)?, Replay { setup, ideal_bps, plan, order, round_ns })
}

struct Replay<'a> {
    setup: &'a Setup,
    ideal_bps: &'a [f64],
    plan: &'a Plan,
    order: &'a Order,
    round_ns: Ns,
}

impl Visitor for Replay<'_> {
    type Out = Outcome;

    fn visit<S: Scheme>(self, scheme: S) -> Outcome {
        let Replay { setup, ideal_bps, plan, order, round_ns } = self;
        let mut io = Io::traced();
        let ports: Vec<Port> = ports(setup, round_ns);
        let mut hops: Vec<S::Hop> = ports.iter().map(|port| scheme.hop(port)).collect();
        let mut timers: Vec<Vec<u32>> = hops.iter_mut().map(|hop| start(hop, &mut io)).collect();
        let mut messages: Vec<Option<S::Ctl>> =
            (0..setup.paths.len()).map(|f| first_message(&scheme, setup, f as FlowId, &mut io)).collect();
        let mut wrong = vec![None; setup.paths.len()];
        let mut outcome = empty(setup.paths.len(), round_ns);
        let (mut round, mut total) = (0u32, 0.0f64);
        for step in &order.0 {
            match *step {
                Step::Round => {
                    round += 1;
                    for ((hop, port), timers) in hops.iter_mut().zip(&ports).zip(&mut timers) {
                        for timer in std::mem::take(timers) {
                            hop.on_timer(&mut io, timer, port);
                        }
                        timers.extend(timers_of(&mut io));
                    }
                }
                Step::Update(f, link) => {
                    io.now_ns = (f64::from(round).mul_add(1.0, 0.5) * round_ns as f64) as Ns;
                    let k = setup.paths[f as usize].iter().position(|&l| l == link).unwrap_or(0) as u16;
                    let Some(message) = &mut messages[f as usize] else { continue };
                    let visit = Visit { flow: f, subflow: 0, hop: k, forward: true };
                    hops[link as usize].on_ctl(&mut io, message, visit, &ports[link as usize]);
                    outcome.updates += 1;
                    if let Some(a) = S::allocated(message, k) {
                        let ideal = ideal_bps[f as usize];
                        if (a - ideal).abs() > plan.tolerance * ideal {
                            (wrong[f as usize], outcome.flow_last_link[f as usize]) = (Some(round), Some(link));
                        }
                    }
                    outcome.trace.extend(io.take_trace());
                }
            }
        }
        for (f, message) in messages.iter().enumerate() {
            let hops = 0..setup.paths[f].len() as u16;
            let allocated = message.iter().flat_map(|m| hops.clone().filter_map(|k| S::allocated(m, k)));
            outcome.rates_bps[f] =
                Some(allocated.fold(f64::INFINITY, f64::min)).filter(|r| r.is_finite()).unwrap_or(0.0);
            outcome.flow_rounds[f] = wrong[f].map_or(0.0, |round: u32| f64::from(round) + 1.0);
            total = total.max(outcome.flow_rounds[f]);
        }
        outcome.rounds = total;
        let right = |(a, b): (&f64, &f64)| (a - b).abs() <= plan.tolerance * b;
        outcome.converged = outcome.rates_bps.iter().zip(ideal_bps).all(right);
        outcome
    }
}

fn empty(flows: usize, round_ns: Ns) -> Outcome {
    Outcome {
        converged: false,
        rounds: 0.0,
        flow_rounds: vec![0.0; flows],
        flow_last_link: vec![None; flows],
        rates_bps: vec![0.0; flows],
        updates: 0,
        round_ns,
        start_ns: 0,
        drops: 0,
        rounds_after_drop: None,
        trace: Vec::new(),
        assigned: Vec::new(),
    }
}

fn ports(setup: &Setup, rtt_ns: Ns) -> Vec<Port> {
    let port = |(k, wire): (usize, &crate::Wire)| Port {
        link: k as LinkId,
        capacity_bps: wire.capacity_bps,
        delay_ns: wire.delay_ns,
        buffer_bytes: 0,
        mtu_bytes: 0,
        rtt_ns,
        queued_bytes: 0,
        queued_packets: 0,
    };
    setup.wires.iter().enumerate().map(port).collect()
}

fn start<S: Scheme>(hop: &mut S::Hop, io: &mut Io<S>) -> Vec<u32> {
    hop.on_start(io);
    timers_of(io)
}

fn timers_of<S: Scheme>(io: &mut Io<S>) -> Vec<u32> {
    let timer = |ask| match ask {
        Ask::Timer { timer, .. } => Some(timer),
        _ => None,
    };
    io.take_asks().filter_map(timer).collect()
}

/// What a source sends first.
fn first_message<S: Scheme>(scheme: &S, setup: &Setup, flow: FlowId, io: &mut Io<S>) -> Option<S::Ctl> {
    let path = &setup.paths[flow as usize];
    let capacity = |l: &LinkId| setup.wires[*l as usize].capacity_bps;
    let weight = setup.weights[flow as usize];
    let info = FlowInfo {
        flow,
        weight,
        utility: Arc::new(Utility::log(weight)),
        size_bytes: None,
        mss_bytes: 0,
        mtu_bytes: 0,
        paths: vec![PathInfo {
            hops: path.len() as u16,
            line_rate_bps: path.first().map_or(0.0, capacity),
            min_capacity_bps: path.iter().map(capacity).fold(f64::INFINITY, f64::min),
            base_rtt_ns: 2 * path.iter().map(|&l| setup.wires[l as usize].delay_ns).sum::<Ns>(),
        }],
    };
    scheme.source(&info).on_start(io);
    let message = |ask| match ask {
        Ask::Ctl { message, .. } => Some(message),
        _ => None,
    };
    io.take_asks().filter_map(message).next()
}
