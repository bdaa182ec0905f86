//! Soze's congestion control in the kernel.

use super::weights::{WeightMaps, exp2};
use super::{Shared, bytes_of, refused, value_of};
use crate::weight_log::{Ends, WeightSet};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject, RingBuffer, RingBufferBuilder};
use rustix::fd::AsRawFd;
use rustix::fs::{Mode, OFlags, open};
use skeleton::types;
use std::cell::RefCell;
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::Duration;
use subak_schemes::hosts::soze::SozeHosts;
use subak_schemes::soze::SozeSettings;

#[allow(missing_docs, dead_code, clippy::all)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/soze.skel.rs"));
}

// SAFETY: `fixed.h` and `soze.bpf.c` order the fields such that there is no padding.
unsafe impl Shared for types::host {}
// SAFETY: the fields of the type leave no padding.
unsafe impl Shared for types::weight_set {}

/// Settings of the kernel programs.
pub(crate) struct Wanted<'a> {
    /// Name of the congestion control, at most 15 letters.
    pub name: &'a str,
    /// Congestion control of connections whose path carries no telemetry.
    pub fallback: &'a str,
    /// Whether all connections of the hosts use Soze; otherwise only those that select it by name.
    pub all: bool,
    /// Folder of the control group; the programs handle the connections of its processes.
    pub cgroup: &'a str,
    pub hosts: &'a SozeHosts,
    /// Size of a full packet on the wire, bytes.
    pub packet_bytes: u32,
    /// Bounds of the weights that programs may request, with 16 fractional bits; an upper bound of 0 forbids requests.
    pub weights: (u32, u32),
    /// Whether weights are logged.
    pub logs: bool,
}

/// The loaded congestion control. Dropping this value, or the end of the process, removes it.
pub(crate) struct Loaded {
    skeleton: skeleton::SozeSkel<'static>,
    events: RingBuffer<'static>,
    told: Rc<RefCell<Vec<WeightSet>>>,
    _links: Vec<Link>,
}

impl Loaded {
    /// Loads the programs and attaches them to the control group.
    pub fn new(wanted: &Wanted) -> Result<Self, String> {
        // Leaked once per process, since the skeleton must live as long as the process.
        let room: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut opened = skeleton::SozeSkelBuilder::default().open(room).map_err(refused)?;
        let fixed = opened.maps.rodata_data.as_deref_mut().ok_or("the program has no settings")?;
        fixed.own = name(wanted.name)?.map(|byte| byte as _);
        fixed.other = name(wanted.fallback)?.map(|byte| byte as _);
        fixed.all = wanted.all.into();
        fixed.logs = wanted.logs.into();
        (fixed.least_weight, fixed.most_weight) = wanted.weights;
        // SAFETY: the pointer is into the object that `opened` owns.
        let registered = unsafe { &mut *opened.struct_ops.soze };
        registered.name = name(wanted.name)?.map(|byte| byte as _);
        let mut skeleton = opened.load().map_err(refused)?;
        let group = open(wanted.cgroup, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let group = group.map_err(|e| format!("the control group {} cannot be opened: {e}", wanted.cgroup))?;
        let links = vec![
            skeleton.maps.soze.attach_struct_ops().map_err(refused)?,
            skeleton.progs.soze_sockets.attach_cgroup(group.as_raw_fd()).map_err(refused)?,
            skeleton.progs.soze_weight.attach_cgroup(group.as_raw_fd()).map_err(refused)?,
            skeleton.progs.soze_created.attach_cgroup(group.as_raw_fd()).map_err(refused)?,
        ];
        let told = Rc::new(RefCell::new(Vec::new()));
        let put = Rc::clone(&told);
        let mut builder = RingBufferBuilder::new();
        let take = move |bytes: &[u8]| {
            put.borrow_mut().extend(weight_set(bytes));
            0
        };
        builder.add(&skeleton.maps.weights_set, take).map_err(refused)?;
        let events = builder.build().map_err(refused)?;
        Ok(Loaded { skeleton, events, told, _links: links })
    }

    /// Registers a host: the namespace with this cookie, whose link has `rate_bps`.
    pub fn add_host(&self, cookie: u64, rate_bps: f64, wanted: &Wanted) -> Result<(), String> {
        let packet_bits = 8 * u64::from(wanted.packet_bytes);
        let settings = wanted.hosts.sender(rate_bps, packet_bits).ok_or("the law is not in integers")?;
        let host = types::host { law: law(&settings, wanted.hosts) };
        let map = &self.skeleton.maps.subak_hosts;
        map.update(&cookie.to_ne_bytes(), bytes_of(&host), MapFlags::ANY).map_err(refused)
    }

    /// Waits at most this long for weights of connections, and returns those since the previous call.
    pub fn take_weights(&self, most: Duration) -> Result<Vec<WeightSet>, String> {
        match self.events.poll(most) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::Interrupted => Err(refused(error)),
            _ => Ok(std::mem::take(&mut *self.told.borrow_mut())),
        }
    }

