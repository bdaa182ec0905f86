//! State machines of a Python scheme. Each calls the hooks of an object that the user's class created.

use super::io::{IoView, There};
use super::places::{NetworkView, NodeView, PlaceView};
use super::views::{
    AckView, At, FlowInfoView, LossView, Message, PacketView, PathView, PortView, VisitView, finite, numbers_of,
};
use super::watch::watched;
use super::{dict_of, facts};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use subak_core::backend::{Capacities, LinkChange};
use subak_core::scheme::{
    self, Controller, ControllerPlace, Effect, FlowInfo, Hop, Info, NodeInfo, NodeMachine, Packet, PacketKind, Params,
    PathInfo, Port, Reply, Sink, Source, Visit,
};
use subak_core::{FlowId, LinkId, Network, NodeId, Ns, SubflowId, Utility};
use subak_schemes::foreign::{BuiltInHop, Facts, Faults, Foreign, Header, Hook, Made, Makes, Notes, Numbers, Who};

type CoreIo<D> = scheme::Io<Foreign<D>>;

/// A Python scheme with its parameters.
pub struct PythonScheme {
    text: Arc<Py<PyAny>>,
    scheme: Py<PyAny>,
    facts: Facts,
    faults: Faults,
    notes: Notes,
    has_hop: bool,
    has_sink: bool,
    has_node: bool,
    /// Number of nodes of the network, once the controller or a node is made.
    nodes: AtomicU32,
}

impl PythonScheme {
    /// Creates the scheme from its source text. The new scheme shares no state with earlier ones.
    pub fn new(py: Python<'_>, text: Arc<Py<PyAny>>, info: &Info, params: &Params) -> PyResult<Self> {
        let loading = py.import("subak.outside.loading")?;
        let (scheme, said): (Bound<'_, PyAny>, Bound<'_, PyDict>) =
            watched(|| loading.call_method1("make", (text.bind(py), dict_of(py, info, params)?)))?.extract()?;
        let has = |kind: &str| loading.call_method1("has", (kind, &scheme))?.extract::<bool>();
        Ok(PythonScheme {
            facts: facts::facts(&said)?,
            faults: Faults::of(info.name),
            notes: Notes::default(),
            has_hop: has("hop")?,
            has_sink: has("sink")?,
            has_node: has("node")?,
            nodes: AtomicU32::new(0),
            scheme: scheme.unbind(),
            text,
        })
    }

    /// The scheme with the headers that its hops need.
    pub fn made(self) -> Made {
        match self.facts.hop {
            BuiltInHop::Telemetry => Made::WithTelemetry(Foreign(Arc::new(self))),
            BuiltInHop::None | BuiltInHop::LargestWait(_) => Made::WithNumbers(Foreign(Arc::new(self))),
        }
    }

    /// Creates a machine of kind `kind` in Python and returns its hooks; `None` if the scheme has no such machine, or
    /// if creating it failed.
    fn machine<const N: usize>(
        &self,
        kind: &'static str,
        who: Who,
        subflows: usize,
        seed: u64,
        view: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>,
    ) -> Option<Caller<N>> {
        let made = Python::attach(|py| {
            let made = view(py).and_then(|view| {
                let loading = py.import("subak.outside.loading")?;
                let found = watched(|| loading.call_method1("machine", (kind, &self.scheme, view)))?;
                let found: Option<Bound<'_, PyTuple>> = found.extract()?;
                let Some(found) = found else { return Ok(None) };
                let hooks = found.extract::<Vec<Option<Py<PyAny>>>>()?;
                let timer = match kind {
                    "sink" => 2,
                    "node" => 6,
                    "controller" => 5,
                    _ => 4,
                };
                let there = There {
                    nodes: if self.has_node { self.nodes.load(Ordering::Relaxed).max(1) } else { 0 },
                    controller: self.facts.has_controller,
                };
                let io = IoView {
                    now_ns: 0,
                    asks: Vec::new(),
                    who,
                    subflows,
                    has_timer: hooks.get(timer).is_some_and(Option::is_some),
                    there,
                    seed,
                    stream: None,
                    notes: self.notes.clone(),
                    noted: None,
                };
                Ok(Some((hooks, Py::new(py, io)?)))
            });
            made.map_err(|error| self.note(py, Hook { name: kind, who, at_ns: 0 }, &error))
        });
        let (hooks, io) = made.ok().flatten()?;
        let hooks = hooks.try_into().ok()?;
        Some(Caller { hooks, io, who, text: Arc::clone(&self.text), faults: self.faults.clone() })
    }

