//! A scheme in a shared object, behind the table of C functions in `include/subak_scheme.h`. It is the user's code and
//! can write to any memory; its requests are checked like those of all user-supplied schemes.
#![allow(unsafe_code, reason = "functions of a library are called by their addresses")]

use super::calls::{LibraryHop, LibrarySource, path_of, port_of};
use super::loaded::{Created, Loaded};
use super::table::{CFlow, CParam, CPath, CTable, GO_BACK_N, LOSSLESS, PATH_DEPENDENT, ROUND_ROBIN, VERSION};
use super::{
    AskedSchemes, BuiltInHop, Definition, Facts, Faults, Foreign, Header, Hook, Made, Makes, Marking, Notes, QueueKind,
    QueueLength, Who,
};
use crate::lossless;
use crate::telemetry::identity;
use std::ffi::{CStr, c_char};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use subak_core::keys::{Low, ValueType};
use subak_core::scheme::{
    FlowInfo, Goal, Headers, Hop, Info, Param, Params, Port, Recovery, Rules, SchemeKind, Settles, Source,
};
use subak_core::{InputError, Nic};

/// Copies the library to a new file, calls the function with the file's path, and removes the file.
pub type Copied = Arc<dyn Fn(&mut dyn FnMut(&Path)) -> std::io::Result<()> + Send + Sync>;

/// The C string at `text`; empty if the pointer is null.
fn text_at(text: *const c_char) -> String {
    // SAFETY: strings of a table end with 0.
    if text.is_null() { String::new() } else { unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned() }
}

/// Location of a table of C functions.
enum Place {
    /// A library, of which each scheme loads a copy.
    Library(Copied),
    /// An address of this process. The functions there have no state.
    Address(usize),
}

/// A scheme in a library, or behind a table of this process.
pub struct LibraryDefinition {
    place: Place,
    info: Info,
    identity: String,
    asked: AskedSchemes,
}

impl fmt::Debug for LibraryDefinition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "LibraryDefinition({})", self.info.name)
    }
}

impl LibraryDefinition {
    /// Loads the library that `copied` copies. The scheme is called `name`, or else by the name in its table.
    pub fn load(name: Option<&str>, copied: Copied) -> Result<Self, InputError> {
        LibraryDefinition::of(name, Place::Library(copied), String::new())
    }

    /// The scheme behind the table at `address` of this process, which is never freed and whose functions have no
    /// state. `compiler`: what results depend on beside the source. The scheme is called `name`, or else by the name in
    /// its table.
    pub fn at(name: Option<&str>, address: usize, compiler: &str) -> Result<Self, InputError> {
        LibraryDefinition::of(name, Place::Address(address), format!(", {compiler}"))
    }

    fn of(name: Option<&str>, place: Place, compiler: String) -> Result<Self, InputError> {
        let loaded = place.load()?;
        let table = loaded.table();
        if table.source.is_none() {
            return Err(InputError::new("library", "its table has no source", "set source, which makes a sender"));
        }
        let leak = |text: String| -> &'static str { text.leak() };
        let or = |text: String, other: &str| if text.is_empty() { other.to_string() } else { text };
        let info = Info {
            name: leak(name.map_or_else(|| or(text_at(table.name), "library"), str::to_string)),
            about: leak(or(text_at(table.about), "a scheme of the user's, in a library")),
            paper: leak(or(text_at(table.paper), "none")),
            kind: SchemeKind::Reactive,
            lives_on_control: false,
            goal: Goal::Own,
            // Weights are accepted, because the table does not say whether sources use them.
            weights: true,
            params: params(table)?.leak(),
            settles: Settles::NEVER,
            ..Info::DEFAULT
        };
        facts(table, &[], &info)?;
        let identity = format!("subak_scheme.h {VERSION}{compiler}");
        Ok(LibraryDefinition { place, info, identity, asked: AskedSchemes::default() })
    }
}

impl Place {
    /// The table. A library is loaded from a new file, so that it shares no state with an earlier load.
    fn load(&self) -> Result<Loaded, InputError> {
        let copied = match self {
            Place::Library(copied) => copied,
            Place::Address(address) => return Loaded::at(*address),
        };
        let mut loaded = None;
        copied(&mut |path| loaded = Some(Loaded::open(path))).map_err(|e| {
            let hint = "make room for temporary files, or set TMPDIR";
            InputError::new("library", format!("it cannot be copied: {e}"), hint)
        })?;
        loaded.unwrap_or_else(|| Err(InputError::new("library", "there is no copy of it", "")))
    }
}

fn params(table: &CTable) -> Result<Vec<Param>, InputError> {
    if table.param_count > 0 && table.params.is_null() {
        return Err(InputError::new("library", "its table counts parameters and has none", "set params"));
    }
    let given: &[CParam] = match table.param_count {
        0 => &[],
        // SAFETY: the table declares `param_count` parameters.
        count => unsafe { std::slice::from_raw_parts(table.params, count as usize) },
    };
    given.iter().map(param).collect()
}

