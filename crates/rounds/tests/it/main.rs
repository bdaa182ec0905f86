//! Integration tests of the crate in one program, so that it is linked only once.

mod converge;
mod drops;
mod dynamics;
mod levels;
mod orders;
mod stepping;
mod sweep;
