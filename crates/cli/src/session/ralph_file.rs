//! `.claude/ralph-loop.local.md`: the state of the well-known plugin, whose loop we can go on with.
//!
//! Front matter with `active`, `iteration`, `session_id`, `max_iterations`, `completion_promise` and
//! `started_at`; the rest is the prompt. A file without a session id could be anybody's and is left
//! alone: no session is caught by mistake.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use thiserror::Error;
use wiggum_workspace::beneath::{self, CreateError};

use super::rules::{LoopOptions, Rules};
use super::slash;
use super::state::{Agent, Place, Session, SessionId};

#[derive(Debug, Error)]
pub(crate) enum RalphFileError {
    #[error("{} has a `{field}` that is no number: `{value}`", path.display())]
    NotANumber { path: PathBuf, field: &'static str, value: String },
    #[error("{} has no task below its front matter", path.display())]
    NoPrompt { path: PathBuf },
    #[error("{} has a completion promise of several lines or with `<` in it", path.display())]
    Promise { path: PathBuf },
    #[error("cannot move {}", path.display())]
    Move { path: PathBuf, source: CreateError },
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: CreateError },
}

/// The loop of another program that runs in this session.
pub(crate) struct Found {
    workspace: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) options: LoopOptions,
    pub(crate) iteration: u32,
    pub(crate) started_at: Option<Timestamp>,
}

pub(crate) fn find(workspace: &Path, id: &SessionId) -> Result<Option<Found>, RalphFileError> {
    let path = workspace.join(FILE);
    let text = match beneath::read(workspace, FILE, MOST) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        // People keep `.claude` behind a link; only a file that is there and cannot be taken is worth a word.
        Err(_) if fs::symlink_metadata(&path).is_err() => return Ok(None),
        Err(source) => return Err(RalphFileError::Read { path, source }),
    };
    read(path, workspace, &String::from_utf8_lossy(&text), &id.to_string())
}

/// Where the plugin keeps its state, in the workspace.
const FILE: &str = ".claude/ralph-loop.local.md";
/// A prompt and some lines; larger ones are somebody's who wants us to run out of memory.
const MOST: usize = 4 * 1024 * 1024;

fn read(path: PathBuf, workspace: &Path, text: &str, id: &str) -> Result<Option<Found>, RalphFileError> {
    let Some((matter, body)) = front_matter(text) else { return Ok(None) };
    let field = |name: &str| {
        matter.lines().find_map(|line| Some(unquoted(line.strip_prefix(name)?.strip_prefix(':')?.trim())))
    };
    if field("active") != Some("true") || field("session_id") != Some(id) {
        return Ok(None);
    }
    let number = |name: &'static str, default: u32| match field(name) {
        None | Some("" | "null") => Ok(default),
        Some(value) => value.parse().map_err(|_| RalphFileError::NotANumber {
            path: path.clone(),
            field: name,
            value: value.to_owned(),
        }),
    };
    let promise = match field("completion_promise") {
        None | Some("" | "null" | "~") => None,
        Some(text) => Some(slash::promise(text).map_err(|_| RalphFileError::Promise { path: path.clone() })?),
    };
    let prompt = body.trim().to_owned();
    if prompt.is_empty() {
        return Err(RalphFileError::NoPrompt { path });
    }
    let options = LoopOptions {
        prompt,
        max_iterations: Some(number("max_iterations", 0)?),
        completion_promise: promise,
        ..LoopOptions::default()
    };
    let iteration = number("iteration", 1)?.max(1);
    let started_at = field("started_at").and_then(|text| text.parse().ok());
    Ok(Some(Found { workspace: workspace.to_owned(), path, options, iteration, started_at }))
}

impl Found {
    pub(crate) fn session(&self, id: &SessionId, agent: Agent, rules: Rules, now: Timestamp) -> Session {
        let mut session = Session::new(id, agent, &self.options.prompt, rules, now);
        session.iteration = self.iteration;
        session.started_at = self.started_at.unwrap_or(now);
        session
    }

    /// Moves the file away as its loop becomes ours, or its own program would go on with it too.
    pub(crate) fn put_aside(&self, place: &Place) -> Result<(), RalphFileError> {
        beneath::take_away(&self.workspace, FILE, &place.taken_over_file())
            .map_err(|source| RalphFileError::Move { path: self.path.clone(), source })
    }
}

fn front_matter(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches('\u{feff}');
    let rest = text.strip_prefix("---")?.trim_start_matches([' ', '\t', '\r']).strip_prefix('\n')?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

fn unquoted(text: &str) -> &str {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Result<Option<Found>, RalphFileError> {
        read(PathBuf::from("ralph-loop.local.md"), Path::new("."), text, "s-1")
    }

    #[test]
    fn the_loop_of_this_session_is_understood() {
        let text = "---\nactive: true\niteration: 4\nsession_id: s-1\nmax_iterations: 0\n\
                    completion_promise: \"ALL GREEN\"\nstarted_at: \"2026-01-02T03:04:05Z\"\n---\n\n\
                    Fix it.\n\n---\nAnd that.\n";
        let found = found(text).unwrap().unwrap();
        assert_eq!(found.iteration, 4);
        assert_eq!(found.options.max_iterations, Some(0));
        assert_eq!(found.options.completion_promise.as_deref(), Some("ALL GREEN"));
        assert_eq!(found.options.prompt, "Fix it.\n\n---\nAnd that.");
        assert_eq!(found.started_at, Some("2026-01-02T03:04:05Z".parse().unwrap()));
    }

    #[test]
    fn what_belongs_to_nobody_or_another_is_left_alone() {
        for matter in [
            "active: true\nsession_id: s-2",
            "active: true\nsession_id:",
            "active: true",
            "active: false\nsession_id: s-1",
        ] {
            assert!(found(&format!("---\n{matter}\n---\nx\n")).unwrap().is_none(), "{matter}");
        }
        assert!(found("no front matter").unwrap().is_none());
        assert!(found("---\nactive: true\nsession_id: s-1\n").unwrap().is_none());
    }

    #[test]
    fn a_broken_file_is_said_to_be_broken() {
        for matter in ["iteration: many", "completion_promise: <b>", "max_iterations: -1"] {
            let text = format!("---\nactive: true\nsession_id: s-1\n{matter}\n---\nx\n");
            assert!(found(&text).is_err(), "{matter}");
        }
        assert!(found("---\nactive: true\nsession_id: s-1\n---\n\n").is_err());
    }
}
