//! Collectives: the flows of all-reduce, all-to-all and others between the ranks of a job, each with the flows whose data
//! it passes on.

use super::jobs::{Jobs, Step};
use super::{Common, Workload, WorkloadInfo};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use subak_core::keys::{Key, ValueType};
use subak_core::quantity::quoted;
use subak_core::section::Section;
use subak_core::{InputError, Ns};

const PATTERNS: &[&str] = &[
    "ring-all-reduce",
    "tree-all-reduce",
    "halving-all-reduce",
    "reduce-scatter",
    "all-gather",
    "all-to-all",
    "broadcast",
    "pipeline",
];

/// Largest number of flows of all iterations.
const MOST_FLOWS: u64 = 500_000;

pub(super) const ENTRY: WorkloadInfo = WorkloadInfo {
    name: "collective",
    about: "a collective of training jobs over some hosts. Each iteration is a job, with a row of kind `job` in the results",
    keys: &[
        Key::required("pattern", ValueType::Word(PATTERNS), "the collective"),
        Key::required(
            "hosts",
            ValueType::Either(&[ValueType::Whole(2, 100_000), ValueType::List(&ValueType::Text)]),
            "the ranks in their order: names of hosts; or a number n, for h0 to h(n-1)",
        ),
        Key::required("size", ValueType::Size, "bytes of each rank's buffer"),
        Key::new(
            "chunks",
            ValueType::Whole(1, 10_000),
            "1",
            "parts of the buffer that follow each other along a tree or a pipeline",
        ),
        Key::new("repeat", ValueType::Whole(1, 100_000), "1", "number of iterations"),
        Key::open(
            "interval",
            ValueType::Time,
            "none",
            "time between the starts of two iterations; needed with `repeat`",
        ),
        Key::new("start", ValueType::Time, "0", "start of the first iteration"),
    ],
    common: Common::None,
    read: |section, _| Ok(read(section)),
};

fn read(section: &mut Section) -> Option<Arc<dyn Workload>> {
    let pattern: String = section.take("pattern");
    let hosts = section.convert("hosts", |names: Value| hosts(&names)).unwrap_or_default();
    let (size_bytes, chunks, repeat): (u64, u64, u64) =
        (section.take("size"), section.take("chunks"), section.take("repeat"));
    let (interval_ns, start_ns): (Option<Ns>, Ns) = (section.given("interval"), section.take("start"));
    if repeat > 1 && interval_ns.is_none() {
        section.note(InputError::new("interval", "iterations repeat, and have no interval", "give interval = \"1ms\""));
    }
    if repeat == 1 && interval_ns.is_some() {
        section.note(InputError::new("interval", "there is one iteration", "give repeat, or leave it away"));
    }
    let is_in_chunks = matches!(pattern.as_str(), "tree-all-reduce" | "broadcast" | "pipeline");
    if chunks > 1 && !is_in_chunks {
        let hint = "leave chunks away; tree-all-reduce, broadcast and pipeline have them";
        section.note(InputError::new("chunks", format!("{pattern} divides its buffer by the ranks"), hint));
    }
    let parts = if is_in_chunks { chunks } else { hosts.len() as u64 };
    if section.is_sound() && size_bytes < parts {
        let what = format!("{size_bytes} bytes are fewer than {parts} parts");
        section.note(InputError::new("size", what, "give a byte to each part or more"));
    }
    if pattern == "halving-all-reduce" && !hosts.len().is_power_of_two() {
        let what = format!("halving pairs the ranks, and {} is no power of two", hosts.len());
        section.note(InputError::new("hosts", what, "give 2, 4, 8, ... hosts, or take ring-all-reduce"));
    }
    if !section.is_sound() {
        return None;
    }
    let steps = Plan { ranks: hosts.len(), size_bytes, chunks }.of(&pattern);
    let flows = steps.len() as u64 * repeat;
    if flows > MOST_FLOWS {
        let what = format!("{flows} flows");
        section.note(InputError::new(
            "repeat",
            what,
            format!("take fewer hosts, chunks or iterations: at most {MOST_FLOWS}"),
        ));
        return None;
    }
    let starts = (0..repeat).map(|k| start_ns.saturating_add(k.saturating_mul(interval_ns.unwrap_or(0))));
    let named = starts.enumerate().map(|(k, at_ns)| (format!("iteration {k}"), at_ns));
    Some(Arc::new(Jobs::of_steps(named, &hosts, &steps)))
}

