//! The desk at which every surface asks about loops and has something done to them: the command line,
//! the MCP server, and whoever comes after them.
//!
//! [`Loops`] is the repository's store with what makes it useful: which loop is meant, whether an engine
//! really lives, the status without folding the journal where that can be avoided. On top of it,
//! [`post`] leaves requests and says what became of them, and [`inbox`] knows questions and answers.
//! Nothing here prints, and nothing decides: whatever is done to a running loop is a request in its
//! store, which its engine takes up.
//!
//! ```no_run
//! use wiggum_engine::checkout::{Checkout, StateRoot};
//! use wiggum_engine::desk::Loops;
//!
//! let checkout = Checkout::new(".", &StateRoot::new("/home/ralph/.local/state/wiggum"));
//! let Some(mut loops) = Loops::of(&checkout)? else { return Ok(()) };
//! for letter in loops.inbox(None)? {
//!     loops.answer(Some(&letter.loop_id), &letter.question.id, "skip", "somebody")?;
//! }
//! # Ok::<(), wiggum_engine::desk::DeskError>(())
//! ```

pub mod attempts;
pub mod backlog;
pub mod calls;
pub mod chronicle;
pub mod cost;
mod error;
pub mod health;
pub mod inbox;
pub mod launch;
pub mod machine;
pub mod post;
pub mod tokens;
pub mod transcripts;
pub mod watch;

use std::path::{Path, PathBuf};

use wiggum_core::activity::EngineState;
use wiggum_core::ids::LoopId;
use wiggum_core::state::Loop;
use wiggum_store::{Holder, LoopRecord, Store};
use wiggum_workspace::process;

pub use error::DeskError;

use crate::checkout::Checkout;
use crate::engine::read_state;
use crate::host::{Host, Machine};
use crate::report::Report;
use crate::state_dir::StateDir;
use crate::status::{self, Status};

/// The loops of a repository.
pub struct Loops {
    pub checkout: Checkout,
    pub dir: StateDir,
    pub store: Store,
    /// Where whoever asks stands, seen from the checkout: the loops of a folder come before those of others.
    here: PathBuf,
}

/// Whoever holds a loop's lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lease {
    Alive(Holder),
    /// It was killed: nobody gave the lease back.
    Dead(Holder),
    None,
}

impl Lease {
    /// The engine that lives, if one does.
    pub fn alive(&self) -> Option<&Holder> {
        match self {
            Self::Alive(holder) => Some(holder),
            Self::Dead(_) | Self::None => None,
        }
    }

    pub fn engine(&self) -> EngineState {
        match self {
            Self::Alive(_) => EngineState::Alive,
            Self::Dead(_) => EngineState::Dead,
            Self::None => EngineState::Gone,
        }
    }
}

/// A loop as it was found: its status, and who runs it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub status: Status,
    pub lease: Lease,
}

impl Loops {
    /// Those of a checkout; `None` where no loop ever ran.
    pub fn of(checkout: &Checkout) -> Result<Option<Self>, DeskError> {
        let Some(dir) = checkout.find()? else { return Ok(None) };
        let store = Store::open_existing(&dir.database())?;
        Ok(store.map(|store| Self { checkout: checkout.clone(), dir, store, here: PathBuf::new() }))
    }

    /// The same for somebody who stands in a folder of the checkout.
    #[must_use]
    pub fn seen_from(mut self, folder: &Path) -> Self {
        self.here = folder.strip_prefix(self.checkout.path()).unwrap_or(Path::new("")).to_owned();
        self
    }

    /// In the order in which they were made.
    pub fn all(&self) -> Result<Vec<LoopRecord>, DeskError> {
        Ok(self.store.loops()?)
    }

    /// The loop that was named, else the one that runs, else the one that ran last. Loops over backlogs of the folder
    /// that the question comes from are preferred.
    pub fn select(&self, which: Option<&str>) -> Result<LoopRecord, DeskError> {
        let all = self.all()?;
        if let Some(which) = which {
            return named(&all, &self.nearest(&all), which);
        }
        let near = self.nearest(&all);
        let alive = self.alive(&near)?;
        // Where no nearer folder has a loop, one anywhere may be meant, if it is the one that runs.
        let is_at_top = |record: &LoopRecord| folder_of(record) == Some(Path::new(""));
        let (of, alive) = match alive.is_empty() && near.iter().all(is_at_top) {
            true => match self.alive(&all)? {
                anywhere if anywhere.is_empty() => (near, alive),
                anywhere => (all, anywhere),
            },
            false => (near, alive),
        };
        match &alive[..] {
            [] => self.last(of),
            [one] => Ok(one.clone()),
            [..] => Err(DeskError::SeveralRun { names: names(alive.iter()) }),
        }
    }

    fn alive(&self, records: &[LoopRecord]) -> Result<Vec<LoopRecord>, DeskError> {
        let mut alive = Vec::new();
        for record in records {
            if self.lease(record.id)?.alive().is_some() {
                alive.push(record.clone());
            }
        }
        Ok(alive)
    }

    /// Those over backlogs of the nearest folder that has any; all, if none has.
    fn nearest(&self, all: &[LoopRecord]) -> Vec<LoopRecord> {
        let of = |folder: &Path| -> Vec<LoopRecord> {
            all.iter().filter(|record| folder_of(record) == Some(folder)).cloned().collect()
        };
        let found = self.here.ancestors().map(of).find(|found| !found.is_empty());
        found.unwrap_or_else(|| all.to_vec())
    }

