//! Keys that most workloads share: connections and weights of transfers.

use super::{Common, Planned};
use serde_json::Value;
use subak_core::keys::{Key, Low, ValueType};
use subak_core::rng::{Stream, mix};
use subak_core::section::Section;
use subak_core::{FlowId, IdVec, InputError};

/// Largest number of connections of a transfer.
const MOST_CONNECTIONS: u64 = 64;

/// Largest number of dependencies between connections; each takes 8 bytes of memory.
const MOST_WAITS: usize = 100_000_000;

/// Number of connections per transfer.
pub(super) const CONNECTIONS: Key = Key::new(
    "connections",
    ValueType::Whole(1, MOST_CONNECTIONS),
    "1",
    "number of flows that carry the transfer, on one path",
);

const WEIGHT: ValueType = ValueType::Number(Low::Above(0.0), 1e12);
const PAIR: ValueType = ValueType::Pair(&WEIGHT, &WEIGHT);

const WEIGHTS: &[Key] = &[
    Key::open("uniform", PAIR, "powers", "any number between the two"),
    Key::open("powers", PAIR, "uniform", "a power of two between the two, each as likely"),
];

const ALL: &[Key] =
    &[CONNECTIONS, Key::open("weights", ValueType::Table(WEIGHTS), "1", "each transfer draws its weight")];

/// The keys `connections` and `weights`.
#[derive(Debug, Clone, PartialEq)]
pub struct Each {
    /// Number of flows over the same path into which a transfer is split.
    pub connections: usize,
    weights: Option<Weights>,
}

/// Distribution of random weights.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Weights {
    /// Uniform distribution between two weights.
    Uniform(f64, f64),
    /// Powers of two with uniform exponents: smallest and largest exponent.
    Powers(u32, u32),
}

impl Each {
    /// The shared keys that a workload has.
    pub(super) const fn keys(common: Common) -> &'static [Key] {
        match common {
            Common::All => ALL,
            Common::Connections => &[CONNECTIONS],
            Common::None => &[],
        }
    }

    pub(super) fn read(section: &mut Section, common: Common) -> Self {
        section.also(Each::keys(common));
        Each {
            connections: if common == Common::None { 1 } else { section.take("connections") },
            weights: if common == Common::All { section.nested("weights", weights) } else { None },
        }
    }

    /// Whether any weight may differ from 1.
    pub(super) fn has_weights(&self) -> bool {
        !matches!(self.weights, None | Some(Weights::Uniform(1.0, 1.0) | Weights::Powers(0, 0)))
    }

    /// An error if transfers have several connections.
    pub(super) fn refuse_connections(&self, why: &str) -> Result<(), InputError> {
        if self.connections <= 1 {
            return Ok(());
        }
        Err(InputError::new("connections", format!("transfers cannot be split: {why}"), "leave it away"))
    }

    /// Smallest weight that may be drawn.
    pub(super) fn smallest_weight(&self) -> f64 {
        match self.weights {
            None => 1.0,
            Some(Weights::Uniform(low, _)) => low,
            Some(Weights::Powers(low, _)) => (1u64 << low) as f64,
        }
    }

    /// Sets every transfer's weight and splits it into its connections.
    pub(super) fn apply(
        &self,
        mut transfers: IdVec<FlowId, Planned>,
        seed: u64,
    ) -> Result<IdVec<FlowId, Planned>, InputError> {
        for (t, transfer) in transfers.iter_mut().enumerate() {
            if let Some(weights) = self.weights {
                transfer.plan.weight = weights.draw(&mut Stream::new(mix(seed ^ mix(t as u64)), "weight"));
            }
            transfer.connections = split_over(transfer, transfer.connections.max(self.connections));
        }
        if transfers.iter().all(|t| t.connections == 1) {
            return Ok(transfers);
        }
        let over = |&t: &FlowId| transfers[t].connections;
        let waits = transfers.iter().map(|t| t.connections * t.after.iter().map(over).sum::<usize>()).sum::<usize>();
        if waits > MOST_WAITS {
            let what = format!("connections wait for others {waits} times");
            return Err(InputError::new("workload", what, "give fewer connections, or shorten the run"));
        }
        Ok(split(transfers))
    }
}

impl Weights {
    fn draw(self, stream: &mut Stream) -> f64 {
        match self {
            Weights::Uniform(low, high) => low + (high - low) * stream.unit(),
            Weights::Powers(low, high) => (1u64 << (low as usize + stream.below((high - low + 1) as usize))) as f64,
        }
    }
}

/// Number of connections of a transfer: at most one per byte.
fn split_over(transfer: &Planned, connections: usize) -> usize {
    let most = transfer.plan.size_bytes.map_or(u64::MAX, |size| size.max(1));
    most.min(connections as u64) as usize
}

/// Splits each transfer into one flow per connection, with equal parts of the size. A transfer that depends on
/// another one starts after all connections of that one have ended.
fn split(transfers: IdVec<FlowId, Planned>) -> IdVec<FlowId, Planned> {
    let mut first = IdVec::<FlowId, _>::new();
    let mut count = 0;
    for transfer in &transfers {
        first.push(count..count + transfer.connections);
        count += transfer.connections;
    }
    let mut flows = IdVec::new();
    for transfer in transfers {
        let after: Vec<FlowId> =
            transfer.after.iter().flat_map(|&t| first[t].clone()).map(FlowId::from_index).collect();
        let n = transfer.connections as u64;
        for k in 0..n {
            let size_bytes = transfer.plan.size_bytes.map(|size| size / n + u64::from(k < size % n));
            let mut flow = transfer.clone();
            flow.id = transfer.id.as_ref().map(|id| if k == 0 { id.clone() } else { format!("{id}#{k}") });
            flow.after.clone_from(&after);
            flow.needed = None;
            flow.connections = 1;
            flow.extra.size_bytes = size_bytes;
            flow.plan.size_bytes = size_bytes;
            flow.plan.demand_bps = transfer.plan.demand_bps / n as f64;
            flows.push(flow);
        }
    }
    flows
}

/// Parses `{uniform = [low, high]}` or `{powers = [low, high]}`.
fn weights(value: &Value) -> Result<Weights, InputError> {
    let mut section = Section::of(value, WEIGHTS)?;
    let bounds = |(low, high): (f64, f64)| match low <= high {
        true => Ok((low, high)),
        false => Err(InputError::new("", "the least is above the most", "give the smaller number first")),
    };
    let uniform = section.convert("uniform", bounds);
    let powers = section.convert("powers", |pair| {
        let (low, high) = bounds(pair)?;
        Ok((exponent(low).map_err(|e| e.below("[0]"))?, exponent(high).map_err(|e| e.below("[1]"))?))
    });
    section.finish()?;
    match (uniform, powers) {
        (Some((low, high)), None) => Ok(Weights::Uniform(low, high)),
        (None, Some((low, high))) => Ok(Weights::Powers(low, high)),
        _ => Err(InputError::new("", "it does not say which weights", "give uniform = [1, 16] or powers = [1, 16]")),
    }
}

fn exponent(x: f64) -> Result<u32, InputError> {
    let whole = x as u64;
    match whole as f64 == x && whole.is_power_of_two() {
        true => Ok(whole.trailing_zeros()),
        false => Err(InputError::new("", format!("{x} is no power of two"), "give 1, 2, 4, 8, ...")),
    }
}
