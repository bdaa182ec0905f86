//! Control socket of the daemon: one line of JSON per request, one line of JSON per reply.

use crate::listener::{self, ConnectionLimits, Response};
use crate::request::{DaemonCommand, Line};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;
use subak_core::quantity;

/// Largest request, bytes.
const MOST_BYTES: usize = 1 << 16;
/// Limits of concurrent connections and of idle time.
const BOUNDS: ConnectionLimits = ConnectionLimits { connections: 64, patience: Duration::from_secs(60) };

/// Listens at `path` in a thread of its own. Only the daemon's user may connect.
pub fn listen(path: &Path, line: Line) -> Result<(), String> {
    let say = |e: std::io::Error| format!("control: {}: {e}", path.display());
    if UnixStream::connect(path).is_ok() {
        return Err(format!("control: {}: another daemon listens there", path.display()));
    }
    if fs::symlink_metadata(path).is_ok_and(|found| std::os::unix::fs::FileTypeExt::is_socket(&found.file_type())) {
        fs::remove_file(path).map_err(say)?;
    }
    let listener = UnixListener::bind(path).map_err(say)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(say)?;
    listener::serve(listener, BOUNDS, move |bytes| converse(bytes, &line)).map_err(say)
}

fn converse(bytes: &[u8], line: &Line) -> Option<Response> {
    let (asked, answer) = match bytes.iter().position(|&byte| byte == b'\n') {
        Some(end) => (end + 1, answer(&bytes[..end], line)),
        None if bytes.len() > MOST_BYTES => (bytes.len(), Err(format!("a question has {MOST_BYTES} bytes at most"))),
        None => return None,
    };
    let is_last = bytes.len() > MOST_BYTES;
    let answer = match answer {
        Ok(answer) => json!({"ok": answer}),
        Err(what) => json!({"error": what}),
    };
    Some(Response { asked, head: format!("{answer}\n").into_bytes(), body: Vec::new().into(), is_last })
}

fn answer(question: &[u8], line: &Line) -> Result<Value, String> {
    let asked: Value = serde_json::from_slice(question).map_err(|e| format!("the question is not JSON: {e}"))?;
    let text = |key: &str| asked.get(key).and_then(Value::as_str);
    let need = |key: &str| text(key).map(str::to_string).ok_or_else(|| format!("give \"{key}\", a text"));
    let command = match text("ask") {
        Some("status") => return Ok(line.tell(DaemonCommand::Look)?.status()),
        Some("peers") => return Ok(line.tell(DaemonCommand::Look)?.peers()),
        Some("flows") => {
            return line.tell(DaemonCommand::Look)?.flows(asked.get("host").map(|_| need("host")).transpose()?);
        }
        Some("links") => return Ok(line.tell(DaemonCommand::Look)?.links()),
        Some("counters") => return Ok(line.tell(DaemonCommand::Look)?.counters()),
        Some("link") => {
            let capacity_bps = match need("capacity")?.as_str() {
                "up" => None,
                "down" => Some(0.0),
                rate => Some(quantity::rate_bps(rate).map_err(|e| format!("capacity: {e}"))?),
            };
            DaemonCommand::Link { link: need("link")?, capacity_bps }
        }
        Some("quota") => {
            let weight = asked.get("weight").and_then(Value::as_f64).ok_or("give \"weight\", a number")?;
            DaemonCommand::Quota { tenant: need("tenant")?, weight }
        }
        Some("drain") => DaemonCommand::Drain,
        Some("serve") => DaemonCommand::Serve,
        _ => {
            let known = "status, peers, flows, links, counters, link, quota, drain or serve";
            return Err(format!("give \"ask\": {known}"));
        }
    };
    Ok(line.tell(command)?.status())
}
