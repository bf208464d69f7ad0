//! A run as people watch it: headings, live output, evidence, progress, the final tally.
//!
//! It only listens: what it prints follows from events and output, live or replayed.

use std::io::Write;

use jiff::Timestamp;
use wiggum_agents::{AgentEvent, Family};
use wiggum_core::breaker::Phase;
use wiggum_core::decide::{Waiting, why};
use wiggum_core::event::{EndReason, Envelope, Event, Evidence, Flag, Question, Trouble, Verdict};
use wiggum_core::health::Health;
use wiggum_core::ids::{QuestionId, TaskId};
use wiggum_core::policy::Millis;
use wiggum_core::state::Loop;
use wiggum_core::tasks::TaskState;
use wiggum_engine::Observer;
pub(crate) use wiggum_engine::words::{answer_words, duration, elapsed, flag_name};
use wiggum_engine::words::{counted, describe};

use crate::ask::{KEYS, Terminal};
use crate::cost::cost;
use crate::term::{self, Style, harmless};

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
        if let Ok(line) = serde_json::to_string(envelope) {
            self.lines.push_str(&line);
            self.lines.push('\n');
        }
    }

    fn shown(&mut self) {
        term::print(&self.lines);
        self.lines.clear();
    }

    fn agent(&mut self, _event: &AgentEvent) {}

    fn check_output(&mut self, _text: &str) {}

    fn waiting(&mut self, _waiting: &Waiting, _state: &Loop) {}
}

pub(crate) struct Narrator {
    style: Style,
    terminal: Option<Terminal>,
    /// Output is in the middle of a line.
    midline: bool,
    iteration_started: Option<Timestamp>,
    /// Checks of this iteration that failed; what they printed was shown as it came.
    failed_checks: u32,
}

impl Narrator {
    pub(crate) fn new(terminal: Option<Terminal>) -> Self {
        Self {
            style: Style::for_stdout(),
            terminal,
            midline: false,
            iteration_started: None,
            failed_checks: 0,
        }
    }

    fn line(&mut self, text: &str) {
        self.end_line();
        term::print(&format!("{text}\n"));
    }

    fn end_line(&mut self) {
        if self.midline {
            term::print("\n");
            self.midline = false;
        }
    }

    /// Agents' and checks' output, indented behind a bar, as it comes.
    fn stream(&mut self, text: &str) {
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
        term::print(&out);
        drop(std::io::stdout().flush());
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
        let mut text =
            format!("  {mark} {}  {}", harmless(&evidence.name), style.dim(&harmless(&evidence.command)));
        if evidence.passed() {
            text.push_str(&style.dim(&format!("  {}", duration(evidence.duration))));
        } else {
            self.failed_checks += 1;
            text.push_str(&format!("  {}", style.red(&evidence.exit.to_string())));
        }
        self.line(&text);
    }

