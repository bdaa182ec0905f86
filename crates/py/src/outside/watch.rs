//! The thread of a trial in Python, and a watch over its hooks: one that does not end is interrupted.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// One trial in Python at a time: threads would only wait for each other's interpreter.
static RUNNING: Mutex<()> = Mutex::new(());
/// Hooks that were entered and left, together: odd while one runs.
static HOOKS: AtomicU64 = AtomicU64::new(0);
/// Time between two looks at the hooks.
const LOOK: Duration = Duration::from_millis(100);
/// Looks that a hook is waited for once the run is cancelled.
const PATIENCE: u64 = 3;

/// Calls a hook within the watch.
#[inline]
pub fn watched<T>(hook: impl FnOnce() -> T) -> T {
    HOOKS.fetch_add(1, Ordering::Relaxed);
    let answer = hook();
    HOOKS.fetch_add(1, Ordering::Relaxed);
    answer
}

/// Does `work` with one thread state for all its hooks, which may take `hook_s` each.
pub fn around(hook_s: f64, cancel: &AtomicBool, work: &mut (dyn FnMut() + Send)) {
    let _alone = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let (done, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        Python::attach(|py| {
            // Where the thread cannot be named, its hooks are not watched.
            if let Ok(thread) = py.import("threading").and_then(|m| m.call_method0("get_ident")?.extract::<u64>()) {
                scope.spawn(move || look_after(thread, hook_s, cancel, &ended));
            }
            // To attach anew in each hook would cost a hundred times a hook.
            py.detach(work);
        });
        drop(done);
    });
}

fn look_after(thread: u64, hook_s: f64, cancel: &AtomicBool, ended: &Receiver<()>) {
    let most = (hook_s / LOOK.as_secs_f64()).ceil().max(1.0) as u64;
    let (mut last, mut looks) = (0, 0);
    while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        let now = HOOKS.load(Ordering::Relaxed);
        looks = if now % 2 == 1 && now == last { looks + 1 } else { 0 };
        last = now;
        let cancelled = cancel.load(Ordering::Relaxed) && looks >= PATIENCE;
        if looks >= most || cancelled {
            looks = 0;
            let message = if cancelled {
                "the run was stopped".to_string()
            } else {
                format!("the hook took more than {hook_s} s (hook_time)")
            };
            interrupt(thread, &message);
        }
    }
}

fn interrupt(thread: u64, message: &str) {
    // Nothing else can be done about a hook that cannot be interrupted.
    let _ = Python::attach(|py| {
        py.import("subak.outside.stopping")?.call_method1("interrupt", (thread, message)).map(drop)
    });
}
