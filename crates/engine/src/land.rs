//! Landing: an accepted attempt becomes a commit, together with its completion in the backlog.

use wiggum_core::event::Event;
use wiggum_core::ids::{Attempt, Iteration, TaskId};
use wiggum_core::mutant::{Mutant, planted};
use wiggum_core::state::{OpenIteration, Stage};
use wiggum_core::task::FileStatus;
use wiggum_core::tasks::TaskEntry;
use wiggum_workspace::crash;
use wiggum_workspace::git::{CommitOutcome, Git, Inside};
use wiggum_workspace::paths::Replaced;

use crate::backlog_file::BacklogError;
use crate::engine::Engine;
use crate::error::{EngineError, chain};
use crate::plan::Progress;
use crate::status;
use crate::tree::stands_on;
use crate::work::describe;

/// How often a hook may change the tree of one attempt before that counts as a refusal.
const MAX_ALTERATIONS: u32 = 3;

/// The trailer by which a commit is found again after a crash.
pub(crate) const ITERATION_TRAILER: &str = "Wiggum-Iteration";
/// The same for a commit that says which tasks were skipped.
const SKIPS_TRAILER: &str = "Wiggum-Skipped";

/// What became of an attempt's commit.
enum Committing {
    Committed(String),
    /// A hook made another tree of it.
    Altered,
    /// Somebody else committed.
    Moved,
    /// A hook refused it; what it said.
    Refused(String),
}

