//! Reading of the flows of a case, one by one.

use super::columns::{CaseColumn, FlowColumns, PathColumns};
use super::policy::{FLOW_UTILITY, flow_utility_from_value};
use crate::document::{check_keys, list, nearest, table, text};
use crate::flows::{FlowUtility, Why};
use crate::formats::flows::{in_unit, no_demands};
use crate::keys::{AMOUNT, Key, Low, ValueType, names};
use crate::quantity::{self, quoted, shown};
use crate::route::{Router, Routing, key_of};
use crate::{Flow, Flows, IdVec, InputError, InputErrors, LinkId, Network, NodeId, Policy};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fmt::Write;

const PATH: ValueType = ValueType::List(&ValueType::Text);

/// Keys of a flow.
pub(super) const FLOW: [Key; 12] = [
    Key::open("id", ValueType::Text, "its position, from 0", "unique name"),
    Key::open("path", PATH, "by routing", "links from source to destination, in place of `src` and `dst`"),
    Key::open(
        "paths",
        ValueType::List(&PATH),
        "by routing",
        "several paths, as a list of lists; their rates are pooled",
    ),
    Key::open("src", ValueType::Text, "that of `path`", "source; a seeded hash selects among the shortest paths"),
    Key::open("dst", ValueType::Text, "that of `path`", "destination"),
    Key::new(
        "subflows",
        ValueType::Whole(1, MOST_SUBFLOWS),
        "1",
        "number of paths that the hash selects; their rates are pooled",
    ),
    Key::new("weight", ValueType::Number(Low::Above(0.0), f64::INFINITY), "1", "weight under the policy"),
    Key::open("demand", ValueType::RateOrZero, "no bound", "maximum rate"),
    Key::open("size", ValueType::Size, "none", "bytes to send, for `fct` and `srpt`"),
    Key::open("deadline", ValueType::Time, "none", "time until the deadline, for `edf`"),
    Key::open(
        "bandwidth_function",
        ValueType::List(&ValueType::Pair(&AMOUNT, &ValueType::RateOrZero)),
        "none",
        "`[[fair share, bit/s], ...]`: piecewise linear from `[0, 0]`, non-decreasing, constant after its last point",
    ),
    Key::open("utility", FLOW_UTILITY, "none", "for `utility`: points `[[bit/s, U'], ...]`, or a policy"),
];

/// Largest number of subflows of a flow: their ids are one byte.
const MOST_SUBFLOWS: u64 = 255;

/// Largest number of links over all paths (1 GB of ids).
const MOST_PATH_LINKS: usize = 1 << 28;

fn too_many_path_links() -> InputError {
    let what = format!("the paths up to this flow have more than {MOST_PATH_LINKS} links together");
    InputError::new("", what, "give fewer flows or shorter paths")
}

/// Reads flows and collects them with their errors.
pub(super) struct FlowReader<'a> {
    /// `None` if the network is invalid; flows are then checked only for errors that do not depend on the network.
    network: Option<&'a Network>,
    policy: Policy,
    routing: Routing,
    faults: InputErrors,
    /// Whether a flow has several subflows.
    pools: bool,
    /// Created when the first flow gives source and destination in place of a path.
    router: Option<Router>,
    flows: Flows,
    names: HashMap<Box<str>, u32>,
    /// Reason why the current flow cannot send.
    stranded: Option<Why>,
    /// Error for the first pair without a path; returned if no flow can send.
    unconnected: Option<InputError>,
}

impl<'a> FlowReader<'a> {
    pub fn new(network: Option<&'a Network>, policy: Policy, routing: Routing) -> Self {
        FlowReader {
            network,
            policy,
            routing,
            faults: InputErrors::default(),
            pools: false,
            router: None,
            flows: Flows::new(),
            names: HashMap::new(),
            stranded: None,
            unconnected: None,
        }
    }

