//! Flows as a workload plans them.

use subak_core::backend::{FlowPlan, NOT_YET, Route};
use subak_core::flows::Extra;
use subak_core::{FlowId, IdVec, Network, NodeId, Ns};

/// A flow with its source and destination.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// Its name, where the spec gives one.
    pub id: Option<String>,
    /// Source, where the spec names ends and not links.
    pub src: Option<NodeId>,
    /// Destination.
    pub dst: Option<NodeId>,
    /// Fields that some policies require.
    pub extra: Extra,
    /// Flows that must finish before it starts, by number; `plan.start_ns` is then the time from the
    /// last of these ends to its start.
    pub after: Vec<FlowId>,
    /// Delay after the end of each of them, for computations in between; empty for none.
    pub delays_ns: Vec<Ns>,
    /// Earliest start, regardless of dependencies.
    pub earliest_ns: Ns,
    /// Later weights with their times.
    pub weights: Vec<(Ns, f64)>,
    /// Number of connections of a transfer that is not split yet.
    pub connections: usize,
    /// Whether it is tentative: it leaves no row if it never starts.
    pub spare: bool,
    /// The plan for the backend.
    pub plan: FlowPlan,
}

impl Planned {
    /// The initial plan for the backend: a dependent flow has no start time yet.
    pub fn first_plan(&self) -> FlowPlan {
        let start_ns = if self.after.is_empty() { self.plan.start_ns } else { NOT_YET };
        FlowPlan { start_ns, ..self.plan.clone() }
    }
}

/// The links of `routes` by their ids: a space between links, " | " between routes.
pub(crate) fn path_text(routes: &[Route], network: &Network) -> String {
    let links = |route: &Route| route.forward.iter().map(|&l| network.links()[l].id.as_str()).collect::<Vec<_>>();
    routes.iter().map(|route| links(route).join(" ")).collect::<Vec<_>>().join(" | ")
}

/// Flows by their start, the last first.
pub(crate) fn by_start(flows: &IdVec<FlowId, Planned>) -> Vec<FlowId> {
    let mut order: Vec<FlowId> = flows.ids().collect();
    order.sort_by_key(|&f| std::cmp::Reverse((flows[f].plan.start_ns, f)));
    order
}