    fn note(&self, py: Python<'_>, hook: Hook, error: &PyErr) {
        note(py, &self.faults, &self.text, hook, error);
    }
}

/// Records the exception of a hook, with the line of the user's text that raised it.
fn note(py: Python<'_>, faults: &Faults, text: &Py<PyAny>, hook: Hook, error: &PyErr) {
    let said = py
        .import("subak.outside.loading")
        .and_then(|m| m.call_method1("error_line", (error.clone_ref(py).into_value(py), text))?.extract::<String>());
    faults.note(hook, &said.unwrap_or_else(|_| error.to_string()), "");
}

impl<D: Header> Makes<D> for PythonScheme {
    fn facts(&self) -> &Facts {
        &self.facts
    }
    fn faults(&self) -> &Faults {
        &self.faults
    }
    fn notes(&self) -> Option<&Notes> {
        Some(&self.notes)
    }
    fn source(&self, flow: &FlowInfo) -> Box<dyn Source<Foreign<D>>> {
        let view = |py: Python<'_>| Ok(Py::new(py, FlowInfoView::of(flow))?.into_any());
        match self.machine("source", Who::Flow(flow.flow), flow.paths.len(), flow.seed, view) {
            Some(caller) => Box::new(PythonSource(caller)),
            None => Box::new(Nothing),
        }
    }
    fn hop(&self, port: &Port) -> Option<Box<dyn Hop<Foreign<D>>>> {
        if !self.has_hop || self.faults.any() {
            return None;
        }
        let view = |py: Python<'_>| Ok(Py::new(py, PortView::of(port))?.into_any());
        let caller = self.machine("hop", Who::Link(port.link), 0, port.seed, view)?;
        Some(Box::new(PythonHop(caller)))
    }
    fn sink(&self, flow: &FlowInfo) -> Option<Box<dyn Sink<Foreign<D>>>> {
        if !self.has_sink || self.faults.any() {
            return None;
        }
        let view = |py: Python<'_>| Ok(Py::new(py, FlowInfoView::of(flow))?.into_any());
        let caller = self.machine("sink", Who::Sink(flow.flow), flow.paths.len(), !flow.seed, view)?;
        Some(Box::new(PythonSink(caller)))
    }
    fn node(&self, node: &NodeInfo) -> Option<Box<dyn NodeMachine<Foreign<D>>>> {
        if !self.has_node || self.faults.any() {
            return None;
        }
        self.nodes.fetch_max(node.node.0 + 1, Ordering::Relaxed);
        let view = |py: Python<'_>| Ok(Py::new(py, NodeView::of(node))?.into_any());
        let caller = self.machine("node", Who::Node(node.node), 0, node.seed, view)?;
        Some(Box::new(PythonNode(caller)))
    }
    fn controller(&self, network: &Network) -> Option<Box<dyn Controller<Foreign<D>>>> {
        if network.links().is_empty() || self.faults.any() {
            return Some(Box::new(Nothing));
        }
        self.nodes.fetch_max(network.nodes().len() as u32, Ordering::Relaxed);
        let view = |py: Python<'_>| Ok(Py::new(py, NetworkView::of(network))?.into_any());
        let controller = self.machine("controller", Who::Controller, 0, 0, view).map(|caller| {
            let capacities = Capacities::of(network);
            Box::new(PythonController { caller, capacities }) as Box<dyn Controller<Foreign<D>>>
        });
        Some(controller.unwrap_or_else(|| Box::new(Nothing)))
    }
}

/// A machine of a scheme that failed, which does nothing.
struct Nothing;

impl<D: Header> Source<Foreign<D>> for Nothing {
    fn on_start(&mut self, _io: &mut CoreIo<D>) {}
}

impl<D: Header> Controller<Foreign<D>> for Nothing {}

/// The effects that a hook requested, for a scheme with headers of another type.
fn with_header<D: Header>(effect: Effect<Foreign>) -> Effect<Foreign<D>> {
    match effect {
        Effect::Ctl { to, subflow, message, class, bytes } => Effect::Ctl { to, subflow, message, class, bytes },
        Effect::Timer { timer, at_ns } => Effect::Timer { timer, at_ns },
        Effect::Pace { subflow, rate_bps, window_bytes } => Effect::Pace { subflow, rate_bps, window_bytes },
        Effect::Pause { link, class, on } => Effect::Pause { link, class, on },
    }
}

