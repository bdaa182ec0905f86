//! An endpoint whose datagrams are authenticated.

use crate::{ControlSettings, Endpoint};
use subak_core::Ns;
use subak_wire::{Datagram, Direction, Seal, Secret};

/// An [`Endpoint`] with message authentication: it reads and writes bytes. Each datagram has the endpoint's number.
#[derive(Debug)]
pub struct AuthenticatedEndpoint {
    /// The endpoint, without authentication.
    pub endpoint: Endpoint,
    up: Seal,
    down: Seal,
    /// Datagrams that failed authentication.
    pub refused: u64,
}

impl AuthenticatedEndpoint {
    /// Like [`Endpoint::new`], with the secret shared with the allocator.
    pub fn new(number: u32, epoch: u64, settings: ControlSettings, secret: &Secret) -> Self {
        AuthenticatedEndpoint {
            endpoint: Endpoint::new(number, epoch, settings),
            up: Seal::new(secret, number, Direction::Up),
            down: Seal::new(secret, number, Direction::Down),
            refused: 0,
        }
    }

    /// Handles the bytes of a received datagram; returns the connections whose rate changed.
    pub fn take(&mut self, now_ns: Ns, bytes: &[u8]) -> Vec<u64> {
        let datagram = self.down.open(bytes).and_then(|bytes| Datagram::decode(bytes).ok());
        match datagram {
            Some(datagram) => self.endpoint.take(now_ns, &datagram),
            None => {
                self.refused += 1;
                Vec::new()
            }
        }
    }

    /// Writes the next datagram into `room`, replacing its content; false if there is no datagram. Call this method
    /// until it returns false.
    pub fn poll(&mut self, now_ns: Ns, room: &mut Vec<u8>) -> bool {
        room.clear();
        let Some(datagram) = self.endpoint.poll(now_ns) else { return false };
        // Datagrams of the core always fit.
        let _ = datagram.encode(room);
        self.up.seal(room);
        true
    }
}