fn param(given: &CParam) -> Result<Param, InputError> {
    let name: &'static str = text_at(given.name).leak();
    let value_type = match text_at(given.unit).as_str() {
        "" => ValueType::Number(Low::From(f64::MIN), f64::MAX),
        "packets" => ValueType::Packets,
        "bytes" => ValueType::Bytes,
        "s" => ValueType::Time,
        "bit/s" => ValueType::Rate,
        unit => {
            let what = format!("unknown unit \"{unit}\"");
            return Err(InputError::new(format!("params.{name}"), what, "give \"\", packets, bytes, s or bit/s"));
        }
    };
    if !given.value.is_finite() {
        return Err(InputError::new(format!("params.{name}"), "its default is no number", "give one"));
    }
    let about: &'static str = text_at(given.about).leak();
    Ok(Param::number(name, given.value, value_type, if about.is_empty() { "of the user's scheme" } else { about }))
}

/// Properties in the table, for the parameters' values `values`. Without values, only the names are checked, and a
/// marking threshold is 0.
fn facts(table: &CTable, values: &[f64], info: &Info) -> Result<Facts, InputError> {
    let queue = match text_at(table.queue).as_str() {
        "" | "Fifo" => QueueKind::Fifo,
        "Priority" => QueueKind::Priority,
        "Rank" => QueueKind::Rank,
        "Stfq" => QueueKind::Stfq,
        other => {
            let what = format!("its table has an unknown queue, \"{other}\"");
            return Err(InputError::new("library", what, "give Fifo, Priority, Rank or Stfq"));
        }
    };
    let hop = match text_at(table.links).as_str() {
        "" => BuiltInHop::None,
        "LargestWait" => BuiltInHop::LargestWait(0),
        "Telemetry" => BuiltInHop::Telemetry,
        other => {
            let what = format!("its table has unknown state at links, \"{other}\"");
            return Err(InputError::new("library", what, "give Telemetry, LargestWait or NULL"));
        }
    };
    let sees_packets = table.stamp.is_some() || table.hop_on_enqueue.is_some() || table.hop_on_dequeue.is_some();
    if hop == BuiltInHop::Telemetry && (sees_packets || matches!(queue, QueueKind::Rank | QueueKind::Stfq)) {
        let what = "its table has Telemetry, whose packets have no numbers, and a hook or queue that reads them";
        return Err(InputError::new(
            "library",
            what,
            "leave stamp, hop_on_enqueue, hop_on_dequeue, Rank and Stfq away",
        ));
    }
    let has = |flag| table.flags & flag > 0;
    if table.flags & !(LOSSLESS | GO_BACK_N | ROUND_ROBIN | PATH_DEPENDENT) > 0 {
        let what = format!("its table has unknown flags, {:#x}", table.flags);
        return Err(InputError::new("library", what, "give a sum of the flags that subak_scheme.h names, or 0"));
    }
    if has(LOSSLESS) && !matches!(queue, QueueKind::Priority) {
        let what = "its table is lossless, and its queue cannot be paused";
        return Err(InputError::new("library", what, "give the queue \"Priority\""));
    }
    let rto_max_ns = if table.rto_max_ns > 0 { table.rto_max_ns } else { Recovery::default().rto_max_ns };
    let recovery = match has(GO_BACK_N) {
        true => Recovery { reorder: None, probe: false, go_back: true, ..Recovery::default() },
        false => Recovery::default(),
    };
    let rules = Rules {
        recovery: Recovery { rto_min_ns: table.rto_min_ns, rto_max_ns, ..recovery },
        headers: Headers { data_bytes: table.header_bytes.min(1000), ack_bytes: table.ack_header_bytes.min(1000) },
        lossless: has(LOSSLESS).then_some(lossless::DEFAULT),
        nic: has(ROUND_ROBIN).then_some(Nic::TakesTurns),
        one_path: has(PATH_DEPENDENT),
        ..Rules::default()
    };
    Ok(Facts { rules, queue, marks: marking(table, values, info)?, hop, has_controller: false })
}

/// The marking that the table declares, whose parameters have the values `values`.
fn marking(table: &CTable, values: &[f64], info: &Info) -> Result<Option<Marking>, InputError> {
    let [mark, high, most] = [table.mark, table.red_high, table.red_most].map(text_at);
    if mark.is_empty() {
        let is_red = !high.is_empty() || !most.is_empty();
        let refusal = || InputError::new("library", "its table has red_high or red_most without mark", "set mark, too");
        return if is_red { Err(refusal()) } else { Ok(None) };
    }
    let red = match (high.is_empty(), most.is_empty()) {
        (true, true) => None,
        (false, false) => {
            let place = info.params.iter().position(|p| p.key.name == most).ok_or_else(|| {
                let what = format!("its table has red_most = \"{most}\", which is no parameter");
                InputError::new("library", what, "declare it in params")
            })?;
            let most = values.get(place).copied().unwrap_or_default();
            if !(0.0..=1.0).contains(&most) {
                let what = format!("red_most is {most}");
                return Err(InputError::new(
                    format!("params.{}", info.params[place].key.name),
                    what,
                    "give a number from 0 to 1",
                ));
            }
            let (low, high) = (queue_length(&mark, values, info)?, queue_length(&high, values, info)?);
            low.check_below(high).map_err(|e| e.below("params"))?;
            Some((high, most))
        }
        _ => {
            return Err(InputError::new(
                "library",
                "its table has one of red_high and red_most",
                "set both, or neither",
            ));
        }
    };
    Ok(Some(Marking { threshold: queue_length(&mark, values, info)?, param: mark, red }))
}

