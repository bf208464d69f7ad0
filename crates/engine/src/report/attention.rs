//! What a person should look at after a run, the most important first.

use serde::Serialize;
use wiggum_core::event::FlagKind;

use super::{Report, TaskReport};
use crate::Sandbox;
use crate::desk::inbox::how_to_answer;

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

/// What was done before the loop came needs no proof of it, nor what a person says.
fn is_unchecked(task: &TaskReport) -> bool {
    task.state == "done" && !task.verified && !task.by_hand && task.attempts > 0
}

pub(super) fn of(report: &Report, answered: &[String]) -> Vec<Attention> {
    let mut found = Vec::new();
    let mut note = |kind, task: Option<&str>, what: String, hint: String| {
        found.push(Attention { kind, task: task.map(str::to_owned), what, hint });
    };
    for question in report.status.questions.iter().filter(|question| !answered.contains(&question.id)) {
        let hint = how_to_answer(question, None);
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
    if is_unconfined(&report.sandbox) {
        let what = format!("agents ran without a sandbox ({})", report.sandbox);
        note("sandbox", None, what, "install bubblewrap, or use a kernel with Landlock".to_owned());
    }
    if let Some(commit) = &report.left_aside {
        let what =
            "your uncommitted changes conflict with the new commits and are not in the work tree".to_owned();
        note("set-aside", None, what, format!("git stash apply {commit}"));
    }
    if let Some(doubts) = &report.clean {
        let hint = "let git have what the checks need, or name `setup` and `copy` under [workspace]";
        note("clean", None, doubts.clone(), hint.to_owned());
    }
    for (task, attempt) in report.attempts() {
        for flag in attempt.flags.iter().filter(|flag| is_grave(flag.kind)) {
            let words = flag_words(flag.kind, &flag.what);
            let words = if flag.detail.is_empty() { words } else { format!("{words}: {}", flag.detail) };
            let what = format!("{words} (iteration {})", attempt.iteration);
            note("flag", Some(&task.id), what, format!("wiggum show {}", task.id));
        }
    }
    for task in report.tasks.iter().filter(|task| is_unchecked(task)) {
        let last = task.history.last();
        let (what, hint) = match last.filter(|attempt| !attempt.evidence.is_empty()) {
            None => {
                ("done, but nothing was checked", "wiggum run --verify COMMAND checks what comes".to_owned())
            }
            Some(attempt) if attempt.changed == 0 => (
                "done without any change: that its checks pass says nothing",
                format!("wiggum show {}", task.id),
            ),
            Some(_) => (
                "done, but its checks cannot tell: they verified nothing of it",
                format!("wiggum show {}", task.id),
            ),
        };
        note("unverified", Some(&task.id), what.to_owned(), hint);
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

/// Could none be had? Whoever configured that knows it.
fn is_unconfined(sandbox: &str) -> bool {
    sandbox.strip_prefix(Sandbox::NONE).is_some_and(|rest| !rest.starts_with(Sandbox::AS_CONFIGURED))
}

/// What every agent may do, and what was put back and can do no harm any more, is in the attempt's own account. Words
/// and tasks that an agent wrote into the backlog stay there.
fn is_grave(kind: FlagKind) -> bool {
    match kind {
        FlagKind::ProtectedPath
        | FlagKind::CheckTouched
        | FlagKind::ConfigTouched
        | FlagKind::WeakenedTests
        | FlagKind::HooksTouched
        | FlagKind::StateTouched
        | FlagKind::CheckRedefined
        | FlagKind::CheckedProduct
        | FlagKind::SubmoduleUncommitted
        | FlagKind::NestedRepository
        | FlagKind::SpecialFile
        | FlagKind::AsksIfTested
        | FlagKind::LeadsOut
        | FlagKind::BacklogTouched
        | FlagKind::BranchSwitched => true,
        FlagKind::AgentCommitted
        | FlagKind::CheckLeftovers
        | FlagKind::IgnoreRules
        | FlagKind::NotesChanged => false,
    }
}

pub(super) fn flag_words(kind: FlagKind, what: &str) -> String {
    let words = match kind {
        FlagKind::ProtectedPath => "a protected path was changed",
        FlagKind::CheckTouched => "a file that judges the work was changed",
        FlagKind::WeakenedTests => "tests became weaker",
        FlagKind::BacklogTouched => "the agent wrote to the backlog",
        FlagKind::BranchSwitched => "the branch was switched during an attempt",
        FlagKind::HooksTouched => "git's hooks or configuration were changed and put back",
        FlagKind::StateTouched => "the loop's own files were touched",
        FlagKind::AgentCommitted => "the agent committed by itself",
        FlagKind::IgnoreRules => "the rules of what git ignores were changed",
        FlagKind::SpecialFile => "a pipe, socket or device lay in the place of a file",
        FlagKind::NestedRepository => "a repository inside the work tree became plain files",
        FlagKind::SubmoduleUncommitted => "files inside a submodule are not committed",
        FlagKind::CheckLeftovers => "a check left files behind",
        FlagKind::ConfigTouched => "a file was changed that is obeyed later",
        FlagKind::NotesChanged => "notes for later agents were changed",
        FlagKind::AsksIfTested => "the product asks whether it is being tested",
        FlagKind::LeadsOut => "a link leads out of the repository",
        FlagKind::CheckRedefined => "what defines a check was changed",
        FlagKind::CheckedProduct => "a file that a check runs was changed",
    };
    format!("{words}: {what}")
}
