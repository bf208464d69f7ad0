//! Builds the prompt of one attempt: the user's instructions, the task, what earlier attempts ran
//! into, a person's guidance, and how to claim or escalate.
//!
//! Our own words stay little more than a kilobyte. The forms of claim and question are shown inside inline
//! code, so an agent that repeats its prompt has neither claimed nor asked anything.

use std::fmt::Write as _;

use crate::ids::Attempt;
use crate::state::REFUTED;
use crate::task::Task;
use crate::text::{clip, trim_output};

/// The instructions used where there is no `PROMPT.md`; `wiggum init` writes them.
pub const DEFAULT_INSTRUCTIONS: &str = "\
# Instructions

You work on exactly one task, given below, in this directory. Nobody watches: decide small things yourself.

## Working

- Look at the code before you change it, and keep to its style.
- Do what the task asks and nothing beyond it; leave other tasks alone.
- Add or adapt tests for what you build. Never delete, skip or weaken a test to get past it.
- Run the checks yourself and read what they print. They are run again after you; their result decides, not yours.
- Do not edit the backlog or its statuses, and do not commit: both happen for you once the checks pass.

## Asking

Stop and ask a person only in two cases:

- stuck: the same obstacle beat several different approaches, or something only a person has is missing \
(access, a decision, a service).
- deviation: you could go on, but only by leaving the task: changing its scope, a public interface, data, \
dependencies or security, or contradicting its criteria.

Say what you tried and give two or three options someone could pick without reading the code. \
Undo experiments that lead nowhere first.

## Finishing

Claim the task only when every criterion holds and you saw the checks pass. If something is missing, \
say what instead: the next attempt starts from your work and reads your reasons.
";

/// What an agent is told of our own tools, where it was handed them. Text counts as well: a server that
/// does not start must not cost a claim.
const TOOLS: &str = "\
## Tools of the loop

You have the MCP server `wiggum`. Call its tool `claim_done` when all of the task is done, \
`raise_escalation` with a question and its options when you cannot go on without a person, and \
`report_progress` now and then while something takes long. If these tools are missing, say the same in \
your last message as described above.
";

/// What goes into the prompt of one attempt.
pub struct PromptParts<'a> {
    /// The user's `PROMPT.md`, or [`DEFAULT_INSTRUCTIONS`]. `{{task_id}}`, `{{title}}`,
    /// `{{description}}` and `{{role}}` are replaced.
    pub instructions: &'a str,
    pub task: &'a Task,
    /// What the backlog says around the task.
    pub context: &'a str,
    pub attempt: Attempt,
    /// The word to promise with, and the mark of this attempt ([`crate::signal::claim_mark`]).
    pub promise: &'a str,
    pub mark: &'a str,
    /// Earlier attempts at this task, oldest first.
    pub attempts: &'a [PastAttempt],
    /// What people answered, oldest first.
    pub guidance: &'a [String],
    /// Commands that will be run to check the work.
    pub checks: &'a [String],
    /// Where the work stands, as [`crate::handoff::continuation`] tells it.
    pub continuation: &'a str,
    /// What the tasks that it depends on decided, and would do next.
    pub decided: &'a [String],
    /// What other tasks left to be remembered, oldest first.
    pub learnt: &'a [String],
    /// What is left of a budget, where that is little: [`crate::budget::told_to_agent`].
    pub budget: &'a str,
    /// It was handed our own tools.
    pub tools: bool,
    /// Checks that passed before anybody worked on the task, so that they prove nothing.
    pub green_before: &'a [String],
    /// Checks that failed before anybody worked at all.
    pub red_before: &'a [String],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastAttempt {
    pub attempt: Attempt,
    /// One line: "verify failed", "ended without claiming".
    pub outcome: String,
    /// Output of the failed check, the error, or what was flagged.
    pub feedback: String,
    /// What it changed and said of it, in a line.
    pub tried: String,
}

