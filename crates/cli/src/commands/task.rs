//! `wiggum task`: reads and edits the backlog file, safely beside a running loop and other editors.

use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;
use wiggum_backlog::{Backlog, EditError, NewTask, Position, generate_task_id};
use wiggum_core::decide::why;
use wiggum_core::event::Request;
use wiggum_core::ids::TaskId;
use wiggum_core::state::Loop;
use wiggum_core::task::{Criterion, FileStatus, Task};
use wiggum_core::tasks::TaskState;
use wiggum_engine::backlog_file::BacklogError;

use crate::args::{StatusWord, TaskAdd, TaskCommand, TaskFile};
use crate::commands::backlog::{OpenBacklog, OverLoop, broken};
use crate::commands::describe::{counted, one_line};
use crate::commands::requests::{self, Settled, unknown_task};
use crate::commands::{print_json, refuse_inside_agent};
use crate::failure::{Failure, USAGE};
use crate::term::{self, Style};

pub(crate) fn task(command: &TaskCommand) -> Result<ExitCode, Failure> {
    match command {
        TaskCommand::List(file) => list(file),
        TaskCommand::Add(add) => self::add(add),
        TaskCommand::SetStatus { id, status, file } => set_status(id, *status, file),
        TaskCommand::Move { id, first, last: _, before, after, file } => {
            let position = match (first, before, after) {
                (true, ..) => Position::First,
                (false, Some(other), _) => Position::Before(other.clone()),
                (false, None, Some(other)) => Position::After(other.clone()),
                (false, None, None) => Position::Last,
            };
            edit(file, id, "moved", |backlog| backlog.move_task(id, position))
        }
        TaskCommand::Delete { id, file } => delete(id, file),
        TaskCommand::Validate(file) => validate(file),
    }
}

#[derive(Serialize)]
struct Listed<'a> {
    id: &'a str,
    title: &'a str,
    status: &'static str,
    /// What it waits on, or why it is where it is.
    why: String,
    depends_on: &'a [TaskId],
}

fn list(args: &TaskFile) -> Result<ExitCode, Failure> {
    let open = OpenBacklog::find(args.backlog.as_deref())?;
    let state = open.live_state()?;
    let backlog = open.backlog()?;
    let now = Timestamp::now();
    let listed: Vec<Listed<'_>> =
        backlog.tasks().iter().map(|task| listed(task, backlog, state.as_ref(), now)).collect();
    if args.output.json {
        return print_json(&listed);
    }
    Ok(term::print(&table(&listed, Style::for_stdout())))
}

fn listed<'a>(task: &'a Task, backlog: &Backlog, state: Option<&Loop>, now: Timestamp) -> Listed<'a> {
    let live = state.and_then(|state| Some((state.task(&task.id)?, why(state, &task.id, now)?)));
    let (status, why) = match live {
        Some((entry, why)) => (entry.state.name(), why.to_string()),
        None => (task.status.name(), waits_on(task, backlog)),
    };
    Listed { id: task.id.as_str(), title: &task.title, status, why, depends_on: &task.depends_on }
}

fn waits_on(task: &Task, backlog: &Backlog) -> String {
    match task.status {
        FileStatus::Open => {}
        FileStatus::Done | FileStatus::Failed | FileStatus::Skipped => return task.status.name().to_owned(),
    }
    let unmet = task.depends_on.iter().filter_map(|id| {
        let other = backlog.task(id.as_str()).filter(|other| other.status != FileStatus::Done)?;
        Some(format!("{} ({})", other.id, other.status.name()))
    });
    let unmet: Vec<String> = unmet.collect();
    if unmet.is_empty() { "ready".to_owned() } else { format!("waits on {}", unmet.join(", ")) }
}

fn table(listed: &[Listed<'_>], style: Style) -> String {
    let width = listed.iter().map(|task| task.id.chars().count()).max().unwrap_or(0).min(24);
    let line = |task: &Listed<'_>| {
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
        format!("{:width$}  {status}  {}{waits}\n", one_line(task.id), one_line(task.title))
    };
    listed.iter().map(line).collect()
}

fn add(args: &TaskAdd) -> Result<ExitCode, Failure> {
    let mut open = OpenBacklog::locate(args.file.backlog.as_deref())?;
    let max = open.config.policy.limits.max_tasks;
    let wanted = NewTask {
        id: args.id.clone().unwrap_or_default(),
        title: args.title.clone().unwrap_or_default(),
        description: args.description.clone(),
        criteria: args.criterion.iter().map(|text| Criterion { text: text.clone(), check: None }).collect(),
        depends_on: args.depends_on.clone(),
        priority: args.priority,
        ..NewTask::default()
    };
    open.prepare_editing()?;
    let id = open
        .file
        .edit(|backlog| {
            let mut task = wanted;
            if args.id.is_none() {
                task.id = generate_task_id(backlog, prefix(backlog));
            }
            backlog.add(&task, Some(max)).map(|()| task.id)
        })
        .map_err(refused)?;
    done(&args.file, &id, "added", &open.name)
}

