//! User-supplied schemes, in Python or behind a table of C functions. Their state machines are boxed, and their
//! requests are checked before the backend carries them out. If such a scheme fails, the run ends with an error
//! message.

mod asks;
mod calls;
mod facts;
mod guard;
mod header;
mod library;
mod loaded;
mod notes;
mod table;

pub use asks::{Refusal, note, pace, rate_bps, subflow, window_bytes};
pub use facts::{BuiltInHop, Facts, Marking, QueueKind, QueueLength};
pub use guard::{Faults, Hook, Who};
pub use header::{Header, NUMBERS, Numbers};
pub use library::{Copied, LibraryDefinition};
pub use notes::{MOST_NOTES, Notes};

use crate::lossless::room_bytes;
use crate::red::RedMarker;
use crate::telemetry::IntHeader;
use guard::{ForeignHop, ForeignSink, ForeignSource, Guarded};
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use subak_core::scheme::{
    Around, Controller, Doubt, FlowInfo, Hop, Info, Marks, NodeInfo, NodeMachine, Note, Params, Port, Refused,
    Requester, Rules, Scheme, Sink, Source,
};
use subak_core::{InputError, Network, Ns};

/// Schemes created only to read their properties, by parameters. They are never run, so that they can be reused.
#[derive(Default)]
pub struct AskedSchemes(Mutex<HashMap<String, Made>>);

impl AskedSchemes {
    /// The scheme with `params`, which `make` creates at the first call.
    pub fn get(&self, params: &Params, make: impl FnOnce() -> Result<Made, InputError>) -> Result<Made, InputError> {
        let key = format!("{params:?}");
        if let Some(known) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(known.clone());
        }
        let made = make()?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, made.clone());
        Ok(made)
    }
}

/// A user-supplied scheme, loaded but without values of its parameters.
pub trait Definition: Debug + Send + Sync {
    /// Name, parameters and goal of the scheme.
    fn info(&self) -> &Info;
    /// One line that changes if results may differ for the same parameters: a hash of the source, the language's
    /// version.
    fn identity(&self) -> &str;
    /// Creates the scheme with `params`; it shares no state with one created before.
    fn make(&self, params: &Params) -> Result<Made, InputError>;
    /// The scheme with `params`, to read its properties and not to run it; it may be one created before.
    fn asked(&self, params: &Params) -> Result<Made, InputError> {
        self.make(params)
    }
    /// Whether several threads may run the scheme's machines.
    fn is_parallel(&self) -> bool {
        true
    }
    /// Runs `work`, a trial. An implementation may prepare the thread before, and may watch hooks meanwhile, so that
    /// `cancel` also ends a hook that does not return.
    fn around(&self, cancel: &AtomicBool, work: &mut (dyn FnMut() + Send)) {
        let _ = cancel;
        work();
    }
}

/// A user-supplied scheme with values of its parameters.
#[derive(Clone)]
pub enum Made {
    /// Packets have numbers.
    WithNumbers(Foreign),
    /// Packets have no numbers, and hooks do not see packets.
    Plain(Foreign<()>),
    /// Links add their telemetry to packets, and hooks do not see packets.
    WithTelemetry(Foreign<IntHeader>),
}

/// Creates the state machines of a user-supplied scheme.
pub trait Makes<D: Header = Numbers>: Send + Sync {
    /// Properties that the scheme declares.
    fn facts(&self) -> &Facts;
    /// Record of the scheme's first fault.
    fn faults(&self) -> &Faults;
    /// Values that the scheme's hooks recorded; `None` if they cannot record any.
    fn notes(&self) -> Option<&Notes> {
        None
    }
    /// The sender of `flow`.
    fn source(&self, flow: &FlowInfo) -> Box<dyn Source<Foreign<D>>>;
    /// The scheme's state at a link; `None` if it has none.
    fn hop(&self, port: &Port) -> Option<Box<dyn Hop<Foreign<D>>>> {
        let _ = port;
        None
    }
    /// The receiver of `flow`; `None`: a receiver that echoes the numbers of each packet in its ACK.
    fn sink(&self, flow: &FlowInfo) -> Option<Box<dyn Sink<Foreign<D>>>> {
        let _ = flow;
        None
    }
    /// The state machine of a node; `None` if the scheme has none there.
    fn node(&self, node: &NodeInfo) -> Option<Box<dyn NodeMachine<Foreign<D>>>> {
        let _ = node;
        None
    }
    /// The central controller of a scheme that [has one](Facts::has_controller). On a network without links the
    /// controller is only asked for, and never called.
    fn controller(&self, network: &Network) -> Option<Box<dyn Controller<Foreign<D>>>> {
        let _ = network;
        None
    }
}

