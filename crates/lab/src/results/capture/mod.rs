//! Recorded packets as a capture for Wireshark. Frames are synthetic: Ethernet addresses from the ends of the link, IPv4 from the
//! ends of the flow, TCP from segments and ACKs; a scheme's own messages are UDP.

mod frame;

use crate::error::Error;
use crate::results::pcapng::Pcapng;
use crate::results::read::read_manifest;
use crate::results::read::{flag, text, whole};
use crate::results::store::packets_path;
use arrow_array::RecordBatch;
use frame::{Frame, L4};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use subak_core::InputError;
use subak_core::document::unknown_word;

/// Counts of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Captured {
    /// Number of the trial.
    pub trial: usize,
    /// Number of frames in the capture.
    pub frames: u64,
    /// Number of capture interfaces: one for each link that carried a packet, and one for each link that dropped a
    /// packet.
    pub interfaces: u64,
}

/// The network, from the metadata of the packet table.
#[derive(Deserialize)]
struct Network {
    nodes: Vec<String>,
    links: Vec<CaptureLink>,
    mss_bytes: u32,
}

#[derive(Deserialize)]
struct CaptureLink {
    id: String,
    from: Option<String>,
    to: Option<String>,
    bps: f64,
}

/// Writes the packets recorded in `trial` of the run in `dir` as pcapng: one frame when a packet leaves the queue of a
/// link, or is dropped there. `trial` may be omitted if only one trial recorded packets. If `links` is empty, all links
/// are captured.
pub fn capture(dir: &Path, trial: Option<usize>, links: &[String], out: impl Write) -> Result<Captured, Error> {
    let (trial, path) = table_of(dir, trial)?;
    let broken = |e: &dyn std::fmt::Display| Error::file(&path, io::Error::other(e.to_string()));
    let file = File::open(&path).map_err(|e| Error::file(&path, e))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| broken(&e))?;
    let pairs = builder.metadata().file_metadata().key_value_metadata();
    let told = pairs.and_then(|p| p.iter().find(|p| p.key == "subak.network")).and_then(|p| p.value.as_deref());
    let network: Network = serde_json::from_str(told.unwrap_or_default()).map_err(|e| broken(&e))?;
    let known: Vec<&str> = network.links.iter().map(|l| l.id.as_str()).collect();
    if let Some(name) = links.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(unknown_word(name, "link", &known).below("link").into());
    }
    let mut capture = Capture {
        file: Pcapng::new(out).map_err(written)?,
        nodes: network.nodes.iter().enumerate().map(|(n, name)| (name.as_str(), n as u32)).collect(),
        links: network.links.iter().map(|l| (l.id.as_str(), l)).collect(),
        only: links,
        mss_bytes: network.mss_bytes,
        interfaces: HashMap::new(),
        ends: BTreeMap::new(),
        frames: 0,
    };
    for batch in builder.with_batch_size(1 << 13).build().map_err(|e| broken(&e))? {
        capture.add(&batch.map_err(|e| broken(&e))?).map_err(written)?;
    }
    let captured = Captured { trial, frames: capture.frames, interfaces: capture.interfaces.len() as u64 };
    capture.file.finish().map_err(written)?;
    Ok(captured)
}

fn written(e: io::Error) -> Error {
    Error::file(Path::new("output"), e)
}

/// Trials that recorded packets, each with its packet table's path.
pub(crate) fn trials_with_packets(dir: &Path) -> Result<Vec<(usize, PathBuf)>, Error> {
    let manifest = read_manifest(dir)?;
    let trials = manifest.get("trials").and_then(|c| c.as_array()).map_or(0, Vec::len);
    let there: Vec<_> =
        (0..trials).map(|trial| (trial, packets_path(dir, trial))).filter(|(_, path)| path.exists()).collect();
    if there.is_empty() {
        let hint = "ask for them in the spec, [measure] packets = true, and run it into another folder";
        let fault = InputError::new("", "the run recorded no packets", hint);
        return Err(fault.in_file(dir.display().to_string()).into());
    }
    Ok(there)
}

/// Number and packet table of `trial`; by default, of the only trial that recorded packets.
fn table_of(dir: &Path, trial: Option<usize>) -> Result<(usize, PathBuf), Error> {
    let there = trials_with_packets(dir)?;
    let listed = there.iter().take(20).map(|(trial, _)| trial.to_string()).collect::<Vec<_>>().join(", ");
    let (what, hint) = match trial {
        None if there.len() == 1 => return Ok(there[0].clone()),
        None => ("several trials have packets".to_string(), format!("choose one with --trial: {listed}")),
        Some(trial) => match there.iter().find(|(c, _)| *c == trial) {
            Some(found) => return Ok(found.clone()),
            None => (format!("trial {trial} has no packets"), format!("choose one of: {listed}")),
        },
    };
    Err(InputError::new("trial", what, hint).in_file(dir.display().to_string()).into())
}

