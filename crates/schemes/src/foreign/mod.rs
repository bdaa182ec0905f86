//! User-supplied schemes, in Python or behind a table of C functions. Their state machines are boxed, and their
//! requests are checked before the backend carries them out. If such a scheme fails, the run ends with an error
//! message.

mod asks;
mod calls;
mod facts;
mod guard;
mod library;
mod loaded;
mod notes;
mod table;

pub use asks::{note, pace, rate_bps, subflow, window_bytes};
pub use facts::{Facts, Marks, QueueKind};
pub use guard::{Faults, Hook, Who};
pub use library::{Copied, LibraryDefinition};
pub use notes::Notes;

use crate::queue::{Fifo, PFabricQueue, Priority, Ranked, Stfq, VirtualLength};
use guard::{ForeignHop, ForeignSink, ForeignSource, Guarded};
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use subak_core::scheme::{
    Around, Doubt, FlowInfo, Hop, Info, Note, Packet, Params, Port, Queue, Rules, Scheme, Sink, Source,
};
use subak_core::{FlowId, InputError, Ns};

/// Count of numbers in a packet's header, or in a control message.
pub const NUMBERS: usize = 8;

/// Numbers of a user-supplied scheme in a packet's header, or in a control message.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Numbers(pub [f64; NUMBERS]);

/// Header of the packets of a user-supplied scheme: [`Numbers`], or `()` for a scheme none of whose hooks sees packets.
/// Packets without numbers are half as large.
pub trait Header: Copy + Default + Debug + Send + 'static {
    /// Whether hooks see packets: `stamp`, `on_enqueue`, `on_dequeue` and `on_data`.
    const SHOWN: bool;
    /// Output queue of a scheme with these headers.
    type Queue: Queue<Foreign<Self>>;
    /// An empty queue of type `kind` at `port`. Headers without numbers only have drop-tail FIFOs.
    fn queue(kind: QueueKind, port: &Port) -> Self::Queue;
    /// The numbers; zeros without them.
    fn numbers(&self) -> Numbers;
    /// The header with these numbers.
    fn of(numbers: Numbers) -> Self;
}

impl Header for () {
    const SHOWN: bool = false;
    type Queue = Fifo;
    fn queue(kind: QueueKind, port: &Port) -> Fifo {
        debug_assert!(matches!(kind, QueueKind::Fifo), "other queues read the numbers of packets");
        Fifo::new(port.buffer_bytes)
    }
    #[inline]
    fn numbers(&self) -> Numbers {
        Numbers::default()
    }
    #[inline]
    fn of(_numbers: Numbers) {}
}

impl Header for Numbers {
    const SHOWN: bool = true;
    type Queue = Box<dyn Queue<Foreign>>;
    fn queue(kind: QueueKind, port: &Port) -> Self::Queue {
        match kind {
            QueueKind::Fifo => Box::new(Fifo::new(port.buffer_bytes)),
            QueueKind::Priority => Box::new(Priority::new(port.buffer_bytes)),
            QueueKind::Rank => Box::new(PFabricQueue::new(port.buffer_bytes)),
            QueueKind::Stfq => Box::new(Stfq::new(port)),
            QueueKind::FairCodel(plan) => Box::new(plan.queue(port)),
        }
    }
    #[inline]
    fn numbers(&self) -> Numbers {
        *self
    }
    #[inline]
    fn of(numbers: Numbers) -> Self {
        numbers
    }
}

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
    fn on_flood(&self, flow: FlowId, at_ns: Ns) {
        let hook = Hook { name: "pace", who: Who::Flow(flow), at_ns };
        self.0.faults().note(hook, "a GiB is in flight", "give a rate or a window that bounds the flow");
    }
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        let facts = self.0.facts();
        let Some((param, marks)) = &facts.marks else { return Vec::new() };
        Doubt::of_marking(around, param, |port| marks.bytes(port)).into_iter().collect()
    }
    fn queue(&self, port: &Port) -> D::Queue {
        D::queue(self.0.facts().queue, port)
    }
    fn source(&self, flow: &FlowInfo) -> ForeignSource<D> {
        Guarded::new(self.0.source(flow), Who::Flow(flow.flow), flow.paths.len(), self.0.faults())
    }
    fn hop(&self, port: &Port) -> ForeignHop<D> {
        let guarded = |machine| Box::new(Guarded::new(machine, Who::Link(port.link), 0, self.0.faults()));
        ForeignHop {
            marks_bytes: self.0.facts().marks.as_ref().map_or(u64::MAX, |(_, marks)| marks.bytes(port)),
            guarded: self.0.hop(port).map(guarded),
        }
    }
    fn sink(&self, flow: &FlowInfo) -> ForeignSink<D> {
        let (who, subflows) = (Who::Sink(flow.flow), flow.paths.len());
        let guarded = |machine| Box::new(Guarded::new(machine, who, subflows, self.0.faults()));
        ForeignSink { guarded: self.0.sink(flow).map(guarded) }
    }
}

/// The rank of a packet is the first number of its header. Queues also read this number as its virtual length.
impl Ranked for Foreign {
    fn rank(packet: &Packet<Foreign>) -> u64 {
        packet.data.0[0].max(0.0) as u64
    }
}

impl VirtualLength for Numbers {
    fn virtual_len(&self) -> f64 {
        let length = self.0[0];
        if length.is_finite() { length.max(0.0) } else { 0.0 }
    }
}
