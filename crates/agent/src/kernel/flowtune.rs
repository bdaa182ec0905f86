//! Flowtune's congestion control in the kernel: reports flowlets and paces connections at granted rates.

use super::weights::{WeightMaps, exp2};
use super::{Shared, refused, soze::name, value_of};
use crate::device::PacedCount;
use crate::shares::AskedWeight;
use crate::weight_log::Ends;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject, RingBuffer, RingBufferBuilder};
use rustix::fs::{Mode, OFlags, open};
use skeleton::{FlowtuneSkel, types};
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::rc::Rc;
use std::time::Duration;

#[allow(missing_docs, dead_code, clippy::all)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/flowtune.skel.rs"));
}

// SAFETY: the fields of the type leave no padding.
unsafe impl Shared for types::event {}
// SAFETY: the fields of the type leave no padding.
unsafe impl Shared for types::grant {}
// SAFETY: the fields of the type leave no padding.
unsafe impl Shared for types::carried {}
// SAFETY: the fields of the type leave no padding.
unsafe impl Shared for types::destination {}
// SAFETY: the fields of the type leave no padding.
unsafe impl Shared for types::prefix {}

/// Settings of the kernel programs.
pub(crate) struct Wanted<'a> {
    /// Name of the congestion control, at most 15 letters.
    pub name: &'a str,
    /// Folder of the control group; the programs handle the connections of its processes.
    pub cgroup: &'a str,
    /// Smallest flowlet that is reported, bytes; smaller ones are left to the kernel's cubic.
    pub shortest_bytes: u32,
    /// Smallest pacing rate, payload bytes a second.
    pub least_pace: u32,
    /// Time over which a connection's loss rate is measured before a report, ns.
    pub window_ns: u64,
    /// Smallest and largest weight that programs may request, with 16 fractional bits; a largest of 0 forbids
    /// requests.
    pub weights: (u32, u32),
    /// Whether connections of unknown network namespaces, such as containers', are those of the first host.
    pub containers: bool,
}

/// Kind of an event of a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum EventKind {
    /// A flowlet begins, or its weight changes.
    Begins,
    /// The flowlet ends.
    Ends,
    /// The connection lost this fraction of its packets recently, though it sent at its granted rate.
    Loses(f64),
    /// The paced connection was given another congestion control.
    Leaves,
}

/// Start, weight change, loss or end of a connection's flowlet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Event {
    /// Time by the monotonic clock, ns.
    pub time_ns: u64,
    /// Number of the connection, never reused.
    pub connection: u64,
    /// Kind of the event.
    pub kind: EventKind,
    /// Number of the host.
    pub host: u32,
    /// Destination address.
    pub to: Ipv4Addr,
    /// Both ends of the connection.
    pub ends: Ends,
    /// Key that selects one of several paths.
    pub path: u32,
    /// Weight settings that apply to the connection.
    pub asked: AskedWeight,
}

/// The loaded congestion control. Dropping this value, or the end of the process, removes it. Connections that use it
/// then continue as cubic.
pub(crate) struct Loaded {
    skeleton: FlowtuneSkel<'static>,
    events: RingBuffer<'static>,
    told: Rc<RefCell<VecDeque<Event>>>,
    /// Cookies of the namespaces that belong to hosts of other agents.
    others: BTreeSet<u64>,
    _links: Vec<Link>,
}

