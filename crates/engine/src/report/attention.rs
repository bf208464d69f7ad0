//! What a person should look at after a run, the most important first.

use serde::Serialize;
use wiggum_core::event::FlagKind;

use super::Report;

/// Something worth a look, and where to look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attention {
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

/// A task that took so many attempts says something about the task.
const MANY_ATTEMPTS: u32 = 4;

pub(super) fn of(report: &Report) -> Vec<Attention> {
    let mut found = Vec::new();
    let mut note = |kind, task: Option<&str>, what: String, hint: String| {
        found.push(Attention { kind, task: task.map(str::to_owned), what, hint });
    };
    for question in &report.status.questions {
        let hint = format!("wiggum answer {} 1", question.id);
        note("question", question.task.as_deref(), question.summary.clone(), hint);
    }
    let is_asked_about =
        |id: &str| report.status.questions.iter().any(|question| question.task.as_deref() == Some(id));
    for task in report.tasks.iter().filter(|task| task.state == "failed" && !is_asked_about(&task.id)) {
        note(
            "failed",
            Some(&task.id),
            task.why.clone(),
            format!("wiggum show {0}; wiggum retry {0}", task.id),
        );
    }
    for (task, attempt) in report.attempts() {
        for flag in attempt.flags.iter().filter(|flag| is_grave(flag.kind)) {
            let what = format!("{} (iteration {})", flag_words(flag.kind, &flag.what), attempt.iteration);
            note("flag", Some(&task.id), what, format!("wiggum show {}", task.id));
        }
    }
    for task in report.tasks.iter().filter(|task| task.state == "done" && !task.verified) {
        let what = "done, but nothing was checked".to_owned();
        note("unverified", Some(&task.id), what, "set a verify command: docs/checks.md".to_owned());
    }
    for task in report.tasks.iter().filter(|task| task.state == "done" && task.attempts >= MANY_ATTEMPTS) {
        let what = format!("took {} attempts", task.attempts);
        note("hard", Some(&task.id), what, format!("wiggum show {}", task.id));
    }
    for task in report.tasks.iter().filter(|task| task.state == "skipped") {
        note("skipped", Some(&task.id), "skipped".to_owned(), format!("wiggum retry {}", task.id));
    }
    found
}

/// What was put back and can do no harm any more is in the attempt's own account.
fn is_grave(kind: FlagKind) -> bool {
    match kind {
        FlagKind::ProtectedPath
        | FlagKind::CheckTouched
        | FlagKind::WeakenedTests
        | FlagKind::HooksTouched
        | FlagKind::StateTouched => true,
        FlagKind::BacklogTouched
        | FlagKind::BranchSwitched
        | FlagKind::AgentCommitted
        | FlagKind::CheckLeftovers => false,
    }
}

pub(super) fn flag_words(kind: FlagKind, what: &str) -> String {
    let words = match kind {
        FlagKind::ProtectedPath => "a protected path was changed",
        FlagKind::CheckTouched => "a file that judges the work was changed",
        FlagKind::WeakenedTests => "tests became weaker",
        FlagKind::BacklogTouched => "the agent wrote to the backlog",
        FlagKind::BranchSwitched => "the agent switched branches",
        FlagKind::HooksTouched => "git's hooks or configuration were changed and put back",
        FlagKind::StateTouched => "the loop's own files were touched",
        FlagKind::AgentCommitted => "the agent committed by itself",
        FlagKind::CheckLeftovers => "a check left files behind",
    };
    format!("{words}: {what}")
}
