//! Folding of pooled cases: links that cannot be told apart are merged into one, and so are the paths of a flow over
//! them. Over equal spines, all paths of a flow become one.
//!
//! Colours of links (capacity, paths over it by place) and of paths (flow, links) are refined until they are stable. Paths of a
//! flow with one colour then cross merged links in equal numbers. If the rate of such paths is the mean of their rates,
//! no link has more load than the largest of its colour had, and the flow's rate stays: some optimum is even over each
//! colour. The merged link has the sum of the capacities; its price is that of each of its links.

use crate::answer::{Answer, LevelDual};
use std::collections::HashMap;
use subak_core::rng::mix;
use subak_core::{Case, Flow, Flows, IdVec, Link, LinkId, Network};

/// Largest number of refinements; symmetric networks need a few.
const MOST_ROUNDS: usize = 32;

/// A folded case, and how to unfold its answer.
pub(crate) struct Folded {
    /// The case with merged links and paths. Its flows are those of the original, in the same order.
    pub case: Case,
    /// Merged link of each link; `None` for a link without paths.
    link: IdVec<LinkId, Option<LinkId>>,
    /// Number of paths that the path of the folded case stands for, by original path, and the number of that path.
    path: Vec<(usize, usize)>,
}

/// Folds a case of several paths a flow; `None` if no two paths are merged.
pub(crate) fn fold(case: &Case) -> Option<Folded> {
    let flows = &case.flows;
    let (links, paths) = (case.network.links().len(), flows.path_count());
    let mut of_link: IdVec<LinkId, u64> = case.network.links().iter().map(|l| mix(l.capacity_bps.to_bits())).collect();
    let mut of_path: Vec<u64> =
        (0..flows.len()).flat_map(|f| flows.paths_of(f).map(move |_| mix(f as u64 + 1))).collect();
    let mut colours = 0;
    for _ in 0..MOST_ROUNDS {
        let mut sums = IdVec::<LinkId, u64>::filled(0, links);
        for (p, own) in of_path.iter_mut().enumerate() {
            let colour = flows.links_of(p).iter().fold(0u64, |sum, &l| sum.wrapping_add(mix(of_link[l])));
            *own = mix(*own ^ mix(colour));
            // A link's place in a path counts: the first and the last link of a lone flow look alike otherwise.
            for (place, &l) in flows.links_of(p).iter().enumerate() {
                sums[l] = sums[l].wrapping_add(mix(*own ^ (place as u64 + 1)));
            }
        }
        for (l, colour) in of_link.iter_enumerated_mut() {
            *colour = mix(*colour ^ mix(sums[l]));
        }
        let before = std::mem::replace(&mut colours, distinct(of_path.iter()) + distinct(of_link.raw().iter()));
        if colours == before {
            break;
        }
    }
    if distinct(of_path.iter()) == paths { None } else { merged(case, &of_link, &of_path) }
}

fn distinct<'a>(colours: impl Iterator<Item = &'a u64>) -> usize {
    colours.collect::<std::collections::HashSet<_>>().len()
}

fn merged(case: &Case, of_link: &IdVec<LinkId, u64>, of_path: &[u64]) -> Option<Folded> {
    let flows = &case.flows;
    let mut used = IdVec::<LinkId, bool>::filled(false, of_link.len());
    (0..flows.path_count()).flat_map(|p| flows.links_of(p)).for_each(|&l| used[l] = true);
    let (mut network, mut by_colour) = (Network::new(), HashMap::new());
    let mut link = IdVec::<LinkId, Option<LinkId>>::filled(None, of_link.len());
    for (l, original) in case.network.links().iter_enumerated().filter(|(l, _)| used[*l]) {
        let place = *by_colour.entry(of_link[l]).or_insert_with(|| network.links().next_id());
        link[l] = Some(place);
        if place == network.links().next_id() {
            let plain = Link { id: format!("{}", place.index()), from: None, to: None, ..original.clone() };
            network.add(plain).ok()?;
        } else {
            network.link_mut(place).capacity_bps += original.capacity_bps;
        }
    }
    let (mut folded, mut path) = (Flows::new(), Vec::with_capacity(of_path.len()));
    for f in 0..flows.len() {
        let (mut own, mut paths): (Vec<(u64, usize)>, Vec<Vec<LinkId>>) = (Vec::new(), Vec::new());
        let first = path.len();
        let begin = folded.path_count();
        for p in flows.paths_of(f) {
            let at = match own.iter().position(|(colour, _)| *colour == of_path[p]) {
                Some(at) => at,
                None => {
                    let crossed = flows.links_of(p).iter().map(|&l| link[l]).collect::<Option<Vec<_>>>()?;
                    // A path over two links of one colour would count twice at the merged link.
                    if (1..crossed.len()).any(|i| crossed[..i].contains(&crossed[i])) {
                        return None;
                    }
                    own.push((of_path[p], 0));
                    paths.push(crossed);
                    own.len() - 1
                }
            };
            own[at].1 += 1;
            path.push((at, begin + at));
        }
        path[first..].iter_mut().for_each(|(count, _)| *count = own[*count].1);
        folded.push(Flow { paths, ..flows.get(f) }, &network).ok()?;
    }
    Some(Folded { case: Case { network, flows: folded, policy: case.policy }, link, path })
}

impl Folded {
    /// Prices of the merged links, from those of the links.
    pub fn prices(&self, of_links: &[f64]) -> Vec<f64> {
        let mut prices = vec![0.0f64; self.case.network.links().len()];
        for (&place, &price) in self.link.iter().zip(of_links) {
            if let Some(place) = place {
                prices[place.index()] = prices[place.index()].max(price);
            }
        }
        prices
    }

    /// The answer of the original case.
    pub fn unfolded(&self, answer: &Answer) -> Answer {
        let price = |place: &Option<LinkId>| place.map_or(0.0, |place| answer.link_price[place]);
        let mut members: IdVec<LinkId, Vec<LinkId>> = IdVec::filled(Vec::new(), self.case.network.links().len());
        for (l, place) in self.link.iter_enumerated() {
            if let Some(place) = place {
                members[*place].push(l);
            }
        }
        let level = |dual: &LevelDual| LevelDual {
            level: dual.level,
            prices: dual.prices.iter().flat_map(|&(place, p)| members[place].iter().map(move |&l| (l, p))).collect(),
        };
        Answer {
            path_rates_bps: self.path.iter().map(|&(count, at)| answer.path_rates_bps[at] / count as f64).collect(),
            link_price: self.link.iter().map(price).collect(),
            levels: answer.levels.iter().map(level).collect(),
            ..answer.clone()
        }
    }
}
