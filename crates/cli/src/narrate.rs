//! A run as people watch it: headings, live output, evidence, progress, the final tally.
//!
//! It only listens: what it prints follows from events and output, live or replayed.

use std::io::{LineWriter, Write};
use std::path::PathBuf;

use jiff::Timestamp;
use wiggum_agents::{AgentEvent, Family, Login};
use wiggum_core::agents::WITHHELD;
use wiggum_core::breaker::Phase;
use wiggum_core::budget::{Scope, exhausted_scope};
use wiggum_core::clean;
use wiggum_core::decide::{Waiting, why};
use wiggum_core::event::{
    BaselineOutcome, EndReason, Envelope, Event, Evidence, Flag, Question, Trouble, Verdict,
};
use wiggum_core::health::Health;
use wiggum_core::ids::{QuestionId, TaskId};
use wiggum_core::policy::Millis;
use wiggum_core::redact;
use wiggum_core::signal::error::decisive_lines;
use wiggum_core::state::{Loop, OpenQuestion};
use wiggum_core::tasks::TaskState;
use wiggum_core::termination::headline;
use wiggum_engine::Observer;
pub(crate) use wiggum_engine::words::{answer_words, duration, elapsed, flag_line};
use wiggum_engine::words::{counted, describe};

use crate::ask::Terminal;
use crate::cost::cost;
use crate::term::{Output, Style, harmless};

/// How many lines of a failed check's output are shown at once; `wiggum show` has all of it.
const SHOWN_LINES: usize = 12;
/// Cells of the progress bar.
const BAR: usize = 24;

/// The journal as JSON lines.
#[derive(Default)]
pub(crate) struct JsonLines {
    /// Whoever reads them is woken once for all that happened together.
    lines: String,
}

impl Observer for JsonLines {
    fn event(&mut self, envelope: &Envelope, _state: &Loop) {
        if let Ok(line) = envelope.to_json() {
            self.lines.push_str(&redact::json(&line));
            self.lines.push('\n');
        }
    }

    fn shown(&mut self) {
        // A reader that went away is not our failure.
        drop(Output.write_all(self.lines.as_bytes()));
        self.lines.clear();
    }

    fn agent(&mut self, _event: &AgentEvent) {}

    fn check_output(&mut self, _text: &str) {}

    fn waiting(&mut self, _waiting: &Waiting, _state: &Loop) {}
}

pub(crate) struct Narrator {
    style: Style,
    terminal: Option<Terminal>,
    out: Box<dyn Write>,
    /// Output is in the middle of a line.
    midline: bool,
    /// The cursor stands behind the prompt of a question.
    prompting: bool,
    asking: Asking,
    iteration_started: Option<Timestamp>,
    /// Checks of this iteration that failed; what they printed was shown as it came.
    failed_checks: u32,
    /// A check runs before the work, and has printed nothing yet.
    beforehand: Option<String>,
}

/// When the question at the terminal is shown: once, after everything that is printed together with it, and
/// again only where other output has followed.
#[derive(Default)]
struct Asking {
    /// To be shown in full when the output has settled.
    next: Option<QuestionId>,
    /// Something was printed since the question was shown.
    buried: bool,
    /// An iteration began since the question was shown in full: it has probably left the screen.
    scrolled: bool,
    /// An iteration has ended since: a good moment to show the question again.
    pause: bool,
    /// The loop waits, and whatever is printed meanwhile is short.
    idle: bool,
}

impl Narrator {
    pub(crate) fn new(terminal: Option<Terminal>) -> Self {
        Self::writing_to(Box::new(LineWriter::new(Output)), Style::for_stdout(), terminal)
    }

    fn writing_to(out: Box<dyn Write>, style: Style, terminal: Option<Terminal>) -> Self {
        Self {
            style,
            terminal,
            out,
            midline: false,
            prompting: false,
            asking: Asking::default(),
            iteration_started: None,
            failed_checks: 0,
            beforehand: None,
        }
    }

    /// A reader that went away is not our failure.
    fn print(&mut self, text: &str) {
        drop(self.out.write_all(text.as_bytes()));
    }

    fn line(&mut self, text: &str) {
        self.end_line();
        self.print(&format!("{text}\n"));
    }

    fn end_line(&mut self) {
        self.leave_prompt();
        self.asking.buried = true;
        if self.midline {
            self.print("\n");
            self.midline = false;
        }
    }

    /// What is printed next begins on a line of its own.
    fn leave_prompt(&mut self) {
        let entered = self.terminal.as_ref().is_some_and(Terminal::was_entered);
        if std::mem::take(&mut self.prompting) && !entered {
            self.print("\n");
        }
    }

    /// Agents' and checks' output, indented behind a bar, as it comes.
    fn stream(&mut self, text: &str) {
        self.leave_prompt();
        self.asking.buried = true;
        let mut out = String::new();
        for piece in harmless(text).split_inclusive('\n') {
            if !self.midline {
                out.push_str(&self.style.dim("  │ "));
            }
            out.push_str(&self.style.dim(piece.trim_end_matches('\n')));
            self.midline = !piece.ends_with('\n');
            if !self.midline {
                out.push('\n');
            }
        }
        self.print(&out);
        drop(self.out.flush());
    }

