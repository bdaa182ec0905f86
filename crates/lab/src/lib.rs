//! subak-lab
