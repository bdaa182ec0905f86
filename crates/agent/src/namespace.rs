//! Network namespaces: a thread is in one, and what it opens there stays there.

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A namespace by its file.
pub(crate) struct Namespace {
    file: OwnedFd,
    path: String,
}

impl Namespace {
    /// That of the file `path`, such as `/proc/PID/ns/net`.
    pub fn open(path: &str) -> Result<Self, String> {
        let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let file = file.map_err(|e| format!("the namespace {path} cannot be opened: {e}"))?;
        Ok(Namespace { file, path: path.to_string() })
    }

    /// Calls `run` in the namespace: sockets that it opens belong there.
    pub fn within<T>(&self, run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        use std::os::fd::AsFd;
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|e| match e {
            Errno::PERM => format!("the namespace {} cannot be entered: run as root", self.path),
            _ => format!("the namespace {} cannot be entered: {e}", self.path),
        })?;
        run()
    }
}
