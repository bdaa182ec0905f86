//! Catches panics without output on standard error. The error of the trial contains the panic's message and place.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The result of `work`, or the message and place of its panic.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| if QUIET.get() { note(info) } else { before(info) }));
    });
    let outer = QUIET.replace(true);
    let caught = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(outer);
    caught.map_err(|_| SAID.take().unwrap_or_else(|| "it panicked".into()))
}

fn note(info: &PanicHookInfo) {
    let payload = info.payload();
    let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("it panicked");
    let place = info.location().map(|l| format!(", at {l}")).unwrap_or_default();
    SAID.set(Some(format!("{text}{place}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_caught_with_its_text_and_place() {
        assert_eq!(catch(|| 7), Ok(7));
        let said = catch(|| panic!("no link {}", 3)).unwrap_err();
        assert!(said.starts_with("no link 3, at ") && said.contains("quiet.rs:"), "{said}");
        let empty: Vec<u32> = Vec::new();
        let said = catch(|| empty[std::hint::black_box(2)]).unwrap_err();
        assert!(said.contains("index out of bounds"), "{said}");
        // A panic without a text message, after one with a message.
        assert_eq!(catch(|| std::panic::resume_unwind(Box::new(1))), Err("it panicked".into()));
        assert!(!QUIET.get());
    }
}