/// How much of the earlier attempts is told: together, and of the newest one.
const MAX_HISTORY: usize = 8 * 1024;
const MAX_FEEDBACK: usize = 2 * 1024;
/// Of an attempt long past, its outcome and the first error are enough.
const MIN_FEEDBACK: usize = 256;
const MAX_OUTCOME: usize = 300;
const MAX_TRIED: usize = 700;

/// The prompt for this attempt.
pub fn build(parts: &PromptParts<'_>) -> String {
    let mut prompt = String::new();
    let instructions = fill_in(parts.instructions, parts.task);
    push_block(&mut prompt, &instructions);
    push_block(&mut prompt, &describe(parts.task));
    push_block(&mut prompt, parts.context);
    push_block(
        &mut prompt,
        &list(
            "## Criteria",
            parts.task.criteria.iter().map(|criterion| match &criterion.check {
                Some(check) => format!("{} (checked by {})", criterion.text, inline_code(check)),
                None => criterion.text.clone(),
            }),
        ),
    );
    push_block(
        &mut prompt,
        &list("## Checks run after you", parts.checks.iter().map(|check| checked(check, parts))),
    );
    push_block(&mut prompt, if parts.tools { TOOLS } else { "" });
    push_block(&mut prompt, parts.budget);
    push_block(&mut prompt, parts.continuation);
    push_block(&mut prompt, &history(parts.attempt, parts.attempts));
    push_block(
        &mut prompt,
        &list("## What the tasks before this one decided", parts.decided.iter().cloned()),
    );
    push_block(&mut prompt, &list("## What other tasks taught", parts.learnt.iter().cloned()));
    push_block(&mut prompt, &list("## Guidance from a person (follow it)", parts.guidance.iter().cloned()));
    push_block(&mut prompt, &closing(parts, &instructions));
    prompt
}

fn push_block(prompt: &mut String, block: &str) {
    let block = block.trim_matches('\n').trim_end();
    if block.is_empty() {
        return;
    }
    if !prompt.is_empty() {
        prompt.push('\n');
    }
    prompt.push_str(block);
    prompt.push('\n');
}

/// Replaces the placeholders in one pass: what is filled in is not searched again.
fn fill_in(instructions: &str, task: &Task) -> String {
    let mut filled = String::with_capacity(instructions.len());
    let mut rest = instructions;
    while let Some(at) = rest.find("{{") {
        filled.push_str(&rest[..at]);
        rest = &rest[at..];
        let known = rest.find("}}").and_then(|end| {
            let value = match rest[2..end].trim() {
                "task_id" => task.id.as_str(),
                "title" => &task.title,
                "description" => &task.description,
                "role" => &task.role,
                _ => return None,
            };
            Some((value, end + 2))
        });
        let (value, length) = known.unwrap_or((&rest[..2], 2));
        filled.push_str(value);
        rest = &rest[length..];
    }
    filled.push_str(rest);
    filled
}

fn describe(task: &Task) -> String {
    let mut text = format!("# Task {}", task.id);
    if !task.title.is_empty() && task.title != task.id.as_str() {
        let _ = write!(text, ": {}", task.title);
    }
    text.push('\n');
    if !task.description.trim().is_empty() && task.description.trim() != task.title.trim() {
        let _ = write!(text, "\n{}\n", task.description.trim());
    }
    if let Some(notes) = task.notes.as_deref().filter(|notes| !notes.trim().is_empty()) {
        let _ = write!(text, "\nNotes: {}\n", notes.trim());
    }
    text
}

fn list(heading: &str, items: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    for item in items {
        if text.is_empty() {
            let _ = write!(text, "{heading}\n\n");
        }
        let _ = writeln!(text, "- {}", item.trim().replace('\n', "\n  "));
    }
    text
}

/// A check, with what is known of it before the work.
fn checked(check: &String, parts: &PromptParts<'_>) -> String {
    let check_text = inline_code(check);
    if parts.green_before.contains(check) {
        return format!("{check_text} (passes already, before your work: passing it proves nothing)");
    }
    if parts.red_before.contains(check) {
        return format!("{check_text} (failed before any work was done)");
    }
    check_text
}

