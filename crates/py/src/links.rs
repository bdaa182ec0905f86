//! s-PERC's links alone, updated message by message: the reference for a switch's P4 program.

use crate::errors::OrInputError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Map, Value};
use subak_core::scheme::{Params, Visit};
use subak_core::{FlowId, IdVec, LinkId, SubflowId};
use subak_schemes::perc::Rule;
use subak_schemes::s_perc::{SPercField, SPercFields, SPercLink, Stateless};

/// Bytes of an event: its kind, the flow (or the link, for the end of a round), and the position on the path, as
/// 32-bit numbers.
const EVENT_BYTES: usize = 12;
const UPDATE: u32 = 0;
const LEAVE: u32 = 1;
const ROUND: u32 = 2;
const SEND: u32 = 3;
const LOSE: u32 = 4;
const JOIN: u32 = 5;

struct Flow {
    path: Vec<LinkId>,
    fields: SPercFields,
    /// Fields as the source last sent them, for retransmission if the packet is lost.
    sent: SPercFields,
}

/// Links with s-PERC's update rule, and flows whose messages are updated in any order.
#[pyclass(module = "subak._subak")]
pub struct SPercLinks {
    rule: Stateless,
    links: IdVec<LinkId, SPercLink>,
    flows: IdVec<FlowId, Flow>,
}

#[pymethods]
impl SPercLinks {
    /// Creates links of `capacities_bps` and flows over `paths`, with the parameters `division_kb` and `tie` of the
    /// scheme.
    #[new]
    fn new(
        py: Python<'_>,
        capacities_bps: Vec<f64>,
        paths: Vec<Vec<u32>>,
        division_kb: f64,
        tie: f64,
    ) -> PyResult<Self> {
        let given: Map<String, Value> =
            [("division_kb", division_kb), ("tie", tie)].map(|(k, v)| (k.to_owned(), v.into())).into_iter().collect();
        let params = Params::resolve(&Stateless::INFO, &given).or_input_error(py)?;
        let rule = Stateless::new(&params).or_input_error(py)?;
        if paths.iter().flatten().any(|&l| l as usize >= capacities_bps.len()) {
            return Err(PyValueError::new_err("a path names a link that is not there"));
        }
        let flow = |path: Vec<u32>| {
            let path: Vec<LinkId> = path.into_iter().map(LinkId).collect();
            let fields = SPercFields::new(path.len() as u16, false);
            Flow { path, sent: fields.clone(), fields }
        };
        Ok(SPercLinks {
            links: capacities_bps.iter().map(|&c| SPercLink::new(c)).collect(),
            flows: paths.into_iter().map(flow).collect(),
            rule,
        })
    }

    /// Runs events: update (0), and update of a leaving flow (1), at a position of its path; end of a round at a link
    /// (2); message sent (3); message lost (4: the source sends its last fields again); restart of a flow (5).
    /// Returns nine floats per event, with names of the PERC thesis: e, b, a, state, ignore, SumE, NumB, MaxE and
    /// MaxE'. The first five are 0 for events without an update.
    fn run<'py>(&mut self, py: Python<'py>, events: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let mut out = Vec::with_capacity(events.len() / EVENT_BYTES * 72);
        for event in events.chunks_exact(EVENT_BYTES) {
            let word =
                |k: usize| u32::from_le_bytes([event[4 * k], event[4 * k + 1], event[4 * k + 2], event[4 * k + 3]]);
            let values =
                self.step(word(0), word(1), word(2)).ok_or_else(|| PyValueError::new_err("an unknown event"))?;
            out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        }
        Ok(PyBytes::new(py, &out))
    }
}

impl SPercLinks {
    fn step(&mut self, kind: u32, id: u32, hop: u32) -> Option<[f64; 9]> {
        if kind == ROUND {
            let link = self.links.get_mut(LinkId(id))?;
            self.rule.new_round(link);
            return Some(watched([0.0; 5], link));
        }
        let flow = self.flows.get_mut(FlowId(id))?;
        match kind {
            UPDATE | LEAVE => {
                let link = self.links.get_mut(*flow.path.get(hop as usize)?)?;
                let visit = Visit { flow: FlowId(id), subflow: SubflowId(0), hop: hop as u16, forward: true };
                let step = self.rule.update(link, &mut flow.fields, visit, 1.0, kind == LEAVE);
                let flag = |on: bool| f64::from(u8::from(on));
                return Some(watched([step.e, step.b, step.a, flag(step.bottlenecked), flag(step.ignored)], link));
            }
            SEND => flow.sent = flow.fields.clone(),
            LOSE => flow.fields = flow.sent.clone(),
            JOIN => flow.fields.links.fill(SPercField::NEW),
            _ => return None,
        }
        Some([0.0; 9])
    }
}

fn watched(step: [f64; 5], link: &SPercLink) -> [f64; 9] {
    let [e, b, a, s, i] = step;
    [e, b, a, s, i, link.sum_e(), link.num_b(), link.max_e().now, link.max_e().next]
}
