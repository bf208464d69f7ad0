//! Judging an attempt: the agent's claim against what the engine saw itself.

use crate::baseline::nothing_done;
use crate::clean;
use crate::definition::{self, Change};
use crate::event::{BaselineOutcome, Evidence, Flag, FlagKind, Trouble, Verdict};
use crate::handoff::Trigger;
use crate::mutant::{Mutant, planted};
use crate::policy::{OnTouch, Policy, Protect};
use crate::signal::error::{decisive_lines, signature};
use crate::state::{Loop, OpenIteration};
use crate::tally;
use crate::task::{Task, Work};

/// A command whose success is evidence for a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Check {
    pub name: String,
    pub command: String,
}

/// What has to be run for a task: the policy's verify commands, its own, and its criteria's.
/// Not for what cannot be undone: a check that fails would have it done again.
pub fn checks_for(policy: &Policy, task: &Task) -> Vec<Check> {
    if matches!(task.work, Work::McpCall { .. } | Work::Notice { .. }) {
        return Vec::new();
    }
    let verify = policy.checks.verify.iter();
    let mut checks: Vec<Check> =
        verify.map(|command| Check { name: "verify".to_owned(), command: command.clone() }).collect();
    checks.extend(own_checks(task));
    checks
}

/// The checks that a task itself names.
pub fn own_checks(task: &Task) -> Vec<Check> {
    let verify = task.verify.iter();
    let mut checks: Vec<Check> =
        verify.map(|command| Check { name: "verify".to_owned(), command: command.clone() }).collect();
    for criterion in &task.criteria {
        if let Some(command) = &criterion.check {
            checks.push(Check { name: criterion.text.clone(), command: command.clone() });
        }
    }
    checks
}

/// Is evidence worth gathering for this attempt?
pub fn wants_evidence(state: &Loop, open: &OpenIteration) -> bool {
    let claimed = open.claim.is_some() || state.policy.checks.complete_without_claim;
    claimed && open.error.is_none() && open.asked.is_empty() && !planted(Mutant::SkipsChecks)
}

/// The checks to be run with their former definition, once the others have passed: what the attempt changed of
/// them must not be what made them pass. Nothing where a flag refuses the attempt anyway.
pub fn former_checks(state: &Loop, open: &OpenIteration) -> Vec<Check> {
    let Some(seen) = &open.inspection else { return Vec::new() };
    if open.claim.is_none() && !state.policy.checks.complete_without_claim {
        return Vec::new();
    }
    let settled = open.error.is_some()
        || !open.asked.is_empty()
        || open.evidence.iter().any(|evidence| !evidence.passed())
        || matches!(judge_flags(state, open, &open.flags), Some(Verdict::Refuted { .. }))
        || state.policy.protect.on_check_touch == OnTouch::Warn
        || is_approved(state, open, &redefinition(&seen.redefined));
    if settled || !seen.redefined.iter().any(|change| !change.product) {
        return Vec::new();
    }
    let named = |command: &String| Check { name: "former definition".to_owned(), command: command.clone() };
    seen.former_checks.iter().map(named).collect()
}

/// Do green checks tell anything of this task? Where nothing was changed, only those that failed before do.
fn says_something(state: &Loop, open: &OpenIteration) -> bool {
    if open.ran_nothing() {
        return false;
    }
    let unchanged = open.inspection.as_ref().is_some_and(|seen| seen.changed_total == 0);
    let entry = state.task(&open.task);
    let was_red =
        entry.is_some_and(|entry| entry.baseline.iter().any(|(_, before)| *before == BaselineOutcome::Red));
    !state.git || !unchanged || open.own || was_red
}

