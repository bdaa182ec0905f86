//! Flows over a network: their ids, their paths, and the fields that policies use.

use crate::curve::Curve;
use crate::policy::Policy;
use crate::{IdVec, InputError, LinkId, Network, Offsets};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// One flow, as given by the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Name, unique among the flows.
    pub id: String,
    /// One path, or several whose rates add up (multipath, pooled). Each path lists its links from source to
    /// destination.
    pub paths: Vec<Vec<LinkId>>,
    /// Weight, finite and positive.
    pub weight: f64,
    /// Upper bound on the rate, bit/s.
    pub demand_bps: Option<f64>,
    /// Bytes to send, for the policies `fct` and `srpt`.
    pub size_bytes: Option<u64>,
    /// Deadline in seconds from the start, for the policy `edf`.
    pub deadline_s: Option<f64>,
    /// Points `(fair share, bit/s)`: piecewise linear from (0, 0), non-decreasing, constant after the last point.
    pub bandwidth_function: Option<Vec<(f64, f64)>>,
    /// Utility, for the policy `utility`.
    pub utility: Option<FlowUtility>,
}

/// The utility that a flow states under the policy `utility`.
#[derive(Debug, Clone, PartialEq)]
pub enum FlowUtility {
    /// A curve of U' through points.
    Curve(Arc<Curve>),
    /// The utility of the flow under this policy: `alpha-fair` with alpha > 0, `fct`, `srpt` or `edf`.
    Of(Policy),
}

impl Flow {
    /// A flow of weight 1 over one path, without demand, size or deadline.
    pub fn over(id: impl Into<String>, path: Vec<LinkId>) -> Self {
        Flow {
            id: id.into(),
            paths: vec![path],
            weight: 1.0,
            demand_bps: None,
            size_bytes: None,
            deadline_s: None,
            bandwidth_function: None,
            utility: None,
        }
    }
}

/// Fields of a flow that few policies need. They are kept apart, so that plain flows stay small.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extra {
    /// Bytes to send.
    pub size_bytes: Option<u64>,
    /// Deadline in seconds from the start.
    pub deadline_s: Option<f64>,
    /// `(fair share, bit/s)` points.
    pub bandwidth_function: Option<Vec<(f64, f64)>>,
    /// Utility, for the policy `utility`.
    pub utility: Option<FlowUtility>,
}

impl Extra {
    /// The flow's policy in a case of policy `of_case`: under `utility` the one that the flow states, if any.
    pub fn policy(&self, of_case: Policy) -> Policy {
        match (of_case, &self.utility) {
            (Policy::Utility, Some(FlowUtility::Of(own))) => *own,
            _ => of_case,
        }
    }
}

/// Many flows in compressed rows: flow `f` has paths `path_ptr[f]..path_ptr[f+1]`; path `p` has links
/// `links[link_ptr[p]..link_ptr[p+1]]`. Solvers read this layout directly.
#[derive(Debug, Clone, Default)]
pub struct Flows {
    path_ptr: Offsets,
    link_ptr: Offsets,
    links: Vec<LinkId>,
    weight: Vec<f64>,
    demand_bps: Vec<f64>,
    /// Empty if flows have no names; the id of a flow is then its number.
    ids: Vec<String>,
    /// Size, deadline, bandwidth function and utility of each flow; empty if no flow has any of them.
    extra: Vec<Extra>,
    /// Flows that cannot send, in the order given. They have no number among the flows.
    stranded: Vec<Stranded>,
    narrow: Narrow,
}

/// Flows with fewer paths than subflows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Narrow {
    /// Their number.
    pub flows: usize,
    /// Subflows and paths of the one that lacks most.
    pub widest: (usize, usize),
}

impl Narrow {
    /// Counts a flow of `subflows` over `paths`, if these are fewer.
    pub fn count(&mut self, subflows: usize, paths: usize) {
        if paths < subflows {
            self.flows += 1;
            let (most, fewest) = self.widest;
            if subflows - paths > most - fewest {
                self.widest = (subflows, paths);
            }
        }
    }

    /// Adds the flows that `more` counts.
    pub fn join(&mut self, more: Narrow) {
        self.flows += more.flows;
        if more.widest.0 - more.widest.1 > self.widest.0 - self.widest.1 {
            self.widest = more.widest;
        }
    }

