//! A host's device as the kernel counts it, and what of that nobody scheduled.
#![cfg_attr(not(feature = "bpf"), allow(dead_code))]

use std::fs::File;
use std::os::unix::fs::FileExt;

/// What paced connections carried, one way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacedCount {
    /// With one header for each packet of the kernel.
    pub bytes: u64,
    /// Headers of further segments, where one packet of the kernel is several on the wire.
    pub more_bytes: u64,
    /// Packets on the wire.
    pub segments: u64,
}

/// What a device carried, one way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceCount {
    /// With the headers of the link.
    pub bytes: u64,
    /// As the device counts them.
    pub packets: u64,
}

/// Counters of one device: what it sent, and what it received.
#[derive(Debug)]
pub struct Device {
    file: File,
    name: String,
}

/// Room for the counters of a machine's devices.
const MOST_BYTES: usize = 1 << 20;

impl Device {
    /// Of the device `name` in the namespace that the thread is in.
    pub fn open(name: &str) -> Result<Self, String> {
        let file = File::open("/proc/thread-self/net/dev").map_err(|e| format!("devices cannot be counted: {e}"))?;
        let device = Device { file, name: name.to_string() };
        device.counts().map(|_| device).ok_or_else(|| format!("there is no device {name}"))
    }

    /// What it sent and received so far; nothing if it is gone.
    pub fn counts(&self) -> Option<[DeviceCount; 2]> {
        let mut text = Vec::new();
        let mut part = [0; 4096];
        while text.len() < MOST_BYTES {
            let read = self.file.read_at(&mut part, text.len() as u64).ok()?;
            if read == 0 {
                break;
            }
            text.extend(&part[..read]);
        }
        counts_of(std::str::from_utf8(&text).ok()?, &self.name)
    }
}

/// The device by which packets leave the namespace that the thread is in: that of the default route, else its only one.
pub fn leaving() -> Option<String> {
    let routes = std::fs::read_to_string("/proc/thread-self/net/route").ok()?;
    let of_default = |line: &str| {
        let mut words = line.split_whitespace();
        let device = words.next()?;
        (words.next()? == "00000000").then(|| device.to_string())
    };
    routes.lines().find_map(of_default).or_else(|| {
        let devices = std::fs::read_to_string("/proc/thread-self/net/dev").ok()?;
        let names = devices.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
        let mut others = names.filter(|name| *name != "lo");
        let only = others.next()?.to_string();
        others.next().is_none().then_some(only)
    })
}

fn counts_of(text: &str, name: &str) -> Option<[DeviceCount; 2]> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    let words: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let count = |at: usize| Some(DeviceCount { bytes: *words.get(at)?, packets: *words.get(at + 1)? });
    Some([count(8)?, count(0)?])
}

/// What a device carried that no connection paced, bytes. A device that counts segments has their headers, too.
pub fn unscheduled_bytes(device: DeviceCount, paced: PacedCount) -> u64 {
    let more_bytes = if device.packets >= paced.segments { paced.more_bytes } else { 0 };
    device.bytes.saturating_sub(paced.bytes + more_bytes)
}

/// Rates of what nobody scheduled, from one look to the next.
#[derive(Debug)]
pub struct Unscheduled {
    device: Device,
    before: Option<(u64, [DeviceCount; 2], [PacedCount; 2])>,
    /// Reports of nothing that are still to be told: one may be lost.
    zeros: u32,
}

/// Time between two looks: shorter than people notice, and many packets.
pub const LOOK_NS: u64 = 100_000_000;
/// What is less is nothing: ARP, and acknowledgements of the allocator's.
const LEAST_BPS: f64 = 50_000.0;
/// After so many reports of nothing there is silence.
const ZEROS: u32 = 20;

impl Unscheduled {
    /// Of this device.
    pub fn new(device: Device) -> Self {
        Unscheduled { device, before: None, zeros: 0 }
    }

    /// When to look next.
    pub fn due_ns(&self) -> u64 {
        self.before.map_or(0, |(at_ns, ..)| at_ns + LOOK_NS)
    }

    /// What left and came since the last look, bit/s, where that is to be told. `carried` is what paced connections carried.
    pub fn look(&mut self, now_ns: u64, carried: [PacedCount; 2]) -> Option<[f64; 2]> {
        let Some(counts) = self.device.counts() else {
            // The device is gone for now.
            self.before = None;
            return None;
        };
        let (then_ns, counts_then, carried_then) = self.before.replace((now_ns, counts, carried))?;
        let rates = rates_bps(now_ns.saturating_sub(then_ns), (counts_then, counts), (carried_then, carried));
        if rates.iter().all(|bps| *bps == 0.0) {
            self.zeros = self.zeros.saturating_sub(1);
            return (self.zeros > 0).then_some(rates);
        }
        self.zeros = ZEROS;
        Some(rates)
    }
}

fn rates_bps(
    ns: u64,
    (counts_then, counts): ([DeviceCount; 2], [DeviceCount; 2]),
    (carried_then, carried): ([PacedCount; 2], [PacedCount; 2]),
) -> [f64; 2] {
    std::array::from_fn(|way| {
        let device = DeviceCount {
            bytes: counts[way].bytes.saturating_sub(counts_then[way].bytes),
            packets: counts[way].packets.saturating_sub(counts_then[way].packets),
        };
        let paced = PacedCount {
            bytes: carried[way].bytes.saturating_sub(carried_then[way].bytes),
            more_bytes: carried[way].more_bytes.saturating_sub(carried_then[way].more_bytes),
            segments: carried[way].segments.saturating_sub(carried_then[way].segments),
        };
        let bps = unscheduled_bytes(device, paced) as f64 * 8e9 / ns.max(1) as f64;
        if bps < LEAST_BPS { 0.0 } else { bps }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_found_by_its_whole_name() {
        let text =
            "Inter-|   Receive\n face |bytes\n eth10: 9 9 0 0 0 0 0 0 9 9\n  eth1: 5 2 0 0 0 0 0 0 7 3 0 0 0 0 0 0\n";
        let want = [DeviceCount { bytes: 7, packets: 3 }, DeviceCount { bytes: 5, packets: 2 }];
        assert_eq!(counts_of(text, "eth1"), Some(want));
        assert_eq!(counts_of(text, "eth"), None);
        assert_eq!(counts_of("eth1: 5 2 x", "eth1"), None);
    }

    #[test]
    fn headers_of_segments_count_where_the_device_counts_segments() {
        let paced = PacedCount { bytes: 10_000, more_bytes: 400, segments: 8 };
        assert_eq!(unscheduled_bytes(DeviceCount { bytes: 10_400, packets: 8 }, paced), 0);
        assert_eq!(unscheduled_bytes(DeviceCount { bytes: 13_000, packets: 5 }, paced), 3_000);
        assert_eq!(unscheduled_bytes(DeviceCount { bytes: 13_400, packets: 20 }, paced), 3_000);
        assert_eq!(unscheduled_bytes(DeviceCount { bytes: 9_000, packets: 8 }, paced), 0);
    }
}
