//! The machines beside those of flows and links, as they stand.

use crate::pfc::Letter;
use subak_core::scheme::{Controller, Node, NodeInfo, Place, Scheme};

/// The machines beside those of flows and links, and letters under way between neighbours.
pub(crate) struct Machines<S: Scheme> {
    pub controller: Option<Box<dyn Controller<S>>>,
    pub controller_life: u8,
    /// Rows of the ways from each node to the controller and back.
    pub ways: Vec<Option<(u32, u32)>>,
    /// Where the controller is, once it is placed.
    pub place: Option<Place>,
    /// The machine of each node that has one, and how often it was restarted.
    pub nodes: Vec<Option<Box<dyn Node<S>>>>,
    pub node_infos: Vec<NodeInfo>,
    pub node_lives: Vec<u8>,
    pub has_nodes: bool,
    /// Letters, and the places that are free.
    pub letters: Vec<Option<Letter<S::Ctl>>>,
    pub free_letters: Vec<u32>,
}

impl<S: Scheme> Machines<S> {
    /// None yet, at so many nodes.
    pub fn none(nodes: usize) -> Self {
        Machines {
            controller: None,
            controller_life: 0,
            ways: vec![None; nodes],
            place: None,
            nodes: Vec::new(),
            node_infos: Vec::new(),
            node_lives: vec![0; nodes],
            has_nodes: false,
            letters: Vec::new(),
            free_letters: Vec::new(),
        }
    }
}
