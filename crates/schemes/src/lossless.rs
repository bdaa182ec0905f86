//! Common parts of schemes over a lossless network: priority flow control and its parameters, loss recovery of NICs,
//! and a queue that does not drop. A scheme uses `lossless::params!` and a field [`Rdma`] with its rules and its queue.

use crate::queue::Priority;
use subak_core::keys::{AMOUNT, ValueType};
use subak_core::scheme::{Class, Clock, Lossless, Pacing, Param, Params, Port, Recovery, Rules, Threshold};
use subak_core::{InputError, Nic};

const ABOUT: &str = "priority flow control: threshold of the bytes buffered in a switch from one ingress link, above which the link is paused";

/// The parameter `pfc` of a scheme that requires a lossless network.
pub const PFC: Param = Param::choice("pfc", &["dynamic", "static", "off"], ABOUT);
/// The parameter `pfc` of a scheme that does not require a lossless network.
pub const PFC_OFF: Param = Param::choice("pfc", &["off", "dynamic", "static"], ABOUT);
/// Values of `pfc` under which switches are lossless.
const ON: &[&str] = &["dynamic", "static"];

/// Parameter `pfc_alpha`: dynamic PFC threshold, as a multiple of the free buffer.
pub const ALPHA: Param = Param::number(
    "pfc_alpha",
    0.125,
    AMOUNT,
    "dynamic threshold, as a multiple of the free buffer of the switch; doubled, up to 1, for each time that a link's \
     rate has to be halved to be at most the slowest host's (HPCC's released simulator)",
)
.only("pfc", &["dynamic"]);
/// Parameter `pfc_reserve`: bytes per ingress link that do not count against the threshold.
pub const RESERVE: Param = Param::number(
    "pfc_reserve",
    0.0,
    ValueType::Bytes,
    "buffer of each ingress link that does not count against the threshold; HPCC's released simulator has 4096",
)
.only("pfc", ON);
/// Parameter `pfc_threshold`: static PFC threshold, bytes.
pub const THRESHOLD: Param =
    Param::number("pfc_threshold", 65_536.0, ValueType::Bytes, "static threshold").only("pfc", &["static"]);
/// Parameter `pfc_resume`: bytes below the threshold at which a paused link resumes.
pub const RESUME: Param =
    Param::number("pfc_resume", 3000.0, ValueType::Bytes, "bytes below the threshold at which a paused link resumes")
        .only("pfc", ON);
/// Parameter `pfc_buffer`: shared buffer of a switch, bytes.
pub const BUFFER: Param = Param::number(
    "pfc_buffer",
    0.0,
    ValueType::Bytes,
    "buffer that the ports of a switch share, headroom included; 0: the sum of its ports' buffers, and headroom on top, \
     in all at most the 64 MB of a large chip where the network says nothing of buffers",
).only("pfc", ON);
/// Parameter `pfc_headroom`: buffer for arrivals after a pause frame is sent, bytes.
pub const HEADROOM: Param = Param::number(
    "pfc_headroom",
    0.0,
    ValueType::Bytes,
    "buffer for arrivals after a pause frame is sent; 0: the largest possible amount",
)
.only("pfc", ON);
/// Parameter `recovery`: go-back-N, or selective retransmission.
pub const RECOVERY: Param = Param::choice(
    "recovery",
    &["go-back-n", "selective"],
    "retransmission after a loss: everything from the first missing segment on, or only missing segments",
);
/// Parameter `rto_min`: minimum RTO.
pub const RTO_MIN: Param = Param::number(
    "rto_min",
    0.0,
    ValueType::Time,
    "minimum RTO; 0: the RTT when all buffers of the path are full, which switches share",
);

/// Parameter `clock`: whether packet times are exact or cut to whole nanoseconds.
pub const CLOCK: Param = Param::choice(
    "clock",
    &["exact", "whole-ns"],
    "times of packets on links and between paced packets: exact, or cut to whole nanoseconds as in HPCC's released simulator, \
     where 1048 bytes at 100 Gb/s take 83 ns and not 83.84",
);

/// Parameter `new_rate`: whether a new rate applies at once or from the next packet on.
pub const NEW_RATE: Param = Param::choice(
    "new_rate",
    &["at-once", "next-packet"],
    "time at which a new rate applies: at once, also to a gap in progress, or from the next packet on, as in HPCC's released \
     simulator for DCQCN and TIMELY",
);
/// Parameter `nic_timer`: whether a NIC has one timer per flow or one in all.
pub const NIC_TIMER: Param = Param::choice(
    "nic_timer",
    &["each-flow", "one"],
    "timers of a NIC: one for each flow, or one in all as in HPCC's released simulator; set for one flow, that misses the \
     time of another that became faster, until a packet arrives or leaves",
);

/// Declares a scheme's own parameters followed by those of a lossless network.
macro_rules! params {
    ($($own:expr),* $(,)?) => {
        &[
            $($own,)*
            $crate::lossless::ACKS,
            $crate::lossless::PFC,
            $crate::lossless::ALPHA,
            $crate::lossless::RESERVE,
            $crate::lossless::THRESHOLD,
            $crate::lossless::RESUME,
            $crate::lossless::BUFFER,
            $crate::lossless::HEADROOM,
            $crate::lossless::RECOVERY,
            $crate::lossless::RTO_MIN,
            $crate::lossless::CLOCK,
            $crate::lossless::NEW_RATE,
            $crate::lossless::NIC_TIMER,
        ]
    };
}
pub(crate) use params;