    /// Text of a warning about these flows, `of` (such as `12 flows`); `None` if there are none.
    pub fn warning(&self, of: &str) -> Option<String> {
        let (asked, paths) = self.widest;
        (self.flows > 0).then(|| {
            format!(
                "{} of {of} have fewer paths than subflows, such as {asked} subflows where there are {paths} such paths: the \
                 others have no effect",
                self.flows
            )
        })
    }
}

/// A flow without a usable path: its rate is 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranded {
    /// Position among all flows given.
    pub place: usize,
    /// The flow's id.
    pub id: String,
    /// Reason why the flow cannot send.
    pub why: Why,
}

/// Reason why a flow cannot send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// No path from its source to its destination.
    NoPath,
    /// Each of its paths crosses a link of capacity 0.
    LinkDown,
}

impl Why {
    /// Name of the reason in answers.
    pub fn name(self) -> &'static str {
        match self {
            Why::NoPath => "no-path",
            Why::LinkDown => "link-down",
        }
    }
}

impl Flows {
    /// An empty table of flows.
    pub fn new() -> Self {
        Flows::default()
    }

    /// Checks `flow` against `network` and appends it. Places of errors are relative to the flow.
    pub fn push(&mut self, flow: Flow, network: &Network) -> Result<(), InputError> {
        check_paths(&flow.paths, network)?;
        self.push_unchecked(&flow.paths, flow.weight, flow.demand_bps)?;
        if !self.ids.is_empty() || self.len() == 1 {
            self.ids.push(flow.id);
        }
        let extra = Extra {
            size_bytes: flow.size_bytes,
            deadline_s: flow.deadline_s,
            bandwidth_function: flow.bandwidth_function,
            utility: flow.utility,
        };
        if extra != Extra::default() || !self.extra.is_empty() {
            self.extra.resize(self.len() - 1, Extra::default());
            self.extra.push(extra);
        }
        Ok(())
    }

    /// Single-path flows without names from rows: flow `f` takes `links[link_ptr[f]..link_ptr[f+1]]`. `weight` and
    /// `demand_bps` have one value for each flow or are empty (weight 1, no bound).
    pub fn from_rows(
        link_ptr: Vec<u32>,
        links: Vec<LinkId>,
        weight: Vec<f64>,
        demand_bps: Vec<f64>,
        network: &Network,
    ) -> Result<Self, InputError> {
        let rows = |what: &str| {
            InputError::new(
                "link_ptr",
                what,
                "give offsets that start at 0, never fall, and end at the number of links",
            )
        };
        let n = link_ptr.len().checked_sub(1).ok_or_else(|| rows("there are no offsets"))?;
        if link_ptr[0] != 0 || link_ptr[n] as usize != links.len() || link_ptr.windows(2).any(|w| w[0] > w[1]) {
            return Err(rows("the offsets do not describe the list of links"));
        }
        let fill = |name: &str, values: Vec<f64>, default: f64| match values.len() {
            0 => Ok(vec![default; n]),
            k if k == n => Ok(values),
            k => Err(InputError::new(name, format!("{k} values for {n} flows"), "give one value a flow")),
        };
        let weight = fill("weight", weight, 1.0)?;
        let demand_bps = fill("demand", demand_bps, f64::INFINITY)?;
        let link_ptr = Offsets::from(link_ptr);
        let mut seen = IdVec::filled(u32::MAX, network.links().len());
        for f in 0..n {
            let path = &links[link_ptr.row(f)];
            check_path(path, &mut seen, f as u32, network)
                .map_err(|e| e.below("path").below(&format!("flows[{f}]")))?;
            check_weight(weight[f])
                .and_then(|()| check_demand(demand_bps[f]))
                .map_err(|e| e.below(&format!("flows[{f}]")))?;
        }
        Ok(Flows {
            path_ptr: (0..=n as u32).collect::<Vec<_>>().into(),
            link_ptr,
            links,
            weight,
            demand_bps,
            ids: Vec::new(),
            extra: Vec::new(),
            stranded: Vec::new(),
            narrow: Narrow::default(),
        })
    }

    fn push_unchecked(
        &mut self,
        paths: &[impl AsRef<[LinkId]>],
        weight: f64,
        demand_bps: Option<f64>,
    ) -> Result<(), InputError> {
        check_weight(weight)?;
        if let Some(demand) = demand_bps {
            check_demand(demand)?;
        }
        for path in paths {
            self.links.extend_from_slice(path.as_ref());
            self.link_ptr.push(self.links.len());
        }
        self.path_ptr.push(self.link_ptr.len());
        self.weight.push(weight);
        self.demand_bps.push(demand_bps.unwrap_or(f64::INFINITY));
        Ok(())
    }

