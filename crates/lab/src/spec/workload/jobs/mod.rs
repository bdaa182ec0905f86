//! Jobs of transfers and tasks (computations) with dependencies, and a policy that sets the weights of a job's
//! transfers.

mod coflows;
mod placing;
mod reading;
mod waiting;

use super::{Common, ExpectedFlows, FlowBuilder, Planned, Workload, WorkloadInfo, host};
use crate::spec::topology::Topology;
use std::collections::BTreeMap;
use std::sync::Arc;
use subak_core::backend::PacketSizes;
use subak_core::quantity::quoted;
use subak_core::{FlowId, IdVec, InputError, Ns};
use subak_jobs::policies::{self, Looks};
use subak_jobs::{Job, WeightPolicy};

pub(super) const ENTRY: WorkloadInfo = WorkloadInfo {
    name: "jobs",
    about: "jobs of flows and tasks that wait for each other, with policies that set their weights: see \
            [applications](applications.md)",
    keys: reading::KEYS,
    common: Common::None,
    read: |section, files| Ok(Some(Arc::new(reading::jobs(section, files)))),
};

/// The workload `jobs`.
#[derive(Debug)]
pub struct Jobs {
    jobs: Vec<Described>,
    /// Number of endless background flows that each host sends, outside any job.
    background: usize,
    /// Keys of the section that the spec sets.
    given: Vec<&'static str>,
}

/// Policy that sets the weights of a job's transfers.
#[derive(Debug, Clone, PartialEq)]
pub enum WeightSource {
    /// A built-in policy.
    Known(policies::Choice),
    /// A function that the caller registered under this name.
    Callable(String),
}

/// Values in the section that apply to all jobs.
struct CommonKeys {
    who: WeightSource,
    every_ns: Option<Ns>,
    compute: f64,
    spacing_ns: Ns,
    /// Size of every transfer, bytes, which overrides the sizes in the jobs.
    size_bytes: Option<u64>,
    /// Number of parts into which every task is split.
    width: usize,
}

/// A job of the spec.
#[derive(Debug, Clone, PartialEq)]
struct Described {
    id: String,
    start_ns: Ns,
    who: WeightSource,
    budget: Option<f64>,
    every_ns: Option<Ns>,
    flows: Vec<Transfer>,
    tasks: Vec<Task>,
    own: Own,
}

/// Keys that a job of the spec sets itself.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Own {
    policy: bool,
    every: bool,
    /// Whether any task takes time.
    time: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct Transfer {
    id: String,
    ends: [TransferEnd; 2],
    size_bytes: u64,
    start_ns: Ns,
    /// Indices of the transfers and tasks that must end first. Transfers are counted first, then tasks.
    after: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq)]
struct Task {
    id: String,
    host: Option<String>,
    time_ns: Ns,
    after: Vec<usize>,
}

/// Source or destination of a transfer.
#[derive(Debug, Clone, PartialEq)]
enum TransferEnd {
    Host(String),
    /// A host by its number in the network.
    Nth(usize),
    Task(usize),
}

/// A job whose tasks are placed on hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// Name of the job.
    pub id: String,
    /// Start time, ns.
    pub start_ns: Ns,
    /// Policy that sets the weights of the job's transfers.
    pub who: WeightSource,
    /// Upper bound on the sum of the weights of the job's running transfers.
    pub budget: Option<f64>,
    /// Interval between samples of the job's progress, ns.
    pub every_ns: Option<Ns>,
    /// Transfers and tasks of the job. A transfer within a host becomes a computation of duration 0.
    pub job: Job,
    /// Names of the transfers and tasks.
    pub names: Vec<String>,
    /// Flow of each transfer that crosses the network; `None` for other transfers and for tasks.
    pub flows: Vec<Option<FlowId>>,
}

/// A transfer of a collective, between two of its ranks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub id: String,
    pub from: usize,
    pub to: usize,
    pub size_bytes: u64,
    /// Indices of the steps that must end first.
    pub after: Vec<usize>,
}

