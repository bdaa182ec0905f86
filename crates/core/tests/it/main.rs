//! Integration tests of the crate in one program, so that it is linked only once.

mod case;
mod foreign_formats;
mod formats;
mod generate;
mod ids;
mod mutation;
mod route;