struct Capture<'a, W: Write> {
    file: Pcapng<W>,
    nodes: HashMap<&'a str, u32>,
    links: HashMap<&'a str, &'a CaptureLink>,
    only: &'a [String],
    mss_bytes: u32,
    /// Number of the capture interface of each link id. `true`: the interface of packets that the link dropped.
    interfaces: HashMap<(String, bool), u32>,
    /// Number and payload, bytes, of each subflow's last segment if it is shorter than the MSS. Keys: flow, subflow.
    ends: BTreeMap<(u64, u64), (u64, u64)>,
    frames: u64,
}

impl<W: Write> Capture<'_, W> {
    fn add(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let number = |name: &'static str| whole(batch, name);
        let (time, flow, subflow, segment) = (number("time_ns"), number("flow"), number("subflow"), number("segment"));
        let (bytes, payload, hop) = (number("bytes"), number("payload_bytes"), number("hop"));
        let (run_start, cumulative) = (number("run_start"), number("cumulative"));
        let (earlier_start, earlier_end) = (number("earlier_start"), number("earlier_end"));
        let (event, link, src, dst) =
            (text(batch, "event"), text(batch, "link"), text(batch, "src"), text(batch, "dst"));
        let (packet, way, class) = (text(batch, "packet"), text(batch, "way"), text(batch, "class"));
        let (header, ecn) = (text(batch, "header"), flag(batch, "ecn"));
        for i in 0..batch.num_rows() {
            let key = (flow(i).unwrap_or(0), subflow(i).unwrap_or(0));
            let (segment, payload) = (segment(i).unwrap_or(0), payload(i).unwrap_or(0));
            if packet(i) == Some("data") && payload < u64::from(self.mss_bytes) {
                self.ends.insert(key, (segment, payload));
            }
            let dropped = event(i) == Some("drop");
            let Some(link) = link(i).filter(|_| dropped || event(i) == Some("dequeue")) else { continue };
            if !self.only.is_empty() && self.only.iter().all(|l| l != link) {
                continue;
            }
            let l4 = match packet(i) {
                Some("data") => L4::Data { seq: self.offset(key, segment), payload: payload as u32 },
                Some("ack") => {
                    let (from, next) = (run_start(i).unwrap_or(segment), cumulative(i).unwrap_or(0));
                    let earlier = (earlier_start(i).unwrap_or(0), earlier_end(i).unwrap_or(0));
                    let block =
                        |(from, end): (u64, u64)| (self.offset(key, from.max(next)), self.offset(key, end.max(next)));
                    L4::Ack { ack: self.offset(key, next), blocks: [block((from, segment + 1)), block(earlier)] }
                }
                _ => L4::Message,
            };
            let number = |name: Option<&str>| name.and_then(|n| self.nodes.get(n).copied());
            let (from, to) = self.links.get(link).map_or((None, None), |l| (l.from.as_deref(), l.to.as_deref()));
            let frame = Frame {
                hop_ends: [number(from), number(to)],
                flow_ends: [number(src(i)), number(dst(i))],
                flow: flow(i),
                subflow: key.1,
                way: way(i).unwrap_or("out"),
                node: segment as u32,
                class: class(i).unwrap_or("low"),
                ecn: ecn(i) == Some(true),
                hops: hop(i).unwrap_or(0),
                bytes: bytes(i).unwrap_or(0) as u32,
                l4,
            };
            let interface = self.interface(link, dropped)?;
            let (head, length) = frame.bytes();
            self.file.frame(interface, time(i).unwrap_or(0), &head, length, header(i))?;
            self.frames += 1;
        }
        Ok(())
    }

    /// Payload bytes of a subflow before `segment`. Every segment but the last contains one MSS.
    fn offset(&self, key: (u64, u64), segment: u64) -> u32 {
        let mss = u64::from(self.mss_bytes);
        let bytes = match self.ends.get(&key) {
            Some(&(last, payload)) if segment > last => last * mss + payload,
            _ => segment * mss,
        };
        bytes as u32
    }

    fn interface(&mut self, link: &str, dropped: bool) -> io::Result<u32> {
        if let Some(&known) = self.interfaces.get(&(link.to_string(), dropped)) {
            return Ok(known);
        }
        let name = if dropped { format!("{link} (dropped)") } else { link.to_string() };
        let speed_bps = self.links.get(link).map_or(0.0, |l| l.bps) as u64;
        let number = self.file.interface(&name, speed_bps)?;
        self.interfaces.insert((link.to_string(), dropped), number);
        Ok(number)
    }
}
