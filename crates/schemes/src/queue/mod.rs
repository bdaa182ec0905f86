//! Output queues, which schemes share.

mod afq;
mod control_first;
pub mod fair;
mod fair_or_fifo;
mod fifo;
mod pfabric;
mod priority;
mod round_robin;
pub mod sfq_codel;
mod sp_pifo;
mod stfq;
mod weighted;

pub use afq::{Afq, Beyond};
pub use control_first::{ControlFirst, Discipline};
pub use fair::{FairPlan, FairQueue};
pub use fair_or_fifo::FairOrFifo;
pub use fifo::Fifo;
pub use pfabric::{PFabricQueue, Ranked};
pub use priority::Priority;
pub use round_robin::{QuantumUnit, RoundRobin, Weighed};
pub use sfq_codel::{SfqCodel, SfqPlan};
pub use sp_pifo::SpPifo;
pub use stfq::{Stfq, VirtualLength};
pub use weighted::{Service, Share, WeightedQueues};

use subak_core::scheme::Class;

/// Set of paused priority classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Paused(u8);

impl Paused {
    fn set(&mut self, class: Class, on: bool) {
        let bit = 1 << class as u8;
        self.0 = if on { self.0 | bit } else { self.0 & !bit };
    }
    fn is_none(self) -> bool {
        self.0 == 0
    }
    fn holds(self, class: Class) -> bool {
        self.holds_number(class as usize)
    }
    fn holds_number(self, class: usize) -> bool {
        self.0 >> class & 1 == 1
    }
}
