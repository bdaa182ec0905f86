//! Python objects that the hooks of a Python scheme receive.

use super::facts::{class, class_name};
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::sync::Arc;
use subak_core::rng::Stream;
use subak_core::scheme::{Effect, FlowInfo, Packet, PacketKind, PathInfo, Port, To, Visit};
use subak_core::{Ns, SubflowId};
use subak_schemes::foreign::{self, Foreign, NUMBERS, Notes, Numbers, Who};

/// Maximum number of notes of one call of a hook.
const MOST_NOTES: usize = 10_000;

/// Interface of a state machine to the simulator: the current time, and methods that request effects.
#[pyclass(module = "subak", name = "Io")]
pub struct IoView {
    /// Current time, ns.
    #[pyo3(get)]
    pub now_ns: Ns,
    pub asks: Vec<Effect<Foreign>>,
    pub who: Who,
    pub subflows: usize,
    pub has_timer: bool,
    pub seed: u64,
    pub stream: Option<Stream>,
    pub notes: Notes,
    /// Number of notes of the hook that runs; `None` if none with a time runs.
    pub noted: Option<usize>,
}

fn refused((what, hint): (String, &'static str)) -> PyErr {
    PyValueError::new_err(format!("{what}; {hint}"))
}

fn class_of(word: &str) -> PyResult<subak_core::scheme::Class> {
    class(word).ok_or_else(|| PyValueError::new_err(format!("class {word:?}; give \"control\", \"high\" or \"low\"")))
}

/// Checks the time of a timer and rounds it down to whole ns.
fn whole_ns(at_ns: f64, now_ns: Ns) -> PyResult<Ns> {
    if at_ns.is_nan() || at_ns < now_ns as f64 {
        let what = format!("the timer is at {at_ns} ns, and now is {now_ns} ns; give a time from now on");
        return Err(PyValueError::new_err(what));
    }
    Ok(at_ns as Ns)
}

#[pymethods]
impl IoView {
    /// Sets a subflow's pacing rate ``rate`` (bit/s on the wire) and congestion window ``window`` (payload bytes);
    /// ``None``: no limit. Arguments have names, since a window in place of a rate would slow a flow down silently.
    #[pyo3(signature = (*, rate=None, window=None, subflow=0))]
    fn pace(&mut self, rate: Option<f64>, window: Option<f64>, subflow: i64) -> PyResult<()> {
        if !matches!(self.who, Who::Flow(_)) {
            return Err(PyValueError::new_err("only a source sets a pace"));
        }
        let subflow = foreign::subflow(subflow, self.subflows).map_err(refused)?;
        let (rate_bps, window_bytes) = foreign::pace(rate, window).map_err(refused)?;
        self.asks.push(Effect::Pace { subflow, rate_bps, window_bytes });
        Ok(())
    }

    /// Requests a call of ``on_timer(number)`` at ``at_ns``, now or later.
    fn timer(&mut self, number: u32, at_ns: f64) -> PyResult<()> {
        let at_ns = whole_ns(at_ns, self.now_ns)?;
        if !self.has_timer {
            return Err(PyValueError::new_err("a timer without a hook; define on_timer"));
        }
        self.asks.push(Effect::Timer { timer: number, at_ns });
        Ok(())
    }

    /// Sends a message of up to eight numbers along a subflow: from a source to its sink, or from a sink to its
    /// source.
    #[pyo3(signature = (message, bytes=64, subflow=0, class_="control"))]
    fn send(&mut self, message: &Bound<'_, PyAny>, bytes: u32, subflow: i64, class_: &str) -> PyResult<()> {
        let to = match self.who {
            Who::Flow(_) => To::Sink,
            Who::Sink(_) => To::Source,
            Who::Link(_) => return Err(PyValueError::new_err("a hop sends no message; it changes those that pass")),
        };
        let subflow = foreign::subflow(subflow, self.subflows).map_err(refused)?;
        if !(1..=65_535).contains(&bytes) {
            return Err(PyValueError::new_err(format!(
                "a message has {bytes} bytes; give 1 to 65535 bytes on the wire"
            )));
        }
        let (message, class) = (numbers_of(message)?, class_of(class_)?);
        self.asks.push(Effect::Ctl { to, subflow, message, class, bytes });
        Ok(())
    }

    /// Pauses (``on`` is true) or resumes the packets of a class that are queued for this link.
    fn pause(&mut self, class_: &str, on: bool) -> PyResult<()> {
        let Who::Link(link) = self.who else {
            return Err(PyValueError::new_err("only a hop pauses a class, before its own link"));
        };
        self.asks.push(Effect::Pause { link, class: class_of(class_)?, on });
        Ok(())
    }

    /// Records values, each by its name, as rows of kind ``note`` in the results: ``io.note(alpha=0.5)``.
    #[pyo3(signature = (*, subflow=None, **values))]
    fn note(&mut self, subflow: Option<i64>, values: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let Some(noted) = &mut self.noted else {
            let what = "a note outside of this machine's hooks, or in on_capacity; note it in another hook";
            return Err(PyValueError::new_err(what));
        };
        let Some(values) = values else {
            return Err(PyTypeError::new_err("a note without a value; name one, as in io.note(alpha=0.5)"));
        };
        *noted += values.len();
        if *noted > MOST_NOTES {
            return Err(PyValueError::new_err(format!("more than {MOST_NOTES} notes in one hook; note less often")));
        }
        let subflow = match (self.who, subflow) {
            (_, None) => None,
            (Who::Link(_), Some(_)) => return Err(PyValueError::new_err("a hop has no subflows; leave subflow away")),
            (_, Some(number)) => Some(foreign::subflow(number, self.subflows).map_err(refused)?),
        };
        let named = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let name = self.notes.name(name.cast::<PyString>()?.to_str()?).map_err(refused)?;
            let value = value_of(&name, &value)?;
            PyResult::Ok((name, value))
        };
        let values = values.iter().map(named).collect::<PyResult<Vec<_>>>()?;
        self.notes.add(self.who, subflow, self.now_ns, values);
        Ok(())
    }

    /// A uniform random number in [0, 1), from a stream of this machine that depends on the seed alone.
    fn random(&mut self) -> f64 {
        let seed = self.seed;
        self.stream.get_or_insert_with(|| Stream::new(seed, "outside")).unit()
    }
}

