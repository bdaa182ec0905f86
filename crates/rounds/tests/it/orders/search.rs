//! Search of all reachable states, and the longest way to the last rate that is not exact.

use super::model::{Explored, Model, State, Step};
use std::collections::{HashMap, VecDeque};

/// Result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Number of states.
    pub states: usize,
    /// Number of steps between them.
    pub steps: usize,
    /// Number of orders of steps from the last loss until every state to come is exact.
    pub orders: f64,
    /// Rounds that end between the last loss and the last rate that is not exact, in the slowest order; `None` if there is
    /// no bound.
    pub rounds: Option<u32>,
    /// An order that leads to the last rate that is not exact, or into a loop if there is no bound.
    pub example: Vec<Step>,
    /// Whether the search went over all states.
    pub complete: bool,
    /// Number of states without a step. No run in time comes to one: every packet goes on.
    pub dead_ends: usize,
}

struct Edge {
    to: u32,
    step: Step,
    wrong: bool,
    round: bool,
}

/// Searches at most `most` states.
pub fn search<R: Explored>(model: &Model<R>, most: usize) -> Found {
    let mut graph = Graph::default();
    let mut ahead = VecDeque::from([(0, model.first())]);
    graph.quiet.push(model.quiet(&ahead[0].1));
    graph.from.push((0, Step::EndAll));
    let mut numbers = HashMap::from([(model.key(&ahead[0].1), 0u32)]);
    graph.entries.extend(graph.quiet[0].then_some(0));
    graph.edges.push(Vec::new());
    while let Some((at, state)) = ahead.pop_front() {
        let mut next: Vec<State<R>> = Vec::new();
        let mut edges = Vec::new();
        let before = graph.quiet.len();
        model.steps(&state, |step| {
            let taken = model.take(&state, step);
            let fresh = graph.quiet.len() as u32;
            let to = *numbers.entry(model.key(&taken.state)).or_insert(fresh);
            if to == fresh {
                graph.quiet.push(model.quiet(&taken.state));
                graph.from.push((at, step));
                graph.edges.push(Vec::new());
                next.push(taken.state);
            }
            edges.push(Edge { to, step, wrong: taken.wrong, round: taken.round });
        });
        graph.dead_ends += usize::from(edges.is_empty());
        if !graph.quiet[at as usize] {
            graph.entries.extend(edges.iter().filter(|e| graph.quiet[e.to as usize]).map(|e| e.to));
        }
        graph.edges[at as usize] = edges;
        ahead.extend((before as u32..).zip(next));
        if graph.quiet.len() > most {
            return graph.found(Longest::default(), false);
        }
    }
    let longest = graph.longest();
    graph.found(longest, true)
}

#[derive(Default)]
struct Graph {
    edges: Vec<Vec<Edge>>,
    /// Whether nothing more is lost after a state.
    quiet: Vec<bool>,
    /// The step by which a state was found, and the state before.
    from: Vec<(u32, Step)>,
    /// States right after the last loss.
    entries: Vec<u32>,
    dead_ends: usize,
}

#[derive(Default)]
struct Longest {
    rounds: Option<u32>,
    orders: f64,
    example: Vec<Step>,
}

impl Graph {
    fn found(&self, longest: Longest, complete: bool) -> Found {
        Found {
            states: self.quiet.len(),
            steps: self.edges.iter().map(Vec::len).sum(),
            orders: longest.orders,
            rounds: longest.rounds,
            example: longest.example,
            complete,
            dead_ends: self.dead_ends,
        }
    }

    fn path(&self, mut state: u32) -> Vec<Step> {
        let mut steps = Vec::new();
        while state != 0 {
            let (before, step) = self.from[state as usize];
            steps.push(step);
            state = before;
        }
        steps.reverse();
        steps
    }

    /// States after the last loss from which a rate that is not exact can still come.
    fn unsettled(&self) -> Vec<bool> {
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); self.edges.len()];
        let mut unsettled = vec![false; self.edges.len()];
        let mut ahead = Vec::new();
        for (v, edges) in self.edges.iter().enumerate().filter(|(v, _)| self.quiet[*v]) {
            edges.iter().for_each(|e| before[e.to as usize].push(v as u32));
            if edges.iter().any(|e| e.wrong) {
                unsettled[v] = true;
                ahead.push(v as u32);
            }
        }
        while let Some(v) = ahead.pop() {
            for &u in &before[v as usize] {
                if !std::mem::replace(&mut unsettled[u as usize], true) {
                    ahead.push(u);
                }
            }
        }
        unsettled
    }

    /// The largest number of rounds over all orders, by search in depth; there is none if an order comes back to a state.
    fn longest(&self) -> Longest {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let unsettled = self.unsettled();
        let mut marks = vec![Mark::New; self.edges.len()];
        // Rounds and the step that they begin with, and number of orders.
        let mut rounds = vec![(0u32, usize::MAX); self.edges.len()];
        let mut orders = vec![1.0f64; self.edges.len()];
        let mut stack: Vec<(u32, usize)> = Vec::new();
        for &entry in self.entries.iter().filter(|e| unsettled[**e as usize]) {
            if marks[entry as usize] == Mark::New {
                stack.push((entry, 0));
                marks[entry as usize] = Mark::Open;
            }
            while let Some((v, next)) = stack.last_mut() {
                let at = *v as usize;
                let Some(edge) = self.edges[at].get(*next) else {
                    marks[at] = Mark::Done;
                    let (mut most, mut count) = ((0, usize::MAX), 0.0);
                    for (k, e) in self.edges[at].iter().enumerate() {
                        let to = e.to as usize;
                        count += if unsettled[to] { orders[to] } else { 1.0 };
                        if unsettled[to] && (rounds[to].0 + u32::from(e.round) > most.0 || most.1 == usize::MAX) {
                            most = (rounds[to].0 + u32::from(e.round), k);
                        } else if e.wrong && most.1 == usize::MAX {
                            most = (0, k);
                        }
                    }
                    (rounds[at], orders[at]) = (most, count);
                    stack.pop();
                    continue;
                };
                *next += 1;
                let to = edge.to as usize;
                match marks[to] {
                    _ if !unsettled[to] => {}
                    Mark::New => {
                        marks[to] = Mark::Open;
                        stack.push((edge.to, 0));
                    }
                    Mark::Open => {
                        let mut example = self.path(stack[0].0);
                        example.extend(stack.iter().map(|&(v, next)| self.edges[v as usize][next - 1].step));
                        return Longest { rounds: None, orders: f64::INFINITY, example };
                    }
                    Mark::Done => {}
                }
            }
        }
        let mut entries: Vec<u32> = self.entries.iter().copied().filter(|e| unsettled[*e as usize]).collect();
        entries.sort_unstable();
        entries.dedup();
        let Some(&slowest) = entries.iter().max_by_key(|e| rounds[**e as usize].0) else {
            return Longest { rounds: Some(0), orders: 1.0, example: Vec::new() };
        };
        let mut example = self.path(slowest);
        let mut at = slowest as usize;
        while let Some(edge) = self.edges[at].get(rounds[at].1) {
            example.push(edge.step);
            at = edge.to as usize;
            if !unsettled[at] {
                break;
            }
        }
        Longest {
            rounds: Some(rounds[slowest as usize].0),
            orders: entries.iter().map(|e| orders[*e as usize]).sum(),
            example,
        }
    }
}
