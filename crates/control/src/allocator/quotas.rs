//! Quotas: upper bounds on the sum of a tenant's weights.

use super::Allocator;
use std::collections::BTreeMap;

/// Relative change of a tenant's scale above which its weights are rescaled.
const TOLERANCE: f64 = 0.01;

/// Requested weights, limit and scale factor of each tenant.
#[derive(Debug, Default)]
pub(super) struct Quotas {
    tenants: BTreeMap<u32, Tenant>,
}

#[derive(Debug, Clone, Copy)]
struct Tenant {
    /// Sum of the weights that the tenant's flowlets request.
    asked: f64,
    most: f64,
    /// Factor on the tenant's weights, below 1 if their sum exceeds the quota.
    factor: f64,
}

const FREE: Tenant = Tenant { asked: 0.0, most: f64::INFINITY, factor: 1.0 };

impl Tenant {
    fn goal(&self) -> f64 {
        if self.asked > self.most { self.most / self.asked } else { 1.0 }
    }
}

impl Quotas {
    pub fn add(&mut self, tenant: u32, weight: f64) {
        let of = self.tenants.entry(tenant).or_insert(FREE);
        of.asked = (of.asked + weight).max(0.0);
    }

    pub fn factor(&self, tenant: u32) -> f64 {
        self.tenants.get(&tenant).map_or(1.0, |of| of.factor)
    }

    fn set(&mut self, tenant: u32, most: f64) {
        self.tenants.entry(tenant).or_insert(FREE).most = most;
    }

    /// Updates the scales; returns the tenants whose scale changed.
    fn moved(&mut self) -> Vec<u32> {
        let off = |of: &Tenant| (of.goal() - of.factor).abs() > TOLERANCE * of.factor;
        let moved = self.tenants.iter_mut().filter(|(_, of)| off(of));
        moved
            .map(|(&tenant, of)| {
                of.factor = of.goal();
                tenant
            })
            .collect()
    }
}

impl Allocator {
    /// Limits the sum of the weights of `tenant`, over all endpoints that [joined as](Allocator::join_as) it; infinite for
    /// no limit. Above the limit, weights are scaled down in proportion, from the next iteration on.
    pub fn set_quota(&mut self, tenant: u32, most_weight: f64) {
        self.quotas.set(tenant, if most_weight > 0.0 { most_weight } else { f64::INFINITY });
    }

    pub(super) fn keep_quotas(&mut self) {
        for tenant in self.quotas.moved() {
            let Allocator { peers, iteration, quotas, settings, .. } = self;
            let factor = quotas.factor(tenant);
            for known in peers.iter().flatten().filter(|peer| peer.tenant == tenant).flat_map(|p| p.flowlets.values()) {
                let asked = f64::from(known.start.weight).clamp(settings.least_weight, settings.most_weight);
                if let Some(key) = known.key {
                    let _ = iteration.cluster_mut().set_weight(key, asked * factor);
                }
            }
        }
    }
}
