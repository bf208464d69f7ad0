//! `wiggum show`: everything about one task, collected from the journal.

use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;
use wiggum_core::activity::{EngineState, task_word};
use wiggum_core::decide::why_seen;
use wiggum_core::event::{Answer, BlobRef, Claim, Envelope, Event, Exit, Flag, Question, Verdict};
use wiggum_core::ids::{Attempt, Iteration, QuestionId, TaskId};
use wiggum_core::policy::Millis;
use wiggum_core::state::Loop;
use wiggum_core::task::Task;
use wiggum_core::tasks::{AttemptMemory, TaskState};
use wiggum_engine::desk::attempts::{self, Diff, Record, Work};
use wiggum_engine::desk::chronicle::iteration_of;
use wiggum_engine::desk::post::require_task;
use wiggum_store::Store;
use wiggum_workspace::git::Git;

use crate::args::ShowArgs;
use crate::commands::{loops, print_json};
use crate::failure::Failure;
use crate::narrate::{answer_words, duration, flag_line, is_about_claim};
use crate::term::{self, Style, harmless};
use wiggum_engine::words::{counted, one_line, short, verdict_words};

/// Lines of a long text that are shown without `--full`.
const SHOWN_LINES: usize = 20;
const SHOWN_DIFF_LINES: usize = 200;
const NO_GIT: &str = "\nno diff: this is no git repository, so only the names of changed files are known\n";

pub(crate) fn show(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let loops = loops::require()?;
    let record = loops.select(args.of.which.as_deref())?;
    let mut history = History::of(TaskId::from(args.task.as_str()));
    loops.store.for_each(record.id, 0, |envelope| history.take(&envelope))?;
    require_task(&history.state, &args.task)?;
    let texts = Texts { store: &loops.store, full: args.full || args.of.output.json };
    let git = Git::discover(loops.checkout.path()).ok().flatten();
    let diff = git.as_ref().and_then(|git| history.diff(git));
    let engine = loops.lease(record.id)?.engine();
    let Some(shown) = history.into_shown(&texts, diff, record.identity.name, engine)? else {
        return Err(Failure::usage(format!("no task `{}`", args.task)));
    };
    if args.of.output.json {
        return print_json(&shown);
    }
    let without_git = if git.is_none() { NO_GIT } else { "" };
    Ok(term::print(&(shown.text(args.full, Style::for_stdout()) + without_git)))
}

/// The task as people and programs see it.
#[derive(Serialize)]
struct Shown {
    #[serde(rename = "loop")]
    name: String,
    task: Task,
    state: &'static str,
    verified: Option<bool>,
    why: String,
    attempts: Vec<AttemptShown>,
    questions: Vec<QuestionShown>,
    guidance: Vec<String>,
    /// What its next attempt would be told of the last ones.
    memory: Vec<RememberedShown>,
    /// What it left for other tasks.
    learnt: Vec<String>,
    /// Its newest checkpoint, by its hash.
    checkpoint: Option<String>,
    /// What people did with it, oldest first.
    interventions: Vec<String>,
    commit: Option<String>,
    kept: Option<String>,
    diff: Option<Diff>,
}

#[derive(Serialize)]
struct AttemptShown {
    iteration: Iteration,
    attempt: Attempt,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
    command: String,
    agent_ms: Option<u64>,
    exit: Option<Exit>,
    claim: Option<Claim>,
    /// What supports a claim, or would.
    supports: Vec<String>,
    message: Option<String>,
    evidence: Vec<EvidenceShown>,
    flags: Vec<Flag>,
    changed: Vec<String>,
    changed_total: Option<u32>,
    verdict: Option<Verdict>,
    interrupted: Option<String>,
    commit_refused: Option<String>,
    kept_under: Option<String>,
    commit: Option<String>,
}

#[derive(Serialize)]
struct EvidenceShown {
    name: String,
    command: String,
    exit: Exit,
    passed: bool,
    duration_ms: u64,
    output: String,
    /// Variables that a failed check did not get.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    withheld: Vec<String>,
    #[serde(skip)]
    about_withheld: Option<String>,
}