    fn flags(&mut self, flags: &[Flag]) {
        for flag in flags {
            let text =
                format!("  ! {}: {} {}", flag_name(flag.kind), harmless(&flag.what), harmless(&flag.detail));
            self.line(&self.style.yellow(text.trim_end()));
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

    fn question(&mut self, id: QuestionId, task: Option<&TaskId>, question: &Question) {
        let style = self.style;
        let about = task.map(|task| format!(" about {task}")).unwrap_or_default();
        self.line(&format!(
            "\n{} {}{about}: {}",
            style.yellow("?"),
            style.bold(&id.to_string()),
            harmless(&question.summary)
        ));
        for line in first_lines(&question.context, SHOWN_LINES).lines() {
            self.line(&style.dim(&format!("    {line}")));
        }
        for (n, option) in question.options.iter().enumerate() {
            self.line(&format!("    {}. {}", n + 1, harmless(option)));
        }
        if !question.question.is_empty() {
            self.line(&format!("    {}", harmless(&question.question)));
        }
        match &self.terminal {
            Some(terminal) => {
                terminal.show(id, question);
                term::print(&format!("  {KEYS}: "));
                drop(std::io::stdout().flush());
            }
            None => self.line(&style.dim(&format!("    answer with: wiggum answer {id} …"))),
        }
    }

    /// With one question answered, the next one is on the screen.
    fn show_next_question(&mut self, state: &Loop) {
        if self.terminal.is_some()
            && let Some((id, asked)) = state.questions.iter().next()
        {
            self.question(*id, asked.task.as_ref(), &asked.question);
        }
    }

    fn tally(&mut self, state: &Loop, reason: EndReason, detail: &str) {
        let style = self.style;
        let counts = state.tasks.counts();
        let headline = match reason {
            EndReason::GoalAchieved if counts.skipped == 0 => style.green("✓ All tasks complete"),
            EndReason::GoalAchieved => style.green("✓ Nothing left to do"),
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
        self.line(&format!("\n{}", style.bold(&headline)));
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
            | EndReason::BudgetExhausted
            | EndReason::MaxIterations
            | EndReason::MaxDuration
            | EndReason::NoProgress => Some(reason.ending().hint.to_owned()),
        };
        for hint in about_reason.into_iter().chain(who_cannot_work(state)) {
            self.line(&format!("  {} {hint}", style.cyan("hint:")));
        }
        self.progress(state);
        if counts.unverified > 0 {
            self.line(
                &style.yellow(&format!("  {} unverified: no check has confirmed it", counts.unverified)),
            );
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
            self.line(&self.style.cyan("  answer with `wiggum answer ID …`, then `wiggum run` goes on"));
        }
    }
}

impl Observer for Narrator {
    fn event(&mut self, envelope: &Envelope, state: &Loop) {
        match &envelope.event {
            Event::RunStarted { sandbox, .. } => self.started(state, sandbox, false),
            Event::RunResumed { sandbox, .. } => self.started(state, sandbox, true),
            Event::BacklogBroken { message } => {
                self.line(&self.style.red(&format!("! the backlog cannot be read: {}", harmless(message))));
            }
            Event::IterationStarted { task, attempt, .. } => {
                self.iteration_started = Some(envelope.at);
                self.failed_checks = 0;
                self.heading(state, task, *attempt);
            }
            Event::AgentEnded { duration: took, flags, ended_processes, .. } => {
                self.line(&self.style.dim(&format!("  agent ended after {}", duration(*took))));
                if *ended_processes > 0 {
                    let text = format!("  ! ended {ended_processes} processes it had left running");
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
            Event::TreeTaken { flags, .. } | Event::WorkInspected { flags, .. } => self.flags(flags),
            Event::TreeAltered { .. } => {
                self.line(&self.style.yellow("  ! a git hook changed the files: checking again"));
            }
            Event::EvidenceGathered { evidence, .. } => self.evidence(evidence),
            Event::Judged { verdict, signals, .. } => {
                self.verdict(verdict);
                if !signals.is_empty() {
                    let said: Vec<String> = signals.iter().map(ToString::to_string).collect();
                    let text = format!("  · supports a claim: {}", harmless(&said.join("; ")));
                    self.line(&self.style.dim(&text));
                }
            }
            Event::TaskCompleted { task, commit, verified, .. } => {
                self.completed(envelope, state, task, commit.as_deref(), *verified);
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
            Event::QuestionRaised { id, task, question } => self.question(*id, task.as_ref(), question),
            Event::QuestionAnswered { id, answer, by } => {
                if let Some(terminal) = &self.terminal {
                    terminal.clear(*id);
                }
                self.line(&format!("  · {id} answered by {}: {}", harmless(by), answer_words(answer)));
                self.show_next_question(state);
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
            Event::Noticed { message, .. } => {
                self.line(&self.style.yellow(&format!("  ! {}", harmless(message))))
            }
            Event::RunEnded { reason, detail, .. } => self.tally(state, *reason, detail),
            Event::BudgetAlert { .. } => {
                self.line(&self.style.yellow(&format!("  $ {}", describe(&envelope.event))));
            }
            // The verdict says why.
            Event::WorkEnded { uncertain: false, .. }
            | Event::HandoffStarted { asked: false, .. }
            | Event::Checkpointed { .. }
            | Event::LoopCreated { .. }
            | Event::BacklogRead { .. }
            | Event::BudgetAsked { .. }
            | Event::Charged { .. }
            | Event::StatusWritten { .. }
            | Event::WorkKept { .. }
            | Event::WorkspaceReset { .. } => {}
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
            | AgentEvent::Context { .. }
            | AgentEvent::Session(_) => {}
        }
    }

    fn check_output(&mut self, text: &str) {
        self.stream(text);
    }

    fn waiting(&mut self, waiting: &Waiting, _state: &Loop) {
        match waiting {
            // The heading and the output already show these.
            Waiting::Agent { .. } | Waiting::Check { .. } | Waiting::Answer { .. } => {}
            Waiting::Backoff { .. }
            | Waiting::Breaker { .. }
            | Waiting::Unavailable { .. }
            | Waiting::Paused
            | Waiting::Backlog { .. }
            | Waiting::Throttled { .. }
            | Waiting::Rate { .. }
            | Waiting::Budget { .. } => {
                self.line(&self.style.dim(&format!("  … waiting: {waiting}")));
            }
        }
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
                Trouble::Authentication => {
                    let login = Family::from_name(agent).map_or("log in to it", Family::login_hint);
                    Some(format!("{agent}: {login}; then `wiggum run` goes on"))
                }
                Trouble::Missing => Some(format!("{agent}: install it; `wiggum agents` tells what is there")),
                _ => None,
            }
        })
        .collect()
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
