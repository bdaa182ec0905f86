//! Distributions of flow sizes, and those that papers have published.

use crate::driver::PacketSizes;
use crate::rng::Stream;

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

/// Facebook's web servers: Roy et al., "Inside the Social Network's (Datacenter) Network", SIGCOMM 2015, all
/// destinations, with the statistics that Perry et al., "Flowtune", NSDI 2017, table 1, give. The shape between the
/// table's percentiles is that of the published curves; beyond the last it ends at 1.2 times it, which is ours.
const FACEBOOK_WEB: &[(u64, f64)] = &[
    (64, 0.002_505_509),
    (81, 0.008_582_490_7),
    (142, 0.011_570_319_4),
    (150, 0.086_818_378_4),
    (162, 0.096_979_220_3),
    (219, 0.099_996_704_9),
    (278, 0.102_003_418_7),
    (301, 0.203_689_684_3),
    (444, 0.218_900_673_4),
    (599, 0.272_765_615_7),
    (765, 0.315_450_295_5),
    (998, 0.362_200_300_7),
    (1205, 0.416_077_599_5),
    (1288, 0.459_798_999_1),
    (1419, 0.5),
    (1487, 0.519_782_935_5),
    (1811, 0.569_591_202_1),
    (2065, 0.627_542_475_9),
    (2572, 0.672_263_525_3),
    (3420, 0.716_977_160_9),
    (4963, 0.755_579_216_2),
    (6894, 0.781_982_824_3),
    (10_685, 0.812_441_872_4),
    (16_027, 0.834_769_034_3),
    (23_517, 0.862_183_413_3),
    (35_272, 0.882_476_676_9),
    (55_179, 0.9),
    (62_857, 0.904_785_303_9),
    (93_501, 0.922_031_427),
    (152_708, 0.933_165_969_9),
    (208_966, 0.95),
    (220_462, 0.954_479_889_6),
    (273_978, 0.973_766_089_3),
    (375_326, 0.988_968_428_9),
    (417_147, 0.99),
    (639_079, 0.9945),
    (2_560_769, 0.999),
    (3_072_923, 1.0),
];

/// Facebook's cache followers, likewise.
const FACEBOOK_CACHE: &[(u64, f64)] = &[
    (51, 0.003_692_950_4),
    (71, 0.005_589_701_4),
    (76, 0.028_771_471_6),
    (133, 0.031_611_032_5),
    (184, 0.045_104_234_1),
    (272, 0.054_724_902_5),
    (323, 0.071_132_243_8),
    (351, 0.160_978_578_1),
    (439, 0.176_414_168_5),
    (487, 0.245_968_383_8),
    (565, 0.271_073_619_7),
    (656, 0.275_888_962_9),
    (737, 0.311_625_577_2),
    (921, 0.329_959_723_7),
    (1047, 0.335_743_478_5),
    (1336, 0.360_838_696_4),
    (2450, 0.395_557_922),
    (3829, 0.419_665_805_2),
    (6246, 0.438_938_309_2),
    (11_824, 0.466_890_897_9),
    (19_285, 0.490_994_328_7),
    (22_924, 0.5),
    (31_825, 0.517_029_017_1),
    (47_736, 0.542_107_538_2),
    (75_518, 0.574_909_976_7),
    (116_944, 0.608_680_826_7),
    (179_149, 0.649_216_087_5),
    (241_423, 0.690_730_891),
    (315_121, 0.725_485_736_3),
    (448_056, 0.754_434_564_5),
    (724_300, 0.774_674_367),
    (1_171_061, 0.785_252_315_7),
    (1_719_383, 0.811_299_248_5),
    (2_082_219, 0.855_723_739_3),
    (2_416_281, 0.897_254_126_4),
    (2_432_831, 0.9),
    (2_703_089, 0.948_448_593_5),
    (2_716_140, 0.95),
    (2_816_241, 0.978_389_208_7),
    (3_131_038, 0.99),
    (3_131_038, 0.9945),
    (5_663_439, 0.999),
    (6_796_127, 1.0),
];

/// Facebook's Hadoop cluster, likewise.
const FACEBOOK_HADOOP: &[(u64, f64)] = &[
    (50, 0.001_658_218),
    (91, 0.004_541_064_7),
    (161, 0.008_433_749_4),
    (222, 0.016_401_851_4),
    (256, 0.030_441_002_6),
    (297, 0.053_523_011_9),
    (320, 0.136_923_601),
    (364, 0.174_080_827_1),
    (398, 0.215_267_787_4),
    (466, 0.265_483_179_4),
    (561, 0.329_764_170_8),
    (603, 0.459_396_100_9),
    (651, 0.5),
    (694, 0.532_731_972_2),
    (801, 0.582_952_173),
    (1230, 0.625_069_626_7),
    (1567, 0.666_222_925_7),
    (3038, 0.681_154_100_5),
    (6087, 0.700_098_178_7),
    (12_334, 0.708_989_561),
    (22_383, 0.715_894_928_8),
    (38_852, 0.739_895_409_6),
    (48_384, 0.815_224_508_6),
    (68_856, 0.835_248_151_6),
    (76_841, 0.871_405_157_4),
    (117_471, 0.9),
    (144_269, 0.914_481_957_2),
    (246_958, 0.948_530_325_2),
    (266_706, 0.95),
    (522_251, 0.962_434_831_4),
    (1_131_651, 0.972_314_412_2),
    (1_787_832, 0.984_273_778_3),
    (2_675_199, 0.987_199_903_8),
    (4_273_471, 0.989_106_574),
    (6_405_830, 0.99),
    (82_425_538, 0.9945),
    (251_359_175, 0.999),
    (301_631_010, 1.0),
];

