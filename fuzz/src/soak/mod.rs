//! Soaking: random networks, flows, specs and faults against what has to hold whatever happens.
//!
//! A case follows from its seed alone. A check that fails says what it found, and the seed finds it again:
//! `make soak SEED=17`.

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

/// Result of a case without a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaseResult {
    /// Everything was checked.
    Whole,
    /// It took too long, and was stopped: what was there until then was checked.
    Cut,
    /// It was refused with an error, as it has to be where it makes no sense.
    Refused,
    /// The solver's certificate misses its tolerance, and its status says so.
    Uncertified,
}

/// A kind of case: it draws what it likes, and says what does not hold.
pub type SoakKind = fn(&mut Draw) -> Result<CaseResult, String>;

/// All of them, and how many of sixteen cases each gets.
pub const KINDS: [(&str, usize, SoakKind); 4] = [
    ("solver", 5, solver::case),
    ("packets", 6, |draw| packets::case(draw, None)),
    ("run", 4, specs::run),
    ("spoilt", 1, specs::spoilt),
];

/// The kind of case that a seed draws, and what came of it. A panic is a check that failed.
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

/// Panics are kept for [`caught`] in place of printed.
pub fn keep_panics() {
    std::panic::set_hook(Box::new(|panic| {
        *PANIC.lock().unwrap_or_else(|e| e.into_inner()) = panic.to_string();
    }));
}

/// Fails with a text unless something holds.
#[macro_export]
macro_rules! hold {
    ($holds:expr, $($text:tt)+) => {
        let holds: bool = $holds;
        if !holds {
            return Err(format!($($text)+));
        }
    };
}
