//! Priority flow control (PFC): lossless switches below a scheme.

/// Priority flow control (IEEE 802.1Qbb): a switch that has too much of a class from one link pauses that class at the other
/// end of the link. The classes of data are paused, [`Class::Control`](super::Class::Control) never is.
///
/// The ports of a switch share its buffer. What came by a link counts against a threshold for each class. What comes after
/// the pause was asked for finds room in the link's headroom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lossless {
    /// Buffer occupancy of one class from one ingress link that triggers a pause frame.
    pub threshold: Threshold,
    /// A paused class goes on once so many bytes less than the threshold wait.
    pub resume_bytes: u64,
    /// The buffer of a switch, headroom included; `None`: the sum of its ports' buffers, and headroom on
    /// top; 64 MB at most where the network leaves its links' buffers open.
    pub buffer_bytes: Option<u64>,
    /// Reserved buffer of a class per ingress link, not counted against the threshold, bytes.
    pub reserve_bytes: u64,
    /// Headroom of each link into a switch; `None`: what may still arrive after a pause was asked for.
    pub headroom_bytes: Option<u64>,
}

/// A threshold of [`Lossless`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// So many bytes.
    Static(u64),
    /// So many times what is free of the shared buffer; more where what comes by the link comes faster than from the slowest
    /// host, by that factor, and at most all that is free.
    Dynamic(f64),
}
