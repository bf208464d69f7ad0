//! Events in one line each, for `wiggum events` and for saying what became of a request.

use wiggum_core::event::{Event, Evidence, Report, Verdict};
use wiggum_core::health::is_call;
use wiggum_core::state::verdict_name;

use crate::cost::cost;
use crate::narrate::{answer_words, duration, flag_name};
use crate::term::harmless;

/// What happened, in one line.
pub(crate) fn describe(event: &Event) -> String {
    one_line(&words(event))
}

fn words(event: &Event) -> String {
    match event {
        Event::LoopCreated { name, backlog, .. } => format!("loop {name} over {backlog} created"),
        Event::RunStarted { run, agent, .. } => format!("run {run} started with {agent}"),
        Event::RunResumed { run, agent, .. } => format!("run {run} goes on with {agent}"),
        Event::BacklogRead { added, changed, removed, order, .. } => {
            let mut parts = Vec::new();
            for (count, word) in
                [(added.len(), "added"), (changed.len(), "changed"), (removed.len(), "removed")]
            {
                if count > 0 {
                    parts.push(format!("{count} {word}"));
                }
            }
            if order.is_some() {
                parts.push("reordered".to_owned());
            }
            if parts.is_empty() {
                "backlog read".to_owned()
            } else {
                format!("backlog read: {}", parts.join(", "))
            }
        }
        Event::BacklogBroken { message } => format!("the backlog cannot be read: {message}"),
        Event::StatusWritten { task, status } => format!("{task} is {} in the backlog", status.name()),
        Event::IterationStarted { iteration, task, attempt, carried, .. } => {
            let from = if carried.is_some() { ", from its earlier work" } else { "" };
            format!("iteration {iteration}: {task}, attempt {attempt}{from}")
        }
        Event::AgentEnded { exit, duration: took, claim, error, flags, ended_processes, .. } => {
            let mut text = format!("agent ended after {}: {exit}", duration(*took));
            text.push_str(if claim.is_some() { ", claims done" } else { ", no claim" });
            if let Some(error) = error {
                text.push_str(&format!(", error: {}", error.message));
            }
            if *ended_processes > 0 {
                text.push_str(&format!(", left {ended_processes} running, which were ended"));
            }
            text + &flagged(flags)
        }
        Event::CallStarted { server, tool, params, .. } => {
            format!("calls {tool} of {server}: {}", params.excerpt)
        }
        Event::WorkEnded { error: Some(error), uncertain: false, .. } => format!("failed: {}", error.message),
        Event::WorkEnded { error, uncertain: true, .. } => {
            let why = error.as_ref().map_or("", |error| error.message.as_str());
            format!("nobody knows whether it happened: {why}")
        }
        Event::WorkEnded { result, duration: took, .. } => {
            format!("carried out in {}: {}", duration(*took), result.excerpt)
        }
        Event::AgentReported { report, .. } => match report {
            Report::Done { text } => format!("the agent claims done: {text}"),
            Report::Question { question } => format!("the agent asks: {}", question.summary),
            Report::Progress { text } => format!("the agent reports: {text}"),
        },
        Event::TreeTaken { flags, .. } => format!("work taken for checking{}", flagged(flags)),
        Event::TreeAltered { .. } => "a git hook changed the work: checked again".to_owned(),
        Event::EvidenceGathered { evidence, .. } => evidence_words(evidence),
        Event::WorkInspected { changed_total, flags, .. } => {
            format!("{} changed{}", counted(*changed_total as usize, "path"), flagged(flags))
        }
        Event::Judged { verdict, signals, .. } if !signals.is_empty() => {
            let said: Vec<String> = signals.iter().map(ToString::to_string).collect();
            format!("{} (supporting a claim: {})", verdict_words(verdict), said.join("; "))
        }
        Event::Judged { verdict, .. } => verdict_words(verdict),
        Event::WorkKept { task, reference, .. } => format!("work on {task} kept under {reference}"),
        Event::WorkspaceReset { commit } => format!("workspace back at {}", short(commit)),
        Event::TaskCompleted { task, commit, verified, .. } => {
            let mut text = format!("{task} done");
            if !verified {
                text.push_str(", unverified");
            }
            if let Some(commit) = commit {
                text.push_str(&format!(", commit {}", short(commit)));
            }
            text
        }
        Event::CommitRefused { output, .. } => format!("the commit was refused: {}", output.excerpt),
        Event::TaskFailed { task, reason } => format!("{task} failed: {reason}"),
        Event::TaskSkipped { task, by } => format!("{task} skipped by {by}"),
        Event::TaskReopened { task, by } => format!("{task} opened again by {by}"),
        Event::StatusSet { task, status, by } => format!("{task} set to {} by {by}", status.name()),
        Event::Nudged { text, by, delivered: true, .. } => format!("nudged by {by}: {text}"),
        Event::Nudged { by, delivered: false, .. } if is_call(by) => {
            "a nudge that asked for a sign of life did not reach the agent".to_owned()
        }
        Event::Nudged { text, by, delivered: false, .. } => {
            format!("nudge by {by} did not reach the agent; it is guidance for the next attempt: {text}")
        }
        Event::HealthChanged { health, detail, .. } => format!("the agent is {}: {detail}", health.name()),
        Event::StatusPutBack { task, found, restored } => {
            format!("{task} was set to {} in the file; put back to {}", found.name(), restored.name())
        }
        Event::QuestionRaised { id, task, question } => {
            let about = task.as_ref().map(|task| format!(" about {task}")).unwrap_or_default();
            format!("{id}{about}: {}", question.summary)
        }
        Event::QuestionAnswered { id, answer, by } => {
            format!("{id} answered by {by}: {}", answer_words(answer))
        }
        Event::HandoffStarted { iteration, trigger, asked, .. } => {
            let asked = if *asked { "; the agent was asked to wrap up" } else { "" };
            format!("iteration {iteration} hands over: {trigger}{asked}")
        }
        Event::Checkpointed { checkpoint, by, .. } => {
            let by = if by.is_empty() { String::new() } else { format!(" by {by}") };
            format!("checkpoint {}{by}", short(&checkpoint.sha256))
        }
        Event::RestoreStarted { to_seq, from, reference, by, .. } => {
            let kept = from.as_ref().map(|from| format!("; {} is kept under {reference}", short(from)));
            format!("going back to event {to_seq}, asked for by {by}{}", kept.unwrap_or_default())
        }
        Event::Restored { id } => format!("back at the checkpoint {id}"),
        Event::Paused { by } => format!("paused by {by}"),
        Event::Resumed { by } => format!("resumed by {by}"),
        Event::StopRequested { by } => format!("stop asked for by {by}"),
        Event::Interrupted { iteration, reason, .. } => {
            format!("iteration {iteration} interrupted: {reason}")
        }
        Event::UserChangesSetAside { reference, .. } => {
            format!("uncommitted changes set aside under {reference}")
        }
        Event::UserChangesPutBack { clean: true, .. } => "uncommitted changes put back".to_owned(),
        Event::UserChangesPutBack { commit, clean: false } => {
            format!("uncommitted changes conflict; they are in {commit}")
        }
        Event::Noticed { message, .. } => message.clone(),
        Event::BudgetAlert { scope, task, unit, spent, limit, .. } => {
            let of = task.as_ref().map(|task| format!(" of {task}")).unwrap_or_default();
            let (spent, limit) = (unit.show(*spent), unit.show(*limit));
            format!("{spent} of {limit} are spent (budget: {}{of})", scope.name())
        }
        Event::BudgetAsked { granted, figures } => {
            let spent = figures.project.spent.cost_usd;
            let said = if *granted { "lets" } else { "does not let" };
            format!("the shared budget {said} a call begin (${spent:.2} spent in this project)")
        }
        Event::Charged { usage, .. } => {
            format!("the interrupted agent had used {} tokens, {}", usage.tokens(), cost(usage))
        }
        Event::RunEnded { run, reason, detail } => {
            format!("run {run} ended ({}): {}: {detail}", reason.name(), reason.ending().says)
        }
    }
}

