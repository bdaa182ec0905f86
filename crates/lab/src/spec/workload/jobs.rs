//! Jobs: transfers and computations that wait for each other, and a policy that sets the weights of a job's transfers.

use super::{Expected, Maker, Planned, host, positive_bytes};
use crate::spec::section::{Section, between, each, text, whole};
use crate::spec::topology::{Topology, unknown_name};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use subak_core::driver::{FlowPlan, PacketSizes};
use subak_core::flows::Extra;
use subak_core::quantity::{ns_from_json, quoted};
use subak_core::rng::{Stream, mix};
use subak_core::{Fault, FlowId, NodeId, Ns};
use subak_jobs::{Job, Piece, Work, policies};

/// Most parts of a task: a transfer between two such tasks is the square of it.
const MOST_PARTS: u64 = 64;

/// The workload `jobs`.
#[derive(Debug, Clone, PartialEq)]
pub struct Jobs {
    jobs: Vec<Described>,
    /// Endless flows of no job that each host sends.
    background: usize,
}

/// Who sets the weights of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Who {
    /// A policy of the registry.
    Known(policies::Choice),
    /// What the caller of the run gave under this name.
    Callable(String),
}

/// A job as the spec describes it.
#[derive(Debug, Clone, PartialEq)]
struct Described {
    id: String,
    start_ns: Ns,
    who: Who,
    budget: Option<f64>,
    every_ns: Option<Ns>,
    flows: Vec<Transfer>,
    tasks: Vec<Task>,
}

#[derive(Debug, Clone, PartialEq)]
struct Transfer {
    id: String,
    ends: [End; 2],
    size_bytes: u64,
    start_ns: Ns,
    /// Numbers of pieces: transfers come first, then tasks.
    after: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq)]
struct Task {
    id: String,
    host: Option<String>,
    time_ns: Ns,
    after: Vec<usize>,
}

/// Where a transfer begins or ends.
#[derive(Debug, Clone, PartialEq)]
enum End {
    Host(String),
    Task(usize),
}

/// A job whose tasks have their hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// Its name.
    pub id: String,
    /// When it starts.
    pub start_ns: Ns,
    /// Who sets its weights.
    pub who: Who,
    /// What the weights of its running transfers may sum up to.
    pub budget: Option<f64>,
    /// Time between two looks at its progress.
    pub every_ns: Option<Ns>,
    /// Its transfers and computations. A transfer within a host is a computation that takes no time.
    pub job: Job,
    /// Names of the pieces.
    pub names: Vec<String>,
    /// Of each piece that is a transfer over the network: its flow.
    pub flows: Vec<Option<FlowId>>,
}

/// What holds for all jobs that do not say otherwise.
struct Common {
    who: Who,
    every_ns: Option<Ns>,
    compute: f64,
    spacing_ns: Ns,
    /// Bytes of every transfer, in place of its own.
    size_bytes: Option<u64>,
    /// Parts that every task is split into.
    width: usize,
}

impl Jobs {
    pub(super) fn read(section: &mut Section) -> Option<Self> {
        let common = Common {
            who: section.opt("policy", who).unwrap_or(Who::Known(policies::Choice::default())),
            every_ns: section.opt("every", positive_look),
            compute: section.opt("compute", |v| between(v, 0.0, true, 1e9)).unwrap_or(1.0),
            spacing_ns: section.opt("spacing", ns_from_json).unwrap_or(0),
            size_bytes: section.opt("size", positive_bytes),
            width: section.opt("width", |v| whole(v, 1, MOST_PARTS)).unwrap_or(1) as usize,
        };
        let mend = "list the jobs, or name a set of jobs: \"tpch\"";
        let read = |v: &Value| match v {
            Value::String(name) => builtin(name).and_then(|v| list(&v, &common)),
            list_of => list(list_of, &common),
        };
        let background = section.opt("background", |v| whole(v, 0, MOST_PARTS)).unwrap_or(0) as usize;
        Some(Jobs { jobs: section.need("jobs", mend, Vec::new(), read), background })
    }