    fn started(&mut self, state: &Loop, sandbox: &str, resumed: bool) {
        let style = self.style;
        let counts = state.tasks.counts();
        let verb = if resumed { "goes on" } else { "starts" };
        let mut text = format!(
            "{} {verb}: run {} of loop {} over {}",
            style.bold("Ralph"),
            state.run.number,
            style.cyan(&state.name),
            style.cyan(&state.backlog)
        );
        if counts.total > 0 {
            text.push_str(&format!(", {} of {} done", counts.done, counts.total));
        }
        self.line(&text);
        let agent = harmless(&state.agent);
        if agent.is_empty() {
            self.line(&style.dim("  agent   none: the engine does all of it itself"));
            return;
        }
        self.line(&style.dim(&format!("  agent   {agent}")));
        if !sandbox.is_empty() {
            self.line(&style.dim(&format!("  sandbox {}", harmless(sandbox))));
        }
        let checks = state.policy.checks.verify.join("  ·  ");
        let checks = if checks.is_empty() {
            "those of the tasks; tasks without any are marked unverified (see --verify)".to_owned()
        } else {
            checks
        };
        self.line(&style.dim(&format!("  checks  {checks}")));
        if !state.git {
            self.line(&style.yellow("  not a git repository: work is checked, but nothing is committed"));
        }
    }

    fn heading(&mut self, state: &Loop, task: &TaskId, attempt: u32) {
        let style = self.style;
        let entry = state.task(task);
        let title = entry.map_or("", |entry| entry.spec.title.as_str());
        let limit = state.policy.limits.iterations.map(|n| format!("/{n}")).unwrap_or_default();
        let mut text = format!(
            "\n{} {}  {}",
            style.cyan("▶"),
            style.bold(&format!("Iteration {}{limit}", state.run.iterations)),
            style.bold(task.as_str())
        );
        if title != task.as_str() {
            text.push_str(&format!("  {}", harmless(title)));
        }
        if attempt > 1 {
            text.push_str(&style.yellow(&format!("  attempt {attempt}")));
        }
        if matches!(state.breaker.phase, Phase::HalfOpen(_)) {
            text.push_str(&style.yellow("  a probe: the circuit breaker is half open"));
        }
        if entry.is_some_and(|entry| !entry.guidance.is_empty()) {
            text.push_str(&style.yellow("  with guidance"));
        }
        self.line(&text);
    }

    fn evidence(&mut self, evidence: &Evidence) {
        let style = self.style;
        let mark = if evidence.passed() { style.green("✓") } else { style.red("✗") };
        let place = if evidence.clean { " in a clean checkout" } else { "" };
        let mut text = format!(
            "  {mark} {}{place}  {}",
            harmless(&evidence.name),
            style.dim(&harmless(&evidence.command))
        );
        if evidence.passed() {
            text.push_str(&style.dim(&format!("  {}", duration(evidence.duration))));
        } else {
            self.failed_checks += 1;
            text.push_str(&format!("  {}", style.red(&evidence.exit.to_string())));
        }
        self.line(&text);
        self.withheld(evidence);
    }

    fn withheld(&mut self, evidence: &Evidence) {
        if let Some(words) = evidence.about_withheld() {
            self.line(&self.style.yellow(&format!("    {}", harmless(&words))));
        }
    }

    /// A check before any agent works.
    fn baseline(&mut self, words: &str, outcome: &BaselineOutcome, evidence: Option<&Evidence>) {
        let words = harmless(words);
        match outcome {
            BaselineOutcome::Green => self.line(&self.style.dim(&format!("  ✓ {words}"))),
            BaselineOutcome::Red => {
                self.line(&self.style.red(&format!("  ✗ {words}")));
                let lines = evidence.map(|evidence| decisive_lines(&evidence.output.excerpt));
                self.reasons(&[lines.unwrap_or_default().join("\n")]);
                evidence.into_iter().for_each(|evidence| self.withheld(evidence));
            }
            BaselineOutcome::CannotRun { .. }
            | BaselineOutcome::LeftOut { .. }
            | BaselineOutcome::Interrupted => {
                self.line(&self.style.yellow(&format!("  ! {words}")));
            }
        }
    }

    fn flags(&mut self, flags: &[Flag]) {
        for flag in flags {
            self.line(&self.style.yellow(&format!("  ! {}", harmless(&flag_line(flag)))));
        }
    }

