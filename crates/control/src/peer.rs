//! What one side knows of what the other was told.

/// Whether the other side knows the newest of a flowlet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// It does not.
    No,
    /// It was told in the datagram of this number.
    In(u32),
    /// It acknowledged that.
    Yes,
}
