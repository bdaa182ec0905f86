//! Python class of the structure of a max-min allocation.

use crate::errors::OrInputError;
use crate::solving::PyCase;
use crate::table::Table;
use arrow_array::{ArrayRef, Float64Array, StringArray, UInt32Array};
use pyo3::prelude::*;
use std::sync::Arc;
use subak_core::{IdVec, InputError, Link, LinkId};
use subak_solve::freeze_iterations;
use subak_solve::structure::{self as solve, Degree};

/// Order in which links become bottlenecks of a max-min allocation, and their precedence graph (PERC thesis).
#[pyclass(frozen, subclass, module = "subak._subak", name = "Structure")]
pub struct PyStructure {
    case: Arc<subak_core::Case>,
    found: solve::Structure,
    freeze_iterations: IdVec<LinkId, Option<usize>>,
}

impl PyStructure {
    fn id(&self, link: LinkId) -> &str {
        &self.case.network.links()[link].id
    }

    fn ids<'a>(&'a self, links: &'a [LinkId]) -> Vec<&'a str> {
        links.iter().map(|&l| self.id(l)).collect()
    }

    fn names(&self, links: impl Iterator<Item = LinkId>) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(links.map(|l| self.id(l))))
    }

    fn removed(&self) -> IdVec<LinkId, Option<usize>> {
        self.found.frozen_in(self.case.network.links().len())
    }

    /// Rate of each bottleneck's flows per unit of weight, bit/s; `None` for other links.
    fn levels_bps(&self) -> IdVec<LinkId, Option<f64>> {
        let mut level = IdVec::filled(None, self.case.network.links().len());
        for (part, shares) in self.found.partition.iter().zip(&self.found.shares_bps) {
            let mut shares = shares.iter();
            for &l in part {
                // Both lists are in the order of the links.
                level[l] = shares.find(|(m, _)| *m == l).map(|(_, share)| *share);
            }
        }
        level
    }
}

fn iterations(of: impl Iterator<Item = Option<usize>>) -> ArrayRef {
    Arc::new(of.map(|n| n.map(|n| n as u32)).collect::<UInt32Array>())
}

#[pymethods]
impl PyStructure {
    /// Runs the water-filling algorithm WF^k (PERC thesis) on `case` with k `1`, `2` or `inf`, without holding the
    /// interpreter's lock.
    #[new]
    fn new(py: Python<'_>, case: &PyCase, k: &str) -> PyResult<Self> {
        let degree = [Degree::One, Degree::Two, Degree::All].into_iter().find(|degree| degree.name() == k);
        let unknown = || InputError::new("k", format!("there is no WF^{k}"), "give 1, 2, or inf");
        let degree = degree.ok_or_else(unknown).or_input_error(py)?;
        let found = py.detach(|| {
            let found = solve::structure(&case.case, degree)?;
            let freeze_iterations = freeze_iterations(&case.case, &found);
            Ok((found, freeze_iterations))
        });
        let (found, freeze_iterations) = found.map_err(|e| case.in_file(e)).or_input_error(py)?;
        Ok(PyStructure { case: case.case.clone(), found, freeze_iterations })
    }

