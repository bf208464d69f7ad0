//! How an iteration ends: by a verdict, a commit, a hook that refuses it, or cut short.

use jiff::Timestamp;

use super::{EndedIteration, Loop, OpenIteration, Seen, Stage, Workspace, add_millis, verdict_name};
use crate::breaker;
use crate::checkpoint::{Ended, Phase};
use crate::event::{Exit, Trouble, Verdict};
use crate::forecast::forecast;
use crate::handoff::Trigger;
use crate::health::Health;
use crate::ids::{Attempt, Iteration, LoopId, TaskId};
use crate::mutant::{Mutant, planted};
use crate::question::{flagged, repeated_error, repeated_evidence, repeated_refusal};
use crate::signal::error::{decisive_lines, signature};
use crate::signal::support::Rows;
use crate::signal::{claim_mark, wrong_mark};
use crate::tasks::{AttemptMemory, TaskState};
use crate::text::{clip, fold_whitespace, head};
use crate::verdict::{evidence_signature, refuted_by};

/// How many ended iterations the status shows.
const RECENT_ITERATIONS: usize = 20;

/// How many tasks are named that an ended iteration leaves to do.
const PENDING_NAMES: usize = 12;

/// How much of an attempt's message is remembered.
const REMEMBERED_WORDS: usize = 600;

/// How much of an error fits where one line is read.
const MAX_LINE: usize = 200;

impl Loop {
    /// Accepted work is landed; everything else goes back to its task.
    pub(super) fn judge(&mut self, iteration: Iteration, verdict: &Verdict, at: Timestamp) {
        let worked = !matches!(verdict, Verdict::Unavailable { .. });
        if let Some(open) = self.open.get(iteration).filter(|open| worked && !open.own) {
            self.rows = self.rows_with(open);
        }
        let accepted = match verdict {
            Verdict::Accepted { verified } => Some(*verified),
            _ => planted(Mutant::AcceptsEverything).then_some(false),
        };
        if let Some(verified) = accepted {
            self.note_open(iteration, |open| open.stage = Stage::Landing { verified });
            return;
        }
        let Some(open) = self.open.end(iteration) else { return };
        if open.has_changes() && self.git {
            self.unkept = Some((open.task.clone(), open.iteration));
        }
        match verdict {
            Verdict::Unavailable { trouble, message } => self.note_unavailable(&open, trouble, message, at),
            _ => self.send_back(open, verdict, at),
        }
    }

    fn send_back(&mut self, mut open: OpenIteration, verdict: &Verdict, at: Timestamp) {
        if matches!(verdict, Verdict::HandedOver { .. }) {
            // The next one starts with a fresh context.
            open.session = None;
        }
        self.note_worked(&open);
        if open.vitals.health != Health::Terminated {
            self.run.terminations = 0;
        }
        let progress = self.count_progress(&open);
        self.note_in_breaker(&open, verdict, progress, at);
        self.remember_ended(
            &open,
            phase_after(verdict),
            verdict_name(verdict),
            errors_of(&open, verdict),
            at,
        );
        self.close(&open, phase_after(verdict), &outcome_of(&open, verdict), at);
        let Some(stuck) = self.note_attempt(&open, verdict, progress, at) else { return };
        self.set_state(&open.task, TaskState::Open, at);
        if !stuck {
            self.note_exhausted(&open.task, &in_a_line(&open, verdict));
        }
        self.follow_up(&open, verdict, stuck, at);
    }

