//! Fuzzing on stable Rust: entry points that accept any bytes, and a search for inputs with new behaviour.
//!
//! An entry point panics if a check fails, and returns a hash of what it did (the trace). The search keeps inputs
//! with a new trace and mutates them further. Kept inputs are in `fuzz/corpus/ENTRY`; the tests run all of them and
//! search for a while.
//!
//! `cargo run --release -p subak-fuzz -- [ENTRY [SECONDS]]`, or `make fuzz`.

pub mod entries;
pub mod search;
pub mod soak;
