//! HTTP server of the page, its data, metrics and probes: one GET per connection.

use crate::listener::{self, ConnectionLimits, Response};
use crate::request::{DaemonCommand, Line};
use crate::state::Look;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Largest request, bytes.
const MOST_BYTES: usize = 8192;
/// Limits of concurrent connections, and of the time for a request and its reply.
const BOUNDS: ConnectionLimits = ConnectionLimits { connections: 256, patience: Duration::from_secs(5) };
/// Smallest interval between two queries of the daemon's state, however many readers there are.
const FRESH: Duration = Duration::from_millis(200);

struct Site {
    line: Line,
    token: Option<String>,
    seen: Option<CachedPage>,
}

/// The daemon's state at one time, and the pages rendered from it. All readers share them.
struct CachedPage {
    at: Instant,
    look: Result<Look, String>,
    made: HashMap<&'static str, Arc<[u8]>>,
}

struct Page {
    status: &'static str,
    kind: &'static str,
    body: Arc<[u8]>,
}

/// Serves HTTP at `listener` in a thread of its own; readers must send `token` if there is one.
pub fn serve(listener: TcpListener, token: Option<String>, line: Line) -> std::io::Result<()> {
    let mut site = Site { line, token, seen: None };
    listener::serve(listener, BOUNDS, move |bytes| {
        let Page { status, kind, body } = site.read(bytes)?;
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'self'; img-src data:; frame-ancestors 'none'\r\n\
             Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
            body.len()
        );
        Some(Response { asked: bytes.len(), head: head.into_bytes(), body, is_last: true })
    })
}

impl Site {
    /// The reply; `None` until the request is complete.
    fn read(&mut self, bytes: &[u8]) -> Option<Page> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(bytes) {
            Ok(httparse::Status::Partial) if bytes.len() <= MOST_BYTES => return None,
            Ok(httparse::Status::Complete(_)) => {}
            _ => return Some(text("400 Bad Request", "this is no request")),
        }
        if request.method != Some("GET") {
            return Some(text("405 Method Not Allowed", "the page is read-only"));
        }
        let target = request.path.unwrap_or("/");
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let header = |name: &str| {
            let found = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
            found.and_then(|header| std::str::from_utf8(header.value).ok())
        };
        let bearer = header("authorization").and_then(|value| value.split_once(' '));
        let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
        let given = bearer.or_else(|| query.split('&').find_map(|pair| pair.strip_prefix("token=")));
        let is_open = matches!(path, "/healthz" | "/page.js" | "/page.css");
        match &self.token {
            _ if is_open => {}
            Some(token) if !given.is_some_and(|given| same(token, given)) => {
                return Some(text("401 Unauthorized", "give the token: ?token=..., or an Authorization header"));
            }
            // Protects against DNS rebinding: a foreign page could reach this server under its own host name.
            None if !header("host").is_none_or(is_this_machine) => {
                return Some(text("403 Forbidden", "ask for localhost or an address: other names need a token"));
            }
            _ => {}
        }
        Some(self.page(path, query))
    }

    fn page(&mut self, path: &str, query: &str) -> Page {
        let answer = |kind, body: &str| Page { status: "200 OK", kind, body: body.as_bytes().into() };
        let is_whole = query.split('&').any(|pair| pair == "network=1");
        match path {
            "/" => answer("text/html; charset=utf-8", subak_page::PAGE),
            "/page.js" => answer("text/javascript; charset=utf-8", subak_page::SCRIPT),
            "/page.css" => answer("text/css; charset=utf-8", subak_page::STYLE),
            "/healthz" => self.of("text/plain; charset=utf-8", "health", |_| Ok("alive\n".to_string())),
            "/readyz" => self.of("text/plain; charset=utf-8", "ready", |look| {
                let rests = if look.is_draining { "it was drained" } else { "another allocator serves" };
                if look.is_serving { Ok("serves\n".to_string()) } else { Err(rests.to_string()) }
            }),
            "/metrics" => self.of("text/plain; version=0.0.4", "metrics", |look| Ok(look.metrics())),
            "/state.json" if is_whole => self.of("application/json", "whole", |look| Ok(look.page(true).to_string())),
            "/state.json" => self.of("application/json", "state", |look| Ok(look.page(false).to_string())),
            _ => text("404 Not Found", "there is /, /state.json, /metrics, /healthz and /readyz"),
        }
    }

    /// Page `name`, rendered by `make` from the daemon's state unless it is cached.
    fn of(&mut self, kind: &'static str, name: &'static str, make: impl Fn(&Look) -> Result<String, String>) -> Page {
        if self.seen.as_ref().is_none_or(|seen| seen.at.elapsed() >= FRESH) {
            let look = self.line.tell(DaemonCommand::Look);
            self.seen = Some(CachedPage { at: Instant::now(), look, made: HashMap::new() });
        }
        let Some(CachedPage { look, made, .. }) = &mut self.seen else { return text("503 Service Unavailable", "") };
        if let Some(body) = made.get(name) {
            return Page { status: "200 OK", kind, body: Arc::clone(body) };
        }
        match look.as_ref().map_err(String::clone).and_then(make) {
            Err(what) => text("503 Service Unavailable", &what),
            Ok(body) => {
                let body: Arc<[u8]> = body.into_bytes().into();
                made.insert(name, Arc::clone(&body));
                Page { status: "200 OK", kind, body }
            }
        }
    }
}

fn text(status: &'static str, body: &str) -> Page {
    Page { status, kind: "text/plain; charset=utf-8", body: format!("{body}\n").into_bytes().into() }
}

/// Whether a `Host` header is an IP address or this machine's name.
fn is_this_machine(host: &str) -> bool {
    let host = host.trim();
    let name = host.rsplit_once(':').map_or(host, |(name, port)| if port.ends_with(']') { host } else { name });
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    host.parse::<SocketAddr>().is_ok() || bare.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost")
}

/// Compares two texts in constant time.
fn same(a: &str, b: &str) -> bool {
    let differs = a.bytes().zip(b.bytes()).fold(a.len() ^ b.len(), |differs, (a, b)| differs | usize::from(a ^ b));
    std::hint::black_box(differs) == 0
}