impl Loaded {
    /// Loads the programs and attaches them to the control group.
    pub fn new(wanted: &Wanted) -> Result<Self, String> {
        // Leaked once per process, since the skeleton must live as long as the process.
        let room: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut opened = skeleton::FlowtuneSkelBuilder::default().open(room).map_err(refused)?;
        let fixed = opened.maps.rodata_data.as_deref_mut().ok_or("the program has no settings")?;
        fixed.own = name(wanted.name)?.map(|byte| byte as _);
        fixed.shortest_bytes = wanted.shortest_bytes;
        fixed.least_pace = wanted.least_pace;
        fixed.window_ns = wanted.window_ns;
        (fixed.least_weight, fixed.most_weight) = wanted.weights;
        fixed.containers = u32::from(wanted.containers);
        // SAFETY: the pointer is into the object that `opened` owns.
        let registered = unsafe { &mut *opened.struct_ops.flowtune };
        registered.name = name(wanted.name)?.map(|byte| byte as _);
        let mut skeleton = opened.load().map_err(refused)?;
        let group = open(wanted.cgroup, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let group = group.map_err(|e| format!("the control group {} cannot be opened: {e}", wanted.cgroup))?;
        let links = vec![
            skeleton.maps.flowtune.attach_struct_ops().map_err(refused)?,
            skeleton.progs.flowtune_sockets.attach_cgroup(group.as_raw_fd()).map_err(refused)?,
            skeleton.progs.flowtune_weight.attach_cgroup(group.as_raw_fd()).map_err(refused)?,
            skeleton.progs.flowtune_created.attach_cgroup(group.as_raw_fd()).map_err(refused)?,
            skeleton.progs.flowtune_out.attach_cgroup(group.as_raw_fd()).map_err(refused)?,
            skeleton.progs.flowtune_into.attach_cgroup(group.as_raw_fd()).map_err(refused)?,
        ];
        let told = Rc::new(RefCell::new(VecDeque::new()));
        let put = Rc::clone(&told);
        let mut builder = RingBufferBuilder::new();
        let take = move |bytes: &[u8]| {
            put.borrow_mut().extend(value_of::<types::event>(bytes).map(event));
            0
        };
        builder.add(&skeleton.maps.events, take).map_err(refused)?;
        let events = builder.build().map_err(refused)?;
        Ok(Loaded { skeleton, events, told, others: BTreeSet::new(), _links: links })
    }

    /// Registers connections that existed before, in the thread's current namespace, as those of this host.
    pub fn take_over(&mut self, host: u32) -> Result<(), String> {
        self.skeleton.maps.bss_data.as_deref_mut().ok_or("the program has no variables")?.looked_at = host;
        let link = self.skeleton.progs.flowtune_present.attach().map_err(refused)?;
        let mut passes = libbpf_rs::Iter::new(&link).map_err(refused)?;
        std::io::copy(&mut passes, &mut std::io::sink())
            .map_err(|e| format!("connections cannot be looked at: {e}"))?;
        Ok(())
    }

    /// Looks up the namespaces of other agents' hosts: their connections are not taken for containers'.
    pub fn find_others(&mut self) -> Result<(), String> {
        let maps = &self.skeleton.maps;
        let found = super::namespaces_except(super::weights::id(maps.subak_hosts.as_fd())?);
        for cookie in found.difference(&self.others) {
            maps.others.update(&cookie.to_ne_bytes(), &1u32.to_ne_bytes(), MapFlags::ANY).map_err(refused)?;
        }
        for cookie in self.others.difference(&found) {
            maps.others.delete(&cookie.to_ne_bytes()).map_err(refused)?;
        }
        self.others = found;
        Ok(())
    }

    /// Whether the namespace with this cookie belongs to a host of another agent.
    pub fn is_of_others(&self, cookie: u64) -> bool {
        self.others.contains(&cookie)
    }

    /// Assigns the connections of the namespace with this cookie to the host.
    pub fn add_host(&self, cookie: u64, host: u32) -> Result<(), String> {
        self.skeleton
            .maps
            .subak_hosts
            .update(&cookie.to_ne_bytes(), &host.to_ne_bytes(), MapFlags::ANY)
            .map_err(refused)
    }

    /// Sets the end of the host's lease, ns by the monotonic clock.
    pub fn set_lease(&self, host: u32, until_ns: u64) -> Result<(), String> {
        self.skeleton.maps.leases.update(&host.to_ne_bytes(), &until_ns.to_ne_bytes(), MapFlags::ANY).map_err(refused)
    }

    /// Sets the rate of a connection, bit/s on the wire (`None` removes it). The rate is valid until `until_ns` or the
    /// end of the host's lease.
    pub fn grant(&self, connection: u64, bps: Option<f64>, until_ns: u64) -> Result<(), String> {
        let key = connection.to_ne_bytes();
        let map = &self.skeleton.maps.grants;
        let Some(bps) = bps else {
            // The connection may have no entry.
            let _ = map.delete(&key);
            return Ok(());
        };
        let grant = types::grant { rate: (bps / 8.0) as u64, until_ns };
        map.update(&key, super::bytes_of(&grant), MapFlags::ANY).map_err(refused)
    }

    /// Adds an address prefix of hosts that run an agent; `bits` is its length.
    pub fn add_partners(&self, address: Ipv4Addr, bits: u32) -> Result<(), String> {
        let key = types::destination { bits, address: u32::from_ne_bytes(address.octets()) };
        self.skeleton.maps.partners.update(super::bytes_of(&key), &1u32.to_ne_bytes(), MapFlags::ANY).map_err(refused)
    }

    /// Adds an IPv6 prefix of the host that the allocator knows by an IPv4 address; `bits` is its length.
    pub fn add_known(&self, prefix: Ipv6Addr, bits: u32, host: Ipv4Addr) -> Result<(), String> {
        let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|k| prefix.octets()[4 * at + k]));
        let key = types::prefix { bits, words: std::array::from_fn(word) };
        self.skeleton.maps.ipv6_hosts.update(super::bytes_of(&key), &host.octets(), MapFlags::ANY).map_err(refused)
    }

    /// Traffic of a host's paced connections so far: sent, and received.
    pub fn carried(&self, host: u32) -> Result<[PacedCount; 2], String> {
        let map = &self.skeleton.maps.carried;
        let one = |place: u32| -> Result<PacedCount, String> {
            let found = map.lookup(&place.to_ne_bytes(), MapFlags::ANY).map_err(refused)?;
            let sum = found.as_deref().and_then(value_of::<types::carried>).unwrap_or_default();
            Ok(PacedCount { bytes: sum.bytes, more_bytes: sum.more_bytes, segments: sum.segments })
        };
        Ok([one(2 * host)?, one(2 * host + 1)?])
    }

    /// File descriptor that is readable when there are events.
    pub fn events_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the ring buffer exists.
        unsafe { BorrowedFd::borrow_raw(self.events.epoll_fd()) }
    }

    /// Events since the previous call.
    pub fn take_events(&self) -> Result<Vec<Event>, String> {
        self.events.poll(Duration::ZERO).map_err(refused)?;
        Ok(self.told.borrow_mut().drain(..).collect())
    }

    /// Number of events that were lost because the ring buffer was full.
    pub fn lost_events(&self) -> u64 {
        self.skeleton.maps.bss_data.as_deref().map_or(0, |bss| bss.lost_events)
    }

    /// Access to the maps of weights: see [`super::weights`].
    pub fn weights(&self) -> Result<WeightMaps, String> {
        let maps = &self.skeleton.maps;
        Ok(WeightMaps {
            destinations: super::weights::id(maps.destinations.as_fd())?,
            groups: super::weights::id(maps.groups.as_fd())?,
        })
    }
}

fn event(event: types::event) -> Event {
    Event {
        time_ns: event.time_ns,
        connection: event.connection,
        kind: match event.kind {
            0 => EventKind::Begins,
            1 => EventKind::Ends,
            3 => EventKind::Leaves,
            _ => EventKind::Loses(f64::from(event.lost) / f64::from(event.sent.max(1))),
        },
        host: event.host,
        to: Ipv4Addr::from(u32::from_be(event.to)),
        ends: Ends::new(event.ends.local, event.ends.remote, [event.ends.local_port, event.ends.remote_port]),
        path: event.path,
        asked: AskedWeight {
            program: (event.asked.by_program != 0).then(|| exp2(event.asked.log2_program)),
            group: (event.asked.group != 0).then(|| (event.asked.group, exp2(event.asked.log2_group))),
            to: exp2(event.asked.log2_to),
        },
    }
}
