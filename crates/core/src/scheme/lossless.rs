//! Priority flow control (PFC): switches without loss below a scheme.

/// Priority flow control (IEEE 802.1Qbb). A switch that buffers too much of a class from one link pauses that class
/// at the link's other end. The classes of data are paused, [`Class::Control`](super::Class::Control) never is.
///
/// The ports of a switch share its buffer. Packets from a link count against a threshold for each class. Packets that
/// arrive after the pause frame was sent use the link's headroom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lossless {
    /// Threshold, per class and ingress link, above which a pause frame is sent.
    pub threshold: Threshold,
    /// A paused class resumes when it is this many bytes below the threshold.
    pub resume_bytes: u64,
    /// Buffer of a switch, bytes, headroom included. `None`: the sum of its ports' buffers plus headroom, and at most
    /// 64 MB if the network sets no link buffers.
    pub buffer_bytes: Option<u64>,
    /// Reserved buffer of a class per ingress link, not counted against the threshold, bytes.
    pub reserve_bytes: u64,
    /// Headroom of each ingress link, bytes. `None`: the largest amount that may arrive after a pause frame is sent.
    pub headroom_bytes: Option<u64>,
}

/// A threshold of [`Lossless`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Threshold {
    /// A number of bytes.
    Static(u64),
    /// This factor times the free shared buffer. For a link faster than the slowest host's link, the factor is
    /// multiplied by the ratio of their rates, rounded up to a power of two, but to at most 1.
    Dynamic(f64),
}
