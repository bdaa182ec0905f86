//! Distributions of flow sizes.

use super::points;
use crate::spec::section::{Section, text};
use serde_json::Value;
use std::path::Path;
use subak_core::Fault;
use subak_core::document::unknown_word;
use subak_core::driver::PacketSizes;
use subak_core::quantity::bytes_from_json;
use subak_core::rng::Stream;

/// Web search: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, figure 4 (bytes of a flow, share of flows up to
/// it); mean 1.71 MB.
const WEB_SEARCH: &[(u64, f64)] = &[
    (1, 0.0),
    (10_000, 0.15),
    (20_000, 0.2),
    (30_000, 0.3),
    (50_000, 0.4),
    (80_000, 0.53),
    (200_000, 0.6),
    (1_000_000, 0.7),
    (2_000_000, 0.8),
    (5_000_000, 0.9),
    (10_000_000, 0.97),
    (30_000_000, 1.0),
];

/// Data mining: Greenberg et al., "VL2", SIGCOMM 2009, figure 2, in whole packets of 1460 bytes as Alizadeh et al.,
/// "pFabric", SIGCOMM 2013, simulate it; mean 5117 packets.
const DATA_MINING: &[(u64, f64)] = &[
    (1460, 0.5),
    (2 * 1460, 0.6),
    (3 * 1460, 0.7),
    (7 * 1460, 0.8),
    (267 * 1460, 0.9),
    (2107 * 1460, 0.95),
    (66_667 * 1460, 0.99),
    (666_667 * 1460, 1.0),
];

/// A large enterprise: Alizadeh et al., "CONGA", SIGCOMM 2014, figure 8a, as NUMFabric simulates it; mean 0.16 MB.
const ENTERPRISE: &[(u64, f64)] = &[
    (52, 0.06),
    (100, 0.1),
    (207, 0.2),
    (350, 0.3),
    (640, 0.4),
    (1050, 0.5),
    (1700, 0.6),
    (3160, 0.7),
    (6650, 0.8),
    (21_700, 0.9),
    (42_000, 0.93),
    (76_000, 0.95),
    (112_000, 0.96),
    (190_000, 0.97),
    (400_000, 0.98),
    (1_400_000, 0.99),
    (2_500_000, 0.993),
    (4_100_000, 0.995),
    (8_600_000, 0.997),
    (15_000_000, 0.998),
    (31_000_000, 0.999),
    (43_000_000, 0.9993),
    (64_000_000, 0.9996),
    (98_000_000, 0.9998),
    (144_000_000, 0.9999),
    (199_000_000, 0.999_95),
    (309_000_000, 0.999_98),
    (413_000_000, 0.999_99),
    (772_000_000, 0.999_999),
    (1_770_000_000, 1.0),
];

/// Hadoop at Facebook: the distribution that HPCC's released simulator calls FbHdp (traffic_gen), after Roy et al., "Inside the
/// Social Network's (Datacenter) Network", SIGCOMM 2015; mean 0.12 MB.
const FB_HADOOP: &[(u64, f64)] = &[
    (1, 0.0),
    (100, 0.01),
    (200, 0.02),
    (300, 0.05),
    (350, 0.15),
    (400, 0.2),
    (500, 0.3),
    (600, 0.4),
    (700, 0.5),
    (1000, 0.6),
    (2000, 0.67),
    (7000, 0.7),
    (30_000, 0.72),
    (50_000, 0.82),
    (80_000, 0.87),
    (120_000, 0.9),
    (300_000, 0.95),
    (1_000_000, 0.975),
    (2_000_000, 0.99),
    (10_000_000, 1.0),
];

/// Storage at Alibaba: AliStorage2019 of HPCC's released simulator; mean 41 KB.
const ALI_STORAGE: &[(u64, f64)] = &[
    (1, 0.0),
    (4000, 0.2293),
    (8000, 0.6921),
    (16_000, 0.8061),
    (32_000, 0.9047),
    (64_000, 0.9353),
    (128_000, 0.9677),
    (256_000, 0.9753),
    (2_000_000, 1.0),
];

