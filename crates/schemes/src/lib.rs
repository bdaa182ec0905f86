//! The schemes, one file each, and the registry that finds them by name.
//!
//! A monolithic scheme is a file here. A composed scheme is an optimizer (`optimizers/`) over a transport
//! (`transports/`), joined by [`over::Over`]. Each of these is one file, one line in a list below, and a spec that
//! uses it.

#[macro_use]
mod macros;

mod any;
mod beside;
pub mod foreign;
pub mod headers;
pub mod hosts;
mod lossless;
pub mod over;
pub mod perc;
pub mod queue;
mod red;
pub mod registry;
pub mod soze;
mod tcp;
pub mod telemetry;

pub use any::AnyScheme;
pub use beside::{Beside, Member};
pub use registry::{Chosen, Visitor, scheme, with_scheme};

schemes! {
    dctcp::Dctcp,
    reno::Reno,
    cubic::Cubic,
    xcp::Xcp,
    rcp::Rcp,
    pfabric::PFabric,
    hpcc::Hpcc,
    powertcp::PowerTcp,
    dcqcn::Dcqcn,
    timely::Timely,
    google_swift::GoogleSwift,
    wrr::Wrr,
    charny::Charny,
    fair::Fair,
    n_perc::NPerc,
    s_perc::SPerc,
    s_perc_star::SPercStar,
    flowtune::Flowtune,
}

// The output type of an optimizer, or the input type of a transport, is written beside its name, since a macro cannot
// look up a type. A wrong one does not compile.
parts! {
    optimizers {
        given::GivenWeights: Weight,
        xwi::Xwi: Weight,
        dgd::GradientDescent: Rate,
        rcp_star::FairShare: Rate,
        ned::NedOptimizer: Rate,
        ned_central::NedCentral: Rate,
        exact_central::ExactCentral: Rate,
    }
    transports {
        swift::SwiftTransport: Weight,
        s_perc::SPercTransport: Weight,
        soze::Soze: Weight,
        soze_virtual::SozeVirtual: Weight,
        levels::Levels: Weight,
        paced::Paced: Rate,
    }
}