    /// Appends a flow of one path, without checks: the links exist and are distinct. Either all flows have an `id` or
    /// none.
    pub(crate) fn push_path(
        &mut self,
        path: &[LinkId],
        weight: f64,
        demand_bps: Option<f64>,
        id: Option<String>,
    ) -> Result<(), InputError> {
        self.push_unchecked(&[path], weight, demand_bps)?;
        self.ids.extend(id);
        Ok(())
    }

    /// Flow `f` in the form in which users give it.
    pub fn get(&self, f: usize) -> Flow {
        let extra = self.extra(f).cloned().unwrap_or_default();
        Flow {
            id: self.id(f),
            paths: self.paths_of(f).map(|p| self.links_of(p).to_vec()).collect(),
            weight: self.weight[f],
            demand_bps: Some(self.demand_bps[f]).filter(|d| d.is_finite()),
            size_bytes: extra.size_bytes,
            deadline_s: extra.deadline_s,
            bandwidth_function: extra.bandwidth_function,
            utility: extra.utility,
        }
    }

    /// Changes the weight of flow `f`.
    pub fn set_weight(&mut self, f: usize, weight: f64) -> Result<(), InputError> {
        check_weight(weight)?;
        self.weight[f] = weight;
        Ok(())
    }

    /// Sets the demand of flow `f`, bit/s; infinite for no bound.
    pub fn set_demand(&mut self, f: usize, demand_bps: f64) -> Result<(), InputError> {
        check_demand(demand_bps)?;
        self.demand_bps[f] = demand_bps;
        Ok(())
    }

    /// Makes each unnamed flow's number its permanent name, which stays when other flows are removed.
    pub fn name_by_number(&mut self) {
        if self.ids.is_empty() {
            self.ids = (0..self.len()).map(|f| f.to_string()).collect();
        }
    }

    /// Keeps the flows for which `keep` is true, in their order.
    pub fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let (mut path_ptr, mut link_ptr, mut links) = (Offsets::default(), Offsets::default(), Vec::new());
        for f in (0..self.len()).filter(|&f| keep(f)) {
            for p in self.paths_of(f) {
                links.extend_from_slice(self.links_of(p));
                link_ptr.push(links.len());
            }
            path_ptr.push(link_ptr.len());
        }
        (self.path_ptr, self.link_ptr, self.links) = (path_ptr, link_ptr, links);
        fn only<T>(values: &mut Vec<T>, keep: impl Fn(usize) -> bool) {
            let mut place = 0..;
            values.retain(|_| place.next().is_some_and(&keep));
        }
        only(&mut self.weight, &keep);
        only(&mut self.demand_bps, &keep);
        only(&mut self.ids, &keep);
        only(&mut self.extra, &keep);
    }

    /// Records the next flow of the input as one that cannot send.
    pub(crate) fn strand(&mut self, id: String, why: Why) {
        // From here on the position of an unnamed flow differs from its number.
        self.name_by_number();
        self.stranded.push(Stranded { place: self.len() + self.stranded.len(), id, why });
    }

    /// Flows with fewer paths than subflows.
    pub fn narrow(&self) -> &Narrow {
        &self.narrow
    }

    /// Counts a flow of `subflows` over `paths`, if these are fewer.
    pub(crate) fn count_paths(&mut self, subflows: usize, paths: usize) {
        self.narrow.count(subflows, paths);
    }

    /// The flows that cannot send, in the order given. They are not counted among the other flows.
    pub fn stranded(&self) -> &[Stranded] {
        &self.stranded
    }

    /// All flows in the order given: `Ok` with the flow's number, or `Err` if it is stranded.
    pub fn in_order(&self) -> impl Iterator<Item = Result<usize, &Stranded>> {
        let (mut next, mut stranded) = (0, self.stranded.iter().peekable());
        (0..self.len() + self.stranded.len()).map(move |place| match stranded.next_if(|one| one.place == place) {
            Some(one) => Err(one),
            None => {
                next += 1;
                Ok(next - 1)
            }
        })
    }

    /// The number of flows.
    pub fn len(&self) -> usize {
        self.weight.len()
    }

    /// Whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.weight.is_empty()
    }

    /// Number of paths, summed over flows.
    pub fn path_count(&self) -> usize {
        self.link_ptr.len()
    }

    /// Whether every flow has exactly one path.
    pub fn single_path(&self) -> bool {
        self.path_count() == self.len()
    }

    /// The paths of flow `f`.
    pub fn paths_of(&self, f: usize) -> Range<usize> {
        self.path_ptr.row(f)
    }

    /// The links of path `p`.
    pub fn links_of(&self, p: usize) -> &[LinkId] {
        &self.links[self.link_ptr.row(p)]
    }

    /// The links of a range of paths, concatenated.
    pub fn links_of_all(&self, paths: Range<usize>) -> &[LinkId] {
        &self.links[self.link_ptr.rows(paths)]
    }

    /// Offsets into [`Flows::links`], one more than there are paths.
    pub fn link_ptr(&self) -> &[u32] {
        self.link_ptr.raw()
    }

    /// The links of all paths, concatenated.
    pub fn links(&self) -> &[LinkId] {
        &self.links
    }

    /// The weight of each flow.
    pub fn weight(&self) -> &[f64] {
        &self.weight
    }

    /// The demand of each flow, bit/s; infinite where none was given.
    pub fn demand_bps(&self) -> &[f64] {
        &self.demand_bps
    }

    /// Size, deadline and bandwidth function of flow `f`, if given.
    pub fn extra(&self, f: usize) -> Option<&Extra> {
        self.extra.get(f)
    }

    /// The id of flow `f`: its name, or its number if flows have no names.
    pub fn id(&self, f: usize) -> String {
        self.ids.get(f).cloned().unwrap_or_else(|| f.to_string())
    }
}

