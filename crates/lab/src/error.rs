//! What can go wrong with a run.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use subak_core::Fault;

/// Why something could not be done.
#[derive(Debug)]
pub enum Error {
    /// The input is unusable.
    Fault(Fault),
    /// A file could not be read or written.
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn file(path: &Path, source: impl Into<io::Error>) -> Self {
        Error::File { path: path.to_path_buf(), source: source.into() }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Error::Fault(fault)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Fault(fault) => fault.fmt(out),
            Error::File { path, source } => write!(out, "{}: {source}", path.display()),
        }
    }
}

impl std::error::Error for Error {}
