//! Connection matrices of htsim, with their triggers.

use super::{MOST_FLOWS, Traced, at_line, size, too_many};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU32;
use subak_core::document::unknown_word;
use subak_core::quantity::quoted;
use subak_core::{FlowId, InputError};

/// The number in the line `Nodes N` of a connection matrix.
pub(super) fn htsim_nodes(text: &str) -> Option<usize> {
    text.lines().find_map(|line| line.trim().strip_prefix("Nodes ")?.trim().parse().ok())
}

pub(super) fn from_htsim(text: &str, notes: &mut Vec<String>) -> Result<Vec<Traced>, InputError> {
    let mut flows: Vec<Traced> = Vec::new();
    // `fires`: flows whose end fires each trigger; `waits`: trigger that each flow waits for.
    let (mut fires, mut waits): (HashMap<u64, Vec<FlowId>>, Vec<Option<u64>>) = (HashMap::new(), Vec::new());
    let mut announced = None;
    let (mut announced_triggers, mut triggers) = (None, Triggers::default());
    for (k, row) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = k as u64 + 1;
        let row = row.split('#').next().unwrap_or_default().trim();
        let words: Vec<&str> = row.split_whitespace().collect();
        let Some((src, dst)) = words.first().and_then(|w| w.split_once("->")) else {
            match words.first() {
                Some(&"Connections") => {
                    announced = words.get(1).and_then(|count| count.parse::<usize>().ok());
                    continue;
                }
                Some(&"Triggers") => {
                    announced_triggers = words.get(1).and_then(|count| count.parse::<usize>().ok());
                    continue;
                }
                Some(&"trigger") => {
                    triggers.add(line, &words[1..])?;
                    continue;
                }
                Some(&"Failures") if words.get(1).is_some_and(|count| *count != "0") => {
                    let hint = "remove them, and give the spec a [[fault]] of kind \"down\" for each";
                    return Err(at_line(line, "failures of links are not read", hint));
                }
                None | Some(&"Nodes" | &"Failures") => continue,
                Some(word) => {
                    let what = format!("{} begins no line of a connection matrix", quoted(word));
                    return Err(at_line(line, &what, "a connection is: src->dst id I start PICOSECONDS size BYTES"));
                }
            }
        };
        let mut value: HashMap<&str, u64> = HashMap::new();
        for pair in words[1..].chunks(2) {
            let number = pair.get(1).and_then(|v| v.parse().ok());
            let number = number.ok_or_else(|| {
                at_line(line, &format!("{} has no whole number", quoted(pair[0])), "give one behind each word")
            })?;
            if !CONNECTION.contains(&pair[0]) {
                let what = unknown_word(pair[0], "word of a connection", CONNECTION);
                return Err(at_line(line, &what.what, &what.hint));
            }
            if value.insert(pair[0], number).is_some() {
                return Err(at_line(line, &format!("{} is there twice", quoted(pair[0])), "say it once"));
            }
        }
        let bytes = *value.get("size").ok_or_else(|| at_line(line, "there is no size", "give size and bytes"))?;
        let flow = FlowId::from_index(flows.len());
        for key in ["send_done_trigger", "recv_done_trigger"] {
            if let Some(&trigger) = value.get(key) {
                fires.entry(trigger).or_default().push(flow);
            }
        }
        waits.push(value.get("trigger").copied());
        let start_ns = match (value.get("start"), value.get("trigger")) {
            (Some(_), Some(_)) => {
                let hint = "leave one of them away; htsim refuses both, or drops the start";
                return Err(at_line(line, "the connection has a start and a trigger", hint));
            }
            (Some(ps), None) => ps / 1000,
            (None, Some(_)) => 0,
            (None, None) => return Err(at_line(line, "there is no start", "give start and picoseconds, or a trigger")),
        };
        flows.push(Traced {
            line,
            row: false,
            id: value.get("id").map(u64::to_string),
            src: src.to_string(),
            dst: dst.to_string(),
            // In htsim a connection of size 0 sends forever.
            size_bytes: if bytes == 0 { None } else { Some(size(line, &bytes.into())?) },
            start_ns,
            weight: 1.0,
            after: Vec::new(),
            needed: None,
        });
        if flows.len() > MOST_FLOWS {
            return Err(too_many());
        }
    }
    if let Some(count) = announced.filter(|count| *count != flows.len()) {
        notes.push(format!("{count} connections are announced, and {} follow: all that follow are read", flows.len()));
    }
    if let Some(count) = announced_triggers.filter(|count| *count != triggers.0.len()) {
        let listed = triggers.0.len();
        notes.push(format!("{count} triggers are announced, and {listed} follow: those of the connections are used"));
    }
    let firing = |trigger: &u64| fires.get(trigger).map_or(0, Vec::len);
    let waiting: Vec<u64> = waits.iter().flatten().copied().collect();
    notes.extend(triggers.notes(&waiting, firing));
    let fired: BTreeSet<u64> = fires.keys().copied().filter(|trigger| !waiting.contains(trigger)).collect();
    notes.extend(first_of(fired.iter().map(|id| format!("no connection waits for trigger {id}, which others fire"))));
    let endless: Vec<bool> = flows.iter().map(|flow| flow.size_bytes.is_none()).collect();
    let mut started: HashMap<u64, u32> = HashMap::new();
    for (flow, trigger) in flows.iter_mut().zip(waits) {
        let Some(trigger) = trigger else { continue };
        flow.after = fires.get(&trigger).cloned().ok_or_else(|| {
            at_line(
                flow.line,
                &format!("nothing fires trigger {trigger}"),
                "let a connection have it as send_done_trigger",
            )
        })?;
        if flow.after.iter().any(|before| endless[before.index()]) {
            let what = format!("trigger {trigger} is fired by a connection of size 0, which has no end");
            return Err(at_line(flow.line, &what, "give that connection a size"));
        }
        let before = started.entry(trigger).or_default();
        flow.needed = match triggers.0.get(&trigger) {
            Some(TriggerKind::OneShot) => NonZeroU32::new(1),
            Some(TriggerKind::MultiShot) => NonZeroU32::new(*before + 1),
            Some(TriggerKind::Barrier(_)) | None => None,
        };
        *before += 1;
    }
    Ok(flows)
}

