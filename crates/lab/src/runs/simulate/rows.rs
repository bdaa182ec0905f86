//! Rows of a run: samples during it; flows, links and totals at its end.

use super::{RowSink, Run};
use crate::error::Error;
use crate::results::table::ResultRow;
use crate::runs::passing::Totals;
use crate::spec::workload::{Planned, path_text};
use std::collections::BTreeMap;
use subak_core::backend::{FlowPlan, FlowView, LinkView, Route};
use subak_core::idle::{acknowledgement_ns, idle_fct_ns};
use subak_core::{FlowId, LinkId, NodeId, Ns};

impl Run<'_> {
    pub(super) fn sample_rates(&mut self, now_ns: Ns, interval_ns: Ns, rows: &mut RowSink) -> Result<(), Error> {
        self.live.take_started(now_ns);
        let (backend, flows, seen_bytes) = (&*self.backend, self.flows, &mut self.seen_bytes);
        let members = &self.members;
        let (workload, classes) = (&self.trial.scenario.workload, self.trial.scenario.measure.rate_classes.as_deref());
        let of_class = |flow: &Planned| flow.class.and_then(|class| workload.class_name(class));
        self.live.keep(|f| {
            let view = backend.flow(f);
            let goes_on = view.finished_ns.is_none() && flows[f].plan.stop_ns.is_none_or(|s| s > now_ns);
            if !is_of(of_class(&flows[f]), classes) {
                return Ok(goes_on);
            }
            let arrived = view.received_wire_bytes - seen_bytes[f];
            seen_bytes[f] = view.received_wire_bytes;
            rows(&ResultRow {
                kind: Some("rate"),
                scheme: Some(&members[usize::from(flows[f].plan.scheme)].label),
                time_ns: Some(now_ns),
                flow: Some(u64::from(f)),
                flow_id: flows[f].id.as_deref(),
                class: of_class(&flows[f]),
                rate_bps: Some(arrived as f64 * 8e9 / interval_ns as f64),
                assigned_bps: Some(view.assigned_bps),
                received_bytes: Some(view.received_bytes),
                ..ResultRow::default()
            })?;
            Ok(goes_on)
        })
    }

    pub(super) fn sample_paces(&mut self, now_ns: Ns, rows: &mut RowSink) -> Result<(), Error> {
        self.open.take_started(now_ns);
        let (backend, flows, members) = (&*self.backend, self.flows, &self.members);
        let (workload, classes) = (&self.trial.scenario.workload, self.trial.scenario.measure.pace_classes.as_deref());
        let of_class = |flow: &Planned| flow.class.and_then(|class| workload.class_name(class));
        self.open.keep(|f| {
            let paces = if is_of(of_class(&flows[f]), classes) { backend.paces(f) } else { Vec::new() };
            for (subflow, pace) in paces.into_iter().enumerate() {
                rows(&ResultRow {
                    kind: Some("pace"),
                    scheme: Some(&members[usize::from(flows[f].plan.scheme)].label),
                    time_ns: Some(now_ns),
                    flow: Some(u64::from(f)),
                    flow_id: flows[f].id.as_deref(),
                    class: of_class(&flows[f]),
                    subflow: Some(subflow as u64),
                    pace_bps: pace.pace_bps,
                    window_bytes: pace.window_bytes,
                    in_flight_bytes: Some(pace.in_flight_bytes),
                    ..ResultRow::default()
                })?;
            }
            Ok(backend.flow(f).finished_ns.is_none() && flows[f].plan.stop_ns.is_none_or(|s| s > now_ns))
        })
    }

    pub(super) fn sample_queues(&mut self, now_ns: Ns, rows: &mut RowSink) -> Result<(), Error> {
        let links = match &self.trial.scenario.measure.queue_links {
            Some(links) => links.clone(),
            None => self.described().collect(),
        };
        for l in links {
            let view = self.backend.link(l);
            let before = std::mem::replace(&mut self.seen_at_links[l], view.data_bytes);
            rows(&ResultRow {
                kind: Some("queue"),
                data_bytes: Some(view.data_bytes - before),
                time_ns: Some(now_ns),
                link: Some(&self.trial.scenario.topology.network().links()[l].id),
                queued_bytes: Some(view.queued_bytes),
                queued_packets: Some(view.queued_packets),
                measured: Some(now_ns >= self.trial.scenario.warmup_ns),
                ..ResultRow::default()
            })?;
        }
        Ok(())
    }

    /// Writes the notes of the user's scheme since the last call, and returns their number.
    pub(super) fn write_notes(&mut self, rows: &mut RowSink) -> Result<usize, Error> {
        let notes = self.backend.take_notes();
        let scenario = self.trial.scenario;
        let links = scenario.topology.network().links();
        for note in &notes {
            rows(&ResultRow {
                kind: Some("note"),
                time_ns: Some(note.time_ns),
                flow: note.flow.map(u64::from),
                flow_id: note.flow.and_then(|f| self.flows[f].id.as_deref()),
                link: note.link.map(|l| links[l].id.as_str()),
                subflow: note.subflow.map(|k| u64::from(k.0)),
                measured: Some(note.time_ns >= scenario.warmup_ns),
                name: Some(&note.name),
                value: Some(note.value),
                ..ResultRow::default()
            })?;
        }
        Ok(notes.len())
    }

    pub(super) fn weight_row(&self, set: (Ns, FlowId, f64)) -> ResultRow<'_> {
        let (time_ns, flow, weight) = set;
        let Planned { id, src, dst, .. } = &self.flows[flow];
        ResultRow {
            kind: Some("weight"),
            time_ns: Some(time_ns),
            flow: Some(u64::from(flow)),
            flow_id: id.as_deref(),
            src: self.name(*src),
            dst: self.name(*dst),
            weight: Some(weight),
            ..ResultRow::default()
        }
    }

    pub(super) fn name(&self, node: Option<NodeId>) -> Option<&str> {
        node.map(|n| self.trial.scenario.topology.network().nodes()[n].name.as_str())
    }

    /// Writes the rows at the end of the run.
    pub(super) fn conclude(&self, rows: &mut RowSink) -> Result<(), Error> {
        let idle_ns = |f| self.flows[f].plan.size_bytes.map_or(0, |size| self.idle_ns(f, size));
        for row in self.jobs.rows(|f| self.backend.flow(f).finished_ns, idle_ns) {
            rows(&row)?;
        }
        if self.trial.scenario.measure.fct {
            for (flow, view) in self.passing.unwritten().filter(|&(f, _)| self.is_real(f)) {
                self.write_flow(flow, &view.unwrap_or_else(|| self.backend.flow(flow)), rows)?;
            }
        }
        let stuck: BTreeMap<LinkId, Ns> = self.backend.deadlock().into_iter().collect();
        for l in self.described() {
            rows(&ResultRow { deadlock_ns: stuck.get(&l).copied(), ..self.link_row(l) })?;
        }
        for (&wait_ns, &packets) in &self.counted.waits {
            rows(&ResultRow {
                kind: Some("wait"),
                wait_ns: Some(wait_ns),
                packets: Some(packets),
                ..ResultRow::default()
            })?;
        }
        rows(&self.summary_row())
    }

    /// Writes the rows of flows without a path; their numbers follow those of the other flows.
    pub(super) fn conclude_stranded(&self, stranded: &[Planned], rows: &mut RowSink) -> Result<(), Error> {
        let scenario = self.trial.scenario;
        for (number, flow) in stranded.iter().enumerate().filter(|_| scenario.measure.fct) {
            rows(&ResultRow {
                kind: Some("flow"),
                scheme: Some(&self.members[usize::from(flow.plan.scheme)].label),
                flow: Some((self.flows.len() + number) as u64),
                flow_id: flow.id.as_deref(),
                src: self.name(flow.src),
                dst: self.name(flow.dst),
                class: flow.class.and_then(|class| scenario.workload.class_name(class)),
                size_bytes: flow.plan.size_bytes,
                start_ns: Some(flow.plan.start_ns),
                stop_ns: flow.plan.stop_ns,
                weight: Some(flow.plan.weight),
                measured: Some(flow.plan.start_ns >= scenario.warmup_ns),
                received_bytes: Some(0),
                ..ResultRow::default()
            })?;
        }
        Ok(())
    }

    /// Whether the flow belongs to the results. A closed loop plans more transfers than may start; those that
    /// never started are omitted.
    pub(super) fn is_real(&self, f: FlowId) -> bool {
        !self.flows[f].spare || self.actions.start_ns(f) != Ns::MAX
    }

    /// Counters summed over all flows so far.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = self.passing.gone;
        let known = self.passing.unwritten().filter(|(f, view)| view.is_none() && self.is_real(*f));
        known.for_each(|(f, _)| totals.add(&self.backend.flow(f)));
        totals
    }

    pub(super) fn write_flow(&self, f: FlowId, view: &FlowView, rows: &mut RowSink) -> Result<(), Error> {
        let path = path_text(&self.flows[f].plan.routes, self.trial.scenario.topology.network());
        rows(&ResultRow { path: Some(&path), ..self.flow_row(f, view) })
    }

    fn flow_row(&self, f: FlowId, view: &FlowView) -> ResultRow<'_> {
        let Planned { id, src, dst, plan, class, .. } = &self.flows[f];
        let scenario = self.trial.scenario;
        let start_ns = Some(self.actions.start_ns(f)).filter(|&at| at != Ns::MAX);
        let fct_ns = view.finished_ns.zip(start_ns).map(|(at, start)| at - start);
        let ideal_fct_ns = plan.size_bytes.map(|size| self.idle_ns(f, size));
        let slowdown = fct_ns.zip(ideal_fct_ns).map(|(fct, ideal)| fct as f64 / ideal as f64);
        ResultRow {
            kind: Some("flow"),
            scheme: Some(&self.members[usize::from(plan.scheme)].label),
            flow: Some(u64::from(f)),
            flow_id: id.as_deref(),
            src: self.name(*src),
            dst: self.name(*dst),
            class: class.and_then(|class| scenario.workload.class_name(class)),
            size_bytes: plan.size_bytes,
            start_ns,
            stop_ns: plan.stop_ns,
            weight: Some(plan.weight),
            fct_ns,
            ideal_fct_ns,
            slowdown,
            measured: Some(start_ns.is_some_and(|at| at >= scenario.warmup_ns)),
            received_bytes: Some(view.received_bytes),
            duplicate_bytes: Some(view.duplicate_bytes),
            retransmissions: Some(view.retransmissions),
            drops: Some(view.drops),
            ctl_drops: Some(view.ctl_drops),
            // Backends on several threads cannot tell; a scheme of the user's runs on one.
            assigned_bps: (self.members[usize::from(plan.scheme)].outside.is_some() && self.backend.is_held(f))
                .then_some(0.0),
            ..ResultRow::default()
        }
    }

    /// FCT of flow `f` of `size` bytes alone on the idle network, ns; with several paths, FCT at the optimal fluid
    /// rates.
    pub(super) fn idle_ns(&self, f: FlowId, size: u64) -> Ns {
        let (scenario, plan) = (self.trial.scenario, &self.flows[f].plan);
        let network = scenario.topology.network();
        let most_bps = plan.utility.as_ref().map_or(f64::INFINITY, |u| u.top_bps()).min(plan.demand_bps);
        let over = |route: &Route| idle_fct_ns(network, &route.forward, scenario.packet, size, most_bps);
        if let [route] = plan.routes.as_slice() {
            return over(route) + self.idle_back_ns(plan);
        }
        // A sprayed flow may by chance use only its quickest path.
        let quickest_ns = plan.routes.iter().filter(|_| plan.spread.is_some()).map(over).min().unwrap_or(Ns::MAX);
        let links = network.links();
        let at_line_rate =
            |r: &Route| r.forward.iter().all(|&l| links[l].capacity_bps >= links[r.forward[0]].capacity_bps);
        if plan.spread.is_some() && plan.routes.iter().any(at_line_rate) {
            return quickest_ns + self.idle_back_ns(plan);
        }
        subak_fluid::lone_fct_ns(network, plan, scenario.packet).min(quickest_ns) + self.idle_back_ns(plan)
    }

    /// Delay of the last ACK on the idle reverse path, ns, if flows complete at the sender; otherwise 0.
    pub(super) fn idle_back_ns(&self, plan: &FlowPlan) -> Ns {
        let scenario = self.trial.scenario;
        let back_ns = |route| acknowledgement_ns(scenario.topology.network(), route, scenario.packet);
        if scenario.measure.at_sender { plan.routes.iter().map(back_ns).max().unwrap_or(0) } else { 0 }
    }

    pub(super) fn link_row(&self, l: LinkId) -> ResultRow<'_> {
        let scenario = self.trial.scenario;
        let link = &scenario.topology.network().links()[l];
        let LinkView { peak_queued_bytes, data_bytes, ack_bytes, ctl_bytes, .. } = self.counted.links[l];
        let LinkView { dropped_packets, dropped_bytes, lost_packets, pauses, paused_ns, .. } = self.counted.links[l];
        ResultRow {
            kind: Some("link"),
            link: Some(&link.id),
            peak_queued_bytes: Some(peak_queued_bytes),
            data_bytes: Some(data_bytes),
            ack_bytes: Some(ack_bytes),
            ctl_bytes: Some(ctl_bytes),
            dropped_packets: Some(dropped_packets),
            dropped_bytes: Some(dropped_bytes),
            lost_packets: Some(lost_packets),
            pauses: Some(pauses),
            paused_ns: Some(paused_ns),
            utilization: Some(self.utilization(std::iter::once(l))),
            ..ResultRow::default()
        }
    }

    /// Utilization between warm-up and end of the duration: data bytes over capacity of `links`. It is slightly
    /// too high: a packet in transmission at the end counts in full.
    pub(super) fn utilization(&self, links: impl Iterator<Item = LinkId>) -> f64 {
        let (mut bits, mut could) = (0.0, 0.0);
        for l in links {
            bits += 8.0 * self.counted.links[l].data_bytes as f64;
            could += self.trial.scenario.could_carry(l, self.counted.time_ns);
        }
        (bits / could).min(1.0)
    }

    pub(super) fn summary_row(&self) -> ResultRow<'static> {
        let topology = &self.trial.scenario.topology;
        let totals = self.totals();
        let into_host = |l: &LinkId| topology.network().links()[*l].to.is_some_and(|n| topology.is_host(n));
        let last: Vec<LinkId> = self.described().filter(into_host).collect();
        let last = if last.is_empty() { self.described().collect() } else { last };
        let links = |field: fn(&LinkView) -> u64| Some(self.counted.links.iter().map(field).sum());
        ResultRow {
            kind: Some("summary"),
            time_ns: Some(self.backend.now_ns()),
            flows: Some(totals.flows),
            completed: Some(totals.completed),
            received_bytes: Some(totals.received_bytes),
            duplicate_bytes: Some(totals.duplicate_bytes),
            retransmissions: Some(self.counted.retransmissions),
            drops: Some(self.counted.drops),
            data_bytes: links(|l| l.data_bytes),
            ack_bytes: links(|l| l.ack_bytes),
            ctl_bytes: links(|l| l.ctl_bytes),
            dropped_packets: links(|l| l.dropped_packets),
            dropped_bytes: links(|l| l.dropped_bytes),
            dropped_in_run: Some(self.counted.links.ids().map(|l| self.backend.link(l).dropped_packets).sum()),
            lost_packets: links(|l| l.lost_packets),
            pauses: links(|l| l.pauses),
            paused_ns: links(|l| l.paused_ns),
            utilization: Some(self.utilization(last.into_iter())),
            events: Some(self.backend.events()),
            packet_hops: Some(self.backend.packet_hops()),
            ..ResultRow::default()
        }
    }
}

/// Whether a flow of `class` is of one of the classes; `None`: all flows are.
fn is_of(class: Option<&str>, classes: Option<&[String]>) -> bool {
    classes.is_none_or(|names| class.is_some_and(|class| names.iter().any(|name| name == class)))
}
