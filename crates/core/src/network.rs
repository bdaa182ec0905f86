//! A network of directed links between named nodes.

use crate::{IdVec, InputError, Ns};
use std::collections::{BTreeMap, HashMap};

crate::id! {
    /// Id of a directed link: its index in [`Network::links`].
    pub struct LinkId(u32);
    /// Id of a node: its index in [`Network::nodes`].
    pub struct NodeId(u32);
}

/// Whether a node sends and receives, or only forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// Source or destination of flows.
    Host,
    /// Forwards only.
    Switch,
}

/// NIC scheduling of a host's own packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Nic {
    /// Packets wait in the first link's queue, as many as congestion window and pacing rate allow.
    #[default]
    Queue,
    /// Per-flow round robin: at most one data packet of a subflow is in the queue. This models the queue pairs of an
    /// RDMA NIC, or fair queueing in the kernel. A new rate or window applies at once.
    TakesTurns,
}

impl Nic {
    /// Both NIC schedulings, with their names in specs.
    pub const ALL: [(&'static str, Nic); 2] = [("queue", Nic::Queue), ("round-robin", Nic::TakesTurns)];

    /// Name in specs.
    pub fn name(self) -> &'static str {
        if self == Nic::Queue { "queue" } else { "round-robin" }
    }
}

/// A named node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Name: `h0`, `leaf0`, `spine0`, a site's name, or the name in the file.
    pub name: String,
    /// Host or switch.
    pub kind: NodeKind,
}

/// A directed link with its output queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Name, unique in the network: `A->B`, parallel links `A->B#1`.
    pub id: String,
    /// The node at which the link starts, if nodes are known.
    pub from: Option<NodeId>,
    /// The node at which the link ends, if nodes are known.
    pub to: Option<NodeId>,
    /// Capacity, bit/s: finite and positive.
    pub capacity_bps: f64,
    /// Propagation delay, ns.
    pub delay_ns: Ns,
    /// Size of the output queue, bytes; `None`: the simulator's default.
    pub buffer_bytes: Option<u64>,
}

/// Directed links between nodes. Built by a generator, a file, or link by link; not changed after routing.
#[derive(Debug, Clone, Default)]
pub struct Network {
    nodes: IdVec<NodeId, Node>,
    links: IdVec<LinkId, Link>,
    node_by_name: HashMap<String, NodeId>,
    link_by_id: HashMap<String, LinkId>,
    /// Outgoing links of each node, in the order they were added.
    out: IdVec<NodeId, Vec<LinkId>>,
    nic: Nic,
    read: Read,
}

/// How a network file was read: notes and omitted links.
#[derive(Debug, Clone, Default)]
struct Read {
    notes: Vec<String>,
    /// Links of capacity 0, by id.
    down: BTreeMap<String, Link>,
    loops: usize,
    guess: Option<Guess>,
}

/// Nodes without a kind: a host if the node has one neighbour, or if no node is a host otherwise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guess {
    /// Number of nodes without a kind.
    pub unmarked: usize,
    /// Number of these that count as hosts.
    pub hosts: usize,
}

impl Network {
    /// A network without nodes or links.
    pub fn new() -> Self {
        Network::default()
    }

    /// The node called `name`; it is added with kind `kind` if it is new.
    pub fn node(&mut self, name: &str, kind: NodeKind) -> NodeId {
        if let Some(&id) = self.node_by_name.get(name) {
            return id;
        }
        let id = self.nodes.push(Node { name: name.to_string(), kind });
        self.out.push(Vec::new());
        self.node_by_name.insert(name.to_string(), id);
        id
    }

    /// Adds a link; refuses a duplicate id and a capacity that is not finite and positive.
    pub fn add(&mut self, link: Link) -> Result<LinkId, InputError> {
        if !(link.capacity_bps.is_finite() && link.capacity_bps > 0.0) {
            return Err(InputError::new(
                "capacity",
                format!("link \"{}\" has capacity {}", link.id, link.capacity_bps),
                "give a finite, positive rate such as \"10Gbps\"",
            ));
        }
        if self.link_by_id.contains_key(&link.id) {
            return Err(InputError::new(
                "id",
                format!("a second link has the id \"{}\"", link.id),
                "give every link an id of its own",
            ));
        }
        let id = self.links.next_id();
        self.link_by_id.insert(link.id.clone(), id);
        if let Some(from) = link.from {
            self.out[from].push(id);
        }
        self.links.push(link);
        Ok(id)
    }

