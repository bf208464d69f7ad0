//! Carrying out one plan, on a thread of its own: an engine over the plan's file, and the vault's view of
//! what it does.

use std::io;
use std::sync::mpsc::Sender;
use std::thread;

use wiggum_backlog::PlanValue;
use wiggum_core::decide::Waiting;
use wiggum_core::event::Envelope;
use wiggum_core::policy::Baseline;
use wiggum_core::state::Loop;
use wiggum_engine::backlog_file::BacklogFile;
use wiggum_engine::error::chain;
use wiggum_engine::state_dir::{StateDir, backlog_lock};
use wiggum_engine::{AgentEvent, Engine, Observer, Outcome, Settings};
use wiggum_store::Store;

use super::{Rules, Setup, Signal, backlog_name, identity};
use crate::layout::{CLOSED, Vault, VaultError};
use crate::plans::Approved;
use crate::projection::{Projection, Standing};

/// Why a plan's loop did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum NotCarriedOut {
    /// It cannot be started as it is configured: no agent, say.
    #[error("{0}")]
    Setup(String),
    #[error("{}", chain(.0))]
    Vault(#[from] VaultError),
}

pub(super) struct Job {
    pub(super) vault: Vault,
    pub(super) rules: Rules,
    pub(super) setup: Setup,
    pub(super) plan: Approved,
    /// Iterations it may use in all.
    pub(super) limit: u32,
    /// What a person raised that to.
    pub(super) granted: Option<u32>,
    pub(super) sender: Sender<Signal>,
    pub(super) dir: StateDir,
}

impl Job {
    pub(super) fn start(self) -> io::Result<()> {
        let name = format!("plan {}", self.plan.id());
        thread::Builder::new().name(name).spawn(move || {
            let result = self.carry_out();
            // A keeper that is gone does not wait for it.
            drop(self.sender.send(Signal::Ended { plan: self.plan.id().to_owned(), result }));
        })?;
        Ok(())
    }

    fn carry_out(&self) -> Result<Outcome, NotCarriedOut> {
        let settings = (self.setup)(&self.plan).map_err(NotCarriedOut::Setup)?;
        Ok(self.drive(settings)?)
    }

    fn drive(&self, mut settings: Settings) -> Result<Outcome, VaultError> {
        let store = Store::open(&self.dir.database())?;
        let record = store.find_loop(&identity(&self.vault, self.plan.id()))?;
        let id = record.map(|record| record.id);
        let (mut projection, state) = Projection::open(&self.vault, &self.plan, store, id)?;
        projection.limit = self.limit;
        projection.write()?;
        self.adjust(&mut settings, &state);
        let mut view = View { projection, sender: self.sender.clone(), problem: None };
        let mut engine = Engine::open(settings, &mut view)?;
        let remote = engine.remote();
        drop(self.sender.send(Signal::Opened { plan: self.plan.id().to_owned(), remote }));
        let outcome = engine.run()?;
        let standing = Standing::of(engine.state());
        drop(engine);
        if self.plan.path.exists() {
            set_status(&self.vault, &self.plan, standing.name())?;
        }
        view.problem.map_or(Ok(outcome), Err)
    }

    /// The rules of a plan's loop: its file, its limit, its retries, and folders that are not for it.
    fn adjust(&self, settings: &mut Settings, state: &Loop) {
        settings.checkout = self.dir.checkout();
        settings.backlog.clone_from(&self.plan.path);
        settings.backlog_name = backlog_name(self.plan.id());
        settings.name = self.plan.id().to_owned();
        settings.git = self.rules.git;
        settings.closed = CLOSED.map(str::to_owned).to_vec();
        let policy = &mut settings.policy;
        // What earlier runs used counts; an interrupted run goes on with its own count.
        let this_run = if state.run.active { state.run.iterations } else { 0 };
        let earlier = state.used.saturating_sub(this_run);
        policy.limits.iterations = Some(self.limit.saturating_sub(earlier));
        policy.limits.granted = self.granted;
        policy.retry.max_retries = self.rules.retries;
        policy.retry.backoff = self.rules.backoff;
        policy.people.present = false;
        // The steps of a plan say themselves how they are checked.
        policy.checks.baseline = Baseline::Off;
    }
}

/// How many iterations a plan may use in all: by the rules, or what a person raised that to.
pub(super) fn limit(rules: &Rules, plan: &Approved, granted: Option<u32>) -> u32 {
    rules.limit(plan.header.max_iterations).max(granted.unwrap_or(0))
}

/// Edits values of a plan's front matter, alone.
pub(super) fn edit(vault: &Vault, plan: &Approved, values: &[PlanValue<'_>]) -> Result<(), VaultError> {
    let lock = backlog_lock(vault.root());
    let mut file = BacklogFile::new(&plan.path, backlog_name(plan.id()), lock);
    file.edit(|backlog| {
        values.iter().for_each(|value| backlog.set_plan(*value));
        Ok(())
    })?;
    Ok(())
}

pub(super) fn set_status(vault: &Vault, plan: &Approved, status: &str) -> Result<(), VaultError> {
    edit(vault, plan, &[PlanValue::Status(status)])
}

/// Writes what happens into the vault.
struct View {
    projection: Projection,
    sender: Sender<Signal>,
    /// What kept something from being written; it is tried again with the next event.
    problem: Option<VaultError>,
}

impl Observer for View {
    fn event(&mut self, envelope: &Envelope, state: &Loop) {
        self.projection.take(envelope, state);
    }

    fn shown(&mut self) {
        self.problem = self.projection.write().err();
        drop(self.sender.send(Signal::Shown(self.projection.row())));
    }

    fn agent(&mut self, _: &AgentEvent) {}

    fn check_output(&mut self, _: &str) {}

    fn waiting(&mut self, _: &Waiting, _: &Loop) {}
}