    /// What its task knows of the attempt from now on. Returns whether it fails by the same error over and
    /// over; nothing if the task is gone.
    fn note_attempt(
        &mut self,
        open: &OpenIteration,
        verdict: &Verdict,
        progress: bool,
        at: Timestamp,
    ) -> Option<bool> {
        let slot = self.tasks.slot(&open.task)?;
        // Whoever works on without claiming is not failing.
        let works_on = *verdict == Verdict::Unclaimed && progress && !self.policy.retry.unclaimed_counts;
        let no_failure =
            works_on || matches!(verdict, Verdict::Asked | Verdict::Held { .. } | Verdict::HandedOver { .. });
        let retries = self.tasks.entries[slot].max_retries(&self.policy);
        self.tasks.note_attempt(slot, at, !no_failure, works_on.then_some(retries));
        let entry = &mut self.tasks.entries[slot];
        entry.attempts = open.attempt;
        entry.permanent = open.permanent;
        // Work of the engine itself either is done or is to be done again as it was.
        entry.came_to_nothing = !no_failure || open.own;
        if !open.has_changes() {
            entry.kept = None;
        }
        let promises = &self.policy.claims.promises;
        let wrong = self.id.filter(|_| *verdict == Verdict::Unclaimed);
        let wrong = wrong.and_then(|id| of_another_attempt(open, id, promises));
        let feedback = [wrong.unwrap_or_default(), feedback(verdict, open)].concat();
        entry.remember(remembered(open, verdict_name(verdict), feedback));
        Some(match verdict {
            // What needs no agent has its retries, and nobody it could be stuck with.
            Verdict::Errored { .. } if open.own => false,
            Verdict::Errored { failure } => {
                entry.count_error(&failure.signature, self.policy.limits.stuck_threshold)
            }
            Verdict::Refuted { reasons } => {
                entry.error_streak = None;
                let found = evidence_signature(open).unwrap_or_else(|| reasons.join("\n"));
                entry.count_evidence(&found, self.policy.limits.same_evidence)
            }
            Verdict::Unclaimed | Verdict::Asked | Verdict::Held { .. } | Verdict::HandedOver { .. } => {
                entry.error_streak = None;
                entry.evidence_streak = None;
                false
            }
            Verdict::Accepted { .. } | Verdict::Unavailable { .. } => false,
        })
    }

    /// The questions and delays that follow from a verdict.
    fn follow_up(&mut self, open: &OpenIteration, verdict: &Verdict, stuck: bool, at: Timestamp) {
        let asks = |question| (Some(open.task.clone()), question);
        match verdict {
            Verdict::Errored { failure } if stuck => {
                self.run.consecutive_errors = 0;
                self.run.without_progress = 0;
                self.breaker.forget_streaks();
                let times = self.policy.limits.stuck_threshold;
                self.to_ask.push_back(asks(repeated_error(&open.task, failure, times)));
            }
            // It is not tried again, so there is nothing to wait for.
            Verdict::Errored { .. } if open.permanent => {}
            Verdict::Errored { .. } => {
                self.run.consecutive_errors += u32::from(!open.own);
                self.delay_after_error(&open.task, at);
            }
            Verdict::Asked => {
                self.run.consecutive_errors = 0;
                self.to_ask.extend(open.asked.iter().cloned().map(asks));
            }
            Verdict::Held { reasons } => {
                self.run.consecutive_errors = 0;
                self.to_ask.push_back(asks(flagged(&open.task, reasons)));
            }
            Verdict::Refuted { .. } if stuck => {
                self.run.consecutive_errors = 0;
                self.run.without_progress = 0;
                self.breaker.forget_streaks();
                let times = self.policy.limits.same_evidence;
                self.to_ask.push_back(asks(repeated_evidence(&open.task, &failing(open, verdict), times)));
            }
            Verdict::Refuted { .. }
            | Verdict::Unclaimed
            | Verdict::HandedOver { .. }
            | Verdict::Accepted { .. }
            | Verdict::Unavailable { .. } => {
                self.run.consecutive_errors = 0;
            }
        }
    }

    /// The rows with the iteration under way. One that is judged again, since a hook changed its files, is in them
    /// already: nobody said anything since.
    pub(crate) fn rows_with(&self, open: &OpenIteration) -> Rows {
        if open.is_judged_again() {
            return self.rows;
        }
        let says_done = open.claim.is_some() || open.phrase.is_some();
        self.rows.with(says_done, open.inspection.as_ref().is_some_and(|seen| seen.only_tests))
    }

