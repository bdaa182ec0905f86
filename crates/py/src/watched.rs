//! State of a run for a live web page, and the page's files. The allocator serves the same page.

use pyo3::prelude::*;

/// State of the runs, for the live page.
#[pyclass(frozen, module = "subak", name = "Watched")]
pub struct PyWatched(pub subak_lab::WatchedTrial);

#[pymethods]
impl PyWatched {
    /// A state without a run.
    #[new]
    fn new() -> Self {
        PyWatched(subak_lab::WatchedTrial::default())
    }

    /// State for the page, as JSON; includes the network if `whole`.
    fn state(&self, py: Python<'_>, whole: bool) -> String {
        py.detach(|| self.0.page(whole).to_string())
    }
}

/// The page's files: path, kind and text.
#[pyfunction]
pub fn page_files() -> [(&'static str, &'static str, &'static str); 3] {
    [
        ("/", "text/html; charset=utf-8", subak_page::PAGE),
        ("/page.js", "text/javascript; charset=utf-8", subak_page::SCRIPT),
        ("/page.css", "text/css; charset=utf-8", subak_page::STYLE),
    ]
}
