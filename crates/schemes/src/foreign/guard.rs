//! Guards around the state machines of a user-supplied scheme. A guard refuses requests that the backend cannot carry
//! out. After the first fault, no hook of the scheme is called any more.

use super::{Foreign, Header, Numbers, asks};
use crate::red::RedMarker;
use std::sync::{Arc, OnceLock};
use subak_core::backend::LinkChange;
use subak_core::scheme::{
    Ack, Controller, ControllerPlace, Effect, Hop, Io, Loss, NodeMachine, Packet, PacketKind, PathInfo, Port, Reply,
    Sink, Source, To, Visit,
};
use subak_core::{FlowId, InputError, LinkId, NodeId, Ns, SubflowId, Utility};

/// Maximum number of timers of one machine that expire at the same simulated time.
const MOST_TIMERS: u32 = 10_000;
/// Maximum number of pending timers of one machine: a machine that sets two at each timer would fill all memory.
const MOST_PENDING: u32 = 1_000_000;
/// Latest time of a timer, ns: 146 years. Later timers are set to this time.
const LATEST_NS: Ns = 1 << 62;

/// The state machine in which a fault occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The source of a flow.
    Flow(FlowId),
    /// The sink of a flow.
    Sink(FlowId),
    /// The state at a link.
    Link(LinkId),
    /// The state at a node.
    Node(NodeId),
    /// The central controller.
    Controller,
}

/// A call of a hook, as error messages report it.
#[derive(Debug, Clone, Copy)]
pub struct Hook {
    /// Name of the hook.
    pub name: &'static str,
    /// Machine that the hook belongs to.
    pub who: Who,
    /// Time of the call, ns.
    pub at_ns: Ns,
}

/// The first fault of a user-supplied scheme. Later faults are not recorded, because they may follow from the first.
#[derive(Debug, Clone)]
pub struct Faults(Arc<Record>);

#[derive(Debug)]
struct Record {
    scheme: String,
    first: OnceLock<InputError>,
}

impl Faults {
    /// An empty record for the scheme named `scheme`.
    pub fn of(scheme: &str) -> Self {
        Faults(Arc::new(Record { scheme: scheme.to_string(), first: OnceLock::new() }))
    }

    /// Records a fault in `hook`, unless a fault was recorded before: `what` is the problem, `hint` says how to correct
    /// it.
    pub fn note(&self, hook: Hook, what: &str, hint: &str) {
        let machine = match hook.who {
            Who::Flow(flow) => format!("flow {flow}"),
            Who::Sink(flow) => format!("the receiver of flow {flow}"),
            Who::Link(link) => format!("link number {link}"),
            Who::Node(node) => format!("node number {node}"),
            Who::Controller => "the controller".to_string(),
        };
        let what = format!("{} of {machine} at {} ns: {what}", hook.name, hook.at_ns);
        let _ = self.0.first.set(InputError::new(format!("scheme \"{}\"", self.0.scheme), what, hint));
    }

    /// The recorded fault; `None` if there is none.
    pub fn get(&self) -> Option<InputError> {
        self.0.first.get().cloned()
    }

    /// Whether a fault was recorded.
    #[inline]
    pub fn any(&self) -> bool {
        self.0.first.get().is_some()
    }
}

/// Checks the requests of one state machine.
#[derive(Debug)]
pub struct Guard {
    who: Who,
    subflows: usize,
    faults: Faults,
    /// Time of the latest timer, ns.
    timer_ns: Ns,
    /// Number of timers that expired at `timer_ns`.
    timers: u32,
    /// Number of pending timers.
    pending: u32,
}

impl Guard {
    /// Whether hooks may be called: no fault was recorded before.
    #[inline]
    fn goes_on(&self) -> bool {
        !self.faults.any()
    }

