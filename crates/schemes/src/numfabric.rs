//! NUMFabric: xWI over Swift (sections 4 and 5). Defaults are those of table 2.

use crate::over::{Composition, Over};
use crate::swift::{self, SwiftFabric};
use crate::xwi::{self, Xwi};
use subak_core::scheme::{Drivers, Goal, Info, Kind};

/// The scheme.
pub type NumFabric = Over<XwiOverSwift>;

/// Its composition.
#[derive(Debug, Clone, Copy)]
pub struct XwiOverSwift;

impl Composition for XwiOverSwift {
    const INFO: Info = Info {
        name: "numfabric",
        about: "utility maximization: weights from link prices (xWI) over weighted max-min (Swift)",
        paper: "Nagaraj et al., NUMFabric, SIGCOMM 2016",
        kind: Kind::Reactive,
        drivers: Drivers { rounds: false, packet: true },
        goal: Goal::Utility,
        params: &[
            swift::DT,
            swift::EWMA_TIME,
            swift::INITIAL_WINDOW,
            swift::SLOWDOWN,
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
    type Fabric = SwiftFabric;
}
