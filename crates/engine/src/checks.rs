//! Checks: commands whose success is evidence. They judge an attempt, and before money is spent the
//! untouched tree.

use std::ffi::OsString;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use wiggum_backlog::{NewTask, generate_task_id};
use wiggum_core::baseline;
use wiggum_core::decide::CleanOf;
use wiggum_core::definition::Definition;
use wiggum_core::event::{BaselineOutcome, Event, Evidence, Exit};
use wiggum_core::ids::{Attempt, Iteration, TaskId};
use wiggum_core::redact::Redactor;
use wiggum_core::stream::Stream;
use wiggum_core::tally::tests_passed;
use wiggum_core::verdict::Check;
use wiggum_workspace::beneath;
use wiggum_workspace::crash;
use wiggum_workspace::process::{Capture, CommandLine, Ended, Launch, Sink, Stop};

use crate::backlog_file::{BacklogError, difference};
use crate::engine::{Engine, Input};
use crate::error::{EngineError, chain};
use crate::host::Program;
use crate::iteration::LaunchProblem;
use crate::tree::{IGNORE_BUILDS, by_directory};

/// What tasks that repair checks are called, with a number.
const REPAIR: &str = "repair-";

/// A check under way.
pub(crate) struct RunningCheck {
    pub(crate) process: Box<dyn Program>,
    purpose: Purpose,
    /// The run is over for it: what it says has no weight any more.
    given_up: bool,
}

/// What a check is run for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To judge the attempt under way, perhaps with the check's former definition.
    Attempt { check: Check, former: bool },
    /// To know the untouched tree.
    Baseline { command: String },
    /// To know what a task's own check says before its first attempt.
    Task { task: TaskId, command: String },
    /// To know the work without what git does not have.
    Clean { of: CleanOf, step: Check },
}

impl Purpose {
    fn command(&self) -> &str {
        match self {
            Self::Attempt { check, .. } => &check.command,
            Self::Baseline { command } | Self::Task { command, .. } => command,
            Self::Clean { step, .. } => &step.command,
        }
    }
}

