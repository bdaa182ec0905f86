//! Fuzzing on stable Rust: entries that take any bytes, and a search for inputs that make them behave in a new way.
//!
//! An entry panics if something is wrong, and returns a trace of what it did: the search keeps inputs whose trace is new, and
//! goes on from those. Kept inputs lie in `fuzz/corpus/ENTRY`; the tests run all of them and search for a while.
//!
//! `cargo run --release -p subak-fuzz -- [ENTRY [SECONDS]]`, or `make fuzz`.

pub mod entries;
pub mod search;
pub mod soak;