/// The value of the note called `name`: a finite number.
fn value_of(name: &Arc<str>, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    match value.extract::<f64>() {
        Ok(number) => foreign::note(name, number).map_err(refused),
        Err(e) if e.is_instance_of::<PyTypeError>(value.py()) || e.is_instance_of::<PyOverflowError>(value.py()) => {
            let given = value
                .repr()
                .map_or_else(|_| "an object".to_string(), |text| text.to_string_lossy().chars().take(60).collect());
            Err(PyTypeError::new_err(format!("the note {name} is {given}; give a finite number")))
        }
        Err(e) => Err(e),
    }
}

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
fn fields_of(view: &Bound<'_, PyAny>) -> PyResult<String> {
    let mut shown = Vec::new();
    for name in view.dir()? {
        let name: String = name.extract()?;
        if !name.starts_with('_') {
            shown.push(format!("{name}={}", view.getattr(name.as_str())?.repr()?));
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
    pub fn of(packet: &Packet<Foreign>, at: At) -> Self {
        let is_data = packet.kind == PacketKind::Data;
        PacketView {
            numbers: packet.data,
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
    pub fn write(&self, packet: &mut Packet<Foreign>) {
        packet.data = self.numbers;
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
        if self.at == At::Sink {
            return Err(PyValueError::new_err("a receiver marks no packet; write a number into the ACK, packet[0]"));
        }
        self.ecn = marked;
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
        set(&mut self.numbers, place, number)
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
    #[pyo3(name = "_numbers")]
    numbers: [f64; NUMBERS],
}

impl AckView {
    pub fn of(ack: &subak_core::scheme::Ack<Numbers>) -> Self {
        AckView {
            subflow: ack.subflow.0,
            acked_bytes: ack.acked_bytes,
            rtt_ns: ack.rtt_ns,
            ecn: ack.ecn,
            in_flight_bytes: ack.in_flight_bytes,
            remaining_bytes: finite(ack.remaining_bytes),
            segment: ack.segment,
            next_segment: ack.next_segment,
            numbers: ack.data.0,
        }
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
        PathView { hops, line_rate_bps, min_capacity_bps, base_rtt_ns, links: links.iter().map(|l| l.0).collect() }
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