/// A user-supplied scheme whose packets have the header `D`.
#[derive(Clone)]
pub struct Foreign<D: Header = Numbers>(pub Arc<dyn Makes<D>>);

impl<D: Header> Scheme for Foreign<D> {
    type Data = D;
    type Ctl = Numbers;
    type Queue = D::Queue;
    type Source = ForeignSource<D>;
    type Hop = ForeignHop<D>;
    type Sink = ForeignSink<D>;

    /// # Errors
    /// Always: only a [`Definition`] creates a user-supplied scheme.
    fn new(_params: &Params) -> Result<Self, InputError> {
        Err(InputError::new("scheme", "a scheme from outside has no name of its own", "load its definition"))
    }
    fn rules(&self) -> Rules {
        self.0.facts().rules
    }
    fn fault(&self) -> Option<InputError> {
        self.0.faults().get()
    }
    fn take_notes(&self) -> Vec<Note> {
        self.0.notes().map(Notes::take).unwrap_or_default()
    }
    fn on_refused(&self, sender: Requester, why: Refused, at_ns: Ns) {
        let who = match sender {
            Requester::Flow(flow) => Who::Flow(flow),
            Requester::Node(node) => Who::Node(node),
            Requester::Controller => Who::Controller,
        };
        let (name, what, hint) = match why {
            Refused::Unbounded => {
                ("pace", "a GiB is in flight".to_string(), "give a rate or a window that bounds the flow")
            }
            Refused::Endless => {
                let what = "messages that take no time answer each other without end";
                ("send", what.to_string(), "answer a message once, or after a timer")
            }
            Refused::Elsewhere(flow) => {
                let what = format!("it writes to flow {flow}, which starts at another host");
                ("send", what, "write to flows of the host; the controller reaches all")
            }
            Refused::NoFlow(flow) => {
                ("send", format!("there is no flow {flow}"), "give the number of a flow that sent a message")
            }
            Refused::NoMachine => {
                let what = "the flow's host has no state: node() returned None for it";
                ("send", what.to_string(), "return a subak.Node for hosts")
            }
            Refused::NoWay => {
                let what = "there is no way to the controller or from it: hosts have one once it has its place";
                ("send", what.to_string(), "send to and from hosts, in on_controller and on_place or later")
            }
        };
        self.0.faults().note(Hook { name, who, at_ns }, &what, hint);
    }
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        let facts = self.0.facts();
        // The ports of a lossless switch share its buffer.
        let Some(marking) = facts.marks.as_ref().filter(|_| facts.rules.lossless.is_none()) else { return Vec::new() };
        Doubt::of_marking(around, &marking.param, |port| marking.threshold.bytes(port)).into_iter().collect()
    }
    fn marks(&self, port: &Port) -> Option<Marks> {
        self.0.facts().marks.as_ref().map(|marking| marking.at(port))
    }
    fn queue(&self, port: &Port) -> D::Queue {
        let facts = self.0.facts();
        D::queue(facts.queue, port, room_bytes(facts.rules.lossless, port))
    }
    fn source(&self, flow: &FlowInfo) -> ForeignSource<D> {
        Guarded::new(self.0.source(flow), Who::Flow(flow.flow), flow.paths.len(), self.0.faults())
    }
    fn hop(&self, port: &Port) -> ForeignHop<D> {
        let facts = self.0.facts();
        let guarded = |machine| Box::new(Guarded::new(machine, Who::Link(port.link), 0, self.0.faults()));
        let red = facts.marks.as_ref().and_then(|marking| marking.red_at(port));
        ForeignHop {
            marks_bytes: facts.marks.as_ref().map_or(u64::MAX, |marking| marking.threshold.bytes(port)),
            red: red.map(|red| Box::new(RedMarker::new(red, port.seed))),
            built_in: D::built_in(facts.hop, port),
            guarded: self.0.hop(port).map(guarded),
        }
    }
    fn sink(&self, flow: &FlowInfo) -> ForeignSink<D> {
        let (who, subflows) = (Who::Sink(flow.flow), flow.paths.len());
        let guarded = |machine| Box::new(Guarded::new(machine, who, subflows, self.0.faults()));
        ForeignSink { guarded: self.0.sink(flow).map(guarded) }
    }
    fn controller(&self, network: &Network) -> Option<Box<dyn Controller<Self>>> {
        let machine = self.0.facts().has_controller.then(|| self.0.controller(network))??;
        Some(Box::new(Guarded::new(machine, Who::Controller, 0, self.0.faults())))
    }
    fn node(&self, node: &NodeInfo) -> Option<Box<dyn NodeMachine<Self>>> {
        Some(Box::new(Guarded::new(self.0.node(node)?, Who::Node(node.node), 0, self.0.faults())))
    }
}
