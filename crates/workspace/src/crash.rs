//! Places where the plug is pulled on purpose.
//!
//! With `WIGGUM_CRASH_AT=n` a debug build ends itself by SIGKILL at the n-th of them, with the name of one at the
//! first of that name; with `WIGGUM_CRASH_LOG=file` it writes down the name of each it passes. Release builds know
//! neither.
//! The simulator instead ends what runs on its own thread ([`until`]), in every build.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// What a point asks: is this the end?
type Ask = Box<dyn FnMut(&str) -> bool>;

thread_local! {
    /// Beside the question itself, so that a point where nobody asks costs next to nothing.
    static ASKED: Cell<bool> = const { Cell::new(false) };
    static ASK: RefCell<Option<Ask>> = const { RefCell::new(None) };
}

/// Unwinds from where the plug was pulled.
struct Pulled;

/// Marks a moment between two things the outside could see, or around one of them.
pub fn point(name: &str) {
    if ASKED.get() {
        ask(name);
    }
    #[cfg(debug_assertions)]
    kill_at(name);
}

/// Runs something on this thread until it is done, or until `ask` says at one of its points that this
/// is the end: `None`, and nothing of the rest was done. Files and locks are let go as they are when a
/// process ends. What is left open is the simulator's part: processes, and the lease.
pub fn until<T>(ask: impl FnMut(&str) -> bool + 'static, run: impl FnOnce() -> T) -> Option<T> {
    ASK.replace(Some(Box::new(ask)));
    ASKED.set(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    ASKED.set(false);
    ASK.replace(None);
    match result {
        Ok(done) => Some(done),
        Err(panic) if panic.is::<Pulled>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

#[cold]
fn ask(name: &str) {
    let the_end = ASK.with_borrow_mut(|ask| ask.as_mut().is_some_and(|ask| ask(name)));
    if the_end {
        // Nobody is asked while it unwinds.
        ASKED.set(false);
        resume_unwind(Box::new(Pulled));
    }
}

#[cfg(debug_assertions)]
fn kill_at(name: &str) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static AT: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("WIGGUM_CRASH_AT").ok());
    static LOG: LazyLock<Option<std::path::PathBuf>> =
        LazyLock::new(|| std::env::var_os("WIGGUM_CRASH_LOG").map(Into::into));
    static PASSED: AtomicU64 = AtomicU64::new(0);
    if let Some(log) = &*LOG {
        use std::io::Write;
        let file = std::fs::OpenOptions::new().append(true).create(true).open(log);
        // Whoever asked for the log misses it by itself.
        drop(file.and_then(|mut file| file.write_all(format!("{name}\n").as_bytes())));
    }
    let Some(at) = &*AT else { return };
    let passed = PASSED.fetch_add(1, Ordering::Relaxed) + 1;
    if at.parse().map_or_else(|_| at == name, |at: u64| at == passed) {
        crate::process::end_self();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_the_end_is_not_done() {
        let mut done = Vec::new();
        let result = until(
            |name| name == "second",
            || {
                for name in ["first", "second", "third"] {
                    point(name);
                    done.push(name);
                }
            },
        );
        assert_eq!((result, done), (None, vec!["first"]));
        point("second");
        assert_eq!(until(|_| false, || 7), Some(7));
    }

    #[test]
    fn a_real_panic_stays_one() {
        let result = catch_unwind(|| until(|_| false, || resume_unwind(Box::new("a bug"))));
        assert!(result.is_err());
        point("nobody asks any more");
    }
}
