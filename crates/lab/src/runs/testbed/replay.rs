//! Replay of a testbed recording as a simulation.

use crate::results::facts::ENDED;
use crate::spec::scenario::Scenario;
use std::sync::Arc;
use subak_core::backend::{Backend, FlowPlan, FlowView, LinkChange, LinkView, PacketSizes, Route};
use subak_core::ids::IdVec;
use subak_core::scheme::Note;
use subak_core::{FlowId, InputError, LinkId, Ns, Utility};
use subak_testbed::{Carried, EndedDaemon, LinkCounts, LinkSample, Recording, TestbedRequest};

/// Recording of a finished run. Flows are in the order of the request.
pub(super) struct TestbedReplay {
    sizes: PacketSizes,
    at_sender: bool,
    now_ns: Ns,
    flows: IdVec<FlowId, Carried>,
    /// Number of flows that the simulation loop has added.
    added: usize,
    /// Ended flows, ordered by the time at which they finished or stopped.
    ends: Vec<(Ns, FlowId)>,
    /// Number of entries of `ends` that have been reported.
    passed: usize,
    samples: Vec<Sample>,
    /// Index of the first sample that counts for maximum queue lengths.
    peaks_from: usize,
    /// Notes that have not been taken: one for each daemon that ended.
    notes: Vec<Note>,
}

/// Counters of all links at one time.
struct Sample {
    time_ns: Ns,
    links: IdVec<LinkId, LinkView>,
}

impl TestbedReplay {
    /// Checks the recording: an error if its flows or links differ from the request's, or if every flow failed.
    pub fn new(scenario: &Scenario, request: &TestbedRequest, recording: Recording) -> Result<Self, InputError> {
        let broken = |what: String| InputError::new("backend", what, "run it again, and report it with the spec");
        let Recording { flows, links, ended, .. } = recording;
        if flows.len() != request.flows.len() {
            return Err(broken(format!("hosts answered for {} of {} flows", flows.len(), request.flows.len())));
        }
        if links.iter().any(|sample| sample.links.len() != request.links.len()) {
            return Err(broken("hosts answered for other links".to_string()));
        }
        if let Some(error) =
            flows.iter().find_map(|f| f.error.as_ref()).filter(|_| flows.iter().all(|f| f.error.is_some()))
        {
            return Err(broken(format!("no flow could be carried: {error}")));
        }
        let spec_ns = |wall_ns: u64| (wall_ns as f64 * request.scale).round() as Ns;
        let time = |mut carried: Carried| {
            let at = |ns: &mut Option<u64>| *ns = ns.map(spec_ns);
            at(&mut carried.started_ns);
            at(&mut carried.finished_ns);
            at(&mut carried.acknowledged_ns);
            carried.arrivals.iter_mut().for_each(|(ns, _)| *ns = spec_ns(*ns));
            carried.arrivals.sort_unstable();
            carried
        };
        let flows: IdVec<FlowId, Carried> = flows.into_iter().map(time).collect();
        let note = |EndedDaemon { time_ns, what, status }| Note {
            time_ns: spec_ns(time_ns),
            flow: None,
            link: None,
            subflow: None,
            name: format!("{ENDED}{what}").into(),
            value: status.into(),
        };
        let samples = samples(scenario.packet, request, &flows, links, spec_ns);
        Ok(TestbedReplay {
            sizes: scenario.packet,
            at_sender: false,
            now_ns: 0,
            flows,
            added: 0,
            ends: Vec::new(),
            passed: 0,
            samples,
            peaks_from: 0,
            notes: ended.into_iter().map(note).collect(),
        })
    }

    fn finished_ns(&self, flow: FlowId) -> Option<Ns> {
        let carried = &self.flows[flow];
        // The receiver closes after the last byte; the sender's last ACK may be recorded only after the run.
        let at_sender = carried.finished_ns.and(carried.acknowledged_ns);
        if self.at_sender { at_sender } else { carried.finished_ns }
    }

    fn sample(&self) -> usize {
        self.samples.partition_point(|sample| sample.time_ns <= self.now_ns)
    }
}

/// Payload of a flow that had arrived by `time_ns`, bytes.
fn arrived(carried: &Carried, time_ns: Ns) -> u64 {
    let known = carried.arrivals.partition_point(|&(at_ns, _)| at_ns <= time_ns);
    let noted = known.checked_sub(1).map_or(0, |last| carried.arrivals[last].1);
    let finished = carried.finished_ns.is_some_and(|at_ns| at_ns <= time_ns);
    if finished { carried.received_bytes } else { noted }
}

