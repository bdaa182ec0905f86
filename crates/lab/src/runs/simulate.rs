//! One cell: a scheme under a setting with a seed, run and measured.

use crate::error::Error;
use crate::results::table::Row;
use crate::runs::Policies;
use crate::runs::actions::Actions;
use crate::runs::convergence::Watch;
use crate::runs::jobs::Running;
use crate::runs::passing::{Passing, Totals};
use crate::runs::recorder::{Recorder, Shared};
use crate::runs::window::Counts;
use crate::spec::drivers::{Scene, SchemeChoice};
use crate::spec::setting::{Convergence, Setting};
use crate::spec::workload::Planned;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::{AtomicBool, Ordering};
use subak_core::driver::{Driver, FlowPlan, FlowView, LinkView};
use subak_core::{Fault, FlowId, LinkId, NodeId, Ns};
use subak_fluid::idle_fct_ns;

/// How often a run says how far it is and asks whether to go on.
const SLICES: u64 = 200;

/// Where rows go.
pub(crate) type Rows<'a> = dyn FnMut(&Row) -> Result<(), Error> + 'a;

/// What a cell runs, and who wants to hear of it.
pub(crate) struct Cell<'a> {
    pub number: usize,
    pub setting: &'a Setting,
    pub scheme: &'a SchemeChoice,
    pub seed: u64,
    /// Where packets are recorded.
    pub packets: Option<&'a Shared>,
    /// What sets weights where the spec says a callable does.
    pub policies: &'a Policies,
    pub cancel: &'a AtomicBool,
    /// Told the share of the run that is done.
    pub progress: &'a (dyn Fn(f64) + Sync),
}

/// What a cell took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Took {
    pub events: u64,
    pub packet_hops: u64,
}

/// Runs the cell; `None` if it was cancelled.
pub(crate) fn simulate(cell: &Cell, rows: &mut Rows) -> Result<Option<Took>, Error> {
    let Cell { setting, scheme, seed, .. } = *cell;
    let Setting { topology, packet, faults, duration_ns, .. } = setting;
    let mut flows = setting.workload.flows(topology, seed, *packet, faults, *duration_ns)?;
    crate::spec::policy::apply(setting.policy, &mut flows)?;
    let placed = setting.workload.placed(topology, seed, *packet)?;
    let network = setting.topology.network();
    let (kind, info) = scheme.driver()?;
    let both_ways = setting.workload.runs_both_ways(&flows);
    let params = setting.circumstances(both_ways).complete(&info, &scheme.params);
    let data_share = kind.data_share(&scheme.name, &params)?;
    let scene = Scene { network, sizes: setting.packet, faults: &setting.faults, seed };
    let mut driver = kind.build(&scheme.name, &params, scene)?;
    if setting.measure.at_sender {
        driver.complete_at_sender();
    }
    if let Some(ways) = &setting.controller {
        driver.place_controller(ways);
    }
    let passing = Passing::new(setting, &flows);
    if let (Some(recorded), Some(table)) = (&setting.measure.packets, cell.packets) {
        driver.watch(Box::new(Recorder::new(setting, recorded, &flows, table)?));
    }
    let mut named = |row: &Row| {
        let named = Row {
            cell: Some(cell.number as u64),
            scheme: Some(&scheme.label),
            seed: Some(seed),
            load: setting.load(),
            ..row.clone()
        };
        rows(&named)
    };
    let mut run = Run {
        cell,
        data_share,
        flows: &flows,
        actions: Actions::new(setting, &flows),
        jobs: Running::new(setting, placed, &flows, cell.policies)?,
        driver: driver.as_mut(),
        live: Live::new(if setting.measure.rates_ns.is_some() { &flows } else { &[] }),
        open: Live::new(if setting.measure.paces_ns.is_some() { &flows } else { &[] }),
        seen_at_links: vec![0; setting.topology.described_links()],
        seen_bytes: if setting.measure.rates_ns.is_some() { vec![0; flows.len()] } else { Vec::new() },
        passing,
        counted: Counts::default(),
    };
    if !run.arrivals(&mut named)? || !run.drain(&mut named)? {
        return Ok(None);
    }
    if run.driver.failures() > 0 {
        let what = format!("scheme \"{}\" could not find exact rates {} times", scheme.name, run.driver.failures());
        return Err(Fault::new("policy", what, "report this as a defect, with the spec").into());
    }
    run.conclude(&mut named)?;
    Ok(Some(Took { events: driver.events(), packet_hops: driver.packet_hops() }))
}

