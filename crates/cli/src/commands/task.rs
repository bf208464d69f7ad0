//! `wiggum task`: reads and edits the backlog file, safely beside a running loop and other editors.

use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;
use wiggum_backlog::{EditError, NewTask, Position, TaskChange};
use wiggum_core::admit::Refusal;
use wiggum_core::definition::Definition;
use wiggum_core::task::{Criterion, FileStatus};
use wiggum_core::verdict::own_checks;
use wiggum_engine::backlog_file::BacklogError;
use wiggum_engine::desk::DeskError;
use wiggum_engine::desk::backlog::{Listed, OpenBacklog, StatusChange};
use wiggum_engine::former::FilesNow;
use wiggum_engine::words::{counted, one_line};

use crate::args::{StatusWord, TaskAdd, TaskCommand, TaskEdit, TaskFile, TaskLook};
use crate::commands::backlog::{self, broken};
use crate::commands::{is_inside_agent, print_json, refuse_inside_agent, requests, run};
use crate::failure::{Failure, USAGE};
use crate::term::{self, Style};

pub(crate) fn task(command: &TaskCommand) -> Result<ExitCode, Failure> {
    match command {
        TaskCommand::List(look) => list(look),
        TaskCommand::Add(add) => self::add(add),
        TaskCommand::SetStatus { id, status, file } => set_status(id, *status, file),
        TaskCommand::Move { id, first, last: _, before, after, file } => {
            let position = match (first, before, after) {
                (true, ..) => Position::First,
                (false, Some(other), _) => Position::Before(other.clone()),
                (false, None, Some(other)) => Position::After(other.clone()),
                (false, None, None) => Position::Last,
            };
            edit(file, id, "moved", |open| open.move_task(id, position))
        }
        TaskCommand::Edit(args) => change(args),
        TaskCommand::Delete { id, file } => {
            refuse_inside_agent()?;
            edit(file, id, "deleted", |open| open.delete(id, &requests::who()))
        }
        TaskCommand::Validate(look) => validate(look),
        TaskCommand::Explain(look) => explain(look),
    }
}

fn list(args: &TaskLook) -> Result<ExitCode, Failure> {
    let TaskLook { file, of: args } = args;
    let listed = backlog::find(file.as_deref().or(args.backlog.as_deref()))?.list(Timestamp::now())?;
    if args.output.json {
        return print_json(&listed);
    }
    if listed.is_empty() {
        return Ok(term::print("no tasks yet\n"));
    }
    Ok(term::print(&table(&listed, Style::for_stdout())))
}

fn table(listed: &[Listed], style: Style) -> String {
    let width = listed.iter().map(|task| task.id.chars().count()).max().unwrap_or(0).min(24);
    let line = |task: &Listed| {
        let status = format!("{:8}", task.status);
        let status = match task.status {
            "done" => style.green(&status),
            "failed" => style.red(&status),
            "running" | "parked" => style.yellow(&status),
            _ => status,
        };
        let waits = if task.why == task.status || task.why == "ready" {
            String::new()
        } else {
            style.dim(&format!("  ({})", one_line(&task.why)))
        };
        format!("{:width$}  {status}  {}{waits}\n", one_line(&task.id), one_line(&task.title))
    };
    listed.iter().map(line).collect()
}

fn add(args: &TaskAdd) -> Result<ExitCode, Failure> {
    let mut open = backlog::locate(args.file.backlog.as_deref())?.for_agent(is_inside_agent());
    let new = NewTask {
        id: args.id.clone().unwrap_or_default(),
        title: args.title.clone().unwrap_or_default(),
        description: args.description.clone(),
        criteria: args.criterion.iter().map(|text| Criterion { text: text.clone(), check: None }).collect(),
        depends_on: args.depends_on.clone(),
        priority: args.priority,
        ..NewTask::default()
    };
    let id = open.add(new, &requests::who()).map_err(refused)?;
    done(&args.file, &id, "added", &open.name)
}

