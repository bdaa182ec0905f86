//! The page that shows a running allocator or a run under way in a browser: `subak allocator` and `subak run --watch` serve
//! the same files.

/// The page, served at `/`.
pub const PAGE: &str = include_str!("page.html");
/// The page's script, served at `/page.js`.
pub const SCRIPT: &str = include_str!("page.js");
/// The page's style, served at `/page.css`.
pub const STYLE: &str = include_str!("page.css");
