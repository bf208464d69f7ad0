//! Places where the tests pull the plug.
//!
//! With `WIGGUM_CRASH_AT=n` a debug build ends itself by SIGKILL at the n-th of them; with
//! `WIGGUM_CRASH_LOG=file` it writes down the name of each it passes. Release builds have none.

/// Marks a moment between two things the outside could see, or around one of them.
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static AT: LazyLock<Option<u64>> =
        LazyLock::new(|| std::env::var("WIGGUM_CRASH_AT").ok().and_then(|text| text.parse().ok()));
    static LOG: LazyLock<Option<std::path::PathBuf>> =
        LazyLock::new(|| std::env::var_os("WIGGUM_CRASH_LOG").map(Into::into));
    static PASSED: AtomicU64 = AtomicU64::new(0);
    if let Some(log) = &*LOG {
        use std::io::Write;
        let file = std::fs::OpenOptions::new().append(true).create(true).open(log);
        // Whoever asked for the log misses it by itself.
        drop(file.and_then(|mut file| file.write_all(format!("{name}\n").as_bytes())));
    }
    if let Some(at) = *AT
        && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == at
    {
        crate::process::end_self();
    }
}

#[cfg(not(debug_assertions))]
pub fn point(_name: &str) {}
