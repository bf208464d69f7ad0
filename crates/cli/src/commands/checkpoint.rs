//! `wiggum checkpoint`: the hashed summaries of a loop. Whatever is shown of one was compared with
//! its hash first.

use std::process::ExitCode;

use serde::Serialize;
use wiggum_agents::AgentEvent;
use wiggum_core::checkpoint::{Checkpoint, Group};
use wiggum_core::decide::Waiting;
use wiggum_core::event::{Envelope, Request};
use wiggum_core::state::Loop;
use wiggum_engine::checkpoints::{self, Damage, Kept};
use wiggum_engine::desk::post::Settled;
use wiggum_engine::error::chain;
use wiggum_engine::{Changes, Engine, Observer, Settings};
use wiggum_store::LoopRecord;

use crate::args::{CheckpointCommand, LoopArgs, RestoreArgs, WhichCheckpoint};
use crate::commands::loops::{self, Loops};
use crate::commands::requests::who;
use crate::commands::run::own_path;
use crate::commands::{print_json, refuse_inside_agent};
use crate::failure::Failure;
use crate::narrate::duration;
use crate::term::{self, Style};
use wiggum_engine::words::{counted, one_line, short};

pub(crate) fn checkpoint(command: &CheckpointCommand) -> Result<ExitCode, Failure> {
    match command {
        CheckpointCommand::Create(args) => create(args),
        CheckpointCommand::List(args) => list(args),
        CheckpointCommand::Show(args) => show(args),
        CheckpointCommand::Restore(args) => restore(args),
        CheckpointCommand::Verify(args) => verify(args),
    }
}

/// A checkpoint in a list.
#[derive(Serialize)]
struct Row {
    id: String,
    sha256: String,
    previous: Option<String>,
    seq: u64,
    at: String,
    iteration: u32,
    task: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    by: String,
    /// What is wrong with it, if anything is.
    #[serde(skip_serializing_if = "Option::is_none")]
    damage: Option<String>,
}

impl Row {
    fn of(kept: &Kept, read: Result<Checkpoint, Damage>) -> Self {
        let (read, damage) = match read {
            Ok(checkpoint) => (Some(checkpoint), None),
            Err(damage) => (None, Some(chain(&damage))),
        };
        Self {
            id: kept.id.to_string(),
            sha256: kept.sha256.clone(),
            previous: kept.previous.clone(),
            seq: kept.seq,
            at: format!("{:.0}", kept.at),
            iteration: kept.iteration,
            task: kept.task.as_ref().map(ToString::to_string),
            attempt: read.as_ref().map(|read| read.attempt),
            phase: read.as_ref().map(|read| read.phase.name()),
            outcome: read.as_ref().map(|read| read.outcome.clone()),
            commit: read.and_then(|read| read.recovery.commit),
            by: kept.by.clone(),
            damage,
        }
    }

    fn line(&self, style: Style) -> String {
        let task = self.task.as_deref().unwrap_or("-");
        let what = match (&self.damage, self.phase) {
            (Some(damage), _) => style.red(&format!("damaged: {}", one_line(damage))),
            (None, phase) => {
                let outcome = self.outcome.as_deref().filter(|outcome| !outcome.is_empty());
                let outcome = outcome.map(|outcome| format!(", {outcome}")).unwrap_or_default();
                format!("{}{}", phase.unwrap_or_default(), one_line(&outcome))
            }
        };
        let commit = self.commit.as_deref().map(|commit| format!("  {}", short(commit))).unwrap_or_default();
        let by = if self.by.is_empty() { String::new() } else { format!("  by {}", one_line(&self.by)) };
        let (name, iteration) = (style.bold(name(&self.sha256)), self.iteration);
        let rest = style.dim(&format!("{}{commit}{by}", self.at));
        format!("{name}  {iteration:>4}  {:<12}  {what:<28}  {rest}\n", one_line(task))
    }
}

/// What people call a checkpoint.
fn name(sha256: &str) -> &str {
    sha256.get(..12).unwrap_or(sha256)
}

fn create(args: &LoopArgs) -> Result<ExitCode, Failure> {
    let mut loops = loops::require()?;
    let record = loops.select(args.which.as_deref())?;
    let before = loops.store.last_seq(record.id)?;
    if before == 0 {
        return Err(Failure::usage("nothing has happened in this loop yet").hint("`wiggum run` starts it"));
    }
    let kept = if loops.lease(record.id)?.alive().is_some() {
        let settled = Settled { silence: "asked for", ..Settled::default() };
        let reply = loops.deliver(&record, &Request::Checkpoint, &who(), settled)?;
        let mine = |kept: &Kept| kept.seq > before && kept.by == who();
        match checkpoints::list(&loops.store, record.id)?.into_iter().find(mine) {
            Some(kept) => kept,
            None if args.output.json => {
                return print_json(
                    &serde_json::json!({ "state": reply.state.name(), "message": reply.message }),
                );
            }
            None => return Ok(term::print(&format!("{}\n", reply.message))),
        }
    } else {
        checkpoints::create(loops.store, record.id, &who())?
    };
    if args.output.json {
        let loops = loops::require()?;
        return print_json(&Row::of(&kept, checkpoints::read(&loops.store, &kept)));
    }
    Ok(term::print(&format!("checkpoint {} ({})\n", name(&kept.sha256), kept.id)))
}