    /// Returns the flows read. It is an error if none of them can send, since the input is then probably wrong.
    pub fn finish(self) -> Result<Flows, InputError> {
        let FlowReader { mut faults, flows, unconnected, .. } = self;
        if let (true, Some(first)) = (flows.is_empty(), flows.stranded().first()) {
            let down =
                || InputError::new("path", "each path crosses a link of capacity 0", "name links that have a capacity");
            let fault = unconnected.map_or_else(down, |fault| fault.below("dst"));
            faults.push(fault.below(&format!("flows[{}]", first.place)));
        }
        faults.done().map(|()| flows)
    }

    /// Whether there are flows and each lists its links, so that none needs routing.
    pub fn routes_none(&self) -> bool {
        self.network.is_some() && self.router.is_none() && !self.flows.is_empty()
    }

    /// Whether no flow has several subflows by routing.
    pub fn pools_none(&self) -> bool {
        self.network.is_some() && !self.pools && !self.flows.is_empty()
    }

    /// Reads flow number `i`. Collects its errors, and fails only when there are too many of them.
    pub fn push(&mut self, i: usize, value: &Value) -> Result<(), InputError> {
        let read = self.take(i, value);
        self.faults.keep(read);
        if self.faults.is_full() { std::mem::take(&mut self.faults).done() } else { Ok(()) }
    }

    /// Reads each row of a table. Plain numbers of `demand` are in `unit`.
    pub fn push_columns(&mut self, given: &FlowColumns, unit: Option<&str>) -> Result<(), InputError> {
        if unit.is_some() && given.column("demand").is_none() {
            return Err(no_demands().below("flows"));
        }
        let taken = self.push_plain(given, unit);
        (taken..given.len()).try_for_each(|row| self.push(row, &given.row(row, unit)))
    }

    /// Reads rows of a table on the fast path, up to the first row that is invalid, has no path or several, or lacks
    /// an id although the table has ids. Returns the number of rows read; [`FlowReader::push`] reads the next row and
    /// reports its error.
    fn push_plain(&mut self, given: &FlowColumns, unit: Option<&str>) -> usize {
        let (Some(network), Policy::MaxMin | Policy::AlphaFair { .. }) = (self.network, self.policy) else {
            return 0;
        };
        let Some(columns) = Plain::of(given, network) else { return 0 };
        let (mut path, mut name, mut seen) = (Vec::new(), String::new(), IdVec::filled(0, network.links().len()));
        for row in 0..given.len() {
            name.clear();
            match columns.id {
                None => write!(name, "{row}").expect("text has room"),
                Some(id) => match id.cell(row) {
                    Some(Value::String(id)) if !self.names.contains_key(id.as_str()) => name = id,
                    _ => return row,
                },
            }
            match &columns.ways {
                Ways::Ends { src, dst } => {
                    let (Some(src), Some(dst)) = (src.at(row), dst.at(row)) else { return row };
                    let router = self.router.get_or_insert_with(|| Router::by(network, self.routing));
                    path = match router.path(src, dst, key_of(&name)) {
                        Ok(found) => found,
                        Err(_) if src == dst => return row,
                        Err(why) => {
                            self.unconnected.get_or_insert(why);
                            self.flows.strand(name.clone(), Why::NoPath);
                            if columns.id.is_some() {
                                self.names.insert(name.as_str().into(), row as u32);
                            }
                            continue;
                        }
                    };
                }
                Ways::Path { links, begins } => {
                    path.clear();
                    let cells = begins[row] as usize..begins[row + 1] as usize;
                    path.extend(cells.clone().filter_map(|cell| links.at(cell)));
                    if path.len() < cells.len()
                        || network.check_joined(&path).is_err()
                        || !is_path(&path, &mut seen, row as u32 + 1)
                    {
                        return row;
                    }
                }
            }
            let value = |column: Option<&CaseColumn>| column.and_then(|column| column.cell(row));
            let weighed = value(columns.weight).map_or(Ok(1.0), |value| weight(&value));
            let demand =
                value(columns.demand).map(|value| quantity::rate_bps_from_json(&in_unit(value, unit))).transpose();
            let (Ok(weight), Ok(demand_bps)) = (weighed, demand) else { return row };
            let named = columns.id.is_some() || !self.flows.stranded().is_empty();
            let id = named.then(|| name.clone());
            if self.flows.links().len() + path.len() > MOST_PATH_LINKS
                || self.flows.push_path(&path, weight, demand_bps, id).is_err()
            {
                return row;
            }
            if columns.id.is_some() {
                self.names.insert(name.as_str().into(), row as u32);
            }
        }
        given.len()
    }

