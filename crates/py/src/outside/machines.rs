//! State machines of a Python scheme. Each calls the hooks of an object that the user's class created.

use super::views::{
    AckView, At, FlowInfoView, IoView, LossView, Message, PacketView, PathView, PortView, VisitView, finite, numbers_of,
};
use super::watch::watched;
use super::{dict_of, facts};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;
use subak_core::scheme::{self, FlowInfo, Hop, Info, Packet, Params, PathInfo, Port, Reply, Sink, Source, Visit};
use subak_core::{LinkId, Ns, SubflowId, Utility};
use subak_schemes::foreign::{Facts, Faults, Foreign, Hook, Makes, Notes, Numbers, Who};

type CoreIo = scheme::Io<Foreign>;

/// A Python scheme with its parameters.
pub struct PythonScheme {
    text: Arc<Py<PyAny>>,
    scheme: Py<PyAny>,
    facts: Facts,
    faults: Faults,
    notes: Notes,
    has_hop: bool,
    has_sink: bool,
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
            scheme: scheme.unbind(),
            text,
        })
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
                let timer = if kind == "sink" { 2 } else { 4 };
                let has_timer = hooks.get(timer).is_some_and(Option::is_some);
                let (asks, notes) = (Vec::new(), self.notes.clone());
                let io = IoView { now_ns: 0, asks, who, subflows, has_timer, seed, stream: None, notes, noted: None };
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

impl Makes for PythonScheme {
    fn facts(&self) -> &Facts {
        &self.facts
    }
    fn faults(&self) -> &Faults {
        &self.faults
    }
    fn notes(&self) -> Option<&Notes> {
        Some(&self.notes)
    }
    fn source(&self, flow: &FlowInfo) -> Box<dyn Source<Foreign>> {
        let view = |py: Python<'_>| Ok(Py::new(py, FlowInfoView::of(flow))?.into_any());
        match self.machine("source", Who::Flow(flow.flow), flow.paths.len(), flow.seed, view) {
            Some(caller) => Box::new(PythonSource(caller)),
            None => Box::new(Nothing),
        }
    }
    fn hop(&self, port: &Port) -> Option<Box<dyn Hop<Foreign>>> {
        if !self.has_hop || self.faults.any() {
            return None;
        }
        let view = |py: Python<'_>| Ok(Py::new(py, PortView::of(port))?.into_any());
        let caller = self.machine("hop", Who::Link(port.link), 0, port.seed, view)?;
        Some(Box::new(PythonHop(caller)))
    }
    fn sink(&self, flow: &FlowInfo) -> Option<Box<dyn Sink<Foreign>>> {
        if !self.has_sink || self.faults.any() {
            return None;
        }
        let view = |py: Python<'_>| Ok(Py::new(py, FlowInfoView::of(flow))?.into_any());
        let caller = self.machine("sink", Who::Sink(flow.flow), flow.paths.len(), !flow.seed, view)?;
        Some(Box::new(PythonSink(caller)))
    }
}

/// The source of a scheme that failed: it never sends.
struct Nothing;

