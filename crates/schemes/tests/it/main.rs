//! Integration tests of the crate in one program, so that it is linked only once.

mod few_queues;
mod link;
mod perc_figures;
mod perc_sizes;
mod stfq;
