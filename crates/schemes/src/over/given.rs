//! No optimizer: every subflow wishes its equal part of the flow's weight, and no link has a price.

use super::{Optimizer, OptimizerSource, Price};
use subak_core::Fault;
use subak_core::scheme::{FlowInfo, Params, Port};

/// The fabric alone, with the weights that the flows were given.
#[derive(Debug, Clone, Copy)]
pub struct Given;

/// A subflow's weight.
#[derive(Debug, Clone, Copy)]
pub struct GivenSource {
    weight: f64,
}

impl Optimizer for Given {
    type Note = ();
    type Source = GivenSource;
    type Price = NoPrice;

    fn new(_params: &Params) -> Result<Self, Fault> {
        Ok(Given)
    }
    fn source(&self, flow: &FlowInfo) -> GivenSource {
        GivenSource { weight: flow.weight / flow.paths.len().max(1) as f64 }
    }
    fn price(&self, _port: &Port) -> NoPrice {
        NoPrice
    }
}

impl OptimizerSource<()> for GivenSource {
    fn wish_bps(&self, _k: u8) -> f64 {
        self.weight
    }
    fn note(&self, _k: u8) {}
}

/// A link without a price.
#[derive(Debug, Clone, Copy)]
pub struct NoPrice;

impl Price<()> for NoPrice {
    fn now(&self) -> f64 {
        0.0
    }
}
