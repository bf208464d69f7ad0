//! What became of the backlog while an agent worked: people's edits are taken in as they were acknowledged, what the
//! agent wrote or took out is a proposal that has to pass [`wiggum_core::admit()`].

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use wiggum_backlog::{Backlog, EditError, NewTask};
use wiggum_core::admit::{Admission, Change, Proposal, Proposer, Refusal, Refused, admit};
use wiggum_core::event::{Event, Flag, Request};
use wiggum_core::ids::TaskId;
use wiggum_core::task::Task;

use crate::backlog_file::{BacklogError, Refresh, difference, revision};
use crate::engine::Engine;
use crate::error::{EngineError, chain};
use crate::iteration::backlog_flag;

/// Refusals that are told one by one; of more there is one line.
const TOLD: usize = 20;

const TAKEN_BACK: &str = "taken back";
const PUT_BACK: &str = "put back";
const TOOK_OUT: &str = "took out";

/// What people can do who meant it.
const HOW_TO_TAKE_OUT: &str =
    "`wiggum task delete ID` takes a task out for good, and so does an edit of the file while no agent works";

/// What became of the changes that were refused.
pub(crate) enum Refusals {
    /// They are taken back, each with its flag.
    Undone(Vec<Flag>),
    /// They cannot be told from the rest of the file, which is put back. What is new in it may stay.
    Stuck { problem: String, added: Vec<Task> },
}

impl Refusals {
    pub(crate) fn none() -> Self {
        Self::Undone(Vec::new())
    }
}

/// The beginning of a text, on one line.
fn shown(text: &str) -> String {
    const LENGTH: usize = 120;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = line.char_indices().nth(LENGTH).map(|(end, _)| end);
    end.map_or(line.clone(), |end| format!("{}…", &line[..end]))
}

