//! What is wrong with an input: the place, the fault and the mend.

use std::fmt;

/// An unusable input. Every layer passes it up unchanged; the command prints it and exits with 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file, once a layer that knows it has said so.
    pub file: Option<String>,
    /// The place in the input: `flows[3].path[1]`, or `line 4, column 7`.
    pub place: String,
    /// What is wrong there.
    pub what: String,
    /// What would be right.
    pub mend: String,
}

impl Fault {
    /// A fault at `place`: `what` is wrong, `mend` would be right.
    pub fn new(place: impl Into<String>, what: impl Into<String>, mend: impl Into<String>) -> Self {
        Fault { file: None, place: place.into(), what: what.into(), mend: mend.into() }
    }

    /// The same fault in `file`, unless it names a file already.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<String>) -> Self {
        self.file.get_or_insert_with(|| file.into());
        self
    }

    /// The same fault with its place put below `prefix`: `path[1]` below `flows[3]` is `flows[3].path[1]`. A fault
    /// that names its file already lies there, and stays as it is.
    #[must_use]
    pub fn below(mut self, prefix: &str) -> Self {
        if self.file.is_some() {
            return self;
        }
        self.place = match self.place.as_str() {
            "" => prefix.to_string(),
            inner if inner.starts_with('[') => format!("{prefix}{inner}"),
            inner => format!("{prefix}.{inner}"),
        };
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(out, "{file}: ")?;
        }
        if !self.place.is_empty() {
            write!(out, "{}: ", self.place)?;
        }
        write!(out, "{}", self.what)?;
        if !self.mend.is_empty() {
            write!(out, "; {}", self.mend)?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}
