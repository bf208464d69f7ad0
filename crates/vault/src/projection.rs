//! What the vault shows of one plan, written as things happen and put right at the start: its state, its
//! log and its notes. All of it follows from the journal.

use wiggum_core::event::{EndReason, Envelope, Event};
use wiggum_core::ids::{LoopId, TaskId};
use wiggum_core::state::Loop;
use wiggum_core::tasks::TaskState;
use wiggum_store::Store;
use wiggum_workspace::crash;

use crate::dashboard::Row;
use crate::layout::{IN_PROGRESS, NEEDS_ACTION, Vault, VaultError};
use crate::log::Log;
use crate::notes::{self, About, Kind};
use crate::plans::Approved;
use crate::story::{Notice, Story};
use crate::words::{self, LINE, inline, plan_link, yaml};

/// How a plan stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Executing,
    Completed,
    Blocked,
    Escalated,
    Stopped,
}

impl Standing {
    pub(crate) fn of(state: &Loop) -> Self {
        match state.run.ended.as_ref().filter(|_| !state.run.active) {
            None => Self::Executing,
            Some((EndReason::GoalAchieved, _)) => Self::Completed,
            Some((EndReason::PersonNeeded, _)) => Self::Blocked,
            Some((EndReason::ExplicitStop, _)) => Self::Stopped,
            Some((
                EndReason::CircuitBreakerOpen
                | EndReason::HealthFailure
                | EndReason::ConsecutiveErrors
                | EndReason::BudgetExhausted
                | EndReason::MaxIterations
                | EndReason::MaxDuration
                | EndReason::NoProgress,
                _,
            )) => Self::Escalated,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Executing => "executing",
            Self::Completed => "completed",
            Self::Blocked => "blocked",
            Self::Escalated => "escalated",
            Self::Stopped => "stopped",
        }
    }
}

/// A plan's journal, folded for the vault.
pub(crate) struct Projection {
    vault: Vault,
    plan: Approved,
    /// Iterations the plan may use in all.
    pub(crate) limit: u32,
    pub(crate) story: Story,
    log: Log,
    store: Store,
    now: Snapshot,
    /// Questions or ends came or went since the notes were written.
    asked: bool,
    /// The state as it was written last.
    written: String,
}

impl Projection {
    /// Reads the journal there is, if there is one. The limit is for the caller to set.
    pub(crate) fn open(
        vault: &Vault,
        plan: &Approved,
        store: Store,
        id: Option<LoopId>,
    ) -> Result<(Self, Loop), VaultError> {
        let (state, mut story) = fold(&store, id)?;
        let log = Log::open(vault, plan.id())?;
        story.news.retain(|news| news.seq > log.last());
        let (vault, plan, now) = (vault.clone(), plan.clone(), Snapshot::of(&state));
        let projection =
            Self { vault, plan, limit: 0, story, log, store, now, asked: true, written: String::new() };
        Ok((projection, state))
    }

    pub(crate) fn take(&mut self, envelope: &Envelope, state: &Loop) {
        self.story.take(envelope, state);
        self.now = Snapshot::of(state);
        self.asked |= matches!(
            envelope.event,
            Event::QuestionRaised { .. }
                | Event::QuestionAnswered { .. }
                | Event::RunStarted { .. }
                | Event::RunEnded { .. }
        );
    }

    /// Brings everything up to date. Notices come before their line in the log, which says that they
    /// were given.
    pub(crate) fn write(&mut self) -> Result<(), VaultError> {
        for notice in self.story.news.iter().filter_map(|news| news.notice.as_ref()) {
            self.give(notice)?;
        }
        crash::point("notices given");
        let objective = &self.plan.header.objective;
        self.log.append(&self.vault, self.plan.id(), objective, &self.story.news)?;
        crash::point("log written");
        self.story.news.clear();
        if std::mem::take(&mut self.asked) {
            for kind in Kind::ALL {
                write_note(&self.vault, kind, &self.about(), &self.story, &[])?;
            }
        }
        self.write_state()
    }