/// The hooks of a machine, in the order of `subak.outside.loading.HOOKS`, and the `Io` object that they receive.
struct Caller<const N: usize> {
    hooks: [Option<Py<PyAny>>; N],
    io: Py<IoView>,
    who: Who,
    text: Arc<Py<PyAny>>,
    faults: Faults,
}

impl<const N: usize> Caller<N> {
    /// Calls hook number `place`, if the machine has it, through `run`, and passes the effects that the hook requests
    /// on to `io`. `name` is the hook's name in errors. `run` returns the answer of a hook that must return nothing,
    /// and otherwise `None`.
    #[inline]
    fn call<D: Header>(
        &self,
        place: usize,
        name: &'static str,
        io: &mut CoreIo<D>,
        run: impl for<'py> FnOnce(Python<'py>, &Bound<'py, PyAny>, Py<IoView>) -> PyResult<Bound<'py, PyAny>>,
    ) {
        let Some(hook) = &self.hooks[place] else { return };
        Python::attach(|py| {
            self.begin(py, io.now_ns);
            let ended = watched(|| nothing(name, &run(py, hook.bind(py), self.io.clone_ref(py))?));
            self.heed(py, name, io.now_ns, ended);
            let mut own = self.io.borrow_mut(py);
            own.noted = None;
            io.effects_mut().extend(own.asks.drain(..).map(with_header));
        });
    }

    /// Prepares the machine's `Io` for a hook at `now_ns`.
    #[inline]
    fn begin(&self, py: Python<'_>, now_ns: Ns) {
        let mut own = self.io.borrow_mut(py);
        own.now_ns = now_ns;
        own.noted = Some(0);
    }

    /// Records the exception of a hook, if there is one.
    #[inline]
    fn heed(&self, py: Python<'_>, name: &'static str, at_ns: Ns, ended: PyResult<()>) {
        if let Err(error) = ended {
            note(py, &self.faults, &self.text, Hook { name, who: self.who, at_ns }, &error);
        }
    }
}

/// Refuses what a hook returned, unless it is `None`.
#[inline]
fn nothing(name: &str, answer: &Bound<'_, PyAny>) -> PyResult<()> {
    if answer.is_none() {
        return Ok(());
    }
    let answer = answer.repr().map_or_else(|_| "an object".to_string(), |text| text.to_string());
    let what = format!("{name} returned {answer}; return nothing, and set rates and windows with io.pace");
    Err(PyTypeError::new_err(what))
}

struct PythonSource(Caller<9>);

impl<D: Header> Source<Foreign<D>> for PythonSource {
    fn on_start(&mut self, io: &mut CoreIo<D>) {
        self.0.call(0, "on_start", io, |_, hook, own| hook.call1((own,)));
    }
    fn stamp(&mut self, now_ns: Ns, packet: &mut Packet<Foreign<D>>, remaining_bytes: u64) {
        let Some(hook) = &self.0.hooks[1] else { return };
        Python::attach(|py| {
            self.0.begin(py, now_ns);
            let ended = watched(|| {
                let view = Py::new(py, PacketView::of(packet, At::Source))?;
                let answer = hook.bind(py).call1((now_ns, &view, finite(remaining_bytes)))?;
                view.borrow(py).write(packet);
                nothing("stamp", &answer)
            });
            self.0.heed(py, "stamp", now_ns, ended);
            self.0.io.borrow_mut(py).noted = None;
        });
    }
    fn on_ack(&mut self, io: &mut CoreIo<D>, ack: &scheme::Ack<D>) {
        self.0.call(2, "on_ack", io, |py, hook, own| hook.call1((own, Py::new(py, AckView::of(py, ack)?)?)));
    }
    fn on_loss(&mut self, io: &mut CoreIo<D>, loss: &scheme::Loss) {
        self.0.call(3, "on_loss", io, |py, hook, own| hook.call1((own, Py::new(py, LossView::of(loss))?)));
    }
    fn on_timer(&mut self, io: &mut CoreIo<D>, timer: u32) {
        self.0.call(4, "on_timer", io, |_, hook, own| hook.call1((own, timer)));
    }
    fn on_ctl(&mut self, io: &mut CoreIo<D>, subflow: SubflowId, numbers: Numbers) {
        self.0
            .call(5, "on_message", io, |py, hook, own| hook.call1((own, Py::new(py, Message { numbers })?, subflow.0)));
    }
    fn on_weight(&mut self, io: &mut CoreIo<D>, weight: f64, _utility: &Arc<Utility>) {
        self.0.call(6, "on_weight", io, |_, hook, own| hook.call1((own, weight)));
    }
    fn on_reroute(&mut self, io: &mut CoreIo<D>, subflow: SubflowId, path: &PathInfo, links: &[LinkId]) {
        self.0.call(7, "on_reroute", io, |py, hook, own| {
            hook.call1((own, subflow.0, Py::new(py, PathView::of(path, links))?))
        });
    }
    fn on_finish(&mut self, io: &mut CoreIo<D>) {
        self.0.call(8, "on_finish", io, |_, hook, own| hook.call1((own,)));
    }
}

