//! Reads the jobs of a spec.

use super::{CommonKeys, Described, Jobs, Own, Task, Transfer, TransferEnd, WeightSource, coflows};
use crate::files::Beside;
use crate::spec::backends::MOST_NS;
use crate::spec::topology::unknown_name;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use subak_core::keys::each;
use subak_core::keys::{Key, Low, ValueType, table};
use subak_core::quantity::{ns_from_json, quoted};
use subak_core::section::Section;
use subak_core::{InputError, Ns};
use subak_jobs::{Job, Piece, Work, policies};

/// Largest number of parts of a task. A transfer between two tasks has the square of this number of flows.
const MOST_PARTS: u64 = 64;

const POLICY: Key =
    Key::open("policy", ValueType::Other("policy", policy_schema), "even", "policy that sets the weights");
const EVERY: Key = Key::open(
    "every",
    ValueType::Span(1000, MOST_NS),
    "only when a flow ends",
    "time between two calls of the policy while flows run",
);

pub(super) const KEYS: &[Key] = &[
    Key::required(
        "jobs",
        ValueType::Either(&[
            ValueType::Word(&["tpch"]),
            ValueType::List(&ValueType::Table(JOB)),
            ValueType::Table(coflows::KEYS),
        ]),
        "a list of jobs, the name of a set: \"tpch\", or a file of coflows: `{file = \"FB2010-1Hr-150-0.txt\", first = 40}`",
    ),
    POLICY,
    EVERY,
    Key::new("spacing", ValueType::Time, "0", "time between the starts of two jobs"),
    Key::new(
        "compute",
        ValueType::Number(Low::From(0.0), 1e9),
        "1",
        "factor by which the times of tasks are multiplied",
    ),
    Key::open("size", ValueType::Size, "its own", "size of every transfer, in place of its own"),
    Key::new("width", ValueType::Whole(1, MOST_PARTS), "1", "number of parallel parts that every task is split into"),
    Key::new(
        "background",
        ValueType::Whole(0, MOST_PARTS),
        "0",
        "number of endless background flows that each host sends, outside of any job",
    ),
];

const JOB: &[Key] = &[
    Key::open("id", ValueType::Text, "job0, job1, ...", "its name"),
    Key::new("start", ValueType::Time, "0", "start of the job"),
    POLICY,
    Key::open(
        "budget",
        ValueType::Number(Low::Above(0.0), 1e12),
        "none",
        "maximum sum of the weights of the job's running transfers",
    ),
    EVERY,
    Key::required("flows", ValueType::List(&ValueType::Table(FLOW)), "the job's flows"),
    Key::open("tasks", ValueType::List(&ValueType::Table(TASK)), "none", "the job's computations"),
];

const AFTER: Key = Key::open(
    "after",
    ValueType::List(&ValueType::Text),
    "none",
    "names of flows and tasks that must end before this starts",
);

const FLOW: &[Key] = &[
    Key::required("id", ValueType::Text, "name, unique within the job"),
    Key::required("src", ValueType::Text, "a host, or a task of the job"),
    Key::required("dst", ValueType::Text, "a host, or a task of the job"),
    Key::required("size", ValueType::Size, "bytes to send, such as \"10MB\""),
    Key::new("start", ValueType::Time, "0", "delay after its dependencies have ended"),
    AFTER,
];

const TASK: &[Key] = &[
    Key::required("id", ValueType::Text, "name, unique within the job"),
    Key::open("host", ValueType::Text, "drawn at random", "host that runs the task"),
    Key::new("time", ValueType::Time, "0", "duration of the computation"),
    AFTER,
];

const CALLABLE: &[Key] = &[Key::required("callable", ValueType::Text, "the name of a callable of the run")];

/// JSON Schema of a policy: a built-in policy, by name or with parameters, or a function of the caller.
fn policy_schema() -> Value {
    let kind = |about: &policies::About| {
        let mut schema = table(about.params);
        schema["properties"]["kind"] = json!({"const": about.name});
        schema["required"] = json!(["kind"]);
        schema
    };
    let mut some = vec![json!({"enum": policies::NAMES}), table(CALLABLE)];
    some.extend(policies::ABOUT.iter().map(kind));
    json!({"anyOf": some})
}