fn hosts(value: &Value) -> Result<Vec<String>, InputError> {
    if let Some(count) = value.as_u64() {
        return Ok((0..count).map(|k| format!("h{k}")).collect());
    }
    let names: Vec<String> =
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_string).collect();
    if names.len() < 2 {
        return Err(InputError::new("", format!("there are {} ranks", names.len()), "name two hosts or more"));
    }
    let mut seen = HashSet::new();
    match names.iter().find(|name| !seen.insert(*name)) {
        Some(twice) => Err(InputError::new("", format!("{} is there twice", quoted(twice)), "name each host once")),
        None => Ok(names),
    }
}

/// Size of a collective.
struct Plan {
    ranks: usize,
    /// Bytes of each rank's buffer.
    size_bytes: u64,
    chunks: u64,
}

impl Plan {
    fn of(&self, pattern: &str) -> Vec<Step> {
        match pattern {
            "tree-all-reduce" => self.tree(true),
            "broadcast" => self.tree(false),
            "halving-all-reduce" => self.halving(),
            "reduce-scatter" | "all-gather" => self.ring(self.ranks - 1),
            "all-to-all" => self.all_to_all(),
            "pipeline" => self.pipeline(),
            _ => self.ring(2 * (self.ranks - 1)),
        }
    }

    /// Bytes of part `k` of `parts` nearly equal ones.
    fn part(&self, k: u64, parts: u64) -> u64 {
        self.size_bytes / parts + u64::from(k < self.size_bytes % parts)
    }

    /// A ring of `steps` steps: in each, every rank passes on to the next what it received in the one before.
    fn ring(&self, steps: usize) -> Vec<Step> {
        let n = self.ranks;
        let flow = |step: usize, rank: usize| Step {
            id: format!("{step}.{rank}"),
            from: rank,
            to: (rank + 1) % n,
            // In step s, rank r sends the part that began at rank r - s.
            size_bytes: self.part(((rank + n - step % n) % n) as u64, n as u64),
            after: if step > 0 { vec![(step - 1) * n + (rank + n - 1) % n] } else { Vec::new() },
        };
        (0..steps).flat_map(|step| (0..n).map(move |rank| flow(step, rank))).collect()
    }

    /// A binary tree with rank 0 as its root: a reduction to the root, if `reduces`, and a broadcast from it. A chunk
    /// follows the one before on the same edge.
    fn tree(&self, reduces: bool) -> Vec<Step> {
        let n = self.ranks;
        let mut steps: Vec<Step> = Vec::new();
        let edges = n - 1;
        let per_chunk = if reduces { 2 * edges } else { edges };
        for chunk in 0..self.chunks as usize {
            let base = chunk * per_chunk;
            let size_bytes = self.part(chunk as u64, self.chunks);
            let before = |place: usize| (chunk > 0).then(|| place - per_chunk);
            let down = base + per_chunk - edges;
            if reduces {
                for child in 1..n {
                    let grown = [2 * child + 1, 2 * child + 2].into_iter().filter(|&c| c < n).map(|c| base + c - 1);
                    let after = grown.chain(before(base + child - 1)).collect();
                    let id = format!("up.{chunk}.{child}");
                    steps.push(Step { id, from: child, to: (child - 1) / 2, size_bytes, after });
                }
            }
            for child in 1..n {
                let parent = (child - 1) / 2;
                let ready: Vec<usize> = match parent {
                    0 if reduces => [1, 2].into_iter().filter(|&c| c < n).map(|c| base + c - 1).collect(),
                    0 => Vec::new(),
                    _ => vec![down + parent - 1],
                };
                let after = ready.into_iter().chain(before(down + child - 1)).collect();
                let id = format!("down.{chunk}.{child}");
                steps.push(Step { id, from: parent, to: child, size_bytes, after });
            }
        }
        steps
    }

    /// Recursive halving, then doubling: in each step the ranks of a pair exchange a half, then a quarter, and so on.
    fn halving(&self) -> Vec<Step> {
        let (n, rounds) = (self.ranks, self.ranks.ilog2() as usize);
        let of_round = |round: usize| if round < rounds { round } else { 2 * rounds - 1 - round };
        let flow = |round: usize, rank: usize| {
            let distance = n >> (of_round(round) + 1);
            // A rank goes on with what its partner of the round before sent.
            let after = round.checked_sub(1).map(|last| {
                let partner = rank ^ (n >> (of_round(last) + 1));
                last * n + partner
            });
            Step {
                id: format!("{round}.{rank}"),
                from: rank,
                to: rank ^ distance,
                size_bytes: (self.size_bytes >> (of_round(round) + 1)).max(1),
                after: after.into_iter().collect(),
            }
        };
        (0..2 * rounds).flat_map(|round| (0..n).map(move |rank| flow(round, rank))).collect()
    }

