//! Rust declarations of `include/subak_scheme.h`: the structures and functions that a library and Subak share.

use crate::telemetry::Record;
use std::ffi::{c_char, c_void};

/// Version of the table; a library with another version is refused.
pub const VERSION: u32 = 2;

/// A parameter: a number with a unit.
#[repr(C)]
pub struct CParam {
    pub name: *const c_char,
    pub value: f64,
    pub unit: *const c_char,
    pub about: *const c_char,
}

/// A path of a subflow.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CPath {
    pub line_rate_bps: f64,
    pub min_capacity_bps: f64,
    pub base_rtt_ns: u64,
    pub hops: u32,
    pub id: u32,
}

/// A flow at its start, as a source is created.
#[repr(C)]
pub struct CFlow {
    pub weight: f64,
    pub size_bytes: u64,
    pub demand_bps: f64,
    pub rtt_ns: u64,
    pub seed: u64,
    pub paths: *const CPath,
    pub subflows: u32,
    pub flow: u32,
    pub mss_bytes: u32,
    pub mtu_bytes: u32,
}

/// An output port, with its queue length at the time of the call.
#[repr(C)]
pub struct CPort {
    pub capacity_bps: f64,
    pub delay_ns: u64,
    pub buffer_bytes: u64,
    pub queued_bytes: u64,
    pub rtt_ns: u64,
    pub seed: u64,
    pub link: u32,
    pub queued_packets: u32,
    pub mtu_bytes: u32,
}

/// A packet that a hook reads, and may change.
#[repr(C)]
pub struct CPacket {
    pub numbers: [f64; super::NUMBERS],
    pub sent_ns: u64,
    pub waited_ns: u64,
    pub flow: u32,
    pub bytes: u32,
    pub payload_bytes: u32,
    pub segment: u32,
    pub hop: u32,
    pub subflow: u8,
    pub is_data: u8,
    pub ecn: u8,
    pub class: u8,
}

/// An ACK that a source receives.
#[repr(C)]
pub struct CAck {
    pub numbers: [f64; super::NUMBERS],
    pub acked_bytes: u64,
    pub rtt_ns: u64,
    pub in_flight_bytes: u64,
    pub remaining_bytes: u64,
    pub links: *const Record,
    pub link_count: u32,
    pub path_id: u32,
    pub segment: u32,
    pub next_segment: u32,
    pub subflow: u8,
    pub ecn: u8,
}

/// Segments that a source has marked lost.
#[repr(C)]
pub struct CLoss {
    pub in_flight_bytes: u64,
    pub segment: u32,
    pub next_segment: u32,
    pub subflow: u8,
    pub kind: u8,
}

/// Position of a control message on its path.
#[repr(C)]
pub struct CVisit {
    pub flow: u32,
    pub hop: u32,
    pub subflow: u8,
    pub forward: u8,
}

/// Functions by which a state machine sends requests to the simulator.
#[repr(C)]
pub struct CIo {
    pub now_ns: u64,
    pub pace: extern "C" fn(*mut CIo, u32, f64, f64),
    pub timer: extern "C" fn(*mut CIo, u32, u64),
    pub send: extern "C" fn(*mut CIo, u32, *const f64, u32, u32),
    pub pause: extern "C" fn(*mut CIo, u32, u32),
    pub random: extern "C" fn(*mut CIo) -> f64,
    pub note: extern "C" fn(*mut CIo, i32, *const c_char, f64),
    pub fail: extern "C" fn(*mut CIo, *const c_char),
    pub context: *mut c_void,
}

/// Pointer to a state machine or a scheme that the library created.
pub type CMachine = *mut c_void;
/// A hook whose only arguments are the machine and its `io`.
pub type Plain = Option<unsafe extern "C" fn(CMachine, *mut CIo)>;

/// Flag of a table: switches are lossless.
pub const LOSSLESS: u64 = 1;
/// Flag of a table: receivers drop segments out of order.
pub const GO_BACK_N: u64 = 2;
/// Flag of a table: hosts serve their flows round robin.
pub const ROUND_ROBIN: u64 = 4;
/// Flag of a table: all packets of a subflow take one path.
pub const PATH_DEPENDENT: u64 = 8;

/// The table that a library exports. Functions that are null are not called.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CTable {
    pub version: u32,
    pub param_count: u32,
    pub name: *const c_char,
    pub about: *const c_char,
    pub paper: *const c_char,
    pub params: *const CParam,
    pub queue: *const c_char,
    pub mark: *const c_char,
    pub red_high: *const c_char,
    pub red_most: *const c_char,
    pub links: *const c_char,
    pub flags: u64,
    pub header_bytes: u32,
    pub ack_header_bytes: u32,
    pub rto_min_ns: u64,
    pub rto_max_ns: u64,
    pub create: Option<unsafe extern "C" fn(*const f64) -> CMachine>,
    pub destroy: Option<unsafe extern "C" fn(CMachine)>,
    pub source: Option<unsafe extern "C" fn(CMachine, *const CFlow) -> CMachine>,
    pub source_free: Option<unsafe extern "C" fn(CMachine)>,
    pub on_start: Plain,
    pub stamp: Option<unsafe extern "C" fn(CMachine, u64, *mut CPacket, u64)>,
    pub on_ack: Option<unsafe extern "C" fn(CMachine, *mut CIo, *const CAck)>,
    pub on_loss: Option<unsafe extern "C" fn(CMachine, *mut CIo, *const CLoss)>,
    pub on_timer: Option<unsafe extern "C" fn(CMachine, *mut CIo, u32)>,
    pub on_message: Option<unsafe extern "C" fn(CMachine, *mut CIo, *const f64, u32)>,
    pub on_weight: Option<unsafe extern "C" fn(CMachine, *mut CIo, f64)>,
    pub on_reroute: Option<unsafe extern "C" fn(CMachine, *mut CIo, u32, *const CPath)>,
    pub on_finish: Plain,
    pub hop: Option<unsafe extern "C" fn(CMachine, *const CPort) -> CMachine>,
    pub hop_free: Option<unsafe extern "C" fn(CMachine)>,
    pub hop_on_start: Plain,
    pub hop_on_enqueue: Option<unsafe extern "C" fn(CMachine, *mut CIo, *mut CPacket, *const CPort)>,
    pub hop_on_dequeue: Option<unsafe extern "C" fn(CMachine, *mut CIo, *mut CPacket, *const CPort)>,
    pub hop_on_message: Option<unsafe extern "C" fn(CMachine, *mut CIo, *mut f64, *const CVisit, *const CPort)>,
    pub hop_on_timer: Option<unsafe extern "C" fn(CMachine, *mut CIo, u32, *const CPort)>,
    pub hop_on_capacity: Option<unsafe extern "C" fn(CMachine, *const CPort)>,
}
