//! Work that needs no agent: a file is written, a notice given, a tool called.
//!
//! A call that must not be made twice is recorded before it is sent, and let come to its end where
//! that is possible: a call cut short is a question to a person.

use serde_json::Value;
use wiggum_core::decide::StopWhy;
use wiggum_core::event::{BlobRef, Event, Failure, Report};
use wiggum_core::ids::{Attempt, Iteration, TaskId};
use wiggum_core::mutant::{Mutant, planted};
use wiggum_core::policy::Millis;
use wiggum_core::redact;
use wiggum_core::signal::error::failure_of;
use wiggum_core::state::{OpenIteration, millis_between};
use wiggum_core::task::{FileStatus, Work};
use wiggum_core::template;
use wiggum_core::work::Fate;
use wiggum_workspace::beneath::{self, CreateError, Created};
use wiggum_workspace::crash;

use crate::engine::{Engine, Input};
use crate::error::{EngineError, chain};
use crate::tools::{CallOutcome, Cancel, NotReady, Ready, ToolCall};

/// Directories in which programs keep what they are run by: not for a plan to write.
const CLOSED: &[&str] = &[".git", ".wiggum", ".obsidian"];

/// A call that is being got ready or was sent.
pub(crate) struct RunningCall {
    call: ToolCall,
    pub(crate) cancel: Cancel,
    /// It was sent, and must not be made twice.
    once: bool,
    stopping: Option<StopWhy>,
}

impl RunningCall {
    /// Wishes for its end; false where its own end is waited for.
    pub(crate) fn stop(&mut self, why: StopWhy) -> bool {
        let waits = self.once && why != StopWhy::AgentTimeout;
        if waits || self.stopping.is_some() {
            return false;
        }
        self.stopping = Some(why);
        self.cancel.cancel();
        true
    }

    /// As [`RunningCall::stop`]; who is in a hurry does not wait, and is asked later what happened.
    pub(crate) fn interrupt(&mut self, hurry: bool) {
        if hurry {
            self.cancel.cancel();
        } else {
            self.stop(StopWhy::Asked);
        }
    }
}

/// How work ended: well, if nothing is said.
#[derive(Default)]
struct End {
    error: Option<Failure>,
    uncertain: bool,
    permanent: bool,
}

/// What a task does that needs no agent, for people to read.
pub(crate) fn describe(work: &Work) -> String {
    match work {
        Work::Agent => String::new(),
        Work::Command { command } => command.clone(),
        Work::File { path, .. } => format!("create {path}"),
        Work::Notice { .. } => "notify".to_owned(),
        Work::McpCall { server, tool, .. } => format!("call {tool} of {server}"),
        Work::Gate { gate } => gate.clone(),
        Work::Flow { flow } => flow.clone(),
    }
}

/// Tasks that are open in the backlog now, of those that changed.
pub(crate) fn opened(event: &Event) -> Vec<TaskId> {
    let Event::BacklogRead { changed, .. } = event else { return Vec::new() };
    changed.iter().filter(|task| task.status == FileStatus::Open).map(|task| task.id.clone()).collect()
}

