//! The tests across the crate, in one program: it links once.

mod baselines;
mod central;
mod common;
mod controller;
mod delivery;
mod engine;
mod extending;
mod floors;
mod flowtune;
mod flowtune_faults;
mod forgetting;
mod goals;
mod leaf_spine;
mod lossless;
mod nic;
mod numfabric;
mod parts;
mod permutation;
mod pfabric;
mod policies;
mod queueing;
mod rates;
mod rcp;
mod s_perc_star;
mod soze;
mod spread;
