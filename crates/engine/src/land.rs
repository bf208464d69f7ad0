//! Landing: an accepted attempt becomes a commit, together with its completion in the backlog.

use wiggum_core::event::Event;
use wiggum_core::ids::{Attempt, Iteration, TaskId};
use wiggum_core::mutant::{Mutant, planted};
use wiggum_core::state::{OpenIteration, Stage};
use wiggum_core::task::FileStatus;
use wiggum_workspace::crash;
use wiggum_workspace::git::CommitOutcome;

use crate::backlog_file::BacklogError;
use crate::engine::Engine;
use crate::error::{EngineError, chain};
use crate::plan::Progress;
use crate::tree::stands_on;
use crate::work::describe;

/// How often a hook may change the tree of one attempt before that counts as a refusal.
const MAX_ALTERATIONS: u32 = 3;

/// The trailer by which a commit is found again after a crash.
pub(crate) const ITERATION_TRAILER: &str = "Wiggum-Iteration";

impl Engine<'_> {
    /// Writes the completion to the backlog and commits it together with the tree that was checked.
    pub(crate) fn land(&mut self, iteration: Iteration, attempt: Attempt) -> Result<(), EngineError> {
        crash::point("before landing");
        let Some(open) = self.journal.state.open.clone() else { return Ok(()) };
        let Stage::Landing { verified } = open.stage else { return Ok(()) };
        if let Some(git) = &self.git
            && !stands_on(&git.head()?, &open)
        {
            let output =
                self.journal.keep("the branch moved while the attempt was checked; do it on top of that");
            self.record(Event::CommitRefused { iteration, attempt, output });
            return Ok(());
        }
        // The verdict is durable before the first thing that follows from it can be seen.
        let mut recorded = Ok(Vec::new());
        let progress = Progress::with_step(&self.journal.state);
        let (journal, now) = (&mut self.journal, self.clock.now());
        let edited = self.backlog.edit_after(
            |backlog| {
                progress.note(backlog);
                backlog.set_status(open.task.as_str(), FileStatus::Done)
            },
            || {
                recorded = journal.flush(now);
                recorded.is_ok()
            },
        );
        self.show(&recorded?);
        let mut replaced = None;
        match edited {
            Ok(((), file)) => {
                replaced = file;
                self.record(Event::StatusWritten { task: open.task.clone(), status: FileStatus::Done });
            }
            Err(error @ (BacklogError::Read { .. } | BacklogError::Problems(_))) => {
                self.record(Event::BacklogBroken { message: chain(&error) });
                return Ok(());
            }
            // The task is gone from the file: what was done still counts.
            Err(BacklogError::Edit(_)) => self.flush()?,
            Err(error) => return Err(error.into()),
        }
        crash::point("backlog written");
        let Some(git) = &self.git else {
            self.backlog.sync(replaced.as_ref())?;
            self.complete(&open, None, verified);
            return Ok(());
        };
        git.put_back_index(&self.taken_index())?;
        let include: Vec<&str> =
            if self.watched.backlog_tracked { vec![self.settings.backlog_name.as_str()] } else { Vec::new() };
        let message = self.commit_message(&open);
        // While git works. Should a power cut leave the commit and take the file, the next start writes
        // it again.
        let mut synced = Ok(());
        let mut sync = || synced = self.backlog.sync(replaced.as_ref());
        let outcome = git.commit_while(&message, &include, &mut sync)?;
        synced?;
        crash::point("committed");
        match outcome {
            CommitOutcome::Committed(commit) => {
                if git.hooks_present()? {
                    self.known.forget_head();
                } else {
                    self.known.committed(git, &commit);
                }
                self.accept_commit(&open, commit, verified)
            }
            CommitOutcome::Refused(output) => {
                let output = self.journal.keep(&output);
                self.record(Event::CommitRefused { iteration, attempt, output });
                Ok(())
            }
        }
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
        let (iteration, attempt) = (open.iteration, open.attempt);
        let altered = git.hooks_present()?
            && git.differs_from_index(&self.taken_index(), &[self.settings.backlog_name.as_str()])?;
        if !altered {
            self.complete(open, Some(commit), verified);
            return Ok(());
        }
        if open.altered >= MAX_ALTERATIONS {
            git.squash_onto(open.base.as_deref(), open.branch.as_deref())?;
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
        }
        for evidence in &open.evidence {
            let command = evidence.command.replace('\n', " ");
            message.push_str(&format!("Wiggum-Evidence: `{command}` {}", evidence.exit));
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
