//! Flowtune's congestion control in the kernel: flowlets that it tells of, and rates that it is told.

use super::weights::Weights;
use super::{Shared, refused, soze::name, value_of};
use crate::device::PacedCount;
use crate::shares::AskedWeight;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject, RingBuffer, RingBufferBuilder};
use rustix::fs::{Mode, OFlags, open};
use skeleton::{FlowtuneSkel, types};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::rc::Rc;
use std::time::Duration;

#[allow(missing_docs, dead_code, clippy::all)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/flowtune.skel.rs"));
}

// SAFETY: its members leave no gap.
unsafe impl Shared for types::event {}
// SAFETY: likewise.
unsafe impl Shared for types::grant {}
// SAFETY: likewise.
unsafe impl Shared for types::carried {}
// SAFETY: likewise.
unsafe impl Shared for types::destination {}

/// Settings of the kernel programs.
pub(crate) struct Wanted<'a> {
    /// The name of the congestion control, up to 15 letters.
    pub name: &'a str,
    /// A control group: its processes' connections are looked at.
    pub cgroup: &'a str,
    /// Flowlets of fewer bytes are left alone.
    pub shortest_bytes: u32,
    /// No pace is slower, payload in bytes a second.
    pub least_pace: u32,
    /// Losses are counted for so long before they are told.
    pub window_ns: u64,
    /// What programs may say of weights, the least and the most, 16 bits after the point; nothing where the most is 0.
    pub weights: (u32, u32),
}

/// What may happen to a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum EventKind {
    /// A flowlet begins, or goes on with another weight.
    Begins,
    /// It ends.
    Ends,
    /// It lost this share of its packets lately, though it had a rate.
    Loses(f64),
}

/// Start, weight change or end of a connection's flowlet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Event {
    /// By the monotonic clock.
    pub time_ns: u64,
    /// Its number, which no other has had.
    pub connection: u64,
    /// What it is.
    pub kind: EventKind,
    /// The number of the host.
    pub host: u32,
    /// Where to.
    pub to: Ipv4Addr,
    /// Which of several paths.
    pub path: u32,
    /// What is said of its weight.
    pub asked: AskedWeight,
}

/// The control is there until this is dropped, or the process ends in any way. Connections that have it keep it, as cubic.
pub(crate) struct Loaded {
    skeleton: FlowtuneSkel<'static>,
    events: RingBuffer<'static>,
    told: Rc<RefCell<VecDeque<Event>>>,
    _links: Vec<Link>,
}

impl Loaded {
    /// Loads it, and attaches it to the control group.
    pub fn new(wanted: &Wanted) -> Result<Self, String> {
        // One a process, for as long as the process lives.
        let room: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut opened = skeleton::FlowtuneSkelBuilder::default().open(room).map_err(refused)?;
        let fixed = opened.maps.rodata_data.as_deref_mut().ok_or("the program has no settings")?;
        fixed.own = name(wanted.name)?.map(|byte| byte as _);
        fixed.shortest_bytes = wanted.shortest_bytes;
        fixed.least_pace = wanted.least_pace;
        fixed.window_ns = wanted.window_ns;
        (fixed.least_weight, fixed.most_weight) = wanted.weights;
        // SAFETY: it points into the object that `opened` holds.
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
        Ok(Loaded { skeleton, events, told, _links: links })
    }

    /// Takes over the connections of the namespace that the thread is in: those of the host with this number that ran before.
    pub fn take_over(&mut self, host: u32) -> Result<(), String> {
        self.skeleton.maps.bss_data.as_deref_mut().ok_or("the program has no variables")?.looked_at = host;
        let link = self.skeleton.progs.flowtune_present.attach().map_err(refused)?;
        let mut passes = libbpf_rs::Iter::new(&link).map_err(refused)?;
        std::io::copy(&mut passes, &mut std::io::sink())
            .map_err(|e| format!("connections cannot be looked at: {e}"))?;
        Ok(())
    }

    /// The connections of the namespace with this cookie are those of the host with this number.
    pub fn add_host(&self, cookie: u64, host: u32) -> Result<(), String> {
        self.skeleton.maps.hosts.update(&cookie.to_ne_bytes(), &host.to_ne_bytes(), MapFlags::ANY).map_err(refused)
    }

    /// Until when what a host was granted holds.
    pub fn set_lease(&self, host: u32, until_ns: u64) -> Result<(), String> {
        self.skeleton.maps.leases.update(&host.to_ne_bytes(), &until_ns.to_ne_bytes(), MapFlags::ANY).map_err(refused)
    }

    /// A connection may send so much, bit/s on the wire, until `until_ns` whatever its host's lease; none for no rate.
    pub fn grant(&self, connection: u64, bps: Option<f64>, until_ns: u64) -> Result<(), String> {
        let key = connection.to_ne_bytes();
        let map = &self.skeleton.maps.grants;
        let Some(bps) = bps else {
            // It may have none.
            let _ = map.delete(&key);
            return Ok(());
        };
        let grant = types::grant { rate: (bps / 8.0) as u64, until_ns };
        map.update(&key, super::bytes_of(&grant), MapFlags::ANY).map_err(refused)
    }

    /// Hosts at the addresses that share `bits` first bits with this one have agents, too.
    pub fn add_partners(&self, address: Ipv4Addr, bits: u32) -> Result<(), String> {
        let key = types::destination { bits, address: u32::from_ne_bytes(address.octets()) };
        self.skeleton.maps.partners.update(super::bytes_of(&key), &1u32.to_ne_bytes(), MapFlags::ANY).map_err(refused)
    }

    /// What paced connections of a host carried so far: what left it, and what came to it.
    pub fn carried(&self, host: u32) -> Result<[PacedCount; 2], String> {
        let map = &self.skeleton.maps.carried;
        let one = |place: u32| -> Result<PacedCount, String> {
            let found = map.lookup(&place.to_ne_bytes(), MapFlags::ANY).map_err(refused)?;
            let sum = found.as_deref().and_then(value_of::<types::carried>).unwrap_or_default();
            Ok(PacedCount { bytes: sum.bytes, more_bytes: sum.more_bytes, segments: sum.segments })
        };
        Ok([one(2 * host)?, one(2 * host + 1)?])
    }

    /// To wait for.
    pub fn events_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: it is open for as long as the ring buffer is there.
        unsafe { BorrowedFd::borrow_raw(self.events.epoll_fd()) }
    }

    /// Events since the previous call.
    pub fn take_events(&self) -> Result<Vec<Event>, String> {
        self.events.poll(Duration::ZERO).map_err(refused)?;
        Ok(self.told.borrow_mut().drain(..).collect())
    }

    /// Events that there was no room for.
    pub fn lost_events(&self) -> u64 {
        self.skeleton.maps.bss_data.as_deref().map_or(0, |bss| bss.lost_events)
    }

    /// Where weights are told: see [`super::weights`].
    pub fn weights(&self) -> Result<Weights, String> {
        let maps = &self.skeleton.maps;
        Ok(Weights {
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
            _ => EventKind::Loses(f64::from(event.lost) / f64::from(event.sent.max(1))),
        },
        host: event.host,
        to: Ipv4Addr::from(u32::from_be(event.to)),
        path: event.path,
        asked: AskedWeight {
            program: (event.asked.by_program != 0).then(|| exp2(event.asked.log2_program)),
            group: (event.asked.group != 0).then(|| (event.asked.group, exp2(event.asked.log2_group))),
            to: exp2(event.asked.log2_to),
        },
    }
}

fn exp2(log2_weight: i64) -> f64 {
    (log2_weight as f64 / 4_294_967_296.0).exp2()
}