impl Jobs {
    /// Jobs of the same steps between `hosts`, each with its name and start, ns.
    pub(super) fn of_steps(jobs: impl Iterator<Item = (String, Ns)>, hosts: &[String], steps: &[Step]) -> Jobs {
        let transfer = |step: &Step| Transfer {
            id: step.id.clone(),
            ends: [step.from, step.to].map(|rank| TransferEnd::Host(hosts[rank].clone())),
            size_bytes: step.size_bytes,
            start_ns: 0,
            after: step.after.clone(),
        };
        let flows: Vec<Transfer> = steps.iter().map(transfer).collect();
        let described = |(id, start_ns)| Described {
            id,
            start_ns,
            who: WeightSource::Known(policies::Choice::default()),
            budget: None,
            every_ns: None,
            flows: flows.clone(),
            tasks: Vec::new(),
            own: Own::default(),
        };
        Jobs { jobs: jobs.map(described).collect(), background: 0, given: Vec::new() }
    }

    pub(super) fn callables(&self) -> impl Iterator<Item = &str> {
        self.jobs.iter().filter_map(|job| match &job.who {
            WeightSource::Callable(name) => Some(name.as_str()),
            WeightSource::Known(_) => None,
        })
    }

    /// Keys of the section without effect, and keys of jobs, each with the reason.
    fn unused(&self, duration_ns: Ns) -> Vec<(String, &'static str)> {
        let all = |is: fn(&Described) -> bool| self.jobs.iter().all(is);
        let of_section = [
            ("width", all(|job| job.tasks.is_empty()), "no job has a task"),
            ("compute", all(|job| !job.own.time), "no task takes time"),
            ("spacing", self.jobs.len() == 1, "there is only one job"),
            ("policy", all(|job| job.own.policy), "each job has a policy of its own"),
            ("every", all(|job| job.own.every), "each job has its own"),
        ];
        let of_section = of_section.into_iter().filter(|(key, is_idle, _)| *is_idle && self.given.contains(key));
        let mut unused: Vec<_> = of_section.map(|(key, _, why)| (key.to_string(), why)).collect();
        let of_jobs: Vec<Option<&'static str>> = self.jobs.iter().map(|job| job.unused_every(duration_ns)).collect();
        let common = of_jobs.iter().zip(&self.jobs).filter(|(_, job)| !job.own.every).map(|(why, _)| *why);
        if let Some(Some(why)) = common.reduce(|first, next| first.and(next))
            && self.given.contains(&"every")
        {
            unused.push(("every".to_string(), why));
        }
        for (k, (job, why)) in self.jobs.iter().zip(of_jobs).enumerate() {
            if let Some(why) = why.filter(|_| job.own.every) {
                unused.push((format!("jobs[{k}].every"), why));
            }
            if job.lacks_looks() {
                let key = if job.own.policy { format!("jobs[{k}].policy") } else { "policy".to_string() };
                unused.push((key, "the policy acts at looks, and there is none; give every"));
            }
        }
        unused
    }

    /// The jobs with their tasks placed on hosts. A task without a host in the spec is placed at random by `seed`.
    pub(super) fn placed(
        &self,
        topology: &Topology,
        seed: u64,
        packet: PacketSizes,
    ) -> Result<Vec<Placed>, InputError> {
        Ok(self.all(&mut FlowBuilder::new(topology, seed, packet, &[], 0))?.0)
    }

    fn all(&self, builder: &mut FlowBuilder) -> Result<(Vec<Placed>, IdVec<FlowId, Planned>), InputError> {
        let (mut placed, mut planned) = (Vec::with_capacity(self.jobs.len()), IdVec::new());
        for (k, job) in self.jobs.iter().enumerate() {
            let made = job.place(k as u64, builder, &mut planned);
            placed.push(made.map_err(|e| e.below(&format!("jobs[{k}]")))?);
        }
        Ok((placed, planned))
    }
}

impl Described {
    /// Why `every` has no effect on the job, if it has one and it does not.
    fn unused_every(&self, duration_ns: Ns) -> Option<&'static str> {
        let every_ns = self.every_ns?;
        if matches!(&self.who, WeightSource::Known(choice) if choice.looks() == Looks::Unread) {
            return Some("the policy gives the same weights at each look");
        }
        let why = "the first look is not before the end of run.duration; give a shorter one";
        (self.start_ns.saturating_add(every_ns) >= duration_ns).then_some(why)
    }

    /// Whether the job's policy acts at looks alone, and the spec asks for none.
    fn lacks_looks(&self) -> bool {
        let needs = matches!(&self.who, WeightSource::Known(choice) if choice.looks() == Looks::Needed);
        needs && self.every_ns.is_none()
    }
}