impl Source<Foreign> for Nothing {
    fn on_start(&mut self, _io: &mut CoreIo) {}
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
    fn call(
        &self,
        place: usize,
        name: &'static str,
        io: &mut CoreIo,
        run: impl for<'py> FnOnce(Python<'py>, &Bound<'py, PyAny>, Py<IoView>) -> PyResult<Bound<'py, PyAny>>,
    ) {
        let Some(hook) = &self.hooks[place] else { return };
        Python::attach(|py| {
            self.begin(py, io.now_ns);
            let ended = watched(|| nothing(name, &run(py, hook.bind(py), self.io.clone_ref(py))?));
            self.heed(py, name, io.now_ns, ended);
            let mut own = self.io.borrow_mut(py);
            own.noted = None;
            io.effects_mut().append(&mut own.asks);
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

impl Source<Foreign> for PythonSource {
    fn on_start(&mut self, io: &mut CoreIo) {
        self.0.call(0, "on_start", io, |_, hook, own| hook.call1((own,)));
    }
    fn stamp(&mut self, now_ns: Ns, packet: &mut Packet<Foreign>, remaining_bytes: u64) {
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
    fn on_ack(&mut self, io: &mut CoreIo, ack: &scheme::Ack<Numbers>) {
        self.0.call(2, "on_ack", io, |py, hook, own| hook.call1((own, Py::new(py, AckView::of(ack))?)));
    }
    fn on_loss(&mut self, io: &mut CoreIo, loss: &scheme::Loss) {
        self.0.call(3, "on_loss", io, |py, hook, own| hook.call1((own, Py::new(py, LossView::of(loss))?)));
    }
    fn on_timer(&mut self, io: &mut CoreIo, timer: u32) {
        self.0.call(4, "on_timer", io, |_, hook, own| hook.call1((own, timer)));
    }
    fn on_ctl(&mut self, io: &mut CoreIo, subflow: SubflowId, numbers: Numbers) {
        self.0
            .call(5, "on_message", io, |py, hook, own| hook.call1((own, Py::new(py, Message { numbers })?, subflow.0)));
    }
    fn on_weight(&mut self, io: &mut CoreIo, weight: f64, _utility: &Arc<Utility>) {
        self.0.call(6, "on_weight", io, |_, hook, own| hook.call1((own, weight)));
    }
    fn on_reroute(&mut self, io: &mut CoreIo, subflow: SubflowId, path: &PathInfo, links: &[LinkId]) {
        self.0.call(7, "on_reroute", io, |py, hook, own| {
            hook.call1((own, subflow.0, Py::new(py, PathView::of(path, links))?))
        });
    }
    fn on_finish(&mut self, io: &mut CoreIo) {
        self.0.call(8, "on_finish", io, |_, hook, own| hook.call1((own,)));
    }
}

struct PythonHop(Caller<6>);

impl PythonHop {
    fn shown(&self, place: usize, name: &'static str, io: &mut CoreIo, packet: &mut Packet<Foreign>, port: &Port) {
        self.0.call(place, name, io, |py, hook, own| {
            let view = Py::new(py, PacketView::of(packet, At::Hop))?;
            let answer = hook.call1((own, &view, Py::new(py, PortView::of(port))?))?;
            view.borrow(py).write(packet);
            Ok(answer)
        });
    }
}

impl Hop<Foreign> for PythonHop {
    fn on_start(&mut self, io: &mut CoreIo) {
        self.0.call(0, "on_start", io, |_, hook, own| hook.call1((own,)));
    }
    fn on_enqueue(&mut self, io: &mut CoreIo, packet: &mut Packet<Foreign>, port: &Port) {
        self.shown(1, "on_enqueue", io, packet, port);
    }
    fn on_dequeue(&mut self, io: &mut CoreIo, packet: &mut Packet<Foreign>, port: &Port) {
        self.shown(2, "on_dequeue", io, packet, port);
    }
    fn on_ctl(&mut self, io: &mut CoreIo, message: &mut Numbers, visit: Visit, port: &Port) {
        self.0.call(3, "on_message", io, |py, hook, own| {
            let view = Py::new(py, Message { numbers: *message })?;
            let visit = Py::new(py, VisitView::of(visit))?;
            let answer = hook.call1((own, &view, visit, Py::new(py, PortView::of(port))?))?;
            *message = if answer.is_none() { view.borrow(py).numbers } else { numbers_of(&answer)? };
            Ok(py.None().into_bound(py))
        });
    }
    fn on_timer(&mut self, io: &mut CoreIo, timer: u32, port: &Port) {
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

impl Sink<Foreign> for PythonSink {
    fn on_data(&mut self, io: &mut CoreIo, packet: &Packet<Foreign>) -> Reply<Numbers> {
        let mut reply = Reply::Ack(packet.data);
        self.0.call(0, "on_data", io, |py, hook, own| {
            let view = Py::new(py, PacketView::of(packet, At::Sink))?;
            let answer = hook.call1((own, &view))?;
            reply = match answer.is_none() {
                true => Reply::Ack(view.borrow(py).numbers),
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
    fn on_ctl(&mut self, io: &mut CoreIo, subflow: SubflowId, numbers: Numbers, bytes: u32) {
        if self.0.hooks[1].is_none() {
            return Sink::<Foreign>::on_ctl(&mut (), io, subflow, numbers, bytes);
        }
        self.0
            .call(1, "on_message", io, |py, hook, own| hook.call1((own, Py::new(py, Message { numbers })?, subflow.0)));
    }
    fn on_timer(&mut self, io: &mut CoreIo, timer: u32) {
        self.0.call(2, "on_timer", io, |_, hook, own| hook.call1((own, timer)));
    }
}
