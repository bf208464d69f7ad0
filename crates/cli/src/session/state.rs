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
use wiggum_core::event::{EndReason, Trouble};
use wiggum_core::signal::support::{Rows, Signal};
use wiggum_engine::checkout::{Checkout, StateRoot};
use wiggum_workspace::beneath::{self, Links};
use wiggum_workspace::paths::FileLock;

use super::checkpoint::{Checkpoint, Noted};
use super::known;
use super::rules::Rules;
use crate::config::{self, Flags, Sources};

/// Written into every file; another number means another program wrote it.
const VERSION: u32 = 1;

/// The state of a session holds a prompt, some notes and a checkpoint: all of them bounded, and far smaller.
const MOST: usize = 64 * 1024 * 1024;

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
    #[serde(flatten)]
    pub(crate) rules: Rules,
    pub(crate) started_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    /// The agent is at work, as far as its hooks have told.
    pub(crate) working: bool,
    /// What the agent said last, in one line.
    pub(crate) last: String,
    pub(crate) ended: Option<Ended>,
    /// Why the loop stands still although it is not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) waiting: Option<Waiting>,
    /// The prompt that began the loop, by the agent's own id for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) begun_by: Option<String>,
    /// What the agent itself writes about the session, as its hooks have told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) transcript: Option<PathBuf>,
    /// How long that was when the loop began.
    #[serde(default)]
    pub(crate) transcript_start: u64,
    #[serde(default)]
    pub(crate) noted: Noted,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checkpoint: Option<Checkpoint>,
    #[serde(default)]
    pub(crate) seen: Seen,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub(crate) enum Waiting {
    /// The agent cannot work, in its own words.
    Agent { trouble: Trouble, message: String },
    /// A person has to answer.
    Person { question: String },
}

impl Waiting {
    /// Until when, where that was said.
    pub(crate) fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Agent { trouble: Trouble::UsageLimit { resets_at }, .. } => *resets_at,
            Self::Agent { .. } | Self::Person { .. } => None,
        }
    }

    /// Is there still something to wait for?
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.until().is_some_and(|until| until <= now)
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent { trouble: Trouble::UsageLimit { resets_at: Some(at) }, .. } => {
                write!(f, "waits until {at:.0}: usage limit")
            }
            Self::Agent { trouble, message } => {
                write!(f, "waits, the agent cannot work: {}", trouble.with(message))
            }
            Self::Person { question } => write!(f, "waits for your answer: {question}"),
        }
    }
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
    /// Errors in a row, whatever they were.
    pub(crate) errors: u32,
    /// What the last iterations have in common.
    pub(crate) rows: Rows,
    /// What supported a claim at the last stop.
    pub(crate) signals: Vec<Signal>,
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

impl Session {
    pub(crate) fn new(id: &SessionId, agent: Agent, prompt: &str, rules: Rules, now: Timestamp) -> Self {
        Self {
            version: VERSION,
            session_id: id.0.clone(),
            agent,
            prompt: prompt.to_owned(),
            iteration: 1,
            rules,
            started_at: now,
            updated_at: now,
            working: true,
            last: "Starting task".to_owned(),
            ended: None,
            waiting: None,
            begun_by: None,
            transcript: None,
            transcript_start: 0,
            noted: Noted::default(),
            checkpoint: None,
            seen: Seen::default(),
        }
    }

    /// The checkpoint that no prompt has told yet; from now on one has.
    pub(crate) fn carry_checkpoint(&mut self) -> Option<String> {
        let checkpoint = self.checkpoint.as_mut().filter(|checkpoint| !checkpoint.carried)?;
        checkpoint.carried = true;
        Some(checkpoint.text())
    }

    /// The agent has stopped, and the loop goes on with the user's next words.
    pub(crate) fn wait(&mut self, waiting: Waiting) {
        self.working = false;
        self.waiting = Some(waiting);
    }

