//! Where a server works, for whom, and what it may reach.

use std::path::PathBuf;

use wiggum_engine::checkout::Checkout;
use wiggum_engine::desk::backlog::OpenBacklog;
use wiggum_engine::desk::launch::Launched;
use wiggum_engine::desk::{DeskError, Loops};
use wiggum_store::LoopRecord;

use crate::refusal::Refusal;

/// The repository a server is about, and whom it serves.
pub struct Office {
    pub checkout: Checkout,
    /// The loop that is meant where none is named.
    pub which: Option<String>,
    pub audience: Audience,
    /// In whose name something is done.
    pub by: String,
    pub program: Box<dyn Program>,
}

/// Whom a server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audience {
    /// A person's program: it may do what people may.
    Client,
    /// The agent of a loop: it may look, claim and ask, and say that it lives.
    Agent(Assignment),
}

/// What the agent of a loop works on, as its environment tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub loop_id: String,
    pub task: String,
    pub iteration: u32,
    pub attempt: u32,
    /// Where its reports are put for the engine to find.
    pub reports: PathBuf,
}

/// What the program around a server can do and a server cannot.
pub trait Program: Send + Sync {
    /// The backlog with this name, which is a path inside the workspace; else the one that is configured.
    fn backlog(&self, named: Option<&str>) -> Result<OpenBacklog, Refusal>;

    /// Starts `wiggum run` in the background.
    fn run(&self, options: &RunOptions) -> Result<Launched, Refusal>;
}

/// What a loop is started with.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    pub backlog: Option<String>,
    pub name: Option<String>,
    pub agent: Option<String>,
    pub model: Option<String>,
    pub max_iterations: Option<u32>,
    pub max_cost: Option<f64>,
}

impl Office {
    /// The loops of the repository.
    pub(crate) fn loops(&self) -> Result<Loops, Refusal> {
        Ok(Loops::of(&self.checkout)?.ok_or(DeskError::NoLoops)?)
    }

    /// The loop that is meant; an agent's is its own.
    pub(crate) fn select(&self, loops: &Loops, named: Option<&str>) -> Result<LoopRecord, Refusal> {
        let own = match &self.audience {
            Audience::Client => return Ok(loops.select(self.meant(named))?),
            Audience::Agent(assignment) => loops.select(Some(&assignment.loop_id))?,
        };
        match named {
            Some(named) if loops.select(Some(named))?.id != own.id => {
                Err(Refusal::new("an agent looks at its own loop only").hint("leave `loop` out"))
            }
            Some(_) | None => Ok(own),
        }
    }

    pub(crate) fn meant<'a>(&'a self, named: Option<&'a str>) -> Option<&'a str> {
        named.or(self.which.as_deref())
    }

    /// The backlog that is meant; an agent's is its loop's.
    pub(crate) fn backlog(&self, named: Option<&str>) -> Result<OpenBacklog, Refusal> {
        match &self.audience {
            Audience::Client => self.program.backlog(named),
            Audience::Agent(_) => {
                let loops = self.loops()?;
                let record = self.select(&loops, None)?;
                Ok(self.program.backlog(Some(&record.identity.backlog))?.for_agent(true))
            }
        }
    }
}
