//! The live page. `subak-allocator` serves it while it runs, and `subak run --watch` during a run.

/// The page, served at `/`.
pub const PAGE: &str = include_str!("page.html");
/// The page's script, served at `/page.js`.
pub const SCRIPT: &str = include_str!("page.js");
/// The page's style, served at `/page.css`.
pub const STYLE: &str = include_str!("page.css");
