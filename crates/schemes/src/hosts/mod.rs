//! Schemes on real hosts: settings of their kernels and switches, from the same parameters as a simulation.

pub mod perc;
#[cfg(test)]
mod perc_tests;
pub mod soze;
