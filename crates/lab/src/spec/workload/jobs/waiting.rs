//! Dependencies between the transfers and tasks of a job.

use super::{Described, TransferEnd};
use crate::spec::workload::Planned;
use std::collections::BTreeMap;
use subak_core::{FlowId, IdVec, Ns};
use subak_jobs::{Job, Work};

/// Start condition of a transfer: delay after the end of each flow, ns, and smallest delay after the start of the
/// job.
#[derive(Debug, Clone, Default)]
struct Wait {
    flows: BTreeMap<FlowId, Ns>,
    from_start_ns: Ns,
}

impl Wait {
    fn also(&mut self, other: &Wait, later_ns: Ns) {
        for (&flow, &delay_ns) in &other.flows {
            let known = self.flows.entry(flow).or_default();
            *known = (*known).max(delay_ns.saturating_add(later_ns));
        }
        self.from_start_ns = self.from_start_ns.max(other.from_start_ns.saturating_add(later_ns));
    }
}

impl Described {
    /// Dependencies of each transfer and task; a cycle is an error.
    pub(super) fn after(&self) -> Vec<Vec<usize>> {
        let first_task = self.flows.len();
        let mut after: Vec<Vec<usize>> = self.flows.iter().map(|f| f.after.clone()).collect();
        after.extend(self.tasks.iter().map(|t| t.after.clone()));
        for (f, flow) in self.flows.iter().enumerate() {
            if let TransferEnd::Task(t) = flow.ends[0] {
                after[f].push(first_task + t);
            }
            if let TransferEnd::Task(t) = flow.ends[1] {
                after[first_task + t].push(f);
            }
        }
        after
    }

    /// Sets the dependencies of each flow, including delays of tasks in between. `numbers`: flow of each transfer,
    /// `None` for tasks.
    pub(super) fn wait(&self, job: &Job, numbers: &[Option<FlowId>], flows: &mut IdVec<FlowId, Planned>) {
        let mut waits: Vec<Wait> = vec![Wait::default(); job.pieces().len()];
        for &i in job.order() {
            let mut wait = Wait::default();
            for &b in &job.pieces()[i].after {
                match (numbers[b], job.pieces()[b].work) {
                    (Some(flow), _) => {
                        wait.flows.entry(flow).or_default();
                    }
                    (None, Work::Compute { ns }) => wait.also(&waits[b], ns),
                    (None, Work::Transfer { .. }) => {}
                }
            }
            if let Some(flow) = numbers[i].and_then(|f| flows.get_mut(f)) {
                flow.after = wait.flows.keys().copied().collect();
                flow.delays_ns = wait.flows.values().copied().collect();
                flow.earliest_ns = self.start_ns.saturating_add(wait.from_start_ns);
                if flow.after.is_empty() {
                    flow.plan.start_ns = flow.earliest_ns.saturating_add(flow.plan.start_ns);
                }
            }
            waits[i] = wait;
        }
    }
}
