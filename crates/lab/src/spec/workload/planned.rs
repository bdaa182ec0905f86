//! Flows as a workload plans them.

use subak_core::backend::{FlowPlan, NOT_YET, Route};
use subak_core::flows::Extra;
use subak_core::{FlowId, IdVec, Network, NodeId, Ns};

/// A flow with its source and destination.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// Name, if the spec gives one.
    pub id: Option<String>,
    /// Source; `None` if the spec gives links instead.
    pub src: Option<NodeId>,
    /// Destination.
    pub dst: Option<NodeId>,
    /// Fields that some policies require.
    pub extra: Extra,
    /// Numbers of the flows that must finish before it starts; `plan.start_ns` is then the delay after the last of
    /// these ends.
    pub after: Vec<FlowId>,
    /// Delay after the end of each of these flows, ns, for computations in between; empty for none.
    pub delays_ns: Vec<Ns>,
    /// Earliest start time, ns, in addition to dependencies.
    pub earliest_ns: Ns,
    /// Changes of the weight: time in ns, and new weight.
    pub weights: Vec<(Ns, f64)>,
    /// Number of connections of a transfer that is not split yet.
    pub connections: usize,
    /// Whether it is tentative: it has no row if it never starts.
    pub spare: bool,
    /// The plan for the backend.
    pub plan: FlowPlan,
}

impl Planned {
    /// The plan for the backend at the start of the run: a dependent flow has no start time yet.
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
