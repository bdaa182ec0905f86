//! Values that hooks of a user-supplied scheme record: series of the results.

use super::asks::Refusal;
use super::guard::Who;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use subak_core::scheme::Note;
use subak_core::{Ns, SubflowId};

/// Maximum number of different names of a scheme's notes.
const MOST_NAMES: usize = 1000;

/// Maximum number of notes of one call of a hook.
pub const MOST_NOTES: usize = 10_000;

/// Notes of a scheme that have not been taken yet. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Notes(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    names: HashSet<Arc<str>>,
    notes: Vec<Note>,
}

impl Notes {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shared copy of a name; refuses a text that is no identifier, and too many names.
    pub fn name(&self, name: &str) -> Result<Arc<str>, Refusal> {
        let mut kept = self.kept();
        if let Some(known) = kept.names.get(name) {
            return Ok(Arc::clone(known));
        }
        let is_first = |c: char| c.is_alphabetic() || c == '_';
        if !(name.starts_with(is_first) && name.chars().all(|c| c.is_alphanumeric() || c == '_')) {
            return Err((format!("a note is named {name:?}"), "use letters, digits and _, and no digit first"));
        }
        if kept.names.len() == MOST_NAMES {
            let what = format!("the notes have more than {MOST_NAMES} names, the last {name:?}");
            return Err((what, "give what changes as a value, and not in the name"));
        }
        let name: Arc<str> = name.into();
        kept.names.insert(Arc::clone(&name));
        Ok(name)
    }

    /// Records values of the machine `who`, each with its name.
    pub fn add(&self, who: Who, subflow: Option<SubflowId>, time_ns: Ns, values: Vec<(Arc<str>, f64)>) {
        let (flow, link) = match who {
            Who::Flow(flow) | Who::Sink(flow) => (Some(flow), None),
            Who::Link(link) => (None, Some(link)),
            Who::Node(_) | Who::Controller => (None, None),
        };
        let note = |(name, value)| Note { time_ns, flow, link, subflow, name, value };
        self.kept().notes.extend(values.into_iter().map(note));
    }

    /// Removes and returns the notes so far, in the order of their calls.
    pub fn take(&self) -> Vec<Note> {
        std::mem::take(&mut self.kept().notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use subak_core::{FlowId, LinkId};

    #[test]
    fn names_are_identifiers_and_not_too_many() {
        let notes = Notes::default();
        assert_eq!(&*notes.name("alpha").unwrap(), "alpha");
        assert_eq!(&*notes.name("_größe2").unwrap(), "_größe2");
        for name in ["", "2nd", "a b", "a-b", "a.b"] {
            assert!(notes.name(name).unwrap_err().0.contains("a note is named"), "{name}");
        }
        for number in 2..MOST_NAMES {
            notes.name(&format!("x{number}")).unwrap();
        }
        assert!(notes.name("y").unwrap_err().0.contains("more than 1000 names"));
        assert!(notes.name("alpha").is_ok());
    }

    #[test]
    fn notes_are_taken_once_in_the_order_of_their_calls() {
        let notes = Notes::default();
        let name = notes.name("alpha").unwrap();
        let shared = notes.clone();
        shared.add(Who::Sink(FlowId(3)), Some(SubflowId(1)), 5, vec![(Arc::clone(&name), 0.5)]);
        shared.add(Who::Link(LinkId(2)), None, 5, vec![(name, 2.0)]);
        let taken = notes.take();
        let rows: Vec<_> = taken.iter().map(|n| (n.time_ns, n.flow, n.link, n.subflow, &*n.name, n.value)).collect();
        let of_flow = (5, Some(FlowId(3)), None, Some(SubflowId(1)), "alpha", 0.5);
        assert_eq!(rows, [of_flow, (5, None, Some(LinkId(2)), None, "alpha", 2.0)]);
        assert!(notes.take().is_empty());
    }
}
