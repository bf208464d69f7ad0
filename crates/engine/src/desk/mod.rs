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
        Ok(store.map(|store| Self { checkout: checkout.clone(), dir, store }))
    }

    /// In the order in which they were made.
    pub fn all(&self) -> Result<Vec<LoopRecord>, DeskError> {
        Ok(self.store.loops()?)
    }

    /// The loop that was named, else the one that runs, else the one that ran last.
    pub fn select(&self, which: Option<&str>) -> Result<LoopRecord, DeskError> {
        let all = self.all()?;
        if let Some(which) = which {
            return named(&all, which);
        }
        let mut alive = Vec::new();
        for record in &all {
            if self.lease(record.id)?.alive().is_some() {
                alive.push(record);
            }
        }
        match alive[..] {
            [] => self.last(all),
            [one] => Ok(one.clone()),
            [..] => Err(DeskError::SeveralRun { names: names(alive.into_iter()) }),
        }
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
        let mut status = self.stored_status(record)?.seen_with(lease.engine());
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

fn named(all: &[LoopRecord], which: &str) -> Result<LoopRecord, DeskError> {
    let by_name: Vec<&LoopRecord> = all.iter().filter(|record| record.identity.name == which).collect();
    let by_id = || all.iter().filter(|record| record.id.to_string().starts_with(which)).collect();
    let found: Vec<&LoopRecord> = if by_name.is_empty() { by_id() } else { by_name };
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
