//! Schemes that users write as Python classes. The Python module `subak.outside` loads such a class. The packet
//! simulator runs its state machines through the wrappers in this module.

mod facts;
pub mod io;
mod machines;
pub mod places;
pub mod views;
mod watch;

use crate::errors::fault_of;
use machines::PythonScheme;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use subak_core::InputError;
use subak_core::keys::ParamValue;
use subak_core::scheme::{Info, Params};
use subak_lab::{GivenScheme, Loader, SchemeText};
use subak_schemes::foreign::{AskedSchemes, Definition, LibraryDefinition, Made};

/// Loader of Python schemes.
pub struct PythonLoader;

impl Loader for PythonLoader {
    fn load(&self, text: SchemeText) -> Result<Arc<dyn Definition>, InputError> {
        Python::attach(|py| {
            let made = text_of(py, &text).and_then(|of_text| {
                let said = py.import("subak.outside.loading")?.call_method1("define", (&of_text,))?;
                if let Some((address, compiler)) = said.get_item("compiled")?.extract::<Option<(usize, String)>>()? {
                    return Ok(Loaded::Compiled(address, compiler));
                }
                let info = facts::info(said.cast()?, text.name.as_deref())?;
                let version: String = py.import("platform")?.call_method0("python_version")?.extract()?;
                Ok(Loaded::Class(of_text.unbind(), info, version))
            });
            let (of_text, info, version) = match made.map_err(|e| in_file(py, &e))? {
                Loaded::Class(of_text, info, version) => (of_text, info, version),
                Loaded::Compiled(address, compiler) => {
                    let scheme = LibraryDefinition::at(text.name.as_deref(), address, &compiler);
                    return Ok(Arc::new(scheme.map_err(|e| e.in_file(text.file.as_str()))?) as Arc<dyn Definition>);
                }
            };
            Ok(Arc::new(PythonDefinition {
                text: Arc::new(of_text),
                info: info.map_err(|e| e.in_file(text.file.as_str()))?,
                identity: format!("Python {version}"),
                hook_s: text.hook_s,
                asked: AskedSchemes::default(),
            }) as Arc<dyn Definition>)
        })
    }
}

/// A scheme as the Python module `subak.outside.loading` defines it.
enum Loaded {
    /// A class: its text, its metadata and Python's version.
    Class(Py<PyAny>, Result<Info, InputError>, String),
    /// The address of a table of C functions, and the compiler.
    Compiled(usize, String),
}

/// Converts the text to the class `Text` of `subak.outside.loading`.
fn text_of<'py>(py: Python<'py>, text: &SchemeText) -> PyResult<Bound<'py, PyAny>> {
    let files = PyDict::new(py);
    for (name, held) in &text.files {
        files.set_item(name, PyBytes::new(py, held))?;
    }
    let class = py.import("subak.outside.loading")?.getattr("Text")?;
    class.call1((&text.file, &text.class, PyBytes::new(py, &text.text), files, &text.unlisted))
}

/// Converts an exception to an [`InputError`], with the file that the exception names.
fn in_file(py: Python<'_>, error: &PyErr) -> InputError {
    let file = error.value(py).getattr("file").and_then(|v| v.extract::<Option<String>>()).ok().flatten();
    let fault = fault_of(py, error);
    file.map_or(fault.clone(), |file| fault.in_file(file))
}

/// A Python scheme as loaded, without parameters.
struct PythonDefinition {
    text: Arc<Py<PyAny>>,
    info: Info,
    identity: String,
    hook_s: f64,
    asked: AskedSchemes,
}

impl fmt::Debug for PythonDefinition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PythonDefinition({})", self.info.name)
    }
}

impl Definition for PythonDefinition {
    fn info(&self) -> &Info {
        &self.info
    }
    fn identity(&self) -> &str {
        &self.identity
    }
    fn make(&self, params: &Params) -> Result<Made, InputError> {
        let text = Arc::clone(&self.text);
        Python::attach(|py| {
            let made = PythonScheme::new(py, text, &self.info, params);
            made.map_err(|e| in_file(py, &e)).map(PythonScheme::made)
        })
    }
    fn asked(&self, params: &Params) -> Result<Made, InputError> {
        self.asked.get(params, || self.make(params))
    }
    fn is_parallel(&self) -> bool {
        false
    }
    fn around(&self, cancel: &AtomicBool, work: &mut (dyn FnMut() + Send)) {
        watch::around(self.hook_s, cancel, work);
    }
}

/// `params` of the scheme `info` as a dict.
fn dict_of<'py>(py: Python<'py>, info: &Info, params: &Params) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for param in info.params {
        let name = param.key.name;
        match param.default() {
            ParamValue::Number(_) => dict.set_item(name, params.number(name))?,
            ParamValue::Flag(_) => dict.set_item(name, params.flag(name))?,
            ParamValue::Word(_) => dict.set_item(name, params.word(name))?,
        }
    }
    Ok(dict)
}

/// Finds the source text of each Python class that the caller passed, by name.
pub fn given(py: Python<'_>, classes: BTreeMap<String, Py<PyAny>>) -> PyResult<BTreeMap<String, GivenScheme>> {
    let mut given = BTreeMap::new();
    for (name, class) in classes {
        let found = py.import("subak.outside.text")?.call_method1("of_class", (&name, class))?;
        let (text, class, file, files) = found.cast::<PyTuple>()?.extract()?;
        given.insert(name, GivenScheme { text, class, file, files });
    }
    Ok(given)
}
