//! Measurements of each trial as read from the results table, before they are summarized.

use crate::results::read::{flag, number, text, whole};
use arrow_array::RecordBatch;
use std::collections::BTreeMap;

/// First words of the name of a note about a daemon that ended in the middle of a testbed's run.
pub(crate) const ENDED: &str = "daemon ended: ";

/// Columns of a `summary` row that are metrics of the comparison.
pub(crate) const WHOLE: &[&str] = &["dropped_packets", "lost_packets", "retransmissions", "pauses", "packet_hops"];

pub(crate) const COLUMNS: &[&str] = &[
    "trial",
    "kind",
    "size_bytes",
    "fct_ns",
    "slowdown",
    "measured",
    "wait_ns",
    "packets",
    "converged",
    "convergence_ns",
    "flows",
    "completed",
    "utilization",
    "dropped_packets",
    "dropped_in_run",
    "lost_packets",
    "retransmissions",
    "pauses",
    "deadlock_ns",
    "link",
    "packet_hops",
    "queued_bytes",
    "end_error",
    "near_at_end",
    "criterion",
    "start_ns",
    "stop_ns",
    "ideal_fct_ns",
    "time_ns",
    "flow_id",
    "class",
    "scheme",
    "ctl_drops",
    "ctl_bytes",
    "assigned_bps",
    "name",
];

/// A flow or a job that started after the warm-up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowFact {
    pub size_bytes: u64,
    pub start_ns: u64,
    pub fct_ns: Option<u64>,
    pub slowdown: Option<f64>,
    pub ideal_fct_ns: Option<u64>,
    /// Whether the spec stopped the flow. A stopped flow does not count as unfinished.
    pub stopped: bool,
    /// Index in [`TrialFacts::classes`], if it has a class.
    pub class: Option<usize>,
}

impl FlowFact {
    pub fn is_unfinished(&self) -> bool {
        self.fct_ns.is_none() && !self.stopped
    }

    /// FCT, ns; of an unfinished flow, the time from its start to the end of the run.
    pub fn at_least_ns(&self, end_ns: u64) -> Option<u64> {
        self.fct_ns.or_else(|| self.is_unfinished().then(|| end_ns.saturating_sub(self.start_ns)))
    }

    /// Slowdown; of an unfinished flow, the time from its start to the end of the run over its ideal FCT, at least
    /// 1.
    pub fn at_least(&self, end_ns: u64) -> Option<f64> {
        let so_far = || {
            let waited_ns = self.is_unfinished().then(|| end_ns.saturating_sub(self.start_ns))?;
            Some((waited_ns as f64 / self.ideal_fct_ns? as f64).max(1.0))
        };
        self.slowdown.or_else(so_far)
    }
}

/// Convergence of rates after one change of the set of flows, by one criterion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settled {
    pub converged_ns: Option<f64>,
    /// Relative distance of the rates from the optimum at the last sample before the next change.
    pub end_error: Option<f64>,
    /// Whether enough flows were within the tolerance at the last sample before the next change.
    pub near_at_end: bool,
}

/// Measurements of one trial.
#[derive(Debug, Default)]
pub(crate) struct TrialFacts {
    pub flows: Vec<FlowFact>,
    /// Names of the classes of flows, in the order of the first flow of each.
    pub classes: Vec<String>,
    /// Label of the scheme of each class.
    pub class_schemes: Vec<String>,
    /// Jobs that started after the warm-up, with their names.
    pub jobs: Vec<(String, FlowFact)>,
    /// Number of flows that a scheme of the user's held for ever.
    pub held: u64,
    /// Number of flows that never started.
    pub never_started: u64,
    /// Number of flows that lost control messages.
    pub ctl_lost: u64,
    /// Bytes of control messages over each link that carried any, by link id.
    pub ctl_bytes: Vec<(String, u64)>,
    /// For each criterion's number, the outcome after each change of the set of flows.
    pub settled: BTreeMap<u64, Vec<Settled>>,
    pub whole: BTreeMap<&'static str, f64>,
    /// Packets dropped at full queues over the whole run.
    pub dropped: u64,
    pub waits: Vec<(u64, u64)>,
    /// Links in a cycle of PFC pauses, and the start of this deadlock, ns.
    pub stuck: Vec<(String, u64)>,
    pub queued: Vec<f64>,
    /// Daemons that ended in the middle of the run, each with the time, ns.
    pub ended: Vec<(u64, String)>,
    pub end_ns: u64,
}

impl TrialFacts {
    /// Index of the class called `name`, which is added if it is new.
    fn class(&mut self, name: &str, scheme: &str) -> usize {
        self.classes.iter().position(|known| known == name).unwrap_or_else(|| {
            self.classes.push(name.to_string());
            self.class_schemes.push(scheme.to_string());
            self.classes.len() - 1
        })
    }

