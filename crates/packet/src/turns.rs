//! The state of a NIC with a single timer.

use crate::flow::SubId;
use subak_core::{FlowId, Ns};

/// Round-robin state of a NIC with a single timer: the subflows that send over one link.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns {
    /// The subflows.
    pub subs: Vec<(FlowId, SubId)>,
    /// Index of the subflow served last.
    pub last: usize,
    /// Expiry of the timer, ns; a past time means that the timer is not set.
    pub timer_ns: Option<Ns>,
}
