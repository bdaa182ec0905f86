//! Datagrams for several endpoints in one (Flowtune, section 6, "More scalable rate update schemes"): a tiny frame costs 84
//! bytes of a link whatever it holds, so the allocator sends full ones to intermediaries, and these pass the parts on.

use crate::reader::{Malformed, Reader};
use crate::{Datagram, Direction, HEADER_BYTES};

/// Datagrams for endpoints of one intermediary, one behind the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bundle {
    /// Each for an endpoint.
    pub parts: Vec<Datagram>,
}

impl Bundle {
    /// Bundles of at most `most_bytes` each, in the order of `parts`; a part that is larger goes alone.
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

    /// Appends it to `out`. `None` if a part cannot be encoded; then `out` holds those before it.
    pub fn encode(&self, out: &mut Vec<u8>) -> Option<()> {
        self.parts.iter().try_for_each(|part| part.encode(out))
    }

    /// The datagrams that `bytes` hold: at least one, all to endpoints.
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