/// When a trigger of htsim starts the connections that wait for it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum TriggerKind {
    /// All of them at the first end of a connection that fires it.
    OneShot,
    /// One of them at each end of a connection that fires it, in the order of the file.
    MultiShot,
    /// All of them once it has been fired this often.
    Barrier(Option<u64>),
}

/// The triggers that have a line of their own.
#[derive(Debug, Default)]
struct Triggers(BTreeMap<u64, TriggerKind>);

impl Triggers {
    /// Reads a line `trigger id ID oneshot`, `multishot` or `barrier count COUNT`, without its first word.
    fn add(&mut self, line: u64, words: &[&str]) -> Result<(), InputError> {
        const SHAPE: &str = "a trigger is: trigger id ID, then oneshot, multishot, or barrier count COUNT";
        let (mut id, mut kind, mut count) = (None, None, None);
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            let twice = match word {
                "id" => id.replace(words.next().and_then(|number| number.parse::<u64>().ok())).is_some(),
                "count" => count.replace(words.next().and_then(|number| number.parse::<u64>().ok())).is_some(),
                "oneshot" => kind.replace(TriggerKind::OneShot).is_some(),
                "multishot" => kind.replace(TriggerKind::MultiShot).is_some(),
                "barrier" => kind.replace(TriggerKind::Barrier(None)).is_some(),
                other => {
                    let known = ["id", "count", "oneshot", "multishot", "barrier"];
                    let what = unknown_word(other, "word of a trigger", &known);
                    return Err(at_line(line, &what.what, &what.hint));
                }
            };
            if twice {
                return Err(at_line(line, "the trigger has two ids, kinds or counts", SHAPE));
            }
        }
        let id = id.flatten().ok_or_else(|| at_line(line, "the trigger has no id", SHAPE))?;
        let kind = match (kind, count) {
            (None, _) => return Err(at_line(line, "the trigger has no kind", SHAPE)),
            (Some(TriggerKind::Barrier(_)), count) => TriggerKind::Barrier(count.flatten()),
            (Some(_), Some(_)) => return Err(at_line(line, "only a barrier has a count", SHAPE)),
            (Some(kind), None) => kind,
        };
        if self.0.insert(id, kind).is_some() {
            let what = format!("trigger {id} is there twice");
            return Err(at_line(line, &what, "give every trigger one line"));
        }
        Ok(())
    }

    /// Notes on triggers whose firing may surprise. `waits`: trigger of each connection that waits for one; `firing`:
    /// number of connections that fire a trigger.
    fn notes(&self, waits: &[u64], firing: impl Fn(&u64) -> usize) -> Vec<String> {
        let mut notes = Vec::new();
        let counts = |(&id, &kind): (&u64, &TriggerKind)| match kind {
            TriggerKind::Barrier(Some(count)) if count != firing(&id) as u64 => Some(format!(
                "trigger {id} counts {count} connections, and {} fire it: it waits for these",
                firing(&id)
            )),
            _ => None,
        };
        notes.extend(first_of(self.0.iter().filter_map(counts)));
        let early = |(&id, &kind): (&u64, &TriggerKind)| {
            (kind == TriggerKind::OneShot && firing(&id) > 1).then(|| {
                format!(
                    "trigger {id} is a oneshot, and {} connections fire it: it fires when the first of them ends",
                    firing(&id)
                )
            })
        };
        notes.extend(first_of(self.0.iter().filter_map(early)));
        let never = |(&id, &kind): (&u64, &TriggerKind)| {
            let waiting = waits.iter().filter(|&&trigger| trigger == id).count();
            (kind == TriggerKind::MultiShot && waiting > firing(&id)).then(|| {
                format!(
                    "trigger {id} is a multishot, which starts one connection each time it is fired: {} fire it and {waiting} \
                     wait for it, so that {} never start",
                    firing(&id),
                    waiting - firing(&id)
                )
            })
        };
        notes.extend(first_of(self.0.iter().filter_map(never)));
        let unknown: BTreeSet<u64> = waits.iter().copied().filter(|trigger| !self.0.contains_key(trigger)).collect();
        let unknown = unknown.iter().map(|id| {
            format!(
                "trigger {id} has no line that says its kind: it waits for all {} connections that fire it",
                firing(id)
            )
        });
        notes.extend(first_of(unknown));
        notes
    }
}

/// The first of the notes, with the number of the others.
fn first_of(mut notes: impl Iterator<Item = String>) -> Option<String> {
    let first = notes.next()?;
    Some(match notes.count() {
        0 => first,
        n => format!("{first}; more such triggers: {n}"),
    })
}

/// Keywords of a connection, each followed by a number.
const CONNECTION: &[&str] = &["id", "start", "size", "trigger", "send_done_trigger", "recv_done_trigger"];
