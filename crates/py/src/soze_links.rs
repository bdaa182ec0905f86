//! Links of Soze alone, packet by packet: the reference for a switch's P4 program.

use crate::errors::OrInputError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Map, Value};
use subak_core::scheme::{Io, PacketKind, Params, Port};
use subak_core::{FlowId, IdVec, LinkId, Ns, SubflowId};
use subak_schemes::over::{Passing, Transport, TransportHop};
use subak_schemes::registry;
use subak_schemes::reno::Reno;
use subak_schemes::soze::{DelayUnit, Filter, Leaving, MaxDelay, Signal, SozeArithmetic};
use subak_schemes::transports::soze::Soze;

/// Bytes of an event: seven 64-bit numbers.
const EVENT_BYTES: usize = 56;

struct Link {
    hop: <Soze as Transport>::Hop,
    /// A filter of the same packets, whose result is in ns.
    filter: Filter,
    port: Port,
}

/// Links of Soze that stamp packets with their filtered queueing delays, in integers.
#[pyclass(module = "subak._subak")]
pub struct SozeLinks {
    io: Io<Reno>,
    links: IdVec<LinkId, Link>,
    /// Exponent of the header's unit: 2^unit ns.
    #[pyo3(get)]
    unit: u32,
}

#[pymethods]
impl SozeLinks {
    /// Creates links of `capacities_bps` whose filters have a time constant of `filter_ns` (0: none), for a k + p of
    /// `full_ns`.
    #[new]
    fn new(py: Python<'_>, capacities_bps: Vec<f64>, filter_ns: f64, full_ns: f64) -> PyResult<Self> {
        let times =
            [("filter", filter_ns), ("k", 0.0), ("p", full_ns)].map(|(k, ns)| (k.to_owned(), (ns / 1e9).into()));
        let words = [("signal", "wait"), ("arithmetic", "fixed")].map(|(k, word)| (k.to_owned(), word.into()));
        let given: Map<String, Value> = times.into_iter().chain(words).collect();
        let info = registry::find("soze").or_input_error(py)?;
        let soze = Soze::new(&Params::resolve(info, &given).or_input_error(py)?).or_input_error(py)?;
        let link = |(k, &capacity_bps): (usize, &f64)| {
            let port = Port::example(LinkId::from_index(k), capacity_bps);
            let filter = Filter::new(Signal::Wait, filter_ns, full_ns, capacity_bps, SozeArithmetic::Fixed);
            Link { hop: soze.hop(&port), filter, port }
        };
        let links = capacities_bps.iter().enumerate().map(link).collect();
        Ok(SozeLinks { io: Io::default(), links, unit: DelayUnit::of(full_ns).shift() })
    }

    /// Runs departures of packets, seven 64-bit numbers each: link, time in ns, bytes, queueing delay in ns, bytes
    /// queued behind it, 1 for data and 0 for an ACK, and the header as it came. Returns two 32-bit numbers for each:
    /// the filtered delay in ns, and the header as it leaves.
    fn run<'py>(&mut self, py: Python<'py>, events: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let mut out = Vec::with_capacity(events.len() / EVENT_BYTES * 8);
        for event in events.chunks_exact(EVENT_BYTES) {
            let mut words = [0; 7];
            for (word, bytes) in words.iter_mut().zip(event.chunks_exact(8)) {
                *word = bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
            }
            let values = self.step(words).ok_or_else(|| PyValueError::new_err("an unknown link"))?;
            out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        }
        Ok(PyBytes::new(py, &out))
    }
}

impl SozeLinks {
    fn step(&mut self, [link, now_ns, bytes, wait_ns, queued_bytes, data, header]: [u64; 7]) -> Option<[u32; 2]> {
        let Link { hop, filter, port } = self.links.get_mut(LinkId(u32::try_from(link).ok()?))?;
        let (bytes, wait_ns): (u32, Ns) = (bytes as u32, wait_ns);
        (self.io.now_ns, port.queued_bytes) = (now_ns, queued_bytes);
        let filtered_ns = filter.tell_ns(now_ns, Leaving { bytes, wait_ns, queued_bytes })?;
        let mut header = MaxDelay(header as u16);
        let packet = Passing {
            flow: FlowId(0),
            subflow: SubflowId(0),
            kind: if data == 1 { PacketKind::Data } else { PacketKind::Ack },
            bytes,
            wait_ns,
            ecn: &mut false,
            header: &mut header,
        };
        hop.on_dequeue(&mut self.io, packet, port);
        Some([filtered_ns, u32::from(header.0)])
    }
}
