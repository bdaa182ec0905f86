//! Links of s-PERC* alone, updated message by message: the reference for a switch's P4 program.

use crate::errors::OrInputError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Map, Value};
use subak_core::scheme::{Effect, Hop, Io, Named, Params, Port, Scheme, Visit};
use subak_core::{FlowId, IdVec, LinkId, Ns, SubflowId};
use subak_schemes::perc::{HopCounts, PercHop, PercMessage, Rule};
use subak_schemes::s_perc_star::{Robust, SPercStar};

/// Bytes of an event: six 64-bit numbers.
const EVENT_BYTES: usize = 48;
const UPDATE: u64 = 0;
const LEAVE: u64 = 1;
const TICK: u64 = 2;
const SEND: u64 = 3;
const JOIN: u64 = 5;

struct Link {
    hop: PercHop<Robust>,
    port: Port,
    /// End of the present round, ns.
    due_ns: Ns,
}

struct Flow {
    path: Vec<LinkId>,
    message: PercMessage<Robust>,
}

/// Links of s-PERC*, with their rounds, and flows whose messages they update in any order.
#[pyclass(module = "subak._subak")]
pub struct SPercStarLinks {
    rule: Robust,
    io: Io<SPercStar>,
    links: IdVec<LinkId, Link>,
    flows: IdVec<FlowId, Flow>,
}

#[pymethods]
impl SPercStarLinks {
    /// Creates links of `capacities_bps` and flows over `paths`, with parameters of the scheme as JSON, in a network
    /// whose largest base RTT is `rtt_ns`. The first round of a link ends at its first tick.
    #[new]
    fn new(py: Python<'_>, capacities_bps: Vec<f64>, paths: Vec<Vec<u32>>, params: &str, rtt_ns: Ns) -> PyResult<Self> {
        let given: Map<String, Value> =
            serde_json::from_str(params).map_err(|e| PyValueError::new_err(format!("malformed parameters: {e}")))?;
        let params = Params::resolve(&SPercStar::INFO, &given).or_input_error(py)?;
        let scheme = SPercStar::new(&params).or_input_error(py)?;
        let rule = Robust::new(&params).or_input_error(py)?;
        if paths.iter().flatten().any(|&l| l as usize >= capacities_bps.len()) {
            return Err(PyValueError::new_err("a path names a link that is not there"));
        }
        let link = |(k, &capacity_bps): (usize, &f64)| {
            let port = Port { rtt_ns, ..Port::example(LinkId::from_index(k), capacity_bps) };
            Link { hop: scheme.hop(&port), port, due_ns: 0 }
        };
        let links = capacities_bps.iter().enumerate().map(link).collect();
        let flow = |path: Vec<u32>| {
            let message = new_message(&rule, path.len());
            Flow { path: path.into_iter().map(LinkId).collect(), message }
        };
        let flows = paths.into_iter().map(flow).collect();
        Ok(SPercStarLinks { io: Io::default(), links, flows, rule })
    }

    /// Runs events of six 64-bit numbers: kind, flow or link, hop, time, period and demand. Kinds: update (0), and
    /// update of a leaving flow (1), at a hop of its path; tick of a link (2), which ends its round if that is due;
    /// message sent (3), with the flow's period and its demand, a float in bit/s; restart of a flow (5). Times are in
    /// ns. Returns 16 floats per event, with names of the PERC thesis: e, b, a, state, ignore, SumE, NumB, MaxE, MaxE',
    /// SumE', NumB', roundNumber, N, `roundNumber[l]`, Tx_ctrl and round, the last two in ns. Those of the message
    /// are 0 for events without an update.
    fn run<'py>(&mut self, py: Python<'py>, events: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let mut out = Vec::with_capacity(events.len() / EVENT_BYTES * 128);
        for event in events.chunks_exact(EVENT_BYTES) {
            let mut words = [0; 6];
            for (word, bytes) in words.iter_mut().zip(event.chunks_exact(8)) {
                *word = bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
            }
            let values = self.step(words).ok_or_else(|| PyValueError::new_err("an unknown event"))?;
            out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        }
        Ok(PyBytes::new(py, &out))
    }
}

impl SPercStarLinks {
    fn step(&mut self, [kind, id, hop, now_ns, period_ns, demand]: [u64; 6]) -> Option<[f64; 16]> {
        let id = u32::try_from(id).ok()?;
        self.io.now_ns = now_ns;
        if kind == TICK {
            let Link { hop, port, due_ns } = self.links.get_mut(LinkId(id))?;
            if *due_ns <= now_ns {
                hop.on_timer(&mut self.io, 0, port);
                for effect in self.io.take_effects() {
                    if let Effect::Timer { at_ns, .. } = effect {
                        *due_ns = at_ns;
                    }
                }
            }
            return Some(watched([0.0; 5], hop, [0.0; 3]));
        }
        let Flow { path, message } = self.flows.get_mut(FlowId(id))?;
        match kind {
            UPDATE | LEAVE => {
                let at = hop as usize;
                let Link { hop: machine, port, .. } = self.links.get_mut(*path.get(at)?)?;
                let visit = Visit { flow: FlowId(id), subflow: SubflowId(0), hop: hop as u16, forward: true };
                message.fin = kind == LEAVE;
                let e = message.fields.fields.limit_rate(visit.hop);
                let longest_ns = std::mem::take(&mut message.round_ns);
                machine.on_ctl(&mut self.io, message, visit, port);
                let round_ns = message.round_ns;
                message.round_ns = longest_ns.max(round_ns);
                let field = message.fields.fields.links[at];
                let flag = |on: bool| f64::from(u8::from(on));
                let values = [e, field.b, field.a, flag(field.bottlenecked), flag(field.ignored)];
                let seen = f64::from(message.fields.round_number[at]);
                return Some(watched(values, machine, [seen, message.tx_ns as f64, round_ns as f64]));
            }
            SEND => {
                (message.period_ns, message.tx_ns, message.round_ns) = (period_ns, 0, 0);
                self.rule.demand(&mut message.fields, f64::from_bits(demand));
            }
            JOIN => *message = new_message(&self.rule, path.len()),
            _ => return None,
        }
        Some([0.0; 16])
    }
}

fn new_message(rule: &Robust, hops: usize) -> PercMessage<Robust> {
    PercMessage {
        weight: 1.0,
        was: 1.0,
        serial: 0,
        first: false,
        fin: false,
        probe: false,
        tx_ns: 0,
        period_ns: 0,
        round_ns: 0,
        counts: HopCounts::default(),
        fields: rule.fields(hops as u16),
    }
}

fn watched(step: [f64; 5], hop: &PercHop<Robust>, message: [f64; 3]) -> [f64; 16] {
    let link = hop.link();
    let state = Robust::watch(link).into_iter().map(|(_, value)| value);
    let flows = Robust::flows(link).map_or(0.0, f64::from);
    let mut values = [0.0; 16];
    for (slot, value) in values.iter_mut().zip(step.into_iter().chain(state).chain([flows]).chain(message)) {
        *slot = value;
    }
    values
}
