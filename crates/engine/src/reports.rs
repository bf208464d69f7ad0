//! What an agent at work tells its loop through the MCP server it was handed: one file for each report,
//! in a directory of its own.
//!
//! That server is the agent's child, and so inside the agent's sandbox, where the journal is not to be
//! written. The directory is the one place of the private state that a sandbox leaves writable. The engine is
//! woken by it, reads what lies there as it would read a request, and takes it away once it is durable;
//! that it is gone is how the server knows that it was heard. Whoever writes there is believed nothing: a
//! report counts for the iteration and attempt it names and for no other, and only what an agent may ask
//! for is done.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use wiggum_core::event::{Event, Request};
use wiggum_core::ids::{Attempt, Iteration};
use wiggum_core::redact::Secrets;
use wiggum_core::state::Stage;

use crate::clock::Clock;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::host::Machine;

/// Tells an agent's server where to put its reports.
pub const VARIABLE: &str = "WIGGUM_REPORTS";

/// The longest report that is read. Questions with their context are a page or two.
pub const MAX_REPORT: usize = 64 * 1024;

/// What one attempt may tell; a heartbeat every ten seconds for three hours fits in.
const MAX_REPORTS: u32 = 1000;

const END: &str = "json";

/// What an agent tells, and as part of which attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    pub iteration: Iteration,
    pub attempt: Attempt,
    pub request: Request,
}

/// For the agent's server: puts a report where the engine finds it, whole or not at all.
pub fn put(dir: &Path, report: &Report) -> io::Result<PathBuf> {
    let text = serde_json::to_vec(report)?;
    if text.len() > MAX_REPORT {
        let message = format!("a report may have {MAX_REPORT} bytes, this one has {}", text.len());
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    // Names are in order of time, so reports are read in the order in which they were made.
    let name = Uuid::now_v7().simple().to_string();
    let (half, whole) = (dir.join(format!("{name}.half")), dir.join(format!("{name}.{END}")));
    File::create_new(&half)?.write_all(&text)?;
    fs::rename(&half, &whole)?;
    Ok(whole)
}

/// For the agent's server: waits until the engine took a report, at most so long.
pub fn is_taken(report: &Path, limit: Duration) -> bool {
    let clock = Clock::starting_after(Arc::new(Machine::new()), None);
    let watch = report.parent().map(crate::desk::watch::Watch::over_any);
    loop {
        if !report.exists() {
            return true;
        }
        let left = limit.saturating_sub(clock.elapsed());
        match &watch {
            Some(watch) if !left.is_zero() => drop(watch.wait(Some(left))),
            Some(_) | None => return !report.exists(),
        }
    }
}

/// The reports of one agent at work.
pub(crate) struct Reports {
    dir: PathBuf,
    taken: u32,
    _watcher: Option<Box<dyn Send>>,
}

impl Reports {
    /// An empty place; what an earlier agent left there was about its own attempt.
    pub(crate) fn prepare(dir: &Path) -> io::Result<()> {
        match fs::symlink_metadata(dir) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(dir)?,
            Ok(_) => fs::remove_file(dir)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        fs::create_dir_all(dir)
    }

    pub(crate) fn open(dir: PathBuf, watcher: Option<Box<dyn Send>>) -> Self {
        Self { dir, taken: 0, _watcher: watcher }
    }

    /// What lies there, oldest first, as many as are still to be heard.
    fn lying(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut found: Vec<PathBuf> =
            entries.filter(|path| path.extension().is_some_and(|end| end == END)).collect();
        found.sort();
        found.truncate(64);
        found
    }
}

/// Reads what anybody may have put there: a plain file of bounded size, and no link to another.
fn read(path: &Path, secrets: &Secrets) -> Result<Report, String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| error.to_string())?;
    let file = File::from(file);
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return Err("it is no plain file".to_owned());
    }
    let mut text = Vec::new();
    let limit = u64::try_from(MAX_REPORT).unwrap_or(u64::MAX);
    file.take(limit + 1).read_to_end(&mut text).map_err(|error| error.to_string())?;
    if text.len() > MAX_REPORT {
        return Err(format!("it is longer than {MAX_REPORT} bytes"));
    }
    // No copy of a secret can be forgotten that was never read.
    serde_json::from_str(&secrets.hide(&String::from_utf8_lossy(&text))).map_err(|error| error.to_string())
}

