//! The Python extension module `subak._subak`, a thin layer over the Rust crates.

mod allocation;
mod answer;
mod converging;
mod errors;
mod fluid;
mod generators;
mod incremental;
mod inputs;
mod links;
mod ned;
mod ned_times;
mod network;
mod outside;
mod quantities;
mod random;
mod remote;
mod rounds;
mod routing;
mod runs;
mod schemes;
mod solving;
mod soze_links;
mod star_links;
mod stepping;
mod structure;
mod table;
mod testbed;
mod watched;
mod weights;
mod xwi;

use pyo3::prelude::*;

/// The Rust core of Subak.
#[pymodule]
mod _subak {
    #[pymodule_export]
    use crate::{
        allocation::allocate,
        answer::PyAnswer,
        converging::converge,
        fluid::PySozeFluid,
        generators::case_sections,
        generators::generators,
        generators::sections,
        incremental::PyIncremental,
        links::SPercLinks,
        ned::PyNed,
        ned_times::ned_times,
        network::PyNetwork,
        outside::io::IoView,
        outside::places::{LinkInfoView, NetworkView, NodeView, PlaceView},
        outside::views::{
            AckView, FlowInfoView, LinkRecordView, LossView, Message, PacketView, PathView, PortView, VisitView,
        },
        quantities::{bytes_of, nanoseconds, student},
        random::{PySizes, PyStream},
        rounds::PyRounds,
        routing::PyRouter,
        runs::{PySpec, capture, columns, diff, export, summary},
        schemes::{pairs, parts, schemes},
        solving::PyCase,
        soze_links::SozeLinks,
        star_links::SPercStarLinks,
        stepping::PySimulation,
        structure::PyStructure,
        table::Table,
        watched::{PyWatched, page_files},
        weights::weight_policies,
        xwi::PyXwi,
    };

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        use pyo3::types::PyModuleMethods;
        module.add("__version__", subak_lab::VERSION)?;
        module.add("__built_from__", env!("SUBAK_BUILT_FROM"))?;
        module.add("__build__", subak_lab::BUILD)
    }
}
