//! Descriptions of the network generators and of the sections of specs.

use pyo3::prelude::*;

/// Every network generator with its keys, as a JSON list.
#[pyfunction]
pub fn generators() -> String {
    subak_core::generate::described().to_string()
}

/// The keys and JSON Schemas of a case, a link, a flow and each kind of policy, as JSON.
#[pyfunction]
pub fn case_sections() -> String {
    subak_core::case::described().to_string()
}

/// The sections of a spec with their keys and JSON Schemas, as JSON.
#[pyfunction]
pub fn sections() -> String {
    subak_lab::spec::described().to_string()
}