/// The verdict, once all evidence is in.
pub fn judge(state: &Loop, open: &OpenIteration) -> Verdict {
    if let Some(failure) = open.error.as_ref().filter(|_| planted(Mutant::CallsUnavailable)) {
        let message = failure.message.clone();
        return Verdict::Unavailable { trouble: Trouble::Network, message };
    }
    if planted(Mutant::AcceptsErrors) && open.error.is_some() {
        return Verdict::Accepted { verified: false };
    }
    let finished = open.error.is_none() && (open.claim.is_some() || !open.asked.is_empty());
    if let Some(failure) = &open.error
        && let Some(trouble) = &open.trouble
        && state.agents.is_unavailable_by(&state.policy.agents, &open.agent, trouble)
    {
        return Verdict::Unavailable { trouble: trouble.clone(), message: failure.message.clone() };
    }
    if let Some(handoff) = open.handoff.as_ref().filter(|_| !finished) {
        return Verdict::HandedOver { trigger: handoff.trigger.clone() };
    }
    if let Some(failure) = &open.error {
        return Verdict::Errored { failure: failure.clone() };
    }
    if !open.asked.is_empty() {
        return Verdict::Asked;
    }
    if planted(Mutant::HandsOverUnasked) && open.claim.is_none() {
        return Verdict::HandedOver { trigger: Trigger::Timeout };
    }
    let unclaimed_is_enough = state.policy.checks.complete_without_claim && !open.evidence.is_empty();
    if open.claim.is_none() && !unclaimed_is_enough && !planted(Mutant::AcceptsUnclaimed) {
        return Verdict::Unclaimed;
    }
    let failed: Vec<String> =
        open.evidence.iter().filter(|evidence| !evidence.passed()).map(describe_failure).collect();
    let failed = if failed.is_empty() { idle_now(state, open) } else { failed };
    let failed = if failed.is_empty() { clean::refusal(open).into_iter().collect() } else { failed };
    if !failed.is_empty() && !planted(Mutant::AcceptsRefuted) {
        return if open.claim.is_some() { Verdict::Refuted { reasons: failed } } else { Verdict::Unclaimed };
    }
    let mut flags = open.flags.clone();
    flags.extend(tally::fewer(state, open).into_iter().filter(|flag| !open.flags.contains(flag)));
    let verdict = match (judge_flags(state, open, &flags), judge_former(state, open)) {
        // A person is asked once, about all of it.
        (
            Some(Verdict::Held { reasons: mut all }),
            Some(Verdict::Held { reasons } | Verdict::Refuted { reasons }),
        ) => {
            all.extend(reasons.into_iter().filter(|reason| reason != SAY_WHY));
            all.dedup();
            Some(Verdict::Held { reasons: all })
        }
        (flagged, former) => flagged.or(former),
    };
    let verified = open.is_witnessed() && says_something(state, open);
    verdict.unwrap_or(Verdict::Accepted { verified: verified || planted(Mutant::CallsVerified) })
}

/// Checks that did something on the untouched tree and find nothing to do since the attempt, as make does where a
/// directory has the name of its target.
fn idle_now(state: &Loop, open: &OpenIteration) -> Vec<String> {
    let was_busy = |command: &str| {
        let before = state.baseline.results.iter().find(|checked| checked.command == command);
        let output = before.and_then(|checked| checked.evidence.as_ref()).map(|seen| &seen.output.excerpt);
        output.is_some_and(|output| nothing_done(output).is_none())
    };
    let idle = open.evidence.iter().filter(|evidence| was_busy(&evidence.command));
    let idle = idle.filter_map(|evidence| Some((evidence, nothing_done(&evidence.output.excerpt)?)));
    idle.map(|(evidence, said)| {
        format!(
            "The check \"{}\" (`{}`) ran nothing, though it did before the attempt: {said}.",
            evidence.name, evidence.command
        )
    })
    .collect()
}

/// What follows from checks that fail with their former definition. Whoever says why he had to change them, or
/// was asked to, gets a person's decision instead of a refusal.
fn judge_former(state: &Loop, open: &OpenIteration) -> Option<Verdict> {
    let failed: Vec<&Evidence> = open.former_evidence.iter().filter(|evidence| !evidence.passed()).collect();
    let redefined = &open.inspection.as_ref()?.redefined;
    let reason = redefinition(redefined);
    if failed.is_empty() || is_approved(state, open, &reason) {
        return None;
    }
    let mut reasons = vec![reason];
    reasons.extend(failed.into_iter().map(describe_failure));
    let said_why = open.notes.changed_checks.as_deref();
    reasons.extend(said_why.map(in_its_words));
    let asked_for = state.spec_of(open).is_some_and(|task| definition::is_asked_for(task, redefined));
    match state.policy.protect.on_check_touch {
        OnTouch::Warn => None,
        OnTouch::Ask => Some(Verdict::Held { reasons }),
        OnTouch::Refuse if asked_for || said_why.is_some() => Some(Verdict::Held { reasons }),
        OnTouch::Refuse => {
            reasons.push(SAY_WHY.to_owned());
            Some(Verdict::Refuted { reasons })
        }
    }
}