    fn take(&mut self, i: usize, value: &Value) -> Result<(), InputError> {
        // A path given as a list of one under "paths" is reported as "path".
        let as_written = |e: InputError| match e.place.strip_prefix("path") {
            Some(inner) if !inner.starts_with('s') && value.get("paths").is_some() => {
                InputError { place: format!("paths[0]{inner}"), ..e }
            }
            _ => e,
        };
        let read = self.read(i, value);
        let read = read.and_then(|flow| match self.network {
            Some(network) => match std::mem::take(&mut self.stranded) {
                Some(why) => {
                    self.flows.strand(flow.id, why);
                    Ok(())
                }
                None => self.flows.push(flow, network).map_err(as_written),
            },
            None => Ok(()),
        });
        let most = if self.flows.links().len() <= MOST_PATH_LINKS { Ok(()) } else { Err(too_many_path_links()) };
        read.and(most).map_err(|e| e.below(&format!("flows[{i}]")))
    }

    fn read(&mut self, i: usize, value: &Value) -> Result<Flow, InputError> {
        let map = table(value, "a flow", "{\"id\": \"f1\", \"path\": [\"l1\"]}")?;
        let mut faults = InputErrors::default();
        faults.keep(check_keys(map, &names(&FLOW)));
        let id = faults.keep(self.id(i, map));
        let paths = faults.keep(match self.network {
            Some(network) => self.paths(network, map, id.as_deref().unwrap_or_default()),
            None => Ok(Vec::new()),
        });
        let flow = Flow {
            paths: paths.unwrap_or_default(),
            weight: faults.keep(read(map, "weight", weight)).flatten().unwrap_or(1.0),
            demand_bps: faults.keep(read(map, "demand", quantity::rate_bps_from_json)).flatten(),
            size_bytes: faults.keep(read(map, "size", quantity::positive_bytes_from_json)).flatten(),
            deadline_s: faults.keep(read(map, "deadline", deadline_from_value)).flatten(),
            bandwidth_function: faults.keep(read(map, "bandwidth_function", bandwidth_function_from_value)).flatten(),
            utility: faults.keep(read(map, "utility", flow_utility_from_value)).flatten(),
            id: id.unwrap_or_default(),
        };
        faults.keep(self.check_policy(&flow, map));
        faults.done().map(|()| flow)
    }

    /// The flow's id: its position in the list if none is given.
    fn id(&mut self, i: usize, map: &Map<String, Value>) -> Result<String, InputError> {
        let id = match map.get("id") {
            Some(id) => text(id, "a flow's id").map_err(|e| e.below("id"))?.to_string(),
            None => i.to_string(),
        };
        match self.names.insert(id.as_str().into(), i as u32) {
            None => Ok(id),
            Some(first) => {
                let what = format!("flows[{first}] has the id {} already", quoted(&id));
                Err(InputError::new("id", what, "give every flow an id of its own"))
            }
        }
    }

    fn paths(
        &mut self,
        network: &'a Network,
        map: &Map<String, Value>,
        id: &str,
    ) -> Result<Vec<Vec<LinkId>>, InputError> {
        let ends = map.contains_key("src") || map.contains_key("dst");
        if let Some(key) = ["subflows"].into_iter().find(|key| map.contains_key(*key) && !ends) {
            return Err(InputError::new(key, "subflows need \"src\" and \"dst\"", "give these, or list the \"paths\""));
        }
        match (map.get("path"), map.get("paths"), ends) {
            (Some(path_given), None, false) => {
                let found = path(network, path_given).map_err(|e| e.below("path"))?;
                Ok(self.carried(vec![found]))
            }
            (None, Some(paths), false) => {
                let found = several(network, paths).map_err(|e| e.below("paths"))?;
                Ok(self.carried(found))
            }
            (None, None, true) => self.routed(network, map, id),
            (None, None, false) => Err(InputError::new(
                "path",
                "the flow has no path",
                "give \"path\" (a list of links), \"paths\", or \"src\" and \"dst\"",
            )),
            (path, ..) => Err(InputError::new(
                if path.is_some() { "path" } else { "paths" },
                "the flow says in two ways where it goes",
                "keep one of \"path\", \"paths\", or \"src\" and \"dst\"",
            )),
        }
    }