/// Flows that are sampled: from their start until they have ended.
struct Live {
    /// Not started yet, and when they start, as far as that is known.
    pending: BinaryHeap<Reverse<(Ns, FlowId)>>,
    live: Vec<FlowId>,
}

impl Live {
    fn new(flows: &[Planned]) -> Self {
        let known = flows.iter().zip(0..).filter(|(f, _)| f.after.is_empty());
        Live { pending: known.map(|(f, n)| Reverse((f.plan.start_ns, n))).collect(), live: Vec::new() }
    }

    fn take_started(&mut self, now_ns: Ns) {
        while let Some(&Reverse((_, f))) = self.pending.peek().filter(|next| next.0.0 <= now_ns) {
            self.pending.pop();
            self.live.push(f);
        }
    }

    /// Samples each, and keeps those for which `sample` says so.
    fn keep(&mut self, mut sample: impl FnMut(FlowId) -> Result<bool, Error>) -> Result<(), Error> {
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

struct Run<'a> {
    cell: &'a Cell<'a>,
    /// The share of a link that the scheme means to give to data.
    data_share: f64,
    flows: &'a [Planned],
    actions: Actions<'a>,
    jobs: Running<'a>,
    driver: &'a mut dyn Driver,
    /// Flows whose rates are sampled, and those whose paces are.
    live: Live,
    open: Live,
    seen_bytes: Vec<u64>,
    /// Data bytes that each link had sent at the last sample of the queues.
    seen_at_links: Vec<u64>,
    passing: Passing,
    /// What counts: from the end of the warm-up to that of the duration.
    counted: Counts,
}

impl Run<'_> {
    /// Runs to the end of the duration, sampling; `false` if cancelled.
    fn arrivals(&mut self, rows: &mut Rows) -> Result<bool, Error> {
        let setting = self.cell.setting;
        let (measure, end_ns) = (&setting.measure, setting.duration_ns);
        let watch = |(number, &goal): (usize, &Convergence)| {
            let share = if goal.own_goal { self.data_share } else { 1.0 };
            (number, Watch::new(goal, setting, self.flows, share))
        };
        let mut watches: Vec<_> = measure.convergence.iter().enumerate().map(watch).collect();
        let never = Ns::MAX;
        let slice_ns = (end_ns / SLICES).max(1);
        // What happens at the very end of the warm-up counts.
        let mut before = self.counts();
        let warm_ns = setting.warmup_ns.checked_sub(1).unwrap_or(never);
        let every = [measure.rates_ns, measure.queues_ns, measure.paces_ns].map(|interval| interval.unwrap_or(never));
        let mut next = [every[0], every[1], warm_ns, slice_ns, every[2]];
        loop {
            let looks = watches.iter().map(|(_, w)| w.next_ns()).min().unwrap_or(never);
            let now_ns = next.iter().fold(looks, |a, &b| a.min(b)).min(self.actions.next_ns()).min(end_ns);
            self.tell_until(now_ns);
            self.run_until(now_ns)?;
            for set in self.jobs.take_log() {
                rows(&self.weight_row(set))?;
            }
            for deed in self.actions.due(now_ns, self.flows)? {
                deed.done_by(self.driver);
                watches.iter_mut().for_each(|(_, watch)| watch.hear(&deed));
            }
            for (number, watch) in &mut watches {
                if let Some(row) = watch.look(self.driver) {
                    rows(&Row { criterion: Some(*number as u64), ..row })?;
                }
            }
            if next[0] <= now_ns {
                self.sample_rates(now_ns, every[0], rows)?;
                next[0] += every[0];
            }
            if next[1] <= now_ns {
                self.sample_queues(now_ns, rows)?;
                next[1] += every[1];
            }
            if next[2] <= now_ns {
                before = self.counts();
                self.driver.restart_peaks();
                next[2] = never;
            }
            if next[3] <= now_ns {
                next[3] += slice_ns;
                self.forget(rows)?;
                if self.cancelled() {
                    return Ok(false);
                }
                // The rest is for flows that end after the last arrival.
                (self.cell.progress)(0.9 * now_ns as f64 / end_ns as f64);
            }
            if next[4] <= now_ns {
                self.sample_paces(now_ns, rows)?;
                next[4] += every[2];
            }
            if now_ns >= end_ns {
                self.tell_until(Ns::MAX);
                // What has not begun by now never will.
                let never = (0..self.flows.len() as FlowId).filter(|&f| self.actions.start_ns(f) == Ns::MAX);
                never.for_each(|f| self.driver.stop_flow(f));
                watches.iter().try_for_each(|(_, watch)| watch.check())?;
                self.counted = self.counts().since(&before);
                return Ok(true);
            }
        }
    }

