//! What happened and what things are called, in the words that every surface uses: events in one line
//! each, answers, flags, spans of time, money.

use jiff::Timestamp;
use wiggum_core::event::{Answer, BaselineOutcome, Event, Evidence, Flag, FlagKind, Report, Usage, Verdict};
use wiggum_core::health::is_call;
use wiggum_core::policy::Millis;
use wiggum_core::state::verdict_name;
use wiggum_core::termination::{headline, more};

/// What happened, in one line.
pub fn describe(event: &Event) -> String {
    one_line(&words(event))
}

fn words(event: &Event) -> String {
    match event {
        Event::LoopCreated { name, backlog, .. } => format!("loop {name} over {backlog} created"),
        Event::LoopMoved { repository, from, copied: _ } if from.is_empty() => {
            format!("the checkout is now at {repository}")
        }
        Event::LoopMoved { repository, from, copied: false } => {
            format!("this loop last ran in {from}, which was moved: it goes on in {repository}")
        }
        Event::LoopMoved { repository, from, copied: true } => {
            format!(
                "this loop last ran in {from}, which is gone: it goes on in {repository}, a copy of it. Other copies \
                 begin anew"
            )
        }
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
        Event::CommitsFound { subjects, .. } => {
            format!("somebody else committed meanwhile, which is kept as it is: {}", subjects.join("; "))
        }
        Event::TreeTaken { flags, .. } => format!("work taken for checking{}", flagged(flags)),
        Event::TreeAltered { .. } => "a git hook changed the work: checked again".to_owned(),
        Event::EvidenceGathered { evidence, .. } | Event::CleanChecked { evidence, .. } => {
            evidence_words(evidence)
        }
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
        Event::SkipAsked { task, by, .. } => format!("{by} skips {task}: what works on it is stopped first"),
        Event::TaskReopened { task, by } => format!("{task} opened again by {by}"),
        Event::SkipsCommitted { commit: None, .. } => "nothing to commit of what was skipped".to_owned(),
        Event::SkipsCommitted { tasks, commit: Some(commit) } => {
            let names: Vec<&str> = tasks.iter().map(|task| task.as_str()).collect();
            format!("{} skipped: committed as {}", names.join(", "), short(commit))
        }
        Event::StatusSet { task, status, by } => format!("{task} set to {} by {by}", status.name()),
        Event::Nudged { text, by, delivered: true, .. } => format!("nudged by {by}: {text}"),
        Event::Nudged { by, delivered: false, .. } if is_call(by) => {
            "a nudge that asked for a sign of progress did not reach the agent".to_owned()
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
        Event::BaselineStarted { command } => format!("`{command}` is run before any work"),
        Event::BaselineChecked { command, outcome, .. } => {
            format!("before any work, `{command}` {}", baseline_words(outcome))
        }
        Event::TaskBaselineChecked { task, command, outcome } => {
            format!("before {task} begins, `{command}` {}", baseline_words(outcome))
        }
        Event::RepairPlanned { task } => format!("repairing the checks becomes the task {task}"),
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
        Event::RequestRefused { why, .. } => why.clone(),
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
        Event::BudgetReached { scope, unit, spent, limit, .. } => {
            let (spent, limit) = (unit.show(*spent), unit.show(*limit));
            format!("the agent is stopped at the {} budget: {spent} of {limit} are spent", scope.name())
        }
        Event::UsageSeen { usage, .. } => {
            format!("the agent has used {} tokens so far, {}", usage.tokens(), cost(usage))
        }
        Event::Charged { usage, .. } => {
            format!("the interrupted agent had used {} tokens, {}", usage.tokens(), cost(usage))
        }
        Event::RunEnded { run, reason, detail } => {
            let rest = more(*reason, detail);
            let rest = if rest.is_empty() { String::new() } else { format!(": {rest}") };
            format!("run {run} ended ({}): {}{rest}", reason.name(), headline(*reason, detail))
        }
    }
}

/// What was made of an attempt.
pub fn verdict_words(verdict: &Verdict) -> String {
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
    let Evidence { name, command, exit, duration: took, clean, .. } = evidence;
    let place = if *clean { " in a clean checkout" } else { "" };
    let withheld = evidence.about_withheld().map_or_else(String::new, |words| format!("; {words}"));
    format!("check {mark}{place}: {name}: `{command}`, {exit} after {}{withheld}", duration(*took))
}

fn flagged(flags: &[Flag]) -> String {
    flags.iter().map(|flag| format!(", {}", short_flag(flag))).collect()
}

/// A commit's id as people quote it.
pub fn short(commit: &str) -> &str {
    commit.get(..9).unwrap_or(commit)
}

/// How many there are, in words that agree.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Long enough for a wide terminal; `--json` and `wiggum show` have everything.
const LINE: usize = 200;

/// Text of others as part of a line of ours.
pub fn one_line(text: &str) -> String {
    let text = harmless(text).split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// An answer, in words.
pub fn answer_words(answer: &Answer) -> String {
    match answer {
        Answer::Option { number } => format!("option {number}"),
        Answer::Words { text } => harmless(text),
        Answer::Skip => "skip".to_owned(),
        Answer::Retry => "retry".to_owned(),
        Answer::Abort => "abort".to_owned(),
        Answer::Done => "done".to_owned(),
    }
}

/// What a check said before any agent worked.
pub fn baseline_words(outcome: &BaselineOutcome) -> String {
    match outcome {
        BaselineOutcome::Green => "passes".to_owned(),
        BaselineOutcome::Red => "fails".to_owned(),
        BaselineOutcome::CannotRun { why } => format!("cannot run yet: {why}"),
        BaselineOutcome::LeftOut { why } => format!("is left out: {why}"),
        BaselineOutcome::Interrupted => "was cut short".to_owned(),
    }
}

/// How the journal says that the work tree was found on another branch. It names the agent, but a person in the same
/// work tree may as well have switched.
const SWITCHED: &str = "the agent switched to it; put back";

/// A flag in full.
pub fn flag_line(flag: &Flag) -> String {
    if flag.kind == FlagKind::BranchSwitched && flag.detail == SWITCHED {
        return format!("the branch was switched to `{}` during the attempt; put back", flag.what);
    }
    format!("{} {}", short_flag(flag), flag.detail).trim_end().to_owned()
}

/// A flag without its explanation.
pub fn short_flag(flag: &Flag) -> String {
    format!("{}: {}", flag_name(flag.kind), flag.what)
}

/// What a flag is called.
pub fn flag_name(kind: FlagKind) -> &'static str {
    match kind {
        FlagKind::ProtectedPath => "protected path",
        FlagKind::CheckTouched => "changed what a check runs",
        FlagKind::WeakenedTests => "weakened tests",
        FlagKind::BacklogTouched => "touched the backlog",
        FlagKind::BranchSwitched => "branch switched",
        FlagKind::HooksTouched => "touched git's files",
        FlagKind::StateTouched => "touched wiggum's state",
        FlagKind::AgentCommitted => "committed by itself",
        FlagKind::IgnoreRules => "the rules of what git ignores were changed",
        FlagKind::SpecialFile => "was no file",
        FlagKind::NestedRepository => "was a repository of its own",
        FlagKind::SubmoduleUncommitted => "not committed inside the submodule",
        FlagKind::CheckLeftovers => "left by a check",
        FlagKind::ConfigTouched => "changed what is obeyed later",
        FlagKind::NotesChanged => "changed notes for later agents",
        FlagKind::AsksIfTested => "asks whether it is being tested",
        FlagKind::LeadsOut => "links out of the repository",
        FlagKind::CheckRedefined => "changed what defines a check",
        FlagKind::CheckedProduct => "changed a file that a check runs",
    }
}

/// A span of time as people say it.
pub fn duration(span: Millis) -> String {
    let seconds = span.0 / 1000;
    match seconds {
        0 if span.0 < 1000 => format!("{} ms", span.0),
        0..60 => format!("{:.1} s", span.0 as f64 / 1000.0),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// The time between two moments.
pub fn elapsed(from: Timestamp, to: Timestamp) -> String {
    duration(Millis(u64::try_from(to.as_millisecond() - from.as_millisecond()).unwrap_or(0)))
}

/// What a usage cost. Tokens whose cost nobody told are not free.
pub fn cost(usage: &Usage) -> String {
    if usage.is_unpriced() { "unpriced".to_owned() } else { dollars(usage.cost_usd) }
}

/// Cents, or more of the figure where cents would hide it.
pub fn dollars(amount: f64) -> String {
    let in_cents = (amount * 100.0 - (amount * 100.0).round()).abs() < 1e-4;
    if in_cents || amount.abs() >= 1.0 { format!("${amount:.2}") } else { format!("${amount:.4}") }
}

/// A number with its digits in groups.
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Text of others made harmless: an agent must not drive the terminal.
pub fn harmless(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => skip_escape(&mut chars),
            '\n' | '\t' => clean.push(c),
            // A bare carriage return overwrites what was shown; progress bars become lines.
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => clean.push('\n'),
            c if c.is_control() || is_bidi(c) => {}
            c => clean.push(c),
        }
    }
    clean
}

fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        // CSI: up to its final byte.
        Some('[') => while chars.next().is_some_and(|c| !('\x40'..='\x7e').contains(&c)) {},
        // OSC and the other strings: up to BEL or ESC \.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(c) = chars.next() {
                if c == '\x07' || (c == '\x1b' && chars.next_if_eq(&'\\').is_some()) {
                    break;
                }
            }
        }
        Some(_) | None => {}
    }
}

