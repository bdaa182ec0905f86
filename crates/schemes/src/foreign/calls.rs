//! State machines of a scheme in a shared library: a hook calls the library's function of that name, if there is one.
#![allow(unsafe_code, reason = "functions of a library are called by their addresses")]

use super::loaded::Created;
use super::table::{CAck, CIo, CLoss, CMachine, CPacket, CPath, CPort, CVisit};
use super::{Foreign, Header, Hook, MOST_NOTES, NUMBERS, Numbers, Who, asks};
use crate::telemetry::identity;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;
use subak_core::rng::Stream;
use subak_core::scheme::{
    Ack, Class, FlowInfo, Hop, Io, Loss, LossKind, Packet, PacketKind, PathInfo, Port, Source, To, Visit,
};
use subak_core::{LinkId, Ns, SubflowId, Utility};

/// State behind the functions of a `CIo` while a hook runs.
struct Context<'a, D: Header> {
    io: &'a mut Io<Foreign<D>>,
    machine: &'a mut Called,
    refusal: Option<(String, String)>,
    /// Number of notes of the hook that runs.
    noted: usize,
}

impl<D: Header> Context<'_, D> {
    fn refuse(&mut self, (what, hint): (String, &str)) {
        self.refusal.get_or_insert((what, hint.to_string()));
    }

    /// The subflow `number`; refuses a number that the flow does not have. A hop, which has no subflows, gets the words
    /// `of_hop`.
    fn subflow(&mut self, number: u32, of_hop: (&str, &str)) -> Option<SubflowId> {
        if matches!(self.machine.who, Who::Link(_)) {
            self.refuse((of_hop.0.to_string(), of_hop.1));
            return None;
        }
        asks::subflow(number.into(), self.machine.subflows).map_err(|refusal| self.refuse(refusal)).ok()
    }

    fn class(&mut self, class: u32) -> Option<Class> {
        let found = Class::ALL.get(class as usize).copied();
        if found.is_none() {
            self.refuse((format!("there is no class {class}"), "give SUBAK_CONTROL, SUBAK_HIGH or SUBAK_LOW"));
        }
        found
    }
}