fn list(args: &LoopArgs) -> Result<ExitCode, Failure> {
    let loops = loops::require()?;
    let record = loops.select(args.which.as_deref())?;
    let all = checkpoints::list(&loops.store, record.id)?;
    let rows: Vec<Row> =
        all.iter().map(|kept| Row::of(kept, checkpoints::read(&loops.store, kept))).collect();
    if args.output.json {
        return print_json(&rows);
    }
    if rows.is_empty() {
        return Ok(term::print("no checkpoints yet: each iteration ends with one\n"));
    }
    let style = Style::for_stdout();
    Ok(term::print(&rows.iter().map(|row| row.line(style)).collect::<String>()))
}

/// The checkpoint as programs see it: all of it, and its hash.
#[derive(Serialize)]
struct Shown<'a> {
    sha256: &'a str,
    #[serde(flatten)]
    checkpoint: &'a Checkpoint,
}

fn show(args: &WhichCheckpoint) -> Result<ExitCode, Failure> {
    let loops = loops::require()?;
    let record = loops.select(args.of.which.as_deref())?;
    let kept = select(&loops, &record, &args.id)?;
    let checkpoint = checkpoints::read(&loops.store, &kept).map_err(|damage| damaged(&kept, &damage))?;
    if args.of.output.json {
        return print_json(&Shown { sha256: &kept.sha256, checkpoint: &checkpoint });
    }
    Ok(term::print(&text(&kept, &checkpoint, Style::for_stdout())))
}

fn text(kept: &Kept, checkpoint: &Checkpoint, style: Style) -> String {
    let Checkpoint { id, iteration, attempt, phase, metrics, recovery, .. } = checkpoint;
    let mut out = format!("{}  {id}\n", style.bold(&format!("checkpoint {}", name(&kept.sha256))));
    let mut line = |name: &str, text: &str| {
        if !text.is_empty() {
            out.push_str(&format!("  {}  {}\n", style.dim(&format!("{name:<12}")), one_line(text)));
        }
    };
    let outcome = match &checkpoint.handoff {
        Some(trigger) => format!("{} ({trigger})", checkpoint.outcome),
        None => checkpoint.outcome.clone(),
    };
    line("sha256", &kept.sha256);
    line("previous", kept.previous.as_deref().unwrap_or("none, the first"));
    line(
        "made",
        &format!(
            "{:.0}{}",
            checkpoint.at,
            if kept.by.is_empty() { String::new() } else { format!(" by {}", kept.by) }
        ),
    );
    if let Some(task) = &checkpoint.task {
        line("task", &format!("{task}, attempt {attempt}, iteration {iteration}"));
    }
    line("agent", &checkpoint.agent);
    line("phase", phase.name());
    line("outcome", &outcome);
    line("completed", &group(&checkpoint.completed));
    line("pending", &group(&checkpoint.pending));
    line("blocked", &group(&checkpoint.blocked));
    for (name, items) in [
        ("decision", &checkpoint.decisions),
        ("assumption", &checkpoint.assumptions),
        ("constraint", &checkpoint.constraints),
        ("next step", &recovery.next_steps),
    ] {
        items.iter().for_each(|item| line(name, item));
    }
    line("tokens", &format!("{} in, {} out", metrics.usage.input_tokens, metrics.usage.output_tokens));
    line("cost", &format!("${:.4}, ${:.4} so far", metrics.usage.cost_usd, metrics.total_usage.cost_usd));
    line(
        "work",
        &format!(
            "{}, {} passed, {} failed, {} changed, {}",
            counted(metrics.tool_calls as usize, "tool call"),
            counted(metrics.checks_passed as usize, "check"),
            metrics.checks_failed,
            counted(metrics.changed_paths as usize, "path"),
            duration(metrics.duration)
        ),
    );
    line("commit", recovery.commit.as_deref().unwrap_or_default());
    line("branch", recovery.branch.as_deref().unwrap_or_default());
    line("work kept", recovery.kept_under.as_deref().unwrap_or_default());
    line("journal", &format!("up to event {}", recovery.seq));
    recovery.rollback_instructions.iter().for_each(|step| line("go back", step));
    out
}

fn group(group: &Group) -> String {
    let names: Vec<String> = group
        .items
        .iter()
        .map(|item| {
            if item.why.is_empty() { item.task.to_string() } else { format!("{} ({})", item.task, item.why) }
        })
        .collect();
    if names.is_empty() { group.count.to_string() } else { format!("{}: {}", group.count, names.join(", ")) }
}

#[derive(Serialize)]
struct Verified {
    checkpoints: usize,
    valid: bool,
    /// Of the newest.
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_bad: Option<Row>,
}

