//! Writer of pcapng: a section header block, an interface description block for each link, and an enhanced packet
//! block for each frame (draft-ietf-opsawg-pcapng, sections 4.1 to 4.3). Three kinds of block do not justify a
//! dependency.

use std::io::{self, Write};

const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const ETHERNET: u16 = 1;
/// Codes of block options.
const END: u16 = 0;
const COMMENT: u16 = 1;
const NAME: u16 = 2;
const SPEED: u16 = 8;
const RESOLUTION: u16 = 9;
const APPLICATION: u16 = 4;

/// Maximum length of an option's text, bytes: the length field has 16 bits.
const MOST_TEXT: usize = 60_000;

/// A capture file that is being written.
pub(crate) struct Pcapng<W: Write> {
    out: W,
    block: Vec<u8>,
    interfaces: u32,
}

impl<W: Write> Pcapng<W> {
    /// Starts a file with the section header block.
    pub fn new(out: W) -> io::Result<Self> {
        let mut file = Pcapng { out, block: Vec::new(), interfaces: 0 };
        file.block.extend(0x1A2B_3C4Du32.to_le_bytes());
        file.block.extend([1, 0, 0, 0]); // version 1.0
        file.block.extend((-1i64).to_le_bytes()); // a section of unknown length
        file.option(APPLICATION, concat!("subak ", env!("CARGO_PKG_VERSION")).as_bytes());
        file.option(END, &[]);
        file.end(SECTION)?;
        Ok(file)
    }

    /// Adds an interface description; returns the interface's number.
    pub fn interface(&mut self, name: &str, speed_bps: u64) -> io::Result<u32> {
        self.block.extend(ETHERNET.to_le_bytes());
        self.block.extend([0, 0]);
        self.block.extend(0u32.to_le_bytes()); // frames of any length
        self.option(NAME, text(name).as_bytes());
        self.option(SPEED, &speed_bps.to_le_bytes());
        self.option(RESOLUTION, &[9]); // 10^-9 s
        self.option(END, &[]);
        self.end(INTERFACE)?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Writes a frame of `length` bytes, whose first bytes are `captured`.
    pub fn frame(
        &mut self,
        interface: u32,
        at_ns: u64,
        captured: &[u8],
        length: u32,
        comment: Option<&str>,
    ) -> io::Result<()> {
        self.block.extend(interface.to_le_bytes());
        self.block.extend(((at_ns >> 32) as u32).to_le_bytes());
        self.block.extend((at_ns as u32).to_le_bytes());
        self.block.extend((captured.len() as u32).to_le_bytes());
        self.block.extend(length.to_le_bytes());
        self.block.extend(captured);
        self.pad();
        if let Some(comment) = comment {
            self.option(COMMENT, text(comment).as_bytes());
            self.option(END, &[]);
        }
        self.end(PACKET)
    }

    /// Flushes the output.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.block.extend(value);
        self.pad();
    }

    fn end(&mut self, kind: u32) -> io::Result<()> {
        let length = (self.block.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length)?;
        self.out.write_all(&self.block)?;
        self.block.clear();
        self.out.write_all(&length)
    }
}

/// Truncates a text to the size of an option.
fn text(text: &str) -> &str {
    let end = (0..=text.len().min(MOST_TEXT)).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}