fn set_status(id: &str, word: StatusWord, args: &TaskFile) -> Result<ExitCode, Failure> {
    refuse_inside_agent()?;
    let status = match word {
        StatusWord::Open => FileStatus::Open,
        StatusWord::Done => FileStatus::Done,
        StatusWord::Failed => FileStatus::Failed,
        StatusWord::Skipped => FileStatus::Skipped,
    };
    let mut open = backlog::locate(args.backlog.as_deref())?;
    match open.set_status(id, status, &requests::who()).map_err(refused)? {
        StatusChange::Asked { record, request, reply } => {
            requests::show(&record, &request, &reply, args.output.json)
        }
        StatusChange::Written => done(args, id, &format!("set to {}", status.name()), &open.name),
    }
}

fn change(args: &TaskEdit) -> Result<ExitCode, Failure> {
    refuse_inside_agent()?;
    let TaskEdit { id, title, description, priority, depends_on, no_dependencies, file } = args;
    let change = TaskChange {
        title: title.clone(),
        description: description.clone(),
        priority: *priority,
        depends_on: (*no_dependencies || !depends_on.is_empty()).then(|| depends_on.clone()),
    };
    edit(file, id, "changed", |open| open.change(id, change))
}

fn edit(
    args: &TaskFile,
    id: &str,
    change: &str,
    by: impl FnOnce(&mut OpenBacklog) -> Result<(), DeskError>,
) -> Result<ExitCode, Failure> {
    let mut open = backlog::locate(args.backlog.as_deref())?;
    by(&mut open).map_err(refused)?;
    done(args, id, change, &open.name)
}

fn refused(error: DeskError) -> Failure {
    match error {
        DeskError::Backlog(BacklogError::Edit(EditError::Refused(refused))) => {
            let hint = hint(&refused.why).map(str::to_owned);
            Failure { hint, ..Failure::usage(refused.to_string()) }
        }
        DeskError::Backlog(error @ BacklogError::Problems(_)) => broken(error),
        other => other.into(),
    }
}

/// What to do about a task that was not admitted.
fn hint(why: &Refusal) -> Option<&'static str> {
    Some(match why {
        Refusal::Full { .. } => "raise `max_tasks` under [limits] in wiggum.toml",
        Refusal::IdTaken => {
            "leave `--id` out for the next that is free, or change the task: `wiggum task edit`"
        }
        Refusal::SaysTheSame { .. } => "say what is different about it, or give it an id of its own: `--id`",
        Refusal::UnknownDependency { .. } => {
            "see `wiggum task list`; what it depends on has to be added first"
        }
        Refusal::CheckTaken | Refusal::TakenOut => "say what is wrong with it and ask a person",
        Refusal::NoId
        | Refusal::Twice
        | Refusal::UnknownTask
        | Refusal::Cycle { .. }
        | Refusal::Rewords { .. }
        | Refusal::Completed => {
            return None;
        }
    })
}

#[derive(Serialize)]
struct Edited<'a> {
    id: &'a str,
    change: &'a str,
    backlog: &'a str,
}

fn done(args: &TaskFile, id: &str, change: &str, backlog: &str) -> Result<ExitCode, Failure> {
    if args.output.json {
        return print_json(&Edited { id, change, backlog });
    }
    Ok(term::print(&format!("{} {change} ({backlog})\n", one_line(id))))
}

#[derive(Serialize)]
struct Validated {
    backlog: String,
    tasks: Option<usize>,
    problems: Vec<Problem>,
    /// What is read in a way that may not be meant.
    notices: Vec<Problem>,
    /// The checks of tasks, and what defines each.
    checks: Vec<DefinedCheck>,
}

#[derive(Serialize)]
struct Problem {
    file: String,
    line: usize,
    message: String,
}

/// A check of a task, and what defines it.
#[derive(Serialize)]
struct DefinedCheck {
    task: String,
    command: String,
    defined_by: Vec<String>,
}

impl std::fmt::Display for DefinedCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = if self.defined_by.is_empty() {
            "the command alone".to_owned()
        } else {
            self.defined_by.join("; ")
        };
        writeln!(f, "{} is checked by `{}`, defined by: {parts}", self.task, self.command)
    }
}

fn defined_checks(open: &OpenBacklog) -> Result<Vec<DefinedCheck>, Failure> {
    let files = FilesNow::new(run::workspace()?);
    let tasks = open.file.backlog().map(wiggum_backlog::Backlog::tasks).unwrap_or_default();
    let each =
        tasks.iter().flat_map(|task| own_checks(task).into_iter().map(move |check| (task, check.command)));
    Ok(each
        .map(|(task, command)| DefinedCheck {
            task: task.id.to_string(),
            defined_by: Definition::of([command.as_str()], &files).describe(),
            command,
        })
        .collect())
}

