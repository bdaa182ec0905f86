//! Queue statistics of a namespace's devices, by `RTM_GETQDISC` of rtnetlink.

use rustix::fd::OwnedFd;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with};
use std::collections::BTreeMap;
use subak_testbed::LinkCounts;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const TC_H_ROOT: u32 = u32::MAX;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
/// Size of a netlink message's header, bytes.
const HEADER: usize = 16;
/// Size of the fields before the attributes of a queueing discipline (`tcmsg`), bytes.
const TCMSG: usize = 20;

/// Error: a reply of the kernel that is not valid netlink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedNetlink;

/// A netlink socket in one namespace.
pub(crate) struct Queues {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl Queues {
    /// Opens the socket in the thread's current namespace.
    pub fn here() -> Result<Self, String> {
        // Protocol 0 of netlink is rtnetlink.
        let open = || {
            let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
            bind(&socket, &SocketAddrNetlink::new(0, 0))?;
            Ok(socket)
        };
        let socket = open().map_err(|e: rustix::io::Errno| format!("queues cannot be asked for: {e}"))?;
        Ok(Queues { socket, buffer: vec![0; 1 << 16] })
    }

    /// Statistics of each device's root qdisc, by the device's number.
    pub fn look(&mut self) -> Result<BTreeMap<u32, LinkCounts>, String> {
        let mut ask = Vec::with_capacity(HEADER + TCMSG);
        ask.extend((HEADER as u32 + TCMSG as u32).to_ne_bytes());
        ask.extend(RTM_GETQDISC.to_ne_bytes());
        ask.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
        ask.extend([0; 8 + TCMSG]);
        let wrong = |what: &dyn std::fmt::Display| format!("queues could not be looked at: {what}");
        send(&self.socket, &ask, SendFlags::empty()).map_err(|e| wrong(&e))?;
        let mut found = BTreeMap::new();
        loop {
            let (_, bytes) =
                recv(&self.socket, self.buffer.as_mut_slice(), RecvFlags::empty()).map_err(|e| wrong(&e))?;
            match read(&self.buffer[..bytes.min(self.buffer.len())], &mut found) {
                Ok(true) => return Ok(found),
                Ok(false) => {}
                Err(MalformedNetlink) => return Err(wrong(&"the kernel's answer is malformed")),
            }
        }
    }
}

/// Parses one datagram of messages into `found`; returns true after the last message.
pub fn read(mut bytes: &[u8], found: &mut BTreeMap<u32, LinkCounts>) -> Result<bool, MalformedNetlink> {
    while bytes.len() >= HEADER {
        let length = u32_at(bytes, 0)? as usize;
        let kind = u16_at(bytes, 4)?;
        let message = bytes.get(HEADER..length).ok_or(MalformedNetlink)?;
        match kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => return Err(MalformedNetlink),
            RTM_NEWQDISC => {
                let device = u32_at(message, 4)?;
                if u32_at(message, 12)? == TC_H_ROOT {
                    found.insert(device, counts(message.get(TCMSG..).ok_or(MalformedNetlink)?)?);
                }
            }
            _ => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

fn counts(attributes: &[u8]) -> Result<LinkCounts, MalformedNetlink> {
    let mut counts = LinkCounts::default();
    each(attributes, |kind, value| {
        if kind != TCA_STATS2 {
            return Ok(());
        }
        each(value, |kind, value| {
            match kind {
                TCA_STATS_BASIC => {
                    let sent = value.get(..8).and_then(|b| b.try_into().ok()).ok_or(MalformedNetlink)?;
                    counts.sent_bytes = u64::from_ne_bytes(sent);
                    counts.sent_packets = u64::from(u32_at(value, 8)?);
                }
                TCA_STATS_QUEUE => {
                    counts.queued_packets = u64::from(u32_at(value, 0)?);
                    counts.queued_bytes = u64::from(u32_at(value, 4)?);
                    counts.dropped_packets = u64::from(u32_at(value, 8)?);
                }
                _ => {}
            }
            Ok(())
        })
    })?;
    Ok(counts)
}

/// Calls back for each attribute, which consists of length, type and value.
fn each(
    mut bytes: &[u8],
    mut take: impl FnMut(u16, &[u8]) -> Result<(), MalformedNetlink>,
) -> Result<(), MalformedNetlink> {
    while bytes.len() >= 4 {
        let length = usize::from(u16_at(bytes, 0)?);
        let value = bytes.get(4..length).ok_or(MalformedNetlink)?;
        take(u16_at(bytes, 2)? & 0x3fff, value)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(())
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, MalformedNetlink> {
    let taken = bytes.get(at..at + 2).and_then(|b| b.try_into().ok());
    taken.map(u16::from_ne_bytes).ok_or(MalformedNetlink)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, MalformedNetlink> {
    let taken = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
    taken.map(u32::from_ne_bytes).ok_or(MalformedNetlink)
}