const SAY_WHY: &str = "Make the checks pass as they were. If the task makes it necessary to change them, say why in your \
                       last message, between `<changed-checks>` and `</changed-checks>`: a person then decides.";

/// One line that names what was changed, by which a person's approval is known again.
fn redefinition(redefined: &[Change]) -> String {
    let named = redefined.iter().filter(|change| !change.product).map(|change| match change.what.as_str() {
        "" => change.path.clone(),
        what => format!("{what} of {}", change.path),
    });
    let named: Vec<String> = named.collect();
    format!("What defines the checks was changed ({}), and as it was before they fail.", named.join(", "))
}

fn is_approved(state: &Loop, open: &OpenIteration, reason: &str) -> bool {
    state.task(&open.task).is_some_and(|entry| entry.approved.contains(reason))
}

/// What the policy says of a flag.
pub fn severity(protect: &Protect, kind: FlagKind) -> OnTouch {
    match kind {
        FlagKind::ProtectedPath => protect.on_touch,
        FlagKind::CheckTouched => protect.on_check_touch,
        FlagKind::ConfigTouched => OnTouch::Ask,
        // Judged by the former definition, not by the change itself.
        FlagKind::CheckRedefined | FlagKind::CheckedProduct => OnTouch::Warn,
        // There are good reasons for it, and a person can tell.
        FlagKind::AsksIfTested => OnTouch::Warn,
        // It passes here alone, which may be what a person wants.
        FlagKind::LeadsOut => OnTouch::Ask,
        FlagKind::WeakenedTests => protect.on_weakened_tests,
        // These were put back already, or change nothing that is judged.
        FlagKind::BacklogTouched
        | FlagKind::BranchSwitched
        | FlagKind::HooksTouched
        | FlagKind::StateTouched
        | FlagKind::AgentCommitted
        | FlagKind::SubmoduleUncommitted
        | FlagKind::NestedRepository
        | FlagKind::SpecialFile
        | FlagKind::IgnoreRules
        | FlagKind::NotesChanged
        | FlagKind::CheckLeftovers => OnTouch::Warn,
    }
}

fn judge_flags(state: &Loop, open: &OpenIteration, flags: &[Flag]) -> Option<Verdict> {
    let protect = &state.policy.protect;
    let with = |wanted: OnTouch| -> Vec<&Flag> {
        let flags = flags.iter().filter(|flag| severity(protect, flag.kind) == wanted);
        flags.filter(|flag| !is_approved(state, open, &describe_flag(flag))).collect()
    };
    let (refused, asked) = (with(OnTouch::Refuse), with(OnTouch::Ask));
    let mut reasons: Vec<String> = refused.iter().map(|flag| describe_flag(flag)).collect();
    // Tests may have to change with what they test: whoever says why is not simply refused.
    let said_why = open.notes.changed_checks.as_deref();
    let only_tests = refused.iter().all(|flag| flag.kind == FlagKind::WeakenedTests);
    let wanted = || state.spec_of(open).is_some_and(|task| asks_for_all(task, open, &refused));
    if !refused.is_empty() && only_tests && (said_why.is_some() || wanted()) {
        reasons.extend(asked.iter().map(|flag| describe_flag(flag)));
        reasons.extend(said_why.map(in_its_words));
        return Some(Verdict::Held { reasons });
    }
    if !refused.is_empty() {
        if only_tests {
            reasons.push(SAY_WHY.to_owned());
        }
        return Some(Verdict::Refuted { reasons });
    }
    let reasons: Vec<String> = asked.iter().map(|flag| describe_flag(flag)).collect();
    (!reasons.is_empty()).then_some(Verdict::Held { reasons })
}

/// Marked on every line, so that none of it can be taken for words of ours.
fn in_its_words(why: &str) -> String {
    let lines = why.lines().map(|line| format!("\n> {}", line.trim_end()));
    format!("The agent says why:{}", lines.collect::<String>())
}

