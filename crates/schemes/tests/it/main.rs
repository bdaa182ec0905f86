//! The tests across the crate, in one program: it links once.

mod perc_figures;
mod perc_sizes;
mod stfq;
