//! The `Io` object of a Python scheme's hooks: requests of a machine to the simulator, checked before they are carried out.

use super::facts::class_of;
use super::views::numbers_of;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::sync::Arc;
use subak_core::rng::Stream;
use subak_core::scheme::{Effect, To};
use subak_core::{FlowId, NodeId, Ns, SubflowId};
use subak_schemes::foreign::{self, Foreign, MOST_NOTES, Notes, Refusal, Who};

/// Interface of a state machine to the simulator: the current time, and methods that request effects.
#[pyclass(module = "subak", name = "Io")]
pub struct IoView {
    /// Current time, ns.
    #[pyo3(get)]
    pub now_ns: Ns,
    pub asks: Vec<Effect<Foreign>>,
    pub who: Who,
    pub subflows: usize,
    pub has_timer: bool,
    pub there: There,
    pub seed: u64,
    pub stream: Option<Stream>,
    pub notes: Notes,
    /// Number of notes of the hook that runs; `None` if none with a time runs.
    pub noted: Option<usize>,
}

fn refused((what, hint): (String, &'static str)) -> PyErr {
    PyValueError::new_err(format!("{what}; {hint}"))
}

/// Checks the time of a timer and rounds it down to whole ns.
fn whole_ns(at_ns: f64, now_ns: Ns) -> PyResult<Ns> {
    if at_ns.is_nan() || at_ns < now_ns as f64 {
        let what = format!("the timer is at {at_ns} ns, and now is {now_ns} ns; give a time from now on");
        return Err(PyValueError::new_err(what));
    }
    Ok(at_ns as Ns)
}

#[pymethods]
impl IoView {
    /// Sets a subflow's pacing rate ``rate`` (bit/s on the wire) and congestion window ``window`` (payload bytes);
    /// ``None``: no limit. Arguments have names, since a window in place of a rate would slow a flow down silently.
    #[pyo3(signature = (*, rate=None, window=None, subflow=0))]
    fn pace(&mut self, rate: Option<f64>, window: Option<f64>, subflow: i64) -> PyResult<()> {
        if !matches!(self.who, Who::Flow(_)) {
            return Err(PyValueError::new_err("only a source sets a pace"));
        }
        let subflow = foreign::subflow(subflow, self.subflows).map_err(refused)?;
        let (rate_bps, window_bytes) = foreign::pace(rate, window).map_err(refused)?;
        self.asks.push(Effect::Pace { subflow, rate_bps, window_bytes });
        Ok(())
    }

    /// Requests a call of ``on_timer(number)`` at ``at_ns``, now or later.
    fn timer(&mut self, number: u32, at_ns: f64) -> PyResult<()> {
        let at_ns = whole_ns(at_ns, self.now_ns)?;
        if !self.has_timer {
            return Err(PyValueError::new_err("a timer without a hook; define on_timer"));
        }
        self.asks.push(Effect::Timer { timer: number, at_ns });
        Ok(())
    }

    /// Sends a message of up to eight numbers: from a source to its sink or back, or to a flow, a node, the source's
    /// host or the controller.
    #[pyo3(signature = (message, bytes=64, subflow=0, class_="control", *, to=None, flow=None, node=None))]
    #[allow(clippy::too_many_arguments, reason = "each has its name in Python")]
    fn send(
        &mut self,
        message: &Bound<'_, PyAny>,
        bytes: u32,
        subflow: i64,
        class_: &str,
        to: Option<&str>,
        flow: Option<u32>,
        node: Option<u32>,
    ) -> PyResult<()> {
        let to = self.target(to, flow, node).map_err(refused)?;
        let subflow = match self.who {
            Who::Flow(_) | Who::Sink(_) => foreign::subflow(subflow, self.subflows).map_err(refused)?,
            _ if subflow == 0 => SubflowId(0),
            _ => {
                let what = "a message of a node or the controller has no subflow; write its number into the message";
                return Err(PyValueError::new_err(what));
            }
        };
        if !(1..=65_535).contains(&bytes) {
            return Err(PyValueError::new_err(format!(
                "a message has {bytes} bytes; give 1 to 65535 bytes on the wire"
            )));
        }
        let (message, class) = (numbers_of(message)?, class_of(class_)?);
        self.asks.push(Effect::Ctl { to, subflow, message, class, bytes });
        Ok(())
    }

    /// Pauses (``on`` is true) or resumes the packets of a class that are queued for this link.
    fn pause(&mut self, class_: &str, on: bool) -> PyResult<()> {
        let Who::Link(link) = self.who else {
            return Err(PyValueError::new_err("only a hop pauses a class, before its own link"));
        };
        self.asks.push(Effect::Pause { link, class: class_of(class_)?, on });
        Ok(())
    }

    /// Records values, each by its name, as rows of kind ``note`` in the results: ``io.note(alpha=0.5)``.
    #[pyo3(signature = (*, subflow=None, **values))]
    fn note(&mut self, subflow: Option<i64>, values: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let Some(noted) = &mut self.noted else {
            let what = "a note outside of this machine's hooks, or in on_capacity; note it in another hook";
            return Err(PyValueError::new_err(what));
        };
        if matches!(self.who, Who::Node(_)) {
            return Err(PyValueError::new_err(
                "a node has no notes; note the value at a source, a hop or the controller",
            ));
        }
        let Some(values) = values else {
            return Err(PyTypeError::new_err("a note without a value; name one, as in io.note(alpha=0.5)"));
        };
        *noted += values.len();
        if *noted > MOST_NOTES {
            return Err(PyValueError::new_err(format!("more than {MOST_NOTES} notes in one hook; note less often")));
        }
        let subflow = match (self.who, subflow) {
            (_, None) => None,
            (Who::Link(_), Some(_)) => return Err(PyValueError::new_err("a hop has no subflows; leave subflow away")),
            (Who::Node(_) | Who::Controller, Some(_)) => {
                return Err(PyValueError::new_err("the controller has no subflows; leave subflow away"));
            }
            (_, Some(number)) => Some(foreign::subflow(number, self.subflows).map_err(refused)?),
        };
        let named = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let name = self.notes.name(name.cast::<PyString>()?.to_str()?).map_err(refused)?;
            let value = value_of(&name, &value)?;
            PyResult::Ok((name, value))
        };
        let values = values.iter().map(named).collect::<PyResult<Vec<_>>>()?;
        self.notes.add(self.who, subflow, self.now_ns, values);
        Ok(())
    }

    /// A uniform random number in [0, 1), from a stream of this machine that depends on the seed alone.
    fn random(&mut self) -> f64 {
        let seed = self.seed;
        self.stream.get_or_insert_with(|| Stream::new(seed, "outside")).unit()
    }
}