/// Published distributions by name.
const BUILT_IN: &[(&str, &[(u64, f64)])] = &[
    ("web-search", WEB_SEARCH),
    ("data-mining", DATA_MINING),
    ("enterprise", ENTERPRISE),
    ("facebook-web", FACEBOOK_WEB),
    ("facebook-cache", FACEBOOK_CACHE),
    ("facebook-hadoop", FACEBOOK_HADOOP),
];

/// A distribution of flow sizes: points of its cumulative distribution, linear in the size between them. Where the first
/// point is above 0, that share of the flows has exactly the first size.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    points: Vec<(f64, f64)>,
}

impl Sizes {
    /// Through `points`, (bytes, share of flows up to them): neither falls, shares rise from the second on, and the last
    /// is 1.
    pub fn through(points: Vec<(f64, f64)>) -> Self {
        debug_assert!(points.last().is_some_and(|p| p.1 == 1.0), "the last share is 1");
        Sizes { points }
    }

    /// The published distribution called `name`.
    pub fn published(name: &str) -> Option<Self> {
        let (_, points) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        Some(Sizes { points: points.iter().map(|&(size, share)| (size as f64, share)).collect() })
    }

    /// The names of the published distributions.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The size that a share `u` of the flows does not exceed, bytes.
    pub fn quantile(&self, u: f64) -> f64 {
        let at = self.points.partition_point(|&(_, p)| p <= u).min(self.points.len() - 1);
        let (high, p_high) = self.points[at];
        match at.checked_sub(1) {
            None => high,
            Some(before) => {
                let (low, p_low) = self.points[before];
                low + (high - low) * (u - p_low) / (p_high - p_low)
            }
        }
    }

    /// A size, bytes.
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        (self.quantile(stream.unit()).ceil() as u64).max(1)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_means() {
        for (name, mean, tolerance) in [
            ("web-search", 1.711e6, 2e-3),
            ("data-mining", 5117.0 * 1460.0, 4e-4),
            ("enterprise", 157_357.0, 0.1),
            ("facebook-web", 33_105.3, 1e-3),
            ("facebook-cache", 567_658.4, 5e-3),
            ("facebook-hadoop", 1_296_082.4, 1e-3),
        ] {
            let ours = Sizes::published(name).unwrap().mean_bytes();
            assert!((ours / mean - 1.0).abs() < tolerance, "{name}: {ours} against {mean}");
        }
    }

    #[test]
    fn points_of_published_distributions_rise_to_1() {
        for name in Sizes::names() {
            let points = Sizes::published(name).unwrap().points;
            assert!(points.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 < w[1].1), "{name}");
            assert_eq!(points.last().unwrap().1, 1.0, "{name}");
        }
    }

    #[test]
    fn drawn_means_are_the_computed_ones() {
        let packet = PacketSizes::default();
        let small = PacketSizes { mtu_bytes: 64, header_bytes: 54, ack_bytes: 64 };
        let table = vec![(1000.0, 0.25), (2000.0, 0.25), (3000.0, 0.5), (20_000.0, 1.0)];
        let uniform = vec![(1.0, 0.0), (9000.0, 1.0)];
        for sizes in [Sizes::published("web-search").unwrap(), Sizes::through(uniform), Sizes::through(table)] {
            let mut stream = Stream::new(7, "sizes");
            let n = 400_000;
            let drawn: Vec<u64> = (0..n).map(|_| sizes.draw(&mut stream)).collect();
            let wire = drawn.iter().map(|&s| packet.wire_bytes(s) as f64).sum::<f64>() / f64::from(n);
            let want = sizes.mean_wire_bytes(packet);
            assert!((wire / want - 1.0).abs() < 0.01, "{wire} against {want}");
        }
        let fixed = Sizes::through(vec![(1447.0, 1.0)]);
        assert_eq!((fixed.draw(&mut Stream::new(1, "x")), fixed.mean_wire_bytes(packet)), (1447, 1447.0 + 108.0));
        let mining = Sizes::published("data-mining").unwrap();
        assert!((mining.mean_packets(small) * 10.0 / mining.mean_bytes() - 1.0).abs() < 1e-3);
    }
}
