//! Places where the tests pull the plug: with `WIGGUM_CRASH_AT=n` a debug build ends itself by
//! SIGKILL at the n-th of them. Release builds have none.

#[cfg(debug_assertions)]
pub(crate) fn point(_name: &str) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static AT: LazyLock<Option<u64>> =
        LazyLock::new(|| std::env::var("WIGGUM_CRASH_AT").ok().and_then(|text| text.parse().ok()));
    static PASSED: AtomicU64 = AtomicU64::new(0);
    if let Some(at) = *AT
        && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == at
    {
        wiggum_workspace::process::end_self();
    }
}

#[cfg(not(debug_assertions))]
pub(crate) fn point(_name: &str) {}
