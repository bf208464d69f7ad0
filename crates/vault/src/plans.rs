//! Plans as files of the vault: which names count, and what is in them.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use wiggum_backlog::{Backlog, PlanHeader};
use wiggum_core::task::{FileStatus, Task};
use wiggum_workspace::beneath::{Links, read_plain_text};

use crate::layout::{APPROVED, Vault};

/// More than anybody writes by hand; what is larger is not a plan.
const MAX_PLAN: usize = 4 << 20;

/// A plan that a person approved by moving its file.
#[derive(Clone, Debug)]
pub struct Approved {
    pub path: PathBuf,
    /// Its path in the folder of approved plans.
    pub name: String,
    pub header: PlanHeader,
    pub(crate) steps: Arc<[Task]>,
    pub total: usize,
    pub done: usize,
    /// Steps that are neither done nor skipped.
    pub open: usize,
    /// What is to be said where it has not as many steps as it says.
    pub(crate) miscounted: Option<String>,
}

impl Approved {
    pub(crate) fn id(&self) -> &str {
        &self.header.plan_id
    }

    /// Its path in the folder of approved plans, without the ending.
    pub(crate) fn stem(&self) -> &str {
        stem(&self.name)
    }

    /// Its path in the vault.
    pub(crate) fn place(&self) -> String {
        format!("{APPROVED}/{}", self.name)
    }
}

/// What a file turned out to be.
#[derive(Clone, Debug)]
pub(crate) enum Look {
    Gone,
    Plan(Box<Approved>),
    /// It cannot be carried out as it is; perhaps more of it is still to come.
    Broken(String),
    /// It could not be started. It is tried again when it or the configuration is changed.
    NotStarted,
}

/// What tells one version of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
}

impl Stamp {
    /// How long ago it was written; not at all, if a clock says that it is still to come.
    pub(crate) fn age(&self) -> Duration {
        self.modified.and_then(|modified| modified.elapsed().ok()).unwrap_or_default()
    }

    pub(crate) fn modified(&self) -> Option<SystemTime> {
        self.modified
    }
}

/// Is this the path of a note, and not of something an editor left there?
pub(crate) fn is_note(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let lower = name.to_lowercase();
    lower.ends_with(".md") && !name.starts_with(['.', '~']) && !lower.contains(".tmp.")
}

pub(crate) fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Could this be a plan? Nothing is said of whether it is a good one.
pub(crate) fn reads_like_a_plan(text: &str) -> bool {
    text.contains("plan_id:") || text.contains("**Step ")
}

/// `None` if there is no file, or something that is no file.
pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    let data = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(Stamp { modified: data.modified().ok(), length: data.len() })
}

pub(crate) fn look(vault: &Vault, name: &str) -> Look {
    let Ok(path) = vault.place(&format!("{APPROVED}/{name}")) else {
        return Look::Broken("it is a symbolic link, or in one".to_owned());
    };
    if stamp(&path).is_none() {
        return Look::Gone;
    }
    let text = match read_plain_text(&path, Links::Refuse, MAX_PLAN) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Look::Gone,
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            return Look::Broken("it is too large".to_owned());
        }
        Err(error) => return Look::Broken(error.to_string()),
    };
    let backlog = match Backlog::parse(name, text) {
        Ok(backlog) => backlog,
        Err(problems) => return Look::Broken(problems.to_string()),
    };
    let Some(header) = backlog.plan().cloned() else {
        return Look::Broken(
            "it is not a plan: there are no steps `- [ ] **Step 1:** … (action_type: …)`".to_owned(),
        );
    };
    let total = backlog.tasks().len();
    if let Some(problem) = backlog.missing_steps() {
        return Look::Broken(problem);
    }
    // Steps have no roles.
    let problems = backlog.unsupported(&|_| true);
    if !problems.is_empty() {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        return Look::Broken(problems.join("\n"));
    }
    let count =
        |wanted: &[FileStatus]| backlog.tasks().iter().filter(|task| wanted.contains(&task.status)).count();
    let open = count(&[FileStatus::Open, FileStatus::Failed]);
    let miscounted = backlog.miscounted_steps();
    Look::Plan(Box::new(Approved {
        path,
        name: name.to_owned(),
        header,
        steps: backlog.tasks().into(),
        total,
        done: count(&[FileStatus::Done]),
        open,
        miscounted,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_count() {
        for name in ["a.md", "PLAN_x 1.MD", "a.b.md", "b/a.md", "a.sync-conflict-2024-x.md"] {
            assert!(is_note(name), "{name}");
        }
        for name in [
            ".a.md",
            "a.md.tmp",
            "a.md~",
            "~a.md",
            "b/.a.md",
            ".a.md.icloud",
            "a.txt",
            ".p.md.wiggum-tmp",
            "a.tmp.md",
        ] {
            assert!(!is_note(name), "{name}");
        }
    }
}
