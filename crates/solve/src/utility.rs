//! Utilities live in [`subak_core::utility`], where schemes can reach them too. Edit them there.

pub use subak_core::utility::*;
