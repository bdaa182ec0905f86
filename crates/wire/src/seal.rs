//! Datagrams that only who has a key can have sent.
//!
//! A sealed datagram is the datagram with a tag behind it: the first 16 bytes of its keyed BLAKE3 hash. Each endpoint and each
//! direction has a key of its own, derived from one that the allocator and the host share, so that nobody's datagram passes for
//! another's, nor an answer for a question. Epochs and numbers inside tell doubled and late ones: what is sealed is not hidden.

use crate::{Direction, reader::Malformed};
use std::fmt;

/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;
/// Bytes before an endpoint's number in a datagram.
const BEFORE_ENDPOINT: usize = 4;

/// A secret that the allocator and a host, or all hosts of a tenant, share.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl fmt::Debug for Secret {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// These bytes, which nobody can guess.
    pub fn new(bytes: [u8; 32]) -> Self {
        Secret(bytes)
    }

    /// 64 hexadecimal digits, perhaps with space around them.
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

    /// Refuses the permissions of a key's file with which users other than its owner and group can use it.
    pub fn check_mode(mode: u32) -> Result<(), String> {
        match mode & 0o027 {
            0 => Ok(()),
            _ => Err(format!("other users can read or write it (mode {:03o}); chmod 600", mode & 0o777)),
        }
    }

    /// As [`Secret::from_hex`] reads it.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Seals the datagrams of one endpoint in one direction, and tells those that were.
#[derive(Clone)]
pub struct Seal([u8; 32]);

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    /// Of `endpoint`, by its number in datagrams.
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

    /// Puts a tag behind the datagram that `bytes` hold.
    pub fn seal(&self, bytes: &mut Vec<u8>) {
        let tag = self.tag(bytes);
        bytes.extend(tag);
    }

    /// The datagram's bytes, if they were sealed so.
    pub fn open<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (datagram, tag) = bytes.split_at_checked(bytes.len().checked_sub(TAG_BYTES)?)?;
        // All of it is looked at, so that the time tells nothing.
        let differs = self.tag(datagram).iter().zip(tag).fold(0, |differs, (a, b)| differs | (a ^ b));
        (std::hint::black_box(differs) == 0).then_some(datagram)
    }
}

/// The endpoint that sealed `bytes` claim to be of, by which its seal is found: all that is read before they are opened.
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