    /// Degree k of the water-filling algorithm WF^k (PERC thesis): ``"1"``, ``"2"`` or ``"inf"``.
    #[getter]
    fn k(&self) -> &'static str {
        self.found.degree.name()
    }

    /// Number of iterations until every flow has its rate. The PERC thesis names it D for k = 1, W² for 2, W for
    /// infinity.
    #[getter]
    fn depth(&self) -> usize {
        self.found.depth()
    }

    /// The links that WF^k removes in each iteration.
    #[getter]
    fn partition(&self) -> Vec<Vec<&str>> {
        self.found.partition.iter().map(|part| self.ids(part)).collect()
    }

    /// A longest chain of links in which each precedes the next.
    #[getter]
    fn longest_chain(&self) -> Vec<&str> {
        self.ids(&self.found.longest_chain)
    }

    /// One row per link: ``id``, ``capacity_bps``, ``removed_in`` (iteration, from 1, in which WF^k removes the
    /// link), ``freeze_iteration`` (first iteration in which the link has the lowest rate among links that share a
    /// flow with it), ``level_bps`` (the rate of its flows per unit of weight). The last three are null for links
    /// that are no bottleneck. Links of capacity 0 come last.
    #[getter]
    fn links(&self) -> PyResult<Table> {
        let network = &self.case.network;
        let links: Vec<&Link> = network.links().iter().chain(network.down()).collect();
        let down = || network.down().map(|_| None::<usize>);
        Table::new(vec![
            ("id", Arc::new(StringArray::from_iter_values(links.iter().map(|l| l.id.as_str()))) as ArrayRef),
            ("capacity_bps", Arc::new(Float64Array::from_iter_values(links.iter().map(|l| l.capacity_bps)))),
            ("removed_in", iterations(self.removed().into_iter().chain(down()))),
            ("freeze_iteration", iterations(self.freeze_iterations.iter().copied().chain(down()))),
            (
                "level_bps",
                Arc::new(self.levels_bps().into_iter().chain(network.down().map(|_| None)).collect::<Float64Array>()),
            ),
        ])
    }

    /// One row per flow, in the order given: ``id``, ``rate_bps``, ``removed_in`` (iteration in which WF^k removes
    /// its first bottleneck). A flow that cannot send has rate 0 and null.
    #[getter]
    fn flows(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| {
            let (flows, removed) = (&self.case.flows, self.removed());
            let first = |f| flows.links_of(f).iter().filter_map(|&l| removed[l]).min();
            let rows = || flows.in_order();
            let ids =
                rows().map(|flow| flow.map_or_else(|stranded| stranded.id.to_string(), |f| flows.id(f).to_string()));
            let rates = rows().map(|flow| flow.map_or(0.0, |f| self.found.rates_bps[f]));
            Table::new(vec![
                ("id", Arc::new(StringArray::from_iter_values(ids)) as ArrayRef),
                ("rate_bps", Arc::new(Float64Array::from_iter_values(rates))),
                ("removed_in", iterations(rows().map(|flow| flow.ok().and_then(first)))),
            ])
        })
    }

    /// Warnings of the case's reader, one sentence each: keys of flows that max-min does not use, flows that cannot
    /// send.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.case.notes()
    }

    /// One row per iteration and remaining link: ``iteration`` (from 1), ``link``, ``share_bps`` (the link's rate per
    /// unit of weight).
    #[getter]
    fn shares(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| {
            let rows = || self.found.shares_bps.iter().enumerate().flat_map(|(n, row)| row.iter().map(move |r| (n, r)));
            Table::new(vec![
                ("iteration", iterations(rows().map(|(n, _)| Some(n + 1)))),
                ("link", self.names(rows().map(|(_, r)| r.0))),
                ("share_bps", Arc::new(Float64Array::from_iter_values(rows().map(|(_, r)| r.1)))),
            ])
        })
    }

    /// One row per edge of the precedence graph: ``precedent``, ``link``, ``kind`` (``direct``, ``indirect``,
    /// ``second-direct``, ``second-indirect``), ``via`` (the medium link of an indirect edge, else null).
    #[getter]
    fn precedence(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| {
            let edges = &self.found.precedence;
            let via = edges.iter().map(|e| e.via.map(|l| self.id(l)));
            Table::new(vec![
                ("precedent", self.names(edges.iter().map(|e| e.precedent))),
                ("link", self.names(edges.iter().map(|e| e.link))),
                ("kind", Arc::new(StringArray::from_iter_values(edges.iter().map(|e| e.kind.name()))) as ArrayRef),
                ("via", Arc::new(via.collect::<StringArray>())),
            ])
        })
    }

    fn __repr__(&self) -> String {
        let bottlenecks: usize = self.found.partition.iter().map(Vec::len).sum();
        format!("<subak.Structure: WF^{}, {bottlenecks} bottlenecks in {} iterations>", self.k(), self.depth())
    }
}
