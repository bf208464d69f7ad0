//! A real browser for tests of the page: what drives it, and what judges whether everybody can use a page.

use std::io;
use std::path::{Path, PathBuf};

use crate::mcp::npm;

/// Exactly these; neither brings a browser of its own.
const PACKAGES: [&str; 2] = ["playwright-core@1.65.0", "axe-core@4.14.0"];

/// The modules, as a script imports them.
#[derive(Clone, Debug)]
pub struct Browser {
    pub playwright: PathBuf,
    pub axe: PathBuf,
    /// Where pictures may be left.
    pub shots: PathBuf,
}

impl Browser {
    /// Installed once below `target/`. Where there is none, says loudly what is not tested.
    #[expect(clippy::print_stderr, reason = "what is skipped must be seen")]
    pub fn find_or_skip(what: &str) -> Option<Self> {
        let found = Self::find();
        if let Err(why) = &found {
            eprintln!("SKIPPED: {what}: {why}");
        }
        found.ok()
    }

    fn find() -> io::Result<Self> {
        if !Path::new("/usr/bin/chromium").exists() {
            return Err(io::Error::other("there is no /usr/bin/chromium"));
        }
        let programs = npm("browser", &PACKAGES)?;
        let modules = programs.with_file_name("");
        let shots = modules.with_file_name("shots");
        std::fs::create_dir_all(&shots)?;
        Ok(Self {
            playwright: modules.join("playwright-core/index.mjs"),
            axe: modules.join("axe-core/axe.min.js"),
            shots,
        })
    }
}
