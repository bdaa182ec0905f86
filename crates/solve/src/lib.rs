//! subak-solve