/// What is remembered of an attempt.
#[derive(Serialize)]
struct RememberedShown {
    attempt: Attempt,
    agent: String,
    outcome: String,
    /// Why it ended so.
    why: String,
    /// What it changed and said of it.
    tried: String,
}

impl RememberedShown {
    fn of(memory: &AttemptMemory) -> Self {
        let AttemptMemory { attempt, agent, outcome, feedback, .. } = memory;
        let tried = memory.tried();
        let (agent, outcome, why) = (agent.clone(), outcome.clone(), feedback.clone());
        Self { attempt: *attempt, agent, outcome, why, tried }
    }
}

fn learnt(state: &Loop, task: &TaskId) -> Vec<String> {
    state.memory.notes().filter(|note| note.task == *task).map(|note| note.text.clone()).collect()
}

#[derive(Serialize)]
struct QuestionShown {
    id: QuestionId,
    raised_at: Timestamp,
    question: Question,
    answer: Option<Answer>,
    answered_by: Option<String>,
}

/// Collects what the journal says of one task.
struct History {
    task: TaskId,
    state: Loop,
    attempts: Vec<Record>,
    questions: Vec<QuestionShown>,
    interventions: Vec<String>,
}

impl History {
    fn of(task: TaskId) -> Self {
        Self {
            task,
            state: Loop::default(),
            attempts: Vec::new(),
            questions: Vec::new(),
            interventions: Vec::new(),
        }
    }

    fn take(&mut self, envelope: &Envelope) {
        let at = envelope.at;
        match &envelope.event {
            Event::QuestionRaised { id, task, question } if task.as_ref() == Some(&self.task) => {
                self.questions.push(QuestionShown {
                    id: *id,
                    raised_at: at,
                    question: question.clone(),
                    answer: None,
                    answered_by: None,
                });
            }
            Event::QuestionAnswered { id, answer, by } => {
                if let Some(asked) = self.questions.iter_mut().find(|asked| asked.id == *id) {
                    asked.answer = Some(answer.clone());
                    asked.answered_by = Some(by.clone());
                }
            }
            Event::SkipAsked { task, .. }
            | Event::TaskSkipped { task, .. }
            | Event::TaskReopened { task, .. }
            | Event::StatusSet { task, .. }
            | Event::StatusPutBack { task, .. }
            | Event::TaskFailed { task, .. }
                if *task == self.task =>
            {
                let what = wiggum_engine::words::describe(&envelope.event);
                self.interventions.push(format!("{at:.0}  {what}"));
            }
            Event::HealthChanged { iteration, .. } if self.is_at(*iteration) => {
                let what = wiggum_engine::words::describe(&envelope.event);
                self.interventions.push(format!("{at:.0}  {what}"));
            }
            _ => {}
        }
        self.take_attempt(envelope);
        self.state.apply(envelope);
    }

    fn take_attempt(&mut self, envelope: &Envelope) {
        match &envelope.event {
            Event::IterationStarted { task, .. } if *task == self.task => {
                self.attempts.push(Record::default())
            }
            // Another task is next.
            Event::IterationStarted { .. } => return,
            event if iteration_of(event).is_some_and(|iteration| self.is_at(iteration)) => {}
            _ => return,
        }
        if let Some(last) = self.attempts.last_mut() {
            last.take(envelope);
        }
    }

    /// Is the newest attempt at this task that of an iteration? Iterations of other tasks are not here.
    fn is_at(&self, iteration: Iteration) -> bool {
        self.attempts.last().is_some_and(|last| last.iteration == iteration)
    }

    /// The commit of the last attempt that was completed.
    fn commit(&self) -> Option<&str> {
        self.attempts.iter().rfind(|attempt| attempt.completed)?.commit.as_deref()
    }

