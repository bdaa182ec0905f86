//! Output queues. They live below the schemes because a scheme names the queue that it needs.

mod fifo;
mod priority;

pub use fifo::Fifo;
pub use priority::Priority;