/// Reads the jobs of a spec.
pub(super) fn jobs(section: &mut Section, files: &Beside) -> Jobs {
    let common = CommonKeys {
        who: section.nested("policy", who).unwrap_or(WeightSource::Known(policies::Choice::default())),
        every_ns: section.given("every"),
        compute: section.take("compute"),
        spacing_ns: section.take("spacing"),
        size_bytes: section.given("size"),
        width: section.take("width"),
    };
    let read = |v: &Value| match v {
        Value::String(name) => builtin(name).and_then(|v| list(&v, &common)),
        file @ Value::Object(_) => coflows::read(file, &common, files),
        list_of => list(list_of, &common),
    };
    let background = section.take("background");
    let keys = ["width", "compute", "spacing", "policy", "every"];
    let given = keys.into_iter().filter(|&key| section.get(key).is_some()).collect();
    Jobs { jobs: section.nested("jobs", read).unwrap_or_default(), background, given }
}

/// The published set of jobs called `name`.
fn builtin(name: &str) -> Result<Value, InputError> {
    if name != "tpch" {
        let what = format!("there is no set of jobs {}", quoted(name));
        return Err(InputError::new("", what, "take \"tpch\", or list the jobs"));
    }
    let read: Result<Value, _> = toml::from_str(include_str!("tpch.toml"));
    let broken = || InputError::new("", "the built-in set cannot be read", "report this as a defect");
    read.map_err(|_| broken())?.get("jobs").cloned().ok_or_else(broken)
}

fn list(value: &Value, common: &CommonKeys) -> Result<Vec<Described>, InputError> {
    let mut number = 0;
    let jobs = each(value, |v| {
        number += 1;
        described(v, common, number - 1)
    })?;
    if jobs.is_empty() {
        return Err(InputError::new("", "there are no jobs", "list at least one"));
    }
    let mut seen = BTreeSet::new();
    for (k, job) in jobs.iter().enumerate() {
        if !seen.insert(&job.id) {
            let what = format!("another job is called {}", quoted(&job.id));
            return Err(InputError::new(format!("[{k}].id"), what, "give every job an id of its own"));
        }
    }
    Ok(jobs)
}

/// Parses `"critical-path"`, `{kind = "critical-path", ratio = 3}` or `{callable = "mine"}`.
fn who(value: &Value) -> Result<WeightSource, InputError> {
    match value.get("callable") {
        None => policies::read(value).map(WeightSource::Known),
        Some(_) => {
            let mut section = Section::of(value, CALLABLE)?;
            let name = section.given("callable");
            section.all(name.map(WeightSource::Callable))
        }
    }
}

fn described(value: &Value, common: &CommonKeys, number: u64) -> Result<Described, InputError> {
    let mut section = Section::of(value, JOB)?;
    let id = section.convert("id", name).unwrap_or_else(|| format!("job{number}"));
    let start_ns: Ns = section.take("start");
    let who = section.nested("policy", who).unwrap_or_else(|| common.who.clone());
    let budget = section.given("budget");
    let every_ns = section.given("every").or(common.every_ns);
    let pieces = pieces(&mut section, common.compute);
    let pieces = section.keep(pieces);
    let takes_time = |task: &Value| task.get("time").is_some_and(|time| ns_from_json(time) != Ok(0));
    let own = Own {
        policy: value.get("policy").is_some(),
        every: value.get("every").is_some(),
        time: value.get("tasks").and_then(Value::as_array).is_some_and(|tasks| tasks.iter().any(takes_time)),
    };
    let start_ns = start_ns.saturating_add(common.spacing_ns.saturating_mul(number));
    let job = pieces.map(|(mut flows, tasks)| {
        flows.iter_mut().for_each(|flow| flow.size_bytes = common.size_bytes.unwrap_or(flow.size_bytes));
        let (flows, tasks) = spread(&flows, &tasks, common.width);
        Described { id, start_ns, who, budget, every_ns, flows, tasks, own }
    });
    section.all(job)
}