    /// What `--loop` calls a loop: its name, where no other has the same, else its backlog, else its id.
    pub fn call_name(&self, record: &LoopRecord) -> Result<String, DeskError> {
        let all = self.all()?;
        let wanted = &record.identity;
        let by_name = all.iter().filter(|other| other.identity.name == wanted.name).count();
        let by_backlog = all.iter().filter(|other| other.identity.backlog == wanted.backlog).count();
        Ok(match (by_name, by_backlog) {
            (..=1, _) => wanted.name.clone(),
            (_, ..=1) => wanted.backlog.clone(),
            (_, _) => record.id.to_string(),
        })
    }

    /// Who runs a loop.
    pub fn lease(&self, id: LoopId) -> Result<Lease, DeskError> {
        Ok(match self.store.holder(id)? {
            None => Lease::None,
            Some(holder) if is_alive(&holder) => Lease::Alive(holder),
            Some(holder) => Lease::Dead(holder),
        })
    }

    /// Where a loop stands, and who runs it.
    pub fn look(&self, record: &LoopRecord) -> Result<Seen, DeskError> {
        // Who is alive comes first: a run that ends in between is then seen as ended, not as lost.
        let lease = self.lease(record.id)?;
        let status = self.stored_status(record)?.seen_with(lease.engine());
        let mut status = status.seen_with_answers(&self.answered(record.id)?);
        // It may have been moved since it ran.
        status.repository = self.checkout.path().display().to_string();
        Ok(Seen { status, lease })
    }

    pub fn status(&self, record: &LoopRecord) -> Result<Status, DeskError> {
        Ok(self.look(record)?.status)
    }

    /// As the engine wrote it; folded from the journal only where that is missing or behind.
    fn stored_status(&self, record: &LoopRecord) -> Result<Status, DeskError> {
        let last = self.store.last_seq(record.id)?;
        if let Some((seq, text)) = self.store.projection(record.id)?
            && seq == last
            && let Ok(status) = serde_json::from_str(&text)
        {
            return Ok(status);
        }
        let state = self.state(record.id)?;
        let mut status = status::status(&state, Machine::new().wall());
        if last == 0 {
            // Killed before its first event: what is known of it is its identity.
            status.loop_id = record.id.to_string();
            status.name.clone_from(&record.identity.name);
            status.repository.clone_from(&record.identity.repository);
            status.backlog.clone_from(&record.identity.backlog);
        }
        Ok(status)
    }

    /// The account of a loop.
    pub fn report(&self, record: &LoopRecord) -> Result<Report, DeskError> {
        let engine = self.lease(record.id)?.engine();
        Ok(Report::read(&self.store, record.id, engine, Machine::new().wall())?)
    }

    /// Everything the journal says, folded.
    pub fn state(&self, id: LoopId) -> Result<Loop, DeskError> {
        Ok(read_state(&self.store, id)?)
    }

    /// The loop over a backlog: the one that runs, else the one that ran last.
    pub fn over(&self, backlog: &str) -> Result<Option<LoopRecord>, DeskError> {
        let over: Vec<LoopRecord> =
            self.all()?.into_iter().filter(|record| record.identity.backlog == backlog).collect();
        for record in &over {
            if self.lease(record.id)?.alive().is_some() {
                return Ok(Some(record.clone()));
            }
        }
        if over.is_empty() { Ok(None) } else { self.last(over).map(Some) }
    }

    fn last(&self, all: Vec<LoopRecord>) -> Result<LoopRecord, DeskError> {
        let mut last = None;
        for record in all {
            let updated = self.status(&record)?.updated_at.unwrap_or(record.created_at);
            if last.as_ref().is_none_or(|(at, _)| updated >= *at) {
                last = Some((updated, record));
            }
        }
        last.map(|(_, record)| record).ok_or(DeskError::NoLoops)
    }
}

fn folder_of(record: &LoopRecord) -> Option<&Path> {
    Path::new(&record.identity.backlog).parent()
}

/// By its name, by its backlog, or by the beginning of its id; of several with a name, the one that is near.
fn named(all: &[LoopRecord], near: &[LoopRecord], which: &str) -> Result<LoopRecord, DeskError> {
    let is_named = |record: &&LoopRecord| record.identity.name == which;
    let is_over = |record: &&LoopRecord| record.identity.backlog == which;
    let has_id = |record: &&LoopRecord| record.id.to_string().starts_with(which);
    let mut found: Vec<&LoopRecord> = all.iter().filter(is_named).collect();
    if found.len() > 1 && near.iter().filter(is_named).count() == 1 {
        found = near.iter().filter(is_named).collect();
    }
    for is_meant in [&is_over as &dyn Fn(&&LoopRecord) -> bool, &has_id] {
        if found.is_empty() {
            found = all.iter().filter(is_meant).collect();
        }
    }
    match found[..] {
        [one] => Ok(one.clone()),
        [] if all.is_empty() => Err(DeskError::NoLoops),
        [] => Err(DeskError::UnknownLoop { which: which.to_owned(), known: names(all.iter()) }),
        [..] => Err(DeskError::AmbiguousLoop { which: which.to_owned(), found: names(found.into_iter()) }),
    }
}

fn names<'a>(loops: impl Iterator<Item = &'a LoopRecord>) -> String {
    let name = |record: &LoopRecord| {
        format!("{} over {} ({})", record.identity.name, record.identity.backlog, record.id)
    };
    loops.map(name).collect::<Vec<_>>().join(", ")
}

pub(crate) fn is_alive(holder: &Holder) -> bool {
    process::is_alive(&process::Identity {
        pid: holder.pid,
        started: holder.started.clone(),
        boot: holder.boot.clone(),
        host: holder.host.clone(),
    })
}
