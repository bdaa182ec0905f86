//! Several schemes on one network: each flow has the state machines of its own scheme, and all packets share drop-tail
//! FIFOs, one for each class if a scheme has classes. A link shows every packet to the hops of all schemes, and a hop
//! changes only packets of its own scheme: an ECN mark on a packet of another scheme would have no effect.

mod boxed;
mod header;
mod member;
mod queue;

pub use header::SharedHeader;
pub use queue::SharedQueue;

use crate::registry::{self, Chosen, GivenParams, with_scheme};
use boxed::{BoxedSink, BoxedSource};
use member::{AnyMember, MemberBuilder};
use queue::Wanted;
use std::fmt::Debug;
use subak_core::scheme::{
    Around, Doubt, FlowInfo, Hop, Io, Load, Marks, NodeInfo, Note, Packet, Params, Port, Recovery, Refused, Requester,
    Rules, Scheme, SimulationCost, Visit,
};
use subak_core::{InputError, Network, Nic, NodeKind, Ns};

/// One of the schemes of a run.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    /// Label in messages.
    pub label: &'a str,
    /// The scheme.
    pub chosen: Chosen<'a>,
    /// Its parameters.
    pub params: &'a GivenParams,
}

/// Several schemes on one network.
pub struct Beside {
    members: Vec<Box<dyn AnyMember>>,
    labels: Vec<String>,
    /// A hint for each scheme whose queues are no drop-tail FIFOs.
    hints: Vec<&'static str>,
    rules: Rules,
}

/// A control message of one of the schemes.
#[derive(Debug)]
pub struct SharedMessage {
    owner: u8,
    content: Box<dyn member::Content>,
}

impl Clone for SharedMessage {
    fn clone(&self) -> Self {
        SharedMessage { owner: self.owner, content: self.content.copy() }
    }
}

/// The hops of those schemes that have one.
pub struct Hops(Vec<Box<dyn Hop<Beside>>>);

impl Beside {
    /// The schemes `members`, whose indices flows have; an error if they cannot share links. `nic`: the scheduling of
    /// NICs that the network sets.
    pub fn of(members: &[Member], nic: Nic) -> Result<Self, InputError> {
        let boxed = |(owner, member): (usize, &Member)| {
            let made = with_scheme(member.chosen, member.params, MemberBuilder { owner: owner as u8 });
            made.and_then(|made| made.map_err(|why| refusal(member.label, why)))
        };
        let made = members.iter().enumerate().map(boxed).collect::<Result<Vec<_>, _>>()?;
        let labels: Vec<String> = members.iter().map(|member| member.label.to_string()).collect();
        let rules: Vec<Rules> = made.iter().map(|member| member.rules()).collect();
        for (k, other) in rules.iter().enumerate() {
            if let Some((what, hint)) = unlike(&rules[0], other, nic) {
                let what = format!("schemes \"{}\" and \"{}\" cannot share links: {what}", labels[0], labels[k]);
                return Err(InputError::new("scheme", what, hint));
            }
        }
        let most = |of: fn(&Rules) -> f64| rules.iter().map(of).fold(0.0, f64::max);
        let one_path = rules.iter().any(|rules| rules.one_path);
        // Hops see copies of packets, and source and sink are called by pointers: 4 to 7% more time (DCTCP, CUBIC).
        let per_hop = 1.1 * most(|rules| rules.per_hop);
        let recovers = rules.iter().all(|rules| rules.recovers);
        let rules = Rules { one_path, recovers, per_hop, ..rules[0] };
        let hints = members.iter().map(|member| hint_of_queue(member.chosen)).collect();
        Ok(Beside { members: made, labels, hints, rules })
    }

    /// The queue that all schemes share at a port.
    fn wanted(&self, port: &Port) -> Option<Wanted> {
        let mut wanted = self.members.iter().map(|member| member.wanted(port));
        let first = wanted.next()??;
        wanted.try_fold(first, |one, other| one.with(other?))
    }

