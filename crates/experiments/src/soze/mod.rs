//! Soze's experiments that no spec expresses: random networks in packets, and the recurrences of the paper's
//! appendix.

mod draw;
mod fluid;
mod readings;
mod recurrence;
mod watch;

experiments![settles, fig18a, fig19, params];
