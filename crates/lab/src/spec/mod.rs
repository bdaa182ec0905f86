//! Specs: descriptions of simulations, as written and after validation.

pub mod backends;
pub(crate) mod choice;
mod controller;
pub(crate) mod fault;
mod identity;
pub(crate) mod measure;
mod misplaced;
pub(crate) mod outside;
pub(crate) mod packets;
pub(crate) mod policy;
mod renamed;
pub(crate) mod scenario;
mod schemes;
pub mod sweep;
pub mod swept;
pub(crate) mod testbed;
pub(crate) mod topology;
pub mod workload;

use crate::files::{self, Beside};
use crate::spec::backends::Cost;
use crate::spec::outside::{GivenScheme, Loader, NoLoader, Sources};
use crate::spec::packets::Recorded;
use crate::spec::scenario::Scenario;
use crate::spec::topology::Topology;
use crate::spec::workload::jobs::{Policies, no_callable};
use crate::spec::workload::{Planned, path_text};
use choice::SchemeChoice;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use subak_core::document::{Format, parse};
use subak_core::formats::refuse_kind;
use subak_core::keys::{Key, ValueType};
use subak_core::quantity::quoted;
use subak_core::section::Section;
use subak_core::{FlowId, InputError, InputErrors, NodeId, Ns};
use sweep::Axis;

/// The keys of a spec.
const ROOT: &[Key] = &[
    Key::new("schema", ValueType::Whole(1, 1), "1", "the version of this form"),
    Key::new("name", ValueType::Text, "run", "name of the spec"),
    Key::required("network", ValueType::Other("network", any), "the network"),
    Key::open("routing", ValueType::Table(topology::ROUTING), "shortest paths", "selection of paths"),
    Key::required("workload", ValueType::Other("workload", workload::described), "the flows"),
    Key::open("policy", ValueType::Other("policy", any), "max-min", "objective of the allocation"),
    Key::open("measure", ValueType::Table(measure::MEASURE), "FCTs", "measurements"),
    Key::required("run", ValueType::Table(scenario::RUN), "duration and seeds"),
    Key::open("packets", ValueType::Table(scenario::PACKETS), "of Ethernet", "sizes of packets"),
    Key::open("fault", ValueType::List(&ValueType::Other("faults", fault::described)), "none", "injected faults"),
    Key::open("controller", ValueType::Table(controller::KEYS), "none", "place of the controller"),
    Key::open("testbed", ValueType::Table(scenario::TESTBED), "the spec's own rates", "scale of a run on real hosts"),
    Key::required(
        "scheme",
        ValueType::List(&ValueType::Table(schemes::SCHEME)),
        "the schemes, each as [[scheme]] with a name",
    ),
];

fn any() -> Value {
    Value::Object(Map::new())
}

/// Keys and JSON Schema of each section of a spec, for help and for editors. `workload` and `fault` have one entry for
/// each kind.
pub fn described() -> Value {
    let one = |key: &Key| {
        let keys: Vec<Value> = match key.value_type {
            ValueType::Table(keys) => keys.iter().map(Key::described).collect(),
            _ => Vec::new(),
        };
        (key.name.to_string(), json!({"keys": keys, "schema": key.value_type.schema()}))
    };
    Value::Object(ROOT.iter().map(one).collect())
}

/// A spec as written.
#[derive(Debug, Clone)]
pub struct Spec {
    pub(crate) tree: Map<String, Value>,
    /// Original text of a spec in TOML.
    pub(crate) toml: Option<String>,
    /// Source of the files that the spec names.
    pub(crate) beside: Beside,
    /// A note for each key or value with a former name.
    pub(crate) renamed: Vec<String>,
    /// Scheme classes supplied by the caller, by name.
    given: BTreeMap<String, GivenScheme>,
    file: Option<String>,
}