    /// Lets flows that are not finished go on; `false` if cancelled.
    fn drain(&mut self, rows: &mut Rows) -> Result<bool, Error> {
        let setting = self.cell.setting;
        let end_ns = setting.duration_ns + setting.drain_ns;
        let mut slice_ns = (setting.duration_ns / SLICES).max(1);
        while self.driver.open_flows() > 0 && self.driver.now_ns() < end_ns {
            let until_ns = (self.driver.now_ns() + slice_ns).min(end_ns);
            let events = self.driver.events();
            self.driver.run_until_done(until_ns);
            self.forget(rows)?;
            if self.driver.now_ns() < until_ns {
                break;
            }
            if self.cancelled() {
                return Ok(false);
            }
            // A drain may be far longer than the run, with little to do.
            slice_ns = match self.driver.events() - events {
                0..10_000 => slice_ns.saturating_mul(2),
                1_000_000.. => (slice_ns / 2).max(1),
                _ => slice_ns,
            };
        }
        Ok(true)
    }

    /// Tells the driver of the flows that start by `until_ns`; of all of them at once, where they are spoken of by number.
    fn tell_until(&mut self, until_ns: Ns) {
        let Passing { allowed, told, .. } = &mut self.passing;
        while let Some(flow) = self.flows.get(*told).filter(|f| !*allowed || f.plan.start_ns <= until_ns) {
            self.driver.add(flow.first_plan());
            *told += 1;
        }
    }

    /// Writes the rows of the flows that are over, which the driver then knows no more.
    fn forget(&mut self, rows: &mut Rows) -> Result<(), Error> {
        if !self.passing.allowed {
            return Ok(());
        }
        self.driver.take_finished();
        for (flow, view) in self.driver.forget() {
            self.passing.note(flow, &view);
        }
        while let Some((flow, view)) = self.passing.next_row() {
            if self.cell.setting.measure.fct {
                rows(&self.flow_row(flow, &view))?;
            }
        }
        Ok(())
    }

    /// Lets time go on; flows that wait for others start as these end, and jobs set their weights.
    fn run_until(&mut self, until_ns: Ns) -> Result<(), Fault> {
        while (self.actions.reacts() || self.jobs.is_open()) && self.driver.now_ns() < until_ns {
            self.driver.run_until_finish(until_ns.min(self.jobs.next_ns()));
            let finished = self.driver.take_finished();
            for started in self.actions.react(&finished, self.driver, self.flows) {
                self.live.pending.push(Reverse(started));
                self.open.pending.push(Reverse(started));
                self.jobs.will_start(started);
            }
            for deed in self.jobs.go_on(&finished, self.driver, self.flows)? {
                deed.done_by(self.driver);
            }
        }
        self.driver.run_until(until_ns);
        Ok(())
    }

    fn cancelled(&self) -> bool {
        self.cell.cancel.load(Ordering::Relaxed)
    }

    fn described(&self) -> std::ops::Range<LinkId> {
        0..self.cell.setting.topology.described_links() as LinkId
    }

    fn counts(&self) -> Counts {
        Counts::now(self.driver, self.described().len(), &self.totals())
    }

    fn sample_rates(&mut self, now_ns: Ns, interval_ns: Ns, rows: &mut Rows) -> Result<(), Error> {
        self.live.take_started(now_ns);
        let (driver, flows, seen_bytes) = (&*self.driver, self.flows, &mut self.seen_bytes);
        self.live.keep(|f| {
            let view = driver.flow(f);
            let arrived = view.received_wire_bytes - seen_bytes[f as usize];
            seen_bytes[f as usize] = view.received_wire_bytes;
            rows(&Row {
                kind: Some("rate"),
                time_ns: Some(now_ns),
                flow: Some(u64::from(f)),
                flow_id: flows[f as usize].id.as_deref(),
                rate_bps: Some(arrived as f64 * 8e9 / interval_ns as f64),
                assigned_bps: Some(view.assigned_bps),
                received_bytes: Some(view.received_bytes),
                ..Row::default()
            })?;
            Ok(view.finished_ns.is_none() && flows[f as usize].plan.stop_ns.is_none_or(|s| s > now_ns))
        })
    }

