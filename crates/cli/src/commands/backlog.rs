//! The backlog a command is about.

use std::path::{Path, PathBuf};

use wiggum_engine::backlog_file::BacklogError;
use wiggum_engine::desk::backlog::{OpenBacklog, name_inside};
use wiggum_engine::desk::{DeskError, Loops};
use wiggum_workspace::git::Git;

use crate::commands::{Surroundings, find_backlog, own_loop, surroundings};
use crate::config::{self, Config, ConfigSource, Flags};
use crate::failure::{Failure, git_failure};

/// A backlog, and where it is not clear that this one is meant, why it was taken.
pub(crate) struct Chosen {
    pub(crate) path: PathBuf,
    pub(crate) why: Option<String>,
}

/// The backlog that was named on the command line or in the environment; else the one of the loop whose agent calls;
/// else the nearest one below the repository's root; else the one that is configured; else the one that a loop works on
/// already, if the first is new; else the first of the usual names at the root.
pub(crate) fn choose(here: &Surroundings, config: &Config) -> Result<Chosen, Failure> {
    let is_named = match config.source("backlog") {
        ConfigSource::Flag { .. } | ConfigSource::Environment { .. } => true,
        ConfigSource::Default | ConfigSource::UserFile { .. } | ConfigSource::WorkspaceFile { .. } => false,
    };
    if is_named {
        return Ok(Chosen { path: find_backlog(&here.workspace, config.backlog.as_deref())?, why: None });
    }
    if let Some(path) = own_loops(here) {
        return Ok(Chosen { path, why: None });
    }
    let name = |path: &Path| name_inside(&here.workspace, path);
    if let Some(path) = nearest(here) {
        let elsewhere = find_backlog(&here.workspace, config.backlog.as_deref()).ok();
        let why = match elsewhere.filter(|other| *other != path) {
            Some(other) if config.backlog.is_some() => {
                let other = name(&other);
                format!("{} is taken, the nearest to here, though {other} is configured", name(&path))
            }
            Some(other) => format!("{} is taken, the nearest to here, not {}", name(&path), name(&other)),
            None => return Ok(Chosen { path, why: None }),
        };
        return Ok(Chosen { path, why: Some(format!("{why}; `wiggum run FILE` names another")) });
    }
    let used = if config.backlog.is_none() { used_before(here) } else { None };
    if let Some(path) = used {
        let first = usual(&here.workspace).next().map_or_else(String::new, |first| name(&first));
        let (used, first) = (name(&path), first);
        let why = format!(
            "{used} is taken, which a loop works on already; {first} is new: `wiggum run {first}` takes it"
        );
        return Ok(Chosen { path, why: Some(why) });
    }
    let path = find_backlog(&here.workspace, config.backlog.as_deref())?;
    let others: Vec<String> = match config.backlog {
        Some(_) => Vec::new(),
        None => usual(&here.workspace).filter(|other| *other != path).map(|other| name(&other)).collect(),
    };
    let why = (!others.is_empty()).then(|| {
        let others = others.join(", ");
        format!("{} is taken; also here: {others}; `wiggum run FILE` names another", name(&path))
    });
    Ok(Chosen { path, why })
}

/// Agents work here, so that a backlog of another repository would be ticked for work that is done elsewhere. A
/// backlog in no repository may be about this one, and so may a link in here to a file of another.
pub(crate) fn refuse_elsewhere(here: &Surroundings, config: &Config, chosen: &Path) -> Result<(), Failure> {
    let Some(named) = &config.backlog else { return Ok(()) };
    let folder = std::path::absolute(named).ok().and_then(|path| path.parent()?.canonicalize().ok());
    let Some(folder) = folder.filter(|folder| !folder.starts_with(&here.workspace)) else { return Ok(()) };
    let Some(git) = Git::discover(&folder).map_err(|error| git_failure(&error))? else { return Ok(()) };
    if git.root() == here.workspace {
        return Ok(());
    }
    let (root, file) = (git.root().display(), name_inside(git.root(), chosen));
    let message = format!(
        "the backlog {} belongs to the repository {root}, and agents would work in {}",
        chosen.display(),
        here.workspace.display()
    );
    Err(Failure::usage(message).hint(format!("work there: `cd {root} && wiggum run {file}`")))
}

/// What the loop works on whose agent calls us, wherever in the repository that stands.
fn own_loops(here: &Surroundings) -> Option<PathBuf> {
    let id = own_loop()?;
    let loops = Loops::of(&here.checkout().ok()?).ok().flatten()?;
    let record = loops.select(Some(&id)).ok()?;
    here.workspace.join(&record.identity.backlog).canonicalize().ok()
}

/// What a loop works on already, where a file that nobody has worked on would come before it: an agent may have made
/// that one. A person can name it.
fn used_before(here: &Surroundings) -> Option<PathBuf> {
    let found: Vec<PathBuf> = usual(&here.workspace).collect();
    let (first, others) = found.split_first().filter(|(_, others)| !others.is_empty())?;
    let loops = Loops::of(&here.checkout().ok()?).ok().flatten()?;
    let over = |path: &Path| loops.over(&name_inside(&here.workspace, path)).ok().flatten();
    if over(first).is_some() {
        return None;
    }
    others.iter().find(|other| over(other).is_some()).cloned()
}

/// The nearest directory above that is not the workspace itself, and has a backlog.
fn nearest(here: &Surroundings) -> Option<PathBuf> {
    let inside = here.directory.ancestors().take_while(|directory| *directory != here.workspace);
    let is_inside = here.directory.starts_with(&here.workspace);
    inside.filter(|_| is_inside).find_map(|directory| usual(directory).next())
}

/// Backlogs of the usual names in a directory, each once where a file has several.
fn usual(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let mut seen = Vec::new();
    let paths = wiggum_backlog::candidates().iter().map(|name| directory.join(name));
    paths.filter(|path| path.is_file()).filter_map(|path| path.canonicalize().ok()).filter(move |path| {
        let is_new = !seen.contains(path);
        seen.push(path.clone());
        is_new
    })
}

/// The backlog that was named, or is meant here. It is not read yet.
pub(crate) fn locate(named: Option<&Path>) -> Result<OpenBacklog, Failure> {
    let here = surroundings()?;
    let flags = Flags { backlog: named.map(Path::to_owned), ..Flags::default() };
    let config = config::resolve(&here.sources(&flags))?;
    let path = choose(&here, &config)?.path;
    Ok(OpenBacklog::new(&here.checkout()?, path, &config.policy))
}

/// As [`locate`], and read.
pub(crate) fn find(named: Option<&Path>) -> Result<OpenBacklog, Failure> {
    let mut open = locate(named)?;
    open.read().map_err(|error| match error {
        DeskError::Backlog(error) => broken(error),
        error => error.into(),
    })?;
    Ok(open)
}

/// Nothing was started here: what is wrong is said, and no more.
pub(crate) fn broken(error: BacklogError) -> Failure {
    let problems = matches!(error, BacklogError::Problems(_));
    let failure = Failure::from(error);
    if problems { failure.hint("mend the backlog; `wiggum task validate` checks it") } else { failure }
}