/// Parameter `acks`: links at which ACKs have priority over data.
pub const ACKS: Param = Param::choice(
    "ack_priority",
    &["behind-data", "first-at-nic", "first"],
    "links at which ACKs have priority over data: none, their own host's, or all",
);

/// Links at which ACKs have priority over data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acks {
    /// ACKs have priority at no link.
    BehindData,
    /// ACKs have priority at their own host's link. Pauses of data also stop them.
    FirstAtNic,
    /// ACKs have priority at all links, and pauses of data do not stop them.
    First,
}

impl Acks {
    /// Reads the parameter `acks`.
    fn of(params: &Params) -> Acks {
        match params.word("ack_priority") {
            "first-at-nic" => Acks::FirstAtNic,
            "first" => Acks::First,
            _ => Acks::BehindData,
        }
    }

    /// Class of ACKs, if it is not that of data.
    pub(crate) fn class(self) -> Option<Class> {
        (self == Acks::First).then_some(Class::Control)
    }
}

/// Parameters of a lossless network.
#[derive(Debug, Clone, Copy)]
pub struct Rdma {
    /// Priority flow control; `None` if it is off.
    pub pfc: Option<Lossless>,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Priority of ACKs over data.
    pub acks: Acks,
    /// Resolution of packet times on links.
    pub clock: Clock,
    /// Way in which NICs apply new pacing rates and set timers.
    pub pacing: Pacing,
}

impl Rdma {
    /// Reads the parameters that [`params!`] declares.
    pub fn new(params: &Params) -> Result<Self, InputError> {
        let clock = if params.word("clock") == "whole-ns" { Clock::WholeNs } else { Clock::Exact };
        let pacing = Pacing {
            late_rates: params.word("new_rate") == "next-packet",
            one_timer: params.word("nic_timer") == "one",
        };
        Ok(Rdma { pfc: read(params)?, recovery: recovery(params), acks: Acks::of(params), clock, pacing })
    }

    /// Rules of a scheme over this network. NICs pace flows and serve them round robin.
    pub fn rules(&self) -> Rules {
        Rules {
            recovery: self.recovery,
            lossless: self.pfc,
            acks: self.acks.class(),
            nic: Some(Nic::TakesTurns),
            clock: self.clock,
            pacing: self.pacing,
            ..Rules::default()
        }
    }

    /// The output queue of a port: strict priority with control packets first.
    pub fn queue(&self, port: &Port) -> Priority {
        Priority::new(room_bytes(self.pfc, port)).with_acks_first_at_nic(self.acks == Acks::FirstAtNic)
    }
}

/// Reads the PFC parameters; `None` if PFC is off.
pub fn read(params: &Params) -> Result<Option<Lossless>, InputError> {
    let threshold = match params.word("pfc") {
        "off" => return Ok(None),
        "static" => Threshold::Static(params.within("pfc_threshold", 1.0, 1e12)? as u64),
        _ => Threshold::Dynamic(params.within("pfc_alpha", 1e-6, 1e3)?),
    };
    let or_default = |name| Some(params.number(name) as u64).filter(|&bytes| bytes > 0);
    Ok(Some(Lossless {
        threshold,
        resume_bytes: params.number("pfc_resume") as u64,
        reserve_bytes: params.number("pfc_reserve") as u64,
        buffer_bytes: or_default("pfc_buffer"),
        headroom_bytes: or_default("pfc_headroom"),
    }))
}

/// Loss recovery that the parameters [`RECOVERY`] and [`RTO_MIN`] select.
fn recovery(params: &Params) -> Recovery {
    let go_back = params.word("recovery") == "go-back-n";
    let rto_min_ns = params.ns("rto_min");
    match go_back {
        true => Recovery { reorder: None, probe: false, rto_min_ns, go_back, ..Recovery::default() },
        false => Recovery { rto_min_ns, ..Recovery::default() },
    }
}

/// Priority flow control as its parameters have it by default.
pub const DEFAULT: Lossless = Lossless {
    threshold: Threshold::Dynamic(0.125),
    resume_bytes: 3000,
    reserve_bytes: 0,
    buffer_bytes: None,
    headroom_bytes: None,
};

/// Size of the queue before a link, bytes. In a lossless switch the shared buffer is the only bound.
pub fn room_bytes(lossless: Option<Lossless>, port: &Port) -> u64 {
    if lossless.is_some() { u64::MAX } else { port.buffer_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hpcc::Hpcc;
    use serde_json::json;
    use subak_core::scheme::Named;

    fn params(given: serde_json::Value) -> Params {
        Params::resolve(&Hpcc::INFO, given.as_object().unwrap()).unwrap()
    }

    #[test]
    fn parameters_become_rules() {
        assert_eq!(read(&params(json!({"pfc": "off"}))), Ok(None));
        assert_eq!(read(&params(json!({}))), Ok(Some(DEFAULT)));
        let fixed = read(&params(json!({"pfc": "static", "pfc_threshold": "20KB", "pfc_buffer": "1MB"}))).unwrap();
        let fixed = fixed.unwrap();
        assert_eq!((fixed.threshold, fixed.buffer_bytes), (Threshold::Static(20_000), Some(1_000_000)));
        assert_eq!((fixed.resume_bytes, fixed.headroom_bytes), (3000, None));
        assert!(read(&params(json!({"pfc_alpha": 0}))).unwrap_err().hint.contains("from 0.000001"));
        assert!(recovery(&params(json!({}))).go_back);
        assert_eq!(recovery(&params(json!({"recovery": "selective"}))).reorder, Some(3));
    }
}