    /// Number of weights that were lost because the ring buffer was full.
    pub fn lost_weights(&self) -> u64 {
        self.skeleton.maps.bss_data.as_deref().map_or(0, |bss| bss.lost_weights)
    }

    /// Weights that apply now to connections of the thread's current namespace.
    pub fn present(&self) -> Result<Vec<WeightSet>, String> {
        let link = self.skeleton.progs.soze_present.attach().map_err(refused)?;
        let mut bytes = Vec::new();
        let read = libbpf_rs::Iter::new(&link).map_err(refused)?.read_to_end(&mut bytes);
        read.map_err(|e| format!("connections cannot be looked at: {e}"))?;
        Ok(bytes.chunks_exact(size_of::<types::weight_set>()).filter_map(weight_set).collect())
    }

    /// Access to the maps of weights: see [`super::weights`].
    pub fn weights(&self) -> Result<WeightMaps, String> {
        let id = |map: &dyn AsFd| super::weights::id(map.as_fd());
        let maps = &self.skeleton.maps;
        Ok(WeightMaps { destinations: id(&maps.destinations)?, groups: id(&maps.groups)? })
    }
}

/// The weight in an event; `None` if the event is too short.
fn weight_set(bytes: &[u8]) -> Option<WeightSet> {
    let types::weight_set { time_ns, connection, log2_weight, ends, over, .. } = value_of(bytes)?;
    Some(WeightSet {
        time_ns,
        connection,
        ends: Ends::new(ends.local, ends.remote, [ends.local_port, ends.remote_port]),
        weight: if over == 0 { exp2(log2_weight) } else { 0.0 },
    })
}

/// A name in the kernel's format: padded with zeros.
pub(super) fn name(text: &str) -> Result<[u8; 16], String> {
    let mut bytes = [0; 16];
    if text.is_empty() || text.len() > 15 || !text.is_ascii() {
        return Err(format!("\"{text}\" is no name of a congestion control"));
    }
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    Ok(bytes)
}

fn law(settings: &SozeSettings, hosts: &SozeHosts) -> types::law {
    types::law {
        log2_alpha: settings.log2_alpha,
        log2_start: settings.log2_start,
        log2_least: settings.log2_least,
        log2_packet: settings.log2_packet,
        log2_most: settings.log2_most,
        slope: settings.slope,
        most_above_ns: settings.most_above_ns,
        longest_ns: hosts.longest_ns() as u64,
        k_ns: settings.k_ns,
        m: settings.m,
        exact: settings.exact.into(),
        floor_beta: settings.floor_beta.into(),
        unit_shift: hosts.unit_shift(),
        window: settings.window.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_times_ends_and_weights() {
        let mapped = |octets: [u8; 4]| [0, 0, 0xffff_u32.to_be(), u32::from_ne_bytes(octets)];
        let ends = types::ends {
            local: mapped([10, 0, 0, 1]),
            remote: mapped([10, 0, 0, 9]),
            local_port: 4000,
            remote_port: 80,
            unused: 0,
        };
        let event = types::weight_set { time_ns: 7, connection: 5, log2_weight: 2 << 32, ends, over: 0, unused: 0 };
        let expected = WeightSet {
            time_ns: 7,
            connection: 5,
            ends: Ends { local: ("10.0.0.1".parse().unwrap(), 4000), remote: ("10.0.0.9".parse().unwrap(), 80) },
            weight: 4.0,
        };
        assert_eq!(weight_set(bytes_of(&event)), Some(expected));
        let over = types::weight_set { over: 1, ..event };
        assert_eq!(weight_set(bytes_of(&over)), Some(WeightSet { weight: 0.0, ..expected }));
        assert_eq!(weight_set(&bytes_of(&event)[1..]), None);
    }
}
