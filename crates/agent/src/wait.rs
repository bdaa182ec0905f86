//! Waiting for the end of another process, which need not be a child process.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Returns once the process with this id has ended.
pub fn for_end_of(process: u32) -> Result<(), String> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| format!("{process} is no number of a process"))?;
    let file = match pidfd_open(pid, PidfdFlags::empty()) {
        Err(Errno::SRCH) => return Ok(()),
        other => other.map_err(|e| format!("the process {process} cannot be watched: {e}"))?,
    };
    loop {
        match poll(&mut [PollFd::new(&file, PollFlags::IN)], None) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(format!("the process {process} cannot be watched: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_end_of_a_process_is_seen() {
        let mut child = std::process::Command::new("sleep").arg("0.2").spawn().unwrap();
        assert!(super::for_end_of(child.id()).is_ok());
        assert!(child.try_wait().unwrap().is_some());
        assert!(super::for_end_of(child.id()).is_ok(), "it is gone already");
        assert!(super::for_end_of(0).is_err());
    }
}