impl Engine<'_> {
    /// Carries out the work of the iteration that has just begun.
    pub(crate) fn start_work(&mut self, work: &Work) -> Result<(), EngineError> {
        let Some(open) = self.journal.state.open.here().cloned() else { return Ok(()) };
        let entry = self.journal.state.task(&open.task);
        let (fate, result) = entry.map(|entry| (entry.fate, entry.result.clone())).unwrap_or_default();
        if fate == Some(Fate::InDoubt) {
            let message = "nobody has said since then whether it happened".to_owned();
            self.work_ended(&open, CallOutcome::Uncertain { message });
            return Ok(());
        }
        if fate == Some(Fate::Happened) {
            self.record_work(&open, result.unwrap_or_default(), End::default());
            return Ok(());
        }
        // What is recorded of it lacks its secrets.
        let written = self.backlog.backlog().and_then(|backlog| backlog.task(open.task.as_str()));
        let work = match written.map(|task| task.work.clone()) {
            Some(written) if redact::work(&written) == *work => written,
            Some(_) | None if redact::work(work) == *work && !redact::is_redacted(work) => work.clone(),
            Some(_) | None => {
                let message = "the backlog was changed just now; it is read again".to_owned();
                self.work_ended(&open, CallOutcome::Refused { message });
                return Ok(());
            }
        };
        match &work {
            Work::File { path, content, overwrite } => {
                let outcome = self.create_file(path, content, *overwrite);
                crash::point("file created");
                self.work_ended(&open, outcome);
            }
            Work::Notice { message } => {
                let outcome = match template::fill_words(message, &|step| self.result_of(step)) {
                    Ok(result) => CallOutcome::Done { result },
                    Err(error) => CallOutcome::Impossible { message: error.to_string() },
                };
                self.work_ended(&open, outcome);
            }
            Work::McpCall { server, tool, params } => self.prepare_call(&open, server, tool, params),
            // Refused before the run starts.
            Work::Agent | Work::Command { .. } | Work::Gate { .. } | Work::Flow { .. } => {
                let message = format!("work of kind `{}` is not available", work.name());
                self.work_ended(&open, CallOutcome::Impossible { message });
            }
        }
        Ok(())
    }

    fn create_file(&self, path: &str, content: &str, overwrite: bool) -> CallOutcome {
        let results = |step: &str| self.result_of(step);
        let filled = template::fill_words(path, &results)
            .and_then(|path| Ok((path, template::fill_words(content, &results)?)));
        let (path, content) = match filled {
            Ok(filled) => filled,
            Err(error) => return CallOutcome::Impossible { message: error.to_string() },
        };
        let closed = std::path::Path::new(&path).components().any(|part| {
            let part = part.as_os_str().to_string_lossy().to_lowercase();
            CLOSED.contains(&part.as_str())
        });
        let first = path.split('/').find(|part| !part.is_empty() && *part != ".").unwrap_or_default();
        let closed = closed || self.settings.closed.iter().any(|folder| folder.eq_ignore_ascii_case(first));
        if closed {
            let message = format!("`{path}` is not for a plan to write; name a file elsewhere");
            return CallOutcome::Impossible { message };
        }
        let created = beneath::create(self.settings.workspace(), &path, content.as_bytes(), overwrite);
        match created {
            Ok(Created::New) => CallOutcome::Done { result: format!("created {path}") },
            Ok(Created::Same) => CallOutcome::Done { result: format!("{path} was there already, just so") },
            Ok(Created::Replaced) => CallOutcome::Done { result: format!("replaced {path}") },
            Err(error @ (CreateError::Write { .. } | CreateError::Read { .. })) => {
                CallOutcome::Refused { message: chain(&error) }
            }
            Err(error @ CreateError::Exists { .. }) => {
                let message = format!("{}; remove it, or say `Overwrite: yes`", chain(&error));
                CallOutcome::Impossible { message }
            }
            Err(error @ (CreateError::Outside { .. } | CreateError::Link { .. })) => {
                let message = format!("{}; name a file inside the directory", chain(&error));
                CallOutcome::Impossible { message }
            }
        }
    }

    fn prepare_call(&mut self, open: &OpenIteration, server: &str, tool: &str, params: &Value) {
        let Some(tools) = self.settings.tools.clone() else {
            let message = format!("no MCP server is configured, so `{server}` cannot be called");
            return self.work_ended(open, CallOutcome::Impossible { message });
        };
        let params = match template::fill(params, &|step| self.result_of(step)) {
            Ok(params) => params,
            Err(error) => {
                return self.work_ended(open, CallOutcome::Impossible { message: error.to_string() });
            }
        };
        let call = ToolCall { server: server.to_owned(), tool: tool.to_owned(), params };
        self.call =
            Some(RunningCall { call: call.clone(), cancel: Cancel::default(), once: false, stopping: None });
        self.keep_watchdog();
        let marker = ("WIGGUM_LOOP_ID".to_owned(), self.journal.id.to_string());
        let (sender, iteration, attempt) = (self.sender.clone(), open.iteration, open.attempt);
        self.host.beside(Box::new(move || {
            let ready = tools.prepare(&call, &marker);
            drop(sender.send(Input::CallReady { iteration, attempt, ready }));
        }));
        crash::point("call prepared");
    }

    pub(crate) fn call_ready(
        &mut self,
        iteration: Iteration,
        attempt: Attempt,
        ready: Result<Box<dyn Ready>, NotReady>,
    ) -> Result<(), EngineError> {
        let Some(open) = self.open_call(iteration, attempt) else { return Ok(()) };
        let ready = match ready {
            Ok(_) if self.call.as_ref().is_some_and(|call| call.cancel.is_cancelled()) => {
                return self.give_up_call(&open);
            }
            Ok(ready) => ready,
            Err(not_ready) => {
                self.call = None;
                let outcome = match not_ready {
                    NotReady::Temporary { message } => CallOutcome::Refused { message },
                    NotReady::Permanent { message } => CallOutcome::Impossible { message },
                };
                self.work_ended(&open, outcome);
                return Ok(());
            }
        };
        let repeatable = ready.is_repeatable();
        self.record_call(&open, repeatable);
        self.flush()?;
        crash::point("call recorded");
        let Some(call) = &mut self.call else { return Ok(()) };
        call.once = !repeatable;
        let (sender, cancel) = (self.sender.clone(), call.cancel.clone());
        self.host.beside(Box::new(move || {
            let outcome = ready.call(&cancel);
            crash::point("call answered");
            drop(sender.send(Input::CallEnded { iteration, attempt, outcome }));
        }));
        Ok(())
    }

    fn record_call(&mut self, open: &OpenIteration, repeatable: bool) {
        let Some(ToolCall { server, tool, params }) = self.call.as_ref().map(|call| call.call.clone()) else {
            return;
        };
        let shown = redact::params(&params).to_string();
        let params = self.journal.keep(&self.secrets.hide(&shown));
        let (iteration, attempt) = (open.iteration, open.attempt);
        self.record(Event::CallStarted { iteration, attempt, server, tool, params, repeatable });
    }

    pub(crate) fn call_ended(
        &mut self,
        iteration: Iteration,
        attempt: Attempt,
        outcome: CallOutcome,
    ) -> Result<(), EngineError> {
        let Some(open) = self.open_call(iteration, attempt) else { return Ok(()) };
        let call = self.call.take();
        let (once, stopping) = call.map_or((false, None), |call| (call.once, call.stopping));
        let timed_out = stopping == Some(StopWhy::AgentTimeout);
        match outcome {
            CallOutcome::Refused { .. } | CallOutcome::Impossible { .. } | CallOutcome::Uncertain { .. }
                if !once && !timed_out && (stopping.is_some() || self.is_interrupted()) =>
            {
                return self.give_up_call(&open);
            }
            CallOutcome::Uncertain { message } if !once => {
                self.work_ended(&open, CallOutcome::Refused { message });
            }
            outcome => self.work_ended(&open, outcome),
        }
        crash::point("call ended");
        // From here on nobody has to be asked.
        self.flush()
    }

    /// Nothing happened that could not happen again.
    fn give_up_call(&mut self, open: &OpenIteration) -> Result<(), EngineError> {
        let timed_out = self.call.take().is_some_and(|call| call.stopping == Some(StopWhy::AgentTimeout));
        if timed_out {
            let message = "the server did not get ready in time".to_owned();
            self.work_ended(open, CallOutcome::Refused { message });
            return Ok(());
        }
        self.interrupt_iteration("stopped", 0)
    }

    fn open_call(&self, iteration: Iteration, attempt: Attempt) -> Option<OpenIteration> {
        let open = self.journal.state.open.here().filter(|_| self.call.is_some() && self.agent_stage())?;
        ((open.iteration, open.attempt) == (iteration, attempt)).then(|| open.clone())
    }

    /// Says of calls whose boxes are empty again why that changes nothing.
    pub(crate) fn note_unticked(&mut self, tasks: &[TaskId]) {
        for task in tasks {
            let stays =
                self.journal.state.task(task).is_some_and(|entry| {
                    entry.fate.is_some() && entry.state.file_status() != FileStatus::Open
                });
            if stays {
                let message = format!("{task} is not called again; `wiggum retry {task}` calls it again");
                self.record(Event::Noticed { task: Some(task.clone()), message });
            }
        }
    }

    /// Records what came of the work.
    pub(crate) fn work_ended(&mut self, open: &OpenIteration, outcome: CallOutcome) {
        let failed = |message: &str| Some(failure_of(&redact::text(&self.secrets.hide(message))));
        let (result, end) = match outcome {
            CallOutcome::Done { result } => (self.secrets.hide(&result).into_owned(), End::default()),
            CallOutcome::Refused { message } => {
                (String::new(), End { error: failed(&message), ..End::default() })
            }
            CallOutcome::Impossible { message } => {
                (String::new(), End { error: failed(&message), permanent: true, ..End::default() })
            }
            CallOutcome::Uncertain { message } => {
                (String::new(), End { error: failed(&message), uncertain: true, ..End::default() })
            }
        };
        // A later step may need it as it is.
        let result = self.journal.keep_exact(&result);
        self.record_work(open, result, end);
    }

    fn record_work(&mut self, open: &OpenIteration, result: BlobRef, end: End) {
        let End { error, uncertain, permanent } = end;
        let duration = Millis(millis_between(open.started_at, self.clock.now()));
        let (iteration, attempt) = (open.iteration, open.attempt);
        if planted(Mutant::ReportsForEngine) {
            let report = Report::Progress { text: String::new() };
            self.record(Event::AgentReported { iteration, attempt, report });
        }
        self.record(Event::WorkEnded { iteration, attempt, duration, result, error, uncertain, permanent });
    }

    /// What an earlier task came to: as data where it is, as text otherwise.
    fn result_of(&self, task: &str) -> Option<Value> {
        let entry = self.journal.state.task(&task.into()).filter(|entry| entry.is_done())?;
        let text = self.journal.text(&entry.result.as_ref()?.sha256).ok()??;
        Some(serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }
}
