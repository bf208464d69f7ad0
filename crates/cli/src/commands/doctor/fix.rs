//! What can be repaired without asking: nothing here touches anybody's work, and every step looks again
//! whether it is still needed and whether somebody runs the loop by now.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use wiggum_core::ids::LoopId;
use wiggum_engine::error::chain;
use wiggum_engine::state_dir::StateDir;
use wiggum_engine::status;
use wiggum_engine::{Host, Machine};
use wiggum_workspace::beneath;
use wiggum_workspace::git::Git;
use wiggum_workspace::process;

use super::{Finding, git_lines};
use crate::commands::backlog;
use crate::commands::loops::{self, Loops, workspace};
use crate::failure::Failure;
use wiggum_engine::words::counted;

/// A safe repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// The holder is dead: the lease is free again.
    FreeLease(LoopId),
    /// What an engine that is gone has started is ended.
    EndProcesses(LoopId),
    WriteStatusFile(LoopId),
    /// The backlog says what the journal does.
    WriteStatuses,
    RemoveTemporary,
    MakePrivate,
    /// Git does not see `.wiggum/`.
    Exclude,
    ClearLocks,
    PruneWorktrees,
}

impl Serialize for Remedy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::FreeLease(_) => "free_lease",
            Self::EndProcesses(_) => "end_processes",
            Self::WriteStatusFile(_) => "write_status_file",
            Self::WriteStatuses => "write_statuses",
            Self::RemoveTemporary => "remove_temporary",
            Self::MakePrivate => "make_private",
            Self::Exclude => "exclude",
            Self::ClearLocks => "clear_locks",
            Self::PruneWorktrees => "prune_worktrees",
        })
    }
}

/// Repairs what was found, where that is possible, and says so in the finding.
pub(super) fn mend(finding: &mut Finding) {
    let Some(remedy) = finding.fix else { return };
    match apply(remedy) {
        Ok(done) => finding.fixed = Some(done),
        Err(failure) => finding.hint = Some(format!("could not be repaired: {}", failure.message)),
    }
}

fn apply(remedy: Remedy) -> Result<String, Failure> {
    match remedy {
        Remedy::FreeLease(id) => free_lease(id),
        Remedy::EndProcesses(id) => {
            idle(id)?;
            let ended = process::end_marked("WIGGUM_LOOP_ID", &id.to_string());
            Ok(format!("ended {ended} of them"))
        }
        Remedy::WriteStatusFile(id) => write_status_file(id),
        Remedy::WriteStatuses => write_statuses(),
        Remedy::RemoveTemporary => {
            backlog::locate(None)?.file.remove_temporary()?;
            Ok("removed".to_owned())
        }
        Remedy::MakePrivate => {
            fs::set_permissions(loops::require()?.dir.path(), fs::Permissions::from_mode(0o700))
                .map_err(|error| Failure::other(error.to_string()))?;
            Ok("nobody else can read it now".to_owned())
        }
        Remedy::Exclude => {
            repository()?.exclude_state_dir().map_err(|error| Failure::other(chain(&error)))?;
            Ok("added it to .git/info/exclude".to_owned())
        }
        Remedy::ClearLocks => clear_locks(),
        Remedy::PruneWorktrees => git_lines(&repository()?, &["worktree", "prune"])
            .map(|_| "git has forgotten it".to_owned())
            .ok_or_else(|| Failure::other("git refused")),
    }
}

/// The loops here, if nobody runs this one.
fn idle(id: LoopId) -> Result<Loops, Failure> {
    let loops = loops::require()?;
    match loops.lease(id)?.alive() {
        Some(holder) => Err(Failure::other(format!("process {} runs it by now", holder.pid))),
        None => Ok(loops),
    }
}

/// Takes the lease over from the dead and gives it back, so that nothing of theirs is written any more.
fn free_lease(id: LoopId) -> Result<String, Failure> {
    let mut loops = idle(id)?;
    let machine = Machine::new();
    let is_alive = |holder: &wiggum_store::Holder| machine.is_alive(holder);
    let epoch = loops.store.acquire(id, &machine.identity(), &is_alive, Timestamp::now())?;
    loops.store.release(id, epoch)?;
    Ok("nobody holds it any more; `wiggum run` goes on with it".to_owned())
}

fn write_status_file(id: LoopId) -> Result<String, Failure> {
    let loops = idle(id)?;
    let text = status::projection(&loops.state(id)?, Timestamp::now());
    let path = format!("{}/status.json", StateDir::shared_loop_dir(id));
    beneath::replace(loops.checkout.path(), &path, text.as_bytes())
        .map_err(|error| Failure::other(chain(&error)))?;
    Ok("written anew from the journal".to_owned())
}

fn write_statuses() -> Result<String, Failure> {
    let mut open = backlog::find(None)?;
    let Some(over) = open.loop_over()?.filter(|over| !over.alive) else {
        return Err(Failure::other("somebody runs it by now"));
    };
    let state = over.loops.state(over.record.id)?;
    let due = super::stored::unwritten(&state, open.backlog()?).len();
    open.file.edit(|backlog| {
        for id in &state.status_due {
            let (Some(entry), Some(task)) = (state.task(id), backlog.task(id.as_str())) else { continue };
            let status = entry.state.file_status();
            if task.status == entry.spec.status && backlog.dialect().can_say(status) {
                backlog.set_status(id.as_str(), status)?;
            }
        }
        Ok(())
    })?;
    Ok(format!("wrote {}", counted(due, "status")))
}

fn clear_locks() -> Result<String, Failure> {
    let removed = repository()?.clear_dead_lock().map_err(|error| Failure::other(chain(&error)))?;
    if removed.is_empty() {
        return Err(Failure::other("a git works here"));
    }
    let names: Vec<String> = removed.iter().map(|path| path.display().to_string()).collect();
    Ok(format!("removed {}", names.join(", ")))
}

fn repository() -> Result<Git, Failure> {
    let found = Git::discover(&workspace()?).map_err(|error| Failure::other(chain(&error)))?;
    found.ok_or_else(|| Failure::other("not inside a git repository"))
}
