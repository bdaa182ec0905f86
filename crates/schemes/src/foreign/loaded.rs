//! A loaded library, and the instance of a scheme that it created.
#![allow(unsafe_code, reason = "functions of a library are called by their addresses")]

use super::table::{CMachine, CTable, VERSION};
use super::{Facts, Faults, Notes};
use libloading::Library;
use std::path::Path;
use subak_core::InputError;

/// A loaded library, and a copy of its table, whose pointers are valid as long as the library is loaded.
pub struct Loaded {
    table: CTable,
    /// `None` for a table of this process, which is never freed.
    _library: Option<Library>,
}

// The table is never written, and one thread calls the functions of a trial.
unsafe impl Send for Loaded {}
unsafe impl Sync for Loaded {}

impl Loaded {
    /// The library's table of functions.
    pub fn table(&self) -> &CTable {
        &self.table
    }

    /// Loads the library in the file `path`; refuses a library without a table, or with a table of another version.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let refuse = |what: String, hint: &str| InputError::new("library", what, hint);
        // SAFETY: loading runs the library's initializers; it is the user's own code.
        let library = unsafe { Library::new(path) }
            .map_err(|e| refuse(format!("it cannot be loaded: {e}"), "build it with cc -shared -fPIC"))?;
        // SAFETY: the header declares the function with this type.
        let found = unsafe { library.get::<unsafe extern "C" fn() -> *const CTable>(b"subak_scheme") };
        let export = found.map_err(|_| {
            refuse("it exports no function subak_scheme".into(), "include subak_scheme.h, and return the table from it")
        })?;
        // SAFETY: the function has no arguments.
        let table = unsafe { export() };
        // SAFETY: the function returns a table or null.
        Ok(Loaded { table: unsafe { Loaded::read(table)? }, _library: Some(library) })
    }

    /// The table at `address` of this process, which must stay there for ever.
    pub fn at(address: usize) -> Result<Self, InputError> {
        // SAFETY: the caller made the table.
        Ok(Loaded { table: unsafe { Loaded::read(address as *const CTable)? }, _library: None })
    }

    unsafe fn read(table: *const CTable) -> Result<CTable, InputError> {
        // SAFETY: tables of all versions begin with the version.
        let version = if table.is_null() { 0 } else { unsafe { (*table).version } };
        if version != VERSION {
            let what = format!("its table has version {version}, and this is {VERSION}");
            let hint = "build it with the header of this version, and version = SUBAK_SCHEME_VERSION";
            return Err(InputError::new("library", what, hint));
        }
        // SAFETY: a table of this version has these fields.
        Ok(unsafe { *table })
    }
}

/// An instance of the scheme that the library's `create` returned.
pub struct Created {
    pub loaded: Loaded,
    pub scheme: CMachine,
    pub facts: Facts,
    pub faults: Faults,
    pub notes: Notes,
}

// As with `Loaded`: one thread calls the functions of a trial.
unsafe impl Send for Created {}
unsafe impl Sync for Created {}

impl Created {
    /// The library's table of functions.
    pub fn table(&self) -> &CTable {
        self.loaded.table()
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        if let Some(destroy) = self.table().destroy.filter(|_| !self.scheme.is_null()) {
            // SAFETY: `create` returned this pointer, and all its machines were freed.
            unsafe { destroy(self.scheme) };
        }
    }
}