    /// As if it had not been started, but for its work and for what is known of the agent now.
    fn note_unavailable(&mut self, open: &OpenIteration, trouble: &Trouble, message: &str, at: Timestamp) {
        self.breaker.lose_probe();
        let iteration = open.iteration;
        self.agents.note_trouble(&self.policy.agents, &open.agent, iteration, trouble, message, at);
        self.uncount(open);
        self.remember_ended(open, Phase::Implementing, "agent unavailable", vec![message.to_owned()], at);
        self.handoffs.pending.clone_from(&open.after_handoff);
        self.set_state(&open.task, TaskState::Open, at);
    }

    pub(super) fn complete(
        &mut self,
        iteration: Iteration,
        task: &TaskId,
        attempt: Attempt,
        verified: bool,
        at: Timestamp,
    ) {
        let phase_before = self.tasks.current_phase();
        let open = self.open.end(iteration);
        if let Some(open) = &open {
            self.note_tests(open.evidence.iter());
            self.note_worked(open);
            self.remember_ended(open, Phase::Complete, "completed", Vec::new(), at);
            self.close(open, Phase::Complete, "completed", at);
        }
        self.run.completed += 1;
        self.run.consecutive_errors = 0;
        self.run.without_progress = 0;
        self.run.terminations = 0;
        self.breaker.close();
        self.rows.commit();
        self.workspace = Workspace::Clean;
        self.unkept = None;
        if let Some(slot) = self.tasks.slot(task) {
            let entry = &mut self.tasks.entries[slot];
            entry.attempts = attempt;
            entry.forget_failures();
            entry.came_to_nothing = false;
            entry.kept = None;
            // What earlier attempts left to be done is done.
            if open.as_ref().is_some_and(|open| open.notes.next_steps.is_empty()) {
                entry.notes.next_steps.clear();
            }
            if entry.spec.work.is_agents() {
                self.history.completed(&entry.spec, entry.spent);
            }
            if let Some(open) = &open {
                entry.remember(remembered(open, "completed", String::new()));
            }
        }
        self.set_state(task, TaskState::Done { verified, by_hand: false }, at);
        let counts = self.tasks.counts();
        if self.history.first.is_none() && 4 * counts.done >= counts.total {
            self.history.first = forecast(self);
        }
        if let (Some(open), Some(phase), Some(next)) = (open, phase_before, self.tasks.current_phase())
            && self.policy.handoff.on_phase
            && next > phase
        {
            self.handoffs.due = Some((open.iteration, open.attempt, Trigger::Phase { phase }));
        }
    }

    pub(super) fn refuse_commit(&mut self, iteration: Iteration, output: &str, at: Timestamp) {
        let Some(open) = self.open.end(iteration) else { return };
        self.unkept = Some((open.task.clone(), open.iteration));
        self.run.consecutive_errors = 0;
        let progress = self.count_progress(&open);
        let seen = breaker::Seen::Ended { progress };
        self.breaker.note(&self.policy.breaker, seen, self.run.number, at);
        self.remember_ended(&open, Phase::Testing, "commit refused", vec![first_line(output).to_owned()], at);
        self.close(&open, Phase::Testing, "commit refused", at);
        let mut stuck = false;
        if let Some(slot) = self.tasks.slot(&open.task) {
            self.tasks.note_attempt(slot, at, true, None);
            let entry = &mut self.tasks.entries[slot];
            entry.attempts = open.attempt;
            entry.came_to_nothing = true;
            entry.error_streak = None;
            let feedback = format!("The checks passed, but a git hook refused the commit:\n{output}");
            entry.remember(remembered(&open, "commit refused", feedback));
            let refusal = format!("commit refused: {}", signature(&decisive_lines(output).join("\n")));
            // What needs no agent has its retries, and nobody it could be stuck with.
            stuck = !open.own && entry.count_evidence(&refusal, self.policy.limits.same_evidence);
        }
        self.set_state(&open.task, TaskState::Open, at);
        if stuck {
            self.run.without_progress = 0;
            self.breaker.forget_streaks();
            let question = repeated_refusal(&open.task, output, self.policy.limits.same_evidence);
            self.to_ask.push_back((Some(open.task), question));
            return;
        }
        self.note_exhausted(&open.task, &format!("a git hook refused the commit: {}", first_line(output)));
    }