    /// The paths without a failed link. A flow that has no other path is stranded.
    fn carried(&mut self, paths: Vec<Option<Vec<LinkId>>>) -> Vec<Vec<LinkId>> {
        let given = paths.len();
        let up: Vec<Vec<LinkId>> = paths.into_iter().flatten().collect();
        if up.is_empty() && given > 0 {
            self.stranded = Some(Why::LinkDown);
        }
        up
    }

    fn routed(
        &mut self,
        network: &'a Network,
        map: &Map<String, Value>,
        id: &str,
    ) -> Result<Vec<Vec<LinkId>>, InputError> {
        let (src, dst) = (end(network, map, "src")?, end(network, map, "dst")?);
        let subflows = read(map, "subflows", subflows)?.unwrap_or(1);
        self.pools |= subflows > 1;
        let router = self.router.get_or_insert_with(|| Router::by(network, self.routing));
        let paths = match subflows {
            1 => router.path(src, dst, key_of(id)).map(|path| vec![path]),
            k => router.k_paths(src, dst, key_of(id), k),
        };
        match paths {
            Err(why) if src != dst => {
                self.unconnected.get_or_insert(why);
                self.stranded = Some(Why::NoPath);
                Ok(Vec::new())
            }
            paths => {
                let paths = paths.map_err(|e| e.below("dst"))?;
                self.flows.count_paths(subflows, paths.len());
                Ok(paths)
            }
        }
    }

    fn check_policy(&self, flow: &Flow, given: &Map<String, Value>) -> Result<(), InputError> {
        let own = match (self.policy, &flow.utility) {
            (Policy::Utility, Some(FlowUtility::Of(own))) => *own,
            (policy, _) => policy,
        };
        let (policy, key, example, has) = match own {
            Policy::Fct { .. } => ("fct", "size", "\"size\": \"1MB\"", flow.size_bytes.is_some()),
            Policy::Srpt { .. } => ("srpt", "size", "\"size\": \"1MB\"", flow.size_bytes.is_some()),
            Policy::Edf { .. } => ("edf", "deadline", "\"deadline\": \"10ms\"", flow.deadline_s.is_some()),
            Policy::BandwidthFunction { .. } => {
                let example = "\"bandwidth_function\": [[0, 0], [2, \"10Gbps\"]]";
                ("bandwidth-function", "bandwidth_function", example, flow.bandwidth_function.is_some())
            }
            Policy::Utility => {
                let example = "\"utility\": [[\"1Mbps\", 1], [\"1Gbps\", 0.001]]";
                ("utility", "utility", example, flow.utility.is_some())
            }
            Policy::MaxMin | Policy::AlphaFair { .. } => return Ok(()),
        };
        // The key is present but invalid: its error was reported already.
        if has || given.contains_key(key) {
            return Ok(());
        }
        let what = format!("policy \"{policy}\" needs the flow's {key}");
        Err(InputError::new(key, what, format!("give it, such as {example}")))
    }
}

/// The columns of flows that qualify for the fast path.
struct Plain<'a> {
    ways: Ways<'a>,
    id: Option<&'a CaseColumn>,
    weight: Option<&'a CaseColumn>,
    demand: Option<&'a CaseColumn>,
}

/// Columns that determine paths: node pairs, or links.
enum Ways<'a> {
    Ends { src: Named<'a, NodeId>, dst: Named<'a, NodeId> },
    Path { links: Named<'a, LinkId>, begins: &'a [u32] },
}

