//! Bytes that a scheme's header adds to packets.

use subak_core::InputError;
use subak_core::keys::ValueType;
use subak_core::scheme::{Headers, Param, Params};

/// Parameter `header` of transports whose papers name fields and give no sizes.
pub const HEADER: Param =
    Param::number("header", 0.0, ValueType::Bytes, "bytes of the scheme's fields in each data packet");
/// Parameter `ack_header` of these transports.
pub const ACK_HEADER: Param =
    Param::number("ack_header", 0.0, ValueType::Bytes, "bytes of the scheme's fields in each ACK");

/// Reads the parameters `header` and `ack_header`.
pub fn read(params: &Params) -> Result<Headers, InputError> {
    let bytes = |name| params.whole(name, 0.0, 1000.0).map(|bytes| bytes as u32);
    Ok(Headers { data_bytes: bytes("header")?, ack_bytes: bytes("ack_header")? })
}