    fn verdict(&mut self, verdict: &Verdict) {
        let style = self.style;
        match verdict {
            Verdict::Accepted { .. } => {}
            Verdict::Refuted { .. } if self.failed_checks > 0 => {
                self.line(&format!("  {} claimed, but not done: a check failed", style.red("✗")));
            }
            Verdict::Refuted { reasons } => {
                self.line(&format!("  {} claimed, but not done:", style.red("✗")));
                self.reasons(reasons);
            }
            Verdict::Held { reasons } => {
                self.line(&format!("  {} held for a person:", style.yellow("‖")));
                self.reasons(reasons);
            }
            Verdict::Unclaimed => self.line(&format!("  {} ended without a claim", style.yellow("·"))),
            Verdict::Errored { failure } => {
                self.line(&format!("  {} {}", style.red("✗"), first_lines(&failure.message, 3)));
            }
            Verdict::Unavailable { trouble, message } => {
                let text = format!("the agent cannot work: {}", trouble.with(&first_lines(message, 1)));
                self.line(&format!("  {} {text}", style.yellow("·")));
            }
            Verdict::HandedOver { trigger } => {
                self.line(&format!(
                    "  {} handed over: {}",
                    style.yellow("⇢"),
                    harmless(&trigger.to_string())
                ));
            }
            Verdict::Asked => {}
        }
    }

    fn reasons(&mut self, reasons: &[String]) {
        for reason in reasons {
            for line in first_lines(reason, SHOWN_LINES).lines() {
                self.line(&format!("    {line}"));
            }
        }
    }

    fn completed(
        &mut self,
        envelope: &Envelope,
        state: &Loop,
        task: &TaskId,
        commit: Option<&str>,
        verified: bool,
    ) {
        let style = self.style;
        let took = self.iteration_started.map(|at| elapsed(at, envelope.at)).unwrap_or_default();
        let mut text = format!("  {} {} done", style.green("✓"), style.bold(task.as_str()));
        if !verified {
            text.push_str(&style.yellow(" (unverified)"));
        }
        text.push_str(&style.dim(&format!("  {took}")));
        if let Some(commit) = commit {
            text.push_str(&style.dim(&format!("  commit {}", &commit[..commit.len().min(9)])));
        }
        self.line(&text);
        self.progress(state);
    }

    fn progress(&mut self, state: &Loop) {
        let counts = state.tasks.counts();
        let filled = (counts.done * BAR).checked_div(counts.total).unwrap_or(0);
        let bar = format!("{}{}", "█".repeat(filled), "░".repeat(BAR - filled));
        let mut text = format!("  {} {}/{}", self.style.green(&bar), counts.done, counts.total);
        for (n, word) in [(counts.failed, "failed"), (counts.skipped, "skipped"), (counts.parked, "parked")] {
            if n > 0 {
                text.push_str(&self.style.yellow(&format!("  {n} {word}")));
            }
        }
        self.line(&text);
    }

    fn question_text(&self, id: QuestionId, task: Option<&TaskId>, question: &Question) -> String {
        let style = self.style;
        let mut lines = vec![question_line(id, task, &question.summary, style)];
        let context = first_lines(&question.context, SHOWN_LINES);
        lines.extend(context.lines().map(|line| style.dim(&format!("    {line}"))));
        let options = question.options.iter().enumerate();
        lines.extend(options.map(|(n, option)| format!("    {}. {}", n + 1, harmless(option))));
        if !question.question.is_empty() {
            lines.push(format!("    {}", harmless(&question.question)));
        }
        lines.join("\n")
    }

    /// Shows a question that was just raised.
    fn question(&mut self, id: QuestionId, task: Option<&TaskId>, question: &Question, state: &Loop) {
        if self.terminal.is_some() {
            // The newest is asked, whichever was on the screen; unless something has closed it already.
            if state.questions.contains_key(&id) {
                self.asking.next = Some(id);
            }
            return;
        }
        self.line("");
        let text = self.question_text(id, task, question);
        self.line(&text);
        self.line(&self.style.dim(&format!("    answer with: wiggum answer {id} …")));
    }

    /// Which questions can be answered here; the one to be shown next, if none is on the screen.
    fn follow(&self, state: &Loop) -> Option<QuestionId> {
        let words = |id, OpenQuestion { task, question, raised_at: _ }: &OpenQuestion| {
            let brief = question_line(id, task.as_ref(), &question.summary, self.style);
            (brief, self.question_text(id, task.as_ref(), question))
        };
        self.terminal.as_ref()?.follow(state, words)
    }

    /// Shows a question in full, and takes what is typed as its answer.
    fn ask(&mut self, id: QuestionId) {
        let Some(terminal) = &self.terminal else { return };
        let text = terminal.show(id);
        self.line(&format!("\n{text}"));
        self.asking.scrolled = false;
        self.prompt(id);
    }

    fn prompt(&mut self, id: QuestionId) {
        let Some(terminal) = self.terminal.clone() else { return };
        self.print(&terminal.prompt(id));
        drop(self.out.flush());
        terminal.prompted();
        self.prompting = true;
        self.asking.buried = false;
        self.asking.pause = false;
    }

    /// Shows in a line what other output has pushed away.
    fn remind(&mut self) {
        let Some((id, brief)) = self.terminal.as_ref().and_then(Terminal::brief) else { return };
        self.line(&brief);
        self.prompt(id);
    }

    /// What a run finds open when it begins.
    fn open_questions(&mut self, state: &Loop) {
        if self.terminal.is_none() || state.questions.is_empty() {
            return;
        }
        let count = counted(state.questions.len(), "open question");
        let how = "type an answer at any time, `q2 skip` answers a certain one, Enter shows a question again";
        self.line(&self.style.yellow(&format!("  {count}: {how}")));
        for (id, asked) in state.questions.iter().skip(1) {
            let text = question_line(*id, asked.task.as_ref(), &asked.question.summary, self.style);
            self.line(&text);
        }
    }

