//! Schemes supplied by the user: a Python class in a file or from the caller, or a shared library.

use crate::files::{self, Beside};
use crate::spec::backends::{self, BackendKind, Packets};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use subak_core::InputError;
use subak_core::quantity::quoted;
use subak_schemes::foreign::{Copied, Definition, LibraryDefinition};

/// Source text of a scheme class, with its surroundings.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemeText {
    /// Name of the scheme in the spec or from the caller; `None`: the name in its definition.
    pub name: Option<String>,
    /// Name of the source file, for messages.
    pub file: String,
    /// Name of the class.
    pub class: String,
    /// The source text.
    pub text: Vec<u8>,
    /// Files that the source may import, by their names in the spec.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Names of other files in the same folder, which the source may not import.
    pub unlisted: Vec<String>,
    /// Time limit of each call of a method of the class, s.
    pub hook_s: f64,
}

/// Creates schemes from source text. This crate runs no Python, so that the caller that validates a spec supplies
/// a loader.
pub trait Loader: Sync {
    /// Creates the scheme from `text`. Places in errors are relative to the scheme's table in the spec.
    fn load(&self, text: SchemeText) -> Result<Arc<dyn Definition>, InputError>;
}

/// Loader without support for any language: every scheme class is an error.
pub(super) struct NoLoader;

impl Loader for NoLoader {
    fn load(&self, _text: SchemeText) -> Result<Arc<dyn Definition>, InputError> {
        Err(InputError::new("python", "there is no Python here", "run the spec with the package subak"))
    }
}

/// A scheme class supplied by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenScheme {
    /// Source text that defines the class.
    pub text: String,
    /// Name of the class in the text.
    pub class: String,
    /// Name of the source file, for messages.
    pub file: String,
    /// Files that the source may import, by name.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// A scheme supplied by the user.
#[derive(Debug, Clone)]
pub(crate) struct Outside {
    packets: Packets,
    definition: Arc<dyn Definition>,
    /// SHA-256 of everything in the definition that results depend on.
    pub digest: String,
}

impl PartialEq for Outside {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Outside {
    fn of(definition: Arc<dyn Definition>, digest: Sha256) -> Self {
        let digest = hex(digest.chain_update(definition.identity()));
        Outside { packets: Packets(Some(Arc::clone(&definition))), definition, digest }
    }

    /// The packet-level backend with this scheme.
    pub fn backend(&self) -> &dyn BackendKind {
        &self.packets
    }

    /// The scheme's definition.
    pub fn definition(&self) -> &dyn Definition {
        &*self.definition
    }
}

/// Sources from which schemes of the user are loaded.
pub(super) struct Sources<'a> {
    pub beside: &'a Beside,
    pub given: &'a BTreeMap<String, GivenScheme>,
    pub loader: &'a dyn Loader,
}

/// Keys of a table of `[[scheme]]` that select a scheme supplied by the user.
#[derive(Default)]
pub(super) struct OutsideKeys {
    pub python: Option<String>,
    pub library: Option<String>,
    pub files: Vec<String>,
    pub hook_s: Option<f64>,
}

/// Default time limit of each call of a scheme's method, s.
const HOOK_S: f64 = 10.0;

