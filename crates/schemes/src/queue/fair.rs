//! The fair queue of a link: start-time fair queueing, or one of its approximations by a few FIFOs.

use super::{Afq, Beyond, Service, Share, SpPifo, Stfq, VirtualLength, WeightedQueues};
use subak_core::keys::AMOUNT;
use subak_core::scheme::{PacketId, Param, Params, Pop, Port, Queue, Scheme, Slab};
use subak_core::{InputError, Ns};

/// Parameter `queue`: the discipline of a link's queue.
pub const QUEUE: Param = Param::choice(
    "queue",
    &["stfq", "weighted", "sp-pifo", "afq"],
    "queue of a link: STFQ with a sorted queue; or a few FIFOs: of fixed weights, of strict priorities that \
     adapt to STFQ's virtual starts (SP-PIFO), or calendar queues (AFQ)",
);
/// Parameter `queues`: number of FIFOs of data.
pub const QUEUES: Param =
    Param::number("queues", 8.0, AMOUNT, "FIFOs of data at a link").only("queue", &["weighted", "sp-pifo", "afq"]);
/// Parameter `queue_low`: the lowest weight that queues distinguish.
pub const LOW: Param = Param::number(
    "queue_low",
    0.0,
    AMOUNT,
    "lowest weight of the queues, and the weight whose full packet is as long as all rounds of AFQ; in link rates under \
     optimizers whose weights stand for rates; 0: a twentieth of queue_high, and without it 0.05, or 1 under other \
     optimizers",
)
.only("queue", &["weighted", "afq"]);
/// Parameter `queue_high`: weight of the last queue.
pub const HIGH: Param = Param::number(
    "queue_high",
    0.0,
    AMOUNT,
    "highest weight of the queues, in the unit of queue_low; 0: 20 times queue_low",
)
.only("queue", &["weighted"]);
/// Parameter `share`: a queue's share of the link.
pub const SHARE: Param = Param::choice(
    "share",
    &["flows", "queue"],
    "share of a queue: its weight times the number of its flows, or its weight alone, which its flows divide",
)
.only("queue", &["weighted"]);
/// Parameter `service`: the order in which queues of fixed weights are served.
pub const SERVICE: Param = Param::choice(
    "service",
    &["wfq", "drr"],
    "service of the queues: start-time fair queueing with one virtual finish a queue, or deficit round robin",
)
.only("queue", &["weighted"]);
/// Parameter `beyond`: packets of rounds without a FIFO.
pub const BEYOND: Param = Param::choice(
    "beyond",
    &["last", "drop"],
    "packets whose round has no FIFO yet: put into the last round, or dropped, as in AFQ's paper",
)
.only("queue", &["afq"]);
/// Parameter `sketch`: size of the count-min sketch.
pub const SKETCH: Param = Param::number(
    "sketch",
    0.0,
    AMOUNT,
    "counters in each of the 2 rows of the count-min sketch of virtual finishes; 0: one counter for each flow",
)
.only("queue", &["afq"]);

/// Ratio of the default highest weight to the lowest.
const RANGE: f64 = 20.0;

/// Parameters of the fair queues of a network.
#[derive(Debug, Clone, Copy)]
pub struct FairPlan {
    discipline: Discipline,
    queues: usize,
    low: f64,
    high: f64,
}

#[derive(Debug, Clone, Copy)]
enum Discipline {
    Stfq,
    Weighted(Share, Service),
    SpPifo,
    Afq { beyond: Beyond, columns: usize },
}

impl FairPlan {
    /// Most queues of a link. Switches have 8 to 32.
    const MOST_QUEUES: f64 = 1024.0;
    /// Most counters in a row of a link's sketch. AFQ's paper has up to 16,384.
    const MOST_COUNTERS: f64 = 65_536.0;