    fn tally(&mut self, state: &Loop, reason: EndReason, detail: &str) {
        let style = self.style;
        let counts = state.tasks.counts();
        let heading = match reason {
            EndReason::GoalAchieved => style.green(&format!("✓ {}", headline(reason, detail))),
            EndReason::MaxIterations
            | EndReason::MaxDuration
            | EndReason::BudgetExhausted
            | EndReason::PersonNeeded
            | EndReason::ExplicitStop => style.yellow(&format!("‖ {}", reason.ending().says)),
            EndReason::CircuitBreakerOpen
            | EndReason::HealthFailure
            | EndReason::ConsecutiveErrors
            | EndReason::NoProgress => style.red(&format!("✗ {}", reason.ending().says)),
        };
        self.line(&format!("\n{}", style.bold(&heading)));
        let detail = if reason == EndReason::GoalAchieved && counts.skipped == 0 && counts.total > 0 {
            reason.name().to_owned()
        } else {
            format!("{} ({})", harmless(detail), reason.name())
        };
        self.line(&style.dim(&format!("  {detail}")));
        let about_reason = match reason {
            EndReason::GoalAchieved | EndReason::PersonNeeded | EndReason::ExplicitStop => None,
            EndReason::CircuitBreakerOpen
            | EndReason::HealthFailure
            | EndReason::ConsecutiveErrors
            | EndReason::MaxIterations
            | EndReason::MaxDuration
            | EndReason::NoProgress => Some(reason.ending().hint.to_owned()),
            EndReason::BudgetExhausted => Some(raise_budget(state, reason.ending().hint)),
        };
        for hint in about_reason.into_iter().chain(who_cannot_work(state)).chain(never_claims(state)) {
            self.line(&format!("  {} {hint}", style.cyan("hint:")));
        }
        self.progress(state);
        if counts.unverified > 0 {
            let them = if counts.unverified == 1 { "it" } else { "them" };
            let text = format!("  {} unverified: no check has confirmed {them}", counts.unverified);
            self.line(&style.yellow(&text));
        }
        if let Some(doubts) = clean::doubts(state).filter(|_| reason == EndReason::GoalAchieved) {
            self.line(&style.yellow(&format!("  {}", harmless(&doubts))));
        }
        if counts.by_hand > 0 {
            self.line(&style.dim(&format!("  {} done by hand", counts.by_hand)));
        }
        let iterations = counted(state.run.iterations as usize, "iteration");
        let mut facts = vec![iterations, duration(Millis(state.run.active_ms))];
        if state.run.usage.tokens() > 0 || state.run.usage.cost_usd > 0.0 {
            facts.push(cost(&state.run.usage));
        }
        self.line(&style.dim(&format!("  {}", facts.join(" · "))));
        self.left_over(state);
    }

    fn left_over(&mut self, state: &Loop) {
        let now = state.last_at.unwrap_or_default();
        let left: Vec<(TaskId, String)> = state
            .tasks
            .iter()
            .filter(|entry| !matches!(entry.state, TaskState::Done { .. }))
            .filter_map(|entry| Some((entry.spec.id.clone(), why(state, &entry.spec.id, now)?.to_string())))
            .take(20)
            .collect();
        for (task, why) in left {
            self.line(&format!("  {}  {}", self.style.bold(task.as_str()), harmless(&why)));
        }
        for (id, asked) in &state.questions {
            self.line(&format!(
                "  {} {}",
                self.style.yellow(&id.to_string()),
                harmless(&asked.question.summary)
            ));
        }
        if !state.questions.is_empty() {
            let how = "  answer with `wiggum answer ID …`, then the same `wiggum run` goes on";
            self.line(&self.style.cyan(how));
        }
    }
}