/// Remote procedure calls at Google: GoogleRPC2008 of HPCC's released simulator, at the powers of two; mean 2.9 KB.
const GOOGLE_RPC: &[(u64, f64)] = &[
    (3, 0.064_882_6),
    (32, 0.097_323_9),
    (64, 0.155_271),
    (128, 0.351_573),
    (256, 0.497_901),
    (512, 0.784_921),
    (1024, 0.8632),
    (2048, 0.908_862),
    (4096, 0.934_955),
    (8192, 0.964_309),
    (16_384, 0.984_694),
    (32_768, 0.990_402),
    (65_536, 0.993_256),
    (131_072, 0.997_129),
    (262_144, 0.998_453),
    (524_288, 0.999_498),
    (15_158_197, 1.0),
];

/// Between the points of [`GOOGLE_RPC`] the share grows in even steps of the size's inverse, as in the simulator's file.
fn google_rpc() -> Vec<(f64, f64)> {
    const STEPS: u32 = 64;
    let mut points = built_in(&GOOGLE_RPC[..2]);
    points.insert(0, (1.0, 0.0));
    for pair in GOOGLE_RPC[1..].windows(2) {
        let ((low, from), (high, to)) = ((pair[0].0 as f64, pair[0].1), (pair[1].0 as f64, pair[1].1));
        points.extend((1..=STEPS).map(|k| {
            let part = f64::from(k) / f64::from(STEPS);
            (1.0 / (1.0 / low + part * (1.0 / high - 1.0 / low)), from + part * (to - from))
        }));
    }
    points
}

/// Names of the built-in distributions.
pub const NAMES: &[&str] =
    &["web-search", "data-mining", "enterprise", "fb-hadoop", "ali-storage", "google-rpc", "fixed", "uniform"];

/// A distribution of flow sizes: points of its cumulative distribution, linear in the size between them. Where the first
/// point is above 0, that share of the flows has exactly the first size.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    points: Vec<(f64, f64)>,
}

impl Sizes {
    /// The keys `sizes`, `size`, `smallest` and `largest` of a workload. Files lie relative to `base`.
    pub(crate) fn read(section: &mut Section, base: &Path) -> Result<Self, Fault> {
        let mend = format!(
            "name one of {}, give points [[bytes, share of flows up to it], ...], or a file of them: {{file = \"sizes.csv\"}}",
            NAMES.join(", ")
        );
        let sizes = section.must("sizes", &mend, Ok)?;
        let points = match sizes {
            Value::Array(_) => points::listed(sizes).map_err(|e| e.below("sizes"))?,
            Value::Object(_) => points::of_file(sizes, base).map_err(|e| e.below("sizes"))?,
            other => match text(other).map_err(|e| e.below("sizes"))? {
                "web-search" => built_in(WEB_SEARCH),
                "data-mining" => built_in(DATA_MINING),
                "enterprise" => built_in(ENTERPRISE),
                "fb-hadoop" => built_in(FB_HADOOP),
                "ali-storage" => built_in(ALI_STORAGE),
                "google-rpc" => google_rpc(),
                "fixed" => {
                    vec![(section.need("size", "give the size of every flow, such as \"100KB\"", 1.0, size), 1.0)]
                }
                "uniform" => {
                    let low = section.need("smallest", "give the smallest size, such as \"1KB\"", 1.0, size);
                    let high = section.need("largest", "give the largest size, such as \"1MB\"", 1.0, size);
                    if low > high && section.is_sound() {
                        return Err(Fault::new("smallest", "it is above the largest", "give a smaller size"));
                    }
                    vec![(low, 0.0), (high, 1.0)]
                }
                name => return Err(unknown_word(name, "distribution of sizes", NAMES).below("sizes")),
            },
        };
        Ok(Sizes { points })
    }

