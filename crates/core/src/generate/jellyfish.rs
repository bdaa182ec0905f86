//! Random regular graphs of switches (Singla et al., Jellyfish, NSDI 2012).

use crate::rng::Stream;
use std::collections::BTreeSet;

/// Number of graphs that are drawn until one is connected.
const TRIES: u64 = 100;

/// The links of a connected random graph in which each of `switches` has `ports` links, as pairs in order; `None` if none
/// of [`TRIES`] drawn graphs is connected. `switches * ports` is even, and `ports` below `switches`.
pub(super) fn links(switches: usize, ports: usize, seed: u64) -> Option<Vec<(usize, usize)>> {
    (0..TRIES).find_map(|attempt| {
        let mut stream = Stream::new(seed, &format!("jellyfish {attempt}"));
        let links = drawn(switches, ports, &mut stream);
        is_connected(switches, &links).then(|| links.into_iter().collect())
    })
}

/// Links random pairs with free ports. If only adjacent ones are left, a random link is replaced by two to a switch with
/// free ports, as in the paper.
fn drawn(switches: usize, ports: usize, stream: &mut Stream) -> BTreeSet<(usize, usize)> {
    let mut links = BTreeSet::new();
    let mut open: Vec<usize> = (0..switches).flat_map(|s| std::iter::repeat_n(s, ports)).collect();
    stream.shuffle(&mut open);
    let ordered = |a: usize, b: usize| (a.min(b), a.max(b));
    while open.len() > 1 {
        let a = open[open.len() - 1];
        let fits = |b: usize| b != a && !links.contains(&ordered(a, b));
        let free: Vec<usize> = (0..open.len() - 1).filter(|&at| fits(open[at])).collect();
        if let Some(&at) = free.get(if free.is_empty() { 0 } else { stream.below(free.len()) }) {
            open.pop();
            let b = open.remove(at);
            links.insert(ordered(a, b));
            continue;
        }
        let b = open[open.len() - 2];
        let apart: Vec<(usize, usize)> = links
            .iter()
            .copied()
            .filter(|&(x, y)| {
                let to = |end: usize, other: usize| end != other && !links.contains(&ordered(end, other));
                to(a, x) && to(b, y)
            })
            .collect();
        if apart.is_empty() {
            break;
        }
        let (x, y) = apart[stream.below(apart.len())];
        links.remove(&(x, y));
        links.extend([ordered(a, x), ordered(b, y)]);
        open.truncate(open.len() - 2);
    }
    links
}

fn is_connected(switches: usize, links: &BTreeSet<(usize, usize)>) -> bool {
    let mut near = vec![Vec::new(); switches];
    for &(a, b) in links {
        near[a].push(b);
        near[b].push(a);
    }
    let mut reached = vec![false; switches];
    let mut waiting = vec![0];
    reached[0] = true;
    while let Some(at) = waiting.pop() {
        for &next in &near[at] {
            if !std::mem::replace(&mut reached[next], true) {
                waiting.push(next);
            }
        }
    }
    reached.into_iter().all(|there| there)
}