/// Samples of the links' counters. Hosts do not separate data from ACKs: payload that the link's flows had
/// received counts as data, and all other bytes as ACKs.
fn samples(
    sizes: PacketSizes,
    request: &TestbedRequest,
    flows: &IdVec<FlowId, Carried>,
    links: Vec<LinkSample>,
    spec_ns: impl Fn(u64) -> Ns,
) -> Vec<Sample> {
    // Counters start after connections were established.
    let first: IdVec<LinkId, LinkCounts> = links.first().map(|sample| sample.links.clone()).unwrap_or_default().into();
    let count = request.links.len();
    let mut before: IdVec<LinkId, LinkView> = IdVec::filled(LinkView::default(), count);
    let one = |LinkSample { time_ns, links }| {
        let time_ns = spec_ns(time_ns);
        let mut data: IdVec<LinkId, u64> = IdVec::filled(0, count);
        for (flow, asked) in flows.iter().zip(&request.flows) {
            let bytes = sizes.wire_bytes(arrived(flow, time_ns));
            asked.forward.iter().for_each(|&l| data[LinkId(l)] += bytes);
        }
        let view = |(counts, l): (LinkCounts, LinkId)| {
            let before = before[l];
            let sent_bytes = counts.sent_bytes.saturating_sub(first[l].sent_bytes);
            let data_bytes = data[l].min(sent_bytes).max(before.data_bytes);
            LinkView {
                queued_bytes: counts.queued_bytes,
                queued_packets: counts.queued_packets,
                peak_queued_bytes: counts.queued_bytes,
                data_bytes,
                ack_bytes: sent_bytes.saturating_sub(data_bytes).max(before.ack_bytes),
                dropped_packets: counts.dropped_packets.saturating_sub(first[l].dropped_packets),
                dropped_bytes: 0,
                ..LinkView::default()
            }
        };
        let links: IdVec<LinkId, LinkView> = links.into_iter().zip(LinkId::first(count)).map(view).collect();
        before.clone_from(&links);
        Sample { time_ns, links }
    };
    links.into_iter().map(one).collect()
}

impl Backend for TestbedReplay {
    fn add(&mut self, plan: FlowPlan) -> FlowId {
        let flow = FlowId::from_index(self.added);
        self.added += 1;
        if let Some(end_ns) = self.finished_ns(flow).or(plan.stop_ns) {
            let at = self.ends.partition_point(|&end| end <= (end_ns, flow));
            self.ends.insert(at, (end_ns, flow));
        }
        flow
    }
    fn complete_at_sender(&mut self) {
        self.at_sender = true;
    }
    fn set_weight(&mut self, _flow: FlowId, _weight: f64, _utility: Option<Arc<Utility>>) {}
    fn start_flow(&mut self, _flow: FlowId, _at_ns: Ns) {}
    fn stop_flow(&mut self, _flow: FlowId) {}
    fn reroute(&mut self, _flow: FlowId, _routes: &[Route]) {}
    fn change_link(&mut self, _link: LinkId, _change: LinkChange) {}
    fn run_until_finish(&mut self, until_ns: Ns) {
        let next = self.ends.get(self.passed).map_or(until_ns, |end| end.0);
        self.run_until(next.clamp(self.now_ns, until_ns));
    }
    fn take_finished(&mut self) -> Vec<FlowId> {
        let over = self.ends.partition_point(|&(end_ns, _)| end_ns <= self.now_ns);
        let taken = self.ends[self.passed.min(over)..over].iter().map(|end| end.1);
        let finished = taken.filter(|&f| self.finished_ns(f).is_some()).collect();
        self.passed = over;
        finished
    }
    fn run_until(&mut self, until_ns: Ns) {
        self.now_ns = self.now_ns.max(until_ns);
    }
    fn run_until_done(&mut self, until_ns: Ns) {
        let last_ns = self.ends.last().map_or(until_ns, |end| end.0);
        let all_end = self.ends.len() == self.added;
        self.run_until(if all_end { last_ns.min(until_ns) } else { until_ns });
    }
    fn now_ns(&self) -> Ns {
        self.now_ns
    }
    fn open_flows(&self) -> usize {
        let over = self.ends.partition_point(|&(end_ns, _)| end_ns <= self.now_ns);
        self.added - over
    }
    fn flow(&self, flow: FlowId) -> FlowView {
        let carried = &self.flows[flow];
        let finished_ns = self.finished_ns(flow).filter(|&at_ns| at_ns <= self.now_ns);
        let received_bytes = arrived(carried, self.now_ns);
        let over = received_bytes == carried.received_bytes;
        FlowView {
            finished_ns,
            sent_bytes: received_bytes,
            received_bytes,
            received_wire_bytes: self.sizes.wire_bytes(received_bytes),
            retransmissions: if over { carried.retransmissions } else { 0 },
            ..FlowView::default()
        }
    }
    fn link(&self, link: LinkId) -> LinkView {
        let seen = self.sample();
        let Some(last) = seen.checked_sub(1).and_then(|last| self.samples.get(last)) else {
            return LinkView::default();
        };
        let peaks = self.samples[self.peaks_from.min(seen)..seen].iter().map(|s| s.links[link].queued_bytes);
        LinkView { peak_queued_bytes: peaks.max().unwrap_or(0), ..last.links[link] }
    }
    fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
    fn restart_peaks(&mut self) {
        self.peaks_from = self.sample();
    }
    fn waits_ns(&self) -> Vec<(Ns, u64)> {
        Vec::new()
    }
    fn packet_hops(&self) -> u64 {
        0
    }
    fn events(&self) -> u64 {
        self.samples.len() as u64
    }
}