    /// Reads the parameters.
    pub fn new(params: &Params) -> Result<Self, InputError> {
        let discipline = match params.word("queue") {
            "weighted" => {
                let share = if params.word("share") == "queue" { Share::Queue } else { Share::Flows };
                let service = if params.word("service") == "drr" { Service::Drr } else { Service::Wfq };
                Discipline::Weighted(share, service)
            }
            "sp-pifo" => Discipline::SpPifo,
            "afq" => {
                let beyond = if params.word("beyond") == "drop" { Beyond::Drop } else { Beyond::Last };
                Discipline::Afq { beyond, columns: params.whole("sketch", 0.0, Self::MOST_COUNTERS)? as usize }
            }
            _ => Discipline::Stfq,
        };
        let (low, high) = (params.within("queue_low", 0.0, 1e12)?, params.within("queue_high", 0.0, 1e15)?);
        if high > 0.0 && high <= low {
            let what = format!("queue_high is {high}, and queue_low is {low}");
            return Err(InputError::new("params.queue_high", what, "give a value above queue_low"));
        }
        Ok(FairPlan { discipline, queues: params.whole("queues", 1.0, Self::MOST_QUEUES)? as usize, low, high })
    }

    /// Whether packets of one flow may leave out of order.
    pub fn reorders(&self) -> bool {
        matches!(self.discipline, Discipline::Weighted(..) | Discipline::SpPifo)
    }

    /// The queue before `port`; `full_weight` is the weight that stands for the link's rate, if weights stand for rates.
    pub fn queue(&self, port: &Port, full_weight: Option<f64>) -> FairQueue {
        let low = match full_weight {
            _ if self.low > 0.0 => self.low,
            Some(_) => 0.05,
            None => 1.0,
        };
        let unit = full_weight.unwrap_or(1.0);
        match self.discipline {
            Discipline::Stfq => FairQueue::Stfq(Stfq::new(port)),
            Discipline::Weighted(share, service) => {
                let (low, high) = match self.high {
                    0.0 => (low, RANGE * low),
                    high if self.low > 0.0 => (low, high),
                    high => (high / RANGE, high),
                };
                let range = (low * unit, high * unit);
                FairQueue::Weighted(WeightedQueues::new(port, self.queues, range, share, service))
            }
            Discipline::SpPifo => FairQueue::SpPifo(SpPifo::new(port, self.queues)),
            Discipline::Afq { beyond, columns } => {
                let round_len = f64::from(port.mtu_bytes) * 8.0 / (low * unit) / self.queues as f64;
                FairQueue::Afq(Afq::new(port, self.queues, round_len, beyond, columns))
            }
        }
    }
}

/// Output queue of a link that approximates weighted fair queueing.
#[derive(Debug)]
pub enum FairQueue {
    /// Start-time fair queueing.
    Stfq(Stfq),
    /// Queues of fixed weights.
    Weighted(WeightedQueues),
    /// Strict priorities that adapt.
    SpPifo(SpPifo),
    /// Calendar queues.
    Afq(Afq),
}

macro_rules! each {
    ($queue:expr, $q:ident => $call:expr) => {
        match $queue {
            FairQueue::Stfq($q) => $call,
            FairQueue::Weighted($q) => $call,
            FairQueue::SpPifo($q) => $call,
            FairQueue::Afq($q) => $call,
        }
    };
}

impl<S: Scheme> Queue<S> for FairQueue
where
    S::Data: VirtualLength,
{
    #[inline]
    fn push(&mut self, now_ns: Ns, packet: PacketId, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>) {
        each!(self, q => q.push(now_ns, packet, slab, dropped));
    }
    #[inline]
    fn pop(&mut self, now_ns: Ns, slab: &mut Slab<S>, dropped: &mut Vec<PacketId>) -> Pop {
        each!(self, q => q.pop(now_ns, slab, dropped))
    }
    fn bytes(&self) -> u64 {
        each!(self, q => Queue::<S>::bytes(q))
    }
    fn packets(&self) -> usize {
        each!(self, q => Queue::<S>::packets(q))
    }
}