    /// "3/10", or "3" where there is no limit.
    pub(crate) fn progress(&self) -> String {
        match self.rules.max_iterations {
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
        ancestors
            .map(|workspace| Self::new(workspace, id))
            .find(|place| fs::symlink_metadata(place.file()).is_ok())
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.id
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
        let bytes = beneath::read_plain(&path, Links::Refuse, MOST)
            .map_err(|source| SessionError::File { path: path.clone(), source })?;
        let mut session: Session = serde_json::from_slice(&bytes)
            .map_err(|source| SessionError::Broken { path: path.clone(), source })?;
        if session.version != VERSION {
            return Err(SessionError::Version { path, version: session.version });
        }
        if session.ended.is_none() && fs::symlink_metadata(self.cancel_file()).is_ok() {
            let detail = format!("cancelled in iteration {}", session.progress());
            session.ended = Some(Ended { reason: EndReason::ExplicitStop, detail, at: session.updated_at });
        }
        Ok(session)
    }

    pub(crate) fn save(&self, session: &Session) -> Result<(), SessionError> {
        let path = self.file();
        let written = serde_json::to_vec_pretty(session).map_err(io::Error::other);
        written
            .and_then(|bytes| self.put(&format!("{}.json", self.id), &bytes))
            .map_err(|source| SessionError::File { path, source })
    }

    /// Makes the directory for the state of sessions.
    pub(crate) fn prepare(&self) -> Result<(), SessionError> {
        let made = prepare(&self.workspace).and_then(|()| fs::create_dir_all(&self.directory));
        made.map_err(|source| SessionError::File { path: self.directory.clone(), source })?;
        known::note(&self.workspace);
        Ok(())
    }

    /// Begins a loop in this session, in place of an earlier one; false if this very prompt has begun it
    /// already.
    pub(crate) fn begin(&self, session: &Session, waits: impl FnOnce()) -> Result<bool, SessionError> {
        self.prepare()?;
        self.forget_old();
        let _lock = self.lock(waits)?;
        let same = |known: Session| known.begun_by.is_some() && known.begun_by == session.begun_by;
        if self.load().is_ok_and(same) {
            return Ok(false);
        }
        drop(fs::remove_file(self.cancel_file()));
        self.save(session)?;
        Ok(true)
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
        let name = format!("{}.cancelled", self.id);
        self.put(&name, b"").map_err(|source| SessionError::File { path, source })
    }

    /// Puts a file in place of whatever has its name, and writes through no link.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        beneath::replace(&self.directory, name, bytes).map_err(io::Error::other)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        fs::symlink_metadata(self.cancel_file()).is_ok()
    }

    fn cancel_file(&self) -> PathBuf {
        self.directory.join(format!("{}.cancelled", self.id))
    }

    /// Where the state file of another program is kept once its loop is ours.
    pub(crate) fn taken_over_file(&self) -> PathBuf {
        self.directory.join(format!("{}.ralph-loop.md", self.id))
    }
}

/// Can state be kept for this workspace at all?
pub(crate) fn prepare(workspace: &Path) -> io::Result<()> {
    state_root(workspace).map(drop)
}

/// Where the sessions of a workspace are kept. Outside of it, so that no agent can write its own loop.
fn directory(workspace: &Path) -> PathBuf {
    kept_for(workspace, "sessions")
}

/// A directory for what is kept of agents that work in this directory.
pub(crate) fn kept_for(workspace: &Path, what: &str) -> PathBuf {
    // Without a home directory nothing is found, and `prepare` says why nothing can be begun.
    state_root(workspace).map_or_else(|_| PathBuf::from(what), |root| root.of_path(what, workspace))
}

fn state_root(workspace: &Path) -> io::Result<StateRoot> {
    let env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let flags = Flags::default();
    let sources = Sources { workspace, user_file: config::user_file(&env), env: &env, flags: &flags };
    config::state_root(&sources).map_err(|_| io::Error::other("HOME is not set"))
}

/// Has `wiggum run` ever worked in this workspace?
pub(crate) fn has_loops(workspace: &Path) -> bool {
    let checkout = state_root(workspace).map(|root| Checkout::new(workspace, &root));
    checkout.is_ok_and(|checkout| checkout.find().is_ok_and(|found| found.is_some()))
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

    /// As the first version wrote it.
    const FIRST: &str = r#"{"version":1,"session_id":"old","agent":"other","prompt":"make it","iteration":2,
        "max_iterations":5,"completion_promise":null,"verify":["true"],"plan":null,"complete_without_claim":false,
        "no_progress_limit":3,"same_error_limit":5,"started_at":"2026-11-16T12:00:52.589621796Z",
        "updated_at":"2026-11-16T12:00:52.630044964Z","working":true,"last":"Not yet.","ended":null,
        "seen":{"mark":{"hash":2606636339112141293,"partial":false},"without_progress":1,"error":"",
        "error_times":0,"ready":0,"blocks":1,"transcript":0,
        "answered":{"message":1,"at":"2026-11-16T12:00:52.664691973Z","reason":"Go on."}}}"#;

    #[test]
    fn the_state_of_earlier_versions_is_understood() {
        let base = tempfile::tempdir().unwrap();
        let place = Place::new(base.path(), &SessionId::parse("old").unwrap());
        place.prepare().unwrap();
        fs::write(place.file(), FIRST).unwrap();
        let session = place.load().unwrap();
        assert_eq!((session.iteration, session.rules.max_iterations), (2, 5));
        assert_eq!(session.rules.verify, ["true"]);
        assert_eq!(session.rules.promises(), wiggum_core::signal::DEFAULT_PROMISES);
        place.save(&session).unwrap();
        assert_eq!(place.load().unwrap(), session);
    }
}
