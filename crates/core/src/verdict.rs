//! Judging an attempt: the agent's claim against what the engine saw itself.

use crate::event::{Evidence, Flag, FlagKind, Trouble, Verdict};
use crate::handoff::Trigger;
use crate::mutant::{Mutant, planted};
use crate::policy::{OnTouch, Policy, Protect};
use crate::state::{Loop, OpenIteration};
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
    let verify = policy.checks.verify.iter().chain(&task.verify);
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
        && let Some(trouble) = open.trouble.as_ref().filter(|trouble| trouble.makes_unavailable())
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
    if !failed.is_empty() && !planted(Mutant::AcceptsRefuted) {
        return if open.claim.is_some() { Verdict::Refuted { reasons: failed } } else { Verdict::Unclaimed };
    }
    let is_approved =
        |reason: &str| state.task(&open.task).is_some_and(|entry| entry.approved.contains(reason));
    judge_flags(&state.policy.protect, &open.flags, is_approved)
        .unwrap_or(Verdict::Accepted { verified: open.is_witnessed() || planted(Mutant::CallsVerified) })
}

/// What the policy says of a flag.
pub fn severity(protect: &Protect, kind: FlagKind) -> OnTouch {
    match kind {
        FlagKind::ProtectedPath => protect.on_touch,
        FlagKind::CheckTouched => protect.on_check_touch,
        FlagKind::WeakenedTests => protect.on_weakened_tests,
        // These were put back already, or change nothing that is judged.
        FlagKind::BacklogTouched
        | FlagKind::BranchSwitched
        | FlagKind::HooksTouched
        | FlagKind::StateTouched
        | FlagKind::AgentCommitted
        | FlagKind::CheckLeftovers => OnTouch::Warn,
    }
}

fn judge_flags(protect: &Protect, flags: &[Flag], is_approved: impl Fn(&str) -> bool) -> Option<Verdict> {
    let with = |wanted: OnTouch| -> Vec<String> {
        let flags = flags.iter().filter(|flag| severity(protect, flag.kind) == wanted);
        flags.map(describe_flag).filter(|reason| !is_approved(reason)).collect()
    };
    let refused = with(OnTouch::Refuse);
    if !refused.is_empty() {
        return Some(Verdict::Refuted { reasons: refused });
    }
    let asked = with(OnTouch::Ask);
    (!asked.is_empty()).then_some(Verdict::Held { reasons: asked })
}

fn describe_failure(evidence: &Evidence) -> String {
    format!(
        "The check \"{}\" (`{}`) failed: {}.\n{}",
        evidence.name, evidence.command, evidence.exit, evidence.output.excerpt
    )
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
        FlagKind::CheckLeftovers => "was left behind by a check",
    };
    if flag.detail.is_empty() {
        format!("{} {what}.", flag.what)
    } else {
        format!("{} {what} ({}).", flag.what, flag.detail)
    }
}
