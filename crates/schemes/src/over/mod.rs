//! An optimizer over a transport (NUMFabric, section 4): the optimizer computes each subflow's target from the prices of the
//! links; the transport converges to the targets.
//!
//! A target is a [`Weight`] or a [`Rate`], by type. An optimizer outputs the kind of its equations; a transport accepts one kind.
//! [`Over`] joins two of one kind, and the registry refuses the other pairs.
//!
//! An optimizer may be centralized: sources announce their flows to a controller, which sends targets. See [`Centre`].
//!
//! A data packet sums up the prices of the links that it crosses, and counts these links. The ACK returns both.

mod as_weights;
mod centre;
mod handshake;
mod join;
mod optimizer;
mod transport;

pub use as_weights::{AsWeights, NumberNote};
pub use centre::{Centre, PairMessage, RENEW_NS};
pub use handshake::{HANDSHAKE, SYN_TIMER, Syn};
pub use join::{OverHeader, OverHop, OverSink, OverSource};
pub use optimizer::{Feedback, Optimizer, OptimizerSource, Price};
pub use transport::{Arrived, Passing, Transport, TransportHop, TransportSink, TransportSource};

use std::fmt::Debug;
use subak_core::scheme::{Goal, Param, Settles};

/// An optimizer over a transport, as a scheme.
#[derive(Debug, Clone)]
pub struct Over<O, F> {
    optimizer: O,
    transport: F,
}

/// Output of an optimizer that a transport follows: target weights or target rates.
pub trait Wish: Copy + Debug + Send + 'static {
    /// The kind in one word: `weights` or `rates`.
    const KIND: &'static str;

    /// The target, multiplied by `factor` if it is a weight.
    #[must_use]
    fn times(self, factor: f64) -> Self;
}

/// Target weight: subflows at one bottleneck get rates in proportion to their weights. Positive and of the order of 1, as the
/// weights in specs: links may sum them up in fixed point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weight(pub f64);

impl Weight {
    /// Weight for a target rate, bit/s: about 1 for 1 Gb/s. The factor is a power of two, so that nothing is rounded.
    #[inline]
    pub fn of_rate(bps: f64) -> Self {
        Weight(bps / f64::from(1u32 << 30))
    }

    /// Target rate whose weight this is, bit/s: the inverse of [`Weight::of_rate`].
    #[inline]
    pub fn rate_bps(self) -> f64 {
        self.0 * f64::from(1u32 << 30)
    }

    /// Factor of weights that are target rates, in a network whose largest line rate is `line_rate_bps`: 1 from
    /// `FULL_SCALE` on, and a power of two below, with which the weight of a line rate is at least that of
    /// `FULL_SCALE`. Soze's senders have at most their weight times alpha, and alpha is the line rate.
    pub fn factor(line_rate_bps: f64) -> f64 {
        let short = (FULL_SCALE.rate_bps() / line_rate_bps.max(1.0)).max(1.0);
        libm::exp2(libm::ceil(libm::log2(short)))
    }
}

/// Weight of the line rate of a network at which a target rate's weight is not scaled: 8.6 Gb/s.
const FULL_SCALE: Weight = Weight(8.0);

/// Target rate on the wire, bit/s: positive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate(pub f64);

impl Wish for Weight {
    const KIND: &'static str = "weights";

    #[inline]
    fn times(self, factor: f64) -> Self {
        Weight(self.0 * factor)
    }
}

impl Wish for Rate {
    const KIND: &'static str = "rates";

    #[inline]
    fn times(self, _factor: f64) -> Self {
        self
    }
}

/// Description of an optimizer or a transport.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Name in specs: `optimizer = "xwi"`, `transport = "s-perc"`.
    pub name: &'static str,
    /// One-line description; a pair's description is the optimizer's, "over", and the transport's.
    pub about: &'static str,
    /// Paper and section.
    pub paper: &'static str,
    /// Parameters. If an optimizer and a transport have a parameter of the same name, its unit and default must be the
    /// same: both read the one value in the spec.
    pub params: &'static [Param],
    /// Of an optimizer: the allocation that its targets converge to, if the transport follows them; [`Goal::Own`] means the
    /// transport's own goal. Of a transport of weights: [`Goal::MaxMin`] if it shares links by weight, [`Goal::Own`] if its
    /// allocation is unspecified. Of a transport of rates: [`Goal::Any`] if it sends at the target rates.
    pub goal: Goal,
    /// Tolerance within which the targets or rates converge, and the time for that, RTTs.
    pub settles: Settles,
}

/// The timer of price updates at a hop.
pub const PRICE_TIMER: u32 = u32::MAX;

/// Timer of the messages between sources and controller.
pub const CENTRE_TIMER: u32 = u32::MAX - 1;