impl Narrator {
    fn tell(&mut self, envelope: &Envelope, state: &Loop) {
        match &envelope.event {
            Event::RunStarted { sandbox, .. } => {
                self.started(state, sandbox, false);
                self.open_questions(state);
            }
            Event::RunResumed { sandbox, .. } => {
                self.started(state, sandbox, true);
                self.open_questions(state);
            }
            Event::BacklogBroken { message } => {
                self.line(&self.style.red(&format!("! the backlog cannot be read: {}", harmless(message))));
            }
            Event::IterationStarted { task, attempt, .. } => {
                self.iteration_started = Some(envelope.at);
                self.failed_checks = 0;
                self.heading(state, task, *attempt);
                self.asking.scrolled = true;
                self.asking.idle = false;
            }
            Event::AgentEnded { duration: took, flags, ended_processes, .. } => {
                self.line(&self.style.dim(&format!("  agent ended after {}", duration(*took))));
                if *ended_processes > 0 {
                    let text = match ended_processes {
                        1 => "  ! ended a process it had left running".to_owned(),
                        count => format!("  ! ended {count} processes it had left running"),
                    };
                    self.line(&self.style.yellow(&text));
                }
                self.flags(flags);
            }
            Event::CallStarted { .. } | Event::AgentReported { .. } => {
                self.line(&self.style.dim(&format!("  ⚙ {}", harmless(&describe(&envelope.event)))));
            }
            Event::WorkEnded { error: None, .. } => {
                self.line(&format!("  · {}", harmless(&describe(&envelope.event))));
            }
            Event::WorkEnded { uncertain: true, .. } => {
                self.line(&self.style.yellow(&format!("  ! {}", harmless(&describe(&envelope.event)))));
            }
            Event::LoopMoved { copied: false, .. } => {
                self.line(&self.style.dim(&harmless(&describe(&envelope.event))));
            }
            Event::LoopMoved { copied: true, .. } => {
                self.line(&self.style.yellow(&format!("! {}", harmless(&describe(&envelope.event)))));
            }
            Event::CommitsFound { .. } => {
                self.line(&self.style.yellow(&format!("  ! {}", harmless(&describe(&envelope.event)))));
            }
            Event::TreeTaken { flags, .. } | Event::WorkInspected { flags, .. } => self.flags(flags),
            Event::TreeAltered { .. } => {
                self.line(&self.style.yellow("  ! a git hook changed the files: checking again"));
            }
            Event::EvidenceGathered { evidence, .. } | Event::CleanChecked { evidence, .. } => {
                self.evidence(evidence);
            }
            Event::Judged { verdict, signals, .. } => {
                self.verdict(verdict);
                // What was accepted is still to be committed.
                self.asking.pause |= !matches!(verdict, Verdict::Accepted { .. });
                if !signals.is_empty() && is_about_claim(verdict) {
                    let said: Vec<String> = signals.iter().map(ToString::to_string).collect();
                    let text = format!("  · supports a claim: {}", harmless(&said.join("; ")));
                    self.line(&self.style.dim(&text));
                }
            }
            Event::TaskCompleted { task, commit, verified, .. } => {
                self.completed(envelope, state, task, commit.as_deref(), *verified);
                self.asking.pause = true;
            }
            Event::CommitRefused { output, .. } => {
                self.line(&format!("  {} the commit was refused:", self.style.red("✗")));
                self.reasons(std::slice::from_ref(&output.excerpt));
            }
            Event::TaskFailed { task, reason } => {
                self.line(&self.style.red(&format!("  ✗ {task} failed: {}", harmless(reason))));
            }
            Event::TaskSkipped { task, by } => self.line(&format!("  · {task} skipped by {}", harmless(by))),
            Event::TaskReopened { task, by } => {
                self.line(&format!("  · {task} opened again by {}", harmless(by)))
            }
            Event::StatusSet { task, status, by } => {
                self.line(&format!("  · {task} set to {} by {}", status.name(), harmless(by)));
            }
            Event::HandoffStarted { asked: true, trigger, .. } => {
                let text = format!("  ⇢ asked to wrap up: {}", harmless(&trigger.to_string()));
                self.line(&self.style.cyan(&text));
            }
            Event::RestoreStarted { .. } | Event::Restored { .. } => {
                self.line(&self.style.yellow(&format!("  ↶ {}", harmless(&describe(&envelope.event)))));
            }
            Event::Checkpointed { by, .. } if !by.is_empty() => {
                self.line(&self.style.dim(&format!("  · {}", harmless(&describe(&envelope.event)))));
            }
            Event::Nudged { .. } => {
                let text = format!("  » {}", harmless(&describe(&envelope.event)));
                self.line(&self.style.cyan(&text));
            }
            Event::HealthChanged { health, .. } => {
                let text = format!("  ♥ {}", harmless(&describe(&envelope.event)));
                let text = match health {
                    Health::Healthy | Health::Degraded => self.style.dim(&text),
                    Health::Stuck => self.style.yellow(&text),
                    Health::Failing | Health::Terminated => self.style.red(&text),
                };
                self.line(&text);
            }
            Event::StatusPutBack { task, found, restored } => {
                let text = format!(
                    "  ! {task} was set to {} in the file; put back to {}",
                    found.name(),
                    restored.name()
                );
                self.line(&self.style.yellow(&text));
            }
            Event::QuestionRaised { id, task, question } => {
                self.question(*id, task.as_ref(), question, state);
            }
            Event::QuestionAnswered { id, answer, by } => {
                self.line(&format!("  · {id} answered by {}: {}", harmless(by), answer_words(answer)));
            }
            Event::Paused { by } => self.line(&format!("  · paused by {}", harmless(by))),
            Event::Resumed { by } => self.line(&format!("  · resumed by {}", harmless(by))),
            Event::StopRequested { by } => self.line(&format!("  · stop asked for by {}", harmless(by))),
            Event::Interrupted { reason, .. } => {
                self.line(
                    &self.style.yellow(&format!("  ‖ interrupted ({}); goes on from here", harmless(reason))),
                );
            }
            Event::UserChangesSetAside { reference, .. } => {
                self.line(
                    &self.style.dim(&format!("  your uncommitted changes are set aside under {reference}")),
                );
            }
            Event::UserChangesPutBack { clean: true, .. } => {
                self.line(&self.style.dim("  your uncommitted changes are back"));
            }
            Event::UserChangesPutBack { commit, clean: false } => {
                let text = format!(
                    "  ! your changes conflict with the new commits; they are in {commit}: git stash apply {commit}"
                );
                self.line(&self.style.yellow(&text));
            }
            Event::Noticed { message: words, .. } | Event::RequestRefused { why: words, .. } => {
                self.line(&self.style.yellow(&format!("  ! {}", harmless(words))))
            }
            Event::SkipAsked { .. } => self.line(&format!("  · {}", harmless(&describe(&envelope.event)))),
            Event::RunEnded { reason, detail, .. } => self.tally(state, *reason, detail),
            Event::BudgetAlert { .. } | Event::BudgetReached { .. } => {
                self.line(&self.style.yellow(&format!("  $ {}", describe(&envelope.event))));
            }
            Event::BaselineChecked { outcome, evidence, .. } => {
                self.baseline(&describe(&envelope.event), outcome, evidence.as_ref());
            }
            Event::TaskBaselineChecked { outcome: BaselineOutcome::Green, .. } => {
                let text =
                    format!("  ! {}: it cannot tell whether the task is done", describe(&envelope.event));
                self.line(&self.style.yellow(&harmless(&text)));
            }
            Event::BaselineStarted { command } => self.beforehand = Some(command.clone()),
            Event::RepairPlanned { .. } => self.line(&format!("  · {}", describe(&envelope.event))),
            // The verdict says why.
            Event::WorkEnded { uncertain: false, .. }
            | Event::HandoffStarted { asked: false, .. }
            | Event::Checkpointed { .. }
            | Event::LoopCreated { .. }
            | Event::TaskBaselineChecked { .. }
            | Event::BacklogRead { .. }
            | Event::BudgetAsked { .. }
            | Event::UsageSeen { .. }
            | Event::Charged { .. }
            | Event::SkipsCommitted { .. }
            | Event::StatusWritten { .. }
            | Event::WorkKept { .. }
            | Event::WorkspaceReset { .. } => {}
        }
    }
}