/// The items that a column's cells name; `None` for an unknown name.
struct Named<'a, T> {
    known: Vec<Option<T>>,
    of: &'a [u32],
}

impl<'a, T: Copy> Named<'a, T> {
    fn of(column: &'a CaseColumn, find: impl Fn(&str) -> Option<T>) -> Option<Self> {
        let (words, of) = column.words()?;
        Some(Named { known: words.iter().map(|word| find(word)).collect(), of })
    }
    fn at(&self, cell: usize) -> Option<T> {
        self.known.get(*self.of.get(cell)? as usize).copied().flatten()
    }
}

impl<'a> Plain<'a> {
    fn of(given: &'a FlowColumns, network: &Network) -> Option<Self> {
        let column = |name| given.column(name);
        if ["size", "deadline", "subflows"].into_iter().any(|name| column(name).is_some()) {
            return None;
        }
        let ways = match (given.paths(), column("src"), column("dst")) {
            (Some(PathColumns { links, begins, .. }), None, None) => {
                Ways::Path { links: Named::of(links, |name| network.find_link(name))?, begins }
            }
            (None, Some(src), Some(dst)) => {
                let node = |name: &str| network.find_node(name);
                Ways::Ends { src: Named::of(src, node)?, dst: Named::of(dst, node)? }
            }
            _ => return None,
        };
        Some(Plain { ways, id: column("id"), weight: column("weight"), demand: column("demand") })
    }
}

/// Whether the path is not empty and crosses no link twice. Each call needs a new `mark`, so that `seen` need not be
/// cleared.
fn is_path(path: &[LinkId], seen: &mut IdVec<LinkId, u32>, mark: u32) -> bool {
    !path.is_empty() && path.iter().all(|&l| std::mem::replace(&mut seen[l], mark) != mark)
}

fn several(network: &Network, paths: &Value) -> Result<Vec<Option<Vec<LinkId>>>, InputError> {
    let paths = list(paths, "the list of paths", "[[\"l1\"], [\"l2\"]]")?;
    if paths.len() as u64 > MOST_SUBFLOWS {
        let what = format!("the flow has {} paths", paths.len());
        return Err(InputError::new("", what, format!("give at most {MOST_SUBFLOWS}")));
    }
    let one = |(k, given)| path(network, given).map_err(|e: InputError| e.below(&format!("[{k}]")));
    paths.iter().enumerate().map(one).collect()
}

/// The links of a path; `None` if one of them is down.
fn path(network: &Network, path: &Value) -> Result<Option<Vec<LinkId>>, InputError> {
    let names = list(path, "a path", "[\"l1\", \"l2\"]")?;
    let is_down = |name: &Value| name.as_str().is_some_and(|id| network.find_link(id).is_none() && network.is_down(id));
    if names.iter().any(is_down) {
        return Ok(None);
    }
    let mut links: Vec<LinkId> = Vec::with_capacity(names.len());
    for (i, name) in names.iter().enumerate() {
        let next = link(network, name).and_then(|next| match links.last() {
            Some(&last) => network.check_joint(last, next).map(|()| next),
            None => Ok(next),
        });
        links.push(next.map_err(|e| e.below(&format!("[{i}]")))?);
    }
    Ok(Some(links))
}

fn link(network: &Network, name: &Value) -> Result<LinkId, InputError> {
    let name = text(name, "a link's id")?;
    network.find_link(name).ok_or_else(|| {
        let known = network.links().iter().map(|link| link.id.as_str());
        unknown(name, "link", known)
    })
}

fn end(network: &Network, map: &Map<String, Value>, key: &str) -> Result<NodeId, InputError> {
    let name = map.get(key).ok_or_else(|| InputError::new(key, format!("\"{key}\" is missing"), "give both ends"))?;
    let name = text(name, "a node's name").map_err(|e| e.below(key))?;
    network.find_node(name).ok_or_else(|| {
        if network.nodes().is_empty() {
            let what = "the network's links do not say where they lead";
            return InputError::new(key, what, "give every link \"from\" and \"to\", or give the flow a \"path\"");
        }
        let known = network.nodes().iter().map(|node| node.name.as_str());
        unknown(name, "node", known).below(key)
    })
}

