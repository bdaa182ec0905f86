//! Delivery state of a flowlet's message to the peer.

/// Whether the peer has ACKed the latest state of a flowlet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Acked {
    /// Not sent.
    #[default]
    No,
    /// Sent in datagrams with numbers from `first` to `last`. An ACK of any of them suffices.
    In { first: u32, last: u32 },
    /// ACKed.
    Yes,
}

impl Acked {
    /// Records that the datagram `number` carries the message.
    pub fn tell(&mut self, number: u32) {
        *self = match *self {
            Acked::In { first, .. } => Acked::In { first, last: number },
            _ => Acked::In { first: number, last: number },
        }
    }

    /// Handles an ACK of datagram `number`, which carried the flowlet; returns whether the latest state is now ACKed.
    pub fn acknowledge(&mut self, number: u32) -> bool {
        let told_then = matches!(*self, Acked::In { first, .. } if number.wrapping_sub(first) < 1 << 31);
        if told_then {
            *self = Acked::Yes;
        }
        told_then
    }

    /// Whether a retransmission is needed now that the datagram `number` is marked lost.
    pub fn needs_again(self, number: u32) -> bool {
        matches!(self, Acked::In { last, .. } if last == number)
    }
}
