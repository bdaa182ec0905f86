//! Weights of connections, written into maps of the kernel programs.

use super::refused;
use libbpf_rs::{MapCore, MapFlags};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;

/// Ids of the maps that hold weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightMaps {
    /// Id of the map by destination.
    pub destinations: u32,
    /// Id of the map by control group.
    pub groups: u32,
}

/// The connections to which a weight applies. The kernel program reads the weight when a connection begins. A program's
/// own request takes precedence over the control group's weight, and the control group's over the destination's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// Connections to addresses with this prefix; the number is its length in bits.
    To(Ipv4Addr, u32),
    /// Connections of processes in the control group with this folder, but not in its subgroups.
    Group(String),
}

impl std::str::FromStr for Whose {
    type Err = String;

    /// Parses `10.1.0.0/16`, `10.1.2.3`, or a folder, which begins with a slash.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with('/') {
            return Ok(Whose::Group(text.to_string()));
        }
        let (address, bits) = text.split_once('/').unwrap_or((text, "32"));
        let bits = bits.parse().ok().filter(|bits| *bits <= 32);
        let read = address.parse().ok().zip(bits).map(|(address, bits)| Whose::To(address, bits));
        read.ok_or_else(|| {
            format!("\"{text}\" is neither an address nor a folder; give 10.0.0.0/8 or /sys/fs/cgroup/web, for example")
        })
    }
}

/// Type of the file system of control groups (`CGROUP2_SUPER_MAGIC`).
const CGROUP2: rustix::fs::FsWord = 0x6367_7270;

impl WeightMaps {
    /// Sets the weight of these connections.
    pub fn set(&self, whose: &Whose, weight: f64) -> Result<(), String> {
        let log2_weight = log2(weight)?.to_ne_bytes();
        let (map, name, key) = match whose {
            Whose::To(address, bits) => {
                (self.destinations, "destinations", [bits.to_ne_bytes(), address.octets()].concat())
            }
            Whose::Group(folder) => {
                let hint = "name a folder below the mount of cgroup2, such as /sys/fs/cgroup/web";
                let found = std::fs::metadata(folder).map_err(|e| format!("{folder}: {e}; {hint}"))?;
                let system = rustix::fs::statfs(folder.as_str()).map_err(|e| format!("{folder}: {e}; {hint}"))?;
                if system.f_type != CGROUP2 {
                    return Err(format!("{folder} is no control group; {hint}"));
                }
                // The id of a control group is its folder's inode number.
                (self.groups, "groups", found.ino().to_ne_bytes().to_vec())
            }
        };
        let map = super::map_of(map, name)?;
        map.update(&key, &log2_weight, MapFlags::ANY).map_err(refused)
    }
}

/// Binary logarithm of the weight, in units of 2^-32; an error for weights outside 0.001 to 1000000.
fn log2(weight: f64) -> Result<i64, String> {
    match weight.is_finite() && (1e-3..=1e6).contains(&weight) {
        true => Ok((weight.log2() * 4_294_967_296.0).round() as i64),
        false => Err(format!("the weight is {weight}; give one from 0.001 to 1000000")),
    }
}

/// The weight with this binary logarithm, in units of 2^-32.
pub(super) fn exp2(log2_weight: i64) -> f64 {
    (log2_weight as f64 / 4_294_967_296.0).exp2()
}

/// Id of a map.
pub(crate) fn id(map: BorrowedFd<'_>) -> Result<u32, String> {
    let mut info = libbpf_rs::libbpf_sys::bpf_map_info::default();
    let mut bytes = size_of_val(&info) as u32;
    // SAFETY: the kernel writes at most `bytes` into `info`.
    let done = unsafe {
        libbpf_rs::libbpf_sys::bpf_obj_get_info_by_fd(map.as_raw_fd(), (&raw mut info).cast(), &raw mut bytes)
    };
    if done == 0 { Ok(info.id) } else { Err(format!("a map has no number: {}", std::io::Error::last_os_error())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_is_an_address_or_a_folder() {
        assert_eq!("10.1.0.0/16".parse(), Ok(Whose::To(Ipv4Addr::new(10, 1, 0, 0), 16)));
        assert_eq!("10.1.2.3".parse(), Ok(Whose::To(Ipv4Addr::new(10, 1, 2, 3), 32)));
        assert_eq!("/sys/fs/cgroup/web".parse(), Ok(Whose::Group("/sys/fs/cgroup/web".to_string())));
        for wrong in ["", "10.1.2", "10.1.2.3/33", "10.1.2.3/-1", "web", "10.1.2.3/"] {
            assert!(wrong.parse::<Whose>().unwrap_err().contains("neither an address"), "{wrong}");
        }
    }

    #[test]
    fn weights_are_positive() {
        assert_eq!(log2(4.0), Ok(2 << 32));
        assert_eq!(log2(0.5), Ok(-(1 << 32)));
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert!(log2(wrong).is_err(), "{wrong}");
        }
    }
}
