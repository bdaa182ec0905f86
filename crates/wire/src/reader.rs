//! Sequential reader of bytes.

use std::fmt;

/// Error of bytes that are no valid message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// Offset of the error, bytes from the start.
    pub at: usize,
    /// The problem.
    pub what: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "byte {}: {}", self.at, self.what)
    }
}

impl std::error::Error for Malformed {}

/// Cursor over the bytes of a message.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    /// Number of bytes read.
    pub fn at(&self) -> usize {
        self.at
    }

    pub fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// An error whose offset is that of the last `bytes` bytes read.
    pub fn before(&self, bytes: usize, what: &'static str) -> Malformed {
        Malformed { at: self.at.saturating_sub(bytes), what }
    }

    /// An error if bytes are left.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.is_empty() { Ok(()) } else { Err(self.before(0, "bytes behind the end")) }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let Some(bytes) = self.bytes[self.at..].first_chunk::<N>() else {
            return Err(self.before(0, "the bytes end in the middle of a number"));
        };
        self.at += N;
        Ok(*bytes)
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.take::<1>().map(|[byte]| byte)
    }
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.take().map(u16::from_be_bytes)
    }
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_be_bytes)
    }
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_be_bytes)
    }
}