impl Observer for Narrator {
    fn event(&mut self, envelope: &Envelope, state: &Loop) {
        // It may have printed nothing; what comes next is of something else.
        if matches!(envelope.event, Event::BaselineChecked { .. } | Event::TaskBaselineChecked { .. }) {
            self.beforehand = None;
        }
        self.tell(envelope, state);
        if let Some(terminal) = self.terminal.as_ref().filter(|_| !state.run.active) {
            return terminal.close();
        }
        // A question may be closed by more than its answer.
        let first = self.follow(state);
        let newest = self.asking.next.filter(|id| state.questions.contains_key(id));
        self.asking.next = newest.or(first);
    }

    fn settled(&mut self) {
        if let Some(id) = self.asking.next.take() {
            self.ask(id);
        } else if self.asking.buried && (self.asking.pause || self.asking.idle) {
            self.remind();
        }
    }

    fn agent(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Output(text) => self.stream(text),
            AgentEvent::ToolCall { name, detail } => {
                let text = format!("  ⚙ {} {}", harmless(name), harmless(detail));
                self.line(&self.style.dim(&text));
            }
            AgentEvent::Notice(text) => self.line(&self.style.dim(&format!("  · {}", harmless(text)))),
            AgentEvent::ToolResult { text, is_error: true } => {
                self.line(&self.style.dim(&format!("  ⚙ failed: {}", harmless(text))));
            }
            AgentEvent::Limit { reached, resets_at } => {
                let what = if *reached { "usage limit reached" } else { "near the usage limit" };
                let until = resets_at.map_or_else(String::new, |at| format!(", resets {at:.0}"));
                self.line(&self.style.yellow(&format!("  · {what}{until}")));
            }
            AgentEvent::Retrying { trouble } => {
                self.line(&self.style.dim(&format!("  · the agent tries again: {trouble}")));
            }
            AgentEvent::ToolResult { is_error: false, .. }
            | AgentEvent::Usage(_)
            | AgentEvent::Model(_)
            | AgentEvent::TurnEnded { .. }
            | AgentEvent::Context { .. }
            | AgentEvent::Session(_) => {}
        }
    }

    fn check_output(&mut self, text: &str) {
        if let Some(command) = self.beforehand.take() {
            let label =
                format!("  · `{}`, run once before the work begins, where it may fail:", harmless(&command));
            self.line(&self.style.dim(&label));
        }
        self.stream(text);
    }

    fn waiting(&mut self, waiting: &Waiting, _state: &Loop) {
        match waiting {
            // The heading and the output already show these.
            Waiting::Agent { .. }
            | Waiting::Check { .. }
            | Waiting::Clean { .. }
            | Waiting::Baseline { .. } => {
                self.asking.idle = false;
            }
            // Nothing happens until somebody answers.
            Waiting::Answer { .. } => {
                self.asking.idle = true;
                if self.asking.scrolled {
                    let current = self.terminal.as_ref().and_then(Terminal::current);
                    self.asking.next = self.asking.next.or(current);
                }
            }
            Waiting::Backoff { .. }
            | Waiting::Breaker { .. }
            | Waiting::Unavailable { .. }
            | Waiting::Paused
            | Waiting::Backlog { .. }
            | Waiting::Throttled { .. }
            | Waiting::Rate { .. }
            | Waiting::Budget { .. } => {
                self.line(&self.style.dim(&format!("  … waiting: {waiting}")));
                self.asking.idle = true;
            }
        }
    }
}

