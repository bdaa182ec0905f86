//! A scheme of a spec with its parameters.

use crate::spec::backends::{self, BackendKind};
use crate::spec::outside::Outside;
use crate::spec::swept::Swept;
use crate::spec::workload::Traffic;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
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
    /// The schemes that workloads name. Their flows run beside those of this scheme.
    #[serde(skip)]
    pub(crate) named: Arc<[SchemeChoice]>,
    /// Whether every workload names a scheme: no flow is of this one, whose label is that of all of them.
    #[serde(skip)]
    pub(crate) is_joint: bool,
}

impl SchemeChoice {
    /// Backend and metadata of the scheme.
    pub fn backend(&self) -> Result<(&dyn BackendKind, Info), InputError> {
        if let Some(outside) = &self.outside {
            return Ok((outside.backend(), *outside.definition().info()));
        }
        backends::find(&self.name, self.backend.as_deref())
    }

    /// The schemes of the flows of `workload`, by the index in a flow's plan.
    pub(crate) fn members(&self, workload: &Traffic) -> Vec<&SchemeChoice> {
        let find = |label: &String| self.named.iter().find(|choice| choice.label == *label);
        workload.schemes().iter().map(|label| label.as_ref().and_then(find).unwrap_or(self)).collect()
    }

    /// Definitions of the user's schemes among those of its runs.
    pub(crate) fn outsides(&self) -> impl Iterator<Item = &Outside> {
        let own = self.outside.iter().filter(|_| !self.is_joint);
        own.chain(self.named.iter().filter_map(|choice| choice.outside.as_ref()))
    }

    /// Whether both have the same flows, and differ in the label alone.
    pub(crate) fn is_like(&self, other: &SchemeChoice) -> bool {
        let of = |choice: &SchemeChoice| (choice.name.clone(), choice.backend.clone(), choice.params.clone());
        of(self) == of(other) && self.outside == other.outside && self.own_policy == other.own_policy
    }
}
