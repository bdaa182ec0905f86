//! xWI over weighted s-PERC: the combination that the PERC thesis and NUMFabric (section 8) leave open. Links allocate
//! explicit rates for the weights that xWI infers, so that no fair queue is needed and queues stay near empty.
//!
//! s-PERC answers a change of weights more slowly than Swift: a control packet takes them up when it next leaves, which
//! its share of the links allows only every [`Tx_ctrl`](perc), and it takes several such trips until links have sorted
//! their flows anew. So prices wait longer ([`PRICE_INTERVAL`]), and links look at packets only towards the end of an
//! interval ([`GUARD`]): before that, residuals hold new prices against rates of the old weights.

use crate::over::s_perc::SPercFabric;
use crate::over::{Composition, Over};
use crate::perc;
use crate::s_perc::COMPACT;
use crate::swift::SLOWDOWN;
use crate::xwi::{self, Xwi};
use subak_core::scheme::{Drivers, Goal, Info, Kind, Param, Value};

/// `params.price_interval`: some three trips of a control packet where a dozen flows share a link of 10 Gb/s.
pub const PRICE_INTERVAL: Param = Param { default: Value::Number(100e-6), ..xwi::PRICE_INTERVAL };
/// `params.guard`.
pub const GUARD: Param = Param { default: Value::Number(60e-6), ..xwi::GUARD };

/// The scheme.
pub type XwiSPerc = Over<XwiOverSPerc>;

/// Its composition.
#[derive(Debug, Clone, Copy)]
pub struct XwiOverSPerc;

impl Composition for XwiOverSPerc {
    const INFO: Info = Info {
        name: "xwi-s-perc",
        about: "utility maximization: weights from link prices (xWI) over weighted max-min (s-PERC)",
        paper: "NUMFabric, section 4.2, over the PERC thesis, section 3.2",
        kind: Kind::Proactive,
        drivers: Drivers { rounds: false, packet: true },
        goal: Goal::Utility,
        params: &[
            perc::CONTROL,
            perc::HEADROOM,
            perc::REVERSE,
            perc::RTO,
            perc::ROUND,
            perc::FIRST_ROUND,
            perc::DIVISION,
            perc::TIE,
            COMPACT,
            SLOWDOWN,
            PRICE_INTERVAL,
            GUARD,
            xwi::ETA,
            xwi::BETA,
            xwi::SYNCHRONIZED,
            xwi::LEAST_WEIGHT,
            xwi::MOST_WEIGHT,
        ],
    };
    type Optimizer = Xwi;
    type Fabric = SPercFabric;
}
