//! Who lives in which pane: one small file per agent.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use wiggum_workspace::beneath;
use wiggum_workspace::paths::{ProcessLock, write_whole};
use wiggum_workspace::process;

use super::DispatchError;
use super::tmux::{Life, Pane};
use crate::session::state::{Place, Session, SessionId};

/// In the environment of everything an agent starts, by which it is found again.
pub(crate) const MARKER: &str = "WIGGUM_DISPATCH";

/// Longer names are no help in a list.
const LONGEST_NAME: usize = 40;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Agent {
    pub(crate) name: String,
    /// What was started, as people call it.
    pub(crate) agent: String,
    pub(crate) command: String,
    /// Where it works; its checks run there.
    pub(crate) workspace: PathBuf,
    pub(crate) pane: Pane,
    pub(crate) started_at: Timestamp,
    /// It lived there before us, so it is not ours to end.
    #[serde(default)]
    pub(crate) adopted: bool,
}

/// The agents of one workspace.
pub(crate) struct Roster {
    workspace: PathBuf,
    directory: PathBuf,
}

impl Roster {
    pub(crate) fn of(workspace: &Path) -> Self {
        let directory = crate::session::state::kept_for(workspace, "dispatch");
        Self { workspace: workspace.to_owned(), directory }
    }

    /// Makes the place where agents are noted.
    pub(crate) fn create(&self) -> Result<(), DispatchError> {
        let failed = |source| DispatchError::File { path: self.directory.clone(), source };
        crate::session::state::prepare(&self.workspace).map_err(failed)?;
        fs::create_dir_all(&self.directory).map_err(failed)?;
        crate::session::known::note(&self.workspace);
        Ok(())
    }

    pub(crate) fn get(&self, name: &str) -> Result<Agent, DispatchError> {
        valid(name)?;
        let path = self.file(name, "json");
        let bytes = match beneath::bytes_of(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(DispatchError::Unknown { name: name.to_owned() });
            }
            Err(source) => return Err(DispatchError::File { path, source }),
        };
        serde_json::from_slice(&bytes).map_err(|source| DispatchError::Broken { path, source })
    }

    /// Everybody, by name; what cannot be read is told.
    pub(crate) fn all(&self) -> Vec<Result<Agent, DispatchError>> {
        let Ok(entries) = fs::read_dir(&self.directory) else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            name.strip_suffix(".json").filter(|name| valid(name).is_ok()).map(str::to_owned)
        });
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names.iter().map(|name| self.get(name)).collect()
    }

    pub(crate) fn note(&self, agent: &Agent) -> Result<(), DispatchError> {
        let path = self.file(&agent.name, "json");
        let written = serde_json::to_vec_pretty(agent).map_err(std::io::Error::other);
        written
            .and_then(|bytes| write_whole(&path, &bytes))
            .map_err(|source| DispatchError::File { path, source })
    }

    pub(crate) fn forget(&self, name: &str) -> Result<(), DispatchError> {
        for ending in ["json", "pipe", "before"] {
            let path = self.file(name, ending);
            match fs::remove_file(&path) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(DispatchError::File { path, source });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Held by whoever speaks to the agent, until its process ends.
    pub(crate) fn lock(&self, name: &str) -> Result<ProcessLock, DispatchError> {
        let path = self.file(name, "lock");
        let lock = ProcessLock::try_acquire(&path).map_err(|source| DispatchError::File { path, source })?;
        lock.ok_or_else(|| DispatchError::Busy { name: name.to_owned() })
    }

    /// Does a `send` of another process go on with this agent?
    pub(crate) fn is_spoken_to(&self, name: &str) -> bool {
        ProcessLock::is_held(&self.file(name, "lock")).unwrap_or(false)
    }

    /// Lets whoever waits for this agent look up.
    pub(crate) fn wake(&self, name: &str) {
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        let pipe = OpenOptions::new().write(true).custom_flags(flags).open(self.file(name, "pipe"));
        // Mostly nobody waits.
        drop(pipe.and_then(|mut pipe| pipe.write_all(b"\n")));
    }

    /// A file about this agent.
    pub(crate) fn file(&self, name: &str, ending: &str) -> PathBuf {
        self.directory.join(format!("{name}.{ending}"))
    }
}

/// Names become file names, windows and targets of tmux, where `.` and `:` mean something.
pub(crate) fn valid(name: &str) -> Result<(), DispatchError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let good = (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(plain);
    if good { Ok(()) } else { Err(DispatchError::Name { name: name.to_owned() }) }
}

impl Agent {
    pub(crate) fn session_id(&self) -> Result<SessionId, DispatchError> {
        Ok(SessionId::parse(&self.name)?)
    }

    /// Where the state of its task is.
    pub(crate) fn place(&self) -> Result<Place, DispatchError> {
        Ok(Place::new(&self.workspace, &self.session_id()?))
    }

    /// Its task, if it was ever given one.
    pub(crate) fn session(&self) -> Result<Option<Session>, DispatchError> {
        let place = self.place()?;
        Ok(if place.file().exists() { Some(place.load()?) } else { None })
    }

    /// A program that was just started has not heard of the task it goes on with.
    pub(crate) fn has_heard_nothing(&self) -> Result<(), DispatchError> {
        let Some(mut session) = self.session()?.filter(|session| session.working) else { return Ok(()) };
        session.working = false;
        Ok(self.place()?.save(&session)?)
    }

    /// Is there somebody to speak to?
    pub(crate) fn present(&self) -> Result<(), DispatchError> {
        let why = match self.pane.life()? {
            Life::Alive => return Ok(()),
            Life::Ended(how) => how,
            Life::Closed => "its pane was closed, or tmux has ended".to_owned(),
        };
        Err(DispatchError::Gone { name: self.name.clone(), why })
    }

    /// Ends its program and all that was started by it. One that was adopted is only let go.
    pub(crate) fn end(&self) -> u32 {
        if self.adopted {
            if self.pane.life().is_ok_and(|life| life != Life::Closed) {
                self.pane.let_go();
            }
            return 0;
        }
        let ended = process::end_marked(MARKER, &self.pane.token);
        if self.pane.life().is_ok_and(|life| life != Life::Closed) {
            self.pane.close();
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_words() {
        for name in ["a", "front-end_2", "-x"] {
            assert!(valid(name).is_ok(), "{name}");
        }
        for name in ["", ".", "a.b", "a:b", "../x", "a b", "$(x)", "é", &"a".repeat(41)] {
            assert!(valid(name).is_err(), "{name}");
        }
    }
}