    fn refuse(&self, name: &'static str, at_ns: Ns, (what, hint): (String, &'static str)) {
        self.faults.note(Hook { name, who: self.who, at_ns }, &what, hint);
    }

    /// Records a fault if the backend cannot carry out an effect that the hook `name` requested.
    #[inline]
    fn check<D: Header>(&mut self, name: &'static str, io: &mut Io<Foreign<D>>) {
        if !io.has_effects() {
            return;
        }
        let now_ns = io.now_ns;
        for effect in io.effects_mut() {
            if let Err(refusal) = self.allows(effect) {
                self.refuse(name, now_ns, refusal);
            }
        }
        if self.faults.any() {
            io.effects_mut().clear();
        }
    }

    #[inline]
    fn allows<D: Header>(&mut self, effect: &mut Effect<Foreign<D>>) -> Result<(), asks::Refusal> {
        match effect {
            Effect::Pace { subflow, rate_bps, .. } => {
                if !matches!(self.who, Who::Flow(_)) {
                    return Err(("it sets a pace".into(), "only a source does"));
                }
                asks::subflow(i64::from(subflow.0), self.subflows)?;
                *rate_bps = rate_bps.map_or(Ok(None), asks::rate_bps)?;
                Ok(())
            }
            Effect::Timer { at_ns, .. } => {
                *at_ns = (*at_ns).min(LATEST_NS);
                self.pending += 1;
                match self.pending {
                    ..=MOST_PENDING => Ok(()),
                    _ => Err((format!("{MOST_PENDING} timers are pending"), "set a timer only where none is pending")),
                }
            }
            Effect::Ctl { to, subflow, bytes, .. } => self.allows_message(*to, *subflow, *bytes),
            Effect::Pause { .. } => match self.who {
                Who::Link(_) => Ok(()),
                _ => Err(("it pauses a class".into(), "only a hop does, before its own link")),
            },
        }
    }

    fn allows_message(&self, to: To, subflow: SubflowId, bytes: u32) -> Result<(), asks::Refusal> {
        match (self.who, to) {
            (Who::Flow(_), To::Sink | To::Controller | To::Host) | (Who::Sink(_), To::Source | To::Host) => {
                asks::subflow(i64::from(subflow.0), self.subflows)?;
            }
            (Who::Node(_), To::Controller | To::Flow(_)) | (Who::Controller, To::Node(_) | To::Flow(_)) => {}
            (Who::Link(_), _) => return Err(("it sends a message".into(), "a hop changes the messages that pass")),
            _ => return Err((format!("it sends a message to {to:?}"), "a source writes to its sink, and a sink back")),
        }
        match bytes {
            1..=65_535 => Ok(()),
            _ => Err((format!("a message has {bytes} bytes"), "give 1 to 65535 bytes on the wire")),
        }
    }

    /// Counts an expired timer, and returns whether its hook may be called. Too many timers at the same time are a
    /// fault.
    fn ticks(&mut self, now_ns: Ns) -> bool {
        self.timers = if self.timer_ns == now_ns { self.timers + 1 } else { 1 };
        self.timer_ns = now_ns;
        self.pending = self.pending.saturating_sub(1);
        if self.timers > MOST_TIMERS {
            let what = format!("{MOST_TIMERS} timers came due at the same time");
            self.refuse("on_timer", now_ns, (what, "set a timer later than now: io.now_ns and some time"));
        }
        self.goes_on()
    }
}

/// Calls a hook of the machine, unless a fault was recorded, and checks the effects that it requested.
macro_rules! guarded {
    ($self:ident, $name:literal, $io:ident, $call:expr) => {
        if $self.guard.goes_on() {
            $call;
            $self.guard.check($name, $io);
        }
    };
}

/// A state machine and the checks of its requests.
pub struct Guarded<M: ?Sized> {
    guard: Guard,
    machine: Box<M>,
}

impl<M: ?Sized> Guarded<M> {
    pub(super) fn new(machine: Box<M>, who: Who, subflows: usize, faults: &Faults) -> Self {
        Guarded { guard: Guard { who, subflows, faults: faults.clone(), timer_ns: 0, timers: 0, pending: 0 }, machine }
    }
}

/// Guarded sender of a flow.
pub type ForeignSource<D> = Guarded<dyn Source<Foreign<D>>>;

impl<D: Header> Source<Foreign<D>> for ForeignSource<D> {
    fn on_start(&mut self, io: &mut Io<Foreign<D>>) {
        guarded!(self, "on_start", io, self.machine.on_start(io));
    }
    #[inline]
    fn stamp(&mut self, now_ns: Ns, packet: &mut Packet<Foreign<D>>, remaining_bytes: u64) {
        if D::SHOWN && self.guard.goes_on() {
            self.machine.stamp(now_ns, packet, remaining_bytes);
        }
    }
    #[inline]
    fn on_ack(&mut self, io: &mut Io<Foreign<D>>, ack: &Ack<D>) {
        guarded!(self, "on_ack", io, self.machine.on_ack(io, ack));
    }
    fn on_ctl(&mut self, io: &mut Io<Foreign<D>>, subflow: SubflowId, message: Numbers) {
        guarded!(self, "on_message", io, self.machine.on_ctl(io, subflow, message));
    }
    fn on_timer(&mut self, io: &mut Io<Foreign<D>>, timer: u32) {
        if self.guard.ticks(io.now_ns) {
            guarded!(self, "on_timer", io, self.machine.on_timer(io, timer));
        }
    }
    fn on_loss(&mut self, io: &mut Io<Foreign<D>>, loss: &Loss) {
        guarded!(self, "on_loss", io, self.machine.on_loss(io, loss));
    }
    fn on_weight(&mut self, io: &mut Io<Foreign<D>>, weight: f64, utility: &Arc<Utility>) {
        guarded!(self, "on_weight", io, self.machine.on_weight(io, weight, utility));
    }
    fn on_leave(&mut self, io: &mut Io<Foreign<D>>, subflow: SubflowId) {
        guarded!(self, "on_leave", io, self.machine.on_leave(io, subflow));
    }
    fn on_left(&mut self, io: &mut Io<Foreign<D>>, subflow: SubflowId, message: Numbers, bytes: u32) {
        guarded!(self, "on_left", io, self.machine.on_left(io, subflow, message, bytes));
    }
    fn on_reroute(&mut self, io: &mut Io<Foreign<D>>, subflow: SubflowId, path: &PathInfo, links: &[LinkId]) {
        guarded!(self, "on_reroute", io, self.machine.on_reroute(io, subflow, path, links));
    }
    fn on_finish(&mut self, io: &mut Io<Foreign<D>>) {
        guarded!(self, "on_finish", io, self.machine.on_finish(io));
    }
}

