//! What may be said of an attempt, and when: from the end of its agent to its completion.

use super::{Broken, Rule};
use crate::event::Verdict;
use crate::ids::{Attempt, Iteration, TaskId};
use crate::policy::OnTouch;
use crate::state::{Loop, OpenIteration, Stage};
use crate::verdict::checks_for;

pub(super) fn check_fence(
    before: &Loop,
    iteration: Iteration,
    attempt: Attempt,
    stage: Stage,
) -> Option<Broken> {
    if before.open.is_empty() {
        return Some((Rule::FenceOpen, format!("no iteration {iteration} under way")));
    }
    let Some(open) = before.open.get(iteration).filter(|open| open.attempt == attempt) else {
        let message = format!("result of a stale attempt: iteration {iteration}, attempt {attempt}");
        return Some((Rule::FenceFresh, message));
    };
    (open.stage != stage)
        .then(|| (Rule::FenceStage, format!("iteration {iteration} is in {:?}, not {stage:?}", open.stage)))
}

pub(super) fn check_evidence(before: &Loop, iteration: Iteration) -> Option<Broken> {
    let taken = before.open.get(iteration).is_some_and(|open| open.tree_taken);
    (before.git && !taken).then(|| (Rule::CheckedTree, "checked before its tree was taken".to_owned()))
}

pub(super) fn check(before: &Loop, iteration: Iteration, verdict: &Verdict) -> Option<Broken> {
    let open = before.open.get(iteration)?;
    match verdict {
        Verdict::Unavailable { trouble, .. } => (open.trouble.as_ref() != Some(trouble)).then(|| {
            (Rule::UnavailableSaid, "an agent is called unavailable that did not say so".to_owned())
        }),
        Verdict::HandedOver { trigger } => {
            let called = open.handoff.as_ref().is_some_and(|handoff| handoff.trigger == *trigger);
            (!called)
                .then(|| (Rule::HandoffCalledFor, "handed over although nothing called for it".to_owned()))
        }
        Verdict::Accepted { verified } => check_accepted(before, open, *verified),
        Verdict::Refuted { .. }
        | Verdict::Unclaimed
        | Verdict::Errored { .. }
        | Verdict::Asked
        | Verdict::Held { .. } => None,
    }
}

fn check_accepted(before: &Loop, open: &OpenIteration, verified: bool) -> Option<Broken> {
    if before.git && !open.tree_taken {
        return Some((Rule::AcceptedTree, "accepted before its tree was taken".to_owned()));
    }
    // An error outweighs whatever was claimed.
    if open.error.is_some() || open.evidence.iter().any(|evidence| !evidence.passed()) {
        return Some((Rule::AcceptedEvidence, "accepted against the evidence".to_owned()));
    }
    if open.claim.is_none() && !before.policy.checks.complete_without_claim {
        return Some((Rule::AcceptedClaim, "accepted without a claim".to_owned()));
    }
    let wanted = checks_for(&before.policy, before.spec_of(open)?);
    let missing = wanted.iter().find(|check| {
        !open.evidence.iter().any(|seen| seen.command == check.command && seen.name == check.name)
    });
    if let Some(missing) = missing {
        return Some((Rule::AcceptedChecks, format!("accepted without the check \"{}\"", missing.name)));
    }
    if let Some(problem) = check_former(before, open) {
        return Some(problem);
    }
    // Where nothing was changed, or nothing was run, green checks may say nothing of the task; earlier versions
    // took them for evidence.
    let unchanged = open.inspection.as_ref().is_some_and(|seen| seen.changed_total == 0);
    let says_something = !unchanged && !open.ran_nothing();
    let is_wrong = if verified { !open.is_witnessed() } else { open.is_witnessed() && says_something };
    is_wrong.then(|| (Rule::VerifiedByEvidence, "verified must mean that there is evidence".to_owned()))
}

/// Known independently of how it is decided: an approval is a line that a person has seen.
fn check_former(before: &Loop, open: &OpenIteration) -> Option<Broken> {
    let seen = open.inspection.as_ref()?;
    let redefined: Vec<&str> =
        seen.redefined.iter().filter(|change| !change.product).map(|change| change.path.as_str()).collect();
    let approved = before.task(&open.task).is_some_and(|entry| {
        entry.approved.iter().any(|line| redefined.iter().all(|path| line.contains(path)))
    });
    if redefined.is_empty() || approved || before.policy.protect.on_check_touch == OnTouch::Warn {
        return None;
    }
    let missing = seen.former_checks.len() > open.former_evidence.len();
    let failed = open.former_evidence.iter().any(|evidence| !evidence.passed());
    (missing || failed).then(|| {
        (Rule::AcceptedFormer, format!("accepted against the former definition of {}", redefined.join(", ")))
    })
}

pub(super) fn check_landing(
    before: &Loop,
    iteration: Iteration,
    attempt: Attempt,
    rule: Rule,
) -> Option<Broken> {
    let fits = before
        .open
        .get(iteration)
        .is_some_and(|open| open.attempt == attempt && matches!(open.stage, Stage::Landing { .. }));
    (!fits).then(|| (rule, format!("iteration {iteration} was not accepted")))
}

pub(super) fn check_completion(
    before: &Loop,
    iteration: Iteration,
    task: &TaskId,
    attempt: Attempt,
    verified: bool,
) -> Option<Broken> {
    if let Some(problem) = check_landing(before, iteration, attempt, Rule::CompletedAccepted) {
        return Some(problem);
    }
    let open = before.open.get(iteration)?;
    if open.task != *task {
        return Some((Rule::CompletedTask, format!("iteration {iteration} is about {}", open.task)));
    }
    (open.stage != Stage::Landing { verified })
        .then(|| (Rule::CompletedAsJudged, "verified differs from the verdict".to_owned()))
}
