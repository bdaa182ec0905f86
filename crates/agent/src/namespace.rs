//! Network namespaces. A thread is in one namespace, and its sockets belong to the namespace in which they are
//! opened.

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace, identified by its file.
pub(crate) struct Namespace {
    file: OwnedFd,
    path: String,
}

impl Namespace {
    /// Opens the namespace of the file `path`, such as `/proc/PID/ns/net`.
    pub fn open(path: &str) -> Result<Self, String> {
        let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let file = file.map_err(|e| format!("the namespace {path} cannot be opened: {e}"))?;
        Ok(Namespace { file, path: path.to_string() })
    }

    /// Calls `run` with the thread in this namespace: sockets that it opens belong to the namespace.
    pub fn within<T>(&self, run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        use std::os::fd::AsFd;
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|e| match e {
            Errno::PERM => format!("the namespace {} cannot be entered: run as root", self.path),
            _ => format!("the namespace {} cannot be entered: {e}", self.path),
        })?;
        run()
    }
}
