//! A scheme with parameters, without its types.

use subak_core::Network;
use subak_core::scheme::{Around, Doubt, Hop, Load, NodeInfo, Port, Rules, Scheme, SimulationCost};

/// A scheme with parameters, to be asked for its properties before a run.
pub trait AnyScheme {
    /// Constant properties: see [`Scheme::rules`].
    fn rules(&self) -> Rules;
    /// Estimated simulation cost: see [`Scheme::work`].
    fn work(&self, load: &Load) -> SimulationCost;
    /// Whether it sends control packets: see [`Scheme::sends_ctl`].
    fn sends_ctl(&self) -> bool;
    /// A warning for each parameter that does not suit the network: see [`Scheme::doubts`].
    fn doubts(&self, around: &Around) -> Vec<Doubt>;
    /// Whether it has a central controller.
    fn has_controller(&self, network: &Network) -> bool;
    /// Whether it has a state machine at the node.
    fn has_node(&self, node: &NodeInfo) -> bool;
    /// Whether it has state at the link that a restart clears.
    fn has_state(&self, port: &Port) -> bool;
}

/// Any scheme of Subak's.
pub(crate) struct Any<S>(pub S);

impl<S: Scheme> AnyScheme for Any<S> {
    fn rules(&self) -> Rules {
        self.0.rules()
    }
    fn work(&self, load: &Load) -> SimulationCost {
        self.0.work(load)
    }
    fn sends_ctl(&self) -> bool {
        self.0.sends_ctl()
    }
    fn doubts(&self, around: &Around) -> Vec<Doubt> {
        self.0.doubts(around)
    }
    fn has_controller(&self, network: &Network) -> bool {
        self.0.controller(network).is_some()
    }
    fn has_node(&self, node: &NodeInfo) -> bool {
        self.0.node(node).is_some()
    }
    fn has_state(&self, port: &Port) -> bool {
        self.0.hop(port).has_state()
    }
}