    /// A size, bytes.
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        let u = stream.unit();
        let at = self.points.partition_point(|&(_, p)| p <= u).min(self.points.len() - 1);
        let (high, p_high) = self.points[at];
        let size = match at.checked_sub(1) {
            None => high,
            Some(before) => {
                let (low, p_low) = self.points[before];
                low + (high - low) * (u - p_low) / (p_high - p_low)
            }
        };
        (size.ceil() as u64).max(1)
    }

    /// The share of flows that are larger than `bytes`.
    fn above(&self, bytes: f64) -> f64 {
        let at = self.points.partition_point(|&(s, _)| s <= bytes);
        match (at.checked_sub(1).map(|k| self.points[k]), self.points.get(at)) {
            (None, _) => 1.0,
            (Some(_), None) => 0.0,
            (Some((low, p_low)), Some(&(high, p_high))) => {
                1.0 - p_low - (p_high - p_low) * (bytes - low) / (high - low)
            }
        }
    }

    /// The mean size, bytes.
    pub fn mean_bytes(&self) -> f64 {
        let (first, share) = self.points[0];
        let inner = self.points.windows(2).map(|w| (w[1].1 - w[0].1) * (w[0].0 + w[1].0) / 2.0).sum::<f64>();
        first * share + inner
    }

    /// The mean number of packets of a flow: the sum over k of the share of flows with more than k full packets.
    pub fn mean_packets(&self, packet: PacketSizes) -> f64 {
        let mss = f64::from(packet.mss_bytes());
        let largest = self.points[self.points.len() - 1].0;
        let exact = (largest / mss).min(1e6) as u64;
        let counted: f64 = (0..=exact).map(|k| self.above(k as f64 * mss)).sum();
        // Beyond a million packets the last, shorter one no longer matters.
        let rest = if exact == 1_000_000 { self.mean_above(exact as f64 * mss) / mss } else { 0.0 };
        counted + rest
    }

    /// The mean of what exceeds `bytes`.
    fn mean_above(&self, bytes: f64) -> f64 {
        let edges: Vec<f64> =
            std::iter::once(bytes).chain(self.points.iter().map(|p| p.0).filter(|&s| s > bytes)).collect();
        edges.windows(2).map(|w| (w[1] - w[0]) * (self.above(w[0]) + self.above(w[1])) / 2.0).sum()
    }

    /// The mean number of bytes on the wire.
    pub fn mean_wire_bytes(&self, packet: PacketSizes) -> f64 {
        self.mean_bytes() + self.mean_packets(packet) * f64::from(packet.header_bytes)
    }
}

fn built_in(points: &[(u64, f64)]) -> Vec<(f64, f64)> {
    points.iter().map(|&(size, share)| (size as f64, share)).collect()
}

