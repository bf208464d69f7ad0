//! What commands that look at loops share: the repository's store, which loop is meant, whether an
//! engine really lives, and the status without folding the journal where that can be avoided.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use wiggum_core::ids::LoopId;
use wiggum_core::state::Loop;
use wiggum_engine::read_state;
use wiggum_engine::state_dir::StateDir;
use wiggum_engine::status::{self, Status};
use wiggum_store::{Holder, LoopRecord, Store};
use wiggum_workspace::process;

use crate::commands::run;
use crate::failure::Failure;

/// The loops of a repository.
pub(crate) struct Loops {
    pub(crate) workspace: PathBuf,
    pub(crate) dir: StateDir,
    pub(crate) store: Store,
}

/// Whoever holds a loop's lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Alive(Holder),
    /// It was killed: nobody gave the lease back.
    Dead(Holder),
    None,
}

impl Engine {
    pub(crate) fn alive(&self) -> Option<&Holder> {
        match self {
            Self::Alive(holder) => Some(holder),
            Self::Dead(_) | Self::None => None,
        }
    }
}

impl Loops {
    /// `None` where no loop ever ran.
    pub(crate) fn open() -> Result<Option<Self>, Failure> {
        Self::of(&workspace()?)
    }

    pub(crate) fn of(workspace: &Path) -> Result<Option<Self>, Failure> {
        let dir = StateDir::of(workspace);
        let store = Store::open_existing(&dir.database())?;
        Ok(store.map(|store| Self { workspace: workspace.to_owned(), dir, store }))
    }

    /// As [`Loops::open`], for commands that make no sense without a loop.
    pub(crate) fn require() -> Result<Self, Failure> {
        Self::open()?.ok_or_else(none_yet)
    }

    pub(crate) fn all(&self) -> Result<Vec<LoopRecord>, Failure> {
        Ok(self.store.loops()?)
    }

    /// The loop that was named, else the one that runs, else the one that ran last.
    pub(crate) fn select(&self, which: Option<&str>) -> Result<LoopRecord, Failure> {
        let all = self.all()?;
        if let Some(which) = which {
            return named(&all, which);
        }
        let mut alive = Vec::new();
        for record in &all {
            if self.engine(record.id)?.alive().is_some() {
                alive.push(record);
            }
        }
        match alive[..] {
            [] => self.last(all),
            [one] => Ok(one.clone()),
            [..] => Err(Failure::usage(format!("several loops run: {}", names(alive.into_iter())))
                .hint("name one with --loop")),
        }
    }

    pub(crate) fn engine(&self, id: LoopId) -> Result<Engine, Failure> {
        Ok(match self.store.holder(id)? {
            None => Engine::None,
            Some(holder) if is_alive(&holder) => Engine::Alive(holder),
            Some(holder) => Engine::Dead(holder),
        })
    }

    /// The stored status; folded from the journal only where that is missing or behind.
    pub(crate) fn status(&self, record: &LoopRecord) -> Result<Status, Failure> {
        let last = self.store.last_seq(record.id)?;
        if let Some((seq, text)) = self.store.projection(record.id)?
            && seq == last
            && let Ok(status) = serde_json::from_str(&text)
        {
            return Ok(status);
        }
        let state = self.state(record.id)?;
        let mut status = status::status(&state, Timestamp::now());
        if last == 0 {
            // Killed before its first event: what is known of it is its identity.
            status.loop_id = record.id.to_string();
            status.name.clone_from(&record.identity.name);
            status.repository.clone_from(&record.identity.repository);
            status.backlog.clone_from(&record.identity.backlog);
        }
        Ok(status)
    }

    pub(crate) fn state(&self, id: LoopId) -> Result<Loop, Failure> {
        Ok(read_state(&self.store, id)?)
    }

    /// The loop over a backlog: the one that runs, else the one that ran last.
    pub(crate) fn over(&self, backlog: &str) -> Result<Option<LoopRecord>, Failure> {
        let over: Vec<LoopRecord> =
            self.all()?.into_iter().filter(|record| record.identity.backlog == backlog).collect();
        for record in &over {
            if self.engine(record.id)?.alive().is_some() {
                return Ok(Some(record.clone()));
            }
        }
        if over.is_empty() { Ok(None) } else { self.last(over).map(Some) }
    }

    fn last(&self, all: Vec<LoopRecord>) -> Result<LoopRecord, Failure> {
        let mut last = None;
        for record in all {
            let updated = self.status(&record)?.updated_at.unwrap_or(record.created_at);
            if last.as_ref().is_none_or(|(at, _)| updated >= *at) {
                last = Some((updated, record));
            }
        }
        last.map(|(_, record)| record).ok_or_else(none_yet)
    }
}

pub(crate) fn none_yet() -> Failure {
    Failure::usage("no loops here yet").hint("`wiggum run` starts one")
}

/// Where a command works. As [`run::workspace`], but without asking git where a loop has run.
pub(crate) fn workspace() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let root = here.ok().and_then(|here| {
        let root = here.ancestors().find(|ancestor| ancestor.join(".git").exists())?;
        StateDir::of(root).database().exists().then(|| root.to_owned())
    });
    root.map_or_else(run::workspace, Ok)
}

fn named(all: &[LoopRecord], which: &str) -> Result<LoopRecord, Failure> {
    let by_name: Vec<&LoopRecord> = all.iter().filter(|record| record.identity.name == which).collect();
    let by_id = || all.iter().filter(|record| record.id.to_string().starts_with(which)).collect();
    let found: Vec<&LoopRecord> = if by_name.is_empty() { by_id() } else { by_name };
    match found[..] {
        [one] => Ok(one.clone()),
        [] if all.is_empty() => Err(none_yet()),
        [] => Err(Failure::usage(format!("no loop `{which}`; there are: {}", names(all.iter())))),
        [..] => Err(Failure::usage(format!("`{which}` means several loops: {}", names(found.into_iter())))
            .hint("give the beginning of an id")),
    }
}

fn names<'a>(loops: impl Iterator<Item = &'a LoopRecord>) -> String {
    let name = |record: &LoopRecord| {
        format!("{} over {} ({})", record.identity.name, record.identity.backlog, record.id)
    };
    loops.map(name).collect::<Vec<_>>().join(", ")
}

fn is_alive(holder: &Holder) -> bool {
    process::is_alive(&process::Identity {
        pid: holder.pid,
        started: holder.started.clone(),
        boot: holder.boot.clone(),
        host: holder.host.clone(),
    })
}
