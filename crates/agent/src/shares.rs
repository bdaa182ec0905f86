//! Weights of a host's connections: the programs' requests, within the operator's rule.
#![cfg_attr(not(feature = "bpf"), allow(dead_code))]

use std::collections::{BTreeMap, BTreeSet};

/// Rule for who sets the weights of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum WeightRule {
    /// A program's request is the connection's weight.
    Free,
    /// A request is relative to the connections of the same control group or host. The weights of these connections sum
    /// to the total that the operator sets.
    Within,
    /// Requests of programs are refused.
    Fixed,
}

/// The operator's rule for weights, with bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weighing {
    /// The rule.
    pub rule: WeightRule,
    /// Smallest weight that a program may request.
    pub least: f64,
    /// Largest weight that a program may request.
    pub most: f64,
    /// Under [`WeightRule::Within`]: total weight of connections whose control group has no weight.
    pub host: f64,
}

impl Weighing {
    /// The rule that lets programs alone set weights, within the format's bounds.
    pub const FREE: Weighing = Weighing { rule: WeightRule::Free, least: 0.0, most: 65_535.0, host: 1.0 };

    /// Bounds of requests in the kernel's format, with 16 fractional bits. An upper bound of 0 forbids requests.
    pub fn bounds(&self) -> (u32, u32) {
        let fixed_point = |weight: f64| (weight * 65_536.0).round().clamp(1.0, f64::from(u32::MAX)) as u32;
        match self.rule {
            WeightRule::Fixed => (1, 0),
            WeightRule::Free | WeightRule::Within => (fixed_point(self.least), fixed_point(self.most)),
        }
    }
}

/// Weight settings that apply to a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AskedWeight {
    /// Weight requested by the connection's program.
    pub program: Option<f64>,
    /// Id and weight of the connection's control group, if the group has a weight.
    pub group: Option<(u64, f64)>,
    /// Weight of the connection's destination; 1 by default.
    pub to: f64,
}

/// Connections of one control group, or the rest of the host, that share one total weight.
#[derive(Debug, Default)]
struct Group {
    weight: f64,
    /// Weight of each connection before scaling.
    said: BTreeMap<u64, f64>,
    sum: f64,
    /// Scale factor of the weights that were last reported.
    factor: f64,
}

/// Weights are reported again when their scale factor changes by more than this fraction.
const TOLERANCE: f64 = 0.02;

/// The weights of a host's active connections.
#[derive(Debug)]
pub struct Shares {
    weighing: Weighing,
    /// Groups by the id of the control group; 0 holds the rest of the host.
    groups: BTreeMap<u64, Group>,
    group_of: BTreeMap<u64, u64>,
    /// Groups whose connections have changed since the last [`Shares::moved`].
    touched: BTreeSet<u64>,
}

impl Shares {
    /// Starts without connections.
    pub fn new(weighing: Weighing) -> Self {
        Shares { weighing, groups: BTreeMap::new(), group_of: BTreeMap::new(), touched: BTreeSet::new() }
    }

    /// Adds or updates an active connection and returns its weight. Weights of other connections may change: see
    /// [`Shares::moved`].
    pub fn set(&mut self, connection: u64, asked: &AskedWeight) -> f64 {
        let Weighing { rule, host, .. } = self.weighing;
        let program = asked.program.filter(|_| rule != WeightRule::Fixed);
        if rule != WeightRule::Within {
            return program.or(asked.group.map(|(_, weight)| weight)).unwrap_or(asked.to);
        }
        let (number, weight) = asked.group.unwrap_or((0, host));
        if self.group_of.get(&connection).is_some_and(|before| *before != number) {
            self.remove(connection);
        }
        self.group_of.insert(connection, number);
        self.touched.insert(number);
        let group = self.groups.entry(number).or_default();
        let said = program.unwrap_or(asked.to);
        group.weight = weight;
        group.sum += said - group.said.insert(connection, said).unwrap_or(0.0);
        said * group.weight / group.sum
    }