/// A size of at least one byte.
fn size(value: &Value) -> Result<f64, Fault> {
    match bytes_from_json(value)? {
        0 => Err(Fault::new("", "the size is 0", "give at least one byte")),
        bytes => Ok(bytes as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sizes(value: Value) -> Result<Sizes, Fault> {
        let mut section = Section::of(&value).unwrap();
        let read = Sizes::read(&mut section, Path::new(""));
        section.end(read)
    }

    #[test]
    fn published_means() {
        let web = sizes(json!({"sizes": "web-search"})).unwrap();
        assert!((web.mean_bytes() - 1.711e6).abs() < 2e3, "{}", web.mean_bytes());
        let mining = sizes(json!({"sizes": "data-mining"})).unwrap();
        assert!((mining.mean_bytes() / 1460.0 - 5117.0).abs() < 2.0, "{}", mining.mean_bytes() / 1460.0);
        let enterprise = sizes(json!({"sizes": "enterprise"})).unwrap();
        assert!((enterprise.mean_bytes() / 157_357.0 - 1.0).abs() < 0.1, "{}", enterprise.mean_bytes());
    }

    #[test]
    fn distributions_of_hpccs_simulator() {
        let share = |name: &str, bytes: f64| 1.0 - sizes(json!({ "sizes": name })).unwrap().above(bytes);
        // The file's sizes are whole, which matters for the smallest.
        let near = |got: f64, want: f64| assert!((got - want).abs() < 1e-3, "{got}, expected {want}");
        near(share("fb-hadoop", 700.0), 0.5);
        near(share("ali-storage", 8000.0), 0.6921);
        // Rows of the file between those that are kept here.
        for (bytes, want) in [
            (3, 6.48826),
            (46, 13.2092),
            (282, 55.0086),
            (1536, 89.3641),
            (9461, 96.9778),
            (59_500, 99.2966),
            (222_540, 99.8217),
            (1_008_790, 99.9748),
        ] {
            near(share("google-rpc", f64::from(bytes)), want / 100.0);
        }
        for (name, want) in [("fb-hadoop", 120.4e3), ("ali-storage", 40.87e3), ("google-rpc", 2.894e3)] {
            let mean = sizes(json!({ "sizes": name })).unwrap().mean_bytes();
            assert!((mean / want - 1.0).abs() < 0.02, "{name}: {mean}");
        }
    }

    #[test]
    fn drawn_means_are_the_computed_ones() {
        let packet = PacketSizes::default();
        let table = json!({"sizes": [["1KB", 0.25], [2000, 0.25], [3000, 0.5], ["20KB", 1]]});
        for value in
            [json!({"sizes": "web-search"}), json!({"sizes": "uniform", "smallest": 1, "largest": 9000}), table]
        {
            let sizes = sizes(value).unwrap();
            let mut stream = Stream::new(7, "sizes");
            let n = 400_000;
            let drawn: Vec<u64> = (0..n).map(|_| sizes.draw(&mut stream)).collect();
            let wire = drawn.iter().map(|&s| packet.wire_bytes(s) as f64).sum::<f64>() / f64::from(n);
            let want = sizes.mean_wire_bytes(packet);
            assert!((wire / want - 1.0).abs() < 0.01, "{wire} against {want}");
        }
        let fixed = sizes(json!({"sizes": "fixed", "size": 1447})).unwrap();
        assert_eq!((fixed.draw(&mut Stream::new(1, "x")), fixed.mean_wire_bytes(packet)), (1447, 1447.0 + 108.0));
        let mining = sizes(json!({"sizes": "data-mining"})).unwrap();
        let small = PacketSizes { mtu_bytes: 64, header_bytes: 54, ack_bytes: 64 };
        assert!((mining.mean_packets(small) * 10.0 / mining.mean_bytes() - 1.0).abs() < 1e-3);
    }

    #[test]
    fn tables_that_make_no_sense_are_refused() {
        for (bad, place) in [
            (json!({"sizes": "bing"}), "sizes"),
            (json!({}), "sizes"),
            (json!({"sizes": "fixed"}), "size"),
            (json!({"sizes": "fixed", "size": 0}), "size"),
            (json!({"sizes": []}), "sizes"),
            (json!({"sizes": {}}), "sizes.file"),
            (json!({"sizes": {"file": "a.csv", "size": 1}}), "sizes.size"),
            (json!({"sizes": [[1, 0], [2, 0.5]]}), "sizes"),
            (json!({"sizes": [[5, 0], [2, 1]]}), "sizes[1]"),
            (json!({"sizes": [[5, 0.5], [6, 0.2]]}), "sizes[1]"),
            (json!({"sizes": [[5, 0], [6]]}), "sizes[1]"),
            (json!({"sizes": [[5, 0], ["6 furlongs", 1]]}), "sizes[1]"),
        ] {
            assert_eq!(sizes(bad.clone()).unwrap_err().place, place, "{bad}");
        }
    }
}