impl Engine<'_> {
    /// Runs a check of the attempt under way; false if one runs already.
    pub(crate) fn start_check(
        &mut self,
        iteration: Iteration,
        attempt: Attempt,
        check: &Check,
        former: bool,
    ) -> Result<bool, EngineError> {
        if self.check.is_some() {
            return Ok(false);
        }
        crash::point("before check");
        if former {
            self.put_former_in_place()?;
        }
        let Some(task) = self.journal.state.open.here().map(|open| open.task.clone()) else {
            return Ok(true);
        };
        let env = self.environment(iteration, &task, attempt);
        self.run_check(Purpose::Attempt { check: check.clone(), former }, env)
    }

    /// Runs one of the loop's own checks on the untouched tree; false if one runs already.
    pub(crate) fn start_baseline(&mut self, check: &Check) -> Result<bool, EngineError> {
        if self.check.is_some() {
            return Ok(false);
        }
        crash::point("before baseline");
        let purpose = Purpose::Baseline { command: check.command.clone() };
        if let Some(why) = self.is_about_tasks(&check.command) {
            self.note_baseline(&purpose, BaselineOutcome::LeftOut { why }, None);
            return Ok(true);
        }
        let env = self.environment_without_task();
        self.begin_baseline(purpose, env)
    }

    /// What checks find in their environment that are about no task.
    pub(crate) fn environment_without_task(&self) -> Vec<(OsString, OsString)> {
        vec![
            ("WIGGUM_LOOP_ID".into(), self.journal.id.to_string().into()),
            ("WIGGUM_BIN".into(), self.settings.wiggum.clone().into()),
        ]
    }

    /// Runs one of a task's own checks before its first attempt; false if one runs already.
    pub(crate) fn start_task_baseline(&mut self, task: &TaskId, check: &Check) -> Result<bool, EngineError> {
        if self.check.is_some() {
            return Ok(false);
        }
        let env = self.environment(self.journal.state.next_number(task), task, 1);
        self.begin_baseline(Purpose::Task { task: task.clone(), command: check.command.clone() }, env)
    }

    /// Durable before it runs: whoever finds files in the tree after a crash knows whose they may be.
    fn begin_baseline(
        &mut self,
        purpose: Purpose,
        env: Vec<(OsString, OsString)>,
    ) -> Result<bool, EngineError> {
        self.record(Event::BaselineStarted { command: purpose.command().to_owned() });
        self.flush()?;
        self.run_check(purpose, env)
    }

    pub(crate) fn run_check(
        &mut self,
        purpose: Purpose,
        env: Vec<(OsString, OsString)>,
    ) -> Result<bool, EngineError> {
        self.keep_watchdog();
        let confined = self.settings.sandbox.checks.confines(purpose.command());
        let (cwd, confinement) = match &purpose {
            Purpose::Clean { .. } => (self.clean_root(), self.around_clean_check()),
            Purpose::Attempt { .. } | Purpose::Baseline { .. } | Purpose::Task { .. } => {
                self.renew_private(&self.index_to_show())?;
                (self.settings.workspace().to_owned(), self.around_own_check())
            }
        };
        let command = CommandLine::parse(purpose.command());
        let started = command.map_err(LaunchProblem::from).and_then(|command| {
            let mut launch = Launch::new(command, &cwd);
            launch.env = env;
            launch.marker = Some(("WIGGUM_LOOP_ID".to_owned(), self.journal.id.to_string()));
            launch.env_remove.clone_from(&self.not_for_checks);
            launch.confinement = confinement.filter(|_| confined);
            let redactor = Redactor::new(self.secrets.clone());
            let sink = CheckSink { sender: self.sender.clone(), capture: Capture::new(), redactor };
            Ok(self.host.launch(launch, Box::new(sink))?)
        });
        match started {
            Ok(process) => {
                let timeout = self.journal.state.policy.checks.timeout;
                self.check_deadline = timeout.map(|limit| self.clock.elapsed() + limit.as_duration());
                self.check = Some(RunningCheck { process, purpose, given_up: false });
                self.check_started = Some(self.clock.elapsed());
                crash::point("after check start");
            }
            Err(problem) => {
                let ended = Ended { exit: Exit::NotStarted, duration: Duration::ZERO, ended_processes: 0 };
                self.record_check(&purpose, ended, &chain(&problem))?;
            }
        }
        Ok(true)
    }

    pub(crate) fn confines(&self, check: &RunningCheck) -> bool {
        self.settings.sandbox.kind.is_some() && self.settings.sandbox.checks.confines(check.purpose.command())
    }

    /// The run is to end while a check runs: the check is ended first. True once none runs.
    pub(crate) fn is_done_checking(&mut self) -> bool {
        let Some(check) = &mut self.check else { return true };
        if !std::mem::replace(&mut check.given_up, true) {
            self.check_deadline = None;
            check.process.stop(Stop::Asked, self.settings.grace);
        }
        false
    }

    pub(crate) fn check_ended(&mut self, ended: Ended, output: &str) -> Result<(), EngineError> {
        self.check_deadline = None;
        match self.check.take() {
            Some(check) if !self.is_interrupted() && !check.given_up => {
                self.record_check(&check.purpose, ended, output)?
            }
            // A check that was given up has no say any more, but may have left something behind.
            Some(RunningCheck {
                purpose: purpose @ (Purpose::Baseline { .. } | Purpose::Task { .. }),
                ..
            }) => {
                self.tidy_after_baseline()?;
                self.note_baseline(&purpose, BaselineOutcome::Interrupted, None);
            }
            Some(_) | None => {}
        }
        crash::point("check ended");
        Ok(())
    }

    fn record_check(&mut self, purpose: &Purpose, ended: Ended, output: &str) -> Result<(), EngineError> {
        match purpose {
            Purpose::Attempt { check, former } => self.gather(check, *former, ended, output),
            Purpose::Baseline { command } => {
                let outcome = baseline::outcome(ended.exit, output);
                let check = Check { name: "verify".to_owned(), command: command.clone() };
                let evidence = self.evidence(&check, false, ended, output);
                self.note_baseline(purpose, outcome, Some(evidence));
                self.tidy_after_baseline()?;
            }
            Purpose::Task { .. } => {
                self.note_baseline(purpose, baseline::outcome(ended.exit, output), None);
                self.tidy_after_baseline()?;
            }
            Purpose::Clean { of, step } => {
                let evidence = self.evidence(step, false, ended, output);
                self.record_clean(of, evidence);
            }
        }
        Ok(())
    }

    fn note_baseline(&mut self, purpose: &Purpose, outcome: BaselineOutcome, evidence: Option<Evidence>) {
        let command = purpose.command().to_owned();
        let event = match purpose {
            Purpose::Task { task, .. } => Event::TaskBaselineChecked { task: task.clone(), command, outcome },
            Purpose::Attempt { .. } | Purpose::Baseline { .. } | Purpose::Clean { .. } => {
                let tree = self.journal.state.baseline.tree.clone();
                Event::BaselineChecked { tree, command, outcome, evidence }
            }
        };
        self.record(event);
    }

    fn gather(&mut self, check: &Check, former: bool, ended: Ended, output: &str) {
        let Some(open) = self.journal.state.open.here() else { return };
        let (iteration, attempt) = (open.iteration, open.attempt);
        let evidence = self.evidence(check, former, ended, output);
        self.record(Event::EvidenceGathered { iteration, attempt, evidence });
    }

    fn evidence(&mut self, check: &Check, former: bool, ended: Ended, output: &str) -> Evidence {
        let withheld = if ended.exit.success() { Vec::new() } else { self.withheld_from(output) };
        Evidence {
            name: check.name.clone(),
            command: check.command.clone(),
            exit: ended.exit,
            output: self.journal.keep(output),
            duration: ended.duration.into(),
            former,
            clean: false,
            tests: tests_passed(output),
            withheld,
        }
    }

    /// What a check did not get, first what it speaks of.
    fn withheld_from(&self, output: &str) -> Vec<String> {
        let mut names = self.settings.withheld_from_checks();
        names.sort_by_key(|name| !output.contains(name.as_str()));
        names
    }

    /// Why a check says nothing of a tree without a task, if it does not.
    fn is_about_tasks(&self, command: &str) -> Option<String> {
        let tree = self.files_now();
        let definition = Definition::of([command], &tree);
        let named = definition.files().find(|path| {
            let text = beneath::text_of(&self.settings.workspace().join(path));
            text.is_ok_and(|text| baseline::is_of_tasks(&text))
        });
        named.map(|path| format!("{path} is about single tasks"))
    }

    /// What a check did to the untouched tree must not become the work of the first task.
    fn tidy_after_baseline(&mut self) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        let own = self.own_paths(git)?;
        let left: Vec<String> =
            git.status()?.paths().into_iter().filter(|path| !own.contains(path)).collect();
        if left.is_empty() {
            return Ok(());
        }
        let excluded = self.watched.excluded();
        git.stage_all(&excluded)?;
        let reference = format!("refs/wiggum/{}/leftovers/baseline", self.short_id());
        git.keep_work(&reference, "What the checks left behind before any work")?;
        git.reset_hard(git.head()?.commit.as_deref(), &excluded)?;
        let left = by_directory(&left).join(", ");
        let message =
            format!("changed by a check and put back; kept under {reference}: {left}; {IGNORE_BUILDS}");
        self.record(Event::Noticed { task: None, message });
        Ok(())
    }

    /// The task that repairs the checks gets the next free id.
    pub(crate) fn plan_repair(&mut self) -> Result<(), EngineError> {
        let taken = self
            .journal
            .state
            .tasks
            .iter()
            .filter(|entry| entry.spec.id.as_str().starts_with(REPAIR))
            .count();
        let id = match self.backlog.backlog() {
            Some(backlog) => generate_task_id(backlog, REPAIR),
            None => format!("{REPAIR}{}", taken + 1),
        };
        self.record(Event::RepairPlanned { task: id.as_str().into() });
        self.flush()
    }

    pub(crate) fn add_repair(&mut self, task: &TaskId) -> Result<(), EngineError> {
        let (title, description) = self.journal.state.baseline.repair_text();
        let new = NewTask { id: task.to_string(), title, description, ..NewTask::default() };
        let added = self.backlog.edit(|backlog| match backlog.task(task.as_str()) {
            Some(_) => Ok(()),
            None => backlog.add(&new),
        });
        match added {
            Ok(()) => {
                let backlog = self.backlog.backlog();
                if let Some(event) = backlog.and_then(|backlog| difference(&self.journal.state, backlog)) {
                    self.record(event);
                }
                self.backlog.take_in();
                Ok(())
            }
            // A backlog that cannot hold it: somebody has to repair the checks.
            Err(BacklogError::Edit(error)) => {
                let message = format!("repairing the checks cannot be made a task: {}", chain(&error));
                self.record(Event::StopRequested { by: message });
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

struct CheckSink {
    sender: SyncSender<Input>,
    capture: Capture,
    redactor: Redactor,
}

impl CheckSink {
    fn pass_on(&mut self, bytes: &[u8]) {
        self.capture.push(bytes);
        drop(self.sender.send(Input::CheckOutput(String::from_utf8_lossy(bytes).into_owned())));
    }
}

impl Sink for CheckSink {
    fn output(&mut self, _stream: Stream, bytes: &[u8]) {
        // Both streams are one here, as in a terminal.
        let shown = self.redactor.push(bytes);
        self.pass_on(&shown);
    }

    fn ended(&mut self, ended: Ended) {
        let rest = self.redactor.finish();
        if !rest.is_empty() {
            self.pass_on(&rest);
        }
        drop(self.sender.send(Input::CheckEnded { ended, output: self.capture.text() }));
    }
}
