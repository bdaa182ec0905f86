//! A flow as planned by a workload.

use std::num::{NonZeroU8, NonZeroU32};
use subak_core::backend::{FlowPlan, NOT_YET, Route};
use subak_core::flows::Extra;
use subak_core::{FlowId, IdVec, Network, NodeId, Ns};

/// A flow with its source and destination.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// Name, if the spec has one.
    pub id: Option<String>,
    /// Source; `None` if the flow is defined by links without nodes.
    pub src: Option<NodeId>,
    /// Destination.
    pub dst: Option<NodeId>,
    /// Size, deadline and bandwidth function, which some policies require.
    pub extra: Extra,
    /// Flows that must finish before this flow starts; `plan.start_ns` is then the delay after the last of them
    /// finishes.
    pub after: Vec<FlowId>,
    /// Number of flows in `after` whose ends suffice; `None`: all of them.
    pub needed: Option<NonZeroU32>,
    /// Additional delay after the end of each flow in `after`, ns, for computations in between; empty: no delays.
    pub delays_ns: Vec<Ns>,
    /// Earliest start time, ns, even if all flows in `after` have finished.
    pub earliest_ns: Ns,
    /// Changes of the weight: time in ns, and new weight.
    pub weights: Vec<(Ns, f64)>,
    /// Number of connections into which the transfer will be split.
    pub connections: usize,
    /// Whether the flow is a transfer of a closed loop that may never start; it then has no row in the results.
    pub spare: bool,
    /// Class of the flow, if its workload has a name: see [`Traffic::class_name`](super::Traffic::class_name).
    pub class: Option<NonZeroU8>,
    /// Plan of the flow for the backend.
    pub plan: FlowPlan,
}

impl Planned {
    /// Lets this flow, number `own`, never start, without a row in the results: it keeps its number, which others wait for.
    pub(crate) fn leave_out(&mut self, own: FlowId) {
        (self.after, self.delays_ns, self.needed, self.spare) = (vec![own], Vec::new(), None, true);
    }

    /// The plan for the backend at the start of the run, when a dependent flow has no start time yet.
    pub fn first_plan(&self) -> FlowPlan {
        let start_ns = if self.after.is_empty() { self.plan.start_ns } else { NOT_YET };
        FlowPlan { start_ns, ..self.plan.clone() }
    }
}

/// The links of `routes` as text: link ids separated by spaces, routes by " | ".
pub(crate) fn path_text(routes: &[Route], network: &Network) -> String {
    let links = |route: &Route| route.forward.iter().map(|&l| network.links()[l].id.as_str()).collect::<Vec<_>>();
    routes.iter().map(|route| links(route).join(" ")).collect::<Vec<_>>().join(" | ")
}

/// Flows in descending order of start time.
pub(crate) fn by_start(flows: &IdVec<FlowId, Planned>) -> Vec<FlowId> {
    let mut order: Vec<FlowId> = flows.ids().collect();
    order.sort_by_key(|&f| std::cmp::Reverse((flows[f].plan.start_ns, f)));
    order
}