/// The context of `io`; `None` if no hook is running.
fn context<'a, D: Header>(io: *mut CIo) -> Option<&'a mut Context<'a, D>> {
    // SAFETY: the library passes on the pointer that its hook was called with.
    unsafe { io.as_mut().and_then(|io| io.context.cast::<Context<'a, D>>().as_mut()) }
}

extern "C" fn pace<D: Header>(io: *mut CIo, subflow: u32, rate: f64, window: f64) {
    let Some(context) = context::<D>(io) else { return };
    let Some(subflow) = context.subflow(subflow, ("it sets a pace", "only a source does")) else { return };
    match asks::pace(Some(rate), Some(window)) {
        Ok((rate_bps, window_bytes)) => context.io.pace(subflow, rate_bps, window_bytes),
        Err(refusal) => context.refuse(refusal),
    }
}

extern "C" fn timer<D: Header>(io: *mut CIo, number: u32, at_ns: u64) {
    if let Some(context) = context::<D>(io) {
        context.io.timer(number, at_ns);
    }
}

extern "C" fn send<D: Header>(io: *mut CIo, subflow: u32, numbers: *const f64, bytes: u32, class: u32) {
    let Some(context) = context::<D>(io) else { return };
    let of_hop = ("it sends a message", "a hop changes the messages that pass");
    let (Some(subflow), Some(class)) = (context.subflow(subflow, of_hop), context.class(class)) else { return };
    if numbers.is_null() {
        return context.refuse(("a message has no numbers".into(), "pass SUBAK_NUMBERS numbers"));
    }
    // SAFETY: the header requires SUBAK_NUMBERS numbers at this address.
    let message = unsafe { *numbers.cast::<[f64; NUMBERS]>() };
    context.io.ctl(To::Sink, subflow, Numbers(message), class, bytes);
}

extern "C" fn pause<D: Header>(io: *mut CIo, class: u32, on: u32) {
    let Some(context) = context::<D>(io) else { return };
    let Some(class) = context.class(class) else { return };
    // The guard refuses a pause by a source. A hop pauses its own link, and the link number is ignored.
    context.io.pause(LinkId(0), class, on != 0);
}

extern "C" fn random<D: Header>(io: *mut CIo) -> f64 {
    context::<D>(io).map_or(0.0, |context| context.machine.random())
}

extern "C" fn note<D: Header>(io: *mut CIo, subflow: i32, name: *const c_char, value: f64) {
    let Some(context) = context::<D>(io) else { return };
    let of_hop = ("it notes a value of a subflow", "a hop has no subflows: give -1");
    let subflow = match u32::try_from(subflow) {
        Err(_) => None,
        Ok(number) => match context.subflow(number, of_hop) {
            None => return,
            known => known,
        },
    };
    context.noted += 1;
    if context.noted > MOST_NOTES {
        return context.refuse((format!("more than {MOST_NOTES} notes in one hook"), "note less often"));
    }
    // SAFETY: texts end with 0.
    let name = if name.is_null() { "".into() } else { unsafe { CStr::from_ptr(name) }.to_string_lossy() };
    let notes = &context.machine.created.notes;
    match notes.name(&name).and_then(|known| asks::note(&known, value).map(|value| (known, value))) {
        Ok(named) => notes.add(context.machine.who, subflow, context.io.now_ns, vec![named]),
        Err(refusal) => context.refuse(refusal),
    }
}

extern "C" fn fail<D: Header>(io: *mut CIo, why: *const c_char) {
    let Some(context) = context::<D>(io) else { return };
    // SAFETY: texts end with 0.
    let why = if why.is_null() { "it failed".into() } else { unsafe { CStr::from_ptr(why) }.to_string_lossy() };
    context.refuse((why.into_owned(), ""));
}

/// A state machine of the library, and the library itself.
pub(super) struct Called {
    created: Arc<Created>,
    machine: CMachine,
    who: Who,
    subflows: usize,
    seed: u64,
    stream: Option<Stream>,
}

// One thread calls the functions of a trial.
unsafe impl Send for Called {}

impl Called {
    fn random(&mut self) -> f64 {
        let seed = self.seed;
        self.stream.get_or_insert_with(|| Stream::new(seed, "outside")).unit()
    }

    /// Calls `run` with the machine and a `CIo` whose functions forward to `io`. Records a fault if a request was
    /// refused.
    #[inline]
    fn call<D: Header>(&mut self, name: &'static str, io: &mut Io<Foreign<D>>, run: impl FnOnce(CMachine, *mut CIo)) {
        let (now_ns, machine) = (io.now_ns, self.machine);
        let mut context = Context { io, machine: self, refusal: None, noted: 0 };
        let place = (&raw mut context).cast::<c_void>();
        let mut shown = CIo {
            now_ns,
            pace: pace::<D>,
            timer: timer::<D>,
            send: send::<D>,
            pause: pause::<D>,
            random: random::<D>,
            note: note::<D>,
            fail: fail::<D>,
            context: place,
        };
        run(machine, &raw mut shown);
        if let Some((what, hint)) = context.refusal {
            self.created.faults.note(Hook { name, who: self.who, at_ns: now_ns }, &what, &hint);
        }
    }
}

/// Converts `path` to the C structure of the header.
pub(super) fn path_of(path: &PathInfo, id: u32) -> CPath {
    CPath {
        line_rate_bps: path.line_rate_bps,
        min_capacity_bps: path.min_capacity_bps,
        base_rtt_ns: path.base_rtt_ns,
        hops: path.hops.into(),
        id,
    }
}

fn packet_of<D: Header>(packet: &Packet<Foreign<D>>) -> CPacket {
    let is_data = packet.kind == PacketKind::Data;
    CPacket {
        numbers: packet.data.numbers().0,
        sent_ns: packet.sent_ns,
        waited_ns: packet.waited_ns,
        flow: packet.flow.0,
        bytes: packet.bytes,
        payload_bytes: if is_data { packet.payload_bytes() } else { 0 },
        segment: packet.segment(),
        hop: packet.hop.into(),
        subflow: packet.subflow.0,
        is_data: is_data.into(),
        ecn: packet.ecn.into(),
        class: packet.class as u8,
    }
}

/// Converts `port` to the C structure of the header.
pub(super) fn port_of(port: &Port) -> CPort {
    CPort {
        capacity_bps: port.capacity_bps,
        delay_ns: port.delay_ns,
        buffer_bytes: port.buffer_bytes,
        queued_bytes: port.queued_bytes,
        rtt_ns: port.rtt_ns,
        seed: port.seed,
        link: port.link.0,
        queued_packets: port.queued_packets,
        mtu_bytes: port.mtu_bytes,
    }
}

/// Calls a function of the library's table, if it is set, with the machine, an `io` and the further arguments.
macro_rules! call {
    ($self:ident, $field:ident, $name:literal, $io:ident $(, $arg:expr)*) => {
        if let Some(hook) = $self.0.created.table().$field {
            // SAFETY: the arguments are those that the header declares; the library created the machine.
            $self.0.call($name, $io, |machine, io| unsafe { hook(machine, io $(, $arg)*) });
        }
    };
}

/// A sender whose hooks are functions of the library.
pub(super) struct LibrarySource(Called);

impl LibrarySource {
    pub fn new(created: Arc<Created>, machine: CMachine, flow: &FlowInfo) -> Self {
        let (who, subflows, seed) = (Who::Flow(flow.flow), flow.paths.len(), flow.seed);
        LibrarySource(Called { created, machine, who, subflows, seed, stream: None })
    }
}

impl Drop for LibrarySource {
    fn drop(&mut self) {
        if let Some(free) = self.0.created.table().source_free.filter(|_| !self.0.machine.is_null()) {
            // SAFETY: the library's `source` created the machine, and no hook is called with it any more.
            unsafe { free(self.0.machine) };
        }
    }
}

impl<D: Header> Source<Foreign<D>> for LibrarySource {
    fn on_start(&mut self, io: &mut Io<Foreign<D>>) {
        call!(self, on_start, "on_start", io);
    }
    fn stamp(&mut self, now_ns: Ns, packet: &mut Packet<Foreign<D>>, remaining_bytes: u64) {
        let Some(hook) = self.0.created.table().stamp else { return };
        let mut shown = packet_of(packet);
        // SAFETY: the arguments are those that the header declares.
        unsafe { hook(self.0.machine, now_ns, &raw mut shown, remaining_bytes) };
        packet.data.set(Numbers(shown.numbers));
        packet.ecn = shown.ecn != 0;
        match Class::ALL.get(usize::from(shown.class)) {
            Some(&class) => packet.class = class,
            None => {
                let what = format!("there is no class {}", shown.class);
                let hook = Hook { name: "stamp", who: self.0.who, at_ns: now_ns };
                self.0.created.faults.note(hook, &what, "give SUBAK_CONTROL, SUBAK_HIGH or SUBAK_LOW");
            }
        }
    }
    #[inline]
    fn on_ack(&mut self, io: &mut Io<Foreign<D>>, ack: &Ack<D>) {
        let telemetry = ack.data.telemetry();
        let shown = CAck {
            numbers: ack.data.numbers().0,
            acked_bytes: ack.acked_bytes,
            rtt_ns: ack.rtt_ns,
            in_flight_bytes: ack.in_flight_bytes,
            remaining_bytes: ack.remaining_bytes,
            links: telemetry.map_or(std::ptr::null(), |header| header.links.as_ptr()),
            link_count: telemetry.map_or(0, |header| header.hops.into()),
            path_id: telemetry.map_or(0, |header| header.path),
            segment: ack.segment,
            next_segment: ack.next_segment,
            subflow: ack.subflow.0,
            ecn: ack.ecn.into(),
        };
        call!(self, on_ack, "on_ack", io, &raw const shown);
    }
    fn on_loss(&mut self, io: &mut Io<Foreign<D>>, loss: &Loss) {
        let kind = match loss.kind {
            LossKind::Reordered => 0,
            LossKind::Timeout => 1,
            LossKind::OutOfOrder => 2,
        };
        let Loss { subflow, segment, next_segment, in_flight_bytes, .. } = *loss;
        let shown = CLoss { in_flight_bytes, segment, next_segment, subflow: subflow.0, kind };
        call!(self, on_loss, "on_loss", io, &raw const shown);
    }
    fn on_timer(&mut self, io: &mut Io<Foreign<D>>, timer: u32) {
        call!(self, on_timer, "on_timer", io, timer);
    }
    fn on_ctl(&mut self, io: &mut Io<Foreign<D>>, subflow: SubflowId, message: Numbers) {
        call!(self, on_message, "on_message", io, message.0.as_ptr(), subflow.0.into());
    }
    fn on_weight(&mut self, io: &mut Io<Foreign<D>>, weight: f64, _utility: &Arc<Utility>) {
        call!(self, on_weight, "on_weight", io, weight);
    }
    fn on_reroute(&mut self, io: &mut Io<Foreign<D>>, subflow: SubflowId, path: &PathInfo, links: &[LinkId]) {
        let shown = path_of(path, identity(links));
        call!(self, on_reroute, "on_reroute", io, subflow.0.into(), &raw const shown);
    }
    fn on_finish(&mut self, io: &mut Io<Foreign<D>>) {
        call!(self, on_finish, "on_finish", io);
    }
}

/// State at a link whose hooks are functions of the library.
pub(super) struct LibraryHop(Called);

impl LibraryHop {
    pub fn new(created: Arc<Created>, machine: CMachine, port: &Port) -> Self {
        let who = Who::Link(port.link);
        LibraryHop(Called { created, machine, who, subflows: 0, seed: port.seed, stream: None })
    }
}

impl Drop for LibraryHop {
    fn drop(&mut self) {
        if let Some(free) = self.0.created.table().hop_free {
            // SAFETY: the library's `hop` created the machine, and no hook is called with it any more.
            unsafe { free(self.0.machine) };
        }
    }
}

/// Calls a function of the library's table with a packet, then copies back the numbers and the ECN mark that it set.
macro_rules! show {
    ($self:ident, $field:ident, $name:literal, $io:ident, $packet:ident, $port:ident) => {
        if $self.0.created.table().$field.is_some() {
            let (mut packet, port) = (packet_of($packet), port_of($port));
            call!($self, $field, $name, $io, &raw mut packet, &raw const port);
            $packet.data.set(Numbers(packet.numbers));
            $packet.ecn = packet.ecn != 0;
        }
    };
}

impl<D: Header> Hop<Foreign<D>> for LibraryHop {
    fn on_start(&mut self, io: &mut Io<Foreign<D>>) {
        call!(self, hop_on_start, "on_start", io);
    }
    fn on_enqueue(&mut self, io: &mut Io<Foreign<D>>, packet: &mut Packet<Foreign<D>>, port: &Port) {
        show!(self, hop_on_enqueue, "on_enqueue", io, packet, port);
    }
    fn on_dequeue(&mut self, io: &mut Io<Foreign<D>>, packet: &mut Packet<Foreign<D>>, port: &Port) {
        show!(self, hop_on_dequeue, "on_dequeue", io, packet, port);
    }
    fn on_ctl(&mut self, io: &mut Io<Foreign<D>>, message: &mut Numbers, visit: Visit, port: &Port) {
        let shown = CVisit {
            flow: visit.flow.0,
            hop: visit.hop.into(),
            subflow: visit.subflow.0,
            forward: visit.forward.into(),
        };
        let port = port_of(port);
        call!(self, hop_on_message, "on_message", io, message.0.as_mut_ptr(), &raw const shown, &raw const port);
    }
    fn on_timer(&mut self, io: &mut Io<Foreign<D>>, timer: u32, port: &Port) {
        let port = port_of(port);
        call!(self, hop_on_timer, "on_timer", io, timer, &raw const port);
    }
    fn on_capacity(&mut self, port: &Port) {
        let Some(hook) = self.0.created.table().hop_on_capacity else { return };
        let port = port_of(port);
        // SAFETY: the arguments are those that the header declares.
        unsafe { hook(self.0.machine, &raw const port) };
    }
}
