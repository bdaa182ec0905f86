//! Python objects that the hooks of a Python scheme receive.

use super::facts::{class_name, class_of};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use subak_core::scheme::{FlowInfo, Packet, PacketKind, PathInfo, Port, Visit};
use subak_core::{Ns, SubflowId};
use subak_schemes::foreign::{Foreign, Header, NUMBERS, Numbers};
use subak_schemes::telemetry::{IntHeader, Record, identity};

/// Converts a [`Message`] or an iterable of at most eight numbers; missing numbers are 0.
pub fn numbers_of(given: &Bound<'_, PyAny>) -> PyResult<Numbers> {
    if let Ok(message) = given.cast::<Message>() {
        return Ok(message.borrow().numbers);
    }
    let mut numbers = Numbers::default();
    let wrong = |found: &Bound<'_, PyAny>| {
        let what = format!("the message has {}; give up to {NUMBERS} numbers, such as [1.5, 0]", found.repr()?);
        PyResult::Ok(PyTypeError::new_err(what))
    };
    let Ok(each) = given.try_iter() else { return Err(wrong(given)?) };
    for (place, number) in each.enumerate() {
        let number = number?;
        let Ok(number) = number.extract::<f64>() else { return Err(wrong(&number)?) };
        *numbers.0.get_mut(place).ok_or_else(|| PyValueError::new_err(too_many()))? = number;
    }
    Ok(numbers)
}

/// The fields of a view in one line, for `print`.
pub fn fields_of(view: &Bound<'_, PyAny>) -> PyResult<String> {
    let mut shown = Vec::new();
    for name in view.dir()? {
        let name: String = name.extract()?;
        let value = view.getattr(name.as_str())?;
        if !name.starts_with('_') && !value.is_callable() {
            shown.push(format!("{name}={}", value.repr()?));
        }
    }
    Ok(format!("{}({})", view.get_type().name()?, shown.join(", ")))
}

fn too_many() -> String {
    format!("there are {NUMBERS} numbers; count them from 0 to {}", NUMBERS - 1)
}

fn at(numbers: &Numbers, place: usize) -> PyResult<f64> {
    numbers.0.get(place).copied().ok_or_else(|| PyIndexError::new_err(too_many()))
}

fn set(numbers: &mut Numbers, place: usize, number: f64) -> PyResult<()> {
    *numbers.0.get_mut(place).ok_or_else(|| PyIndexError::new_err(too_many()))? = number;
    Ok(())
}

/// The numbers of a message.
#[pyclass(module = "subak", name = "Message")]
pub struct Message {
    pub numbers: Numbers,
}

#[pymethods]
impl Message {
    fn __repr__(&self) -> String {
        format!("Message({:?})", self.numbers.0)
    }
    fn __len__(&self) -> usize {
        NUMBERS
    }
    fn __getitem__(&self, place: usize) -> PyResult<f64> {
        at(&self.numbers, place)
    }
    fn __setitem__(&mut self, place: usize, number: f64) -> PyResult<()> {
        set(&mut self.numbers, place, number)
    }
}

/// The kind of machine at which a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    Source,
    Hop,
    Sink,
    Node,
}

/// A packet at a machine.
#[pyclass(module = "subak", name = "Packet")]
pub struct PacketView {
    pub numbers: Numbers,
    /// Whether the packet has an ECN mark.
    #[pyo3(get)]
    ecn: bool,
    class: subak_core::scheme::Class,
    at: At,
    #[pyo3(get)]
    flow: u32,
    #[pyo3(get)]
    subflow: u8,
    #[pyo3(get)]
    is_data: bool,
    #[pyo3(get)]
    bytes: u32,
    #[pyo3(get)]
    payload_bytes: u32,
    #[pyo3(get)]
    segment: u32,
    #[pyo3(get)]
    sent_ns: Ns,
    #[pyo3(get)]
    waited_ns: Ns,
    #[pyo3(get)]
    hop: u16,
}