impl Sources<'_> {
    /// Loads the user's scheme that a table of `[[scheme]]` names; `None` if the table names none.
    pub fn find(&self, name: Option<&str>, keys: &OutsideKeys) -> Result<Option<Outside>, InputError> {
        let given = name.and_then(|name| self.given.get(name));
        if let Some(file) = &keys.library {
            return self.library(name, file, keys.python.is_some() || given.is_some()).map(Some);
        }
        let text = match (&keys.python, given) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                let what = "the caller hands over a scheme of that name, and the spec names a file too";
                return Err(InputError::new("python", what, "leave one of them away"));
            }
            (Some(python), None) => self.of_file(python, keys)?,
            (None, Some(given)) => SchemeText {
                file: given.file.clone(),
                class: given.class.clone(),
                text: given.text.clone().into_bytes(),
                files: given.files.clone(),
                ..self.blank(keys)?
            },
        };
        if let Some(name) = name {
            check_name(name).map_err(|e| e.below("name"))?;
        }
        let digest = digest(&text);
        let definition = self.loader.load(SchemeText { name: name.map(str::to_string), ..text })?;
        check_name(definition.info().name).map_err(|e| e.below("name"))?;
        Ok(Some(Outside::of(definition, digest)))
    }

    /// Loads the scheme in the shared library `file`. `is_another`: the scheme is also defined by a Python class,
    /// which is an error.
    fn library(&self, name: Option<&str>, file: &str, is_another: bool) -> Result<Outside, InputError> {
        if is_another {
            let what = "a scheme is in a library or in Python, not both";
            return Err(InputError::new("library", what, "leave one of them away"));
        }
        if let Some(name) = name {
            check_name(name).map_err(|e| e.below("name"))?;
        }
        let held = self.beside.bytes(file).map_err(|e| e.below("library"))?;
        let digest = Sha256::new_with_prefix(&held);
        let copied: Copied = Arc::new(move |with| files::with_temporary(&held, "so", with));
        let definition = LibraryDefinition::load(name, copied).map_err(|e| e.in_file(self.beside.shown(file)))?;
        check_name(definition.info().name).map_err(|e| e.below("name"))?;
        Ok(Outside::of(Arc::new(definition), digest))
    }

    fn of_file(&self, python: &str, keys: &OutsideKeys) -> Result<SchemeText, InputError> {
        let Some((file, class)) = python.rsplit_once(':').filter(|(file, class)| !file.is_empty() && !class.is_empty())
        else {
            let what = format!("{} names no class", quoted(python));
            return Err(InputError::new("python", what, "write FILE:CLASS, such as \"mine.py:Mine\""));
        };
        let text = self.beside.bytes(file).map_err(|e| e.below("python"))?;
        let unlisted = self.beside.names(".py").into_iter().filter(|name| name != file && !keys.files.contains(name));
        Ok(SchemeText {
            file: self.beside.shown(file),
            class: class.to_string(),
            text,
            unlisted: unlisted.collect(),
            ..self.blank(keys)?
        })
    }

    fn blank(&self, keys: &OutsideKeys) -> Result<SchemeText, InputError> {
        let read = |name: &String| self.beside.bytes(name).map(|held| (name.clone(), held));
        Ok(SchemeText {
            name: None,
            file: String::new(),
            class: String::new(),
            text: Vec::new(),
            files: keys.files.iter().map(read).collect::<Result<_, _>>().map_err(|e| e.below("files"))?,
            unlisted: Vec::new(),
            hook_s: keys.hook_s.unwrap_or(HOOK_S),
        })
    }

    /// An error for a class from the caller that no scheme of the spec uses.
    pub fn check_used(&self, used: &[&str]) -> Result<(), InputError> {
        let Some(unused) = self.given.keys().find(|name| !used.contains(&name.as_str())) else { return Ok(()) };
        let what = format!("no [[scheme]] of the spec has the name {}", quoted(unused));
        Err(InputError::new(format!("schemes.{unused}"), what, "name it in the spec, or leave it away"))
    }
}

/// An error for a name that is empty, has a "/", or belongs to a built-in scheme.
fn check_name(name: &str) -> Result<(), InputError> {
    if name.is_empty() || name.contains('/') {
        let what = format!("{} is no name of a scheme", quoted(name));
        return Err(InputError::new("", what, "leave \"/\" out: it joins an optimizer and a transport"));
    }
    match backends::find(name, None) {
        Ok(_) => {
            let what = format!("Subak has a scheme called {} already", quoted(name));
            Err(InputError::new("", what, "call yours otherwise: name = \"mine\""))
        }
        Err(_) => Ok(()),
    }
}

fn digest(text: &SchemeText) -> Sha256 {
    let mut digest = Sha256::new_with_prefix(text.class.as_bytes());
    for part in std::iter::once(&text.text).chain(text.files.values()) {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    text.files.keys().for_each(|name| digest.update(name.as_bytes()));
    digest
}

fn hex(digest: Sha256) -> String {
    digest.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Collects the names of the files that a table of `[[scheme]]` refers to.
pub(super) fn files_of<'a>(scheme: &'a Value, names: &mut Vec<&'a str>) {
    if let Some((file, _)) = scheme.get("python").and_then(Value::as_str).and_then(|python| python.rsplit_once(':')) {
        names.push(file);
    }
    names.extend(scheme.get("library").and_then(Value::as_str));
    names.extend(scheme.get("files").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str));
}
