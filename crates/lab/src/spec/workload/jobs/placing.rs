//! Places a job's tasks on hosts, and plans its transfers as flows.

use super::{Described, Placed, Task, Transfer, TransferEnd};
use crate::spec::workload::{FlowBuilder, Planned, host};
use subak_core::backend::{FlowPlan, Route, Spread};
use subak_core::flows::Extra;
use subak_core::rng::{Stream, mix};
use subak_core::{FlowId, IdVec, InputError, NodeId};
use subak_jobs::{Job, Piece, Work};

impl Described {
    /// Host of each task of job `k`.
    fn hosts(&self, k: u64, builder: &FlowBuilder) -> Result<Vec<NodeId>, InputError> {
        let mut stream = Stream::new(mix(builder.seed ^ mix(k)), "placement");
        let place = |task: &Task| {
            // A random host is drawn for every task, so that an explicit host of one task does not change the
            // hosts of others.
            let drawn = builder.hosts[stream.below(builder.hosts.len())];
            task.host.as_ref().map_or(Ok(drawn), |name| host(builder.topology, name))
        };
        self.tasks.iter().map(place).collect()
    }

    /// Places job number `k`; its flows are appended to `planned`.
    pub(super) fn place(
        &self,
        k: u64,
        builder: &mut FlowBuilder,
        planned: &mut IdVec<FlowId, Planned>,
    ) -> Result<Placed, InputError> {
        let hosts = self.hosts(k, builder)?;
        let first_task = self.flows.len();
        let mut pieces = Vec::with_capacity(first_task + self.tasks.len());
        let mut flows = vec![None; first_task + self.tasks.len()];
        let after = self.after();
        for (f, flow) in self.flows.iter().enumerate() {
            let at = |e: InputError| e.below(&format!("flows[{f}]"));
            let end = |end: &TransferEnd| match end {
                TransferEnd::Task(t) => Ok(hosts[*t]),
                TransferEnd::Nth(port) => Ok(builder.hosts[*port]),
                TransferEnd::Host(name) => host(builder.topology, name),
            };
            let (src, dst) = (end(&flow.ends[0]).map_err(at)?, end(&flow.ends[1]).map_err(at)?);
            let key = builder.paths.bits();
            let work = if src == dst {
                Work::Compute { ns: flow.start_ns }
            } else {
                let (routes, spread) = builder.topology.ways(&mut builder.router, src, dst, key, 1).map_err(at)?;
                let links = builder.topology.network().links();
                let line = routes[0].forward.iter().map(|&l| links[l].capacity_bps).fold(f64::MAX, f64::min);
                flows[f] = Some(planned.push(self.planned(flow, src, dst, routes, spread)));
                let payload = f64::from(builder.packet.mss_bytes()) / f64::from(builder.packet.mtu_bytes);
                let ends = [src, dst].map(|host| host.index() as u32);
                Work::Transfer { bytes: flow.size_bytes, line_bps: line * payload, ends }
            };
            pieces.push(Piece { work, after: after[f].clone() });
        }
        for (task, after) in self.tasks.iter().zip(&after[first_task..]) {
            pieces.push(Piece { work: Work::Compute { ns: task.time_ns }, after: after.clone() });
        }
        let job = Job::new(pieces).map_err(|_| InputError::new("", "pieces wait for each other in a circle", ""))?;
        self.wait(&job, &flows, planned);
        let Described { id, start_ns, who, budget, every_ns, .. } = self.clone();
        let names = self.flows.iter().map(|f| &f.id).chain(self.tasks.iter().map(|t| &t.id)).cloned().collect();
        Ok(Placed { id, start_ns, who, budget, every_ns, job, names, flows })
    }

    fn planned(
        &self,
        flow: &Transfer,
        src: NodeId,
        dst: NodeId,
        routes: Vec<Route>,
        spread: Option<Spread>,
    ) -> Planned {
        let size_bytes = Some(flow.size_bytes);
        Planned {
            id: Some(format!("{}/{}", self.id, flow.id)),
            src: Some(src),
            dst: Some(dst),
            extra: Extra { size_bytes, ..Extra::default() },
            after: Vec::new(),
            needed: None,
            delays_ns: Vec::new(),
            earliest_ns: 0,
            weights: Vec::new(),
            connections: 1,
            spare: false,
            class: None,
            plan: FlowPlan { spread, start_ns: flow.start_ns, size_bytes, ..FlowPlan::new(routes) },
        }
    }
}