    pub(super) fn interrupt(&mut self, iteration: Iteration, at: Timestamp) {
        self.close_question_of_agent(iteration);
        if let Some(Seen { usage, model }) = self.open.get_mut(iteration).and_then(|open| open.seen.take()) {
            // Nobody was left to say what it had used in the end.
            self.charge(iteration, usage, model.as_deref(), at);
        }
        self.breaker.lose_probe();
        let Some(open) = self.open.end(iteration) else { return };
        if planted(Mutant::InterruptsTwice) {
            self.open.begin(open.clone());
        }
        self.interrupted.insert(open.task.clone(), iteration);
        self.uncount(&open);
        if open.vitals.health == Health::Terminated {
            // It will be given up again, in the attempt that takes the place of this one.
            self.run.terminations = self.run.terminations.saturating_sub(1);
        }
        if open.over_budget.is_some() {
            // What it used is charged, or nobody knows it: the figures decide, as before any start.
            self.spending.reached = None;
            if let Some(slot) = self.tasks.slot(&open.task) {
                self.tasks.entries[slot].budget_reached = None;
            }
        }
        self.note_worked(&open);
        self.handoffs.pending.clone_from(&open.after_handoff);
        self.set_state(&open.task, TaskState::Open, at);
        if let Some(carried) = open.carried.filter(|_| open.accepted) {
            self.accept_kept(&open.task, Some(carried));
        }
    }

    /// It is as if it had not been started.
    fn uncount(&mut self, open: &OpenIteration) {
        self.run.iterations = self.run.iterations.saturating_sub(u32::from(open.counts));
        self.used = self.used.saturating_sub(u32::from(open.counts));
    }

    /// What every ended iteration leaves behind: a checkpoint to be made, what was learnt, and
    /// whether work is handed over.
    fn close(&mut self, open: &OpenIteration, phase: Phase, outcome: &str, at: Timestamp) {
        self.checkpoints.ended(Ended::of(open, phase, outcome, at));
        self.memory.remember(open.iteration, &open.task, &open.notes.learnt);
        if let Some(slot) = self.tasks.slot(&open.task) {
            self.tasks.entries[slot].notes.follow(&open.notes);
        }
        let handoff = open.handoff.as_ref().filter(|_| phase == Phase::Handoff);
        self.handoffs.pending = handoff.map(|handoff| handoff.trigger.clone());
        let trigger = match open.error {
            Some(_) if open.own => None,
            Some(_) if open.handoff.is_none() => {
                self.handoffs.errored(&self.policy.handoff, open.exit == Some(Exit::TimedOut))
            }
            Some(_) | None => {
                self.handoffs.worked();
                None
            }
        };
        self.handoffs.due = trigger.map(|trigger| (open.iteration, open.attempt, trigger));
    }

    /// No progress means neither a completion nor a change of the tree.
    fn count_progress(&mut self, open: &OpenIteration) -> bool {
        if open.own {
            return true;
        }
        let Some(slot) = self.tasks.slot(&open.task) else { return false };
        let entry = &mut self.tasks.entries[slot];
        let digest = open.inspection.as_ref().map(|seen| seen.digest.clone());
        let changed = match (&digest, &entry.last_digest) {
            (Some(now), Some(before)) => now != before,
            (Some(_), None) => open.inspection.as_ref().is_some_and(|seen| seen.changed_total > 0),
            (None, _) => false,
        };
        entry.last_digest = digest;
        if changed {
            self.run.without_progress = 0;
        } else {
            self.run.without_progress += 1;
        }
        changed
    }

    fn note_in_breaker(&mut self, open: &OpenIteration, verdict: &Verdict, progress: bool, at: Timestamp) {
        if open.own {
            return;
        }
        let seen = match verdict {
            Verdict::Errored { failure } => breaker::Seen::Failed {
                signature: &failure.signature,
                denied: open.trouble == Some(Trouble::PermissionDenied),
                progress,
            },
            Verdict::Asked | Verdict::Held { .. } => breaker::Seen::Asked,
            Verdict::Refuted { .. }
            | Verdict::Unclaimed
            | Verdict::HandedOver { .. }
            | Verdict::Accepted { .. }
            | Verdict::Unavailable { .. } => breaker::Seen::Ended { progress },
        };
        self.breaker.note(&self.policy.breaker, seen, self.run.number, at);
    }

