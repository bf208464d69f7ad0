//! What people say is done while no loop runs over the backlog. The file alone does not tell who set a box in it, so
//! their word is kept beside the store until a loop takes the task in.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use wiggum_core::ids::TaskId;
use wiggum_workspace::beneath;
use wiggum_workspace::paths::{FileLock, write_atomic};

use crate::checkout::{CheckoutError, on};
use crate::state_dir::StateDir;

/// One task that somebody set to done.
#[derive(Serialize, Deserialize)]
struct Done {
    backlog: String,
    task: TaskId,
    by: String,
}

/// Notes that this person set a task to done; `None` takes an earlier word back.
pub(crate) fn note(
    dir: &StateDir,
    backlog: &str,
    task: &TaskId,
    by: Option<&str>,
) -> Result<(), CheckoutError> {
    let (path, lock) = (path(dir), dir.path().join("done_by_hand.lock"));
    let _lock = FileLock::acquire(&lock).map_err(on("lock", &lock))?;
    let mut all = read(dir)?;
    let before = all.len();
    all.retain(|done| done.backlog != backlog || done.task != *task);
    if by.is_none() && all.len() == before {
        return Ok(());
    }
    all.extend(by.map(|by| Done { backlog: backlog.to_owned(), task: task.clone(), by: by.to_owned() }));
    let text = serde_json::to_vec(&all).map_err(io::Error::from).map_err(on("write", &path))?;
    write_atomic(&path, &text).map_err(on("write", &path))?;
    Ok(())
}

/// Who said of which tasks of a backlog that they are done.
pub(crate) fn said(dir: &StateDir, backlog: &str) -> Result<BTreeMap<TaskId, String>, CheckoutError> {
    let all = read(dir)?.into_iter().filter(|done| done.backlog == backlog);
    Ok(all.map(|done| (done.task, done.by)).collect())
}

fn read(dir: &StateDir) -> Result<Vec<Done>, CheckoutError> {
    let path = path(dir);
    let bytes = match beneath::bytes_of(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(on("read", &path)(error)),
    };
    serde_json::from_slice(&bytes).map_err(io::Error::from).map_err(on("read", &path))
}

fn path(dir: &StateDir) -> PathBuf {
    dir.path().join("done_by_hand.json")
}