impl Spec {
    /// Reads a spec file: JSON if its name ends in `.json`, otherwise TOML.
    pub fn load(path: &Path) -> Result<Self, InputError> {
        let name = path.display().to_string();
        refuse_kind(&name)?;
        let source = files::read_text(path)?;
        let json = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
        let format = if json { Format::Json } else { Format::Toml };
        let base = path.parent().map(Path::to_path_buf).unwrap_or_default();
        let value = parse(&source, format).map_err(|e| e.in_file(&name))?;
        let mut spec = Spec::from_value(value, base).map_err(|e| e.in_file(&name))?;
        spec.toml = (!json).then_some(source);
        spec.file = Some(name);
        Ok(spec)
    }

    /// Parses the text of a TOML file.
    pub fn from_toml(source: &str) -> Result<Self, InputError> {
        let mut spec = Spec::from_value(parse(source, Format::Toml)?, PathBuf::new())?;
        spec.toml = Some(source.to_string());
        Ok(spec)
    }

    /// A spec from a tree of values; names of files are relative to the folder `base`.
    pub fn from_value(value: Value, base: PathBuf) -> Result<Self, InputError> {
        match value {
            Value::Object(mut tree) => {
                let renamed = renamed::rename(&mut tree)?;
                Ok(Spec { tree, toml: None, beside: Beside::Folder(base), renamed, given: BTreeMap::new(), file: None })
            }
            _ => Err(InputError::new("", "the spec is not a table", "give sections: network, workload, scheme, run")),
        }
    }

    /// The spec with `files`, by their names in the spec, in place of files in a folder.
    #[must_use]
    pub fn with_files(self, files: BTreeMap<String, Vec<u8>>) -> Self {
        Spec { beside: Beside::Brought(files), ..self }
    }

    /// The spec with scheme classes of the caller, by name.
    #[must_use]
    pub fn with_schemes(self, given: BTreeMap<String, GivenScheme>) -> Self {
        Spec { given, ..self }
    }

    /// The spec with `backend` as backend of every scheme; labels in results do not change.
    #[must_use]
    pub fn under_backend(mut self, backend: &str) -> Self {
        for scheme in self.tree.get_mut("scheme").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(scheme) = scheme {
                scheme.insert("backend".to_string(), json!(backend));
                let of = |key: &str| scheme.get(key).and_then(Value::as_str);
                let pair = of("optimizer")
                    .zip(of("transport"))
                    .map(|(optimizer, transport)| format!("{optimizer}/{transport}"));
                if let (None, Some(name)) = (scheme.get("label"), of("name").map(str::to_string).or(pair)) {
                    scheme.insert("label".to_string(), json!(name));
                }
            }
        }
        // The original text no longer matches the spec.
        self.toml = None;
        self
    }

    /// Validates the whole spec; only a valid spec can be run.
    pub fn validate(self) -> Result<ValidSpec, InputError> {
        self.validate_with(&NoLoader)
    }

    /// Same as [`Spec::validate`]; `loader` creates the schemes supplied by the user.
    pub fn validate_with(self, loader: &dyn Loader) -> Result<ValidSpec, InputError> {
        let file = self.file.clone();
        ValidSpec::of(self, loader).map_err(misplaced::hinted).map_err(|e| match file {
            Some(name) => e.in_file(name),
            None => e,
        })
    }
}

/// Description of one trial: sweep point, scheme and seed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trial {
    /// Number of the trial.
    pub trial: usize,
    /// Value of each axis (swept key).
    pub axes: BTreeMap<String, Value>,
    /// Scheme with its parameters.
    pub scheme: SchemeChoice,
    /// Seed of the trial.
    pub seed: u64,
    /// Estimated cost of the trial.
    pub cost: Cost,
}

/// A flow of a trial and its path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowPath {
    /// Number of the flow.
    pub flow: u64,
    /// Name of the flow, if the spec has one.
    pub id: Option<String>,
    /// Name of the source.
    pub src: Option<String>,
    /// Name of the destination.
    pub dst: Option<String>,
    /// Start time, ns; `None` if the flow starts after others end.
    pub start_ns: Option<Ns>,
    /// Path, as in the column `path` of the results.
    pub path: String,
}

