//! subak-rounds
