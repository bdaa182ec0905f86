//! Start, change and end of flows.

use super::Ends;
use super::flow::Path;
use crate::event::SubId;
use std::sync::Arc;
use subak_core::scheme::{Io, Recovery, RouteId, Scheme, Source};
use subak_core::{FlowId, LinkId, Ns, Utility};

impl<S: Scheme> Ends<S> {
    /// Starts the flow; returns whether it does start: it may have been stopped before.
    pub fn start(&mut self, flow: FlowId, io: &mut Io<S>) -> bool {
        let Some(f) = self.flows.get_mut(flow).filter(|f| f.open) else { return false };
        f.began = true;
        f.source.on_start(io);
        true
    }

    /// Lets the flow send no new data; returns whether it was active. `counts`: whether this logical process counts
    /// the flow.
    pub fn stop(&mut self, flow: FlowId, counts: bool) -> bool {
        let Some(f) = self.flows.get_mut(flow).filter(|f| f.open) else { return false };
        f.open = false;
        f.unsent_bytes = 0;
        let is_sized = f.size_bytes.replace(f.view.sent_bytes).is_some();
        if counts {
            self.open_flows -= 1;
            self.unfinished -= i64::from(is_sized);
        }
        true
    }

    /// Completes the flow; returns whether it was active.
    pub fn finish(&mut self, flow: FlowId, now_ns: Ns) -> bool {
        let f = &mut self.flows[flow];
        if f.open {
            f.open = false;
            f.view.finished_ns = Some(now_ns);
            self.open_flows -= 1;
            self.unfinished -= 1;
            self.finished.push(flow);
            return true;
        }
        false
    }

    /// Notes that the flow has finished in another logical process.
    pub fn hear_finished(&mut self, flow: FlowId) {
        if let Some(f) = self.flows.get_mut(flow) {
            f.open = false;
        }
    }

    /// Tells the flow's source that the flow has ended; returns whether this was the first time.
    pub fn tear_down(&mut self, flow: FlowId, io: &mut Io<S>) -> bool {
        let f = &mut self.flows[flow];
        if std::mem::replace(&mut f.torn_down, true) {
            return false;
        }
        f.source.on_finish(io);
        true
    }

    /// Records the flow as ended if it is over. To be called where a flow may end without packets or events left.
    pub fn note_end(&mut self, flow: FlowId) {
        self.flows.note_end(flow);
    }

    /// Sets the weight of an active flow; returns whether the flow is active.
    pub fn set_weight(&mut self, flow: FlowId, weight: f64, utility: &Arc<Utility>, io: &mut Io<S>) -> bool {
        let Some(f) = self.flows.get_mut(flow).filter(|f| f.open) else { return false };
        f.source.on_weight(io, weight, utility);
        true
    }

    /// Sets the paths over which the packets of a sprayed subflow are sent.
    pub fn respray(&mut self, at: SubId, routes: &[RouteId]) {
        self.subs[at].ways.iter_mut().for_each(|ways| ways.change(routes.to_vec()));
    }

    /// Sets the path of a subflow. Returns the time of the next check for silence, ns, if the new path needs one of its
    /// own.
    pub fn reroute(
        &mut self,
        at: SubId,
        path: Path,
        nic: LinkId,
        recovery: Recovery,
        base_rtt_ns: Ns,
        now_ns: Ns,
    ) -> Option<Ns> {
        let sub = &mut self.subs[at];
        let recovery = Recovery { patient: recovery.patient || sub.ways.is_some(), ..recovery };
        let due_ns = sub.sender.set_path(recovery, base_rtt_ns, now_ns);
        sub.left.push(sub.path(sub.turn()));
        sub.listed &= sub.nic == nic;
        (sub.forward, sub.back, sub.symmetric, sub.base_rtt_ns) =
            (path.forward, path.back, path.symmetric, base_rtt_ns);
        sub.nic = nic;
        due_ns.filter(|due_ns| *due_ns < sub.check_ns)
    }
}
