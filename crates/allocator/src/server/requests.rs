//! Requests of other threads, and their replies.

use super::{Server, unix_ms};
use crate::request::{DaemonCommand, DaemonRequest};
use crate::state::{HostLook, Look};
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;
use subak_control::{Allocator, FlowletStatus};
use subak_core::{LinkId, Ns};

impl Server {
    /// Replies to pending requests; false after [`DaemonCommand::End`].
    pub(super) fn answer_requests(&mut self) -> Result<bool, String> {
        loop {
            match self.requests.try_recv() {
                Ok(DaemonRequest { command, reply }) => {
                    if matches!(command, DaemonCommand::End) {
                        return Ok(false);
                    }
                    let answer = self.answer(command);
                    // The requester may have given up.
                    let _ = reply.try_send(answer);
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return Ok(true),
            }
        }
    }

    fn answer(&mut self, command: DaemonCommand) -> Result<Look, String> {
        match command {
            DaemonCommand::Look | DaemonCommand::End => {}
            DaemonCommand::Plan(config, plan) => self.take_plan(*config, *plan)?,
            DaemonCommand::Drain => {
                self.is_draining = true;
                if let Some(standby) = self.standby.as_mut().filter(|standby| standby.is_serving()) {
                    let now_ns = self.begun.elapsed().as_nanos() as Ns + 1;
                    standby.rest(now_ns);
                }
                self.allocator = None;
                self.note("drained", "rates run out, or the other allocator takes over".to_string());
            }
            DaemonCommand::Serve => {
                if std::mem::take(&mut self.is_draining) && self.standby.is_none() {
                    self.serve(self.now_ns())?;
                }
            }
            DaemonCommand::Link { link, capacity_bps } => {
                let Some(id) = self.plan.network.find_link(&link) else {
                    return Err(format!("there is no link {link}"));
                };
                if !capacity_bps.is_none_or(|bps| bps.is_finite() && bps >= 0.0) {
                    return Err("give a positive rate, or 0 for a link that is down".to_string());
                }
                self.down.remove(&link);
                self.changed.remove(&link);
                match capacity_bps {
                    None => {}
                    Some(0.0) => drop(self.down.insert(link.clone())),
                    Some(bps) => drop(self.changed.insert(link.clone(), bps)),
                }
                self.take_network(Some)?;
                let bps = self.allocator.as_ref().map_or(0.0, |allocator| allocator.capacity_bps(id));
                self.note("link", format!("{link} has {:.3} Gb/s", bps * 1e-9));
            }
            DaemonCommand::Quota { tenant, weight } => {
                if !self.plan.tenants.iter().any(|(name, _)| *name == tenant) {
                    return Err(format!("there is no tenant {tenant}"));
                }
                if weight.is_nan() || weight <= 0.0 {
                    return Err(format!("the weight is {weight}; give a positive number"));
                }
                self.quotas.insert(tenant.clone(), weight);
                self.join_all();
                self.note("quota", format!("{tenant} weighs {weight} at most"));
            }
        }
        Ok(self.look())
    }

    /// Snapshot of the daemon's state.
    fn look(&self) -> Look {
        let now_ns = self.now_ns();
        let allocator = self.allocator.as_ref();
        let mut counts = self.counts;
        (counts.unsent, counts.calls) = (self.sockets.unsent, self.sockets.calls);
        let hosts = self.hosts.iter().enumerate().filter_map(|(number, host)| {
            let host = host.as_ref()?;
            Some(HostLook {
                number: number as u32,
                name: host.name.clone(),
                tenant: host.tenant,
                address: host.address,
                lapses: host.lapses,
            })
        });
        let of_links = |of: &dyn Fn(&Allocator, LinkId) -> f64| {
            let links = self.plan.network.links().ids();
            allocator.map_or_else(Vec::new, |allocator| links.map(|link| of(allocator, link)).collect())
        };
        Look {
            plan: Arc::clone(&self.plan),
            plans: self.plans,
            now_ns,
            at_ms: unix_ms(),
            is_serving: allocator.is_some(),
            is_draining: self.is_draining,
            is_holding_back: allocator.is_some_and(Allocator::is_holding_back),
            interval_ns: self.interval_ns,
            lease_ns: self.settings.lease_ns,
            counts,
            core: allocator.map(Allocator::counters).unwrap_or_default(),
            hosts: hosts.collect(),
            peers: allocator.map(|a| a.peers().collect()).unwrap_or_default(),
            flows: allocator.map_or_else(Vec::new, |allocator| {
                let number = |address| self.endpoints.of_address(address).unwrap_or(u32::MAX);
                allocator.flows().map(|flow| FlowletStatus { to: number(flow.to), ..flow }).collect()
            }),
            promised_bps: allocator.map(Allocator::promised_bps).unwrap_or_default(),
            unscheduled_bps: of_links(&|allocator, link| allocator.unscheduled_bps(link)),
            capacity_bps: self.plan.capacity_bps(&self.down, &self.changed),
            available_bps: of_links(&|allocator, link| allocator.available_bps(link)),
            lost_bps: of_links(&|allocator, link| allocator.lost_bps(link)),
            lowered_bps: allocator
                .map_or_else(Vec::new, |a| self.plan.network.links().ids().map(|link| a.lowered_bps(link)).collect()),
            iterations: self.iterations.clone(),
            threads: self.threads.threads(),
            events: self.events.clone(),
        }
    }
}