impl Workload for Jobs {
    fn has_sizes(&self) -> bool {
        self.background == 0
    }
    fn unread(&self, duration_ns: Ns) -> Vec<(String, &'static str)> {
        self.unused(duration_ns)
    }
    fn settles(&self) -> bool {
        false
    }
    fn jobs(&self) -> Option<&Jobs> {
        Some(self)
    }
    /// Whether any weight may differ from 1.
    fn has_weights(&self) -> bool {
        let even = WeightSource::Known(policies::Choice::default());
        self.jobs.iter().any(|job| job.who != even || job.budget.is_some())
    }
    /// An error for unknown hosts, and for jobs that start after the run.
    fn check(&self, topology: &Topology, duration_ns: Ns) -> Result<(), InputError> {
        let ports =
            self.jobs.iter().flat_map(|job| &job.flows).flat_map(|flow| &flow.ends).filter_map(|end| match end {
                TransferEnd::Nth(port) => Some(port + 1),
                _ => None,
            });
        let (ports, hosts) = (ports.max().unwrap_or(0), topology.hosts().len());
        if ports > hosts {
            let what = format!("the coflows use {ports} ports, and the network has {hosts} hosts");
            return Err(InputError::new("jobs", what, format!("give the network {ports} hosts or more")));
        }
        for (k, job) in self.jobs.iter().enumerate() {
            let at = |e: InputError| e.below(&format!("jobs[{k}]"));
            if job.start_ns >= duration_ns {
                let what = format!("job {} starts after the end of the run", quoted(&job.id));
                return Err(at(InputError::new("start", what, "let it start sooner, or give a longer run.duration")));
            }
            for (t, task) in job.tasks.iter().enumerate() {
                let found = task.host.as_ref().map_or(Ok(()), |name| host(topology, name).map(drop));
                found.map_err(|e| at(e.below(&format!("tasks[{t}].host"))))?;
            }
            for (f, flow) in job.flows.iter().enumerate() {
                for (end, key) in flow.ends.iter().zip(["src", "dst"]) {
                    if let TransferEnd::Host(name) = end {
                        host(topology, name).map_err(|e| at(e.below(&format!("flows[{f}].{key}"))))?;
                    }
                }
            }
        }
        Ok(())
    }
    fn expected(&self, topology: &Topology, packet: PacketSizes, duration_ns: Ns) -> ExpectedFlows {
        let own = self.jobs.iter().map(|j| j.flows.len()).sum::<usize>();
        let flows = (own + self.background * topology.hosts().len()) as f64;
        let capacity_bps: f64 = topology.hosts().iter().map(|&h| topology.access_bps(h)).sum();
        let others = if self.background > 0 { capacity_bps * duration_ns as f64 / 8e9 } else { 0.0 };
        let sizes = self.jobs.iter().flat_map(|j| &j.flows).map(|f| packet.wire_bytes(f.size_bytes) as f64);
        ExpectedFlows { flows, live: flows, wire_bytes: sizes.sum::<f64>() + others }
    }
    fn flows(&self, builder: &mut FlowBuilder) -> Result<(), InputError> {
        builder.flows = self.all(builder).map_err(|e| e.below("workload"))?.1;
        let hosts = builder.hosts.clone();
        for (h, &src) in hosts.iter().enumerate() {
            // Each host is the destination of as many background flows as it sends.
            for k in 0..self.background {
                builder.add(src, hosts[(h + 1 + k % (hosts.len() - 1)) % hosts.len()], 0, None, 1)?;
            }
        }
        Ok(())
    }
}

/// Weight policies of the caller, by their names in the spec. Each entry is a function that creates the policy of
/// one job.
pub type Policies = BTreeMap<String, Box<dyn Fn(&Placed) -> Box<dyn WeightPolicy> + Send + Sync>>;

/// Error for a policy of the spec that the caller did not supply.
pub(crate) fn no_callable(name: &str) -> InputError {
    let what = format!("the policy \"{name}\" is a callable that was not given");
    let hint = format!("run it from Python: subak.run(spec, out, policies={{\"{name}\": function}})");
    InputError::new("workload.policy", what, hint)
}
