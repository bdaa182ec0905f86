//! An optimizer over a transport (NUMFabric, section 4): the optimizer says what each subflow wishes, from the prices of the
//! links; the transport makes rates of the wishes.
//!
//! A wish is a [`Weight`] or a [`Rate`], by type. An optimizer has the kind that its equations give; a transport has the kind
//! that it can follow. [`Over`] joins two of one kind, and the registry refuses the other pairs.
//!
//! An optimizer may have a centre: a central machine that sources tell of their flows and that hands out wishes. See
//! [`Centre`].
//!
//! A data packet sums up the prices of the links that it crosses, and counts these links. The acknowledgement takes both
//! back.

mod centre;
mod join;
mod optimizer;
mod transport;

pub use centre::{Centre, PairMessage, RENEW_NS};
pub use join::{Over, OverHeader, OverHop, OverSink, OverSource};
pub use optimizer::{Feedback, Optimizer, OptimizerSource, Price};
pub use transport::{Arrived, Passing, Transport, TransportHop, TransportSink, TransportSource};

use std::fmt::Debug;
use subak_core::scheme::{Goal, Param, Settles};

/// Output of an optimizer that a transport follows: target weights or target rates.
pub trait Wish: Copy + Debug + Send + 'static {
    /// Its kind in a word: `weights` or `rates`.
    const KIND: &'static str;
}

/// A share: subflows at one bottleneck get rates in proportion to their weights. Positive and not far from 1, as the
/// weights that users give: links may sum them up in fixed point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weight(pub f64);

impl Weight {
    /// The weight for a rate wished, bit/s: about 1 for 1 Gb/s. The unit is a power of two, so that nothing is rounded.
    #[inline]
    pub fn of_rate(bps: f64) -> Self {
        Weight(bps / f64::from(1u32 << 30))
    }
}

/// A rate on the wire, bit/s: positive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate(pub f64);

impl Wish for Weight {
    const KIND: &'static str = "weights";
}

impl Wish for Rate {
    const KIND: &'static str = "rates";
}

/// Description of an optimizer or a transport.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Name in specs: `optimizer = "xwi"`, `transport = "s-perc"`.
    pub name: &'static str,
    /// One line on what it is, which reads well before and after "over".
    pub about: &'static str,
    /// Paper and section.
    pub paper: &'static str,
    /// Its own parameters. One of the same name as the other half's must have the same unit and default: both halves read
    /// the one value that a spec gives.
    pub params: &'static [Param],
    /// Of an optimizer: what its wishes bring rates to, where the transport follows them; [`Goal::Own`] stands for the
    /// transport's own goal. Of a transport of weights: [`Goal::MaxMin`] if it shares links by weight, [`Goal::Own`] if it
    /// promises nothing. Of a transport of rates: [`Goal::Any`] if it sends at the rates wished.
    pub goal: Goal,
    /// Tolerance to which it converges, and the time, RTTs.
    pub settles: Settles,
}

/// The timer of price updates at a hop.
pub const PRICE_TIMER: u32 = u32::MAX;

/// The timer of the sources' and the controller's affairs with the centre.
pub const CENTRE_TIMER: u32 = u32::MAX - 1;
