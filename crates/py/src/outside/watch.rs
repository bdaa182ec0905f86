//! Runs a trial with a Python scheme, and interrupts hooks that take too long.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Lets one trial with a Python scheme run at a time: threads would only wait for the interpreter's lock.
static RUNNING: Mutex<()> = Mutex::new(());
/// Number of hook entries plus hook exits: odd while a hook runs.
static HOOKS: AtomicU64 = AtomicU64::new(0);
/// Interval between checks of the running hook.
const LOOK: Duration = Duration::from_millis(100);
/// If the run is cancelled: number of consecutive checks that find the same hook running, after which it is interrupted.
const PATIENCE: u64 = 3;

/// Calls a hook, and counts its entry and exit.
#[inline]
pub fn watched<T>(hook: impl FnOnce() -> T) -> T {
    HOOKS.fetch_add(1, Ordering::Relaxed);
    let answer = hook();
    HOOKS.fetch_add(1, Ordering::Relaxed);
    answer
}

/// Runs `work`. Interrupts a hook that takes longer than `hook_s` seconds, or that does not end after `cancel` is
/// set.
pub fn around(hook_s: f64, cancel: &AtomicBool, work: &mut (dyn FnMut() + Send)) {
    let _alone = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let (done, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        Python::attach(|py| {
            // Without the thread's id its hooks cannot be interrupted, so that they are not checked.
            if let Ok(thread) = py.import("threading").and_then(|m| m.call_method0("get_ident")?.extract::<u64>()) {
                scope.spawn(move || look_after(thread, hook_s, cancel, &ended));
            }
            // The thread stays attached to the interpreter: attaching in each hook would cost a part of the hook's
            // time. Other threads get the interpreter while hooks run Python code.
            work();
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