pub(crate) fn verdict_words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Accepted { verified: true } => "accepted".to_owned(),
        Verdict::Accepted { verified: false } => "accepted, unverified".to_owned(),
        Verdict::Refuted { reasons } | Verdict::Held { reasons } => {
            format!("{}: {}", verdict_name(verdict), reasons.join("; "))
        }
        Verdict::Errored { failure } => format!("{}: {}", verdict_name(verdict), failure.message),
        Verdict::Unavailable { trouble, message } => {
            format!("{}, {trouble}: {message}", verdict_name(verdict))
        }
        Verdict::HandedOver { trigger } => format!("{}: {trigger}", verdict_name(verdict)),
        Verdict::Unclaimed | Verdict::Asked => verdict_name(verdict).to_owned(),
    }
}

fn evidence_words(evidence: &Evidence) -> String {
    let mark = if evidence.passed() { "passed" } else { "failed" };
    let Evidence { name, command, exit, duration: took, .. } = evidence;
    format!("check {mark}: {name}: `{command}`, {exit} after {}", duration(*took))
}

fn flagged(flags: &[wiggum_core::event::Flag]) -> String {
    flags.iter().map(|flag| format!(", {}: {}", flag_name(flag.kind), flag.what)).collect()
}

/// A commit's id as people quote it.
pub(crate) fn short(commit: &str) -> &str {
    commit.get(..9).unwrap_or(commit)
}

/// How many there are, in words that agree.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Long enough for a wide terminal; `--json` and `wiggum show` have everything.
const LINE: usize = 200;

/// Text of others as part of a line of ours.
pub(crate) fn one_line(text: &str) -> String {
    let text = harmless(text).split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