/// A valid spec.
#[derive(Debug, Clone)]
pub struct ValidSpec {
    pub(crate) spec: Spec,
    /// The spec's name.
    pub name: String,
    /// Swept keys with their values, without schemes and seeds.
    pub axes: Vec<Axis>,
    /// Schemes that are compared.
    pub schemes: Vec<SchemeChoice>,
    /// Seeds of each scheme at each sweep point.
    pub seeds: Vec<u64>,
    /// SHA-256 of the spec and of the files that it names, in hexadecimal.
    pub hash: String,
    scenarios: Vec<Arc<Scenario>>,
    /// Name and SHA-256 of each file that the spec names.
    files: BTreeMap<String, String>,
}

impl ValidSpec {
    /// Whether functions of the caller set weights; an error if `policies` lacks one of them.
    pub(crate) fn check_callables(&self, policies: &Policies) -> Result<bool, InputError> {
        let mut any = false;
        for name in self.scenarios.iter().flat_map(|scenario| scenario.workload.callables()) {
            any = true;
            if !policies.contains_key(name) {
                return Err(no_callable(name));
            }
        }
        let named: Vec<&str> = self.scenarios.iter().flat_map(|scenario| scenario.workload.callables()).collect();
        if let Some(unused) = policies.keys().find(|name| !named.contains(&name.as_str())) {
            let what = format!("no job of the spec has the policy {{callable = {}}}", quoted(unused));
            let hint = match named.first() {
                Some(first) => format!("call it {}, or leave it away", quoted(first)),
                None => "write workload.policy = {callable = \"NAME\"}, or leave it away".to_string(),
            };
            return Err(InputError::new(format!("policies.{unused}"), what, hint));
        }
        Ok(any)
    }

    fn of(spec: Spec, loader: &dyn Loader) -> Result<Self, InputError> {
        let mut root = Section::over(&spec.tree, ROOT);
        root.take::<u64>("schema");
        let name = root.take("name");
        let policy = root.get("policy");
        let sources = Sources { beside: &spec.beside, given: &spec.given, loader };
        let read = |value: &Value| schemes::schemes(value, policy, &sources);
        let workload = root.get("workload");
        let schemes = root.nested("scheme", read).unwrap_or_default();
        let schemes = root.keep(schemes::beside(schemes, workload)).unwrap_or_default();
        // The other keys of `run` are read with each scenario.
        let run = root.get("run").filter(|run| run.is_object()).cloned().unwrap_or_else(any);
        let seeds = Section::of(&run, scenario::RUN).and_then(|mut run| run.only("seeds", seeds_of));
        let seeds = root.keep(seeds.map_err(|e| e.below("run"))).unwrap_or_default();
        Scenario::SECTIONS.iter().for_each(|&key| {
            root.get(key);
        });
        let zip = Section::of(&run, scenario::RUN).and_then(|mut run| run.only("zip", Ok::<Vec<String>, _>));
        let zip = root.keep(zip.map_err(|e| e.below("run"))).unwrap_or_default();
        let axes = sweep::axes(&spec.tree).and_then(|mut axes| {
            sweep::zip(&mut axes, &zip).map_err(|e| e.below("run.zip"))?;
            Ok((sweep::count(&axes)?, axes))
        });
        let Some((count, axes)) = root.keep(axes) else { return Err(root.faults()) };
        let trials = count.saturating_mul(schemes.len() as u64).saturating_mul(seeds.len() as u64);
        if trials > sweep::MOST_TRIALS {
            let what = format!("the spec has {trials} trials");
            root.note(InputError::new(
                "",
                what,
                format!("at most {} are possible: sweep over less", sweep::MOST_TRIALS),
            ));
            return Err(root.faults());
        }
        let scenarios = scenarios(&spec, &axes, &schemes, count);
        let scenarios = root.keep(scenarios);
        let scenarios = root.all(scenarios)?;
        for scenario in scenarios.iter().filter(|s| s.measure.packets.as_ref().is_some_and(Recorded::names_flows)) {
            seeds.iter().try_for_each(|&seed| scenario.check_recorded(seed))?;
        }
        let (hash, files) = identity::hash(&spec, &schemes)?;
        Ok(ValidSpec { spec, name, axes, schemes, seeds, hash, scenarios, files })
    }