impl PacketView {
    /// A copy of the packet's fields.
    pub fn of<D: Header>(packet: &Packet<Foreign<D>>, at: At) -> Self {
        let is_data = packet.kind == PacketKind::Data;
        PacketView {
            numbers: packet.data.numbers(),
            ecn: packet.ecn,
            class: packet.class,
            at,
            flow: packet.flow.0,
            subflow: packet.subflow.0,
            is_data,
            bytes: packet.bytes,
            payload_bytes: if is_data { packet.payload_bytes() } else { 0 },
            segment: packet.segment(),
            sent_ns: packet.sent_ns,
            waited_ns: packet.waited_ns,
            hop: packet.hop,
        }
    }

    /// Copies the fields that a hook may change back to the packet.
    pub fn write<D: Header>(&self, packet: &mut Packet<Foreign<D>>) {
        packet.data.set(self.numbers);
        packet.ecn = self.ecn;
        packet.class = self.class;
    }
}

#[pymethods]
impl PacketView {
    fn __repr__(view: &Bound<'_, Self>) -> PyResult<String> {
        fields_of(view.as_any())
    }
    #[setter]
    fn set_ecn(&mut self, marked: bool) -> PyResult<()> {
        match self.at {
            At::Sink => {
                let what = "a receiver marks no packet; write a number into the ACK, packet[0]";
                return Err(PyValueError::new_err(what));
            }
            At::Node => return Err(PyValueError::new_err("a node only reads packets; mark them at a hop")),
            At::Source | At::Hop => self.ecn = marked,
        }
        Ok(())
    }
    #[getter]
    fn class_(&self) -> &'static str {
        class_name(self.class)
    }
    #[setter]
    fn set_class_(&mut self, word: &str) -> PyResult<()> {
        if self.at != At::Source {
            return Err(PyValueError::new_err("the class of a packet is set in stamp alone"));
        }
        self.class = class_of(word)?;
        Ok(())
    }
    fn __len__(&self) -> usize {
        NUMBERS
    }
    fn __getitem__(&self, place: usize) -> PyResult<f64> {
        at(&self.numbers, place)
    }
    fn __setitem__(&mut self, place: usize, number: f64) -> PyResult<()> {
        if self.at == At::Node {
            return Err(PyValueError::new_err("a node only reads packets; write numbers at a hop"));
        }
        set(&mut self.numbers, place, number)
    }
}

/// Telemetry of a link: its state as a packet left it.
#[pyclass(frozen, module = "subak", name = "LinkRecord")]
pub struct LinkRecordView(Record);

#[pymethods]
impl LinkRecordView {
    fn __repr__(view: &Bound<'_, Self>) -> PyResult<String> {
        fields_of(view.as_any())
    }
    /// Time of the packet's departure, ns; wraps around at 2^32.
    #[getter]
    fn at_ns(&self) -> u32 {
        self.0.at_ns
    }
    /// Bytes that the link has sent, this packet included; wraps around at 2^32.
    #[getter]
    fn sent_bytes(&self) -> u32 {
        self.0.sent_bytes
    }
    /// Bytes that waited behind the packet.
    #[getter]
    fn queued_bytes(&self) -> u32 {
        self.0.queued_bytes
    }
    /// Capacity of the link, bytes per ns.
    #[getter]
    fn bytes_per_ns(&self) -> f32 {
        self.0.bytes_per_ns
    }
    /// Time (ns) and bytes that the link sent since its record ``before``. ``None`` if the two cannot be compared: they
    /// are of one time, or the link started again in between.
    fn since(&self, before: &LinkRecordView) -> Option<(f64, f64)> {
        self.0.since(&before.0)
    }
}

/// An ACK that arrived at its source.
#[pyclass(frozen, get_all, module = "subak", name = "Ack")]
pub struct AckView {
    subflow: u8,
    acked_bytes: u64,
    rtt_ns: Ns,
    ecn: bool,
    in_flight_bytes: u64,
    remaining_bytes: Option<u64>,
    segment: u32,
    next_segment: u32,
    path_id: u32,
    telemetry: Option<Py<PyTuple>>,
    #[pyo3(name = "_numbers")]
    numbers: [f64; NUMBERS],
}