    /// Removes a connection that is no longer active.
    pub fn remove(&mut self, connection: u64) {
        let Some(number) = self.group_of.remove(&connection) else { return };
        let Some(group) = self.groups.get_mut(&number) else { return };
        group.sum -= group.said.remove(&connection).unwrap_or(0.0);
        if group.said.is_empty() {
            self.groups.remove(&number);
        } else {
            self.touched.insert(number);
        }
    }

    /// Connections whose weight has changed since the last call, with their new weights.
    pub fn moved(&mut self) -> Vec<(u64, f64)> {
        let mut moved = Vec::new();
        for number in std::mem::take(&mut self.touched) {
            let Some(group) = self.groups.get_mut(&number) else { continue };
            let factor = group.weight / group.sum;
            if (factor - group.factor).abs() <= TOLERANCE * group.factor {
                continue;
            }
            // Recomputed, since rounding errors of many updates accumulate.
            group.sum = group.said.values().sum();
            group.factor = group.weight / group.sum;
            moved.extend(group.said.iter().map(|(connection, said)| (*connection, said * group.factor)));
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: AskedWeight = AskedWeight { program: None, group: None, to: 1.0 };

    fn within() -> Weighing {
        Weighing { rule: WeightRule::Within, host: 2.0, ..Weighing::FREE }
    }

    /// Weights of all connections after `asked` has been applied.
    fn told(shares: &mut Shares, asked: &[(u64, AskedWeight)]) -> BTreeMap<u64, f64> {
        let mut told: BTreeMap<u64, f64> = asked.iter().map(|(c, asked)| (*c, shares.set(*c, asked))).collect();
        told.extend(shares.moved());
        told
    }

    #[test]
    fn neither_many_connections_nor_large_weights_gain_anything() {
        let mut shares = Shares::new(within());
        let mut asked: Vec<_> = (1..=500).map(|c| (c, PLAIN)).collect();
        asked[7].1.program = Some(1000.0);
        let told = told(&mut shares, &asked);
        assert!((told.values().sum::<f64>() - 2.0).abs() < 0.02 * 2.0);
        assert!((told[&8] / told[&9] - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn control_groups_have_shares_of_their_own() {
        let web = AskedWeight { group: Some((40, 3.0)), ..PLAIN };
        let heavy = AskedWeight { program: Some(2.0), ..web };
        let mut shares = Shares::new(within());
        let told = told(&mut shares, &[(1, PLAIN), (2, web), (3, heavy), (4, AskedWeight { to: 3.0, ..PLAIN })]);
        assert_eq!(told, BTreeMap::from([(1, 0.5), (2, 1.0), (3, 2.0), (4, 1.5)]));
        // A connection ends, and the others of its group share its weight.
        shares.remove(3);
        assert_eq!(shares.moved(), vec![(2, 3.0)]);
        shares.remove(2);
        assert_eq!(shares.moved(), vec![]);
        assert_eq!(shares.set(1, &AskedWeight { program: Some(1.0), ..PLAIN }), 0.5);
    }

    #[test]
    fn the_operator_may_let_programs_decide_or_not() {
        let all = AskedWeight { program: Some(9.0), group: Some((40, 3.0)), to: 5.0 };
        let group = AskedWeight { program: None, ..all };
        for (rule, expected) in [(WeightRule::Free, [9.0, 3.0, 5.0]), (WeightRule::Fixed, [3.0, 3.0, 5.0])] {
            let mut shares = Shares::new(Weighing { rule, ..Weighing::FREE });
            let to = AskedWeight { group: None, ..group };
            assert_eq!([all, group, to].map(|asked| shares.set(1, &asked)), expected);
            assert_eq!(shares.moved(), vec![]);
        }
        let bounded = Weighing { least: 0.5, most: 4.0, ..within() };
        assert_eq!(bounded.bounds(), (32_768, 262_144));
        assert_eq!(Weighing { rule: WeightRule::Fixed, ..bounded }.bounds(), (1, 0));
    }
}