    /// Number of flows that completed.
    pub fn completed(&self) -> usize {
        self.flows.iter().filter(|f| f.fct_ns.is_some()).count()
    }

    /// Number of flows that neither completed nor were stopped by the spec.
    pub fn unfinished(&self) -> usize {
        self.flows.iter().filter(|f| f.is_unfinished()).count()
    }

    /// Number of changes after which rates converged, but were outside the tolerance at the last sample before the
    /// next change.
    pub fn grazes(&self) -> usize {
        self.settled.values().flatten().filter(|s| s.converged_ns.is_some() && !s.near_at_end).count()
    }
}

pub(crate) fn collect(batch: &RecordBatch, runs: &mut BTreeMap<u64, TrialFacts>) {
    let (trial, kind) = (whole(batch, "trial"), text(batch, "kind"));
    let (size, fct, slowdown) = (whole(batch, "size_bytes"), whole(batch, "fct_ns"), number(batch, "slowdown"));
    let (start, stop, ideal) = (whole(batch, "start_ns"), whole(batch, "stop_ns"), whole(batch, "ideal_fct_ns"));
    let (measured, wait, packets) = (flag(batch, "measured"), whole(batch, "wait_ns"), whole(batch, "packets"));
    let (converged, settled) = (flag(batch, "converged"), whole(batch, "convergence_ns"));
    let (criterion, end_error) = (whole(batch, "criterion"), number(batch, "end_error"));
    let (queued, time, near) = (whole(batch, "queued_bytes"), whole(batch, "time_ns"), flag(batch, "near_at_end"));
    let (link, stuck, id) = (text(batch, "link"), whole(batch, "deadlock_ns"), text(batch, "flow_id"));
    let (dropped, assigned) = (whole(batch, "dropped_in_run"), number(batch, "assigned_bps"));
    let (class, scheme, name) = (text(batch, "class"), text(batch, "scheme"), text(batch, "name"));
    let fact = |i: usize, class: Option<usize>| {
        size(i).zip(start(i)).map(|(size_bytes, start_ns)| FlowFact {
            size_bytes,
            start_ns,
            fct_ns: fct(i),
            slowdown: slowdown(i),
            ideal_fct_ns: ideal(i),
            stopped: stop(i).is_some(),
            class,
        })
    };
    let (ctl_drops, ctl_bytes) = (whole(batch, "ctl_drops"), whole(batch, "ctl_bytes"));
    for i in 0..batch.num_rows() {
        let Some(number_of_trial) = trial(i) else { continue };
        let run = runs.entry(number_of_trial).or_default();
        run.held += u64::from(kind(i) == Some("flow") && assigned(i) == Some(0.0));
        run.ctl_lost += u64::from(ctl_drops(i).is_some_and(|n| n > 0));
        match kind(i) {
            Some("flow") if measured(i) == Some(true) => {
                let class = class(i).map(|name| run.class(name, scheme(i).unwrap_or_default()));
                run.flows.extend(fact(i, class));
            }
            Some("job") if measured(i) == Some(true) => {
                run.jobs.extend(fact(i, None).map(|fact| (id(i).unwrap_or_default().to_string(), fact)));
            }
            Some("flow") if start(i).is_none() => run.never_started += 1,
            Some("link") => {
                run.stuck.extend(link(i).zip(stuck(i)).map(|(id, since_ns)| (id.to_string(), since_ns)));
                let carried = ctl_bytes(i).filter(|&bytes| bytes > 0);
                run.ctl_bytes.extend(link(i).zip(carried).map(|(id, bytes)| (id.to_string(), bytes)));
            }
            Some("note") => {
                let ended = name(i).and_then(|name| name.strip_prefix(ENDED));
                run.ended.extend(time(i).zip(ended.map(str::to_string)));
            }
            Some("wait") => run.waits.extend(wait(i).zip(packets(i))),
            Some("queue") if measured(i) != Some(false) => run.queued.extend(queued(i).map(|b| b as f64)),
            Some("convergence") => {
                let at = settled(i).filter(|_| converged(i) == Some(true));
                run.settled.entry(criterion(i).unwrap_or(0)).or_default().push(Settled {
                    converged_ns: at.map(|ns| ns as f64),
                    end_error: end_error(i),
                    near_at_end: near(i) != Some(false),
                });
            }
            Some("summary") => {
                run.end_ns = time(i).unwrap_or(0);
                run.dropped = dropped(i).unwrap_or(0);
                for metric in WHOLE {
                    run.whole.extend(whole(batch, metric)(i).map(|v| (*metric, v as f64)));
                }
                run.whole.extend(number(batch, "utilization")(i).map(|v| ("utilization", v)));
            }
            _ => {}
        }
    }
}
