//! Delivery state of messages to the other side.

/// Whether the other side knows the newest of a flowlet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Acked {
    /// It was not told.
    #[default]
    No,
    /// Datagrams told it, the first and the last of these numbers. An acknowledgement of any of them will do.
    In { first: u32, last: u32 },
    /// It acknowledged that.
    Yes,
}

impl Acked {
    /// The datagram `number` tells it.
    pub fn tell(&mut self, number: u32) {
        *self = match *self {
            Acked::In { first, .. } => Acked::In { first, last: number },
            _ => Acked::In { first: number, last: number },
        }
    }

    /// The datagram `number`, which told of the flowlet, arrived: whether the newest is known by that.
    pub fn acknowledge(&mut self, number: u32) -> bool {
        let told_then = matches!(*self, Acked::In { first, .. } if number.wrapping_sub(first) < 1 << 31);
        if told_then {
            *self = Acked::Yes;
        }
        told_then
    }

    /// Whether it has to be told again, now that the datagram `number` is held lost.
    pub fn needs_again(self, number: u32) -> bool {
        matches!(self, Acked::In { last, .. } if last == number)
    }
}
