//! Traffic counters of a host's network device, and the part of its traffic that is not scheduled.
#![cfg_attr(not(feature = "bpf"), allow(dead_code))]

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Traffic of paced connections, in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacedCount {
    /// Bytes on the wire, with one header for each packet of the kernel (before segmentation).
    pub bytes: u64,
    /// Header bytes of the further segments that segmentation offload makes of a kernel packet.
    pub more_bytes: u64,
    /// Packets on the wire.
    pub segments: u64,
}

/// Traffic of a device, in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceCount {
    /// Bytes, link-layer headers included.
    pub bytes: u64,
    /// Packets, as counted by the device: before or after segmentation.
    pub packets: u64,
}

/// Counters of one device: sent, and received.
#[derive(Debug)]
pub struct Device {
    file: File,
    name: String,
}

/// Largest size of the kernel's list of devices, bytes.
const MOST_BYTES: usize = 1 << 20;

impl Device {
    /// Opens the counters of the device `name` in the thread's current namespace.
    pub fn open(name: &str) -> Result<Self, String> {
        let file = File::open("/proc/thread-self/net/dev").map_err(|e| format!("devices cannot be counted: {e}"))?;
        let device = Device { file, name: name.to_string() };
        device.counts().map(|_| device).ok_or_else(|| format!("there is no device {name}"))
    }

    /// Sent and received traffic so far; `None` if the device is gone.
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

/// The device of the default route in the thread's current namespace, or its only device.
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

/// Bytes on a device that belong to no paced connection. If the device counts segments, their headers are subtracted
/// too.
pub fn unscheduled_bytes(device: DeviceCount, paced: PacedCount) -> u64 {
    let more_bytes = if device.packets >= paced.segments { paced.more_bytes } else { 0 };
    device.bytes.saturating_sub(paced.bytes + more_bytes)
}

/// Measures the rates of unscheduled traffic at intervals.
#[derive(Debug)]
pub struct Unscheduled {
    device: Device,
    before: Option<(u64, [DeviceCount; 2], [PacedCount; 2])>,
    /// Number of zero rates still to be reported: a single report might be lost.
    zeros: u32,
}

/// Interval between measurements, ns: short for readers of the output, long enough for many packets.
pub const LOOK_NS: u64 = 100_000_000;
/// Rates below this count as zero, bit/s: ARP and the allocator's own ACKs cause such rates.
const LEAST_BPS: f64 = 50_000.0;
/// Number of zero rates that are reported before reports stop.
const ZEROS: u32 = 20;

impl Unscheduled {
    /// Measures unscheduled traffic of `device`.
    pub fn new(device: Device) -> Self {
        Unscheduled { device, before: None, zeros: 0 }
    }

    /// Time of the next measurement, ns.
    pub fn due_ns(&self) -> u64 {
        self.before.map_or(0, |(at_ns, ..)| at_ns + LOOK_NS)
    }

    /// Rates of unscheduled traffic sent and received since the last measurement, bit/s; `None` if there is nothing
    /// to report. `carried` counts the traffic of paced connections.
    pub fn look(&mut self, now_ns: u64, carried: [PacedCount; 2]) -> Option<[f64; 2]> {
        let Some(counts) = self.device.counts() else {
            // The device is absent at the moment.
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
