//! A run that is watched, and the files of the page that shows it: the allocator's.

use pyo3::prelude::*;

/// How the runs go that are told of it.
#[pyclass(frozen, module = "subak")]
pub struct Watched(pub subak_lab::Watched);

#[pymethods]
impl Watched {
    /// Nothing yet.
    #[new]
    fn new() -> Self {
        Watched(subak_lab::Watched::default())
    }

    /// What the page asks for, as JSON; `whole`: with the network.
    fn state(&self, py: Python<'_>, whole: bool) -> String {
        py.detach(|| self.0.page(whole).to_string())
    }
}

/// The page's files: path, kind and text.
#[pyfunction]
pub fn page_files() -> [(&'static str, &'static str, &'static str); 3] {
    [
        ("/", "text/html; charset=utf-8", include_str!("../../../python/subak/page/page.html")),
        ("/page.js", "text/javascript; charset=utf-8", include_str!("../../../python/subak/page/page.js")),
        ("/page.css", "text/css; charset=utf-8", include_str!("../../../python/subak/page/page.css")),
    ]
}
