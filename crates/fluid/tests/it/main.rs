//! The tests across the crate, in one program: it links once.

mod ideal;
mod rates;
mod settling;