impl Engine<'_> {
    /// Writes the completion to the backlog and commits it together with the tree that was checked. False if that
    /// has to wait for another git.
    pub(crate) fn land(&mut self, iteration: Iteration, attempt: Attempt) -> Result<bool, EngineError> {
        crash::point("before landing");
        let Some(open) = self.journal.state.open.here().cloned() else { return Ok(true) };
        let Stage::Landing { verified } = open.stage else { return Ok(true) };
        let Some(landing) = self.lock_for_landing()? else { return Ok(false) };
        if let Some(git) = &self.git
            && !stands_on(&git.head()?, &open)
        {
            self.refuse_moved(&open);
            return Ok(true);
        }
        // The verdict is durable before the first thing that follows from it can be seen.
        let mut recorded = Ok(Vec::new());
        let progress = Progress::with_step(&self.journal.state);
        let (journal, now) = (&mut self.journal, self.clock.now());
        let failed = journal.state.task(&open.task).map_or(0, TaskEntry::failed_attempts);
        let edited = self.backlog.edit_after(
            |backlog| {
                progress.note(backlog);
                backlog.set_status(open.task.as_str(), FileStatus::Done)?;
                backlog.record_attempt(open.task.as_str(), failed, Some(now.as_second()))
            },
            || {
                recorded = journal.flush(now);
                recorded.is_ok()
            },
        );
        self.show(&recorded?);
        if status::is_completing(&self.journal.state) {
            // Nobody else writes it before the run has ended. Once in a run, and without a sync.
            self.write_status_file();
        }
        let mut replaced = None;
        match edited {
            Ok(((), file)) => {
                replaced = file;
                self.record(Event::StatusWritten { task: open.task.clone(), status: FileStatus::Done });
            }
            Err(error @ (BacklogError::Read { .. } | BacklogError::Problems(_))) => {
                self.record(Event::BacklogBroken { message: chain(&error) });
                return Ok(true);
            }
            // The task is gone from the file: what was done still counts.
            Err(BacklogError::Edit(_)) => self.flush()?,
            Err(error) => return Err(error.into()),
        }
        crash::point("backlog written");
        if self.git.is_none() {
            self.backlog.sync(replaced.as_ref())?;
            self.complete(&open, None, verified);
            return Ok(true);
        }
        let outcome = self.commit(&open, replaced.as_ref())?;
        crash::point("committed");
        match outcome {
            Committing::Committed(commit) => {
                if let Some(git) = &self.git {
                    match git.hooks_present()? {
                        true => self.known.forget_head(),
                        false => self.known.committed(git, &commit),
                    }
                }
                self.publish_index(landing, open.base.as_deref(), &commit)?;
                self.accept_commit(&open, commit, verified)?;
            }
            Committing::Altered => self.take_altered(&open)?,
            Committing::Moved => self.refuse_moved(&open),
            Committing::Refused(_) if open.may_take_hooks_changes() && self.changed_by_hook()? => {
                self.record(Event::TreeAltered { iteration, attempt });
                self.flush()?;
            }
            Committing::Refused(output) => {
                let output = self.journal.keep(&output);
                self.record(Event::CommitRefused { iteration, attempt, output });
            }
        }
        Ok(true)
    }

    /// Commits the tree that was taken, with the backlog as it is now.
    fn commit(&self, open: &OpenIteration, backlog: Option<&Replaced>) -> Result<Committing, EngineError> {
        let Some(git) = &self.git else { return Ok(Committing::Moved) };
        git.put_back_index(&self.taken_index())?;
        let include: Vec<&str> =
            if self.watched.backlog_tracked { vec![self.settings.backlog_name.as_str()] } else { Vec::new() };
        let message = self.commit_message(open);
        if self.own.is_some() && git.hooks_present()? {
            self.backlog.sync(backlog)?;
            return self.commit_with_hooks(git, open, &message, &include);
        }
        if self.watched.backlog_added {
            git.stage(&include)?;
        }
        // While git works. Should a power cut leave the commit and take the file, the next start writes it
        // again.
        let mut synced = Ok(());
        let mut sync = || synced = self.backlog.sync(backlog);
        let outcome = git.commit_while(&message, &include, &mut sync)?;
        synced?;
        Ok(match outcome {
            CommitOutcome::Committed(commit) => Committing::Committed(commit),
            CommitOutcome::Refused(output) => Committing::Refused(output),
        })
    }

    /// Hooks run in the repository that stands in for the user's; the user's gets what they let pass.
    fn commit_with_hooks(
        &self,
        git: &Git,
        open: &OpenIteration,
        message: &str,
        include: &[&str],
    ) -> Result<Committing, EngineError> {
        // Before the hooks: what the last of them does to files is no part of the commit.
        git.stage(include)?;
        let tree = git.index_tree()?;
        let message = match self.commit_in_private(git, message, include)? {
            Inside::Made { tree: made, .. } if made != tree => return Ok(Committing::Altered),
            Inside::Made { message, .. } => message,
            Inside::Refused(output) => return Ok(Committing::Refused(output)),
        };
        Ok(match git.commit_known_tree(&tree, open.base.as_deref(), &message)? {
            CommitOutcome::Committed(commit) => Committing::Committed(commit),
            CommitOutcome::Refused(_) => Committing::Moved,
        })
    }

    /// Somebody committed while the attempt was checked.
    fn refuse_moved(&mut self, open: &OpenIteration) {
        self.moved_from.clone_from(&open.base);
        let output =
            self.journal.keep("the branch moved while the attempt was checked; do it on top of that");
        self.record(Event::CommitRefused { iteration: open.iteration, attempt: open.attempt, output });
    }

    /// Commits the backlog alone, which says already that these tasks were skipped. Where that is
    /// committed, as after a crash, nothing happens. A hook that refuses is told; the change is then part
    /// of the next commit.
    pub(crate) fn commit_skips(&mut self, tasks: &[TaskId]) -> Result<(), EngineError> {
        let mut commit = None;
        let backlog = self.settings.backlog_name.clone();
        if let Some(git) = self.git.as_ref().filter(|_| self.watched.backlog_tracked) {
            let key = format!("{}/{}", self.journal.id, names_of(tasks));
            if git.differs_from_head(&backlog)? {
                let outcome = self.behind_walls(git)?.commit_only(&skip_message(tasks, &key), &backlog)?;
                self.known.forget_head();
                match outcome {
                    CommitOutcome::Committed(made) => {
                        commit = Some(made);
                        self.show_in_users_index(&backlog);
                    }
                    CommitOutcome::Refused(output) => {
                        let message = format!("{backlog} was not committed, a git hook refused it: {output}");
                        self.record(Event::Noticed { task: None, message });
                    }
                }
            } else {
                commit = git.find_commit(SKIPS_TRAILER, &key)?;
            }
        }
        self.record(Event::SkipsCommitted { tasks: tasks.to_vec(), commit });
        Ok(())
    }

    /// Did the hook that refused the commit change files? Formatters do, so that one can look and try
    /// again.
    fn changed_by_hook(&self) -> Result<bool, EngineError> {
        let Some(git) = &self.git else { return Ok(false) };
        git.put_back_index(&self.taken_index())?;
        Ok(!self.changed_since_taken(&git.status()?).is_empty())
    }

    /// A commit is the task's if its tree is the one that was checked; what a hook made of it has to
    /// be checked first.
    pub(crate) fn accept_commit(
        &mut self,
        open: &OpenIteration,
        commit: String,
        verified: bool,
    ) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        let altered = self.own.is_none()
            && git.hooks_present()?
            && git.differs_from_index(&self.taken_index(), &[self.settings.backlog_name.as_str()])?;
        if !altered {
            self.complete(open, Some(commit), verified);
            return Ok(());
        }
        self.take_altered(open)
    }

    /// A hook made another tree of the attempt's: that has to be checked as well.
    fn take_altered(&mut self, open: &OpenIteration) -> Result<(), EngineError> {
        let (iteration, attempt) = (open.iteration, open.attempt);
        if open.altered >= MAX_ALTERATIONS {
            if let Some(git) = self.git.as_ref().filter(|_| self.own.is_none()) {
                git.squash_onto(open.base.as_deref(), open.branch.as_deref())?;
            }
            let output = self.journal.keep("a git hook changes the files with every commit");
            self.record(Event::CommitRefused { iteration, attempt, output });
            return Ok(());
        }
        // The tree is taken anew from here. Durable first: once it is taken, a tree that nobody has
        // checked must not look like the one that was accepted.
        self.record(Event::TreeAltered { iteration, attempt });
        self.flush()
    }

    fn complete(&mut self, open: &OpenIteration, commit: Option<String>, verified: bool) {
        self.take_programs();
        self.forget_copies();
        let another = planted(Mutant::CompletesAnother).then(|| TaskId::from("another"));
        self.record(Event::TaskCompleted {
            iteration: open.iteration,
            task: another.unwrap_or_else(|| open.task.clone()),
            attempt: open.attempt,
            commit,
            verified: verified != planted(Mutant::CompletesOtherwise),
        });
    }

    fn commit_message(&self, open: &OpenIteration) -> String {
        let title = self.journal.state.task(&open.task).map_or("", |entry| entry.spec.title.as_str());
        let title: String = title.lines().next().unwrap_or_default().chars().take(72).collect();
        let mut message = if title.is_empty() || title == open.task.as_str() {
            format!("{}\n\n", open.task)
        } else {
            format!("{}: {title}\n\n", open.task)
        };
        message.push_str(&format!("Wiggum-Task: {}\n", open.task));
        message.push_str(&format!("Wiggum-Loop: {}\n", self.journal.id));
        message.push_str(&format!("{ITERATION_TRAILER}: {}\n", self.iteration_key(open.iteration)));
        message.push_str(&format!("Wiggum-Attempt: {}\n", open.attempt));
        if open.witnessed {
            let work = self.journal.state.task(&open.task).map(|entry| describe(&entry.spec.work));
            message.push_str(&format!("Wiggum-Evidence: the engine did it: {}\n", work.unwrap_or_default()));
        } else if open.evidence.is_empty() {
            message.push_str("Wiggum-Evidence: none (unverified)\n");
        } else if open.stage == (Stage::Landing { verified: false }) {
            let unchanged = open.inspection.as_ref().is_some_and(|seen| seen.changed_total == 0);
            let why = match unchanged {
                _ if open.ran_nothing() => "make had nothing to do for any check",
                true => "nothing was changed, and no check failed before",
                false => "only checks that the agent wrote itself",
            };
            message.push_str(&format!("Wiggum-Evidence: {why} (unverified)\n"));
        }
        for evidence in open.all_evidence() {
            let command = evidence.command.replace('\n', " ");
            let former = match (evidence.former, evidence.clean) {
                (true, _) => " (former definition)",
                (false, true) => " (clean checkout)",
                (false, false) => "",
            };
            message.push_str(&format!("Wiggum-Evidence: `{command}`{former} {}", evidence.exit));
            if !evidence.output.sha256.is_empty() {
                message.push_str(&format!(", output {}", &evidence.output.sha256[..12]));
            }
            message.push('\n');
        }
        message
    }

    /// Names an iteration for all time: the loop and the number.
    pub(crate) fn iteration_key(&self, iteration: Iteration) -> String {
        format!("{}/{iteration}", self.journal.id)
    }
}

fn names_of(tasks: &[TaskId]) -> String {
    tasks.iter().map(TaskId::as_str).collect::<Vec<_>>().join(", ")
}

fn skip_message(tasks: &[TaskId], key: &str) -> String {
    let mut message = format!("{}: skipped\n\n", names_of(tasks));
    for task in tasks {
        message.push_str(&format!("Wiggum-Task: {task}\n"));
    }
    message.push_str(&format!("{SKIPS_TRAILER}: {key}\n"));
    message
}