/// What comes before the number in the ids of this backlog.
fn prefix(backlog: &Backlog) -> &str {
    let numbered = backlog.tasks().iter().rev().map(|task| task.id.as_str());
    let mut prefixes = numbered
        .filter(|id| id.ends_with(|c: char| c.is_ascii_digit()))
        .map(|id| id.trim_end_matches(|c: char| c.is_ascii_digit()));
    prefixes.next().unwrap_or_default()
}

fn set_status(id: &str, word: StatusWord, args: &TaskFile) -> Result<ExitCode, Failure> {
    refuse_inside_agent()?;
    let status = match word {
        StatusWord::Open => FileStatus::Open,
        StatusWord::Done => FileStatus::Done,
        StatusWord::Failed => FileStatus::Failed,
        StatusWord::Skipped => FileStatus::Skipped,
    };
    let open = OpenBacklog::locate(args.backlog.as_deref())?;
    if let Some(OverLoop { mut loops, record, alive: true }) = open.loop_over()? {
        // The engine is the one who writes statuses while it runs.
        let task = requests::require_task(&loops.state(record.id)?, id)?;
        let request = Request::SetStatus { task, status };
        let settled = Settled { silence: "set", takes_time: false };
        return requests::send(&mut loops, &record, &request, &settled, args.output.json);
    }
    let change = format!("set to {}", status.name());
    edit(args, id, &change, |backlog| {
        if !backlog.dialect().can_say(status) && backlog.task(id).is_some() {
            let (id, what) = (id.to_owned(), "status `failed`");
            return Err(EditError::NotExpressible { id, what, dialect: backlog.dialect().name() });
        }
        backlog.set_status(id, status)
    })
}

fn delete(id: &str, args: &TaskFile) -> Result<ExitCode, Failure> {
    refuse_inside_agent()?;
    let open = OpenBacklog::locate(args.backlog.as_deref())?;
    let running = open.live_state()?.is_some_and(|state| {
        state.task(&TaskId::from(id)).is_some_and(|entry| entry.state == TaskState::Running)
    });
    if running {
        return Err(Failure::usage(format!("`{id}` is being worked on"))
            .hint(format!("stop that first: `wiggum skip {id}`")));
    }
    edit(args, id, "deleted", |backlog| backlog.delete(id))
}

/// Changes one task in the newest version of the file, alone.
fn edit(
    args: &TaskFile,
    id: &str,
    change: &str,
    by: impl FnOnce(&mut Backlog) -> Result<(), EditError>,
) -> Result<ExitCode, Failure> {
    let mut open = OpenBacklog::locate(args.backlog.as_deref())?;
    open.prepare_editing()?;
    let result = open.file.edit(by);
    if let Err(BacklogError::Edit(EditError::UnknownTask { id, .. })) = &result {
        open.file.refresh().map_err(broken)?;
        let known: Vec<&str> = open.backlog()?.tasks().iter().map(|task| task.id.as_str()).collect();
        return Err(unknown_task(id, &known));
    }
    result.map_err(refused)?;
    done(args, id, change, &open.name)
}

fn refused(error: BacklogError) -> Failure {
    match error {
        BacklogError::Edit(EditError::Full { .. }) => {
            Failure::from(error).hint("raise `max_tasks` under [limits] in wiggum.toml")
        }
        BacklogError::Edit(_)
        | BacklogError::Read { .. }
        | BacklogError::Write { .. }
        | BacklogError::Lock { .. } => Failure::from(error),
        BacklogError::Problems(_) => broken(error),
    }
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
}

#[derive(Serialize)]
struct Problem {
    file: String,
    line: usize,
    message: String,
}

fn validate(args: &TaskFile) -> Result<ExitCode, Failure> {
    let mut open = OpenBacklog::locate(args.backlog.as_deref())?;
    let found = match open.file.refresh() {
        Ok(_) => open.backlog()?.unsupported(),
        Err(BacklogError::Problems(problems)) => problems.0,
        Err(error) => return Err(error.into()),
    };
    let tasks = open.file.backlog().map(|backlog| backlog.tasks().len());
    let code = if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(USAGE) };
    if args.output.json {
        let problem = |found: wiggum_backlog::Problem| Problem {
            file: found.file,
            line: found.line,
            message: found.message,
        };
        let problems = found.into_iter().map(problem).collect();
        print_json(&Validated { backlog: open.name, tasks, problems })?;
        return Ok(code);
    }
    let lines: String = found.iter().map(|problem| format!("{problem}\n")).collect();
    match tasks {
        Some(tasks) if found.is_empty() => {
            term::print(&format!("{}, no problems ({})\n", counted(tasks, "task"), open.name));
        }
        Some(_) | None => drop(term::print(&lines)),
    }
    Ok(code)
}
