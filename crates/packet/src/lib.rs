//! subak-packet
