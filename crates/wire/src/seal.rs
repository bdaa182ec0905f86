//! Message authentication of datagrams.
//!
//! An authenticated datagram is followed by a tag: the first 16 bytes of its keyed BLAKE3 hash. Each endpoint and
//! direction has its own key, derived from the secret shared by allocator and host. A datagram is therefore valid for
//! one endpoint and one direction only. Epochs and numbers in the datagram reveal duplicates and replays. The content
//! is not encrypted.

use crate::{Direction, reader::Malformed};
use std::fmt;

/// Size of a tag, bytes.
pub const TAG_BYTES: usize = 16;
/// Offset of the endpoint's number in a datagram, bytes.
const BEFORE_ENDPOINT: usize = 4;

/// Secret shared by the allocator and a host, or all hosts of a tenant.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl fmt::Debug for Secret {
    /// Prints a placeholder, so that no log contains the secret.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// The secret with these bytes, which must be unpredictable.
    pub fn new(bytes: [u8; 32]) -> Self {
        Secret(bytes)
    }

    /// Parses 64 hexadecimal digits; surrounding white space is ignored.
    pub fn from_hex(text: &str) -> Result<Self, Malformed> {
        let digits = text.trim().as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 64 {
            return Err(Malformed { at: digits.len().min(64), what: "a key has 64 hexadecimal digits" });
        }
        for (at, digit) in digits.iter().enumerate() {
            let Some(value) = char::from(*digit).to_digit(16) else {
                return Err(Malformed { at, what: "a digit of a key that is not hexadecimal" });
            };
            bytes[at / 2] = bytes[at / 2] << 4 | value as u8;
        }
        if bytes == [0; 32] {
            return Err(Malformed { at: 0, what: "a key of zeros, which anybody can guess" });
        }
        Ok(Secret(bytes))
    }

    /// An error for file permissions that let users other than the owner and group use the key.
    pub fn check_mode(mode: u32) -> Result<(), String> {
        match mode & 0o027 {
            0 => Ok(()),
            _ => Err(format!("other users can read or write it (mode {:03o}); chmod 600", mode & 0o777)),
        }
    }

    /// The secret as hexadecimal digits, for [`Secret::from_hex`].
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Key that authenticates and verifies datagrams of one endpoint in one direction.
#[derive(Clone)]
pub struct Seal([u8; 32]);

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    /// Derives the key of `endpoint`, given by its number in datagrams.
    pub fn new(secret: &Secret, endpoint: u32, direction: Direction) -> Self {
        let way = match direction {
            Direction::Up => "subak 2026 datagram of an endpoint",
            Direction::Down => "subak 2026 datagram of the allocator",
        };
        let mut hasher = blake3::Hasher::new_derive_key(way);
        hasher.update(&secret.0).update(&endpoint.to_be_bytes());
        Seal(*hasher.finalize().as_bytes())
    }

    fn tag(&self, bytes: &[u8]) -> [u8; TAG_BYTES] {
        let hash = blake3::keyed_hash(&self.0, bytes);
        std::array::from_fn(|k| hash.as_bytes()[k])
    }

    /// Appends the tag to the datagram in `bytes`.
    pub fn seal(&self, bytes: &mut Vec<u8>) {
        let tag = self.tag(bytes);
        bytes.extend(tag);
    }

    /// The datagram without its tag; `None` if the tag is wrong.
    pub fn open<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (datagram, tag) = bytes.split_at_checked(bytes.len().checked_sub(TAG_BYTES)?)?;
        // Constant time: all bytes are compared.
        let differs = self.tag(datagram).iter().zip(tag).fold(0, |differs, (a, b)| differs | (a ^ b));
        (std::hint::black_box(differs) == 0).then_some(datagram)
    }
}

/// The endpoint number in `bytes`, by which the key is found; it is the only field read before verification.
pub fn claimed_endpoint(bytes: &[u8]) -> Option<u32> {
    bytes.get(BEFORE_ENDPOINT..)?.first_chunk().copied().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datagram;

    fn sealed(seal: &Seal) -> Vec<u8> {
        let mut bytes = Vec::new();
        Datagram::new(Direction::Up, 7, 3).encode(&mut bytes).unwrap();
        seal.seal(&mut bytes);
        bytes
    }

    #[test]
    fn only_the_same_key_endpoint_and_direction_open_it() {
        let secret = Secret::new([1; 32]);
        let seal = Seal::new(&secret, 7, Direction::Up);
        let bytes = sealed(&seal);
        assert_eq!(claimed_endpoint(&bytes), Some(7));
        let opened = seal.open(&bytes).expect("its own");
        assert_eq!(Datagram::decode(opened).unwrap().endpoint, 7);
        for other in [
            Seal::new(&Secret::new([2; 32]), 7, Direction::Up),
            Seal::new(&secret, 8, Direction::Up),
            Seal::new(&secret, 7, Direction::Down),
        ] {
            assert!(other.open(&bytes).is_none());
        }
    }

    #[test]
    fn any_other_bit_or_length_is_refused() {
        let seal = Seal::new(&Secret::new([1; 32]), 7, Direction::Up);
        let bytes = sealed(&seal);
        for bit in 0..8 * bytes.len() {
            let mut spoilt = bytes.clone();
            spoilt[bit / 8] ^= 1 << (bit % 8);
            assert!(seal.open(&spoilt).is_none(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(seal.open(&bytes[..length]).is_none(), "{length} bytes");
            assert_eq!(claimed_endpoint(&bytes[..length]).is_some(), length >= 8);
        }
    }

    #[test]
    fn secrets_are_64_digits_and_are_not_shown() {
        let secret = Secret::from_hex(&format!(" {}\n", "0F".repeat(32))).unwrap();
        assert_eq!(secret, Secret::new([15; 32]));
        assert_eq!(Secret::from_hex(&secret.hex()), Ok(secret.clone()));
        assert_eq!(format!("{secret:?}"), "Secret");
        for wrong in ["", "0f", &"0g".repeat(32), &"0".repeat(65), &"é".repeat(32)] {
            assert!(Secret::from_hex(wrong).is_err(), "{wrong}");
        }
    }
}
