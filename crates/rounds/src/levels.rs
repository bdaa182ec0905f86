//! WF^k partitions: in which iteration of the parallel water-filling each link freezes (PERC thesis, Algorithm 7).

/// Rates within this relative distance are the same in comparisons between neighbours.
const TIE: f64 = 1e-9;

/// How far a link looks before it calls itself a bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The links it shares a flow with: WF1, whose iterations are Fair's D.
    One,
    /// And the links that those share a flow with: WF2, for s-PERC.
    Two,
    /// Every link: classic water-filling.
    All,
}

/// The outcome of one parallel water-filling.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels {
    /// Iterations taken: D, W2 or W.
    pub count: usize,
    /// Iteration, from 1, in which each link became a bottleneck; 0 for links that never did.
    pub of_link: Vec<usize>,
    /// Iteration in which each flow was frozen.
    pub of_flow: Vec<usize>,
    /// Rate of each flow, per unit of weight, bit/s.
    pub rate: Vec<f64>,
    /// A link that froze each flow.
    pub bottleneck: Vec<u32>,
}

/// How a link precedes another in the precedence graph of WF2, or of WF1 (definition 3.4.20): in iteration n,
/// before the other froze in n + 1, it froze with a lower rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It shared a flow with the other.
    Direct,
    /// It shared a flow with a link, itself lower than the other, that shared a flow with the other.
    Indirect,
    /// No neighbour of the other was lower, but this neighbour of a neighbour was.
    SecondDirect,
    /// No neighbour of the other was lower, but a neighbour of a neighbour was, with which this one shared a flow.
    SecondIndirect,
}

/// An edge of the precedence graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Precedent {
    /// The link that froze before.
    pub link: u32,
    /// How it precedes.
    pub kind: Kind,
    /// Through which link, for the indirect kinds.
    pub medium: Option<u32>,
}

/// Runs WF^k over links of `capacity_bps` and flows with `paths` and `weights`.
pub fn water_fill(capacity_bps: &[f64], paths: &[Vec<u32>], weights: &[f64], reach: Reach) -> Levels {
    let (links, flows) = (capacity_bps.len(), paths.len());
    let mut members = vec![Vec::new(); links];
    for (f, path) in paths.iter().enumerate() {
        for &l in path {
            members[l as usize].push(f as u32);
        }
    }
    let mut left = capacity_bps.to_vec();
    let mut out = Levels {
        count: 0,
        of_link: vec![0; links],
        of_flow: vec![0; flows],
        rate: vec![0.0; flows],
        bottleneck: vec![u32::MAX; flows],
    };
    let mut share = vec![f64::INFINITY; links];
    loop {
        for l in 0..links {
            members[l].retain(|&f| out.of_flow[f as usize] == 0);
            let weight: f64 = members[l].iter().map(|&f| weights[f as usize]).sum();
            share[l] = if members[l].is_empty() { f64::INFINITY } else { (left[l] / weight).max(0.0) };
        }
        if members.iter().all(Vec::is_empty) {
            return out;
        }
        out.count += 1;
        let least = nearby_least(&share, paths, &members, &out.of_flow, reach);
        for l in 0..links {
            if members[l].is_empty() || share[l] > least[l] + least[l] * TIE {
                continue;
            }
            out.of_link[l] = out.count;
            for &f in &members[l] {
                let f = f as usize;
                if out.of_flow[f] == 0 {
                    (out.of_flow[f], out.rate[f], out.bottleneck[f]) = (out.count, share[l], l as u32);
                    paths[f].iter().for_each(|&m| left[m as usize] -= share[l] * weights[f]);
                }
            }
        }
    }
}

/// Whether link `a` has a lower rate than `b`.
fn lower(rates: &[f64], a: u32, b: u32) -> bool {
    rates[a as usize] * (1.0 + TIE) < rates[b as usize]
}

/// The least share among each link and its neighbours within `reach`.
fn nearby_least(share: &[f64], paths: &[Vec<u32>], members: &[Vec<u32>], frozen: &[usize], reach: Reach) -> Vec<f64> {
    let steps = match reach {
        Reach::One => 1,
        Reach::Two => 2,
        Reach::All => {
            let least = share.iter().copied().fold(f64::INFINITY, f64::min);
            return vec![least; share.len()];
        }
    };
    let mut least = share.to_vec();
    for _ in 0..steps {
        let of_flow: Vec<f64> = (0..paths.len())
            .map(|f| match frozen[f] {
                0 => paths[f].iter().map(|&l| least[l as usize]).fold(f64::INFINITY, f64::min),
                _ => f64::INFINITY,
            })
            .collect();
        for (l, near) in least.iter_mut().enumerate() {
            *near = members[l].iter().map(|&f| of_flow[f as usize]).fold(*near, f64::min);
        }
    }
    least
}

impl Levels {
    /// The links that share a flow with `link` in iteration `n`, from 1, itself included.
    fn neighbours(&self, paths: &[Vec<u32>], link: u32, n: usize) -> Vec<u32> {
        let mut near = vec![false; self.of_link.len()];
        near[link as usize] = true;
        for (f, path) in paths.iter().enumerate() {
            if self.of_flow[f] >= n && path.contains(&link) {
                path.iter().for_each(|&l| near[l as usize] = true);
            }
        }
        (0..near.len() as u32).filter(|&l| near[l as usize]).collect()
    }

    /// The precedents of a link that froze after the first iteration (definition 3.4.20), given the links'
    /// rates in the iteration before it froze; `second` for WF2.
    pub fn precedents(&self, paths: &[Vec<u32>], rates: &[f64], link: u32, second: bool) -> Vec<Precedent> {
        let Some(n) = self.of_link[link as usize].checked_sub(1).filter(|&n| n > 0) else { return Vec::new() };
        let near = self.neighbours(paths, link, n);
        let mut found = self.precedents_among(paths, rates, &near, link, [Kind::Direct, Kind::Indirect]);
        if second && near.iter().all(|&x| !lower(rates, x, link)) {
            let mut further: Vec<u32> = near.iter().flat_map(|&x| self.neighbours(paths, x, n)).collect();
            further.sort_unstable();
            further.dedup();
            found = self.precedents_among(paths, rates, &further, link, [Kind::SecondDirect, Kind::SecondIndirect]);
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn precedents_among(
        &self,
        paths: &[Vec<u32>],
        rates: &[f64],
        candidates: &[u32],
        link: u32,
        [direct, indirect]: [Kind; 2],
    ) -> Vec<Precedent> {
        let n = self.of_link[link as usize] - 1;
        let mut found = Vec::new();
        for &x in candidates.iter().filter(|&&x| lower(rates, x, link)) {
            if self.of_link[x as usize] == n {
                found.push(Precedent { link: x, kind: direct, medium: None });
                continue;
            }
            for z in self.neighbours(paths, x, n) {
                if self.of_link[z as usize] == n && lower(rates, z, x) {
                    found.push(Precedent { link: z, kind: indirect, medium: Some(x) });
                }
            }
        }
        found
    }
}
