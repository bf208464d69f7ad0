//! Reads the files named and prints a line for each: its format, and whether it becomes work, is refused or is
//! empty. Every task is marked as done and open again, and whatever else that changes is named.
#![allow(clippy::print_stdout)]

use wiggum_backlog::Backlog;
use wiggum_core::task::FileStatus;

fn main() {
    for path in std::env::args().skip(1) {
        let Ok(text) = std::fs::read_to_string(&path) else {
            println!("unread | {path}");
            continue;
        };
        println!("{} | {path}", verdict(&path, &text));
    }
}

fn verdict(path: &str, text: &str) -> String {
    let read = Backlog::parse(path, text).and_then(|backlog| backlog.recognised().map(|()| backlog));
    let backlog = match read {
        Ok(backlog) => backlog,
        Err(problems) => {
            let first = problems.0.first().map(|problem| format!("{}: {}", problem.line, problem.message));
            return format!("refused ({}) | {}", problems.0.len(), first.unwrap_or_default());
        }
    };
    let format = backlog.dialect().name();
    let count = |status| backlog.tasks().iter().filter(|task| task.status == status).count();
    let (open, all) = (count(FileStatus::Open) + count(FileStatus::Failed), backlog.tasks().len());
    let kind = match (all, open) {
        (0, _) => "empty",
        (_, 0) => "finished",
        (_, _) => "work",
    };
    let not_run = backlog.unsupported(&|_| false);
    let not_run =
        not_run.first().map_or(String::new(), |problem| format!("; {} not run: {problem}", not_run.len()));
    let harm = harm(&backlog).map_or(String::new(), |harm| format!("; HARM {harm}"));
    format!("{kind} | {format}, {open} of {all} open{not_run}{harm}")
}

/// What marking tasks changes beside the mark.
fn harm(before: &Backlog) -> Option<String> {
    let is_finished = |id: &wiggum_core::ids::TaskId| {
        before.task(id.as_str()).is_some_and(|task| task.status == FileStatus::Done)
    };
    // The parts of what is done are done with it, whatever they say themselves.
    let tasks = before.tasks().iter().filter(|task| !task.parent.as_ref().is_some_and(is_finished));
    for task in tasks.take(40) {
        let mut backlog = before.clone();
        let other = if task.status == FileStatus::Done { FileStatus::Open } else { FileStatus::Done };
        if let Err(error) = backlog.set_status(task.id.as_str(), other) {
            return Some(format!("{error}"));
        }
        let Ok(again) = backlog.reread(backlog.text().to_owned()) else {
            // A finished task may have waited on what is gone.
            if task.status == FileStatus::Done {
                continue;
            }
            return Some(format!("`{}` makes the file unreadable", task.id));
        };
        let differs = again.tasks().iter().find(|now| {
            let mut then = before.task(now.id.as_str()).cloned();
            if now.id == task.id {
                then.iter_mut().for_each(|then| then.status = other);
            }
            // What a task is made of is done with it.
            let is_part = now.parent.as_ref() == Some(&task.id);
            then.as_ref() != Some(now) && !is_part
        });
        if let Some(differs) = differs {
            return Some(format!("marking `{}` changes `{}`", task.id, differs.id));
        }
        let size = before.text().len().abs_diff(backlog.text().len());
        if size > 60 {
            return Some(format!("marking `{}` changes {size} bytes", task.id));
        }
    }
    None
}