    fn sample_paces(&mut self, now_ns: Ns, rows: &mut Rows) -> Result<(), Error> {
        self.open.take_started(now_ns);
        let (driver, flows) = (&*self.driver, self.flows);
        self.open.keep(|f| {
            for (subflow, pace) in driver.paces(f).into_iter().enumerate() {
                rows(&Row {
                    kind: Some("pace"),
                    time_ns: Some(now_ns),
                    flow: Some(u64::from(f)),
                    flow_id: flows[f as usize].id.as_deref(),
                    subflow: Some(subflow as u64),
                    pace_bps: pace.pace_bps,
                    window_bytes: pace.window_bytes,
                    in_flight_bytes: Some(pace.in_flight_bytes),
                    ..Row::default()
                })?;
            }
            Ok(driver.flow(f).finished_ns.is_none() && flows[f as usize].plan.stop_ns.is_none_or(|s| s > now_ns))
        })
    }

    fn sample_queues(&mut self, now_ns: Ns, rows: &mut Rows) -> Result<(), Error> {
        for l in self.described() {
            let view = self.driver.link(l);
            let before = std::mem::replace(&mut self.seen_at_links[l as usize], view.data_bytes);
            rows(&Row {
                kind: Some("queue"),
                data_bytes: Some(view.data_bytes - before),
                time_ns: Some(now_ns),
                link: Some(&self.cell.setting.topology.network().links()[l as usize].id),
                queued_bytes: Some(view.queued_bytes),
                queued_packets: Some(view.queued_packets),
                measured: Some(now_ns >= self.cell.setting.warmup_ns),
                ..Row::default()
            })?;
        }
        Ok(())
    }