impl AckView {
    pub fn of<D: Header>(py: Python<'_>, ack: &subak_core::scheme::Ack<D>) -> PyResult<Self> {
        let telemetry = ack.data.telemetry();
        let records = |header: &IntHeader| {
            let record = |record: &Record| Py::new(py, LinkRecordView(*record));
            let records = header.links[..usize::from(header.hops)].iter().map(record).collect::<PyResult<Vec<_>>>()?;
            PyResult::Ok(PyTuple::new(py, records)?.unbind())
        };
        Ok(AckView {
            subflow: ack.subflow.0,
            acked_bytes: ack.acked_bytes,
            rtt_ns: ack.rtt_ns,
            ecn: ack.ecn,
            in_flight_bytes: ack.in_flight_bytes,
            remaining_bytes: finite(ack.remaining_bytes),
            segment: ack.segment,
            next_segment: ack.next_segment,
            path_id: telemetry.map_or(0, |header| header.path),
            telemetry: telemetry.map(records).transpose()?,
            numbers: ack.data.numbers().0,
        })
    }
}

#[pymethods]
impl AckView {
    fn __repr__(view: &Bound<'_, Self>) -> PyResult<String> {
        fields_of(view.as_any())
    }
    /// The data packet's header of eight numbers, as the sink echoed it in the ACK.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.numbers)
    }
    fn __len__(&self) -> usize {
        NUMBERS
    }
    fn __getitem__(&self, place: usize) -> PyResult<f64> {
        self.numbers.get(place).copied().ok_or_else(|| PyIndexError::new_err(too_many()))
    }
}

/// Remaining bytes; `None` for a flow of unlimited size, which has `u64::MAX`.
pub fn finite(bytes: u64) -> Option<u64> {
    (bytes != u64::MAX).then_some(bytes)
}

/// Segments that were marked lost.
#[pyclass(frozen, get_all, module = "subak", name = "Loss")]
pub struct LossView {
    subflow: u8,
    kind: &'static str,
    segment: u32,
    next_segment: u32,
    in_flight_bytes: u64,
}

#[pymethods]
impl LossView {
    fn __repr__(view: &Bound<'_, Self>) -> PyResult<String> {
        fields_of(view.as_any())
    }
}

impl LossView {
    pub fn of(loss: &subak_core::scheme::Loss) -> Self {
        use subak_core::scheme::LossKind;
        LossView {
            subflow: loss.subflow.0,
            kind: match loss.kind {
                LossKind::Reordered => "reordered",
                LossKind::Timeout => "timeout",
                LossKind::OutOfOrder => "out-of-order",
            },
            segment: loss.segment,
            next_segment: loss.next_segment,
            in_flight_bytes: loss.in_flight_bytes,
        }
    }
}

/// A path of a subflow.
#[pyclass(frozen, get_all, from_py_object, module = "subak", name = "Path")]
#[derive(Clone)]
pub struct PathView {
    hops: u16,
    line_rate_bps: f64,
    min_capacity_bps: f64,
    base_rtt_ns: Ns,
    links: Vec<u32>,
    id: u32,
}

#[pymethods]
impl PathView {
    fn __repr__(view: &Bound<'_, Self>) -> PyResult<String> {
        fields_of(view.as_any())
    }
}

impl PathView {
    pub fn of(path: &PathInfo, links: &[subak_core::LinkId]) -> Self {
        let PathInfo { hops, line_rate_bps, min_capacity_bps, base_rtt_ns } = *path;
        let (id, links) = (identity(links), links.iter().map(|l| l.0).collect());
        PathView { hops, line_rate_bps, min_capacity_bps, base_rtt_ns, links, id }
    }
}

