//! No optimizer: the target weight of each subflow is an equal part of its flow's weight, and no link has a price.

use crate::over::{Optimizer, OptimizerSource, Part, Price, Weight};
use std::sync::Arc;
use subak_core::scheme::{FlowInfo, Goal, Params, Port, Settles};
use subak_core::{InputError, SubflowId, Utility};

/// The optimizer given: weights as the spec sets them.
#[derive(Debug, Clone, Copy)]
pub struct GivenWeights;

/// Sender with a flow's weight, divided equally among its subflows.
#[derive(Debug, Clone, Copy)]
pub struct GivenSource {
    weight: f64,
    subflows: usize,
}

impl Optimizer for GivenWeights {
    const PART: Part = Part {
        name: "given",
        about: "the weights that flows were given",
        paper: "none: the transport alone",
        params: &[],
        goal: Goal::Own,
        settles: Settles::AT_ONCE,
    };
    type Wish = Weight;
    type Note = ();
    type Source = GivenSource;
    type Price = NoPrice;

    fn new(_params: &Params) -> Result<Self, InputError> {
        Ok(GivenWeights)
    }
    fn source(&self, flow: &FlowInfo) -> GivenSource {
        GivenSource { weight: flow.weight, subflows: flow.paths.len().max(1) }
    }
    fn price(&self, _port: &Port) -> NoPrice {
        NoPrice
    }
}

impl OptimizerSource<GivenWeights> for GivenSource {
    fn wish(&self, _k: SubflowId) -> Weight {
        Weight(self.weight / self.subflows as f64)
    }
    fn on_weight(&mut self, weight: f64, _utility: &Arc<Utility>) {
        self.weight = weight;
    }
}

/// A link without a price.
#[derive(Debug, Clone, Copy)]
pub struct NoPrice;

impl Price<()> for NoPrice {
    fn now(&self) -> f64 {
        0.0
    }
}