fn inline_code(command: &str) -> String {
    if command.contains('\n') { command.to_owned() } else { format!("`{command}`") }
}

/// Earlier attempts, the newest last and in most detail.
fn history(attempt: Attempt, attempts: &[PastAttempt]) -> String {
    if attempts.is_empty() {
        return String::new();
    }
    let heading = format!("## This is attempt {attempt}; what came of earlier ones\n");
    let omitted_room = 64;
    let mut left = MAX_HISTORY - heading.len() - omitted_room - ACCEPTED.len();
    let mut allowance = MAX_FEEDBACK;
    let mut told = Vec::new();
    for past in attempts.iter().rev() {
        let text = tell(past, allowance.min(left));
        if text.len() > left {
            break;
        }
        left -= text.len();
        allowance = (allowance / 2).max(MIN_FEEDBACK);
        told.push(text);
    }
    let mut history = heading;
    let omitted = attempts.len() - told.len();
    if omitted > 0 {
        let _ = write!(history, "\n({omitted} still earlier not shown)\n");
    }
    history.extend(told.into_iter().rev());
    if attempts.last().is_some_and(|newest| newest.outcome == REFUTED) {
        history.push_str(ACCEPTED);
    }
    history
}

const ACCEPTED: &str = "\nA claim is accepted once what is named last above is put right and every check exits with 0, also \
with what defines it as it was before your changes.\n";

/// One attempt in at most `max` bytes where its heading allows.
fn tell(past: &PastAttempt, max: usize) -> String {
    let outcome = past.outcome.replace('\n', " ");
    let mut text = format!("\n### Attempt {}: {}\n", past.attempt, clip(&outcome, MAX_OUTCOME));
    if !past.tried.is_empty() && max > 2 * MIN_FEEDBACK {
        let _ = writeln!(text, "{}", clip(&past.tried.replace('\n', " "), MAX_TRIED.min(max / 2)));
    }
    if past.feedback.trim().is_empty() {
        return text;
    }
    let fence = fence_for(&past.feedback);
    let around = 2 * fence.len() + "\n\n\n\n".len();
    let feedback = trim_output(&past.feedback, max.saturating_sub(text.len() + around));
    if !feedback.trim().is_empty() {
        let _ = write!(text, "\n{fence}\n{}\n{fence}\n", feedback.trim_end());
    }
    text
}

/// A fence longer than any run of backticks in the text, so that the text cannot end it.
fn fence_for(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.clamp(2, 40) + 1)
}

/// How to claim and how to ask, unless the user's instructions already say so.
fn closing(parts: &PromptParts<'_>, instructions: &str) -> String {
    let mut text = String::new();
    if !instructions.contains("<promise>") {
        let _ = writeln!(
            text,
            "When task {} is complete and its checks pass, end your last message with `<promise>{} {}</promise>` alone on a line, \
             as it stands here (the mark is this attempt's). Never write that line otherwise.",
            parts.task.id, parts.promise, parts.mark
        );
    }
    if !instructions.contains("<escalate") {
        text.push_str(ESCALATION);
    }
    if !instructions.contains("<handoff>") {
        text.push_str(NOTES);
    }
    if text.is_empty() { text } else { format!("## How to end\n\n{text}") }
}

const NOTES: &str = "\nWhat others should know: `Decisions:`, `Assumptions:`, `Constraints:`, `Next steps:` as \
lists; for other tasks, between `<memory>` and `</memory>`. If you cannot finish in this session, end with \
`<handoff>why</handoff>` on its own line. Tests and checks that were there are also run as they were; if the task \
needs them changed, say why: `<changed-checks>why</changed-checks>`.\n";

const ESCALATION: &str = "\nTo ask a person, end with this instead (type `stuck` if you cannot go on, `deviation` if \
you should not without approval): `<escalate type=\"stuck|deviation\"> <summary>one line</summary> <context>what you \
tried and found</context> <options>1. … 2. …</options> <question>what you need decided</question> </escalate>`, \
without backticks, each part on its own lines.\n";