    /// What the task changed: in its commit, in the work that was kept, or so far.
    fn diff(&self, git: &Git) -> Option<Diff> {
        let entry = self.state.task(&self.task)?;
        let base = self.attempts.last().and_then(|last| last.base.as_deref());
        let work = match (&entry.kept, self.commit()) {
            _ if entry.state == TaskState::Running => Work::SoFar,
            (Some(kept), _) => Work::Kept(kept),
            (None, Some(commit)) => Work::Commit(commit),
            (None, None) => return None,
        };
        attempts::diff(git, base, work)
    }

    fn into_shown(
        self,
        texts: &Texts<'_>,
        diff: Option<Diff>,
        name: String,
        engine: EngineState,
    ) -> Result<Option<Shown>, Failure> {
        let commit = self.commit().map(str::to_owned);
        let attempts =
            self.attempts.into_iter().map(|record| texts.shown(record)).collect::<Result<_, _>>()?;
        let now = Timestamp::now();
        let why = why_seen(&self.state, &self.task, engine, now);
        let why = why.map(|why| why.to_string()).unwrap_or_default();
        let Some(entry) = self.state.task(&self.task) else { return Ok(None) };
        Ok(Some(Shown {
            name,
            task: entry.spec.clone(),
            state: task_word(&entry.state, engine),
            verified: match entry.state {
                TaskState::Done { verified, .. } => Some(verified),
                TaskState::Open
                | TaskState::Running
                | TaskState::Parked(_)
                | TaskState::Failed { .. }
                | TaskState::Skipped => None,
            },
            why,
            guidance: entry.guidance.clone(),
            memory: entry.history.iter().map(RememberedShown::of).collect(),
            learnt: learnt(&self.state, &self.task),
            checkpoint: entry.checkpoint.clone(),
            kept: entry.kept.clone(),
            attempts,
            questions: self.questions,
            interventions: self.interventions,
            commit,
            diff,
        }))
    }
}

/// The long texts beside the journal.
struct Texts<'a> {
    store: &'a Store,
    full: bool,
}

impl Texts<'_> {
    fn shown(&self, record: Record) -> Result<AttemptShown, Failure> {
        let message = match (record.trouble, record.message) {
            (Some(trouble), _) => Some(trouble),
            (None, Some(message)) if self.full => Some(self.whole(&message)?),
            (None, message) => message.map(|message| message.excerpt),
        };
        let evidence = record.evidence.into_iter().map(|evidence| {
            Ok::<_, Failure>(EvidenceShown {
                passed: evidence.passed(),
                about_withheld: evidence.about_withheld(),
                withheld: evidence.withheld,
                exit: evidence.exit,
                duration_ms: evidence.duration.0,
                output: self.whole(&evidence.output)?,
                name: evidence.name,
                command: evidence.command,
            })
        });
        Ok(AttemptShown {
            iteration: record.iteration,
            attempt: record.attempt,
            started_at: record.started_at,
            ended_at: record.ended_at,
            command: record.command,
            agent_ms: record.agent_ms,
            exit: record.exit,
            claim: record.claim,
            supports: record.supports,
            message,
            evidence: evidence.collect::<Result<_, _>>()?,
            flags: record.flags,
            changed: record.changed,
            changed_total: record.changed_total,
            verdict: record.verdict,
            interrupted: record.interrupted,
            commit_refused: record.refused.map(|output| self.whole(&output)).transpose()?,
            kept_under: record.kept_under,
            commit: record.commit,
        })
    }

    fn whole(&self, blob: &BlobRef) -> Result<String, Failure> {
        if blob.sha256.is_empty() {
            return Ok(blob.excerpt.clone());
        }
        Ok(self.store.blob(&blob.sha256)?.unwrap_or_else(|| blob.excerpt.clone()))
    }
}

impl Shown {
    fn text(&self, full: bool, style: Style) -> String {
        let mut out = Lines { text: String::new(), style, full };
        self.head(&mut out);
        for attempt in &self.attempts {
            attempt.write(&mut out);
        }
        for asked in &self.questions {
            asked.write(&mut out);
        }
        for guidance in &self.guidance {
            out.heading("Guidance");
            out.block("  ", guidance, SHOWN_LINES);
        }
        self.write_memory(&mut out);
        if !self.interventions.is_empty() {
            out.heading("Also");
            self.interventions.iter().for_each(|line| out.line(&format!("  {}", one_line(line))));
        }
        if let Some(diff) = &self.diff {
            out.heading(&format!("Diff of {}", diff.of));
            out.diff(&diff.text);
        }
        out.text
    }

