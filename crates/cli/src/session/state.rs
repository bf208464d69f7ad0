//! What is known of one session, and the file that holds it.
//!
//! Session ids come from outside and become file names, so they are a type of their own.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use wiggum_core::event::EndReason;
use wiggum_engine::state_dir::StateDir;
use wiggum_workspace::git::Git;
use wiggum_workspace::paths::{FileLock, write_whole};

/// Written into every file; another number means another program wrote it.
const VERSION: u32 = 1;

/// Nobody resumes a session after so long.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(30 * 24 * 60 * 60);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Session {
    version: u32,
    pub(crate) session_id: String,
    pub(crate) agent: Agent,
    /// The task as the user gave it.
    pub(crate) prompt: String,
    /// The iteration under way, or the last one; the first is 1.
    pub(crate) iteration: u32,
    /// 0 means no limit.
    pub(crate) max_iterations: u32,
    pub(crate) completion_promise: Option<String>,
    /// Commands that must succeed; where there are none, those of the configuration.
    pub(crate) verify: Vec<String>,
    /// A file of the workspace in which every box must be ticked.
    pub(crate) plan: Option<String>,
    pub(crate) complete_without_claim: bool,
    pub(crate) no_progress_limit: u32,
    pub(crate) same_error_limit: u32,
    pub(crate) started_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    /// The agent is at work, as far as its hooks have told.
    pub(crate) working: bool,
    /// What the agent said last, in one line.
    pub(crate) last: String,
    pub(crate) ended: Option<Ended>,
    #[serde(default)]
    pub(crate) seen: Seen,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Agent {
    Claude,
    Codex,
    Other,
}

impl Agent {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Other => "agent",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) reason: EndReason,
    pub(crate) detail: String,
    pub(crate) at: Timestamp,
}

/// What earlier stops left to compare with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Seen {
    /// The repository at the last stop.
    pub(crate) mark: Option<super::progress::Mark>,
    pub(crate) without_progress: u32,
    pub(crate) error: String,
    pub(crate) error_times: u32,
    /// Stops in a row in which the agent said that the work is ready, without promising it.
    pub(crate) ready: u32,
    /// Times in a row the agent was sent back without having used a tool since.
    pub(crate) blocks: u32,
    /// How long the transcript was at the last stop.
    pub(crate) transcript: u64,
    /// The last stop and our answer to it, should the same stop be asked about twice.
    pub(crate) answered: Option<Answered>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answered {
    /// A hash of what the agent had said.
    pub(crate) message: u64,
    pub(crate) at: Timestamp,
    pub(crate) reason: String,
}

/// What a loop is started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) prompt: String,
    pub(crate) max_iterations: u32,
    pub(crate) completion_promise: Option<String>,
    pub(crate) verify: Vec<String>,
    /// A file of the workspace in which every box must be ticked.
    pub(crate) plan: Option<String>,
    pub(crate) complete_without_claim: bool,
    pub(crate) no_progress_limit: u32,
    pub(crate) same_error_limit: u32,
}

impl Default for Start {
    fn default() -> Self {
        Self {
            prompt: String::new(),
            max_iterations: super::MAX_ITERATIONS,
            completion_promise: None,
            verify: Vec::new(),
            plan: None,
            complete_without_claim: false,
            no_progress_limit: super::NO_PROGRESS,
            same_error_limit: super::SAME_ERROR,
        }
    }
}

impl Session {
    pub(crate) fn new(id: &SessionId, agent: Agent, start: Start, now: Timestamp) -> Self {
        Self {
            version: VERSION,
            session_id: id.0.clone(),
            agent,
            prompt: start.prompt,
            iteration: 1,
            max_iterations: start.max_iterations,
            completion_promise: start.completion_promise,
            verify: start.verify,
            plan: start.plan,
            complete_without_claim: start.complete_without_claim,
            no_progress_limit: start.no_progress_limit,
            same_error_limit: start.same_error_limit,
            started_at: now,
            updated_at: now,
            working: true,
            last: "Starting task".to_owned(),
            ended: None,
            seen: Seen::default(),
        }
    }

    /// "3/10", or "3" where there is no limit.
    pub(crate) fn progress(&self) -> String {
        match self.max_iterations {
            0 => self.iteration.to_string(),
            max => format!("{}/{max}", self.iteration),
        }
    }

    pub(crate) fn end(&mut self, reason: EndReason, detail: String, now: Timestamp) {
        self.working = false;
        self.updated_at = now;
        self.ended = Some(Ended { reason, detail, at: now });
    }
}

/// A session's id, fit to name a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionId(String);

#[derive(Debug, Error)]
pub(crate) enum SessionError {
    #[error(
        "`{}` is not a session id: letters, digits, `-`, `_` and `.` are allowed",
        wiggum_core::text::clip(id, 60)
    )]
    Id { id: String },
    #[error("the state of this session in {} is broken", path.display())]
    Broken { path: PathBuf, source: serde_json::Error },
    #[error("the state of this session in {} is of version {version}, which this wiggum does not know", path.display())]
    Version { path: PathBuf, version: u32 },
    #[error("cannot read or write {}", path.display())]
    File { path: PathBuf, source: io::Error },
}

impl SessionId {
    pub(crate) fn parse(id: &str) -> Result<Self, SessionError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let good = (1..=128).contains(&id.len()) && !id.starts_with('.') && id.bytes().all(plain);
        if good { Ok(Self(id.to_owned())) } else { Err(SessionError::Id { id: id.to_owned() }) }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where one session's state lies.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) workspace: PathBuf,
    directory: PathBuf,
    id: SessionId,
}