/// The value of `key`, if present.
fn read<T>(
    map: &Map<String, Value>,
    key: &str,
    by: impl Fn(&Value) -> Result<T, InputError>,
) -> Result<Option<T>, InputError> {
    map.get(key).map(by).transpose().map_err(|e| e.below(key))
}

fn weight(value: &Value) -> Result<f64, InputError> {
    match quantity::number_from_json(value)? {
        0.0 => Err(InputError::new("", "the weight is zero", "give a positive number, or remove the flow")),
        weight => Ok(weight),
    }
}

/// A flow's deadline in seconds, positive.
pub fn deadline_from_value(value: &Value) -> Result<f64, InputError> {
    match quantity::seconds_from_json(value)? {
        0.0 => Err(InputError::new("", "the deadline is zero", "give the seconds until the flow should be done")),
        deadline => Ok(deadline),
    }
}

fn subflows(value: &Value) -> Result<usize, InputError> {
    let whole = value.as_u64().filter(|k| (1..=MOST_SUBFLOWS).contains(k));
    whole.map(|k| k as usize).ok_or_else(|| {
        let what = format!("{} is not a number of subflows", shown(value));
        InputError::new("", what, format!("give a whole number from 1 to {MOST_SUBFLOWS}"))
    })
}

/// Points (fair share, bit/s) of a bandwidth function: starts at (0, 0), shares increase, rates never fall.
pub fn bandwidth_function_from_value(value: &Value) -> Result<Vec<(f64, f64)>, InputError> {
    const EXAMPLE: &str = "[[0, 0], [2, \"10Gbps\"], [4, \"20Gbps\"]]";
    let given = list(value, "a bandwidth function", EXAMPLE)?;
    let refuse = |place: String, what: String| InputError::new(place, what, format!("write it as {EXAMPLE}"));
    if given.len() < 2 {
        return Err(refuse(
            String::new(),
            format!("the bandwidth function has {} of at least two points", given.len()),
        ));
    }
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(given.len());
    for (i, point) in given.iter().enumerate() {
        let place = format!("[{i}]");
        let Some([share, bps]) = point.as_array().and_then(|p| <&[Value; 2]>::try_from(p.as_slice()).ok()) else {
            return Err(refuse(place, format!("{} is not a point [fair share, bit/s]", shown(point))));
        };
        let share = quantity::number_from_json(share).map_err(|e| e.below(&format!("[{i}][0]")))?;
        let bps = quantity::rate_bps_from_json(bps).map_err(|e| e.below(&format!("[{i}][1]")))?;
        match points.last() {
            None if (share, bps) != (0.0, 0.0) => {
                return Err(refuse(place, format!("the bandwidth function starts at [{share}, {bps}], not at [0, 0]")));
            }
            Some(&(before, _)) if share <= before => {
                return Err(refuse(place, format!("the fair share goes from {before} to {share}: it must grow")));
            }
            Some(&(_, before)) if bps < before => {
                return Err(refuse(place, format!("the bandwidth falls from {before} to {bps} bit/s")));
            }
            _ => points.push((share, bps)),
        }
    }
    Ok(points)
}

/// Error of a name that the network does not have, with the nearest known name.
fn unknown<'a>(name: &str, what: &str, known: impl Iterator<Item = &'a str>) -> InputError {
    /// Limit of names to compare for the hint: beyond it the search takes too long.
    const MOST: usize = 20_000;
    const SHOWN: usize = 12;
    let known: Vec<&str> = known.take(MOST).collect();
    let hint = match nearest(name, &known) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None if known.is_empty() => format!("the network has no {what}s"),
        None if known.len() <= SHOWN => format!("the network has: {}", known.join(", ")),
        None => format!("the network has: {}, ...", known[..SHOWN].join(", ")),
    };
    InputError::new("", format!("there is no {what} {}", quoted(name)), hint)
}
