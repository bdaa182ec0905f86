//! Errors of a run.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use subak_core::InputError;

/// Error of a call of this library.
#[derive(Debug)]
pub enum Error {
    /// A spec or another input is invalid.
    InputError(InputError),
    /// A file could not be read or written.
    File {
        /// Name of the file.
        path: PathBuf,
        /// Message of the operating system.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn file(path: &Path, source: impl Into<io::Error>) -> Self {
        Error::File { path: path.to_path_buf(), source: source.into() }
    }
}

impl From<InputError> for Error {
    fn from(fault: InputError) -> Self {
        Error::InputError(fault)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::InputError(fault) => fault.fmt(out),
            Error::File { path, source } => write!(out, "{}: {source}", path.display()),
        }
    }
}

impl std::error::Error for Error {}