/// The queue length that the parameter called `name` sets.
fn queue_length(name: &str, values: &[f64], info: &Info) -> Result<QueueLength, InputError> {
    let refuse = || {
        let what = format!("its table marks by \"{name}\", which is no parameter in packets or bytes");
        InputError::new("library", what, "declare it in params")
    };
    let place = info.params.iter().position(|p| p.key.name == name).ok_or_else(refuse)?;
    let value = values.get(place).copied().unwrap_or_default();
    match info.params[place].key.value_type {
        ValueType::Packets => Ok(QueueLength::Packets(value)),
        ValueType::Bytes => Ok(QueueLength::Bytes(value)),
        _ => Err(refuse()),
    }
}

impl Definition for LibraryDefinition {
    fn info(&self) -> &Info {
        &self.info
    }
    fn identity(&self) -> &str {
        &self.identity
    }
    fn make(&self, params: &Params) -> Result<Made, InputError> {
        let loaded = self.place.load()?;
        let table = loaded.table();
        let values: Vec<f64> = self.info.params.iter().map(|p| params.number(p.key.name)).collect();
        // SAFETY: the header declares one value per parameter.
        let scheme = table.create.map(|create| unsafe { create(values.as_ptr()) });
        if scheme.is_some_and(|scheme| scheme.is_null()) {
            return Err(InputError::new("params", "the library refuses them", "see what its create() wants"));
        }
        let facts = facts(table, &values, &self.info)?;
        let faults = Faults::of(self.info.name);
        let has_numbers = table.stamp.is_some()
            || table.hop_on_enqueue.is_some()
            || table.hop_on_dequeue.is_some()
            || facts.hop != BuiltInHop::None
            || !matches!(facts.queue, QueueKind::Fifo);
        let has_telemetry = facts.hop == BuiltInHop::Telemetry;
        let scheme = scheme.unwrap_or(std::ptr::null_mut());
        let scheme =
            Arc::new(LibraryScheme(Arc::new(Created { loaded, scheme, facts, faults, notes: Notes::default() })));
        Ok(match (has_telemetry, has_numbers) {
            (true, _) => Made::WithTelemetry(Foreign(scheme)),
            (false, true) => Made::WithNumbers(Foreign(scheme)),
            (false, false) => Made::Plain(Foreign(scheme)),
        })
    }
    fn asked(&self, params: &Params) -> Result<Made, InputError> {
        self.asked.get(params, || self.make(params))
    }
    fn is_parallel(&self) -> bool {
        false
    }
}

struct LibraryScheme(Arc<Created>);

impl<D: Header> Makes<D> for LibraryScheme {
    fn facts(&self) -> &Facts {
        &self.0.facts
    }
    fn faults(&self) -> &Faults {
        &self.0.faults
    }
    fn notes(&self) -> Option<&Notes> {
        Some(&self.0.notes)
    }
    fn source(&self, flow: &FlowInfo) -> Box<dyn Source<Foreign<D>>> {
        let id = |k| flow.links.get(k).map_or(0, |links| identity(links));
        let paths: Vec<CPath> = flow.paths.iter_enumerated().map(|(k, path)| path_of(path, id(k))).collect();
        let shown = CFlow {
            weight: flow.weight,
            size_bytes: flow.size_bytes.unwrap_or(u64::MAX),
            demand_bps: flow.demand_bps,
            rtt_ns: flow.rtt_ns,
            seed: flow.seed,
            paths: paths.as_ptr(),
            subflows: paths.len() as u32,
            flow: flow.flow.0,
            mss_bytes: flow.mss_bytes,
            mtu_bytes: flow.mtu_bytes,
        };
        // SAFETY: the arguments are those that the header declares.
        let made = self.0.table().source.map(|source| unsafe { source(self.0.scheme, &raw const shown) });
        let machine = made.unwrap_or(std::ptr::null_mut());
        if machine.is_null() {
            let hook = Hook { name: "source", who: Who::Flow(flow.flow), at_ns: 0 };
            self.0.faults.note(hook, "it returned NULL", "return a sender");
        }
        Box::new(LibrarySource::new(Arc::clone(&self.0), machine, flow))
    }
    fn hop(&self, port: &Port) -> Option<Box<dyn Hop<Foreign<D>>>> {
        let make = self.0.table().hop?;
        let shown = port_of(port);
        // SAFETY: the arguments are those that the header declares.
        let machine = unsafe { make(self.0.scheme, &raw const shown) };
        if machine.is_null() {
            return None;
        }
        Some(Box::new(LibraryHop::new(Arc::clone(&self.0), machine, port)))
    }
}