/// Did the agent come to an end at which it could have claimed? Otherwise there is nothing to support.
pub(crate) fn is_about_claim(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Accepted { .. } | Verdict::Refuted { .. } | Verdict::Held { .. } | Verdict::Unclaimed => {
            true
        }
        Verdict::Errored { .. }
        | Verdict::Unavailable { .. }
        | Verdict::Asked
        | Verdict::HandedOver { .. } => false,
    }
}

/// A limit that several loops share is not raised by `--max-cost`.
fn raise_budget(state: &Loop, of_loop: &str) -> String {
    let shared = match exhausted_scope(state, state.last_at.unwrap_or_default()) {
        Some(Scope::Project) => "project",
        Some(Scope::Organisation) => "organisation",
        Some(Scope::Loop | Scope::Task) | None => return of_loop.to_owned(),
    };
    format!(
        "raise the budget of the {shared} ({shared}_cost or {shared}_tokens under [budget], where it is set: \
         `wiggum config show` tells), or wait until its period begins anew; then `wiggum run` goes on"
    )
}

/// Whoever works and never says that it is done is never judged.
fn never_claims(state: &Loop) -> Option<String> {
    let tries: u32 = state.tasks.iter().map(|entry| entry.unclaimed).sum();
    let often = tries > state.policy.retry.max_retries;
    often.then(|| {
        format!(
            "{tries} attempts changed files, and no answer was understood to say that the task is done: \
             <promise>DONE</promise> counts near the end of the answer, on a line of its own, outside of code \
             and quotes; use --complete-without-claim where the checks suffice"
        )
    })
}

/// Its own settings may name a variable for the key: then no other login counts.
fn how_to_log_in(family: Family) -> String {
    let variable = |name: &str| std::env::var(name).ok();
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    match (family.key_variable(&variable, &home), family.login(&variable, &home)) {
        (Some(_), Login::NotLoggedIn(hint)) => hint,
        (Some(_) | None, _) => family.login_hint().to_owned(),
    }
}

/// What a person can do about agents that will not come back by themselves.
fn who_cannot_work(state: &Loop) -> Vec<String> {
    let now = state.last_at.unwrap_or_default();
    let order = state.policy.agents.order.iter();
    order
        .filter_map(|agent| {
            let why = state.agents.unavailable(agent, now)?;
            match why.trouble {
                Trouble::Authentication if why.message.contains(WITHHELD) => {
                    Some(format!("{agent}: {}; then `wiggum run` goes on", why.message))
                }
                Trouble::Authentication => {
                    let login = Family::from_name(agent).map_or("log in to it".to_owned(), how_to_log_in);
                    Some(format!("{agent}: {login}; then `wiggum run` goes on"))
                }
                Trouble::Missing => Some(format!("{agent}: install it; `wiggum agents` tells what is there")),
                Trouble::UsageLimit { .. }
                | Trouble::Overloaded
                | Trouble::Network
                | Trouble::ContextFull
                | Trouble::Truncated
                | Trouble::Empty
                | Trouble::Refused
                | Trouble::OwnLimit
                | Trouble::Budget
                | Trouble::PermissionDenied
                | Trouble::SessionLost
                | Trouble::Silent
                | Trouble::Interrupted
                | Trouble::Other => None,
            }
        })
        .collect()
}

/// A question in one line.
fn question_line(id: QuestionId, task: Option<&TaskId>, summary: &str, style: Style) -> String {
    let about = task.map(|task| format!(" about {task}")).unwrap_or_default();
    format!("{} {}{about}: {}", style.yellow("?"), style.bold(&id.to_string()), harmless(summary))
}

