//! Integration tests of the crate in one program, so that it is linked only once.

mod ideal;
mod local;
mod rates;
mod settling;
