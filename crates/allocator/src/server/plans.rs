//! Reload of files: hosts join and leave, and the network changes.

use super::{ServedHost, Server};
use crate::config::Config;
use crate::guard::Bucket;
use crate::plan::NetworkPlan;
use crate::threads::ThreadChoice;
use std::collections::BTreeSet;
use std::sync::Arc;
use subak_core::LinkId;

impl Server {
    /// Adds new hosts of the plan and removes those that are gone.
    pub(super) fn take_hosts(&mut self) {
        self.endpoints.learn(&self.plan);
        self.hosts.resize_with(self.endpoints.count(), || None);
        let mut gone: BTreeSet<usize> = (0..self.endpoints.count()).collect();
        for host in &self.plan.hosts {
            let Some(number) = self.endpoints.number(&host.name) else { continue };
            gone.remove(&(number as usize));
            let Some(place) = self.hosts.get_mut(number as usize) else { continue };
            let before = place.take();
            let before = before.as_ref();
            *place = Some(ServedHost {
                name: host.name.clone(),
                wire: u32::from(host.address),
                up: host.up.clone(),
                down: host.down.clone(),
                bucket: Bucket::new(host.datagrams_per_s),
                tenant: host.tenant,
                most_flowlets: host.most_flowlets,
                address: before.and_then(|before| before.address),
                asker: before.and_then(|before| before.asker),
                lapses: before.map_or(0, |before| before.lapses),
                seen_lapses: before.map_or(0, |before| before.seen_lapses),
            });
        }
        self.join_all();
        for number in gone {
            let left = self.hosts[number].take().is_some();
            if let Some(allocator) = self.allocator.as_mut().filter(|_| left) {
                allocator.leave(number as u32);
            }
        }
    }

    /// Admits all hosts to the allocator's core, with the limits of their tenants.
    pub(super) fn join_all(&mut self) {
        let Server { allocator: Some(allocator), endpoints, plan, hosts, quotas, .. } = self else { return };
        for (place, (name, weight)) in plan.tenants.iter().enumerate() {
            let weight = quotas.get(name).copied().or(*weight).unwrap_or(f64::INFINITY);
            allocator.set_quota(endpoints.tenant(plan, place as u32), weight);
        }
        for (number, host) in hosts.iter().enumerate() {
            let Some(host) = host else { continue };
            allocator.join_as(number as u32, endpoints.tenant(plan, host.tenant));
            allocator.set_most_flowlets(number as u32, host.most_flowlets);
        }
    }

    /// Replaces network, hosts, quotas and policy; flowlets and rates are kept.
    pub(super) fn take_plan(&mut self, config: Config, plan: NetworkPlan) -> Result<(), String> {
        let settings = config.settings()?;
        let before = &self.config;
        if (&config.listen, &config.control, &config.page, &config.standby)
            != (&before.listen, &before.control, &before.page, &before.standby)
            || settings.lease_ns != self.settings.lease_ns
        {
            return Err("listen, control, page, standby and lease change with a new start only".to_string());
        }
        self.settings = settings;
        if let Some(allocator) = &mut self.allocator {
            allocator.set_policy(&settings);
        }
        let before = std::mem::replace(&mut self.plan, Arc::new(plan));
        let was: Vec<Option<LinkId>> =
            self.plan.network.links().iter().map(|link| before.network.find_link(&link.id)).collect();
        self.down.retain(|id| self.plan.network.find_link(id).is_some());
        self.changed.retain(|id, _| self.plan.network.find_link(id).is_some());
        self.plans += 1;
        self.interval_ns = config.interval_ns();
        if config.threads != self.config.threads {
            self.threads = ThreadChoice::new(config.most_threads());
            self.allocator.iter_mut().for_each(|allocator| allocator.set_threads(1));
        }
        self.config = config;
        self.quotas.clear();
        self.take_hosts();
        self.take_network(|link| was.get(link.index()).copied().flatten())?;
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