/// Characters that reorder what is shown.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switched_branch_names_no_culprit() {
        let flag = |detail: &str| Flag {
            kind: FlagKind::BranchSwitched,
            what: "feature".to_owned(),
            detail: detail.to_owned(),
        };
        let told = flag_line(&flag(SWITCHED));
        assert_eq!(told, "the branch was switched to `feature` during the attempt; put back");
        assert_eq!(flag_line(&flag("put back")), "branch switched: feature put back");
        assert_eq!(flag_line(&flag("")), "branch switched: feature");
    }

    #[test]
    fn what_agents_print_cannot_drive_the_terminal() {
        let check = |text: &str, expected: &str| assert_eq!(harmless(text), expected, "{text:?}");
        check("plain\n\ttext é ✅", "plain\n\ttext é ✅");
        check("\x1b[31mred\x1b[0m", "red");
        check("\x1b]0;title\x07after", "after");
        check("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link");
        check("10%\r20%\r\ndone", "10%\n20%\ndone");
        check("abc\u{202e}cba\u{0007}", "abccba");
        check("\x1b", "");
        check("\x1b[", "");
    }

    #[test]
    fn numbers_are_grouped() {
        for (count, text) in [(0, "0"), (999, "999"), (1000, "1 000"), (1_234_567, "1 234 567")] {
            assert_eq!(thousands(count), text);
        }
    }
}
