//! The backlog a command is about.

use std::path::Path;

use wiggum_engine::backlog_file::BacklogError;
use wiggum_engine::desk::backlog::OpenBacklog;

use crate::commands::{find_backlog, surroundings};
use crate::config::{self, Flags};
use crate::failure::Failure;

/// The backlog that was named, or is configured, or has one of the usual names. It is not read yet.
pub(crate) fn locate(named: Option<&Path>) -> Result<OpenBacklog, Failure> {
    let here = surroundings()?;
    let flags = Flags { backlog: named.map(Path::to_owned), ..Flags::default() };
    let config = config::resolve(&here.sources(&flags))?;
    let path = find_backlog(&here.workspace, config.backlog.as_deref())?;
    Ok(OpenBacklog::new(&here.workspace, path, config.policy.limits.max_tasks))
}

/// As [`locate`], and read.
pub(crate) fn find(named: Option<&Path>) -> Result<OpenBacklog, Failure> {
    let mut open = locate(named)?;
    open.file.refresh().map_err(broken)?;
    Ok(open)
}

/// Nothing was started here: what is wrong is said, and no more.
pub(crate) fn broken(error: BacklogError) -> Failure {
    let problems = matches!(error, BacklogError::Problems(_));
    let failure = Failure::from(error);
    if problems { failure.hint("mend the backlog; `wiggum task validate` checks it") } else { failure }
}