    pub(crate) fn about(&self) -> About<'_> {
        self.now.about(&self.plan, self.limit)
    }

    pub(crate) fn row(&self) -> Row {
        self.now.row(&self.vault, &self.story, &self.plan, self.limit)
    }

    fn give(&self, notice: &Notice) -> Result<(), VaultError> {
        let number = number(&notice.step);
        let path = format!("{NEEDS_ACTION}/plan_notification_{}_step_{number}.md", self.plan.id());
        let whole = match self.store.blob(&notice.message.sha256) {
            Ok(Some(text)) => text,
            Ok(None) | Err(_) => notice.message.excerpt.clone(),
        };
        let message: String = whole.lines().map(|line| inline(line, 4 * LINE) + "\n").collect();
        let front = [
            ("plan_id", self.plan.id().to_owned()),
            ("step_num", number.to_owned()),
            ("action_required", "true".to_owned()),
        ];
        let body = format!(
            "# For your attention\n\n**Plan:** {} ({})\n**Step:** {}\n\n{message}",
            plan_link(self.plan.stem()),
            inline(&self.plan.header.objective, LINE),
            inline(&notice.title, LINE),
        );
        self.vault.rewrite(&path, |old| words::note(old, &front, &body))
    }

    fn write_state(&mut self) -> Result<(), VaultError> {
        let text = self.render_state();
        if text != self.written {
            self.vault.write(&format!("{IN_PROGRESS}/{}/state.md", self.plan.id()), &text)?;
            self.written = text;
        }
        Ok(())
    }

    fn render_state(&self) -> String {
        let about = self.about();
        let status = self.now.standing.name();
        let step = self.now.step.as_ref().map_or("0", number);
        let left = self.limit.saturating_sub(about.used);
        let time = |at: Option<jiff::Timestamp>| at.map_or_else(String::new, |at| format!("{at:.0}"));
        let action = &self.story.last_action;
        let at = time(self.story.last_at);
        format!(
            "---\nplan_id: {plan}\ncurrent_step: {step}\niterations_remaining: {left}\nlast_action: {quoted}\n\
             last_action_timestamp: {at}\nloop_start_time: {began}\nstatus: {status}\n---\n\n\
             # Execution state: {objective}\n\n**Plan:** {link}\n**Current step:** {step}, {done}/{total} done\n\
             **Iterations remaining:** {left}/{limit}\n**Status:** {status}\n\n**Last action:** {shown}\n",
            plan = about.plan,
            quoted = yaml(action),
            shown = inline(action, LINE),
            began = time(self.story.started_at),
            objective = inline(about.objective, LINE),
            link = plan_link(about.file),
            done = about.done,
            total = about.total,
            limit = self.limit,
        )
    }
}

/// What is told of a loop, as it is at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    standing: Standing,
    /// A run was started.
    begun: bool,
    used: u32,
    done: usize,
    total: usize,
    step: Option<TaskId>,
}

impl Snapshot {
    pub(crate) fn of(state: &Loop) -> Self {
        let counts = state.tasks.counts();
        Self {
            standing: Standing::of(state),
            begun: state.run.number > 0,
            used: state.used,
            done: counts.done,
            total: counts.total,
            step: current_step(state),
        }
    }

    pub(crate) fn about<'a>(&self, plan: &'a Approved, limit: u32) -> About<'a> {
        About {
            plan: plan.id(),
            objective: &plan.header.objective,
            file: plan.stem(),
            used: if self.begun { self.used } else { plan.header.iterations_used.unwrap_or(0) },
            limit,
            own_limit: plan.header.max_iterations,
            done: self.done,
            total: if self.total == 0 { plan.total } else { self.total },
        }
    }
}

impl Snapshot {
    /// The plan in a line.
    pub(crate) fn row(&self, vault: &Vault, story: &Story, plan: &Approved, limit: u32) -> Row {
        let about = self.about(plan, limit);
        let waits = |kind: &Kind| {
            let sections = notes::sections(*kind, story, &about);
            let is_open = sections.iter().any(notes::Section::is_open);
            // A note that cannot be read says nothing of being left.
            let text = || vault.read(&kind.path(about.plan)).ok().flatten();
            is_open && notes::waits(text().as_deref(), &sections)
        };
        Row {
            plan_id: about.plan.to_owned(),
            file: about.file.to_owned(),
            status: self.standing.name().to_owned(),
            done: about.done,
            total: about.total,
            iterations_used: about.used,
            max_iterations: limit,
            needs_action: Kind::ALL.iter().find(|kind| waits(kind)).map(|kind| kind.name(about.plan)),
        }
    }
}

/// Writes a note that asks, if there is something to ask or a note that was answered.
pub(crate) fn write_note(
    vault: &Vault,
    kind: Kind,
    about: &About<'_>,
    story: &Story,
    complaints: &[(String, String)],
) -> Result<(), VaultError> {
    let sections = notes::sections(kind, story, about);
    let path = kind.path(about.plan);
    // A note that was answered and removed by a person stays away.
    let is_due = sections.iter().any(notes::Section::is_open) || vault.exists(&path);
    if sections.is_empty() || !is_due {
        return Ok(());
    }
    vault.rewrite(&path, |old| match old {
        // Half of it is written by somebody else just now, or it is theirs by now.
        Some(old) if !words::is_whole(old) => old.to_owned(),
        old => notes::render(kind, about, &sections, old, complaints),
    })
}

/// A loop and its story, from its journal.
pub(crate) fn fold(store: &Store, id: Option<LoopId>) -> Result<(Loop, Story), VaultError> {
    let (mut state, mut story) = (Loop::default(), Story::default());
    if let Some(id) = id {
        store.for_each(id, 0, |envelope| {
            state.apply(&envelope);
            story.take(&envelope, &state);
        })?;
    }
    Ok((state, story))
}

/// The step under way, else the first that is left.
fn current_step(state: &Loop) -> Option<TaskId> {
    if let Some(open) = state.open.here() {
        return Some(open.task.clone());
    }
    let is_left = |state: &TaskState| match state {
        TaskState::Open | TaskState::Running | TaskState::Parked(_) | TaskState::Failed { .. } => true,
        TaskState::Done { .. } | TaskState::Skipped => false,
    };
    let entry = state.tasks.iter().find(|entry| !entry.is_removed() && is_left(&entry.state));
    entry.map(|entry| entry.spec.id.clone())
}

fn number(step: &TaskId) -> &str {
    step.as_str().strip_prefix("step_").unwrap_or(step.as_str())
}