    fn delay_after_error(&mut self, task: &TaskId, at: Timestamp) {
        let Some(slot) = self.tasks.slot(task) else { return };
        let retry = &self.policy.retry;
        let doublings = self.tasks.entries[slot].failures.saturating_sub(1).min(20);
        let wait = retry.backoff.0.saturating_mul(1 << doublings).min(retry.backoff_max.0);
        if wait > 0 {
            let until = add_millis(at, wait);
            self.tasks.delay(slot, until);
        }
    }

    pub(super) fn note_exhausted(&mut self, task: &TaskId, outcome: &str) {
        let Some(entry) = self.tasks.get(task) else { return };
        let early = u32::from(planted(Mutant::GivesUpEarly));
        let exhausted = entry.permanent || entry.failures + early > entry.max_retries(&self.policy);
        if exhausted && !planted(Mutant::ForgivesFailures) {
            let reason = match entry.permanent {
                true => outcome.to_owned(),
                false if entry.failures == 1 => format!("1 attempt, the last: {outcome}"),
                false => format!("{} attempts, the last: {outcome}", entry.failures),
            };
            self.to_fail.push_back((task.clone(), reason));
        }
    }

    fn remember_ended(
        &mut self,
        open: &OpenIteration,
        phase: Phase,
        outcome: &str,
        errors: Vec<String>,
        at: Timestamp,
    ) {
        if self.recent.len() == RECENT_ITERATIONS {
            self.recent.pop_front();
        }
        self.recent.push_back(EndedIteration {
            iteration: open.iteration,
            task: open.task.clone(),
            attempt: open.attempt,
            started_at: open.started_at,
            ended_at: at,
            outcome: outcome.to_owned(),
            usage: open.usage,
            agent: open.agent.clone(),
            model: open.model.clone(),
            phase,
            errors: errors.iter().map(|error| clip(error, MAX_LINE).into_owned()).collect(),
            checkpoint: None,
            handoff: open.handoff.as_ref().map(|handoff| handoff.trigger.clone()),
            health: open.vitals.health,
            pending: self.pending_names(&open.task, phase),
        });
    }

    /// The first of what is left to do once an iteration has ended.
    fn pending_names(&self, ended: &TaskId, phase: Phase) -> Vec<TaskId> {
        let own = (phase != Phase::Complete).then_some(ended);
        let others = self.tasks.ready().chain(self.tasks.waiting()).map(|entry| &entry.spec.id);
        let others = others.filter(|id| *id != ended);
        own.into_iter().chain(others).take(PENDING_NAMES).cloned().collect()
    }

    /// The engine itself is not an agent that could come to be missed.
    fn note_worked(&mut self, open: &OpenIteration) {
        if !open.own && !open.accepted {
            self.agents.worked(&open.agent, open.session.as_ref());
        }
    }
}

/// What went wrong, each in a few words.
fn errors_of(open: &OpenIteration, verdict: &Verdict) -> Vec<String> {
    match verdict {
        Verdict::Refuted { reasons } => vec![refuted_by(open, reasons)],
        Verdict::Errored { failure } => vec![failure.message.clone()],
        Verdict::Unavailable { message, .. } => vec![message.clone()],
        Verdict::Held { reasons } => reasons.clone(),
        Verdict::Accepted { .. } | Verdict::Unclaimed | Verdict::Asked | Verdict::HandedOver { .. } => {
            Vec::new()
        }
    }
}

fn first_line(output: &str) -> &str {
    output.lines().find(|line| !line.trim().is_empty()).unwrap_or("no word").trim()
}

/// What an attempt came to, in one line for whoever is asked about the task.
fn in_a_line(open: &OpenIteration, verdict: &Verdict) -> String {
    match verdict {
        Verdict::Refuted { reasons } => refuted_by(open, reasons),
        Verdict::Errored { failure } => head(&failure.message.replace('\n', " "), MAX_LINE).to_owned(),
        Verdict::Unclaimed => "it ended without saying that it is done, and changed nothing".to_owned(),
        Verdict::Accepted { .. }
        | Verdict::Unavailable { .. }
        | Verdict::Asked
        | Verdict::Held { .. }
        | Verdict::HandedOver { .. } => verdict_name(verdict).to_owned(),
    }
}

