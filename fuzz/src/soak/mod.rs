//! Soak test: random networks, flows, specs and faults, with invariants that must always hold.
//!
//! A case is determined by its seed. A failed check reports the seed, which repeats the case: `make soak SEED=17`.

pub mod books;
pub mod draw;
pub mod memory;
pub mod packets;
pub mod rows;
pub mod scenes;
pub mod solver;
pub mod specs;
pub mod workloads;

use draw::Draw;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// Result of a case in which no check failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaseResult {
    /// The case ran to its end.
    Whole,
    /// The case took too long and was stopped; its state until then was checked.
    Cut,
    /// The input was invalid and refused with an error, as it must be.
    Refused,
    /// The solver's certificate misses its tolerance, and its status says so.
    Uncertified,
}

/// A kind of case: draws random inputs and returns an error if a check fails.
pub type SoakKind = fn(&mut Draw) -> Result<CaseResult, String>;

/// Kinds of cases, each with its number out of sixteen cases.
pub const KINDS: [(&str, usize, SoakKind); 4] = [
    ("solver", 5, solver::case),
    ("packets", 6, |draw| packets::case(draw, None)),
    ("run", 4, specs::run),
    ("spoilt", 1, specs::spoilt),
];

/// Runs the case of a seed; returns its kind and result. A panic counts as a failed check.
pub fn case(seed: u64) -> (&'static str, Result<CaseResult, String>) {
    let mut draw = Draw::new(seed);
    let mut at = draw.below(KINDS.iter().map(|kind| kind.1).sum());
    let (name, _, kind) = KINDS
        .into_iter()
        .find(|(_, share, _)| {
            let found = at < *share;
            at = at.saturating_sub(*share);
            found
        })
        .expect("the shares sum up to what was drawn from");
    (name, caught(|| kind(&mut draw)))
}

/// Result of `check`, or the place and message of its panic.
pub fn caught(check: impl FnOnce() -> Result<CaseResult, String>) -> Result<CaseResult, String> {
    PANIC.lock().unwrap_or_else(|e| e.into_inner()).clear();
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|_| {
        let held = PANIC.lock().unwrap_or_else(|e| e.into_inner());
        Err(format!("a panic: {held}"))
    })
}

/// Message and place of the latest panic.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Stores panics for [`caught`] instead of printing them.
pub fn keep_panics() {
    std::panic::set_hook(Box::new(|panic| {
        *PANIC.lock().unwrap_or_else(|e| e.into_inner()) = panic.to_string();
    }));
}

/// Returns an error with the given text from the calling function unless the condition is true.
#[macro_export]
macro_rules! hold {
    ($holds:expr, $($text:tt)+) => {
        let holds: bool = $holds;
        if !holds {
            return Err(format!($($text)+));
        }
    };
}
