//! One attempt at one task: the agent's start and end.

use std::borrow::Cow;
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use jiff::tz::TimeZone;
use wiggum_agents::{
    AgentEvent, Assignment, CommandText, Finished, McpServer, Problem, Session, StreamParser,
};
use wiggum_core::admit::rewords;
use wiggum_core::budget;
use wiggum_core::commits;
use wiggum_core::decide::StopWhy;
use wiggum_core::event::{
    AgentFacts, BaselineOutcome, Claim, ClaimSource, Event, Exit, Failure, Flag, FlagKind, Trouble, Usage,
};
use wiggum_core::figures::{self, Figures};
use wiggum_core::handoff;
use wiggum_core::ids::{Attempt, Iteration, TaskId};
use wiggum_core::policy::Millis;
use wiggum_core::prompt::{self, PastAttempt, PromptParts};
use wiggum_core::redact::{Redactor, Secrets};
use wiggum_core::signal::error::{failure_from, failure_of};
use wiggum_core::signal::escalation::read_escalations;
use wiggum_core::signal::notes::read_notes;
use wiggum_core::signal::{ClaimReader, DEFAULT_PROMISES, claim_mark};
use wiggum_core::stream::Stream;
use wiggum_core::task::{FileStatus, Task, Work};
use wiggum_core::verdict::checks_for;
use wiggum_store::Transcript;
use wiggum_workspace::beneath::{self, Links};
use wiggum_workspace::crash;
use wiggum_workspace::process::{self, CommandLine, Ended, Launch, Sink};

use crate::agent::{self, ChosenSession};
use crate::backlog_file::BacklogError;
use crate::checkout::Checkout;
use crate::clock::Clock;
use crate::engine::{Engine, Input, RunningAgent, Tap};
use crate::error::{EngineError, chain};
use crate::health::{Ear, Heart};
use crate::nudge::{self, Nudges};
use crate::reports::{self, Reports};
use crate::state_dir::StateDir;
use crate::status;
use crate::surroundings;
use crate::tree::odd_flag;
use crate::work;

/// More than any prompt has.
const MAX_PROMPT: usize = 16 * 1024 * 1024;

/// How much of what other tasks taught goes into a prompt.
const MAX_LEARNT: usize = 2 * 1024;

