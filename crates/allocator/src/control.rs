//! The socket by which the daemon is told things: a line of JSON asks, a line of JSON answers.

use crate::tell::{Line, Told};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use subak_core::quantity;

/// The longest question, bytes.
const MOST_BYTES: u64 = 1 << 16;
/// Who asks at once, at most.
const MOST_AT_ONCE: usize = 16;
/// How long somebody may think between two questions.
const PATIENCE: Duration = Duration::from_secs(60);

static AT_ONCE: AtomicUsize = AtomicUsize::new(0);

/// Listens at `path`; threads of its own answer. Only this user may speak there.
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
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if AT_ONCE.fetch_add(1, Ordering::Relaxed) >= MOST_AT_ONCE {
                AT_ONCE.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let line = line.clone();
            std::thread::spawn(move || {
                // Whoever hangs up has what they wanted.
                let _ = converse(&stream, &line);
                AT_ONCE.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    Ok(())
}

fn converse(stream: &UnixStream, line: &Line) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut question = String::new();
        if reader.by_ref().take(MOST_BYTES).read_line(&mut question)? == 0 || !question.ends_with('\n') {
            return Ok(());
        }
        let answer = match answer(&question, line) {
            Ok(answer) => json!({"ok": answer}),
            Err(what) => json!({"error": what}),
        };
        let mut stream = stream;
        writeln!(stream, "{answer}")?;
    }
}

fn answer(question: &str, line: &Line) -> Result<Value, String> {
    let asked: Value = serde_json::from_str(question).map_err(|e| format!("the question is not JSON: {e}"))?;
    let text = |key: &str| asked.get(key).and_then(Value::as_str);
    let need = |key: &str| text(key).map(str::to_string).ok_or_else(|| format!("give \"{key}\", a text"));
    let told = match text("ask") {
        Some("status") => return Ok(line.tell(Told::Look)?.status()),
        Some("peers") => return Ok(line.tell(Told::Look)?.peers()),
        Some("flows") => return Ok(line.tell(Told::Look)?.flows(text("host"))),
        Some("links") => return Ok(line.tell(Told::Look)?.links()),
        Some("counters") => return Ok(line.tell(Told::Look)?.counters()),
        Some("link") => {
            let capacity_bps = match text("capacity") {
                None | Some("up") => None,
                Some("down") => Some(0.0),
                Some(rate) => Some(quantity::rate_bps(rate).map_err(|e| format!("capacity: {e}"))?),
            };
            Told::Link { link: need("link")?, capacity_bps }
        }
        Some("quota") => {
            let weight = asked.get("weight").and_then(Value::as_f64).ok_or("give \"weight\", a number")?;
            Told::Quota { tenant: need("tenant")?, weight }
        }
        Some("drain") => Told::Drain,
        Some("serve") => Told::Serve,
        _ => {
            let known = "status, peers, flows, links, counters, link, quota, drain or serve";
            return Err(format!("give \"ask\": {known}"));
        }
    };
    Ok(line.tell(told)?.status())
}
