//! Output queues that write their delay into packets: eBPF programs at both ends of each shaper.

use super::{Shared, bytes_of, refused, value_of};
use crate::namespace::Namespace;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject, ProgramMut, libbpf_sys};
use rustix::fd::{FromRawFd, OwnedFd};
use skeleton::types;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use subak_schemes::hosts::soze::SozeHosts;
use subak_schemes::soze::SozeLinkSettings;

#[allow(missing_docs, dead_code, clippy::all)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/queue.skel.rs"));
}

// SAFETY: `queue.bpf.c` and `fixed.h` order the fields such that there is no padding.
unsafe impl Shared for types::port {}
// SAFETY: the fields of the type leave no padding.
unsafe impl Shared for types::counts {}

/// An output queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Queue {
    /// Number of the device with the shaper.
    pub enter: u32,
    /// Number of the device behind the shaper.
    pub leave: u32,
    /// Number of the device by which packets leave.
    pub out: u32,
    /// Whether it is a host's own queue.
    pub at_host: bool,
    pub rate_bps: f64,
    /// ECN threshold: queue length above which packets are marked, bytes; 0 for no marks.
    pub ecn_bytes: u64,
    /// Time from the start during which the queue removes TCP options, as some middleboxes do, ns.
    pub strips_for_ns: u64,
}

/// The loaded programs. Dropping this value, or the end of the process, removes them.
pub(crate) struct Loaded {
    skeleton: skeleton::QueueSkel<'static>,
    links: Vec<OwnedFd>,
    ports: u32,
}

impl Loaded {
    /// Loads the programs, attached to no queue yet.
    pub fn new() -> Result<Self, String> {
        // Leaked once per process, since the skeleton must live as long as the process.
        let room: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
        let opened = skeleton::QueueSkelBuilder::default().open(room).map_err(refused)?;
        Ok(Loaded { skeleton: opened.load().map_err(refused)?, links: Vec::new(), ports: 0 })
    }

    /// Attaches the programs to a queue in the namespace `place`. Device numbers are unique over all nodes.
    pub fn add(&mut self, place: &Namespace, queue: Queue, hosts: Option<&SozeHosts>) -> Result<(), String> {
        let told = hosts.and_then(|h| h.link(queue.rate_bps)).unwrap_or_default();
        let port = types::port {
            device: queue.out,
            at_host: queue.at_host.into(),
            unit_shift: hosts.map_or(0, SozeHosts::unit_shift),
            ecn_bytes: queue.ecn_bytes,
            strips_until_ns: match queue.strips_for_ns {
                0 => 0,
                for_ns => crate::traffic::clock_ns().saturating_add(for_ns),
            },
            counts: counts(&told),
            ..types::port::default()
        };
        let (number, maps) = (self.ports.to_ne_bytes(), &self.skeleton.maps);
        self.ports += 1;
        maps.ports.update(&number, bytes_of(&port), MapFlags::ANY).map_err(refused)?;
        for device in [queue.enter, queue.leave] {
            maps.devices.update(&device.to_ne_bytes(), &number, MapFlags::ANY).map_err(refused)?;
        }
        let programs = &self.skeleton.progs;
        let links = place.within(|| {
            Ok([
                attach(&programs.enter, queue.enter, libbpf_sys::BPF_TCX_EGRESS)?,
                attach(&programs.leave, queue.leave, libbpf_sys::BPF_TCX_INGRESS)?,
            ])
        })?;
        self.links.extend(links);
        Ok(())
    }

    /// Id of the map with the queues' counters: see [`counters`].
    pub fn map(&self) -> Result<u32, String> {
        super::weights::id(self.skeleton.maps.ports.as_fd())
    }
}

/// Counters of a queue since it was attached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct QueueCounters {
    /// Packets that have left.
    pub packets: u64,
    /// Packets in which the queue raised the largest delay on the path.
    pub raised: u64,
    /// Packets in which the queue set an ECN mark.
    pub marked: u64,
}

/// Reads the counters of the first `queues` queues from the map with this id, in the order of the configuration.
pub fn counters(map: u32, queues: u32) -> Result<Vec<QueueCounters>, String> {
    let map = super::map_of(map, "ports")?;
    let one = |number: u32| {
        let held = map.lookup(&number.to_ne_bytes(), MapFlags::ANY).map_err(refused)?;
        let port: Option<types::port> = held.as_deref().and_then(value_of);
        let port = port.ok_or_else(|| format!("--queues: no queue has the number {number}; give a smaller number"))?;
        Ok(QueueCounters { packets: port.packets, raised: port.raised, marked: port.marked })
    };
    (0..queues).map(one).collect()
}

/// Attaches a program to a device of the thread's current namespace.
pub(super) fn attach(program: &ProgramMut, device: u32, at: libbpf_sys::bpf_attach_type) -> Result<OwnedFd, String> {
    // SAFETY: both arguments are integers, and there are no options.
    let link = unsafe { libbpf_sys::bpf_link_create(program.as_fd().as_raw_fd(), device as i32, at, std::ptr::null()) };
    if link < 0 {
        let error = std::io::Error::from_raw_os_error(-link);
        return Err(format!("the kernel attaches no program to device {device}: {error} (Linux 6.6 or later does)"));
    }
    // SAFETY: the kernel returned the descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
}

pub(super) fn counts(told: &SozeLinkSettings) -> types::counts {
    types::counts {
        ns_per_byte: told.ns_per_byte,
        most_bytes: told.most_bytes,
        decay: told.decay,
        longest_ns: told.longest_ns,
        told_per_byte: told.told_per_byte,
        is_utilization: told.is_utilization.into(),
        is_virtual: told.is_virtual.into(),
        eta: told.eta,
        queue: told.queue,
        k_ns: told.k_ns,
        per_empties: told.per_empties,
        most_excess_ns: told.most_excess_ns,
        most_ns: told.most_ns,
        start_ns: told.start_ns,
        anew_ns: told.anew_ns,
        ..types::counts::default()
    }
}