/// Does the task ask for the changes by which these flags came? Where a check runs fewer tests, that may be a
/// change of what defines it.
fn asks_for_all(task: &Task, open: &OpenIteration, flags: &[&Flag]) -> bool {
    let redefined = open.inspection.as_ref().map_or(&[][..], |seen| &seen.redefined);
    let is_of_check = |flag: &Flag| open.evidence.iter().any(|evidence| evidence.command == flag.what);
    flags.iter().all(|flag| {
        let change =
            Change { path: flag.what.clone(), what: definition::ITS_TESTS.to_owned(), product: false };
        definition::is_asked_for(task, &[change])
            || is_of_check(flag) && definition::is_asked_for(task, redefined)
    })
}

fn describe_failure(evidence: &Evidence) -> String {
    let former = if evidence.former { ", with its former definition," } else { "" };
    let withheld =
        evidence.about_withheld().map_or_else(String::new, |words| format!("\nVariables {words}."));
    format!(
        "The check \"{}\" (`{}`){former} failed: {}.{withheld}\n{}",
        evidence.name, evidence.command, evidence.exit, evidence.output.excerpt
    )
}

/// What a refused claim came to, in one line: the check that failed and what it says.
pub fn refuted_by(open: &OpenIteration, reasons: &[String]) -> String {
    let failed = open.all_evidence().find(|evidence| !evidence.passed());
    match failed {
        Some(evidence) => {
            let former = match (evidence.former, evidence.clean) {
                (true, _) => " in its former definition",
                (false, true) => " in a clean checkout",
                (false, false) => "",
            };
            let line = decisive_lines(&evidence.output.excerpt).into_iter().next();
            let line = line.map_or_else(String::new, |line| format!(": {line}"));
            format!("said done, but `{}`{former} failed ({}){line}", evidence.command, evidence.exit)
        }
        None => {
            let reason = reasons.first().and_then(|reason| reason.lines().next()).unwrap_or("it was refused");
            format!("said done, but {reason}")
        }
    }
}

/// What failed, without what changes from one run to the next: equal texts mean the same evidence.
pub fn evidence_signature(open: &OpenIteration) -> Option<String> {
    let failed = open.all_evidence().filter(|evidence| !evidence.passed());
    let each = failed.map(|evidence| {
        let lines = decisive_lines(&evidence.output.excerpt).join("\n");
        format!("{} {} {}", evidence.command, evidence.exit, signature(&lines))
    });
    let all: Vec<String> = each.collect();
    (!all.is_empty()).then(|| all.join("\n"))
}

fn describe_flag(flag: &Flag) -> String {
    let what = match flag.kind {
        FlagKind::ProtectedPath => "is protected and was changed; put it back as it was",
        FlagKind::CheckTouched => "is what the check itself runs and was changed; put it back as it was",
        FlagKind::WeakenedTests => "has weaker tests than before; restore them",
        FlagKind::BacklogTouched => "is the backlog, which is not yours to write",
        FlagKind::BranchSwitched => "is not the branch the loop works on",
        FlagKind::HooksTouched => "belongs to git and was changed",
        FlagKind::StateTouched => "belongs to wiggum and was changed",
        FlagKind::AgentCommitted => "was committed by the agent itself",
        FlagKind::SubmoduleUncommitted => "has files inside that are not committed there",
        FlagKind::IgnoreRules => "says what git ignores and was changed",
        FlagKind::NotesChanged => "is read by later agents and was changed",
        FlagKind::AsksIfTested => "asks whether it is being tested",
        FlagKind::LeadsOut => "is a link that leads out of the repository, where no clone has what it needs",
        FlagKind::SpecialFile => "was a pipe, a socket or a device in the place of a file",
        FlagKind::NestedRepository => "was a repository inside the work tree and is plain files now",
        FlagKind::CheckLeftovers => "was left behind by a check",
        FlagKind::ConfigTouched => {
            "is obeyed later, outside of the sandbox, and was changed; put it back as it was"
        }
        FlagKind::CheckRedefined => "defines a check and was changed",
        FlagKind::CheckedProduct => "is run by a check and was changed, as the task may ask",
    };
    if flag.detail.is_empty() {
        format!("{} {what}.", flag.what)
    } else {
        format!("{} {what} ({}).", flag.what, flag.detail)
    }
}