    /// The spec as written, as a tree of values.
    pub fn tree(&self) -> &Map<String, Value> {
        &self.spec.tree
    }

    /// Every scheme of the spec: those of the runs, and those that workloads name.
    pub(crate) fn every_scheme(&self) -> impl Iterator<Item = &SchemeChoice> {
        let named = self.schemes.first().map(|choice| &*choice.named).unwrap_or_default();
        self.schemes.iter().filter(|choice| !choice.is_joint).chain(named)
    }

    /// The number of trials.
    pub fn len(&self) -> usize {
        self.scenarios.len() * self.schemes.len() * self.seeds.len()
    }

    /// An error if there is no trial number `index`.
    pub(crate) fn check_trial(&self, index: usize) -> Result<(), InputError> {
        if index < self.len() {
            return Ok(());
        }
        let hint = format!("the spec has trials 0 to {}", self.len() - 1);
        Err(InputError::new("trial", format!("there is no trial {index}"), hint))
    }

    /// Whether trial `index` runs on a testbed and not in a simulator.
    pub fn is_on_hosts(&self, index: usize) -> bool {
        self.scenario(index).1.backend().is_ok_and(|(backend, _)| backend.is_real())
    }

    /// Always false, since a spec has at least one trial.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every trial, in order.
    pub fn trials(&self) -> Vec<Trial> {
        (0..self.len()).map(|i| self.trial(i)).collect()
    }

    /// The trial with number `index`.
    pub fn trial(&self, index: usize) -> Trial {
        let (scenario, scheme) = self.scenario(index);
        let seed = self.seeds[index % self.seeds.len()];
        let axes = self.axes.iter().zip(&scenario.axis_values).map(|(a, v)| (a.key.clone(), v.clone())).collect();
        Trial { trial: index, axes, scheme: scheme.clone(), seed, cost: scenario.cost(scheme) }
    }

    /// The planned flows of trial `index`, with their paths.
    pub fn paths(&self, index: usize) -> Result<Vec<FlowPath>, InputError> {
        let (scenario, _) = self.scenario(index);
        let seed = self.seeds[index % self.seeds.len()];
        let scenario = scenario.drawn(seed);
        let Scenario { topology, workload, packet, faults, duration_ns, .. } = &*scenario;
        let network = topology.network();
        let name = |n: Option<NodeId>| n.map(|n| network.nodes()[n].name.clone());
        let flows = workload.flows(topology, seed, *packet, faults, *duration_ns)?;
        let one = |(number, flow): (FlowId, &Planned)| FlowPath {
            flow: number.into(),
            id: flow.id.clone(),
            src: name(flow.src),
            dst: name(flow.dst),
            start_ns: flow.after.is_empty().then_some(flow.plan.start_ns),
            path: path_text(&flow.plan.routes, network),
        };
        Ok(flows.iter_enumerated().map(one).collect())
    }

    /// Scenarios of all sweep points, in order.
    pub(crate) fn scenarios(&self) -> &[Arc<Scenario>] {
        &self.scenarios
    }

    /// Scenario and scheme of trial `index`. In the order of trials, seeds vary fastest, then schemes.
    pub(crate) fn scenario(&self, index: usize) -> (&Arc<Scenario>, &SchemeChoice) {
        let scheme = index / self.seeds.len();
        (&self.scenarios[scheme / self.schemes.len()], &self.schemes[scheme % self.schemes.len()])
    }
}