/// How a backlog is understood.
#[derive(Serialize)]
struct Explained {
    backlog: String,
    format: &'static str,
    unit: &'static str,
    order: &'static str,
    tasks: usize,
    open: usize,
    done: usize,
    skipped: usize,
    failed: usize,
    /// What stands there and is no task, or is not run.
    notices: Vec<String>,
    next: Option<String>,
}

fn explain(args: &TaskLook) -> Result<ExitCode, Failure> {
    let TaskLook { file, of: args } = args;
    let mut open = backlog::find(file.as_deref().or(args.backlog.as_deref()))?;
    let listed = open.list(Timestamp::now())?;
    let not_run = open.unsupported()?;
    let Some(read) = open.file.backlog() else {
        return Err(Failure::other(format!("{} is not read", open.name)));
    };
    let count = |status| read.tasks().iter().filter(|task| task.status == status).count();
    let told = told_of(read);
    let notices = not_run.iter().chain(&told).map(ToString::to_string).chain(read.left_out());
    let explained = Explained {
        backlog: open.name.clone(),
        format: read.dialect().name(),
        unit: read.dialect().unit(),
        order: read.dialect().order(),
        tasks: read.tasks().len(),
        open: count(FileStatus::Open),
        done: count(FileStatus::Done),
        skipped: count(FileStatus::Skipped),
        failed: count(FileStatus::Failed),
        notices: notices.collect(),
        next: listed
            .iter()
            .find(|task| task.why == "ready")
            .map(|task| format!("{}: {}", task.id, task.title)),
    };
    if args.output.json {
        return print_json(&explained);
    }
    let Explained { format, unit, order, tasks, open: left, done, skipped, failed, .. } = &explained;
    let mut text = format!("{}: {format}; {unit}\n", explained.backlog);
    text.push_str(&format!(
        "{}: {left} open, {done} done, {skipped} skipped, {failed} failed; taken {order}\n",
        counted(*tasks, "task")
    ));
    for notice in &explained.notices {
        text.push_str(&format!("note: {}\n", one_line(notice)));
    }
    match &explained.next {
        Some(next) => text.push_str(&format!("next is {}\n", one_line(next))),
        None if *left == 0 && *failed == 0 => text.push_str("nothing left to do\n"),
        None => text.push_str("no task is ready\n"),
    }
    Ok(term::print(&text))
}

/// What is read in a way that its writer may not have meant.
fn told_of(backlog: &wiggum_backlog::Backlog) -> Vec<wiggum_backlog::Problem> {
    backlog.unknown_marks().into_iter().chain(backlog.remarks()).collect()
}

fn validate(args: &TaskLook) -> Result<ExitCode, Failure> {
    let TaskLook { file, of: args } = args;
    let mut open = backlog::locate(file.as_deref().or(args.backlog.as_deref()))?;
    let found = match open.read() {
        Ok(()) => open.unsupported()?,
        Err(DeskError::Backlog(BacklogError::Problems(problems))) => problems.0,
        Err(error) => return Err(error.into()),
    };
    let tasks = open.file.backlog().map(|backlog| backlog.tasks().len());
    let told = open.file.backlog().map(told_of).unwrap_or_default();
    let code = if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(USAGE) };
    if args.output.json {
        let problem = |found: wiggum_backlog::Problem| Problem {
            file: found.file,
            line: found.line,
            message: found.message,
        };
        let problems = found.into_iter().map(problem).collect();
        let notices = told.into_iter().map(problem).collect();
        let checks = defined_checks(&open)?;
        print_json(&Validated { backlog: open.name, tasks, problems, notices, checks })?;
        return Ok(code);
    }
    let lines: String = found.iter().map(|problem| format!("{problem}\n")).collect();
    match tasks {
        Some(tasks) if found.is_empty() => {
            let mut text = format!("{}, no problems ({})\n", counted(tasks, "task"), open.name);
            for notice in told {
                text.push_str(&format!("note: {notice}\n"));
            }
            for check in defined_checks(&open)? {
                text.push_str(&check.to_string());
            }
            term::print(&text);
        }
        Some(_) | None => drop(term::print(&lines)),
    }
    Ok(code)
}
