//! The page, its data, metrics and health over HTTP: a GET a connection, nothing else.

use crate::state::Look;
use crate::tell::{Line, Told};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The longest request, bytes.
const MOST_BYTES: usize = 8192;
/// Who is served at once, at most.
const MOST_AT_ONCE: usize = 32;
/// How long a reader may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The loop is looked at so often, at most, however many read.
const FRESH: Duration = Duration::from_millis(200);

const PAGE: &str = include_str!("page/page.html");
const SCRIPT: &str = include_str!("page/page.js");
const STYLE: &str = include_str!("page/page.css");

struct Site {
    line: Line,
    token: Option<String>,
    seen: Mutex<Option<(Instant, Arc<Look>)>>,
    at_once: AtomicUsize,
}

struct Answer {
    status: &'static str,
    kind: &'static str,
    body: String,
}

/// Serves at `listener`, in threads of its own; readers give `token` if there is one.
pub fn serve(listener: TcpListener, token: Option<String>, line: Line) {
    let site = Arc::new(Site { line, token, seen: Mutex::new(None), at_once: AtomicUsize::new(0) });
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if site.at_once.fetch_add(1, Ordering::Relaxed) >= MOST_AT_ONCE {
                site.at_once.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let site = Arc::clone(&site);
            std::thread::spawn(move || {
                // A reader that is gone misses nothing.
                let _ = site.answer(stream);
                site.at_once.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
}

impl Site {
    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let until = Instant::now() + PATIENCE;
        let mut bytes = Vec::new();
        let mut room = [0; 1024];
        let answer = loop {
            if let Some(answer) = self.read(&bytes) {
                break answer;
            }
            let count = stream.read(&mut room)?;
            if count == 0 || Instant::now() > until {
                return Ok(());
            }
            bytes.extend(&room[..count]);
        };
        let Answer { status, kind, body } = answer;
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'self'; img-src data:; frame-ancestors 'none'\r\n\
             Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
            body.len()
        )?;
        stream.write_all(body.as_bytes())
    }

    /// The answer, once the request is there.
    fn read(&self, bytes: &[u8]) -> Option<Answer> {
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
        let bearer = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("authorization"));
        let bearer = bearer.and_then(|header| std::str::from_utf8(header.value).ok()?.strip_prefix("Bearer "));
        let given = bearer.or_else(|| query.split('&').find_map(|pair| pair.strip_prefix("token=")));
        let is_open = matches!(path, "/healthz" | "/page.js" | "/page.css");
        if !is_open && !self.token.as_ref().is_none_or(|token| given.is_some_and(|given| same(token, given))) {
            return Some(text("401 Unauthorized", "give the token: ?token=..., or an Authorization header"));
        }
        Some(self.page(path, query))
    }

    fn page(&self, path: &str, query: &str) -> Answer {
        let answer = |kind, body: &str| Answer { status: "200 OK", kind, body: body.to_string() };
        match path {
            "/" => answer("text/html; charset=utf-8", PAGE),
            "/page.js" => answer("text/javascript; charset=utf-8", SCRIPT),
            "/page.css" => answer("text/css; charset=utf-8", STYLE),
            "/healthz" | "/readyz" | "/metrics" | "/state.json" => match self.look() {
                Err(what) => text("503 Service Unavailable", &what),
                Ok(look) => match path {
                    "/healthz" => text("200 OK", "alive"),
                    "/readyz" if !look.is_serving => text("503 Service Unavailable", "another allocator serves"),
                    "/readyz" => text("200 OK", "serves"),
                    "/metrics" => answer("text/plain; version=0.0.4", &look.metrics()),
                    _ => {
                        let whole = query.split('&').any(|pair| pair == "network=1");
                        answer("application/json", &look.page(whole).to_string())
                    }
                },
            },
            _ => text("404 Not Found", "there is /, /state.json, /metrics, /healthz and /readyz"),
        }
    }

    fn look(&self) -> Result<Arc<Look>, String> {
        let mut seen = self.seen.lock().map_err(|_| "a reader failed".to_string())?;
        if let Some((at, look)) = &*seen
            && at.elapsed() < FRESH
        {
            return Ok(Arc::clone(look));
        }
        let look = Arc::new(self.line.tell(Told::Look)?);
        *seen = Some((Instant::now(), Arc::clone(&look)));
        Ok(look)
    }
}

fn text(status: &'static str, body: &str) -> Answer {
    Answer { status, kind: "text/plain; charset=utf-8", body: format!("{body}\n") }
}

/// Whether two texts are the same, in a time that does not tell where they differ.
fn same(a: &str, b: &str) -> bool {
    let differs = a.bytes().zip(b.bytes()).fold(a.len() ^ b.len(), |differs, (a, b)| differs | usize::from(a ^ b));
    std::hint::black_box(differs) == 0
}
