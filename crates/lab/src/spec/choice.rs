//! A scheme of a spec with its parameters.

use crate::spec::backends::{self, BackendKind};
use crate::spec::outside::Outside;
use crate::spec::swept::Swept;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use subak_core::scheme::Info;
use subak_core::{InputError, Policy};

/// A scheme of a spec with its parameters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SchemeChoice {
    /// Name; `OPTIMIZER/TRANSPORT` for a scheme composed of two parts.
    pub name: String,
    /// Label in results.
    pub label: String,
    /// Backend in the spec; `None`: the scheme's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// Parameters in the spec.
    pub params: Map<String, Value>,
    /// Label without the swept parameters; `None` if none is swept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Values of swept parameters (`params.k`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub swept: BTreeMap<String, Swept>,
    /// Policy of the scheme as written, if it differs from the spec's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Value>,
    /// The value of `policy`, parsed.
    #[serde(skip)]
    pub(crate) own_policy: Option<Policy>,
    /// Index in the spec's list of schemes.
    #[serde(skip)]
    pub(crate) place: usize,
    /// Definition of a scheme supplied by the user; `None` for a built-in one.
    #[serde(skip)]
    pub(crate) outside: Option<Outside>,
}

impl SchemeChoice {
    /// Backend and metadata of the scheme.
    pub fn backend(&self) -> Result<(&dyn BackendKind, Info), InputError> {
        if let Some(outside) = &self.outside {
            return Ok((outside.backend(), *outside.definition().info()));
        }
        backends::find(&self.name, self.backend.as_deref())
    }
}