/// The checks that failed, each with the lines that say why.
fn failing(open: &OpenIteration, verdict: &Verdict) -> String {
    let failed = open.evidence.iter().chain(&open.former_evidence).filter(|evidence| !evidence.passed());
    let each = failed.map(|evidence| {
        let lines = decisive_lines(&evidence.output.excerpt).join("\n");
        let former = match evidence.former {
            true => ", defined as before the attempt (as it is now, it passes),",
            false => "",
        };
        format!("`{}`{former} failed ({})\n{lines}", evidence.command, evidence.exit)
    });
    let all: Vec<String> = each.collect();
    if all.is_empty() { feedback(verdict, open) } else { all.join("\n\n") }
}

/// Where the task stands after an attempt that was not accepted.
fn phase_after(verdict: &Verdict) -> Phase {
    match verdict {
        Verdict::Accepted { .. } => Phase::Complete,
        Verdict::Refuted { .. } => Phase::Testing,
        Verdict::Unclaimed | Verdict::Errored { .. } | Verdict::Unavailable { .. } => Phase::Implementing,
        Verdict::Asked | Verdict::Held { .. } => Phase::Reviewing,
        Verdict::HandedOver { .. } => Phase::Handoff,
    }
}

fn remembered(open: &OpenIteration, outcome: &str, feedback: String) -> AttemptMemory {
    let seen = open.inspection.as_ref();
    AttemptMemory {
        attempt: open.attempt,
        outcome: outcome.to_owned(),
        feedback,
        agent: open.agent.clone(),
        changed: seen.map(|seen| seen.changed.clone()).unwrap_or_default(),
        changed_total: seen.map_or(0, |seen| seen.changed_total),
        message: head(&open.message, REMEMBERED_WORDS).to_owned(),
    }
}

/// Says how to claim: who meant to and was not understood loses no more than one short attempt.
const UNCLAIMED: &str = "It ended without claiming to be done. A claim is the promise as it was asked for, alone \
on its line among the last lines of the message, outside of code, quotes and elements, with nothing added to it.";

/// The promise of an attempt that carries the mark of another one.
fn of_another_attempt(open: &OpenIteration, id: LoopId, promises: &[String]) -> Option<String> {
    let promises: Vec<&str> = promises.iter().map(String::as_str).collect();
    let given = wrong_mark(&open.message, &promises, &claim_mark(id, open.iteration, open.attempt))?;
    Some(format!(
        "It promised with the mark `{given}`, which is not the one it was given, so that did not count.\n"
    ))
}

/// How an attempt ended, with the reason of an agent that handed over by its own word.
fn outcome_of(open: &OpenIteration, verdict: &Verdict) -> String {
    let why = open.notes.handoff.as_ref().filter(|_| matches!(verdict, Verdict::HandedOver { .. }));
    let why = why.map(|why| fold_whitespace(why)).filter(|why| !why.is_empty());
    let name = verdict_name(verdict);
    why.map_or_else(|| name.to_owned(), |why| format!("{name}: {}", clip(&why, MAX_LINE)))
}

fn feedback(verdict: &Verdict, open: &OpenIteration) -> String {
    match verdict {
        Verdict::Accepted { .. } => String::new(),
        Verdict::Refuted { reasons } | Verdict::Held { reasons } => reasons.join("\n\n"),
        Verdict::Unclaimed => {
            format!("{UNCLAIMED} Its last words:\n{}", open.message)
        }
        Verdict::Errored { failure } => failure.message.clone(),
        Verdict::Unavailable { message, .. } => message.clone(),
        Verdict::HandedOver { trigger } => match &open.notes.handoff {
            Some(why) => format!("It stopped so that you can go on ({trigger}): {why}"),
            None => format!("It stopped so that you can go on: {trigger}. Its last words:\n{}", open.message),
        },
        Verdict::Asked => open.asked.iter().map(|question| format!("Asked: {}", question.summary)).collect(),
    }
}