/// Reads a name: not empty and without "/", since flows are named `job/flow`.
fn name(name: String) -> Result<String, InputError> {
    match name.as_str() {
        "" => Err(InputError::new("", "the name is empty", "give it a letter or more")),
        given if given.contains('/') => {
            Err(InputError::new("", format!("{} has a slash", quoted(given)), "leave slashes out of names"))
        }
        _ => Ok(name),
    }
}

/// A transfer or a task as written: other transfers, tasks and hosts are names.
struct Raw {
    id: String,
    after: Vec<String>,
    ends: [String; 2],
    host: Option<String>,
    size_bytes: u64,
    time_ns: Ns,
}

fn raw_flow(value: &Value) -> Result<Raw, InputError> {
    let mut section = Section::of(value, FLOW)?;
    let raw = Raw {
        id: section.convert("id", name).unwrap_or_default(),
        ends: ["src", "dst"].map(|key| section.take(key)),
        size_bytes: section.take("size"),
        time_ns: section.take("start"),
        after: section.given("after").unwrap_or_default(),
        host: None,
    };
    if section.is_sound() && raw.ends[0] == raw.ends[1] {
        section.note(InputError::new("dst", "source and destination are the same", "name two hosts or tasks"));
    }
    section.end(Ok(raw))
}

fn raw_task(value: &Value) -> Result<Raw, InputError> {
    let mut section = Section::of(value, TASK)?;
    let raw = Raw {
        id: section.convert("id", name).unwrap_or_default(),
        ends: Default::default(),
        size_bytes: 0,
        time_ns: section.take("time"),
        after: section.given("after").unwrap_or_default(),
        host: section.given("host"),
    };
    section.end(Ok(raw))
}

/// Reads the keys `flows` and `tasks` and resolves names.
fn pieces(section: &mut Section, compute: f64) -> Result<(Vec<Transfer>, Vec<Task>), InputError> {
    let flows = section.nested("flows", |v| each(v, raw_flow)).unwrap_or_default();
    let tasks = section.nested("tasks", |v| each(v, raw_task)).unwrap_or_default();
    if !section.is_sound() {
        return Ok((Vec::new(), Vec::new()));
    }
    if flows.is_empty() {
        return Err(InputError::new("flows", "the job has no flow", "list at least one"));
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
            let hint = "give every flow and task of a job an id of its own";
            return Err(InputError::new(format!("{}.id", place(i)), what, hint));
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
        after.push(raw.after.iter().enumerate().map(find).collect::<Result<Vec<usize>, InputError>>()?);
    }
    let end = |name: &String| match known.get(name.as_str()).and_then(|&i| i.checked_sub(flows.len())) {
        Some(task) => TransferEnd::Task(task),
        None => TransferEnd::Host(name.clone()),
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

/// Splits every task into `width` equal parts, which may run on different hosts. A transfer between two tasks is
/// divided evenly over all pairs of their parts.
fn spread(flows: &[Transfer], tasks: &[Task], width: usize) -> (Vec<Transfer>, Vec<Task>) {
    if width == 1 {
        return (flows.to_vec(), tasks.to_vec());
    }
    let parts = |end: &TransferEnd| match end {
        TransferEnd::Task(t) => (0..width).map(|k| TransferEnd::Task(t * width + k)).collect(),
        host @ (TransferEnd::Host(_) | TransferEnd::Nth(_)) => vec![host.clone()],
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
) -> Result<(), InputError> {
    let job = Described {
        id: String::new(),
        start_ns: 0,
        who: WeightSource::Known(policies::Choice::default()),
        budget: None,
        every_ns: None,
        flows: flows.to_vec(),
        tasks: tasks.to_vec(),
        own: Own::default(),
    };
    let piece = |after: Vec<usize>| Piece { work: Work::Compute { ns: 0 }, after };
    let Err(circle) = Job::new(job.after().into_iter().map(piece).collect()) else { return Ok(()) };
    let names: Vec<&str> = circle.iter().map(|&i| all[i].id.as_str()).collect();
    let what = format!("flows and tasks wait for each other in a circle: {}", names.join(" after "));
    Err(InputError::new(place(circle[0]), what, "let one of them wait for nobody"))
}
