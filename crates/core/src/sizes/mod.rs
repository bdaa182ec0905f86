//! Distributions of flow sizes, among them published ones.

mod published;

use crate::backend::PacketSizes;
use crate::rng::Stream;

/// A distribution of flow sizes, given by points of its cumulative distribution with linear interpolation. If the
/// fraction at the first point is above 0, that fraction of flows has exactly the first size.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    points: Vec<(f64, f64)>,
}

impl Sizes {
    /// The distribution through `points`: (bytes, fraction of flows up to this size). Sizes and fractions never
    /// decrease, each fraction after the second is larger than the one before, and the last is 1.
    pub fn through(points: Vec<(f64, f64)>) -> Self {
        debug_assert!(points.last().is_some_and(|p| p.1 == 1.0), "the last share is 1");
        Sizes { points }
    }

    /// The published distribution called `name`.
    pub fn published(name: &str) -> Option<Self> {
        let (_, points) = published::BY_NAME.iter().find(|(known, _)| *known == name)?;
        Some(Sizes { points: points() })
    }

    /// The names of the published distributions.
    pub fn names() -> impl Iterator<Item = &'static str> {
        published::BY_NAME.iter().map(|(name, _)| *name)
    }

    /// The `u`-quantile of the size, bytes.
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

    /// Draws a random size, bytes.
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        (self.quantile(stream.unit()).ceil() as u64).max(1)
    }

    /// Fraction of flows larger than `bytes`.
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

    /// Mean number of packets of a flow: the sum over k of the fraction of flows with more than k full packets.
    pub fn mean_packets(&self, packet: PacketSizes) -> f64 {
        let mss = f64::from(packet.mss_bytes());
        let largest = self.points[self.points.len() - 1].0;
        let exact = (largest / mss).min(1e6) as u64;
        let counted: f64 = (0..=exact).map(|k| self.above(k as f64 * mss)).sum();
        // Beyond a million packets the shorter last packet is negligible.
        let rest = if exact == 1_000_000 { self.mean_above(exact as f64 * mss) / mss } else { 0.0 };
        counted + rest
    }

    /// Mean excess over `bytes`: the mean of max(size - bytes, 0).
    fn mean_above(&self, bytes: f64) -> f64 {
        let edges: Vec<f64> =
            std::iter::once(bytes).chain(self.points.iter().map(|p| p.0).filter(|&s| s > bytes)).collect();
        edges.windows(2).map(|w| (w[1] - w[0]) * (self.above(w[0]) + self.above(w[1])) / 2.0).sum()
    }

    /// Mean size on the wire with headers, bytes.
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
    fn distributions_of_hpccs_simulator() {
        let share = |name: &str, bytes: f64| 1.0 - Sizes::published(name).unwrap().above(bytes);
        // The simulator's file rounds sizes to whole bytes; for the smallest this changes the fraction, hence the
        // tolerance.
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
            let mean = Sizes::published(name).unwrap().mean_bytes();
            assert!((mean / want - 1.0).abs() < 0.02, "{name}: {mean}");
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