impl Engine<'_> {
    /// Takes up what the agent at work has told.
    pub(crate) fn take_reports(&mut self) -> Result<(), EngineError> {
        let Some(reports) = self.agent.as_ref().and_then(|agent| agent.reports.as_ref()) else {
            return Ok(());
        };
        let lying = reports.lying();
        for path in &lying {
            self.take_report(path)?;
        }
        // Gone means heard, and heard means durable.
        self.flush()?;
        for path in &lying {
            drop(fs::remove_file(path));
        }
        if !lying.is_empty() {
            self.write_status_file();
        }
        Ok(())
    }

    fn take_report(&mut self, path: &Path) -> Result<(), EngineError> {
        let Some(open) = self.journal.state.open.here() else { return Ok(()) };
        let (task, current) = (open.task.clone(), (open.iteration, open.attempt));
        let (at_work, by) = (open.stage == Stage::Agent, open.agent.clone());
        let now = self.clock.now();
        let Some(agent) = &mut self.agent else { return Ok(()) };
        let Some(reports) = &mut agent.reports else { return Ok(()) };
        reports.taken += 1;
        if reports.taken > MAX_REPORTS {
            // It has said enough to be heard; the journal is not its to fill.
            return Ok(());
        }
        agent.heart.beat(now);
        let why = match read(path, &self.secrets) {
            Ok(report) if !at_work || (report.iteration, report.attempt) != current => format!(
                "a report of iteration {}, attempt {} came too late and was refused",
                report.iteration, report.attempt
            ),
            Ok(Report { request, .. }) if may_ask(&request) => {
                return self.handle_request(None, &request, &by);
            }
            Ok(_) => "the agent asked for what only people may do, and was refused".to_owned(),
            Err(problem) => format!("a report of the agent cannot be read and was refused: {problem}"),
        };
        self.record(Event::RequestRefused { request: None, task: Some(task), by, why });
        Ok(())
    }
}

/// What an agent may ask of its own loop.
fn may_ask(request: &Request) -> bool {
    match request {
        Request::Report { .. } | Request::Handoff | Request::Checkpoint => true,
        Request::Pause
        | Request::Resume
        | Request::Stop
        | Request::Nudge { .. }
        | Request::Skip { .. }
        | Request::Retry { .. }
        | Request::Answer { .. }
        | Request::SetStatus { .. }
        | Request::BacklogEdited { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report { iteration: 3, attempt: 2, request: Request::Checkpoint }
    }

    fn nothing_secret() -> Secrets {
        Secrets::among([])
    }

    #[test]
    fn a_secret_in_a_report_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let said = |text: &str| Report { request: Request::Nudge { text: text.to_owned() }, ..report() };
        let path = put(dir.path(), &said("the key is s3cr3t-s3cr3t")).unwrap();
        let secrets = Secrets::among([("API_KEY".to_owned(), "s3cr3t-s3cr3t".to_owned())]);
        let read = format!("{:?}", read(&path, &secrets).unwrap());
        assert!(read.contains("the key is") && !read.contains("s3cr3t"), "{read}");
    }

    #[test]
    fn a_report_is_read_as_it_was_put_and_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let first = put(dir.path(), &report()).unwrap();
        let second = put(dir.path(), &Report { attempt: 4, ..report() }).unwrap();
        let reports = Reports::open(dir.path().to_owned(), None);
        assert_eq!(reports.lying(), [first.clone(), second]);
        assert_eq!(read(&first, &nothing_secret()), Ok(report()));
    }

    #[test]
    fn what_is_no_report_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let secret = put(dir.path(), &report()).unwrap();
        std::os::unix::fs::symlink(&secret, path("a.json")).unwrap();
        fs::create_dir(path("b.json")).unwrap();
        fs::write(path("c.json"), vec![b' '; MAX_REPORT + 1]).unwrap();
        fs::write(path("d.json"), b"{\"iteration\": 1}").unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("e.json"), Mode::RWXU).unwrap();
        for name in ["a", "b", "c", "d", "e"] {
            assert!(read(&path(&format!("{name}.json")), &nothing_secret()).is_err(), "{name}");
        }
    }

    #[test]
    fn an_earlier_agents_reports_are_not_the_next_ones() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("reports");
        Reports::prepare(&place).unwrap();
        put(&place, &report()).unwrap();
        Reports::prepare(&place).unwrap();
        assert!(Reports::open(place, None).lying().is_empty());
    }

    #[test]
    fn a_link_in_place_of_the_directory_is_replaced_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (elsewhere, place) = (dir.path().join("elsewhere"), dir.path().join("reports"));
        fs::create_dir(&elsewhere).unwrap();
        let kept = put(&elsewhere, &report()).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &place).unwrap();
        Reports::prepare(&place).unwrap();
        assert!(kept.exists() && !fs::symlink_metadata(&place).unwrap().is_symlink());
    }

    #[test]
    fn too_long_a_report_is_said_to_be_so() {
        let dir = tempfile::tempdir().unwrap();
        let long = Report { request: Request::Nudge { text: "x".repeat(MAX_REPORT) }, ..report() };
        let error = put(dir.path(), &long).unwrap_err();
        assert!(error.to_string().contains("bytes"), "{error}");
        assert!(is_taken(&dir.path().join("never.json"), Duration::ZERO));
    }
}