    fn write_memory(&self, out: &mut Lines) {
        if self.memory.is_empty() && self.learnt.is_empty() {
            return;
        }
        out.heading("Memory");
        for past in &self.memory {
            let tried = if past.tried.is_empty() { String::new() } else { format!(": {}", past.tried) };
            out.line(&format!(
                "  {}",
                one_line(&format!("attempt {}, {}{tried}", past.attempt, past.outcome))
            ));
        }
        for note in &self.learnt {
            out.line(&format!("  learnt: {}", one_line(note)));
        }
        if let Some(checkpoint) = &self.checkpoint {
            out.line(&out.style.dim(&format!("  checkpoint {}", short(checkpoint))));
        }
    }

    fn head(&self, out: &mut Lines) {
        let Task { id, title, description, criteria, depends_on, .. } = &self.task;
        let style = out.style;
        out.line(&format!("{}  {}", style.bold(&one_line(id.as_str())), one_line(title)));
        let why = if self.why == self.state { String::new() } else { format!(": {}", one_line(&self.why)) };
        let state = match self.state {
            "done" => style.green(self.state),
            "failed" => style.red(self.state),
            _ => style.yellow(self.state),
        };
        let commit = self.commit.as_deref().filter(|_| self.verified.is_some());
        let commit = commit.map(|commit| format!(", commit {}", short(commit))).unwrap_or_default();
        out.line(&format!("  {state}{why}{commit}{}", style.dim(&format!("  (loop {})", self.name))));
        if !depends_on.is_empty() {
            let names: Vec<&str> = depends_on.iter().map(TaskId::as_str).collect();
            out.line(&format!("  depends on {}", one_line(&names.join(", "))));
        }
        if description != title {
            out.block("  ", description, SHOWN_LINES);
        }
        for criterion in criteria {
            let check = criterion.check.as_ref().map(|check| format!("  `{}`", one_line(check)));
            let check = style.dim(&check.unwrap_or_default());
            out.line(&format!("  - {}{check}", one_line(&criterion.text)));
        }
    }
}

impl AttemptShown {
    fn write(&self, out: &mut Lines) {
        let style = out.style;
        let (iteration, attempt, at) = (self.iteration, self.attempt, self.started_at);
        out.heading(&format!("Attempt {attempt} (iteration {iteration}, {at:.0})"));
        out.line(&style.dim(&format!("  {}", one_line(&self.command))));
        if let Some(exit) = self.exit {
            let took = self.agent_ms.map(|ms| format!(" after {}", duration(Millis(ms)))).unwrap_or_default();
            out.line(&format!("  agent: {exit}{took}"));
        }
        if let Some(message) = &self.message {
            out.block("  │ ", message, SHOWN_LINES);
        }
        match &self.claim {
            Some(claim) => out.line(&format!("  claim: {}", one_line(&claim.text))),
            None if self.exit.is_some() => out.line("  no claim"),
            None => {}
        }
        for support in self.supports.iter().filter(|_| self.verdict.as_ref().is_some_and(is_about_claim)) {
            out.line(&style.dim(&format!("  supports a claim: {}", one_line(support))));
        }
        for flag in &self.flags {
            let text = format!("! {}", flag_line(flag));
            out.line(&style.yellow(&format!("  {}", one_line(&text))));
        }
        if let Some(total) = self.changed_total {
            let names = self.changed.iter().take(5).map(|path| one_line(path)).collect::<Vec<_>>().join(", ");
            let more = if total > 5 { ", …" } else { "" };
            let names = if names.is_empty() { names } else { format!(": {names}{more}") };
            out.line(&format!("  {} changed{names}", counted(total as usize, "path")));
        }
        for evidence in &self.evidence {
            evidence.write(out);
        }
        self.write_end(out);
    }