/// A flow as its source and sink see it. With several paths, `hops`, `line_rate_bps`, `min_capacity_bps`,
/// `base_rtt_ns` and `links` are those of the first.
#[pyclass(frozen, get_all, module = "subak", name = "Flow")]
pub struct FlowInfoView {
    flow: u32,
    weight: f64,
    size_bytes: Option<u64>,
    demand_bps: f64,
    mss_bytes: u32,
    mtu_bytes: u32,
    subflows: usize,
    rtt_ns: Ns,
    src: Option<u32>,
    dst: Option<u32>,
    seed: u64,
    hops: u16,
    line_rate_bps: f64,
    min_capacity_bps: f64,
    base_rtt_ns: Ns,
    links: Vec<u32>,
    paths: Vec<PathView>,
}

#[pymethods]
impl FlowInfoView {
    fn __repr__(view: &Bound<'_, Self>) -> PyResult<String> {
        fields_of(view.as_any())
    }
}

impl FlowInfoView {
    pub fn of(flow: &FlowInfo) -> Self {
        let path = |(k, path): (SubflowId, &PathInfo)| PathView::of(path, flow.links.get(k).map_or(&[], Vec::as_slice));
        let paths: Vec<PathView> = flow.paths.iter_enumerated().map(path).collect();
        let first = paths.first().cloned().unwrap_or(PathView {
            hops: 0,
            line_rate_bps: 0.0,
            min_capacity_bps: 0.0,
            base_rtt_ns: 0,
            links: Vec::new(),
            id: 0,
        });
        FlowInfoView {
            flow: flow.flow.0,
            weight: flow.weight,
            size_bytes: flow.size_bytes,
            demand_bps: flow.demand_bps,
            mss_bytes: flow.mss_bytes,
            mtu_bytes: flow.mtu_bytes,
            subflows: paths.len(),
            rtt_ns: flow.rtt_ns,
            src: flow.ends.map(|ends| ends.0.0),
            dst: flow.ends.map(|ends| ends.1.0),
            seed: flow.seed,
            hops: first.hops,
            line_rate_bps: first.line_rate_bps,
            min_capacity_bps: first.min_capacity_bps,
            base_rtt_ns: first.base_rtt_ns,
            links: first.links,
            paths,
        }
    }
}

/// An output port as its hop sees it.
#[pyclass(frozen, get_all, module = "subak", name = "Port")]
pub struct PortView {
    link: u32,
    from_: Option<u32>,
    to: Option<u32>,
    capacity_bps: f64,
    delay_ns: Ns,
    buffer_bytes: u64,
    queued_bytes: u64,
    queued_packets: u32,
    mtu_bytes: u32,
    rtt_ns: Ns,
    seed: u64,
}

#[pymethods]
impl PortView {
    fn __repr__(view: &Bound<'_, Self>) -> PyResult<String> {
        fields_of(view.as_any())
    }
}

impl PortView {
    pub fn of(port: &Port) -> Self {
        PortView {
            link: port.link.0,
            from_: port.from.map(|n| n.0),
            to: port.to.map(|n| n.0),
            capacity_bps: port.capacity_bps,
            delay_ns: port.delay_ns,
            buffer_bytes: port.buffer_bytes,
            queued_bytes: port.queued_bytes,
            queued_packets: port.queued_packets,
            mtu_bytes: port.mtu_bytes,
            rtt_ns: port.rtt_ns,
            seed: port.seed,
        }
    }
}

/// Position of a control message on its path.
#[pyclass(frozen, get_all, module = "subak", name = "Visit")]
pub struct VisitView {
    flow: u32,
    subflow: u8,
    hop: u16,
    forward: bool,
}

#[pymethods]
impl VisitView {
    fn __repr__(view: &Bound<'_, Self>) -> PyResult<String> {
        fields_of(view.as_any())
    }
}

impl VisitView {
    pub fn of(visit: Visit) -> Self {
        VisitView { flow: visit.flow.0, subflow: visit.subflow.0, hop: visit.hop, forward: visit.forward }
    }
}