fn check_weight(weight: f64) -> Result<(), InputError> {
    if weight.is_finite() && weight > 0.0 {
        return Ok(());
    }
    Err(InputError::new("weight", format!("the weight is {weight}"), "give a finite, positive number"))
}

fn check_demand(demand_bps: f64) -> Result<(), InputError> {
    if demand_bps >= 0.0 {
        return Ok(());
    }
    Err(InputError::new(
        "demand",
        format!("the demand is {demand_bps} bit/s"),
        "give a rate of zero or more, such as \"5Gbps\"",
    ))
}

fn check_paths(paths: &[Vec<LinkId>], network: &Network) -> Result<(), InputError> {
    if paths.is_empty() {
        return Err(InputError::new("paths", "the flow has no path", "give at least one list of links"));
    }
    let mut distinct = HashSet::new();
    for (k, path) in paths.iter().enumerate() {
        let place = if paths.len() == 1 { "path".to_string() } else { format!("paths[{k}]") };
        let mut seen = HashSet::new();
        if path.is_empty() {
            return Err(InputError::new(place, "the path has no link", "name at least one link"));
        }
        for (i, &l) in path.iter().enumerate() {
            known(l, network).map_err(|e| e.below(&format!("{place}[{i}]")))?;
            if !seen.insert(l) {
                return Err(twice(l, network).below(&format!("{place}[{i}]")));
            }
        }
        if !distinct.insert(path) {
            return Err(InputError::new(
                place,
                "two paths of the flow are the same",
                "name each path once: a pooled flow needs paths that differ",
            ));
        }
    }
    Ok(())
}

/// Like [`check_paths`], for one path. `seen[l] == mark` means that the path crosses link `l`; this avoids a hash
/// set.
fn check_path(path: &[LinkId], seen: &mut IdVec<LinkId, u32>, mark: u32, network: &Network) -> Result<(), InputError> {
    if path.is_empty() {
        return Err(InputError::new("", "the path has no link", "name at least one link"));
    }
    for (i, &l) in path.iter().enumerate() {
        known(l, network).map_err(|e| e.below(&format!("[{i}]")))?;
        if std::mem::replace(&mut seen[l], mark) == mark {
            return Err(twice(l, network).below(&format!("[{i}]")));
        }
    }
    network.check_joined(path)
}

fn known(l: LinkId, network: &Network) -> Result<(), InputError> {
    if l.index() < network.links().len() {
        return Ok(());
    }
    Err(InputError::new(
        "",
        format!("there is no link number {l}"),
        format!("the network has links 0 to {}", network.links().len().saturating_sub(1)),
    ))
}

fn twice(l: LinkId, network: &Network) -> InputError {
    InputError::new(
        "",
        format!("the path crosses link \"{}\" twice", network.links()[l].id),
        "name each link of a path once",
    )
}
