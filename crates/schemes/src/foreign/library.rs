//! A scheme in a shared object, behind a table of C functions: `include/subak_scheme.h`. It is the user's code, which nothing
//! can keep from writing anywhere; what it asks for is checked as of all others.
#![allow(unsafe_code, reason = "functions of a library are called by their addresses")]

use super::calls::{LibraryHop, LibrarySource};
use super::table::{CFlow, CMachine, CParam, CPath, CTable, VERSION};
use super::{Definition, Facts, Faults, Foreign, Hook, Makes, Marks, QueueKind, Who};
use libloading::Library;
use std::ffi::{CStr, c_char};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use subak_core::InputError;
use subak_core::keys::{Low, ValueType};
use subak_core::scheme::{
    FlowInfo, Goal, Headers, Hop, Info, Param, Params, PathInfo, Port, Recovery, SchemeKind, Settles, Source,
};

/// Calls a function with a copy of the library, a file of its own, and removes it.
pub type Copied = Arc<dyn Fn(&mut dyn FnMut(&Path)) -> std::io::Result<()> + Send + Sync>;

/// A library that is loaded; its table lives as long.
pub(super) struct Loaded {
    table: *const CTable,
    _library: Library,
}

// The table is never written, and the functions of a trial are called by one thread.
unsafe impl Send for Loaded {}
unsafe impl Sync for Loaded {}

impl Loaded {
    /// The table.
    pub fn table(&self) -> &CTable {
        // SAFETY: `open` saw that it is there; the library stays loaded.
        unsafe { &*self.table }
    }

    /// Loads the library in the file `path`; refuses one without a table, or with another version of it.
    fn open(path: &Path) -> Result<Self, InputError> {
        let refuse = |what: String, hint: &str| InputError::new("library", what, hint);
        // SAFETY: to load a library runs its initializers: it is the user's own.
        let library = unsafe { Library::new(path) }
            .map_err(|e| refuse(format!("it cannot be loaded: {e}"), "build it with cc -shared -fPIC"))?;
        // SAFETY: the type is that of the header.
        let found = unsafe { library.get::<unsafe extern "C" fn() -> *const CTable>(b"subak_scheme") };
        let export = found.map_err(|_| {
            refuse("it exports no function subak_scheme".into(), "include subak_scheme.h, and return the table from it")
        })?;
        // SAFETY: the function takes nothing.
        let table = unsafe { export() };
        // SAFETY: a table begins with its version, whatever follows.
        let version = if table.is_null() { 0 } else { unsafe { (*table).version } };
        if version != VERSION {
            let what = format!("its table has version {version}, and this is {VERSION}");
            return Err(refuse(what, "build it with the header of this version, and version = SUBAK_SCHEME_VERSION"));
        }
        Ok(Loaded { table, _library: library })
    }
}

/// The text at `text`; empty where there is none.
fn text_at(text: *const c_char) -> String {
    // SAFETY: texts of a table end with 0.
    if text.is_null() { String::new() } else { unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned() }
}

/// A scheme in a library.
pub struct LibraryDefinition {
    copied: Copied,
    info: Info,
}

impl fmt::Debug for LibraryDefinition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "LibraryDefinition({})", self.info.name)
    }
}

impl LibraryDefinition {
    /// Of the library that `copied` writes, under `name` where it is given one.
    pub fn load(name: Option<&str>, copied: Copied) -> Result<Self, InputError> {
        let loaded = fresh(&copied)?;
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
            // Whether its sources look at a flow's weight is not known.
            weights: true,
            params: params(table)?.leak(),
            settles: Settles::NEVER,
        };
        facts(table, &[], &info)?;
        Ok(LibraryDefinition { copied, info })
    }
}

/// The library, loaded from a file of its own: it shares no state with one that was loaded before.
fn fresh(copied: &Copied) -> Result<Loaded, InputError> {
    let mut loaded = None;
    copied(&mut |path| loaded = Some(Loaded::open(path))).map_err(|e| {
        InputError::new("library", format!("it cannot be copied: {e}"), "make room for temporary files, or set TMPDIR")
    })?;
    loaded.unwrap_or_else(|| Err(InputError::new("library", "there is no copy of it", "")))
}