    /// An error if the schemes ask for different queues or marks at one of `ports`, the links of `network`.
    pub fn check(&self, ports: &[Port], network: &Network) -> Result<(), InputError> {
        for (node, named) in network.nodes().iter_enumerated() {
            let is_host = named.kind == NodeKind::Host;
            let info = NodeInfo { node, is_host, out: network.out_links(node).to_vec(), into: Vec::new(), seed: 0 };
            let mut members = self.members.iter().zip(&self.labels);
            if let Some((_, label)) = members.find(|(member, _)| member.has_node(&info)) {
                return Err(refusal(label, format!("it has state at node \"{}\"", named.name)));
            }
        }
        for port in ports {
            let link = || network.links()[port.link].id.clone();
            for ((member, label), hint) in self.members.iter().zip(&self.labels).zip(&self.hints) {
                if member.wanted(port).is_none() {
                    let why = format!("its queue at link \"{}\" is no drop-tail FIFO", link());
                    return Err(InputError { hint: hint.to_string(), ..refusal(label, why) });
                }
            }
            if self.wanted(port).is_none() {
                let what = format!(
                    "schemes \"{}\" cannot share links: their queues at link \"{}\" differ in size or in the class of ACKs",
                    self.labels.join("\", \""),
                    link()
                );
                return Err(InputError::new("scheme", what, "set params.pfc and params.ack_priority to the same"));
            }
            let mut marking =
                self.members.iter().zip(&self.labels).filter_map(|(m, label)| Some((m.marks(port)?, label)));
            let Some((first, label)) = marking.next() else { continue };
            if let Some((other, of_other)) = marking.find(|(marks, _)| !marks.agree(&first)) {
                let what = format!(
                    "schemes \"{label}\" and \"{of_other}\" mark packets from different queue lengths on: params.{} comes to {} bytes \
                     at link \"{}\", and params.{} to {}",
                    first.param,
                    of(&first),
                    link(),
                    other.param,
                    of(&other)
                );
                let hint = match first.param == other.param {
                    true => format!("a queue has one threshold: set params.{} of both to the same", first.param),
                    false => format!(
                        "a queue has one rule of marking: let params.{} and params.{} come to the same bytes, and their other end \
                         and largest probability too",
                        first.param, other.param
                    ),
                };
                return Err(InputError::new("scheme", what, hint));
            }
        }
        Ok(())
    }
}

/// Parameter by which a scheme has drop-tail FIFOs.
fn hint_of_queue(chosen: Chosen) -> &'static str {
    let params = match chosen {
        Chosen::Named(name) => registry::find(name).map_or(&[][..], |info| info.params),
        Chosen::Foreign(definition) => definition.info().params,
    };
    let has_queue = params.iter().any(|param| param.key.name == "queue");
    if has_queue { "set params.queue = \"fifo\"" } else { "run it alone" }
}

/// The queue lengths in words.
fn of(marks: &Marks) -> String {
    match marks.low_bytes == marks.high_bytes {
        true => marks.low_bytes.to_string(),
        false => format!("{} to {} (up to {})", marks.low_bytes, marks.high_bytes, marks.most),
    }
}

fn refusal(label: &str, why: String) -> InputError {
    let what = format!("scheme \"{label}\" cannot share links with another: {why}");
    InputError::new("scheme", what, "run it alone")
}

/// The property in which two schemes differ that a network has only once, and a hint; `None` if there is none.
fn unlike(one: &Rules, other: &Rules, nic: Nic) -> Option<(String, &'static str)> {
    if one.lossless != other.lossless {
        let what = match (one.lossless, other.lossless) {
            (Some(_), Some(_)) => "their parameters of PFC differ",
            _ => "switches are lossless under one of them alone (PFC)",
        };
        return Some((what.to_string(), "set params.pfc and what belongs to it to the same, such as \"off\""));
    }
    let bytes = |rules: &Rules| (rules.headers.data_bytes, rules.headers.ack_bytes);
    if one.headers != other.headers {
        let what = format!("their headers add {:?} and {:?} bytes to data and ACKs", bytes(one), bytes(other));
        return Some((what, "set params.header and params.ack_header to 0, or run each alone"));
    }
    let scheduling = |rules: &Rules| rules.nic.unwrap_or(nic);
    if scheduling(one) != scheduling(other) {
        let what = "one schedules NICs round robin, and the other has one queue".to_string();
        return Some((what, "set network.nic = \"round-robin\""));
    }
    let shares = [one, other].iter().any(|rules| rules.share() < 1.0);
    let differ = one.acks != other.acks || one.clock != other.clock || one.pacing != other.pacing;
    let what = "their links differ in the share for data, the class of ACKs, or the times of packets".to_string();
    (shares || differ).then_some((what, "run each alone"))
}

