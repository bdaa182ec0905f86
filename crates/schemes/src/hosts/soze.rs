//! Soze on real hosts: settings of their kernels and switches, from the same parameters as a simulation.

use crate::over::Transport;
use crate::registry;
use crate::soze::{
    Filter, FixedVirtual, Limits, SenderRate, SenderState, Signal, SozeArithmetic, SozeLaw, SozeLinkSettings,
    SozeSettings, Virtual,
};
use crate::transports::soze::Soze;
use crate::transports::soze_virtual::SozeVirtual;
use serde_json::{Map, Value};
use subak_core::scheme::Params;
use subak_core::{InputError, Ns};

/// Parameters of Soze for a network of hosts.
#[derive(Debug, Clone, Copy)]
pub struct SozeHosts {
    link: LinkRule,
    law: SozeLaw,
    rtt_ns: Ns,
    line_rate_bps: f64,
}

#[derive(Debug, Clone, Copy)]
enum LinkRule {
    Filter(Signal, f64),
    Virtual(Virtual),
}

impl SozeHosts {
    /// Settings of `scheme` (`soze` or `soze-virtual`) with a spec's parameters. For the hosts, rates of the spec are
    /// multiplied by `scale`, and times divided by it. `rtt_ns`: largest base RTT between hosts; `line_rate_bps`:
    /// largest rate of a host's link.
    pub fn new(
        scheme: &str,
        params: &Map<String, Value>,
        scale: f64,
        rtt_ns: Ns,
        line_rate_bps: f64,
    ) -> Result<Self, InputError> {
        let params = Params::resolve(registry::find(scheme)?, params)?;
        let slow = |law: SozeLaw| SozeLaw {
            alpha_bps: law.alpha_bps * scale,
            beta_bps: law.beta_bps * scale,
            p_ns: law.p_ns / scale,
            least_p_ns: law.least_p_ns / scale,
            k_ns: law.k_ns / scale,
            arithmetic: SozeArithmetic::Fixed,
            ..law
        };
        let (law, link) = match scheme {
            "soze-virtual" => {
                let set = SozeVirtual::new(&params)?.set();
                let law = slow(set.law);
                (law, LinkRule::Virtual(Virtual { law, ..set }))
            }
            "soze" => {
                let (law, signal, filter_ns) = Soze::new(&params)?.parts();
                (slow(law), LinkRule::Filter(signal, filter_ns / scale))
            }
            _ => {
                let what = format!("scheme \"{scheme}\" is none of Soze's");
                return Err(InputError::new("scheme", what, "take soze or soze-virtual"));
            }
        };
        if law.state == SenderState::WindowOfRate {
            let what = "state is \"window-of-rate\", and hosts keep a window or a rate";
            return Err(InputError::new("params.state", what, "give window or rate, or run it in the simulator"));
        }
        Ok(SozeHosts { link, law, rtt_ns, line_rate_bps })
    }

    /// Settings of senders on a link of `most_bps`, with packets of `packet_bits` on the wire.
    pub fn sender(&self, most_bps: f64, packet_bits: u64) -> Option<SozeSettings> {
        let limits = Limits { most_bps, packet_bits, rtt_ns: self.rtt_ns };
        match SenderRate::new(&self.law, self.law.p_ns(self.rtt_ns), self.line_rate_bps, &limits) {
            SenderRate::Fixed(rate) => Some(rate.settings()),
            SenderRate::Float(_) => None,
        }
    }

    /// Settings of a link of `capacity_bps`.
    pub fn link(&self, capacity_bps: f64) -> Option<SozeLinkSettings> {
        match self.link {
            LinkRule::Filter(signal, filter_ns) => {
                Filter::new(signal, filter_ns, self.longest_ns(), capacity_bps, SozeArithmetic::Fixed).settings()
            }
            LinkRule::Virtual(set) => {
                let anew_ns = (set.anew_rtts * self.rtt_ns as f64) as u64;
                let settings = FixedVirtual::new(&set, self.rtt_ns, capacity_bps).settings();
                Some(SozeLinkSettings { anew_ns, ..settings })
            }
        }
    }

    /// k + p, ns: the delay that means the smallest expected rate/weight.
    pub fn longest_ns(&self) -> f64 {
        self.law.k_ns + self.law.p_ns(self.rtt_ns)
    }

    /// Exponent of the unit of delays in packets: 2^result ns.
    pub fn unit_shift(&self) -> u32 {
        self.law.unit(self.rtt_ns).shift()
    }
}