    /// An error unless each link of `path` starts where the one before it ends; links that do not name their ends pass.
    pub fn check_joined(&self, path: &[LinkId]) -> Result<(), InputError> {
        let joint = |(i, pair): (usize, &[LinkId])| {
            self.check_joint(pair[0], pair[1]).map_err(|e| e.below(&format!("[{}]", i + 1)))
        };
        path.windows(2).enumerate().try_for_each(joint)
    }

    /// An error unless the link `next` starts where `last` ends; links that do not name their ends pass.
    pub fn check_joint(&self, last: LinkId, next: LinkId) -> Result<(), InputError> {
        let [last, next] = [last, next].map(|l| &self.links[l]);
        match (last.to, next.from) {
            (Some(end), Some(start)) if end != start => {
                let [end, start] = [end, start].map(|n| self.nodes[n].name.as_str());
                let what = format!("link \"{}\" leaves \"{start}\", but \"{}\" leads to \"{end}\"", next.id, last.id);
                Err(InputError::new("", what, "let each link start where the one before it ends"))
            }
            _ => Ok(()),
        }
    }

    /// Adds a link `from -> to` and its reverse link `to -> from`, named `A->B`, then `A->B#1`, ...
    pub fn connect(
        &mut self,
        from: NodeId,
        to: NodeId,
        capacity_bps: f64,
        delay_ns: Ns,
        buffer_bytes: Option<u64>,
    ) -> Result<(LinkId, LinkId), InputError> {
        let there = self.arc(from, to, capacity_bps, delay_ns, buffer_bytes)?;
        Ok((there, self.arc(to, from, capacity_bps, delay_ns, buffer_bytes)?))
    }

    /// Adds only the link `from -> to`, named like those of [`Network::connect`].
    pub fn arc(
        &mut self,
        from: NodeId,
        to: NodeId,
        capacity_bps: f64,
        delay_ns: Ns,
        buffer_bytes: Option<u64>,
    ) -> Result<LinkId, InputError> {
        let id = self.free_id(from, to);
        self.add(Link { id, from: Some(from), to: Some(to), capacity_bps, delay_ns, buffer_bytes })
    }

    /// The first unused id of a link from `a` to `b`: `A->B`, then `A->B#1`, `A->B#2`, ...
    pub fn free_id(&self, a: NodeId, b: NodeId) -> String {
        let base = format!("{}->{}", self.nodes[a].name, self.nodes[b].name);
        let taken = |id: &str| self.link_by_id.contains_key(id) || self.read.down.contains_key(id);
        if !taken(&base) {
            return base;
        }
        // Doubling, then bisection: thousands of parallel links need few look-ups.
        let used = |k: u64| taken(&format!("{base}#{k}"));
        let (mut last, mut free) = (0, 1);
        while used(free) {
            (last, free) = (free, 2 * free);
        }
        while free - last > 1 {
            let middle = last + (free - last) / 2;
            if used(middle) { last = middle } else { free = middle }
        }
        format!("{base}#{free}")
    }

