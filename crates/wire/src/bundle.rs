//! Bundles of datagrams for several endpoints (Flowtune, section 6, "More scalable rate update schemes"). Even the
//! smallest frame takes 84 bytes on a link. The allocator therefore sends full frames to intermediaries, which pass
//! the parts on.

use crate::reader::{Malformed, Reader};
use crate::{Datagram, Direction, HEADER_BYTES};

/// Datagrams for endpoints of one intermediary, concatenated.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bundle {
    /// Datagrams, one for each endpoint.
    pub parts: Vec<Datagram>,
}

impl Bundle {
    /// Packs `parts` in order into bundles of at most `most_bytes`; a larger part gets a bundle of its own.
    pub fn pack(parts: impl IntoIterator<Item = Datagram>, most_bytes: usize) -> Vec<Bundle> {
        let mut bundles: Vec<(usize, Bundle)> = Vec::new();
        for part in parts {
            let bytes = HEADER_BYTES + part.body_bytes();
            match bundles.last_mut() {
                Some((held, bundle)) if *held + bytes <= most_bytes => {
                    *held += bytes;
                    bundle.parts.push(part);
                }
                _ => bundles.push((bytes, Bundle { parts: vec![part] })),
            }
        }
        bundles.into_iter().map(|(_, bundle)| bundle).collect()
    }

    /// Appends the bundle to `out`. `None` if a part cannot be encoded; `out` then has the parts before it.
    pub fn encode(&self, out: &mut Vec<u8>) -> Option<()> {
        self.parts.iter().try_for_each(|part| part.encode(out))
    }

    /// Parses the datagrams in `bytes`: at least one, all to endpoints.
    pub fn decode(bytes: &[u8]) -> Result<Bundle, Malformed> {
        let mut reader = Reader::new(bytes);
        let mut parts = Vec::new();
        loop {
            let at = reader.at();
            let part = Datagram::read(&mut reader)?;
            if part.direction != Direction::Down {
                return Err(Malformed { at, what: "a part of a bundle that is not to an endpoint" });
            }
            parts.push(part);
            if reader.is_empty() {
                return Ok(Bundle { parts });
            }
        }
    }
}