fn params(table: &CTable) -> Result<Vec<Param>, InputError> {
    if table.param_count > 0 && table.params.is_null() {
        return Err(InputError::new("library", "its table counts parameters and has none", "set params"));
    }
    let given: &[CParam] = match table.param_count {
        0 => &[],
        // SAFETY: the table says that there are so many.
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

/// What the table says of the scheme with the numbers `values` as parameters; none: their defaults.
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
    let marks = match text_at(table.mark) {
        name if name.is_empty() => None,
        name => Some(marks(&name, values, info)?),
    };
    let rto_max_ns = if table.rto_max_ns > 0 { table.rto_max_ns } else { Recovery::default().rto_max_ns };
    Ok(Facts {
        recovery: Recovery { rto_min_ns: table.rto_min_ns, rto_max_ns, ..Recovery::default() },
        headers: Headers { data_bytes: table.header_bytes.min(1000), ack_bytes: table.ack_header_bytes.min(1000) },
        queue,
        marks,
        ..Facts::default()
    })
}

fn marks(name: &str, values: &[f64], info: &Info) -> Result<(String, Marks), InputError> {
    let refuse = || {
        let what = format!("its table marks by \"{name}\", which is no parameter in packets or bytes");
        InputError::new("library", what, "declare it in params")
    };
    let place = info.params.iter().position(|p| p.key.name == name).ok_or_else(refuse)?;
    let value = values.get(place).copied().unwrap_or_default();
    match info.params[place].key.value_type {
        ValueType::Packets => Ok((name.to_string(), Marks::Packets(value))),
        ValueType::Bytes => Ok((name.to_string(), Marks::Bytes(value))),
        _ => Err(refuse()),
    }
}

impl Definition for LibraryDefinition {
    fn info(&self) -> &Info {
        &self.info
    }
    fn identity(&self) -> &str {
        "subak_scheme.h 1"
    }
    fn make(&self, params: &Params) -> Result<Foreign, InputError> {
        let loaded = fresh(&self.copied)?;
        let table = loaded.table();
        let values: Vec<f64> = self.info.params.iter().map(|p| params.number(p.key.name)).collect();
        // SAFETY: as the header says; there are as many values as parameters.
        let scheme = table.create.map(|create| unsafe { create(values.as_ptr()) });
        if scheme.is_some_and(|scheme| scheme.is_null()) {
            return Err(InputError::new("params", "the library refuses them", "see what its create() wants"));
        }
        let facts = facts(table, &values, &self.info)?;
        let faults = Faults::of(self.info.name);
        Ok(Foreign(Arc::new(LibraryScheme(Arc::new(Created {
            loaded,
            scheme: scheme.unwrap_or(std::ptr::null_mut()),
            facts,
            faults,
        })))))
    }
    fn is_parallel(&self) -> bool {
        false
    }
}

/// A scheme that the library created.
pub(super) struct Created {
    loaded: Loaded,
    scheme: CMachine,
    facts: Facts,
    pub faults: Faults,
}

// As of the library: one thread calls its functions.
unsafe impl Send for Created {}
unsafe impl Sync for Created {}

impl Created {
    /// The table.
    pub fn table(&self) -> &CTable {
        self.loaded.table()
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        if let Some(destroy) = self.table().destroy.filter(|_| !self.scheme.is_null()) {
            // SAFETY: `create` made it, and its machines are gone.
            unsafe { destroy(self.scheme) };
        }
    }
}

struct LibraryScheme(Arc<Created>);

/// A path in the table's form.
pub(super) fn path_of(path: &PathInfo) -> CPath {
    CPath {
        line_rate_bps: path.line_rate_bps,
        min_capacity_bps: path.min_capacity_bps,
        base_rtt_ns: path.base_rtt_ns,
        hops: path.hops.into(),
    }
}

impl Makes for LibraryScheme {
    fn facts(&self) -> &Facts {
        &self.0.facts
    }
    fn faults(&self) -> &Faults {
        &self.0.faults
    }
    fn source(&self, flow: &FlowInfo) -> Box<dyn Source<Foreign>> {
        let paths: Vec<CPath> = flow.paths.iter().map(path_of).collect();
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
        // SAFETY: as the header says.
        let made = self.0.table().source.map(|source| unsafe { source(self.0.scheme, &raw const shown) });
        let machine = made.unwrap_or(std::ptr::null_mut());
        if machine.is_null() {
            let hook = Hook { name: "source", who: Who::Flow(flow.flow), at_ns: 0 };
            self.0.faults.note(hook, "it returned NULL", "return a sender");
        }
        Box::new(LibrarySource::new(Arc::clone(&self.0), machine, flow))
    }
    fn hop(&self, port: &Port) -> Option<Box<dyn Hop<Foreign>>> {
        let make = self.0.table().hop?;
        let shown = super::calls::port_of(port);
        // SAFETY: as the header says.
        let machine = unsafe { make(self.0.scheme, &raw const shown) };
        if machine.is_null() {
            return None;
        }
        Some(Box::new(LibraryHop::new(Arc::clone(&self.0), machine, port)))
    }
}