    fn write_end(&self, out: &mut Lines) {
        let style = out.style;
        if let Some(verdict) = &self.verdict {
            let text = verdict_words(verdict);
            let first = one_line(&text);
            out.line(&match verdict {
                Verdict::Accepted { .. } => format!("  {} {first}", style.green("✓")),
                Verdict::Refuted { .. } | Verdict::Errored { .. } => format!("  {} {first}", style.red("✗")),
                Verdict::Unclaimed
                | Verdict::Asked
                | Verdict::Held { .. }
                | Verdict::HandedOver { .. }
                | Verdict::Unavailable { .. } => {
                    format!("  {} {first}", style.yellow("·"))
                }
            });
        }
        if let Some(output) = &self.commit_refused {
            out.line(&format!("  {} the commit was refused:", style.red("✗")));
            out.block("    ", output, SHOWN_LINES);
        }
        if let Some(reason) = &self.interrupted {
            out.line(&style.yellow(&format!("  ‖ interrupted: {}", one_line(reason))));
        }
        if let Some(reference) = &self.kept_under {
            out.line(&style.dim(&format!("  work kept under {}", one_line(reference))));
        }
        if let Some(commit) = &self.commit {
            out.line(&format!("  commit {commit}"));
        }
    }
}

impl EvidenceShown {
    fn write(&self, out: &mut Lines) {
        let style = out.style;
        let mark = if self.passed { style.green("✓") } else { style.red("✗") };
        let took = duration(Millis(self.duration_ms));
        out.line(&format!("  {mark} {}: {}", one_line(&self.name), style.bold(&one_line(&self.command))));
        out.line(&style.dim(&format!("    {} after {took}", self.exit)));
        if let Some(words) = &self.about_withheld {
            out.line(&style.yellow(&format!("    {}", one_line(words))));
        }
        out.block("    │ ", &self.output, SHOWN_LINES);
    }
}

impl QuestionShown {
    fn write(&self, out: &mut Lines) {
        out.heading(&format!("Question {}: {}", self.id, one_line(&self.question.summary)));
        out.block("  ", &self.question.context, SHOWN_LINES);
        for (number, option) in self.question.options.iter().enumerate() {
            out.line(&format!("  {}. {}", number + 1, one_line(option)));
        }
        match (&self.answer, &self.answered_by) {
            (Some(answer), by) => {
                let by = by.as_deref().unwrap_or("somebody");
                out.line(&format!("  answered by {}: {}", one_line(by), one_line(&answer_words(answer))));
            }
            (None, _) => out.line(&format!("  no answer: `wiggum answer {} …`", self.id)),
        }
    }
}

/// Text under construction.
struct Lines {
    text: String,
    style: Style,
    full: bool,
}

impl Lines {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn heading(&mut self, heading: &str) {
        let heading = self.style.bold(heading);
        self.line(&format!("\n{heading}"));
    }

    /// The end of a text of others, where what matters usually is.
    fn block(&mut self, indent: &str, text: &str, shown: usize) {
        let text = harmless(text);
        let lines: Vec<&str> = text.trim_end().lines().collect();
        let hidden = if self.full { 0 } else { lines.len().saturating_sub(shown) };
        if hidden > 0 {
            let note = self.style.dim(&format!("{indent}… {hidden} lines more, with --full"));
            self.line(&note);
        }
        for line in &lines[hidden..] {
            self.line(&format!("{indent}{line}"));
        }
    }

    fn diff(&mut self, text: &str) {
        let text = harmless(text);
        let count = text.lines().count();
        let shown = if self.full { count } else { SHOWN_DIFF_LINES };
        for line in text.lines().take(shown) {
            let line = match line.as_bytes().first() {
                Some(b'+') => self.style.green(line),
                Some(b'-') => self.style.red(line),
                Some(b'@') => self.style.cyan(line),
                Some(_) | None => line.to_owned(),
            };
            self.line(&line);
        }
        if count > shown {
            let note = self.style.dim(&format!("… {} lines more, with --full", count - shown));
            self.line(&note);
        }
    }
}
