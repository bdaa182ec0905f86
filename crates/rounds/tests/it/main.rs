//! The tests across the crate, in one program: it links once.

mod converge;
mod drops;
mod dynamics;
mod levels;
mod sweep;
