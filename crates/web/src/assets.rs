//! The page: plain files, written by hand and part of the program.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// A file as it is served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asset {
    pub(crate) kind: &'static str,
    pub(crate) text: &'static str,
    pub(crate) tag: &'static str,
}

macro_rules! assets {
    ($($kind:literal: $($name:literal)+;)+) => {
        const FILES: &[(&str, &str, &str)] =
            &[$($((concat!("/", $name), $kind, include_str!(concat!("../assets/", $name)))),+),+];
    };
}

assets! {
    "text/html; charset=utf-8": "index.html";
    "text/css; charset=utf-8": "style.css";
    "image/svg+xml": "icon.svg";
    "text/javascript; charset=utf-8":
        "text.js" "dom.js" "api.js" "virtual.js" "syntax.js" "live.js" "charts.js" "graph.js" "attempt.js"
        "task.js" "inbox.js" "panel.js" "tasks.js" "timeline.js" "log.js" "cost.js" "events.js"
        "checkpoints.js" "slider.js" "controls.js" "loops.js" "main.js";
}

static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let hex = |text: &str| -> String {
        Sha256::digest(text).iter().take(12).map(|byte| format!("{byte:02x}")).collect()
    };
    FILES.iter().map(|(_, _, text)| format!("\"{}\"", hex(text))).collect()
});

/// The file at a path.
pub(crate) fn find(path: &str) -> Option<Asset> {
    let path = if path == "/" { "/index.html" } else { path };
    let at = FILES.iter().position(|(name, ..)| *name == path)?;
    let (_, kind, text) = FILES[at];
    Some(Asset { kind, text, tag: &TAGS[at] })
}

/// The text of a file of ours.
pub(crate) fn text(name: &str) -> &'static str {
    FILES.iter().find(|(path, ..)| path.strip_prefix('/') == Some(name)).map_or("", |(_, _, text)| text)
}

/// The scripts, each after those it needs.
pub(crate) fn scripts() -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_script = |(_, kind, _): &&(&str, &str, &str)| kind.starts_with("text/javascript");
    FILES.iter().filter(is_script).map(|(name, _, text)| (*name, *text))
}
