//! Text inputs from Python, and the files that they name.

use std::path::Path;
use subak_core::InputError;

/// The input as text; an error unless it is UTF-8.
pub fn utf8(text: &[u8]) -> Result<&str, InputError> {
    std::str::from_utf8(text).map_err(|e| {
        let what = format!("it is not text: byte {} is no UTF-8", e.valid_up_to());
        InputError::new("", what, "give a text file in UTF-8")
    })
}

/// Text of a file that an input names. An error gets its place in the input, not in that file.
pub fn read(folder: &Path, name: &str) -> Result<String, InputError> {
    subak_lab::read_text(&folder.join(name)).map_err(|fault| {
        let path = fault.file.unwrap_or_default();
        InputError::new("", format!("{path} {}", fault.what), fault.hint)
    })
}
