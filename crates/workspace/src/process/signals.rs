//! Whether this process heeds the signals by which programs are asked to stop. That is inherited by
//! whatever it becomes.

/// From here on a stop is somebody else's business.
pub(crate) fn ignore_stop() {
    set(libc::SIG_IGN);
}

/// They end the process again, as they do unless somebody says otherwise.
pub(crate) fn heed_stop() {
    set(libc::SIG_DFL);
}

fn set(disposition: libc::sighandler_t) {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: neither value is a handler of ours, so nothing of ours runs at the signal.
        unsafe { libc::signal(signal, disposition) };
    }
}
