//! `.claude/ralph-loop.local.md`: the state of the well-known plugin, whose loop we can go on with.
//!
//! Front matter with `active`, `iteration`, `session_id`, `max_iterations`, `completion_promise` and
//! `started_at`; the rest is the prompt. A file without a session id could be anybody's and is left
//! alone: no session is caught by mistake.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use thiserror::Error;

use super::slash;
use super::state::{Agent, Place, Session, SessionId, Start};

#[derive(Debug, Error)]
pub(crate) enum RalphFileError {
    #[error("{} has a `{field}` that is no number: `{value}`", path.display())]
    NotANumber { path: PathBuf, field: &'static str, value: String },
    #[error("{} has no task below its front matter", path.display())]
    NoPrompt { path: PathBuf },
    #[error("{} has a completion promise of several lines or with `<` in it", path.display())]
    Promise { path: PathBuf },
    #[error("cannot move {}", path.display())]
    Move { path: PathBuf, source: io::Error },
}

/// The loop of another program that runs in this session.
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) start: Start,
    pub(crate) iteration: u32,
    pub(crate) started_at: Option<Timestamp>,
}

pub(crate) fn find(workspace: &Path, id: &SessionId) -> Result<Option<Found>, RalphFileError> {
    let path = workspace.join(".claude/ralph-loop.local.md");
    let Ok(text) = fs::read_to_string(&path) else { return Ok(None) };
    read(path, &text, &id.to_string())
}

fn read(path: PathBuf, text: &str, id: &str) -> Result<Option<Found>, RalphFileError> {
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
    let start = Start {
        prompt,
        max_iterations: number("max_iterations", 0)?,
        completion_promise: promise,
        ..Start::default()
    };
    let iteration = number("iteration", 1)?.max(1);
    let started_at = field("started_at").and_then(|text| text.parse().ok());
    Ok(Some(Found { path, start, iteration, started_at }))
}

impl Found {
    pub(crate) fn session(&self, id: &SessionId, agent: Agent, now: Timestamp) -> Session {
        let mut session = Session::new(id, agent, self.start.clone(), now);
        session.iteration = self.iteration;
        session.started_at = self.started_at.unwrap_or(now);
        session
    }

    /// Moves the file away as its loop becomes ours, or its own program would go on with it too.
    pub(crate) fn put_aside(&self, place: &Place) -> Result<(), RalphFileError> {
        fs::rename(&self.path, place.taken_over_file())
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
        read(PathBuf::from("ralph-loop.local.md"), text, "s-1")
    }

    #[test]
    fn the_loop_of_this_session_is_understood() {
        let text = "---\nactive: true\niteration: 4\nsession_id: s-1\nmax_iterations: 0\n\
                    completion_promise: \"ALL GREEN\"\nstarted_at: \"2026-01-02T03:04:05Z\"\n---\n\n\
                    Fix it.\n\n---\nAnd that.\n";
        let found = found(text).unwrap().unwrap();
        assert_eq!(found.iteration, 4);
        assert_eq!(found.start.max_iterations, 0);
        assert_eq!(found.start.completion_promise.as_deref(), Some("ALL GREEN"));
        assert_eq!(found.start.prompt, "Fix it.\n\n---\nAnd that.");
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
