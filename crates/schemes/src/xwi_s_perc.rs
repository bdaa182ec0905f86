//! xWI over weighted s-PERC: the combination that the PERC thesis and NUMFabric (section 8) leave open. Links allocate
//! explicit rates for the weights that xWI infers, so that no fair queue is needed and queues stay near empty.
//!
//! s-PERC's headroom has to cover acknowledgements too ([`HEADROOM`]): a link full in both directions otherwise takes in
//! more than it can send, and the queue that grows delays the loop until prices swing.

use crate::over::s_perc::SPercFabric;
use crate::over::{Composition, Over};
use crate::perc;
use crate::s_perc::COMPACT;
use crate::swift::SLOWDOWN;
use crate::xwi::{self, Xwi};
use subak_core::scheme::{Drivers, Goal, Info, Kind, Param, Value};

/// `params.headroom`: 2% as in s-PERC, and what the acknowledgements of a full link in the other direction take.
pub const HEADROOM: Param = Param { default: Value::Number(0.06), ..perc::HEADROOM };

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
            HEADROOM,
            perc::REVERSE,
            perc::RTO,
            perc::ROUND,
            perc::FIRST_ROUND,
            perc::DIVISION,
            perc::TIE,
            COMPACT,
            SLOWDOWN,
            xwi::PRICE_INTERVAL,
            xwi::GUARD,
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
