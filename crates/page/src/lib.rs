//! The live page of a running allocator or a run under way. `subak-allocator` and `subak run --watch` serve the same files
//! to browsers.

/// The page, served at `/`.
pub const PAGE: &str = include_str!("page.html");
/// The page's script, served at `/page.js`.
pub const SCRIPT: &str = include_str!("page.js");
/// The page's style, served at `/page.css`.
pub const STYLE: &str = include_str!("page.css");