    fn weight_row(&self, set: (Ns, FlowId, f64)) -> Row<'_> {
        let (time_ns, flow, weight) = set;
        let Planned { id, src, dst, .. } = &self.flows[flow as usize];
        Row {
            kind: Some("weight"),
            time_ns: Some(time_ns),
            flow: Some(u64::from(flow)),
            flow_id: id.as_deref(),
            src: self.name(*src),
            dst: self.name(*dst),
            weight: Some(weight),
            ..Row::default()
        }
    }

    fn name(&self, node: Option<NodeId>) -> Option<&str> {
        node.map(|n| self.cell.setting.topology.network().nodes()[n as usize].name.as_str())
    }

    /// Writes what is known at the end.
    fn conclude(&self, rows: &mut Rows) -> Result<(), Error> {
        let idle_ns = |f| self.flows[f as usize].plan.size_bytes.map_or(0, |size| self.idle_ns(f, size));
        for row in self.jobs.rows(|f| self.driver.flow(f).finished_ns, idle_ns) {
            rows(&row)?;
        }
        if self.cell.setting.measure.fct {
            for (flow, view) in self.passing.unwritten().filter(|&(f, _)| self.is_real(f)) {
                rows(&self.flow_row(flow, &view.unwrap_or_else(|| self.driver.flow(flow))))?;
            }
        }
        let stuck: BTreeMap<LinkId, Ns> = self.driver.deadlock().into_iter().collect();
        for l in self.described() {
            rows(&Row { deadlock_ns: stuck.get(&l).copied(), ..self.link_row(l) })?;
        }
        for (&wait_ns, &packets) in &self.counted.waits {
            rows(&Row { kind: Some("wait"), wait_ns: Some(wait_ns), packets: Some(packets), ..Row::default() })?;
        }
        rows(&self.summary_row())
    }

    /// Whether the flow is more than one drawn in case there would be time for it, and there was none.
    fn is_real(&self, f: FlowId) -> bool {
        !self.flows[f as usize].spare || self.actions.start_ns(f) != Ns::MAX
    }

    /// Over all flows so far.
    fn totals(&self) -> Totals {
        let mut totals = self.passing.gone;
        let known = self.passing.unwritten().filter(|(f, view)| view.is_none() && self.is_real(*f));
        known.for_each(|(f, _)| totals.add(&self.driver.flow(f)));
        totals
    }

    fn flow_row(&self, f: FlowId, view: &FlowView) -> Row<'_> {
        let Planned { id, src, dst, plan, .. } = &self.flows[f as usize];
        let setting = self.cell.setting;
        let start_ns = Some(self.actions.start_ns(f)).filter(|&at| at != Ns::MAX);
        let fct_ns = view.finished_ns.zip(start_ns).map(|(at, start)| at - start);
        let ideal_fct_ns = plan.size_bytes.map(|size| self.idle_ns(f, size));
        let slowdown = fct_ns.zip(ideal_fct_ns).map(|(fct, ideal)| fct as f64 / ideal as f64);
        Row {
            kind: Some("flow"),
            flow: Some(u64::from(f)),
            flow_id: id.as_deref(),
            src: self.name(*src),
            dst: self.name(*dst),
            size_bytes: plan.size_bytes,
            start_ns,
            stop_ns: plan.stop_ns,
            weight: Some(plan.weight),
            fct_ns,
            ideal_fct_ns,
            slowdown,
            measured: Some(start_ns.is_some_and(|at| at >= setting.warmup_ns)),
            received_bytes: Some(view.received_bytes),
            duplicate_bytes: Some(view.duplicate_bytes),
            retransmissions: Some(view.retransmissions),
            drops: Some(view.drops),
            ctl_drops: Some(view.ctl_drops),
            ..Row::default()
        }
    }

    /// The completion time of flow `f` alone; over several paths, as the fluid optimum completes it.
    fn idle_ns(&self, f: FlowId, size: u64) -> Ns {
        let (setting, plan) = (self.cell.setting, &self.flows[f as usize].plan);
        let network = setting.topology.network();
        if let [route] = plan.routes.as_slice() {
            let most_bps = plan.utility.as_ref().map_or(f64::INFINITY, |u| u.top_bps()).min(plan.demand_bps);
            return idle_fct_ns(network, &route.forward, setting.packet, size, most_bps) + self.idle_back_ns(plan);
        }
        subak_fluid::lone_fct_ns(network, plan, setting.packet) + self.idle_back_ns(plan)
    }

    /// The last acknowledgement's way back, where a flow is complete at its sender.
    fn idle_back_ns(&self, plan: &FlowPlan) -> Ns {
        let setting = self.cell.setting;
        let back_ns = |route| subak_fluid::acknowledgement_ns(setting.topology.network(), route, setting.packet);
        if setting.measure.at_sender { plan.routes.iter().map(back_ns).max().unwrap_or(0) } else { 0 }
    }

    fn link_row(&self, l: LinkId) -> Row<'_> {
        let setting = self.cell.setting;
        let link = &setting.topology.network().links()[l as usize];
        let LinkView { peak_queued_bytes, data_bytes, ack_bytes, ctl_bytes, .. } = self.counted.links[l as usize];
        let LinkView { dropped_packets, dropped_bytes, lost_packets, pauses, paused_ns, .. } =
            self.counted.links[l as usize];
        Row {
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
            ..Row::default()
        }
    }

    /// Data over capacity between warm-up and duration, over `links` together; whole bytes may make it a little too much.
    fn utilization(&self, links: impl Iterator<Item = LinkId>) -> f64 {
        let (mut bits, mut could) = (0.0, 0.0);
        for l in links {
            bits += 8.0 * self.counted.links[l as usize].data_bytes as f64;
            could += self.cell.setting.could_carry(l, self.counted.time_ns);
        }
        (bits / could).min(1.0)
    }

    fn summary_row(&self) -> Row<'static> {
        let topology = &self.cell.setting.topology;
        let totals = self.totals();
        let into_host = |l: &LinkId| topology.network().links()[*l as usize].to.is_some_and(|n| topology.is_host(n));
        let last: Vec<LinkId> = self.described().filter(into_host).collect();
        let last = if last.is_empty() { self.described().collect() } else { last };
        let links = |field: fn(&LinkView) -> u64| Some(self.counted.links.iter().map(field).sum());
        Row {
            kind: Some("summary"),
            time_ns: Some(self.driver.now_ns()),
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
            lost_packets: links(|l| l.lost_packets),
            pauses: links(|l| l.pauses),
            paused_ns: links(|l| l.paused_ns),
            utilization: Some(self.utilization(last.into_iter())),
            events: Some(self.driver.events()),
            packet_hops: Some(self.driver.packet_hops()),
            ..Row::default()
        }
    }
}
