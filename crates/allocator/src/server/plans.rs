//! Files that have changed: hosts that join and leave, and another network.

use super::{Host, Server};
use crate::config::Config;
use crate::guard::Bucket;
use crate::plan::Plan;
use std::collections::BTreeSet;
use std::sync::Arc;
use subak_core::LinkId;

impl Server {
    /// Hosts as the plan has them: new ones join, others leave.
    pub(super) fn take_hosts(&mut self) {
        self.endpoints.learn(&self.plan);
        self.hosts.resize_with(self.endpoints.count(), || None);
        let mut gone: BTreeSet<usize> = (0..self.endpoints.count()).collect();
        for host in &self.plan.hosts {
            let Some(number) = self.endpoints.number(&host.name) else { continue };
            gone.remove(&(number as usize));
            let Some(place) = self.hosts.get_mut(number as usize) else { continue };
            let (address, asker) = place.take().map_or((None, None), |before| (before.address, before.asker));
            *place = Some(Host {
                name: host.name.clone(),
                wire: u32::from(host.address),
                up: host.up.clone(),
                down: host.down.clone(),
                bucket: Bucket::new(host.datagrams_per_s),
                tenant: host.tenant,
                address,
                asker,
            });
            if let Some(allocator) = &mut self.allocator {
                allocator.join_as(number, host.tenant);
            }
        }
        for number in gone {
            let left = self.hosts[number].take().is_some();
            if let Some(allocator) = self.allocator.as_mut().filter(|_| left) {
                allocator.leave(number as u32);
            }
        }
    }

    /// Another network, other hosts or other quotas; flowlets and rates stay.
    pub(super) fn take_plan(&mut self, config: Config, plan: Plan) -> Result<(), String> {
        if config.listen != self.config.listen
            || config.control != self.config.control
            || config.page != self.config.page
        {
            return Err("listen, control and page change with a new start only".to_string());
        }
        let before = std::mem::replace(&mut self.plan, Arc::new(plan));
        let was: Vec<Option<LinkId>> =
            self.plan.network.links().iter().map(|link| before.network.find_link(&link.id)).collect();
        self.down.retain(|id| self.plan.network.find_link(id).is_some());
        self.changed.retain(|id, _| self.plan.network.find_link(id).is_some());
        self.interval_ns = config.interval_ns();
        self.config = config;
        self.take_hosts();
        self.take_network(|link| was.get(link.index()).copied().flatten())?;
        if let Some(allocator) = &mut self.allocator {
            for (number, (_, weight)) in self.plan.tenants.iter().enumerate() {
                allocator.set_quota(number as u32, weight.unwrap_or(f64::INFINITY));
            }
        }
        self.note("reloaded", format!("{} hosts, {} links", self.plan.hosts.len(), self.plan.network.links().len()));
        Ok(())
    }

    pub(super) fn take_network(&mut self, was: impl Fn(LinkId) -> Option<LinkId>) -> Result<(), String> {
        self.at_rest = 0;
        let capacity_bps = self.plan.capacity_bps(&self.down, &self.changed);
        let paths = self.plan.paths(&self.endpoints, &self.down);
        match &mut self.allocator {
            Some(allocator) => allocator.set_network(&capacity_bps, paths, was).map_err(|e| e.to_string()),
            None => Ok(()),
        }
    }
}
