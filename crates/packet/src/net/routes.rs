//! Links of every route, in one table.

use std::collections::HashMap;
use subak_core::LinkId;
use subak_core::rng::mix;
use subak_core::scheme::RouteId;

/// Entry of the table that marks the end of a route.
const END: LinkId = LinkId::NONE;

/// Routes by number. Equal routes have the same number, so that a million flows over the same path store one
/// route.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// Links of all routes; a route's number is the index of its first link, and [`END`] follows its last.
    links: Vec<LinkId>,
    /// Route by hash of its links; of two routes with the same hash, the first one.
    known: HashMap<u64, RouteId>,
}

impl Routes {
    /// Number of the route over `links`, which is added if it is new.
    pub fn add(&mut self, links: &[LinkId]) -> RouteId {
        let hash = links.iter().fold(links.len() as u64, |h, &l| mix(h ^ u64::from(l.0)));
        if let Some(&route) = self.known.get(&hash)
            && self.of(route) == links
        {
            return route;
        }
        let route = RouteId::from_index(self.links.len());
        self.links.extend_from_slice(links);
        self.links.push(END);
        self.known.entry(hash).or_insert(route);
        route
    }

    /// Links of the route.
    pub fn of(&self, route: RouteId) -> &[LinkId] {
        let rest = &self.links[route.index()..];
        let hops = rest.iter().position(|&l| l == END).expect("every route has its end");
        &rest[..hops]
    }

    /// First link of the route; [`END`] if the route has no links.
    #[inline]
    pub fn first(&self, route: RouteId) -> LinkId {
        self.links[route.index()]
    }

    /// Link number `hop` of the route.
    #[inline]
    pub fn link(&self, route: RouteId, hop: u16) -> LinkId {
        self.links[place(route, hop)]
    }

    /// Link after link number `hop`; `None` at the end of the route.
    #[inline]
    pub fn next(&self, route: RouteId, hop: u16) -> Option<LinkId> {
        let link = self.links[place(route, hop) + 1];
        (link != END).then_some(link)
    }
}

/// Index of link number `hop` of `route`.
#[inline]
fn place(route: RouteId, hop: u16) -> usize {
    route.index() + usize::from(hop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_routes_are_kept_once() {
        let mut routes = Routes::default();
        let (a, none, b) = (routes.add(&LinkId::each([3, 1, 4])), routes.add(&[]), routes.add(&LinkId::each([1, 5])));
        assert_eq!(
            (routes.add(&LinkId::each([3, 1, 4])), routes.add(&LinkId::each([1, 5])), routes.add(&[])),
            (a, b, none)
        );
        assert_eq!(routes.of(a), [3, 1, 4]);
        assert!(routes.of(none).is_empty());
        assert_eq!(
            (routes.first(b), routes.link(b, 1), routes.next(b, 0), routes.next(b, 1)),
            (LinkId(1), LinkId(5), Some(LinkId(5)), None)
        );
        assert_eq!(routes.links.len(), 4 + 1 + 3);
    }
}
