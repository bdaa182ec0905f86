//! subak-fluid