impl IoView {
    /// The destination of a message that this machine sends.
    fn target(&self, to: Option<&str>, flow: Option<u32>, node: Option<u32>) -> Result<To, Refusal> {
        let wrong = |what: &str, hint| Err((what.to_string(), hint));
        let there = self.there;
        match (self.who, to, flow, node) {
            (Who::Link(_), ..) => wrong("a hop sends no message", "it changes those that pass"),
            (Who::Flow(_), None | Some("sink"), None, None) => Ok(To::Sink),
            (Who::Sink(_), None | Some("source"), None, None) => Ok(To::Source),
            (Who::Flow(_) | Who::Sink(_), Some("host"), None, None) if there.nodes == 0 => {
                wrong("the scheme has no state at nodes", "define node(self, node) in the scheme")
            }
            (Who::Flow(_) | Who::Sink(_), Some("host"), None, None) => Ok(To::Host),
            (Who::Flow(_) | Who::Node(_), Some("controller"), None, None) if !there.controller => {
                wrong("the scheme has no controller", "define controller(self, network) in the scheme")
            }
            (Who::Flow(_) | Who::Node(_), Some("controller"), None, None) => Ok(To::Controller),
            (Who::Node(_) | Who::Controller, None, Some(flow), None) => Ok(To::Flow(FlowId(flow))),
            (Who::Controller, None, None, Some(node)) if node < there.nodes => Ok(To::Node(NodeId(node))),
            (Who::Controller, None, None, Some(node)) if there.nodes > 0 => {
                Err((format!("there is no node {node}"), "give a number of network.nodes"))
            }
            (Who::Controller, None, None, Some(_)) => {
                wrong("the scheme has no state at nodes", "define node(self, node) in the scheme")
            }
            (Who::Flow(_), ..) => {
                wrong("a source cannot send there", "leave to away, or give \"controller\" or \"host\"")
            }
            (Who::Sink(_), ..) => wrong("a sink cannot send there", "leave to away, or give \"host\""),
            (Who::Node(_), ..) => {
                wrong("a node cannot send there", "give to=\"controller\", or flow=, a flow of the host")
            }
            (Who::Controller, ..) => wrong("the controller cannot send there", "give flow= or node=, a number"),
        }
    }
}

/// Whether the scheme has nodes and a controller; messages to others are refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct There {
    /// Number of nodes of the network; 0 if the scheme has no state at nodes.
    pub nodes: u32,
    pub controller: bool,
}

/// The value of the note called `name`: a finite number.
fn value_of(name: &Arc<str>, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    match value.extract::<f64>() {
        Ok(number) => foreign::note(name, number).map_err(refused),
        Err(e) if e.is_instance_of::<PyTypeError>(value.py()) || e.is_instance_of::<PyOverflowError>(value.py()) => {
            let given = value
                .repr()
                .map_or_else(|_| "an object".to_string(), |text| text.to_string_lossy().chars().take(60).collect());
            Err(PyTypeError::new_err(format!("the note {name} is {given}; give a finite number")))
        }
        Err(e) => Err(e),
    }
}