impl Clone for Beside {
    fn clone(&self) -> Self {
        let members = self.members.iter().map(|member| member.copy()).collect();
        Beside { members, labels: self.labels.clone(), hints: self.hints.clone(), rules: self.rules }
    }
}

impl Debug for Beside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Beside").field(&self.labels).finish()
    }
}

impl Scheme for Beside {
    type Data = SharedHeader;
    type Ctl = SharedMessage;
    type Queue = SharedQueue;
    type Source = BoxedSource;
    type Hop = Hops;
    type Sink = BoxedSink;

    /// # Errors
    /// Always: several schemes are made by [`Beside::of`].
    fn new(_params: &Params) -> Result<Self, InputError> {
        Err(InputError::new("scheme", "several schemes have no name of their own", "name each"))
    }
    fn rules(&self) -> Rules {
        self.rules
    }
    fn recovery(&self, scheme: u8) -> Recovery {
        self.members[usize::from(scheme)].rules().recovery
    }
    fn marks(&self, port: &Port) -> Option<Marks> {
        self.members.iter().find_map(|member| member.marks(port))
    }
    fn work(&self, load: &Load) -> SimulationCost {
        SimulationCost { per_hop: self.rules.per_hop, ..self.members[0].work(load) }
    }
    fn sends_ctl(&self) -> bool {
        self.members.iter().any(|member| member.sends_ctl())
    }
    fn fault(&self) -> Option<InputError> {
        self.members.iter().find_map(|member| member.fault())
    }
    fn take_notes(&self) -> Vec<Note> {
        let mut notes: Vec<Note> = self.members.iter().flat_map(|member| member.take_notes()).collect();
        notes.sort_by_key(|note| note.time_ns);
        notes
    }
    fn on_refused(&self, sender: Requester, why: Refused, at_ns: Ns) {
        self.members.iter().for_each(|member| member.on_refused(sender, why, at_ns));
    }
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        self.members.iter().flat_map(|member| member.doubts(around)).collect()
    }
    fn queue(&self, port: &Port) -> SharedQueue {
        self.wanted(port).unwrap_or(Wanted::Fifo(port.buffer_bytes)).queue()
    }
    fn source(&self, flow: &FlowInfo) -> BoxedSource {
        BoxedSource(self.members[usize::from(flow.scheme)].source(flow))
    }
    fn hop(&self, port: &Port) -> Hops {
        Hops(self.members.iter().filter_map(|member| member.hop(port, self.members.len() as u32)).collect())
    }
    fn sink(&self, flow: &FlowInfo) -> BoxedSink {
        BoxedSink(self.members[usize::from(flow.scheme)].sink(flow))
    }
}

impl Hop<Beside> for Hops {
    fn observes_departures(&self) -> bool {
        self.0.iter().any(|hop| hop.observes_departures())
    }
    fn has_state(&self) -> bool {
        self.0.iter().any(|hop| hop.has_state())
    }
    fn on_start(&mut self, io: &mut Io<Beside>) {
        self.0.iter_mut().for_each(|hop| hop.on_start(io));
    }
    #[inline]
    fn on_enqueue(&mut self, io: &mut Io<Beside>, packet: &mut Packet<Beside>, port: &Port) {
        self.0.iter_mut().for_each(|hop| hop.on_enqueue(io, packet, port));
    }
    #[inline]
    fn on_dequeue(&mut self, io: &mut Io<Beside>, packet: &mut Packet<Beside>, port: &Port) {
        self.0.iter_mut().for_each(|hop| hop.on_dequeue(io, packet, port));
    }
    fn on_capacity(&mut self, port: &Port) {
        self.0.iter_mut().for_each(|hop| hop.on_capacity(port));
    }
    fn on_topology(&mut self, port: &Port) {
        self.0.iter_mut().for_each(|hop| hop.on_topology(port));
    }
    fn on_ctl(&mut self, io: &mut Io<Beside>, message: &mut SharedMessage, visit: Visit, port: &Port) {
        self.0.iter_mut().for_each(|hop| hop.on_ctl(io, message, visit, port));
    }
    fn on_timer(&mut self, io: &mut Io<Beside>, timer: u32, port: &Port) {
        self.0.iter_mut().for_each(|hop| hop.on_timer(io, timer, port));
    }
}