/// Guarded state at a link: ECN marking, Subak's own state, and the scheme's machine, if it has one. The machine is
/// boxed, since every packet reads the threshold and most schemes have no machine.
pub struct ForeignHop<D: Header> {
    /// Queue length from which on data packets are marked; under RED, some of them.
    pub(super) marks_bytes: u64,
    pub(super) red: Option<Box<RedMarker>>,
    pub(super) built_in: D::BuiltIn,
    pub(super) guarded: Option<Box<Guarded<dyn Hop<Foreign<D>>>>>,
}

/// Does the same as [`guarded`], and nothing if there is no machine.
macro_rules! guarded_if_any {
    ($self:ident, $name:literal, $io:ident, $machine:ident => $call:expr) => {
        if let Some(guarded) = &mut $self.guarded
            && guarded.guard.goes_on()
        {
            let $machine = &mut guarded.machine;
            $call;
            guarded.guard.check($name, $io);
        }
    };
}

impl<D: Header> Hop<Foreign<D>> for ForeignHop<D> {
    fn observes_departures(&self) -> bool {
        self.built_in.observes_departures()
            || self.guarded.as_ref().is_some_and(|guarded| guarded.machine.observes_departures())
    }
    fn has_state(&self) -> bool {
        self.guarded.is_some() || self.built_in.has_state()
    }
    fn on_start(&mut self, io: &mut Io<Foreign<D>>) {
        guarded_if_any!(self, "on_start", io, machine => machine.on_start(io));
    }
    #[inline]
    fn on_enqueue(&mut self, io: &mut Io<Foreign<D>>, packet: &mut Packet<Foreign<D>>, port: &Port) {
        if packet.kind == PacketKind::Data && port.queued_bytes >= self.marks_bytes {
            packet.ecn |= self.red.as_mut().is_none_or(|red| red.marks(port.queued_bytes));
        }
        if D::SHOWN {
            guarded_if_any!(self, "on_enqueue", io, machine => machine.on_enqueue(io, packet, port));
        }
    }
    #[inline]
    fn on_dequeue(&mut self, io: &mut Io<Foreign<D>>, packet: &mut Packet<Foreign<D>>, port: &Port) {
        self.built_in.on_dequeue(io, packet, port);
        if D::SHOWN {
            guarded_if_any!(self, "on_dequeue", io, machine => machine.on_dequeue(io, packet, port));
        }
    }
    fn on_capacity(&mut self, port: &Port) {
        self.built_in.on_capacity(port);
        if let Some(guarded) = self.guarded.as_mut().filter(|guarded| guarded.guard.goes_on()) {
            guarded.machine.on_capacity(port);
        }
    }
    fn on_topology(&mut self, port: &Port) {
        if let Some(guarded) = self.guarded.as_mut().filter(|guarded| guarded.guard.goes_on()) {
            guarded.machine.on_topology(port);
        }
    }
    fn on_ctl(&mut self, io: &mut Io<Foreign<D>>, message: &mut Numbers, visit: Visit, port: &Port) {
        guarded_if_any!(self, "on_message", io, machine => machine.on_ctl(io, message, visit, port));
    }
    fn on_timer(&mut self, io: &mut Io<Foreign<D>>, timer: u32, port: &Port) {
        if self.guarded.as_mut().is_some_and(|guarded| guarded.guard.ticks(io.now_ns)) {
            guarded_if_any!(self, "on_timer", io, machine => machine.on_timer(io, timer, port));
        }
    }
}

