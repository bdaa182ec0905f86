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
        let file = file.map_err(|e| {
            format!("the namespace {path} cannot be opened: {e}; give /run/netns/NAME or /proc/PID/ns/net")
        })?;
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

#[cfg(feature = "bpf")]
impl Namespace {
    /// The kernel's number of the namespace, which is never reused.
    pub fn cookie(&self) -> Result<u64, String> {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
        self.within(|| {
            let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
            crate::sys::namespace_cookie(socket.map_err(|e| format!("a socket cannot be opened: {e}"))?)
        })
    }
}

/// The network namespaces of the machine's processes except those of the files `known`. A namespace whose processes
/// may not be looked at is not among them.
#[cfg(feature = "bpf")]
pub(crate) fn others(known: &[&str]) -> Vec<Namespace> {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &str| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let mut seen: std::collections::BTreeSet<_> = known.iter().filter_map(|path| identity(path)).collect();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let namespaces = processes.map(|process| format!("/proc/{}/ns/net", process.file_name().display()));
    let new = |path: &String| identity(path).is_some_and(|found| seen.insert(found));
    namespaces.filter(new).filter_map(|path| Namespace::open(&path).ok()).collect()
}
