//! The tests across the crate, in one program: it links once.

mod case;
mod formats;
mod generate;
mod ids;
mod mutation;
mod route;
