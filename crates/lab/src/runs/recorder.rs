//! Records the packets that the spec selects.

use crate::error::Error;
use crate::results::packets::{PacketTable, ResultRow};
use crate::spec::packets::Recorded;
use crate::spec::scenario::Scenario;
use crate::spec::topology::Topology;
use crate::spec::workload::Planned;
use parquet::errors::ParquetError;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use subak_core::backend::{PacketEvent, TraceRecord, Watcher};
use subak_core::scheme::{Class, PacketKind, Way};
use subak_core::{FlowId, IdVec, LinkId, NodeId, Ns};

/// Packet table that the recorder fills during the run; the caller closes it after the run.
#[derive(Clone)]
pub(crate) struct SharedTable(Arc<Mutex<(Option<PacketTable>, Option<ParquetError>)>>);

impl SharedTable {
    pub fn new(table: PacketTable) -> Self {
        SharedTable(Arc::new(Mutex::new((Some(table), None))))
    }

    fn push(&self, row: &ResultRow) {
        let (table, failed) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(table), None) = (table, &failed) {
            // An error such as a full disk is reported at the end of the run.
            *failed = table.push(row).err();
        }
    }

    /// Writes the table's footer; returns an earlier error, if any.
    pub fn close(&self) -> Result<(), Error> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let table = held.0.take();
        let closed = match held.1.take() {
            Some(error) => Err(error),
            None => table.map_or(Ok(()), PacketTable::close),
        };
        closed.map_err(|e| Error::file(Path::new("packets"), e))
    }
}

/// Observer of one run's packet events, which writes the selected ones to the packet table.
pub(crate) struct Recorder {
    recorded: Recorded,
    flows: Option<BTreeSet<FlowId>>,
    topology: Arc<Topology>,
    ends: Vec<(Option<NodeId>, Option<NodeId>)>,
    header: String,
    table: SharedTable,
}

impl Recorder {
    /// A recorder of the packets that `recorded` selects, in a run with the flows `planned`.
    pub fn new(
        scenario: &Scenario,
        recorded: &Recorded,
        planned: &IdVec<FlowId, Planned>,
        table: &SharedTable,
    ) -> Result<Self, Error> {
        let flows = recorded.flows(planned).map_err(|e| e.below("packets").below("measure"))?;
        Ok(Recorder {
            recorded: recorded.clone(),
            flows,
            topology: Arc::clone(&scenario.topology),
            ends: planned.iter().map(|flow| (flow.src, flow.dst)).collect(),
            header: String::new(),
            table: table.clone(),
        })
    }
}

impl Watcher for Recorder {
    fn wants(&self, at_ns: Ns, flow: Option<FlowId>, link: LinkId) -> bool {
        (self.recorded.from_ns..self.recorded.until_ns).contains(&at_ns)
            && self.recorded.links.as_ref().is_none_or(|links| links.contains(&link))
            && self.flows.as_ref().is_none_or(|flows| flow.is_some_and(|f| flows.contains(&f)))
    }

    fn see(&mut self, seen: &TraceRecord) {
        self.header.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.header, "{:?}", seen.header);
        let network = self.topology.network();
        let (src, dst) = seen.flow.and_then(|f| self.ends.get(f.index()).copied()).unwrap_or_default();
        let name = |n: Option<NodeId>| n.map(|n| network.nodes()[n].name.as_str());
        let is_control = seen.event == PacketEvent::Control;
        let packet = |value: u64| Some(value).filter(|_| !is_control);
        let ack = |value: u32| Some(u64::from(value)).filter(|_| seen.kind == PacketKind::Ack);
        self.table.push(&ResultRow {
            time_ns: Some(seen.at_ns),
            event: Some(seen.event.name()),
            link: Some(&network.links()[seen.link].id),
            flow: seen.flow.map(u64::from),
            src: name(src),
            dst: name(dst),
            subflow: seen.flow.map(|_| seen.subflow.into()),
            packet: Some(kind(seen.kind)).filter(|_| !is_control),
            way: Some(way(seen.way)).filter(|_| !is_control),
            class: Some(class(seen.class)).filter(|_| !is_control),
            segment: packet(seen.segment.into()),
            run_start: ack(seen.blocks.run(seen.segment).start),
            earlier_start: ack(seen.blocks.earlier(seen.segment).start),
            earlier_end: ack(seen.blocks.earlier(seen.segment).end),
            cumulative: ack(seen.cumulative),
            bytes: packet(seen.bytes.into()),
            payload_bytes: packet(seen.payload_bytes.into()),
            ecn: Some(seen.ecn).filter(|_| !is_control),
            hop: packet(seen.hop.into()),
            sent_ns: packet(seen.sent_ns),
            waited_ns: packet(seen.waited_ns),
            queued_bytes: Some(seen.queued_bytes),
            queued_packets: Some(seen.queued_packets),
            header: Some(self.header.as_str()).filter(|text| *text != "()"),
        });
    }
}

fn kind(kind: PacketKind) -> &'static str {
    match kind {
        PacketKind::Data => "data",
        PacketKind::Ack => "ack",
        PacketKind::Ctl => "ctl",
    }
}

fn class(class: Class) -> &'static str {
    match class {
        Class::Control => "control",
        Class::High => "high",
        Class::Low => "low",
    }
}

fn way(way: Way) -> &'static str {
    match way {
        Way::Out => "out",
        Way::Back => "back",
        Way::FlowToController => "flow-to-controller",
        Way::ControllerToFlow => "controller-to-flow",
        Way::NodeToController => "node-to-controller",
        Way::ControllerToNode => "controller-to-node",
    }
}
