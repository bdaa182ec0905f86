//! Queue statistics of ports, with one netlink socket for each namespace.

use crate::namespace::Namespace;
use crate::netlink::Queues;
use std::collections::BTreeMap;
use subak_testbed::{LinkCounts, VethPort};

pub(super) struct Looks {
    lines: Vec<Queues>,
    /// Index of the socket, and device number, of each port.
    ports: Vec<(usize, u32)>,
}

impl Looks {
    pub fn new(ports: &[VethPort]) -> Result<Self, String> {
        let mut known = BTreeMap::new();
        let (mut lines, mut places) = (Vec::new(), Vec::new());
        for port in ports {
            let line = match known.get(port.netns.as_str()) {
                Some(&line) => line,
                None => {
                    lines.push(Namespace::open(&port.netns)?.within(Queues::here)?);
                    known.insert(port.netns.as_str(), lines.len() - 1);
                    lines.len() - 1
                }
            };
            places.push((line, port.device));
        }
        Ok(Looks { lines, ports: places })
    }

    /// Current statistics of every port.
    pub fn all(&mut self) -> Result<Vec<LinkCounts>, String> {
        let seen: Vec<_> = self.lines.iter_mut().map(Queues::look).collect::<Result<_, _>>()?;
        Ok(self.ports.iter().map(|(line, device)| seen[*line].get(device).copied().unwrap_or_default()).collect())
    }
}
