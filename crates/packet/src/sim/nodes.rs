//! State machines of nodes and of the controller.

use crate::event::RestartId;
use subak_core::backend::Machine;
use subak_core::scheme::{Controller, ControllerPlace, NodeInfo, NodeMachine, RouteId, Scheme};
use subak_core::{IdVec, NodeId};

/// State machines of nodes and of the controller.
pub(super) struct Machines<S: Scheme> {
    pub controller: Option<Box<dyn Controller<S>>>,
    pub controller_life: u8,
    /// Routes from each node to the controller and back.
    pub ways: IdVec<NodeId, Option<(RouteId, RouteId)>>,
    /// Place of the controller in the network; `None` until it is set.
    pub place: Option<ControllerPlace>,
    /// State machine of each node that has one.
    pub nodes: IdVec<NodeId, Option<Box<dyn NodeMachine<S>>>>,
    pub node_infos: IdVec<NodeId, NodeInfo>,
    /// Number of restarts of each node's state machine, modulo 256.
    pub node_lives: IdVec<NodeId, u8>,
    pub has_nodes: bool,
    /// Restarts of state machines that faults bring about.
    pub restarts: IdVec<RestartId, Machine>,
}

impl<S: Scheme> Machines<S> {
    /// State for `nodes` nodes, without state machines.
    pub fn none(nodes: usize) -> Self {
        Machines {
            controller: None,
            controller_life: 0,
            ways: IdVec::filled(None, nodes),
            place: None,
            nodes: IdVec::new(),
            node_infos: IdVec::new(),
            node_lives: IdVec::filled(0, nodes),
            has_nodes: false,
            restarts: IdVec::new(),
        }
    }
}