struct PythonHop(Caller<6>);

impl PythonHop {
    fn shown<D: Header>(
        &self,
        place: usize,
        name: &'static str,
        io: &mut CoreIo<D>,
        packet: &mut Packet<Foreign<D>>,
        port: &Port,
    ) {
        self.0.call(place, name, io, |py, hook, own| {
            let view = Py::new(py, PacketView::of(packet, At::Hop))?;
            let answer = hook.call1((own, &view, Py::new(py, PortView::of(port))?))?;
            view.borrow(py).write(packet);
            Ok(answer)
        });
    }
}

impl<D: Header> Hop<Foreign<D>> for PythonHop {
    fn on_start(&mut self, io: &mut CoreIo<D>) {
        self.0.call(0, "on_start", io, |_, hook, own| hook.call1((own,)));
    }
    fn on_enqueue(&mut self, io: &mut CoreIo<D>, packet: &mut Packet<Foreign<D>>, port: &Port) {
        self.shown(1, "on_enqueue", io, packet, port);
    }
    fn on_dequeue(&mut self, io: &mut CoreIo<D>, packet: &mut Packet<Foreign<D>>, port: &Port) {
        self.shown(2, "on_dequeue", io, packet, port);
    }
    fn on_ctl(&mut self, io: &mut CoreIo<D>, message: &mut Numbers, visit: Visit, port: &Port) {
        self.0.call(3, "on_message", io, |py, hook, own| {
            let view = Py::new(py, Message { numbers: *message })?;
            let visit = Py::new(py, VisitView::of(visit))?;
            let answer = hook.call1((own, &view, visit, Py::new(py, PortView::of(port))?))?;
            *message = if answer.is_none() { view.borrow(py).numbers } else { numbers_of(&answer)? };
            Ok(py.None().into_bound(py))
        });
    }
    fn on_timer(&mut self, io: &mut CoreIo<D>, timer: u32, port: &Port) {
        self.0.call(4, "on_timer", io, |py, hook, own| hook.call1((own, timer, Py::new(py, PortView::of(port))?)));
    }
    fn on_capacity(&mut self, port: &Port) {
        let Some(hook) = &self.0.hooks[5] else { return };
        Python::attach(|py| {
            let ended = watched(|| nothing("on_capacity", &hook.bind(py).call1((Py::new(py, PortView::of(port))?,))?));
            self.0.heed(py, "on_capacity", self.0.io.borrow(py).now_ns, ended);
        });
    }
}

struct PythonSink(Caller<3>);

impl<D: Header> Sink<Foreign<D>> for PythonSink {
    fn on_data(&mut self, io: &mut CoreIo<D>, packet: &Packet<Foreign<D>>) -> Reply<D> {
        let mut reply = Reply::Ack(packet.data);
        self.0.call(0, "on_data", io, |py, hook, own| {
            let view = Py::new(py, PacketView::of(packet, At::Sink))?;
            let answer = hook.call1((own, &view))?;
            reply = match answer.is_none() {
                true => {
                    let mut header = packet.data;
                    header.set(view.borrow(py).numbers);
                    Reply::Ack(header)
                }
                false if answer.extract::<bool>().is_ok_and(|acks| !acks) => Reply::Withhold,
                false => {
                    let what = format!("on_data returned {answer}; return None, or False to withhold the ACK");
                    return Err(PyTypeError::new_err(what));
                }
            };
            Ok(py.None().into_bound(py))
        });
        reply
    }
    fn on_ctl(&mut self, io: &mut CoreIo<D>, subflow: SubflowId, numbers: Numbers, bytes: u32) {
        if self.0.hooks[1].is_none() {
            return Sink::<Foreign<D>>::on_ctl(&mut (), io, subflow, numbers, bytes);
        }
        self.0
            .call(1, "on_message", io, |py, hook, own| hook.call1((own, Py::new(py, Message { numbers })?, subflow.0)));
    }
    fn on_timer(&mut self, io: &mut CoreIo<D>, timer: u32) {
        self.0.call(2, "on_timer", io, |_, hook, own| hook.call1((own, timer)));
    }
}