impl Engine<'_> {
    /// Records the intention, brings the workspace to where the attempt starts, starts the agent.
    pub(crate) fn start_iteration(
        &mut self,
        iteration: Iteration,
        task: &TaskId,
        attempt: Attempt,
        agent: &str,
        carried: Option<&str>,
        accepted: bool,
    ) -> Result<(), EngineError> {
        let work = self.journal.state.task(task).map_or(Work::Agent, |entry| entry.spec.work.clone());
        let by_agent = work.is_agents() && !accepted;
        if by_agent && !self.set_money_aside()? {
            return Ok(());
        }
        let (base, branch) = match &self.git {
            Some(git) => {
                let head = git.head()?;
                (head.commit, head.branch)
            }
            None => (None, None),
        };
        let carried = self.carry_over(task, carried, base.as_deref())?;
        if accepted && carried.is_none() {
            // What was accepted does not fit any more: somebody has to work on it again.
            self.record(Event::TaskReopened { task: task.clone(), by: "wiggum".to_owned() });
            return Ok(());
        }
        let (mut prompt, mut session) = (String::new(), None);
        if by_agent {
            prompt = self.build_prompt(iteration, task, attempt, agent, carried.is_some())?;
            session = self.choose_session(agent);
        }
        let command = match self.settings.agent(agent).filter(|_| by_agent) {
            Some(agent) => agent.driver.describe(),
            None if accepted => "land the accepted work".to_owned(),
            None => work::describe(&work),
        };
        let prompt_blob = self.journal.keep_whole(&prompt);
        self.edits_of_people.clear();
        self.record(Event::IterationStarted {
            iteration,
            task: task.clone(),
            attempt,
            base,
            branch,
            carried: carried.clone(),
            command,
            agent: agent.to_owned(),
            session: session.as_ref().map(|session| session.id().to_owned()),
            workspace: self.settings.workspace().display().to_string(),
            prompt: prompt_blob,
            accepted,
        });
        // What is there before the agent is known before it is known that there is one: whoever finds
        // this iteration under way after a crash compares with that.
        self.guard_repository()?;
        if self.in_place.is_none() {
            self.note_own_files()?;
        }
        self.flush()?;
        crash::point("before agent");
        if work.is_agents() {
            self.tell_attempts(Some(task))?;
        }
        self.bring_work_in_place(carried.as_deref())?;
        if accepted {
            return Ok(());
        }
        if !work.is_agents() {
            return self.start_work(&work);
        }
        if let Err(error) = self.launch_agent(agent, iteration, task, attempt, session.as_ref(), &prompt) {
            let trouble = if error.is_missing_program() { Trouble::Missing } else { Trouble::Other };
            let problem = Some(Problem { trouble, message: String::new() });
            let finished = Finished { complaints: chain(&error), problem, ..Finished::default() };
            let ended = Ended { exit: Exit::NotStarted, duration: Duration::ZERO, ended_processes: 0 };
            return self.agent_ended(ended, &finished);
        }
        crash::point("after agent start");
        Ok(())
    }

    /// The prompt of a person, not what the last attempt has made of it.
    fn instructions(&self) -> Result<String, EngineError> {
        let Some(path) = &self.settings.prompt else { return Ok(prompt::DEFAULT_INSTRUCTIONS.to_owned()) };
        match self.watched.prompt_before().filter(|_| self.in_place.is_some()) {
            Some(before) => Ok(String::from_utf8_lossy(before).into_owned()),
            None => beneath::read_plain_text(path, Links::Follow, MAX_PROMPT)
                .map_err(|source| EngineError::Prompt { path: path.clone(), source }),
        }
    }

    fn build_prompt(
        &mut self,
        iteration: Iteration,
        task: &TaskId,
        attempt: Attempt,
        agent: &str,
        carried: bool,
    ) -> Result<String, EngineError> {
        let instructions = self.instructions()?;
        let continuation = self.continuation(task, carried);
        let learnt = self.journal.state.memory.newest(MAX_LEARNT);
        let Some(entry) = self.journal.state.task(task) else { return Ok(instructions) };
        let attempts: Vec<PastAttempt> = entry
            .history
            .iter()
            .map(|memory| PastAttempt {
                attempt: memory.attempt,
                outcome: memory.outcome.clone(),
                feedback: memory.feedback.clone(),
                tried: memory.tried(),
            })
            .collect();
        let checks: Vec<String> = checks_for(&self.journal.state.policy, &entry.spec)
            .into_iter()
            .map(|check| check.command)
            .collect();
        let green = entry.baseline.iter().filter(|(_, outcome)| *outcome == BaselineOutcome::Green);
        let green_before: Vec<String> = green.map(|(command, _)| command.clone()).collect();
        let red_before: Vec<String> =
            self.journal.state.baseline.red().map(|checked| checked.command.clone()).collect();
        let rules = &self.journal.state.policy.claims;
        let context = self.backlog.backlog().map(|backlog| {
            surroundings::describe(backlog, &self.settings.backlog_name, self.backlog.path(), task)
        });
        let context = context.unwrap_or_default();
        Ok(prompt::build(&PromptParts {
            instructions: &instructions,
            task: &entry.spec,
            context: &context,
            attempt,
            promise: rules.promises.first().map_or(DEFAULT_PROMISES[0], String::as_str),
            mark: &claim_mark(self.journal.id, iteration, attempt),
            attempts: &attempts,
            guidance: &entry.guidance,
            checks: &checks,
            continuation: &continuation,
            decided: &handoff::decided_before(&self.journal.state, &entry.spec),
            learnt: &learnt,
            budget: &budget::told_to_agent(&self.journal.state, task),
            tools: self.settings.hands_tools_to(agent),
            green_before: &green_before,
            red_before: &red_before,
        }))
    }

    fn launch_agent(
        &mut self,
        agent: &str,
        iteration: Iteration,
        task: &TaskId,
        attempt: Attempt,
        session: Option<&ChosenSession>,
        prompt: &str,
    ) -> Result<(), LaunchProblem> {
        let id = self.journal.id;
        self.renew_private(&self.index_to_show()).map_err(Box::new)?;
        self.note_programs(task);
        self.note_copies(task);
        let prompt_file = self.dir.prompt_file(id);
        status::rewrite(&self.dir.loop_dir(id), "prompt.md", prompt)?;
        let agent = self.settings.agent(agent).ok_or_else(|| LaunchProblem::Unknown(agent.to_owned()))?;
        let model = self.journal.state.task(task).and_then(|entry| entry.spec.model.clone());
        let mcp =
            self.settings.hands_tools_to(&agent.name).then(|| self.own_server(iteration, task, attempt));
        let reports = self.dir.reports(id);
        if mcp.is_some() {
            Reports::prepare(&reports)?;
        }
        let ceiling = budget::ceiling(&self.journal.state, task);
        let answers = model.as_deref().or(agent.driver.model());
        let assignment = Assignment {
            prompt,
            prompt_file: &prompt_file,
            wiggum: &self.settings.wiggum,
            session: session.map_or(Session::Fresh, ChosenSession::session),
            model: model.as_deref(),
            mcp: mcp.as_ref(),
            ceiling,
            prices: answers.and_then(|model| self.prices_of(model)),
        };
        let invocation = agent.driver.invocation(&assignment);
        let mut launch = Launch::new(command_line(invocation.command)?, self.settings.workspace());
        launch.stdin = invocation.stdin.map_or(process::Input::Nothing, process::Input::Bytes);
        launch.env = self.environment(iteration, task, attempt);
        let added = invocation.env.iter().chain(&agent.env);
        launch.env.push((commits::VARIABLE.into(), commits::ACTION.into()));
        launch.env.extend(added.map(|(name, value)| (name.into(), value.into())));
        launch.env.extend(model.clone().map(|model| ("WIGGUM_MODEL".into(), model.into())));
        launch.env.push((nudge::VARIABLE.into(), self.dir.nudges(id).into()));
        launch.env_remove = agent.withheld().into_iter().map(Into::into).collect();
        launch.marker = Some(("WIGGUM_LOOP_ID".to_owned(), id.to_string()));
        launch.confinement = self.confinement(agent);
        let abilities = agent.driver.abilities();
        let (heart, ear) = Heart::new(self.clock.clone(), abilities.live);
        let bounds = figures::Traits {
            can_be_asked: abilities.nudge,
            bounds_cost: abilities.bounds_cost,
            bounds_tokens: abilities.bounds_tokens,
        };
        let figures = Figures::new(bounds, self.journal.state.spending.shared, self.clock.now());
        let answers = answers.map(str::to_owned);
        let sink = AgentSink {
            sender: self.sender.clone(),
            parser: agent.driver.parser(),
            redactors: [Redactor::new(self.secrets.clone()), Redactor::new(self.secrets.clone())],
            secrets: self.secrets.clone(),
            ear,
            tap: self.settings.tap.clone(),
            transcript: Some(Transcript::create(&self.dir.transcripts(id), iteration, attempt, task)),
            started: self.clock.elapsed(),
            clock: self.clock.clone(),
        };
        if let Some(tap) = &self.settings.tap {
            tap.agent_started(iteration, attempt, task, &agent.name);
        }
        self.keep_watchdog();
        let process = self.host.launch(launch, Box::new(sink))?;
        self.agent = Some(RunningAgent {
            process,
            prompt: prompt.to_owned(),
            stopping: None,
            heart,
            figures,
            model: answers,
            tells_calls: abilities.calls,
            nudges: Nudges::open(self.dir.nudges(id)),
            reports: mcp.map(|_| Reports::open(reports.clone(), self.host.watch(&[reports], self.waker()))),
            given_up: None,
        });
        Ok(())
    }

    /// Our own MCP server, as the agent of this attempt is handed it.
    fn own_server(&self, iteration: Iteration, task: &TaskId, attempt: Attempt) -> McpServer {
        let env = [
            ("WIGGUM_LOOP_ID", self.journal.id.to_string()),
            ("WIGGUM_TASK_ID", task.to_string()),
            ("WIGGUM_ITERATION", iteration.to_string()),
            ("WIGGUM_ATTEMPT", attempt.to_string()),
            (reports::VARIABLE, self.dir.reports(self.journal.id).display().to_string()),
        ];
        McpServer {
            program: self.settings.wiggum.clone(),
            arguments: ["mcp", "serve", "--for", "agent"].map(str::to_owned).to_vec(),
            env: env.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        }
    }

    /// What agents and checks find in their environment.
    pub(crate) fn environment(
        &self,
        iteration: Iteration,
        task: &TaskId,
        attempt: Attempt,
    ) -> Vec<(OsString, OsString)> {
        let id = self.journal.id;
        vec![
            ("WIGGUM_LOOP_ID".into(), id.to_string().into()),
            ("WIGGUM_TASK_ID".into(), task.as_str().into()),
            ("WIGGUM_ITERATION".into(), iteration.to_string().into()),
            ("WIGGUM_ATTEMPT".into(), attempt.to_string().into()),
            ("WIGGUM_PROMPT_FILE".into(), self.dir.prompt_file(id).into()),
            ("WIGGUM_BIN".into(), self.settings.wiggum.clone().into()),
        ]
    }

    pub(crate) fn agent_ended(&mut self, ended: Ended, finished: &Finished) -> Result<(), EngineError> {
        self.close_nudges();
        // What it said last may not have been looked at.
        self.take_reports()?;
        let (mut prompt, mut stopping, mut finished, mut figures) =
            (String::new(), None, finished.clone(), None);
        if let Some(agent) = self.agent.take() {
            if let Some(trouble) = agent.given_up {
                finished = agent::given_up(&finished, trouble);
            }
            // As the agent told it, else as it is configured for this task.
            finished.facts.model = agent.model.or(finished.facts.model);
            (prompt, stopping, figures) = (agent.prompt, agent.stopping, Some(agent.figures));
        }
        let finished = &finished;
        let usage = self.usage_of(finished, figures.as_ref());
        self.settle(usage)?;
        crash::point("agent ended");
        if !self.agent_stage() {
            return Ok(());
        }
        let flags = self.restore_state()?;
        match stopping {
            Some(StopWhy::Asked) => {
                self.charge_interrupted(usage, finished);
                self.interrupt_agent("stopped", ended.ended_processes)
            }
            Some(StopWhy::RunDuration) => {
                self.charge_interrupted(usage, finished);
                self.interrupt_agent("the run's time was up", ended.ended_processes)
            }
            Some(StopWhy::AgentTimeout | StopWhy::Unresponsive | StopWhy::Handoff | StopWhy::OverBudget)
            | None => {
                self.note_ceiling(finished, usage);
                self.judge_agent(ended, finished, usage, &prompt, flags)
            }
        }
    }

    /// The agent's iteration ends without outcome. Nobody will ask what it claimed, but the statuses
    /// it wrote must not be read as a person's word later.
    pub(crate) fn interrupt_agent(&mut self, reason: &str, ended_processes: u32) -> Result<(), EngineError> {
        if let Some(task) = self.journal.state.open.here().map(|open| open.task.clone()) {
            let (_, flags) = self.guard_backlog(&task)?;
            self.notice_taken_back(&task, &flags);
        }
        self.interrupt_iteration(reason, ended_processes)
    }

    /// What an agent used until it was stopped is spent, though its iteration does not count.
    fn charge_interrupted(&mut self, usage: Option<Usage>, finished: &Finished) {
        let open = self.journal.state.open.here().map(|open| (open.iteration, open.attempt));
        if let (Some(usage), Some((iteration, attempt))) = (usage, open) {
            let model = finished.facts.model.clone();
            self.record(Event::Charged { iteration, attempt, usage, model });
        }
    }

    /// Records the agent's end with what its final message means.
    fn judge_agent(
        &mut self,
        ended: Ended,
        finished: &Finished,
        usage: Option<Usage>,
        prompt: &str,
        mut flags: Vec<Flag>,
    ) -> Result<(), EngineError> {
        let Some(open) = self.journal.state.open.here() else { return Ok(()) };
        let (iteration, attempt, task) = (open.iteration, open.attempt, open.task.clone());
        let (reported, began_at) = (open.reported.clone(), open.base.clone());
        let (ticked, backlog_flags) = self.guard_backlog(&task)?;
        flags.extend(backlog_flags);
        flags.extend(self.note_found_commits()?);
        flags.extend(self.touched(began_at.as_deref())?);
        let rules = &self.journal.state.policy.claims;
        let promises: Vec<&str> = rules.promises.iter().map(String::as_str).collect();
        let mark = claim_mark(self.journal.id, iteration, attempt);
        let reader = ClaimReader { task: &task, prompt, promises: &promises, mark: Some(&mark) };
        let claim = reader.read(&finished.message).or(ticked).or(reported.claim);
        let phrase = rules.phrase(&finished.message).map(str::to_owned);
        let mut questions = reported.questions;
        questions.extend(read_escalations(&finished.message, prompt));
        let failed = finished.problem.is_some() || ended.exit == Exit::TimedOut;
        let error = (failed && questions.is_empty())
            .then(|| describe_failure(ended.exit, finished, ended.duration.into()))
            .map(|failure| self.with_withheld(failure));
        if matches!(ended.exit, Exit::Code { .. }) {
            self.warn_of_unpriced(usage, finished.facts.model.as_deref());
        }
        let notes = read_notes(&finished.message);
        self.note_handoff(&notes);
        let message = self.journal.keep(&finished.message);
        self.record(Event::AgentEnded {
            iteration,
            attempt,
            exit: ended.exit,
            message,
            duration: ended.duration.into(),
            usage,
            facts: Box::new(AgentFacts {
                trouble: finished.problem.as_ref().map(|problem| problem.trouble.clone()),
                ..finished.facts.clone()
            }),
            claim,
            phrase,
            questions,
            error,
            flags,
            notes: Box::new(notes),
            ended_processes: ended.ended_processes,
        });
        Ok(())
    }

    /// Puts `.wiggum/` back if the agent removed it or part of it, and takes away what would keep git waiting.
    fn restore_state(&mut self) -> Result<Vec<Flag>, EngineError> {
        let mark_gone = Checkout::restore_mark(&self.dir)?;
        let store_gone = self.journal.store.restore_if_gone()?;
        let agent_dir = self.dir.agent_dir(self.journal.id);
        let gone = store_gone || !agent_dir.is_dir() || !self.dir.wake_dir().is_dir();
        if gone {
            self.make_directories()?;
            if let Some(guardian) = &self.guardian {
                guardian.store(&self.dir.guard_dir(self.journal.id))?;
            }
            self.watch_for_requests();
        }
        let detail = "it was removed while the agent ran".to_owned();
        let flag = Flag { kind: FlagKind::StateTouched, what: StateDir::NAME.to_owned(), detail };
        let mut flags: Vec<Flag> = (gone || mark_gone).then_some(flag).into_iter().collect();
        if let Some(git) = &self.git {
            flags.extend(git.remove_pipes()?.iter().map(odd_flag));
        }
        flags.extend(self.clear_the_way()?);
        Ok(flags)
    }

    /// Statuses are not the agent's to write: what it changed is put back. Its own tick counts as a
    /// claim where that is the convention. Everything else in the file is taken in.
    fn guard_backlog(&mut self, task: &TaskId) -> Result<(Option<Claim>, Vec<Flag>), EngineError> {
        if self.backlog.is_known() {
            return Ok((None, Vec::new()));
        }
        let good = self.backlog.last_known().cloned();
        match self.backlog.refresh() {
            Ok(crate::backlog_file::Refresh::Unchanged) => {
                // As it was: what people added meanwhile may have been written over.
                self.take_edits()?;
                self.keep_added()?;
                return Ok((None, Vec::new()));
            }
            Ok(crate::backlog_file::Refresh::Changed) => {}
            Err(error @ (BacklogError::Read { .. } | BacklogError::Problems(_))) => {
                let flags = self.put_back_backlog(good, &chain(&error))?;
                return Ok((None, flags));
            }
            Err(error) => return Err(error.into()),
        }
        // What people added meanwhile is theirs, and not the agent's to answer for.
        self.take_edits()?;
        let by_people = good.as_ref().is_some_and(|good| self.only_people_wrote(good));
        let (claim, put_back) = self.put_back_statuses(task)?;
        let mut flags = Vec::new();
        if claim.is_none() && !by_people {
            flags.push(backlog_flag(&self.settings.backlog_name, "changed while the agent ran"));
        }
        flags.extend(put_back);
        let refusals = self.refuse_changes(good.as_ref())?;
        flags.extend(self.undo_refused(refusals, good)?);
        flags.extend(self.flags_of_taken_out());
        if !by_people {
            flags.extend(self.flags_of_reworded(task));
        }
        self.keep_added()?;
        self.take_in_backlog();
        Ok((claim, flags))
    }

    /// Statuses are the engine's to write: others are put back, and the tick of the task's own box may be a claim.
    pub(crate) fn put_back_statuses(
        &mut self,
        task: &TaskId,
    ) -> Result<(Option<Claim>, Vec<Flag>), EngineError> {
        let Some(found) = self.backlog.backlog().cloned() else { return Ok((None, Vec::new())) };
        let mut claim = None;
        let mut flags = Vec::new();
        for found in found.tasks() {
            // A status the dialect has no word for stands there as open, and stays that.
            let expected = match self.journal.state.task(&found.id).map(|entry| entry.spec.status) {
                Some(known) if self.can_say(known) => known,
                Some(_) => FileStatus::Open,
                // A task that came meanwhile may be anything but done: nobody has seen it done.
                None if found.status == FileStatus::Done => FileStatus::Open,
                None => continue,
            };
            if found.status == expected {
                continue;
            }
            let own_tick = found.status == FileStatus::Done && self.is_line_of(found, task);
            if own_tick && self.backlog.backlog().is_some_and(wiggum_backlog::Backlog::ticks_are_claims) {
                claim = Some(Claim { text: "ticked its box".to_owned(), source: ClaimSource::TickedBox });
            } else {
                let detail = format!("set {} to {}", found.id, found.status.name());
                flags.push(backlog_flag(&self.settings.backlog_name, &detail));
                self.record(Event::StatusPutBack {
                    task: found.id.clone(),
                    found: found.status,
                    restored: expected,
                });
            }
            self.backlog.edit(|backlog| backlog.set_status(found.id.as_str(), expected))?;
        }
        Ok((claim, flags))
    }

    fn can_say(&self, status: FileStatus) -> bool {
        self.backlog.backlog().is_none_or(|backlog| backlog.dialect().can_say(status))
    }

    /// Is it what the file says of the task at work, perhaps with what was done added to its words?
    fn is_line_of(&self, found: &Task, task: &TaskId) -> bool {
        let known = |id: &TaskId| self.journal.state.task(id);
        found.id == *task
            || known(&found.id).is_none() && known(task).is_some_and(|entry| rewords(&entry.spec, found))
    }
}