fn verify(args: &LoopArgs) -> Result<ExitCode, Failure> {
    let loops = loops::require()?;
    let record = loops.select(args.which.as_deref())?;
    let all = checkpoints::list(&loops.store, record.id)?;
    let result = checkpoints::verify(&loops.store, &all);
    let sha256 = all.last().map(|kept| kept.sha256.clone());
    let valid = result.is_ok();
    if args.output.json {
        let first_bad = result.err().map(|(kept, damage)| Row::of(kept, Err(damage)));
        let code = print_json(&Verified { checkpoints: all.len(), valid, sha256, first_bad })?;
        return Ok(if valid { code } else { ExitCode::FAILURE });
    }
    match result {
        Ok(()) => {
            let last = sha256.map(|sha256| format!(", the newest {}", name(&sha256))).unwrap_or_default();
            Ok(term::print(&format!(
                "{}: every hash is right and the chain is whole{last}\n",
                counted(all.len(), "checkpoint")
            )))
        }
        Err((kept, damage)) => Err(damaged(kept, &damage)),
    }
}

fn damaged(kept: &Kept, damage: &Damage) -> Failure {
    let task = kept.task.as_ref().map(|task| format!(" of {task}")).unwrap_or_default();
    Failure::other(format!(
        "the checkpoint {} ({}){task}, iteration {}, is damaged: {}",
        name(&kept.sha256),
        kept.id,
        kept.iteration,
        chain(damage)
    ))
    .hint("the journal is what counts and is looked at by `wiggum doctor`; this checkpoint cannot be gone back to")
}

/// What a restore did, for programs.
#[derive(Serialize)]
struct WentBack {
    id: String,
    sha256: String,
    commit: Option<String>,
    /// Where what came after is kept.
    kept_under: Option<String>,
    tasks_changed: usize,
}

fn restore(args: &RestoreArgs) -> Result<ExitCode, Failure> {
    refuse_inside_agent()?;
    let loops = loops::require()?;
    let record = loops.select(args.of.which.as_deref())?;
    if loops.lease(record.id)?.alive().is_some() {
        return Err(Failure::usage(format!("loop {} runs", record.identity.name))
            .hint("stop it first: `wiggum stop`"));
    }
    let kept = select(&loops, &record, &args.id)?;
    let settings = settings(&loops, &record)?;
    drop(loops);
    let changes = if args.keep_changes { Changes::Keep } else { Changes::Refuse };
    let mut nobody = Nobody;
    let restored = Engine::open(settings, &mut nobody)?.restore(kept.id, changes, &who())?;
    if args.of.output.json {
        return print_json(&WentBack {
            id: kept.id.to_string(),
            sha256: kept.sha256,
            commit: restored.commit,
            kept_under: restored.reference,
            tasks_changed: restored.tasks,
        });
    }
    let mut text = format!("back at checkpoint {}", name(&kept.sha256));
    if let Some(commit) = &restored.commit {
        text.push_str(&format!(", commit {}", short(commit)));
    }
    text.push_str(&format!("; {} changed\n", counted(restored.tasks, "task")));
    if let Some(reference) = &restored.reference {
        text.push_str(&format!("what came after is kept under {reference}\n"));
    }
    Ok(term::print(&text))
}

/// What it takes to work on the loop without any agent.
fn settings(loops: &Loops, record: &LoopRecord) -> Result<Settings, Failure> {
    Ok(Settings {
        name: record.identity.name.clone(),
        wiggum: own_path()?,
        ..Settings::new(loops.checkout.clone(), &record.identity.backlog, Vec::new())
    })
}

/// A restore is told in one line at its end.
struct Nobody;

impl Observer for Nobody {
    fn event(&mut self, _: &Envelope, _: &Loop) {}
    fn agent(&mut self, _: &AgentEvent) {}
    fn check_output(&mut self, _: &str) {}
    fn waiting(&mut self, _: &Waiting, _: &Loop) {}
}

/// The checkpoint that is meant: by the beginning of its hash or id, or the last.
fn select(loops: &Loops, record: &LoopRecord, which: &str) -> Result<Kept, Failure> {
    let all = checkpoints::list(&loops.store, record.id)?;
    if which == "last" {
        return all.into_iter().next_back().ok_or_else(|| {
            Failure::usage("no checkpoints yet")
                .hint("each iteration ends with one; `wiggum checkpoint create` makes one now")
        });
    }
    let fits = |kept: &&Kept| kept.sha256.starts_with(which) || kept.id.to_string().starts_with(which);
    let found: Vec<&Kept> = all.iter().filter(fits).collect();
    match found[..] {
        [one] => Ok(one.clone()),
        [] => Err(Failure::usage(format!("no checkpoint `{which}`")).hint("see `wiggum checkpoint list`")),
        [..] => {
            let names: Vec<&str> = found.iter().map(|kept| name(&kept.sha256)).collect();
            Err(Failure::usage(format!("`{which}` means several checkpoints: {}", names.join(", ")))
                .hint("give more of its hash"))
        }
    }
}