/// Largest number of invalid scenarios whose errors are reported.
const MOST_WRONG: usize = 20;

fn scenarios(
    spec: &Spec,
    axes: &[Axis],
    schemes: &[SchemeChoice],
    count: u64,
) -> Result<Vec<Arc<Scenario>>, InputError> {
    let mut topologies: HashMap<String, Arc<Topology>> = HashMap::new();
    let mut scenarios = Vec::with_capacity(count as usize);
    let bare = sweep::bare(&spec.tree, axes);
    let mut faults = InputErrors::default();
    // An error outside the swept keys occurs in every scenario, so that few scenarios need a report.
    let mut wrong = 0;
    for index in 0..count {
        let choice = sweep::choose(axes, index);
        let fixed = sweep::fix(&bare, axes, &choice);
        let scenario = Scenario::read(&fixed, &spec.beside, &mut topologies)
            .and_then(|scenario| check_schemes(&scenario, schemes).map(|()| scenario))
            .map_err(|e| in_axis(e, axes, &choice));
        let axis_values = axes.iter().zip(&choice).map(|(axis, &k)| axis.values[k].clone()).collect();
        match faults.keep(scenario) {
            Some(scenario) => scenarios.push(Arc::new(Scenario { axis_values, ..scenario })),
            None => wrong += 1,
        }
        if wrong == MOST_WRONG {
            break;
        }
    }
    faults.done().map(|()| scenarios)
}

/// An error for schemes that do not support their own policy, or else the policy of the scenario.
fn check_schemes(scenario: &Scenario, schemes: &[SchemeChoice]) -> Result<(), InputError> {
    let (own, plain): (Vec<_>, Vec<_>) = schemes.iter().cloned().partition(|s| s.own_policy.is_some());
    scenario.check_schemes(&plain)?;
    own.iter().try_for_each(|scheme| {
        let under = scenario.under(scheme);
        let checked = under.workload.check_policy(under.policy);
        checked.and_then(|()| under.check_schemes(std::slice::from_ref(scheme))).map_err(|e| {
            let of_policy = e.place == "policy" || e.place.starts_with("policy.");
            if of_policy { e.below(&format!("scheme[{}]", scheme.place)) } else { e }
        })
    })
}

/// Adds to an error in a swept value the index of that value in the list.
fn in_axis(mut fault: InputError, axes: &[Axis], choice: &[usize]) -> InputError {
    fault.more = fault.more.into_iter().map(|f| in_axis(f, axes, choice)).collect();
    for (axis, k) in axes.iter().zip(choice) {
        if let Some(rest) = fault.place.strip_prefix(axis.key.as_str())
            && (rest.is_empty() || rest.starts_with(['.', '[']))
        {
            // An unknown key is itself invalid, independent of its value.
            if !(rest.is_empty() && fault.what.starts_with("unknown key")) {
                fault.place = format!("{}[{k}]{rest}", axis.key);
            }
            break;
        }
    }
    fault
}

/// The listed seeds, or as many as the number says: 1, 2, 3 and so on.
fn seeds_of(seeds: Value) -> Result<Vec<u64>, InputError> {
    let seeds: Vec<u64> = match seeds {
        Value::Array(list) => list.iter().filter_map(Value::as_u64).collect(),
        number => (1..=number.as_u64().unwrap_or(1)).collect(),
    };
    let mut sorted = seeds.clone();
    sorted.sort_unstable();
    if seeds.is_empty() {
        return Err(InputError::new("", "the list of seeds is empty", "give at least one seed, or a number of seeds"));
    }
    if let Some(twice) = sorted.windows(2).find(|w| w[0] == w[1]) {
        let what = format!("seed {} is listed twice", twice[0]);
        return Err(InputError::new("", what, "list each seed once: a second run with it would only repeat the first"));
    }
    Ok(seeds)
}
