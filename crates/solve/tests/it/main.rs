//! Integration tests of the crate in one program, so that it is linked only once.

mod bandwidth_functions;
mod common;
mod fold;
mod incremental;
mod live;
mod max_min;
mod ned;
mod num;
mod own_utilities;
mod pooled;
mod structure;
mod units;
mod xwi;
