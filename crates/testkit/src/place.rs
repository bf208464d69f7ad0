//! A place of its own for an agent: a repository, a home, and nothing left of either afterwards.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// Every process of the place has it in its environment, with the place's directory.
const MARKER: &str = "SANDBOX";

pub struct Place {
    base: tempfile::TempDir,
}

impl Place {
    /// With an empty repository in it.
    pub fn new() -> io::Result<Self> {
        let place = Self { base: tempfile::tempdir()? };
        for directory in [place.home(), place.repository(), place.temporary()] {
            fs::create_dir_all(directory)?;
        }
        let mut git = place.command(Path::new("git"));
        let status = git.args(["init", "-q", "-b", "main"]).status()?;
        if status.success() { Ok(place) } else { Err(io::Error::other("git init failed")) }
    }

    pub fn home(&self) -> PathBuf {
        self.directory().join("home")
    }

    /// Where the agent works.
    pub fn repository(&self) -> PathBuf {
        self.directory().join("repo")
    }

    /// Not the whole place: Codex wants its home outside of it.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.directory().join("tmp")
    }

    /// A command that knows nothing of this machine but where its programs are. It reads nothing.
    pub fn command(&self, program: &Path) -> Command {
        #[expect(clippy::disallowed_methods, reason = "tests start the agents themselves")]
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.repository()).stdin(Stdio::null());
        command.env("PATH", crate::agents::search_path()).env("HOME", self.home());
        command.env(MARKER, self.directory()).env("TMPDIR", self.temporary());
        command.env("LC_ALL", "C.UTF-8").env("TZ", "UTC").env("TERM", "dumb");
        command
    }

    /// What still runs here: the number of each process and how it was called.
    pub fn processes(&self) -> Vec<(i32, String)> {
        let marker = format!("{MARKER}={}", self.directory().display());
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        all.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
            .filter(|(_, process)| self.owns(process, &marker))
            .map(|(pid, process)| {
                let line = fs::read(process.join("cmdline")).unwrap_or_default();
                (pid, String::from_utf8_lossy(&line).replace('\0', " "))
            })
            .collect()
    }

    /// Ends whatever still runs here.
    pub fn end_all(&self) {
        for (pid, _) in self.processes() {
            if let Some(pid) = Pid::from_raw(pid) {
                // It may have ended by itself meanwhile.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }

    /// The path of a temporary directory may have links in it, which agents would see through.
    fn directory(&self) -> PathBuf {
        self.base.path().canonicalize().unwrap_or_else(|_| self.base.path().to_owned())
    }

    fn owns(&self, process: &Path, marker: &str) -> bool {
        let inside = fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(self.directory()));
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        inside || environment.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.end_all();
    }
}