/// The beginning of a text, made harmless.
fn first_lines(text: &str, count: usize) -> String {
    let text = harmless(text);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    if lines.len() <= count {
        return lines.join("\n");
    }
    // The first line says what failed, the last ones why.
    let tail = lines.len() - (count - 2);
    format!("{}\n…\n{}", lines[0], lines[tail..].join("\n"))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use wiggum_core::event::QuestionKind;
    use wiggum_core::ids::LoopId;
    use wiggum_core::policy::Policy;

    use super::*;

    /// What a person at a terminal sees of a run.
    struct Screen {
        narrator: Narrator,
        printed: Printed,
        state: Loop,
    }

    #[derive(Clone, Default)]
    struct Printed(Rc<RefCell<Vec<u8>>>);

    impl Write for Printed {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Screen {
        /// A run has begun; what was printed so far is gone.
        fn new() -> Self {
            let printed = Printed::default();
            let out = Box::new(printed.clone());
            let narrator = Narrator::writing_to(out, Style::plain(), Some(Terminal::new()));
            let mut screen = Self { narrator, printed, state: Loop::default() };
            let mut policy = Policy::default();
            policy.people.present = true;
            screen.see(&[
                Event::LoopCreated {
                    loop_id: LoopId(uuid::Uuid::nil()),
                    name: "main".to_owned(),
                    repository: String::new(),
                    backlog: "TODO.md".to_owned(),
                },
                Event::RunStarted {
                    run: 1,
                    policy: Box::new(policy),
                    agent: "sh".to_owned(),
                    version: String::new(),
                    git: true,
                    sandbox: String::new(),
                    tree: String::new(),
                },
            ]);
            screen.settles();
            screen
        }

        /// These are told together, as the engine does: with the state after all of them.
        fn see(&mut self, events: &[Event]) {
            let envelopes: Vec<Envelope> = events
                .iter()
                .map(|event| {
                    let seq = self.state.seq + 1;
                    let (id, at) = (uuid::Uuid::nil(), Timestamp::UNIX_EPOCH);
                    let envelope = Envelope { v: 1, seq, id, at, epoch: 1, event: event.clone() };
                    self.state.apply(&envelope);
                    envelope
                })
                .collect();
            for envelope in &envelopes {
                self.narrator.event(envelope, &self.state);
            }
            self.narrator.shown();
        }

        fn waits_for_an_answer(&mut self) {
            let questions = self.state.questions.keys().copied().collect();
            self.narrator.waiting(&Waiting::Answer { questions }, &self.state);
        }

        /// What was printed until now, since the last time.
        fn settles(&mut self) -> String {
            self.narrator.settled();
            String::from_utf8(std::mem::take(&mut *self.printed.0.borrow_mut())).unwrap()
        }
    }

    /// Under the question that [`raised`] makes.
    const PROMPT: &str = "  q1  [1] option  [c]ustom  [s]kip  [r]etry  [d]one  [a]bort: ";

    fn raised(id: u32) -> Event {
        let question = Question {
            kind: QuestionKind::Stuck,
            summary: format!("summary {id}"),
            context: String::new(),
            options: vec!["this".to_owned()],
            question: format!("full {id}"),
        };
        Event::QuestionRaised { id: QuestionId(id), task: None, question }
    }

    fn noticed() -> Event {
        Event::Noticed { message: "something else".to_owned(), task: None }
    }

    fn started() -> Event {
        let event = serde_json::json!({
            "type": "iteration_started", "iteration": 1, "task": "T1", "attempt": 1, "command": "sh",
            "workspace": "", "prompt": { "sha256": "", "bytes": 0 },
        });
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn a_question_is_shown_once_after_what_is_told_with_it() {
        let mut screen = Screen::new();
        // Before and after the question, in the same batch and in the next one.
        screen.see(&[noticed(), raised(1), noticed()]);
        screen.see(&[noticed()]);
        screen.waits_for_an_answer();
        let seen = screen.settles();
        assert_eq!(seen.matches("summary 1").count(), 1, "{seen}");
        assert_eq!(seen.matches(PROMPT).count(), 1, "{seen}");
        assert!(seen.ends_with(&format!("full 1\n{}", PROMPT)), "{seen}");
        // Nothing has followed it.
        assert_eq!(screen.settles(), "");
        screen.waits_for_an_answer();
        assert_eq!(screen.settles(), "");
    }

    #[test]
    fn a_question_is_shown_again_when_other_output_has_settled() {
        let mut screen = Screen::new();
        screen.see(&[raised(1)]);
        screen.waits_for_an_answer();
        screen.settles();
        screen.see(&[noticed()]);
        screen.see(&[noticed()]);
        let seen = screen.settles();
        assert_eq!(seen.matches("summary 1").count(), 1, "{seen}");
        assert!(!seen.contains("full 1") && seen.ends_with(PROMPT), "{seen}");
        assert_eq!(screen.settles(), "");
    }

    #[test]
    fn a_question_that_has_left_the_screen_is_shown_in_full() {
        let mut screen = Screen::new();
        screen.see(&[raised(1)]);
        screen.settles();
        screen.see(&[started()]);
        screen.narrator.agent(&AgentEvent::Output("working\n".to_owned()));
        // An agent at work is not interrupted by questions.
        assert!(!screen.settles().contains("summary 1"));
        screen.waits_for_an_answer();
        let seen = screen.settles();
        assert_eq!(seen.matches("full 1").count(), 1, "{seen}");
    }

    #[test]
    fn the_newest_question_is_shown_and_what_is_closed_at_once_is_not() {
        let mut screen = Screen::new();
        screen.see(&[raised(1), raised(2)]);
        let seen = screen.settles();
        assert!(seen.contains("full 2") && !seen.contains("full 1"), "{seen}");
        let answer = wiggum_core::event::Answer::Retry;
        let answered = Event::QuestionAnswered { id: QuestionId(3), answer, by: "ann".to_owned() };
        screen.see(&[raised(3), answered]);
        assert!(!screen.settles().contains("full 3"));
    }
}
