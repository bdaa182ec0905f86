//! Output queues. They live below the schemes because a scheme names the queue that it needs.

mod fifo;
mod pfabric;
mod priority;
mod stfq;

pub use fifo::Fifo;
pub use pfabric::{PFabricQueue, Ranked};
pub use priority::Priority;
pub use stfq::{Stfq, VirtualLength};