    /// Each rank sends a part to each other rank, all at once.
    fn all_to_all(&self) -> Vec<Step> {
        let n = self.ranks;
        let pair = |from: usize, k: usize| {
            let to = (from + k) % n;
            let size_bytes = self.part(to as u64, n as u64);
            Step { id: format!("{from}.{to}"), from, to, size_bytes, after: Vec::new() }
        };
        (0..n).flat_map(|from| (1..n).map(move |k| pair(from, k))).collect()
    }

    /// Each rank passes chunks on to the next, one after the other.
    fn pipeline(&self) -> Vec<Step> {
        let stages = self.ranks - 1;
        let flow = |chunk: usize, stage: usize| {
            let received = stage.checked_sub(1).map(|before| chunk * stages + before);
            let sent = chunk.checked_sub(1).map(|before| before * stages + stage);
            Step {
                id: format!("{chunk}.{stage}"),
                from: stage,
                to: stage + 1,
                size_bytes: self.part(chunk as u64, self.chunks),
                after: received.into_iter().chain(sent).collect(),
            }
        };
        (0..self.chunks as usize).flat_map(|chunk| (0..stages).map(move |stage| flow(chunk, stage))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(pattern: &str, ranks: usize, size_bytes: u64, chunks: u64) -> Vec<Step> {
        Plan { ranks, size_bytes, chunks }.of(pattern)
    }

    fn sent(steps: &[Step], rank: usize) -> u64 {
        steps.iter().filter(|step| step.from == rank).map(|step| step.size_bytes).sum()
    }

    /// Each flow waits only for flows into its source, or before it on the same edge.
    #[test]
    fn flows_wait_for_what_their_source_receives() {
        for pattern in PATTERNS {
            let steps = steps(pattern, 8, 1 << 20, if pattern.contains("tree") { 3 } else { 2 });
            for step in &steps {
                for &before in &step.after {
                    let waited = &steps[before];
                    let same_edge = (waited.from, waited.to) == (step.from, step.to);
                    assert!(waited.to == step.from || same_edge, "{pattern}: {} waits for {}", step.id, waited.id);
                }
            }
        }
    }

    /// Ring and halving send 2 (n - 1) / n of the buffer from each rank; a reduce-scatter and an all-to-all half of it.
    #[test]
    fn ranks_send_what_the_literature_says() {
        for (pattern, share) in
            [("ring-all-reduce", 1.75), ("halving-all-reduce", 1.75), ("reduce-scatter", 0.875), ("all-to-all", 0.875)]
        {
            let steps = steps(pattern, 8, 1 << 20, 1);
            for rank in 0..8 {
                assert_eq!(sent(&steps, rank) as f64, share * f64::from(1 << 20), "{pattern}, rank {rank}");
            }
        }
    }

    /// In a ring, a rank has all parts after n - 1 steps: what it receives in them and its own.
    #[test]
    fn a_ring_passes_each_part_once_to_each_rank() {
        let steps = steps("all-gather", 5, 1003, 1);
        for rank in 0..5 {
            let received: u64 = steps.iter().filter(|step| step.to == rank).map(|step| step.size_bytes).sum();
            let own = Plan { ranks: 5, size_bytes: 1003, chunks: 1 }.part(rank as u64, 5);
            assert_eq!(received + own, 1003, "rank {rank}");
        }
    }

    #[test]
    fn a_tree_and_a_pipeline_carry_each_chunk_over_each_edge() {
        assert_eq!(steps("tree-all-reduce", 6, 999, 4).iter().map(|s| s.size_bytes).sum::<u64>(), 2 * 5 * 999);
        assert_eq!(steps("broadcast", 6, 999, 4).iter().map(|s| s.size_bytes).sum::<u64>(), 5 * 999);
        let steps = steps("pipeline", 4, 1000, 3);
        assert_eq!(steps.iter().map(|s| s.size_bytes).sum::<u64>(), 3 * 1000);
        let last = steps.last().unwrap();
        assert_eq!((last.id.as_str(), last.after.len()), ("2.2", 2));
    }
}
