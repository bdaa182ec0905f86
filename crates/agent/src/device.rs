//! Traffic counters of a host's network device, and the part of its traffic that is not scheduled.
#![cfg_attr(not(feature = "bpf"), allow(dead_code))]

use std::collections::VecDeque;
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
        device.counts().map(|_| device).ok_or_else(|| format!("there is no device {name}; `ip link` lists them"))
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

/// Counters of a device and of paced connections at one time: sent, and received.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at_ns: u64,
    device: [DeviceCount; 2],
    paced: [PacedCount; 2],
}

/// Measures the rates of unscheduled traffic at intervals.
#[derive(Debug)]
pub struct Unscheduled {
    device: Device,
    /// Latest samples, oldest first: they span [`REPORT_NS`].
    samples: VecDeque<Sample>,
    due_ns: u64,
    /// Rates of the latest report, bit/s, and its time, ns.
    told: ([f64; 2], u64),
    /// Number of zero rates still to be reported: a single report might be lost.
    zeros: u32,
}

/// Interval between measurements of a host with paced traffic, ns. Foreign traffic that begins overloads a link until
/// it is reported. Other hosts are measured once per report.
const LOOK_NS: u64 = 20_000_000;
/// Interval between reports of steady traffic, ns, and the time over which its rate is averaged.
const REPORT_NS: u64 = 100_000_000;
/// Rates below this count as zero, bit/s: ARP and the allocator's own ACKs cause such rates.
const LEAST_BPS: f64 = 50_000.0;
/// Increase of a rate that is reported at once, as a fraction of it.
const JUMP: f64 = 0.1;
/// Smallest part of the device's traffic that counts before the average does.
const SUDDEN: f64 = 0.2;
/// Number of zero rates that are reported before reports stop.
const ZEROS: u32 = 20;

impl Unscheduled {
    /// Measures unscheduled traffic of `device`.
    pub fn new(device: Device) -> Self {
        Unscheduled { device, samples: VecDeque::new(), due_ns: 0, told: ([0.0; 2], 0), zeros: 0 }
    }

    /// Time of the next measurement, ns.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Rates of unscheduled traffic sent and received, bit/s; `None` if there is nothing to report. `paced` counts the
    /// traffic of paced connections.
    pub fn look(&mut self, now_ns: u64, paced: [PacedCount; 2]) -> Option<[f64; 2]> {
        self.due_ns = now_ns + REPORT_NS;
        let Some(device) = self.device.counts() else {
            // The device is absent at the moment.
            self.samples.clear();
            return None;
        };
        if self.samples.back().is_some_and(|before| before.paced != paced) {
            self.due_ns = now_ns + LOOK_NS;
        }
        self.samples.push_back(Sample { at_ns: now_ns, device, paced });
        let spans = |from: &Sample| now_ns.saturating_sub(from.at_ns) >= REPORT_NS;
        while self.samples.get(1).is_some_and(spans) {
            self.samples.pop_front();
        }
        let rates = rates_of(&self.samples)?;
        self.report(now_ns, rates)
    }

    /// Rates of the latest report, bit/s; `None` if they were zero. Another allocator has to be told them anew.
    pub fn told(&self) -> Option<[f64; 2]> {
        self.told.0.iter().any(|bps| *bps > 0.0).then_some(self.told.0)
    }

    fn report(&mut self, now_ns: u64, rates: [f64; 2]) -> Option<[f64; 2]> {
        let (told, at_ns) = self.told;
        let jumps = rates.iter().zip(told).any(|(bps, told_bps)| *bps > (1.0 + JUMP) * told_bps);
        if !jumps && now_ns < at_ns + REPORT_NS {
            return None;
        }
        self.told = (rates, now_ns);
        if rates.iter().all(|bps| *bps == 0.0) {
            self.zeros = self.zeros.saturating_sub(1);
            return (self.zeros > 0).then_some(rates);
        }
        self.zeros = ZEROS;
        Some(rates)
    }
}

/// Rates of unscheduled traffic, bit/s: the average over all samples, or the lower of those of the last two intervals
/// if that is higher and a large part of the traffic. Queues that fill and drain show as unscheduled traffic in single
/// intervals, and as a little of it in several.
fn rates_of(samples: &VecDeque<Sample>) -> Option<[f64; 2]> {
    let (first, last) = (samples.front()?, samples.back()?);
    let between = |from: &Sample, to: &Sample| {
        let ns = to.at_ns.saturating_sub(from.at_ns);
        rates_bps(ns, (from.device, to.device), (from.paced, to.paced))
    };
    let average = (samples.len() > 1).then(|| between(first, last))?;
    if samples.len() == 2 {
        return Some(average);
    }
    let [older, newer] = [3, 2].map(|back| &samples[samples.len() - back]);
    let carried_bps = |way: usize| {
        let bytes = last.device[way].bytes.saturating_sub(older.device[way].bytes);
        bytes as f64 * 8e9 / last.at_ns.saturating_sub(older.at_ns).max(1) as f64
    };
    let (before, now) = (between(older, newer), between(newer, last));
    Some(std::array::from_fn(|way| {
        let sudden_bps = before[way].min(now[way]);
        if sudden_bps < SUDDEN * carried_bps(way) { average[way] } else { average[way].max(sudden_bps) }
    }))
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

    /// Rates received over the samples of a device that takes in `bytes` per interval of `LOOK_NS`.
    fn received_bps(bytes: &[u64]) -> Option<f64> {
        let mut sum = 0;
        let sample = |(k, more): (usize, &u64)| {
            sum += more;
            let device = [DeviceCount::default(), DeviceCount { bytes: sum, packets: 0 }];
            Sample { at_ns: k as u64 * LOOK_NS, device, paced: Default::default() }
        };
        let samples = bytes.iter().enumerate().map(sample).collect();
        rates_of(&samples).map(|[_, into_bps]| into_bps)
    }

    #[test]
    fn traffic_that_begins_counts_whole_after_two_intervals() {
        const FULL: u64 = 75_000;
        let full_bps = FULL as f64 * 8e9 / LOOK_NS as f64;
        assert_eq!(received_bps(&[0]), None);
        assert_eq!(received_bps(&[0, FULL]), Some(full_bps));
        assert_eq!(
            received_bps(&[0, 0, 0, 0, 0, FULL]),
            Some(full_bps / 5.0),
            "one interval: a queue may have drained"
        );
        assert_eq!(received_bps(&[0, 0, 0, 0, FULL / 3, FULL]), Some(full_bps / 3.0));
        assert_eq!(received_bps(&[0, 0, 0, 0, FULL, FULL]), Some(full_bps));
        assert_eq!(received_bps(&[0, FULL, FULL, FULL, FULL, 0]), Some(full_bps * 4.0 / 5.0), "it ends slowly");
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