struct PythonNode(Caller<7>);

impl<D: Header> NodeMachine<Foreign<D>> for PythonNode {
    fn on_start(&mut self, io: &mut CoreIo<D>) {
        self.0.call(0, "on_start", io, |_, hook, own| hook.call1((own,)));
    }
    fn admits(&mut self, io: &mut CoreIo<D>, packet: &Packet<Foreign<D>>, port: &Port) -> bool {
        let mut admitted = true;
        if packet.kind == PacketKind::Ctl {
            return admitted;
        }
        self.0.call(1, "admits", io, |py, hook, own| {
            let view = Py::new(py, PacketView::of(packet, At::Node))?;
            let answer = hook.call1((own, view, Py::new(py, PortView::of(port))?))?;
            admitted = match answer.is_none() {
                true => true,
                false => answer.extract::<bool>().map_err(|_| {
                    PyTypeError::new_err(format!("admits returned {answer}; return None, or False to drop the packet"))
                })?,
            };
            Ok(py.None().into_bound(py))
        });
        admitted
    }
    fn on_leave(&mut self, io: &mut CoreIo<D>, packet: &Packet<Foreign<D>>, port: &Port) {
        if packet.kind == PacketKind::Ctl {
            return;
        }
        self.0.call(2, "on_leave", io, |py, hook, own| {
            hook.call1((own, Py::new(py, PacketView::of(packet, At::Node))?, Py::new(py, PortView::of(port))?))
        });
    }
    fn on_controller(&mut self, io: &mut CoreIo<D>, place: &ControllerPlace) {
        self.0.call(3, "on_controller", io, |py, hook, own| hook.call1((own, Py::new(py, PlaceView::of(place))?)));
    }
    fn on_flow(&mut self, io: &mut CoreIo<D>, flow: FlowId, numbers: Numbers) {
        self.0.call(4, "on_flow", io, |py, hook, own| hook.call1((own, flow.0, Py::new(py, Message { numbers })?)));
    }
    fn on_ctl(&mut self, io: &mut CoreIo<D>, numbers: Numbers) {
        self.0.call(5, "on_message", io, |py, hook, own| hook.call1((own, Py::new(py, Message { numbers })?)));
    }
    fn on_timer(&mut self, io: &mut CoreIo<D>, timer: u32) {
        self.0.call(6, "on_timer", io, |_, hook, own| hook.call1((own, timer)));
    }
}

struct PythonController {
    caller: Caller<6>,
    capacities: Capacities,
}

impl<D: Header> Controller<Foreign<D>> for PythonController {
    fn on_start(&mut self, io: &mut CoreIo<D>) {
        self.caller.call(0, "on_start", io, |_, hook, own| hook.call1((own,)));
    }
    fn on_place(&mut self, io: &mut CoreIo<D>, place: &ControllerPlace) {
        self.caller.call(1, "on_place", io, |py, hook, own| hook.call1((own, Py::new(py, PlaceView::of(place))?)));
    }
    fn on_ctl(&mut self, io: &mut CoreIo<D>, flow: FlowId, numbers: Numbers) {
        self.caller
            .call(2, "on_flow", io, |py, hook, own| hook.call1((own, flow.0, Py::new(py, Message { numbers })?)));
    }
    fn on_node(&mut self, io: &mut CoreIo<D>, node: NodeId, numbers: Numbers) {
        self.caller
            .call(3, "on_node", io, |py, hook, own| hook.call1((own, node.0, Py::new(py, Message { numbers })?)));
    }
    fn on_link(&mut self, io: &mut CoreIo<D>, link: LinkId, change: LinkChange) {
        let capacity_bps = self.capacities.change(link, change);
        self.caller.call(4, "on_link", io, |_, hook, own| hook.call1((own, link.0, capacity_bps)));
    }
    fn on_timer(&mut self, io: &mut CoreIo<D>, timer: u32) {
        self.caller.call(5, "on_timer", io, |_, hook, own| hook.call1((own, timer)));
    }
}
