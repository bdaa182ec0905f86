//! Packet table of a trial, in a file of its own: one row for each event of a packet at a link, streamed to disk.

use crate::results::footer;
use crate::results::table::{columns, properties};
use arrow_array::builder::{BooleanBuilder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use serde_json::json;
use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;
use subak_core::backend::PacketSizes;
use subak_core::{Network, NodeId};

use super::table::TableColumn;

columns! {
    /// time since the start of the run
    time_ns: whole,
    /// event of the packet: enqueue, dequeue, drop (at a full queue), loss (by a fault), deliver, control (between neighbours)
    event: text,
    /// id of the link; the queue is the one before it
    link: text,
    /// number of the flow; null for messages of nodes and for control messages of links
    flow: whole,
    /// source of the flow, where the network knows its nodes
    src: text,
    /// destination of the flow
    dst: text,
    /// number of the subflow within its flow, from 0
    subflow: whole,
    /// kind of packet: data, ack or ctl
    packet: text,
    /// direction: out (source to sink), back, flow-to-controller, controller-to-flow, node-to-controller, controller-to-node
    way: text,
    /// priority: control, high or low
    class: text,
    /// number of the data packet's segment, or of the segment that the ACK acknowledges, from 0; of a node's message, the
    /// number of the node
    segment: whole,
    /// of ACKs: first segment of the SACK block that ends with `segment`
    run_start: whole,
    /// of ACKs: first segment of the SACK block before that
    earlier_start: whole,
    /// of ACKs: end of that block, as the first segment after it
    earlier_end: whole,
    /// of ACKs: cumulative ACK, the first segment that the receiver lacks
    cumulative: whole,
    /// bytes on the wire, headers included
    bytes: whole,
    /// payload bytes of data
    payload_bytes: whole,
    /// ECN mark, or its echo
    ecn: flag,
    /// number of links that the packet has crossed
    hop: whole,
    /// time at which the source sent the data packet, or the packet that the ACK acknowledges
    sent_ns: whole,
    /// queueing delay of the packet up to now
    waited_ns: whole,
    /// queue length, bytes; at an enqueue, without the packet itself
    queued_bytes: whole,
    /// queue length, packets
    queued_packets: whole,
    /// the scheme's header, or its message
    header: text,
}

/// Rows encoded at a time.
const BATCH: usize = 1 << 13;
/// Rows of a Parquet row group, which is in memory until it is complete.
const GROUP: usize = 1 << 17;

/// Writer of the packet table of one trial.
pub(crate) struct PacketTable {
    writer: ArrowWriter<BufWriter<File>>,
    schema: SchemaRef,
    builders: Builders,
    rows: usize,
}

impl PacketTable {
    /// Starts the packet table of `trial`, with the network's nodes and links as metadata.
    pub fn new(file: File, spec_hash: &str, trial: usize, network: &Network, sizes: PacketSizes) -> Result<Self> {
        let name = |n: Option<NodeId>| n.map(|n| network.nodes()[n].name.as_str());
        let links = network.links().iter();
        let links = links.map(|l| json!({"id": l.id, "from": name(l.from), "to": name(l.to), "bps": l.capacity_bps}));
        let network = json!({
            "nodes": network.nodes().iter().map(|n| n.name.as_str()).collect::<Vec<_>>(),
            "links": links.collect::<Vec<_>>(),
            "header_bytes": sizes.header_bytes,
            "mss_bytes": sizes.mss_bytes(),
        });
        let mut metadata = footer::metadata(spec_hash);
        let pair = |key: &str, value: String| KeyValue::new(key.to_string(), value);
        metadata.extend([pair("subak.trial", trial.to_string()), pair("subak.network", network.to_string())]);
        let schema = Arc::new(Schema::new(fields()));
        let properties = properties(metadata).into_builder().set_max_row_group_row_count(Some(GROUP)).build();
        Ok(PacketTable {
            writer: ArrowWriter::try_new(BufWriter::new(file), Arc::clone(&schema), Some(properties))?,
            schema,
            builders: Builders::default(),
            rows: 0,
        })
    }

    /// Appends a row.
    pub fn push(&mut self, row: &ResultRow) -> Result<()> {
        self.builders.push(row);
        self.rows += 1;
        if self.rows == BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.rows = 0;
        self.writer.write(&RecordBatch::try_new(Arc::clone(&self.schema), self.builders.finish())?)
    }

    /// Writes the remaining rows and the footer.
    pub fn close(mut self) -> Result<()> {
        self.flush()?;
        self.writer.close().map(|_| ())
    }
}