/// Guarded receiver of a flow.
pub struct ForeignSink<D: Header> {
    pub(super) guarded: Option<Box<Guarded<dyn Sink<Foreign<D>>>>>,
}

impl<D: Header> Sink<Foreign<D>> for ForeignSink<D> {
    #[inline]
    fn on_data(&mut self, io: &mut Io<Foreign<D>>, packet: &Packet<Foreign<D>>) -> Reply<D> {
        let mut reply = Reply::Ack(packet.data);
        if D::SHOWN {
            guarded_if_any!(self, "on_data", io, machine => reply = machine.on_data(io, packet));
        }
        reply
    }
    fn on_ctl(&mut self, io: &mut Io<Foreign<D>>, subflow: SubflowId, message: Numbers, bytes: u32) {
        if self.guarded.is_none() {
            // The message goes back to the source: the default of every scheme.
            return Sink::<Foreign<D>>::on_ctl(&mut (), io, subflow, message, bytes);
        }
        guarded_if_any!(self, "on_message", io, machine => machine.on_ctl(io, subflow, message, bytes));
    }
    fn on_timer(&mut self, io: &mut Io<Foreign<D>>, timer: u32) {
        if self.guarded.as_mut().is_some_and(|guarded| guarded.guard.ticks(io.now_ns)) {
            guarded_if_any!(self, "on_timer", io, machine => machine.on_timer(io, timer));
        }
    }
}

/// Guarded state at a node.
pub type ForeignNode<D> = Guarded<dyn NodeMachine<Foreign<D>>>;

impl<D: Header> NodeMachine<Foreign<D>> for ForeignNode<D> {
    fn on_start(&mut self, io: &mut Io<Foreign<D>>) {
        guarded!(self, "on_start", io, self.machine.on_start(io));
    }
    fn admits(&mut self, io: &mut Io<Foreign<D>>, packet: &Packet<Foreign<D>>, port: &Port) -> bool {
        let mut admitted = true;
        if D::SHOWN {
            guarded!(self, "admits", io, admitted = self.machine.admits(io, packet, port));
        }
        admitted
    }
    fn on_leave(&mut self, io: &mut Io<Foreign<D>>, packet: &Packet<Foreign<D>>, port: &Port) {
        if D::SHOWN {
            guarded!(self, "on_leave", io, self.machine.on_leave(io, packet, port));
        }
    }
    fn on_controller(&mut self, io: &mut Io<Foreign<D>>, place: &ControllerPlace) {
        guarded!(self, "on_controller", io, self.machine.on_controller(io, place));
    }
    fn on_flow(&mut self, io: &mut Io<Foreign<D>>, flow: FlowId, message: Numbers) {
        guarded!(self, "on_flow", io, self.machine.on_flow(io, flow, message));
    }
    fn on_ctl(&mut self, io: &mut Io<Foreign<D>>, message: Numbers) {
        guarded!(self, "on_message", io, self.machine.on_ctl(io, message));
    }
    fn on_timer(&mut self, io: &mut Io<Foreign<D>>, timer: u32) {
        if self.guard.ticks(io.now_ns) {
            guarded!(self, "on_timer", io, self.machine.on_timer(io, timer));
        }
    }
}

/// Guarded central controller.
pub type ForeignController<D> = Guarded<dyn Controller<Foreign<D>>>;

impl<D: Header> Controller<Foreign<D>> for ForeignController<D> {
    fn on_start(&mut self, io: &mut Io<Foreign<D>>) {
        guarded!(self, "on_start", io, self.machine.on_start(io));
    }
    fn on_place(&mut self, io: &mut Io<Foreign<D>>, place: &ControllerPlace) {
        guarded!(self, "on_place", io, self.machine.on_place(io, place));
    }
    fn on_ctl(&mut self, io: &mut Io<Foreign<D>>, flow: FlowId, message: Numbers) {
        guarded!(self, "on_flow", io, self.machine.on_ctl(io, flow, message));
    }
    fn on_node(&mut self, io: &mut Io<Foreign<D>>, node: NodeId, message: Numbers) {
        guarded!(self, "on_node", io, self.machine.on_node(io, node, message));
    }
    fn on_link(&mut self, io: &mut Io<Foreign<D>>, link: LinkId, change: LinkChange) {
        guarded!(self, "on_link", io, self.machine.on_link(io, link, change));
    }
    fn on_timer(&mut self, io: &mut Io<Foreign<D>>, timer: u32) {
        if self.guard.ticks(io.now_ns) {
            guarded!(self, "on_timer", io, self.machine.on_timer(io, timer));
        }
    }
}