pub(crate) fn backlog_flag(name: &str, detail: &str) -> Flag {
    Flag { kind: FlagKind::BacklogTouched, what: name.to_owned(), detail: detail.to_owned() }
}

fn describe_failure(exit: Exit, finished: &Finished, duration: Millis) -> Failure {
    let named = finished.problem.as_ref().map(|problem| problem.message.as_str());
    match (exit, named) {
        (Exit::TimedOut, _) => {
            let message = format!(
                "the agent was stopped after {:.0?}, the time that an attempt may take (--agent-timeout)",
                duration.as_duration()
            );
            Failure { message, signature: "timed out".to_owned() }
        }
        (_, Some(message)) if !message.is_empty() => failure_of(message),
        (exit, _) => failure_from(exit, &finished.complaints, &finished.message),
    }
}

/// Why an agent or a check could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchProblem {
    #[error("cannot write the prompt")]
    Prompt(#[from] std::io::Error),
    #[error(transparent)]
    Command(#[from] process::ParseError),
    #[error(transparent)]
    Launch(#[from] process::LaunchError),
    #[error("no agent `{0}` is configured")]
    Unknown(String),
    #[error("cannot make the repository that the agent is to see")]
    Repository(#[from] Box<EngineError>),
}

impl LaunchProblem {
    fn is_missing_program(&self) -> bool {
        match self {
            Self::Launch(process::LaunchError::Spawn { source, .. }) => {
                source.kind() == std::io::ErrorKind::NotFound
            }
            Self::Unknown(_) => true,
            Self::Prompt(_) | Self::Command(_) | Self::Launch(_) | Self::Repository(_) => false,
        }
    }
}

/// Turns a driver's command into a program and its arguments.
pub fn command_line(command: CommandText) -> Result<CommandLine, process::ParseError> {
    match command {
        CommandText::Program { program, arguments } => Ok(CommandLine::new(program, arguments)),
        CommandText::Line { line, arguments } => {
            let mut command = CommandLine::parse(&line)?;
            command.append(arguments);
            Ok(command)
        }
    }
}

struct AgentSink {
    sender: SyncSender<Input>,
    parser: Box<dyn StreamParser>,
    transcript: Option<Transcript>,
    /// What the clock said when the agent was started.
    started: Duration,
    clock: Clock,
    /// Of standard output and standard error.
    redactors: [Redactor; 2],
    /// What the parser puts together of several lines may be one again.
    secrets: Secrets,
    ear: Ear,
    tap: Option<Arc<dyn Tap>>,
}

impl Sink for AgentSink {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.ear.hear(bytes);
        let [stdout, stderr] = &mut self.redactors;
        let redactor = if stream == Stream::Stdout { stdout } else { stderr };
        let shown = redactor.push(bytes);
        self.pass_on(stream, &shown);
    }

    /// Whoever looks on sees the last lines while the agent thinks about the next.
    fn silence(&mut self) {
        drop(self.transcript.as_mut().map(Transcript::flush));
    }

    fn ended(&mut self, ended: Ended) {
        let [stdout, stderr] = &mut self.redactors;
        let (stdout, stderr) = (stdout.finish(), stderr.finish());
        self.pass_on(Stream::Stdout, &stdout);
        self.pass_on(Stream::Stderr, &stderr);
        drop(self.transcript.take().map(Transcript::finish));
        if let Some(tap) = &self.tap {
            tap.agent_ended(ended.exit);
        }
        let now = self.clock.now().to_zoned(TimeZone::system());
        let mut finished = Box::new(self.parser.finish(ended.exit, &now));
        self.hide(&mut finished.message);
        self.hide(&mut finished.complaints);
        if let Some(problem) = &mut finished.problem {
            self.hide(&mut problem.message);
        }
        drop(self.sender.send(Input::AgentEnded { ended, finished }));
    }
}

impl AgentSink {
    fn pass_on(&mut self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        // The transcript is for people to look at later; a full disk shows at the next append.
        if let Some(transcript) = &mut self.transcript {
            drop(transcript.write(self.clock.elapsed().saturating_sub(self.started).into(), stream, bytes));
        }
        if let Some(tap) = &self.tap {
            tap.output(stream, bytes);
        }
        let mut events = self.parser.push(stream, bytes);
        for event in &mut events {
            self.hide_in(event);
        }
        if !events.is_empty() {
            drop(self.sender.send(Input::Agent(events)));
        }
    }

    fn hide_in(&self, event: &mut AgentEvent) {
        match event {
            AgentEvent::Output(text) | AgentEvent::Notice(text) | AgentEvent::ToolResult { text, .. } => {
                self.hide(text);
            }
            AgentEvent::ToolCall { name, detail } => {
                self.hide(name);
                self.hide(detail);
            }
            AgentEvent::Usage(_)
            | AgentEvent::Model(_)
            | AgentEvent::TurnEnded { .. }
            | AgentEvent::Context { .. }
            | AgentEvent::Session(_)
            | AgentEvent::Limit { .. }
            | AgentEvent::Retrying { .. } => {}
        }
    }

    fn hide(&self, text: &mut String) {
        if let Cow::Owned(hidden) = self.secrets.hide(text) {
            *text = hidden;
        }
    }
}
