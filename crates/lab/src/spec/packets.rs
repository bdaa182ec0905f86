//! Selection of recorded packets, by `[measure] packets`.

use crate::spec::topology::{Topology, unknown_link, unknown_name};
use crate::spec::workload::Planned;
use serde_json::Value;
use std::collections::BTreeSet;
use subak_core::keys::each_of;
use subak_core::keys::{Key, ValueType};
use subak_core::section::Section;
use subak_core::{FlowId, IdVec, InputError, LinkId, Ns};

/// The keys of `[measure] packets`.
pub(super) const KEYS: &[Key] = &[
    Key::open(
        "flows",
        ValueType::List(&ValueType::Either(&[ValueType::Text, ValueType::Whole(0, u64::MAX)])),
        "all",
        "flows whose packets are recorded: numbers from 0, or ids. Messages that belong to no flow are then not recorded",
    ),
    Key::open("links", ValueType::List(&ValueType::Text), "all", "links at which packets are recorded"),
    Key::new("from", ValueType::Time, "0", "start of the recording"),
    Key::open("until", ValueType::Time, "the end of the run", "end of the recording"),
];

/// Which packets are recorded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Recorded {
    /// Names or numbers of the flows to record; `None`: all flows, and messages that belong to no flow.
    flows: Option<Vec<Value>>,
    /// Links to record; `None`: all.
    pub links: Option<BTreeSet<LinkId>>,
    pub from_ns: Ns,
    pub until_ns: Ns,
}

impl Recorded {
    /// Reads `packets = {flows = [...], links = [...], from = T, until = T}`, or `true` for all packets.
    pub fn read(value: &Value, topology: &Topology) -> Result<Option<Self>, InputError> {
        let all = Recorded { flows: None, links: None, from_ns: 0, until_ns: Ns::MAX };
        if let Some(wanted) = value.as_bool() {
            return Ok(wanted.then_some(all));
        }
        let mut section = Section::of(value, KEYS)?;
        let flows: Option<Vec<Value>> = section.given("flows");
        let links = section.convert("links", |names: Vec<String>| each_of(&names, |name| link(name, topology)));
        for (key, is_empty) in [("flows", flows.as_ref().map(Vec::len)), ("links", links.as_ref().map(Vec::len))] {
            if is_empty == Some(0) {
                section.note(InputError::new(
                    key,
                    "the list is empty",
                    "name at least one, or leave the key away for all",
                ));
            }
        }
        let from_ns = section.take("from");
        let until_ns = section.given("until").unwrap_or(Ns::MAX);
        if from_ns >= until_ns {
            section.note(InputError::new("until", "the recording ends when it begins, or before", "give a later time"));
        }
        section.end(Ok(Some(Recorded { flows, links: links.map(BTreeSet::from_iter), from_ns, until_ns })))
    }

    /// Whether the spec selects flows, which must then exist.
    pub fn names_flows(&self) -> bool {
        self.flows.is_some()
    }

    /// The selected flows of a run; `None` for all.
    pub fn flows(&self, planned: &IdVec<FlowId, Planned>) -> Result<Option<BTreeSet<FlowId>>, InputError> {
        let find =
            |(i, name): (usize, &Value)| find(name, planned).map_err(|e| e.below(&format!("[{i}]")).below("flows"));
        self.flows.as_ref().map(|names| names.iter().enumerate().map(find).collect()).transpose()
    }
}

fn link(name: &str, topology: &Topology) -> Result<LinkId, InputError> {
    topology.network().find_link(name).ok_or_else(|| unknown_link(name, topology.network()))
}

fn find(name: &Value, planned: &IdVec<FlowId, Planned>) -> Result<FlowId, InputError> {
    if let Some(number) = name.as_u64() {
        let hint = match planned.len() {
            0 => "the run has none: leave flows away".to_string(),
            n => format!("the run has flows 0 to {}", n - 1),
        };
        let there = (number < planned.len() as u64).then_some(FlowId(number as u32));
        return there.ok_or_else(|| InputError::new("", format!("there is no flow {number}"), hint));
    }
    let name = name.as_str().unwrap_or_default();
    let found = planned.iter().position(|flow| flow.id.as_deref() == Some(name));
    let known: Vec<&str> = planned.iter().filter_map(|flow| flow.id.as_deref()).collect();
    found.map(FlowId::from_index).ok_or_else(|| match known.len() {
        0 => {
            InputError::new("", format!("there is no flow \"{name}\""), "these flows have no ids: give numbers, from 0")
        }
        _ => unknown_name(name, "flow", &known),
    })
}
