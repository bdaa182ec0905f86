//! Flows that are sampled.

use crate::error::Error;
use crate::spec::workload::Planned;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use subak_core::{FlowId, IdVec, Ns};

/// Flows that are sampled, from their start to their end.
pub(crate) struct Live {
    /// Known start times, ns, of flows that have not started.
    pub pending: BinaryHeap<Reverse<(Ns, FlowId)>>,
    live: Vec<FlowId>,
}

impl Live {
    /// State before any of `flows` has started; `None`: no flow is sampled.
    pub fn new(flows: Option<&IdVec<FlowId, Planned>>) -> Self {
        let known = flows.into_iter().flat_map(|flows| flows.iter_enumerated().filter(|(_, f)| f.after.is_empty()));
        Live { pending: known.map(|(n, f)| Reverse((f.plan.start_ns, n))).collect(), live: Vec::new() }
    }

    pub fn take_started(&mut self, now_ns: Ns) {
        while let Some(&Reverse((_, f))) = self.pending.peek().filter(|next| next.0.0 <= now_ns) {
            self.pending.pop();
            self.live.push(f);
        }
    }

    /// Calls `sample` for each started flow, and drops the flows for which it returns false.
    pub fn keep(&mut self, mut sample: impl FnMut(FlowId) -> Result<bool, Error>) -> Result<(), Error> {
        let mut result = Ok(());
        self.live.retain(|&f| {
            if result.is_err() {
                return true;
            }
            sample(f).unwrap_or_else(|error| {
                result = Err(error);
                true
            })
        });
        result
    }
}