    /// Notes on how the network file was read, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        [self.read.notes.clone(), self.left_out()].concat()
    }

    /// Adds notes.
    pub(crate) fn note_all(&mut self, notes: impl IntoIterator<Item = String>) {
        self.read.notes.extend(notes);
    }

    /// Whether the link with this id was omitted because its capacity is 0.
    pub fn is_down(&self, id: &str) -> bool {
        self.read.down.contains_key(id)
    }

    /// Whether links were omitted because their capacity is 0.
    pub fn has_down(&self) -> bool {
        !self.read.down.is_empty()
    }

    /// The links that were omitted because their capacity is 0, by id.
    pub fn down(&self) -> impl Iterator<Item = &Link> {
        self.read.down.values()
    }

    /// Records an omitted link of capacity 0.
    pub(crate) fn leave_out_link(&mut self, link: Link) {
        self.read.down.insert(link.id.clone(), link);
    }

    /// Records an omitted edge: a self-loop, or of capacity 0. An edge of capacity 0 still uses up its links' names; a
    /// directed one may have the id of `like`.
    pub(crate) fn leave_out(&mut self, directed: bool, like: Link) {
        let (Some(from), Some(to)) = (like.from, like.to) else { return };
        if from == to {
            self.read.loops += 1;
            return;
        }
        let ends = [(from, to), (to, from)];
        for (a, b) in ends.into_iter().take(if directed { 1 } else { 2 }) {
            let id = if directed && !like.id.is_empty() { like.id.clone() } else { self.free_id(a, b) };
            self.leave_out_link(Link { id, from: Some(a), to: Some(b), ..like.clone() });
        }
    }

    /// Omitted links: those of capacity 0, and self-loops.
    fn left_out(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.read.loops > 0 {
            notes.push(format!("{} edges lead to their own node and are left out", self.read.loops));
        }
        if let Some((first, _)) = self.read.down.first_key_value() {
            let count = self.read.down.len();
            notes.push(format!("{count} links have the capacity 0 and are down, the first of them \"{first}\""));
        }
        notes
    }

    /// A note on the nodes whose kind was inferred, since the network does not state it.
    pub fn guess_note(&self) -> Option<String> {
        let Guess { unmarked, hosts } = self.read.guess?;
        let nodes = self.nodes.len();
        let hint = "give the nodes the attribute kind, \"host\" or \"switch\", or name the hosts beside the network: hosts = \"all\", or a \
                    list";
        Some(if unmarked < nodes {
            format!(
                "{unmarked} of {nodes} nodes have no kind: {hosts} of them, with one neighbour, count as hosts, and the others as \
                 switches; {hint}"
            )
        } else {
            let which = if hosts < nodes { "those with one neighbour" } else { "for all have neighbours" };
            format!(
                "{hosts} of {nodes} nodes send and receive, {which}: the network does not say of each node whether it is a host, \
                 so {hint}"
            )
        })
    }

    /// Whether only some of the nodes are hosts, and the kind of some was inferred.
    pub fn guesses_some(&self) -> bool {
        self.read.guess.is_some() && self.hosts().count() < self.nodes.len()
    }

    pub(crate) fn set_guess(&mut self, guess: Option<Guess>) {
        self.read.guess = guess;
    }

    /// NIC scheduling of the hosts.
    pub fn nic(&self) -> Nic {
        self.nic
    }

    /// Sets the NIC scheduling of all hosts.
    pub fn set_nic(&mut self, nic: Nic) {
        self.nic = nic;
    }

    /// All links, indexed by [`LinkId`].
    pub fn links(&self) -> &IdVec<LinkId, Link> {
        &self.links
    }

    /// All nodes, indexed by [`NodeId`].
    pub fn nodes(&self) -> &IdVec<NodeId, Node> {
        &self.nodes
    }

    /// The link `id`, to change its capacity, delay or buffer. Its ends and its id must stay.
    pub fn link_mut(&mut self, id: LinkId) -> &mut Link {
        &mut self.links[id]
    }

    /// The links that leave `node`.
    pub fn out_links(&self, node: NodeId) -> &[LinkId] {
        &self.out[node]
    }

    /// The link called `id`.
    pub fn find_link(&self, id: &str) -> Option<LinkId> {
        self.link_by_id.get(id).copied()
    }

    /// The node called `name`.
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.node_by_name.get(name).copied()
    }

    /// The hosts, in the order they were added.
    pub fn hosts(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes.iter_enumerated().filter(|(_, node)| node.kind == NodeKind::Host).map(|(id, _)| id)
    }

    /// For each link its reverse link: the k-th parallel link `B->A` for the k-th `A->B`.
    pub fn reverse_links(&self) -> IdVec<LinkId, Option<LinkId>> {
        let mut by_ends: HashMap<(NodeId, NodeId), Vec<LinkId>> = HashMap::new();
        for (id, link) in self.links.iter_enumerated() {
            if let (Some(a), Some(b)) = (link.from, link.to) {
                by_ends.entry((a, b)).or_default().push(id);
            }
        }
        let mut reverse_links = IdVec::filled(None, self.links.len());
        for (&(a, b), forward) in &by_ends {
            if let Some(back) = by_ends.get(&(b, a)) {
                for (&l, &t) in forward.iter().zip(back) {
                    reverse_links[l] = Some(t);
                }
            }
        }
        reverse_links
    }
}