    /// Whether any weight may differ from 1.
    pub(super) fn has_weights(&self) -> bool {
        let even = Who::Known(policies::Choice::default());
        self.jobs.iter().any(|job| job.who != even || job.budget.is_some())
    }

    pub(super) fn callables(&self) -> impl Iterator<Item = &str> {
        self.jobs.iter().filter_map(|job| match &job.who {
            Who::Callable(name) => Some(name.as_str()),
            Who::Known(_) => None,
        })
    }

    /// Refuses hosts that are not there, and jobs that begin too late.
    pub(super) fn check(&self, topology: &Topology, duration_ns: Ns) -> Result<(), Fault> {
        for (k, job) in self.jobs.iter().enumerate() {
            let at = |e: Fault| e.below(&format!("jobs[{k}]"));
            if job.start_ns >= duration_ns {
                let what = format!("job {} starts after the end of the run", quoted(&job.id));
                return Err(at(Fault::new("start", what, "let it start sooner, or give a longer run.duration")));
            }
            for (t, task) in job.tasks.iter().enumerate() {
                let found = task.host.as_ref().map_or(Ok(0), |name| host(topology, name));
                found.map_err(|e| at(e.below(&format!("tasks[{t}].host"))))?;
            }
            for (f, flow) in job.flows.iter().enumerate() {
                for (end, key) in flow.ends.iter().zip(["src", "dst"]) {
                    let End::Host(name) = end else { continue };
                    host(topology, name).map_err(|e| at(e.below(&format!("flows[{f}].{key}"))))?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn expected(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> Expected {
        let own = self.jobs.iter().map(|j| j.flows.len()).sum::<usize>();
        let flows = (own + self.background * topology.hosts().len()) as f64;
        let capacity_bps: f64 = topology.hosts().iter().map(|&h| topology.access_bps(h)).sum();
        let others = if self.background > 0 { capacity_bps * duration_ns as f64 / 8e9 } else { 0.0 };
        let sizes = self.jobs.iter().flat_map(|j| &j.flows).map(|f| packet.wire_bytes(f.size_bytes) as f64);
        Expected { flows, live: flows, wire_bytes: sizes.sum::<f64>() + others }
    }

    /// The jobs with their tasks on hosts, drawn from `seed` where the spec does not name them.
    pub(super) fn placed(&self, topology: &Topology, seed: u64, packet: PacketSizes) -> Result<Vec<Placed>, Fault> {
        Ok(self.all(&mut Maker::new(topology, seed, 0), packet)?.0)
    }

    pub(super) fn flows(&self, maker: &mut Maker, packet: PacketSizes) -> Result<(), Fault> {
        maker.flows = self.all(maker, packet)?.1;
        let hosts = maker.hosts.clone();
        for (h, &src) in hosts.iter().enumerate() {
            // As many come to each host as leave it.
            for k in 0..self.background {
                maker.add(src, hosts[(h + 1 + k % (hosts.len() - 1)) % hosts.len()], 0, None, 1)?;
            }
        }
        Ok(())
    }

    fn all(&self, maker: &mut Maker, packet: PacketSizes) -> Result<(Vec<Placed>, Vec<Planned>), Fault> {
        let (mut placed, mut planned) = (Vec::with_capacity(self.jobs.len()), Vec::new());
        for (k, job) in self.jobs.iter().enumerate() {
            let made = job.place(k as u64, maker, packet, &mut planned);
            placed.push(made.map_err(|e| e.below(&format!("jobs[{k}]")))?);
        }
        Ok((placed, planned))
    }
}

/// What has to be over before a piece starts: by flow, how much later than its end; and no sooner than so long after the
/// start of the job.
#[derive(Debug, Clone, Default)]
struct Wait {
    flows: BTreeMap<FlowId, Ns>,
    from_start_ns: Ns,
}

impl Wait {
    fn also(&mut self, other: &Wait, later_ns: Ns) {
        for (&flow, &delay_ns) in &other.flows {
            let known = self.flows.entry(flow).or_default();
            *known = (*known).max(delay_ns.saturating_add(later_ns));
        }
        self.from_start_ns = self.from_start_ns.max(other.from_start_ns.saturating_add(later_ns));
    }
}

impl Described {
    /// The pieces that each piece waits for; a circle is refused.
    fn after(&self) -> Vec<Vec<usize>> {
        let first_task = self.flows.len();
        let mut after: Vec<Vec<usize>> = self.flows.iter().map(|f| f.after.clone()).collect();
        after.extend(self.tasks.iter().map(|t| t.after.clone()));
        for (f, flow) in self.flows.iter().enumerate() {
            if let End::Task(t) = flow.ends[0] {
                after[f].push(first_task + t);
            }
            if let End::Task(t) = flow.ends[1] {
                after[first_task + t].push(f);
            }
        }
        after
    }

    /// The host of each task.
    fn hosts(&self, k: u64, maker: &Maker) -> Result<Vec<NodeId>, Fault> {
        let mut stream = Stream::new(mix(maker.seed ^ mix(k)), "placement");
        let place = |task: &Task| {
            // Drawn for each, so that a host that is named changes no other's.
            let drawn = maker.hosts[stream.below(maker.hosts.len())];
            task.host.as_ref().map_or(Ok(drawn), |name| host(maker.topology, name))
        };
        self.tasks.iter().map(place).collect()
    }

    fn place(
        &self,
        k: u64,
        maker: &mut Maker,
        packet: PacketSizes,
        planned: &mut Vec<Planned>,
    ) -> Result<Placed, Fault> {
        let hosts = self.hosts(k, maker)?;
        let first_task = self.flows.len();
        let mut pieces = Vec::with_capacity(first_task + self.tasks.len());
        let mut flows = vec![None; first_task + self.tasks.len()];
        let after = self.after();
        let first_flow = planned.len();
        for (f, flow) in self.flows.iter().enumerate() {
            let at = |e: Fault| e.below(&format!("flows[{f}]"));
            let end = |end: &End| match end {
                End::Task(t) => Ok(hosts[*t]),
                End::Host(name) => host(maker.topology, name),
            };
            let (src, dst) = (end(&flow.ends[0]).map_err(at)?, end(&flow.ends[1]).map_err(at)?);
            let key = maker.paths.bits();
            let work = if src == dst {
                Work::Compute { ns: flow.start_ns }
            } else {
                let routes = maker.topology.routes(&mut maker.router, src, dst, key, 1).map_err(at)?;
                let links = maker.topology.network().links();
                let line = routes[0].forward.iter().map(|&l| links[l as usize].capacity_bps).fold(f64::MAX, f64::min);
                flows[f] = Some(planned.len() as FlowId);
                planned.push(self.planned(flow, src, dst, routes));
                let payload = f64::from(packet.mss_bytes()) / f64::from(packet.mtu_bytes);
                Work::Transfer { bytes: flow.size_bytes, line_bps: line * payload }
            };
            pieces.push(Piece { work, after: after[f].clone() });
        }
        for (task, after) in self.tasks.iter().zip(&after[first_task..]) {
            pieces.push(Piece { work: Work::Compute { ns: task.time_ns }, after: after.clone() });
        }
        let job = Job::new(pieces).map_err(|_| Fault::new("", "pieces wait for each other in a circle", ""))?;
        self.wait(&job, &flows, &mut planned[first_flow..], first_flow);
        let Described { id, start_ns, who, budget, every_ns, .. } = self.clone();
        let names = self.flows.iter().map(|f| &f.id).chain(self.tasks.iter().map(|t| &t.id)).cloned().collect();
        Ok(Placed { id, start_ns, who, budget, every_ns, job, names, flows })
    }

    fn planned(&self, flow: &Transfer, src: NodeId, dst: NodeId, routes: Vec<subak_core::driver::Route>) -> Planned {
        let size_bytes = Some(flow.size_bytes);
        Planned {
            id: Some(format!("{}/{}", self.id, flow.id)),
            src: Some(src),
            dst: Some(dst),
            extra: Extra { size_bytes, ..Extra::default() },
            after: Vec::new(),
            delays_ns: Vec::new(),
            earliest_ns: 0,
            weights: Vec::new(),
            connections: 1,
            spare: false,
            plan: FlowPlan { start_ns: flow.start_ns, size_bytes, ..FlowPlan::new(routes) },
        }
    }

    /// Tells each flow which flows it waits for, over whatever computations lie between. `flows` are the job's, the first
    /// of which has the number `first`.
    fn wait(&self, job: &Job, numbers: &[Option<FlowId>], flows: &mut [Planned], first: usize) {
        let mut waits: Vec<Wait> = vec![Wait::default(); job.pieces().len()];
        for &i in job.order() {
            let mut wait = Wait::default();
            for &b in &job.pieces()[i].after {
                match (numbers[b], job.pieces()[b].work) {
                    (Some(flow), _) => {
                        wait.flows.entry(flow).or_default();
                    }
                    (None, Work::Compute { ns }) => wait.also(&waits[b], ns),
                    (None, Work::Transfer { .. }) => {}
                }
            }
            if let Some(flow) = numbers[i].and_then(|f| flows.get_mut(f as usize - first)) {
                flow.after = wait.flows.keys().copied().collect();
                flow.delays_ns = wait.flows.values().copied().collect();
                flow.earliest_ns = self.start_ns.saturating_add(wait.from_start_ns);
                if flow.after.is_empty() {
                    flow.plan.start_ns = flow.earliest_ns.saturating_add(flow.plan.start_ns);
                }
            }
            waits[i] = wait;
        }
    }
}

/// The set of jobs called `name`.
fn builtin(name: &str) -> Result<Value, Fault> {
    if name != "tpch" {
        let what = format!("there is no set of jobs {}", quoted(name));
        return Err(Fault::new("", what, "take \"tpch\", or list the jobs"));
    }
    let read: Result<Value, _> = toml::from_str(include_str!("tpch.toml"));
    let broken = || Fault::new("", "the built-in set cannot be read", "report this as a defect");
    read.map_err(|_| broken())?.get("jobs").cloned().ok_or_else(broken)
}

fn list(value: &Value, common: &Common) -> Result<Vec<Described>, Fault> {
    let mut number = 0;
    let jobs = each(value, |v| {
        number += 1;
        described(v, common, number - 1)
    })?;
    if jobs.is_empty() {
        return Err(Fault::new("", "there are no jobs", "list at least one"));
    }
    let mut seen = BTreeSet::new();
    for (k, job) in jobs.iter().enumerate() {
        if !seen.insert(&job.id) {
            let what = format!("another job is called {}", quoted(&job.id));
            return Err(Fault::new(format!("[{k}].id"), what, "give every job an id of its own"));
        }
    }
    Ok(jobs)
}

/// `"critical-path"`, `{kind = "critical-path", ratio = 3}` or `{callable = "mine"}`.
fn who(value: &Value) -> Result<Who, Fault> {
    match value.get("callable") {
        None => policies::read(value).map(Who::Known),
        Some(name) => {
            let mut section = Section::of(value)?;
            let name = section.opt("callable", |_| text(name).map(str::to_string));
            section.all(name.map(Who::Callable))
        }
    }
}

fn positive_look(value: &Value) -> Result<Ns, Fault> {
    match super::positive_ns(value)? {
        ns if ns >= 1000 => Ok(ns),
        ns => Err(Fault::new("", format!("looks are {ns} ns apart"), "give at least 1us")),
    }
}

fn described(value: &Value, common: &Common, number: u64) -> Result<Described, Fault> {
    let mut section = Section::of(value)?;
    let id = section.opt("id", name).unwrap_or_else(|| format!("job{number}"));
    let start_ns = section.opt("start", ns_from_json).unwrap_or(0);
    let who = section.opt("policy", who).unwrap_or_else(|| common.who.clone());
    let budget = section.opt("budget", |v| between(v, 0.0, false, 1e12));
    let every_ns = section.opt("every", positive_look).or(common.every_ns);
    let pieces = pieces(&mut section, common.compute);
    let pieces = section.keep(pieces);
    let start_ns = start_ns.saturating_add(common.spacing_ns.saturating_mul(number));
    let job = pieces.map(|(mut flows, tasks)| {
        flows.iter_mut().for_each(|flow| flow.size_bytes = common.size_bytes.unwrap_or(flow.size_bytes));
        let (flows, tasks) = spread(&flows, &tasks, common.width);
        Described { id, start_ns, who, budget, every_ns, flows, tasks }
    });
    section.all(job)
}

/// A name that can stand in `job/flow`.
fn name(value: &Value) -> Result<String, Fault> {
    match text(value)? {
        "" => Err(Fault::new("", "the name is empty", "give it a letter or more")),
        name if name.contains('/') => {
            Err(Fault::new("", format!("{} has a slash", quoted(name)), "leave slashes out of names"))
        }
        name => Ok(name.to_string()),
    }
}

/// A transfer or a task before names are looked up.
struct Raw {
    id: String,
    after: Vec<String>,
    ends: [String; 2],
    host: Option<String>,
    size_bytes: u64,
    time_ns: Ns,
}

fn raw_flow(value: &Value) -> Result<Raw, Fault> {
    let mut section = Section::of(value)?;
    let mend = "name a host, or a task of the job";
    let raw = Raw {
        id: section.need("id", "give it a name", String::new(), name),
        ends: ["src", "dst"].map(|key| section.need(key, mend, String::new(), |v| text(v).map(str::to_string))),
        size_bytes: section.need("size", "give its bytes, such as \"10MB\"", 1, positive_bytes),
        time_ns: section.opt("start", ns_from_json).unwrap_or(0),
        after: section.opt("after", names).unwrap_or_default(),
        host: None,
    };
    if section.is_sound() && raw.ends[0] == raw.ends[1] {
        section.note(Fault::new("dst", "source and destination are the same", "name two hosts or tasks"));
    }
    section.end(Ok(raw))
}

fn raw_task(value: &Value) -> Result<Raw, Fault> {
    let mut section = Section::of(value)?;
    let raw = Raw {
        id: section.need("id", "give it a name", String::new(), name),
        ends: Default::default(),
        size_bytes: 0,
        time_ns: section.opt("time", ns_from_json).unwrap_or(0),
        after: section.opt("after", names).unwrap_or_default(),
        host: section.opt("host", |v| text(v).map(str::to_string)),
    };
    section.end(Ok(raw))
}

fn names(value: &Value) -> Result<Vec<String>, Fault> {
    each(value, |v| text(v).map(str::to_string))
}

/// The keys `flows` and `tasks`, with names looked up.
fn pieces(section: &mut Section, compute: f64) -> Result<(Vec<Transfer>, Vec<Task>), Fault> {
    let flows = section.need("flows", "list the job's flows", Vec::new(), |v| each(v, raw_flow));
    let tasks = section.opt("tasks", |v| each(v, raw_task)).unwrap_or_default();
    if !section.is_sound() {
        return Ok((Vec::new(), Vec::new()));
    }
    if flows.is_empty() {
        return Err(Fault::new("flows", "the job has no flow", "list at least one"));
    }
    let place = |i: usize| match i.checked_sub(flows.len()) {
        None => format!("flows[{i}]"),
        Some(t) => format!("tasks[{t}]"),
    };
    let all: Vec<&Raw> = flows.iter().chain(&tasks).collect();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for (i, raw) in all.iter().enumerate() {
        if let Some(first) = known.insert(&raw.id, i) {
            let what = format!("{} has the id {} already", place(first), quoted(&raw.id));
            let mend = "give every flow and task of a job an id of its own";
            return Err(Fault::new(format!("{}.id", place(i)), what, mend));
        }
    }
    let mut after = Vec::with_capacity(all.len());
    for (i, raw) in all.iter().enumerate() {
        let find = |(k, wanted): (usize, &String)| {
            let missing = || {
                let ids: Vec<&str> = known.keys().copied().collect();
                unknown_name(wanted, "flow or task", &ids).below(&format!("{}.after[{k}]", place(i)))
            };
            known.get(wanted.as_str()).copied().ok_or_else(missing)
        };
        after.push(raw.after.iter().enumerate().map(find).collect::<Result<Vec<usize>, Fault>>()?);
    }
    let end = |name: &String| match known.get(name.as_str()).and_then(|&i| i.checked_sub(flows.len())) {
        Some(task) => End::Task(task),
        None => End::Host(name.clone()),
    };
    let transfer = |(raw, after): (&Raw, &Vec<usize>)| Transfer {
        id: raw.id.clone(),
        ends: raw.ends.each_ref().map(end),
        size_bytes: raw.size_bytes,
        start_ns: raw.time_ns,
        after: after.clone(),
    };
    let task = |(raw, after): (&Raw, &Vec<usize>)| Task {
        id: raw.id.clone(),
        host: raw.host.clone(),
        time_ns: (raw.time_ns as f64 * compute) as Ns,
        after: after.clone(),
    };
    let made = (
        flows.iter().zip(&after).map(transfer).collect::<Vec<_>>(),
        tasks.iter().zip(&after[flows.len()..]).map(task).collect::<Vec<_>>(),
    );
    check_circles(&made.0, &made.1, &all, &place)?;
    Ok(made)
}

/// Splits every task into parts, each of which does as much and may be on another host. A transfer between two tasks is
/// shared out evenly over their parts, each with each.
fn spread(flows: &[Transfer], tasks: &[Task], width: usize) -> (Vec<Transfer>, Vec<Task>) {
    if width == 1 {
        return (flows.to_vec(), tasks.to_vec());
    }
    let parts = |end: &End| match end {
        End::Task(t) => (0..width).map(|k| End::Task(t * width + k)).collect(),
        host @ End::Host(_) => vec![host.clone()],
    };
    let (mut split, mut of_piece) = (Vec::new(), Vec::with_capacity(flows.len() + tasks.len()));
    for flow in flows {
        let (from, to) = (parts(&flow.ends[0]), parts(&flow.ends[1]));
        let (count, first) = ((from.len() * to.len()) as u64, split.len());
        let ends = from.iter().flat_map(|a| to.iter().map(move |b| [a.clone(), b.clone()]));
        split.extend(ends.enumerate().map(|(k, ends)| Transfer {
            id: format!("{}.{k}", flow.id),
            ends,
            size_bytes: (flow.size_bytes / count + u64::from((k as u64) < flow.size_bytes % count)).max(1),
            ..flow.clone()
        }));
        of_piece.push(first..split.len());
    }
    let first_task = split.len();
    of_piece.extend((0..tasks.len()).map(|t| first_task + t * width..first_task + (t + 1) * width));
    let after = |pieces: &[usize]| pieces.iter().flat_map(|&i| of_piece[i].clone()).collect::<Vec<_>>();
    split.iter_mut().for_each(|flow| flow.after = after(&flow.after));
    let part =
        |task: &Task, k: usize| Task { id: format!("{}.{k}", task.id), after: after(&task.after), ..task.clone() };
    let tasks = tasks.iter().flat_map(|task| (0..width).map(move |k| (task, k))).map(|(task, k)| part(task, k));
    (split, tasks.collect())
}

fn check_circles(
    flows: &[Transfer],
    tasks: &[Task],
    all: &[&Raw],
    place: &dyn Fn(usize) -> String,
) -> Result<(), Fault> {
    let job = Described {
        id: String::new(),
        start_ns: 0,
        who: Who::Known(policies::Choice::default()),
        budget: None,
        every_ns: None,
        flows: flows.to_vec(),
        tasks: tasks.to_vec(),
    };
    let piece = |after: Vec<usize>| Piece { work: Work::Compute { ns: 0 }, after };
    let Err(circle) = Job::new(job.after().into_iter().map(piece).collect()) else { return Ok(()) };
    let names: Vec<&str> = circle.iter().map(|&i| all[i].id.as_str()).collect();
    let what = format!("flows and tasks wait for each other in a circle: {}", names.join(" after "));
    Err(Fault::new(place(circle[0]), what, "let one of them wait for nobody"))
}
