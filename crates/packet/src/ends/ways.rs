//! Paths over which a subflow's packets are sprayed.

use subak_core::Ns;
use subak_core::backend::Spread;
use subak_core::rng::mix;
use subak_core::scheme::RouteId;

/// Paths of one subflow. Random choices depend only on the flow's seed and on the number of earlier choices.
pub(crate) struct Ways {
    routes: Vec<RouteId>,
    spread: Spread,
    seed: u64,
    drawn: u64,
    now: RouteId,
    last_ns: Ns,
}

impl Ways {
    /// Paths over `routes`, at least one.
    pub fn new(routes: Vec<RouteId>, spread: Spread, seed: u64) -> Self {
        let mut ways = Ways { now: routes[0], routes, spread, seed, drawn: 0, last_ns: 0 };
        ways.draw();
        ways
    }

    /// The number of paths.
    pub fn number(&self) -> usize {
        self.routes.len()
    }

    /// Replaces the routes; the random stream continues.
    pub fn change(&mut self, routes: Vec<RouteId>) {
        self.routes = routes;
        self.draw();
    }

    /// Path of a packet that is sent at `now_ns`.
    pub fn take(&mut self, now_ns: Ns) -> RouteId {
        let anew = match self.spread {
            Spread::Packets => true,
            Spread::Flowlets(gap_ns) => now_ns > self.last_ns + gap_ns,
        };
        if anew {
            self.draw();
        }
        self.last_ns = now_ns;
        self.now
    }

    fn draw(&mut self) {
        let bits = mix(self.seed ^ mix(self.drawn));
        self.drawn += 1;
        self.now = self.routes[(bits % self.routes.len() as u64) as usize];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(spread: Spread) -> Ways {
        Ways::new((0..4).map(RouteId::from_index).collect(), spread, 7)
    }

    #[test]
    fn packets_take_every_way_as_often() {
        let mut ways = ways(Spread::Packets);
        let mut times = [0; 4];
        (0..4000).for_each(|_| times[ways.take(0).index()] += 1);
        assert!(times.iter().all(|t| (900..1100).contains(t)), "{times:?}");
    }

    #[test]
    fn a_flowlet_keeps_its_way_and_a_gap_ends_it() {
        let mut ways = ways(Spread::Flowlets(100));
        let mut changes = 0;
        let mut now_ns = 0;
        for _ in 0..200 {
            let first = ways.take(now_ns);
            for _ in 0..5 {
                now_ns += 100;
                assert_eq!(ways.take(now_ns), first);
            }
            now_ns += 101;
            changes += usize::from(ways.take(now_ns) != first);
            now_ns += 101;
        }
        // With four paths, three of four choices change the path.
        assert!((120..180).contains(&changes), "{changes}");
    }
}