impl Engine<'_> {
    /// Takes in what people added or took out through us, before anybody asks whose it was. Their request is there before
    /// their change of the file can be seen.
    pub(crate) fn take_edits(&mut self) -> Result<(), EngineError> {
        for pending in self.journal.store.pending(self.journal.id)? {
            let is_new = !self.journal.is_handled(pending.id);
            if is_new && matches!(pending.request, Request::BacklogEdited { .. }) {
                self.journal.handled(pending.id);
                self.handle_request(Some(pending.id), &pending.request, &pending.by)?;
            }
        }
        Ok(())
    }

    /// Do the edits of people account for all that changed in the file since it was `good`?
    pub(crate) fn only_people_wrote(&self, good: &Backlog) -> bool {
        let mut reached = revision(good.text());
        for (former, edited) in &self.edits_of_people {
            if *former == reached {
                reached.clone_from(edited);
            }
        }
        self.backlog.backlog().is_some_and(|found| revision(found.text()) == reached)
    }

    /// Takes back what the agent wrote and nobody may: tasks that are there already, too many of them, changes of
    /// completed work. Puts back what it took out. After a crash nobody knows what people wrote into the file meanwhile:
    /// all of it is taken in.
    pub(crate) fn refuse_changes(&mut self, good: Option<&Backlog>) -> Result<Refusals, EngineError> {
        let proposal = self.backlog.backlog().and_then(|found| self.proposal_in(found));
        match (proposal, good) {
            (Some(proposal), Some(good)) => self.refuse(&proposal, good),
            (Some(_) | None, None) | (None, Some(_)) => Ok(Refusals::none()),
        }
    }

    /// The checks run what the agent wrote: with them, too, no task is taken out and no status is set. All else that
    /// changes in the file meanwhile is for people to write.
    pub(crate) fn guard_backlog_in_checks(&mut self, task: &TaskId) -> Result<Vec<Flag>, EngineError> {
        if self.backlog.is_known() {
            return Ok(Vec::new());
        }
        let good = self.backlog.last_known().cloned();
        match self.backlog.refresh() {
            Ok(Refresh::Unchanged | Refresh::Changed) => {}
            // What is wrong with the file is told when it is read.
            Err(BacklogError::Read { .. } | BacklogError::Problems(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        }
        self.take_edits()?;
        let (_, mut flags) = self.put_back_statuses(task)?;
        let proposal = self.backlog.backlog().and_then(|found| self.proposal_in(found));
        if let (Some(mut proposal), Some(good)) = (proposal, good) {
            proposal.changes.retain(|change| matches!(change, Change::Remove(_)));
            let refusals = self.refuse(&proposal, &good)?;
            flags.extend(self.undo_refused(refusals, Some(good))?);
        }
        self.keep_added()?;
        Ok(flags)
    }

    fn refuse(&mut self, proposal: &Proposal, good: &Backlog) -> Result<Refusals, EngineError> {
        let Admission { mut refused } = admit(&self.journal.state, proposal);
        // What people added since is not in the good version; it is kept in another way.
        refused.retain(|refused| !is_taken_out(refused) || good.task(refused.task.as_str()).is_some());
        if refused.is_empty() {
            return Ok(Refusals::none());
        }
        let is_refused = |place: usize| refused.iter().any(|refused| refused.place == place);
        let admitted = || {
            let changes = proposal.changes.iter().enumerate().filter(|(place, _)| !is_refused(*place));
            changes.filter_map(|(_, change)| match change {
                Change::Add(task) => Some(task.clone()),
                Change::Update(_) | Change::Move(_) | Change::Remove(_) => None,
            })
        };
        let stuck = |problem: String| Ok(Refusals::Stuck { problem, added: admitted().collect() });
        let is_left =
            |task: &Task| self.backlog.backlog().is_some_and(|found| found.task(task.id.as_str()).is_some());
        if refused.iter().any(is_taken_out) && !good.tasks().iter().any(is_left) {
            return stuck(format!("every task was taken out ({HOW_TO_TAKE_OUT})"));
        }
        let mut undone = Undone::default();
        for Refused { place, task, .. } in &refused {
            match &proposal.changes[*place] {
                Change::Add(_) => drop(undone.added.insert(task.clone())),
                Change::Update(_) => drop(undone.changed.insert(task.clone())),
                Change::Remove(_) => drop(undone.removed.insert(task.clone())),
                Change::Move(_) => {}
            }
        }
        let found = self.backlog.backlog().map(|found| found.text().to_owned()).unwrap_or_default();
        match self.backlog.edit(|backlog| undone.undo(backlog, good)) {
            Ok(()) => {
                let rejected = self.keep_rejected(found.as_bytes())?;
                Ok(Refusals::Undone(self.flags_of(&refused, &rejected)))
            }
            Err(BacklogError::Edit(error)) => {
                let why = refused.first().map(ToString::to_string).unwrap_or_default();
                stuck(format!("{why}, and that cannot be undone alone ({})", chain(&error)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Brings the file in order after changes were refused.
    pub(crate) fn undo_refused(
        &mut self,
        refusals: Refusals,
        good: Option<Backlog>,
    ) -> Result<Vec<Flag>, EngineError> {
        match refusals {
            Refusals::Undone(flags) => Ok(flags),
            Refusals::Stuck { problem, added } => {
                let flags = self.put_back_backlog(good, &problem)?;
                self.add_proposed(&added)?;
                Ok(flags)
            }
        }
    }

    /// The agent (or somebody meanwhile) left a backlog that cannot be used: the last good one comes
    /// back, and what was found is kept beside the journal.
    pub(crate) fn put_back_backlog(
        &mut self,
        good: Option<Backlog>,
        problem: &str,
    ) -> Result<Vec<Flag>, EngineError> {
        let Some(good) = good else { return Ok(Vec::new()) };
        let found = self.backlog.put_back(good)?;
        let rejected = self.keep_rejected(&found)?;
        self.take_edits()?;
        self.keep_edits()?;
        self.keep_added()?;
        let detail = format!("{problem}; {PUT_BACK}, what was found is in {}", rejected.display());
        Ok(vec![backlog_flag(&self.settings.backlog_name, &detail)])
    }

    /// Does again in a file that was put back what people did since: tasks they took out, statuses they set.
    fn keep_edits(&mut self) -> Result<(), EngineError> {
        let state = &self.journal.state;
        let Some(file) = self.backlog.backlog() else { return Ok(()) };
        let known = |task: &Task| state.task(&task.id).map(|entry| (entry.is_removed(), entry.spec.status));
        let can_say = |status| file.dialect().can_say(status);
        let mut removed = HashSet::new();
        let mut statuses = Vec::new();
        for task in file.tasks() {
            match known(task) {
                Some((true, _)) => drop(removed.insert(task.id.clone())),
                Some((false, status)) if status != task.status && can_say(status) => {
                    statuses.push((task.id.clone(), status));
                }
                Some(_) | None => {}
            }
        }
        let edited = self.backlog.edit(|backlog| {
            statuses.iter().try_for_each(|(id, status)| backlog.set_status(id.as_str(), *status))?;
            if removed.is_empty() { Ok(()) } else { backlog.withdraw(&removed) }
        });
        match edited {
            Ok(()) => Ok(()),
            Err(BacklogError::Edit(error)) => {
                let message =
                    format!("cannot do again what people changed in the backlog: {}", chain(&error));
                self.record(Event::Noticed { task: None, message });
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Names the tasks that are left to do and are not in the file.
    pub(crate) fn flags_of_taken_out(&self) -> Vec<Flag> {
        let Some(file) = self.backlog.backlog() else { return Vec::new() };
        let unsettled = self.journal.state.tasks.iter().filter(|entry| entry.is_unsettled());
        let gone = unsettled.filter(|entry| file.task(entry.spec.id.as_str()).is_none());
        gone.map(|entry| backlog_flag(&self.settings.backlog_name, &format!("{TOOK_OUT} {}", entry.spec.id)))
            .collect()
    }

    /// Puts tasks back that people added while the agent worked, and that it wrote over.
    pub(crate) fn keep_added(&mut self) -> Result<(), EngineError> {
        let Some(open) = self.journal.state.open.here() else { return Ok(()) };
        let is_lost =
            |id: &&TaskId| self.backlog.backlog().is_some_and(|file| file.task(id.as_str()).is_none());
        let lost: Vec<TaskId> = open.added.iter().filter(is_lost).cloned().collect();
        if lost.is_empty() {
            return Ok(());
        }
        for id in lost {
            let Some(new) = self.journal.state.task(&id).map(|entry| NewTask::from(&entry.spec)) else {
                continue;
            };
            let added = self.backlog.edit(|backlog| match backlog.task(id.as_str()) {
                Some(_) => Ok(()),
                None => backlog.add(&new),
            });
            let message = match added {
                Ok(()) => format!("{id} was added while the agent worked, and was put back into the backlog"),
                Err(BacklogError::Edit(error)) => {
                    let name = &self.settings.backlog_name;
                    format!(
                        "{id} was added while the agent worked, and cannot be put back into {name}: {}",
                        chain(&error)
                    )
                }
                Err(error) => return Err(error.into()),
            };
            self.record(Event::Noticed { task: Some(id), message });
        }
        self.take_in_backlog();
        Ok(())
    }

    /// Adds what an agent proposed to a file that was put back.
    pub(crate) fn add_proposed(&mut self, added: &[Task]) -> Result<(), EngineError> {
        for task in added {
            match self.backlog.edit(|backlog| backlog.add(&NewTask::from(task))) {
                Ok(()) => {}
                Err(BacklogError::Edit(error)) => {
                    let message = format!("{} was proposed and cannot be added: {}", task.id, chain(&error));
                    self.record(Event::Noticed { task: None, message });
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The loop knows what the file says now.
    pub(crate) fn take_in_backlog(&mut self) {
        let event = self.backlog.backlog().and_then(|backlog| difference(&self.journal.state, backlog));
        if let Some(event) = event {
            self.record(event);
        }
        self.backlog.take_in();
    }

    /// What differs in the file from what the loop knows, as the agent's proposal.
    fn proposal_in(&self, found: &Backlog) -> Option<Proposal> {
        let Event::BacklogRead { added, changed, removed, .. } = difference(&self.journal.state, found)?
        else {
            return None;
        };
        let removed = removed.into_iter().map(Change::Remove);
        let changes =
            removed.chain(added.into_iter().map(Change::Add)).chain(changed.into_iter().map(Change::Update));
        Some(Proposal { by: Proposer::Agent, changes: changes.collect() })
    }

    /// Other tasks that say something else now. An agent may word them better, and may take the work out of them.
    pub(crate) fn flags_of_reworded(&self, own: &TaskId) -> Vec<Flag> {
        let proposal = self.backlog.backlog().and_then(|found| self.proposal_in(found));
        let reworded = proposal.into_iter().flat_map(|proposal| proposal.changes).filter_map(|change| {
            let Change::Update(task) = change else { return None };
            let before = &self.journal.state.task(&task.id).filter(|_| task.id != *own)?.spec;
            let after = wiggum_core::redact::task(task);
            let says = if before.title != after.title {
                before.title.clone()
            } else if before.description != after.description {
                before.description.clone()
            } else {
                return None;
            };
            let detail = format!("reworded {}, which said: {}", after.id, shown(&says));
            Some(backlog_flag(&self.settings.backlog_name, &detail))
        });
        reworded.take(TOLD).collect()
    }

    /// Keeps a version of the file that does not stay, for whoever wants to know what was in it.
    pub(crate) fn keep_rejected(&self, found: &[u8]) -> Result<PathBuf, EngineError> {
        let path = self.dir.loop_dir(self.journal.id).join("backlog-rejected");
        fs::write(&path, found).map_err(|source| EngineError::Write { path: path.clone(), source })?;
        Ok(path)
    }

    /// An interrupted iteration has no flags; what was taken back is told all the same.
    pub(crate) fn notice_taken_back(&mut self, task: &TaskId, flags: &[Flag]) {
        let is_told = |detail: &str| {
            detail.contains(TAKEN_BACK) || detail.contains(PUT_BACK) || detail.starts_with(TOOK_OUT)
        };
        for flag in flags.iter().filter(|flag| is_told(&flag.detail)) {
            let message = format!("{}: {}", flag.what, flag.detail);
            self.record(Event::Noticed { task: Some(task.clone()), message });
        }
    }

    fn flags_of(&self, refused: &[Refused], rejected: &Path) -> Vec<Flag> {
        let (taken_out, others): (Vec<&Refused>, Vec<&Refused>) =
            refused.iter().partition(|refused| is_taken_out(refused));
        let told = others.iter().take(TOLD).map(|refused| format!("{refused}; {TAKEN_BACK}"));
        let rest = others.len().saturating_sub(TOLD);
        let rest = (rest > 0).then(|| format!("{rest} more tasks were refused and {TAKEN_BACK}"));
        let taken_out = (!taken_out.is_empty()).then(|| say_taken_out(&taken_out));
        let kept = format!("what was found is in {}", rejected.display());
        let details = taken_out.into_iter().chain(told).chain(rest).chain([kept]);
        details.map(|detail| backlog_flag(&self.settings.backlog_name, &detail)).collect()
    }
}

fn is_taken_out(refused: &Refused) -> bool {
    refused.why == Refusal::TakenOut
}

/// One line for all of them: nobody has to do anything about one of them alone.
fn say_taken_out(taken_out: &[&Refused]) -> String {
    let names: Vec<String> =
        taken_out.iter().take(TOLD).map(|refused| format!("`{}`", refused.task)).collect();
    let rest = taken_out.len().saturating_sub(TOLD);
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let (were, are) = if taken_out.len() == 1 { ("was", "is") } else { ("were", "are") };
    let names = names.join(", ");
    format!("{names}{rest} {were} taken out and {are} still to be done; {PUT_BACK}. {HOW_TO_TAKE_OUT}")
}

/// Changes to be undone, by the ids of their tasks.
#[derive(Default)]
struct Undone {
    added: HashSet<TaskId>,
    changed: HashSet<TaskId>,
    removed: HashSet<TaskId>,
}

impl Undone {
    fn undo(&self, backlog: &mut Backlog, good: &Backlog) -> Result<(), EditError> {
        if !self.added.is_empty() {
            backlog.withdraw(&self.added)?;
        }
        if !self.removed.is_empty() {
            backlog.put_back(good, &self.removed)?;
        }
        // Without what was added, and with what was taken out, some are as they were.
        let differs = |id: &&TaskId| backlog.task(id.as_str()) != good.task(id.as_str());
        let changed: HashSet<TaskId> = self.changed.iter().filter(differs).cloned().collect();
        if changed.is_empty() { Ok(()) } else { backlog.restore(good, &changed) }
    }
}