impl Place {
    pub(crate) fn new(workspace: &Path, id: &SessionId) -> Self {
        Self { workspace: workspace.to_owned(), directory: directory(workspace), id: id.clone() }
    }

    /// The state of this session that is nearest to one of these directories, if it has any.
    pub(crate) fn find<'a>(id: &SessionId, from: impl IntoIterator<Item = &'a Path>) -> Option<Self> {
        let ancestors = from.into_iter().flat_map(Path::ancestors);
        ancestors.map(|workspace| Self::new(workspace, id)).find(|place| place.file().exists())
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.directory.join(format!("{}.json", self.id))
    }

    /// Held by whoever judges or changes this session. `waits` is called if somebody else holds it.
    pub(crate) fn lock(&self, waits: impl FnOnce()) -> Result<FileLock, SessionError> {
        let path = self.directory.join(format!("{}.lock", self.id));
        let lock = FileLock::try_acquire(&path).and_then(|lock| match lock {
            Some(lock) => Ok(lock),
            None => {
                waits();
                FileLock::acquire(&path)
            }
        });
        lock.map_err(|source| SessionError::File { path, source })
    }

    pub(crate) fn load(&self) -> Result<Session, SessionError> {
        let path = self.file();
        let bytes = fs::read(&path).map_err(|source| SessionError::File { path: path.clone(), source })?;
        let mut session: Session = serde_json::from_slice(&bytes)
            .map_err(|source| SessionError::Broken { path: path.clone(), source })?;
        if session.version != VERSION {
            return Err(SessionError::Version { path, version: session.version });
        }
        if session.ended.is_none() && self.cancel_file().exists() {
            let detail = format!("cancelled in iteration {}", session.progress());
            session.ended = Some(Ended { reason: EndReason::ExplicitStop, detail, at: session.updated_at });
        }
        Ok(session)
    }

    pub(crate) fn save(&self, session: &Session) -> Result<(), SessionError> {
        let path = self.file();
        let written = serde_json::to_vec_pretty(session).map_err(io::Error::other);
        written
            .and_then(|bytes| write_whole(&path, &bytes))
            .map_err(|source| SessionError::File { path, source })
    }

    /// Makes the directory for the state of sessions.
    pub(crate) fn prepare(&self) -> Result<(), SessionError> {
        let made = prepare(&self.workspace).and_then(|()| fs::create_dir_all(&self.directory));
        made.map_err(|source| SessionError::File { path: self.directory.clone(), source })
    }

    /// Begins a loop in this session, in place of an earlier one.
    pub(crate) fn begin(&self, session: &Session, waits: impl FnOnce()) -> Result<(), SessionError> {
        self.prepare()?;
        self.forget_old();
        let _lock = self.lock(waits)?;
        drop(fs::remove_file(self.cancel_file()));
        self.save(session)
    }

    /// Removes what sessions left that nobody has touched for long.
    fn forget_old(&self) {
        let old = |entry: &fs::DirEntry| {
            let age = entry.metadata().and_then(|metadata| metadata.modified()).map(|time| time.elapsed());
            matches!(age, Ok(Ok(age)) if age > FORGOTTEN_AFTER)
        };
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten().filter(old) {
            drop(fs::remove_file(entry.path()));
        }
    }

    /// Cancels without waiting for the lock: a check that runs for minutes must not be in the way.
    pub(crate) fn cancel(&self) -> Result<(), SessionError> {
        let path = self.cancel_file();
        fs::write(&path, "").map_err(|source| SessionError::File { path, source })
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel_file().exists()
    }

    fn cancel_file(&self) -> PathBuf {
        self.directory.join(format!("{}.cancelled", self.id))
    }

    /// Where the state file of another program is kept once its loop is ours.
    pub(crate) fn taken_over_file(&self) -> PathBuf {
        self.directory.join(format!("{}.ralph-loop.md", self.id))
    }
}

/// Makes the state directory of a workspace.
pub(crate) fn prepare(workspace: &Path) -> io::Result<()> {
    StateDir::of(workspace).create()?;
    if workspace.join(".git").exists() {
        // A state directory that git shows is untidy, and no reason not to work.
        drop(Git::new(workspace, None).exclude_state_dir());
    }
    Ok(())
}

fn directory(workspace: &Path) -> PathBuf {
    StateDir::of(workspace).path().join("sessions")
}

/// Where a loop that is started in this directory belongs: the repository's root, or the directory
/// itself outside of one. Unlike git we only look; a session must not wait for a process.
pub(crate) fn workspace_of(directory: &Path) -> &Path {
    directory.ancestors().find(|ancestor| ancestor.join(".git").exists()).unwrap_or(directory)
}

/// Every session of a workspace, the one that moved last at the end; what cannot be read is told.
pub(crate) fn all(workspace: &Path) -> Vec<Result<Session, SessionError>> {
    let Ok(entries) = fs::read_dir(directory(workspace)) else { return Vec::new() };
    let ids = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        SessionId::parse(name.strip_suffix(".json")?).ok()
    });
    let mut sessions: Vec<_> = ids.map(|id| Place::new(workspace, &id).load()).collect();
    sessions.sort_by_key(|session| session.as_ref().map(|session| session.updated_at).ok());
    sessions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_never_lead_out_of_their_directory() {
        for id in ["f25a09db-4107-4f56-8e5d-65892d45885c", "a", "a.b_c-1"] {
            assert!(SessionId::parse(id).is_ok(), "{id}");
        }
        for id in ["", ".", "..", "../../x", "a/b", "a\\b", ".hidden", "a b", "a\0", "é", &"a".repeat(129)] {
            assert!(SessionId::parse(id).is_err(), "{id}");
        }
    }
}
