//! What the store, the journals and the backlog say, and whether they agree.

use std::fs;

use wiggum_backlog::Backlog;
use wiggum_core::checker;
use wiggum_core::event::{Envelope, Event};
use wiggum_core::state::Loop;
use wiggum_engine::backlog_file::difference;
use wiggum_engine::state_dir::StateDir;
use wiggum_engine::status::Status;
use wiggum_store::LoopRecord;
use wiggum_workspace::beneath;
use wiggum_workspace::git::Git;
use wiggum_workspace::process;

use super::fix::Remedy;
use super::{Finding, git_lines};
use crate::commands::backlog;
use crate::commands::loops::{DeskError, Lease, Loops};
use crate::commands::notify;
use crate::failure::Failure;
use wiggum_engine::words::counted;

/// How many broken invariants are shown of one journal, and how many tasks that differ.
const SHOWN: usize = 5;

pub(super) fn examine(loops: Option<&Loops>, git: Option<&Git>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let records = match loops {
        None => {
            findings.push(Finding::ok("store", "no loops here yet"));
            Vec::new()
        }
        Some(loops) => match store(loops, &mut findings) {
            Ok(records) => records,
            Err(failure) => {
                findings.push(Finding::failure("store", failure));
                return findings;
            }
        },
    };
    findings.extend(git.and_then(|git| references(git, &records)));
    findings
}

fn store(loops: &Loops, findings: &mut Vec<Finding>) -> Result<Vec<LoopRecord>, Failure> {
    let broken = loops.store.check()?;
    let records = loops.all()?;
    if broken.is_empty() {
        findings.push(Finding::ok("store", format!("{}, nothing damaged", counted(records.len(), "loop"))));
    }
    let hint = "put back a copy of .wiggum/wiggum.db, or move it aside to start anew";
    findings.extend(broken.into_iter().map(|message| Finding::problem("store", message, hint)));
    for record in &records {
        // One journal that cannot be read says nothing of the others.
        if let Err(failure) = journal(loops, record, findings) {
            findings.push(Finding::failure("journal", failure));
        }
        engine(loops, record, findings)?;
    }
    for (name, count, problem) in notify::given_up(loops)? {
        let message = format!("{} to `{name}` could not be sent: {problem}", counted(count, "message"));
        let hint = "`wiggum notify test` tries it; `wiggum notify status --clear` forgets them";
        findings.push(Finding::warning("notify", message, hint));
    }
    Ok(records)
}

fn journal(loops: &Loops, record: &LoopRecord, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let name = &record.identity.name;
    let journal = loops.store.read(record.id, 0)?;
    let violations = checker::check(&journal);
    findings.extend(
        set_aside(&journal)
            .filter(|_| loops.lease(record.id).is_ok_and(|lease| lease.alive().is_none()))
            .map(|reference| {
                Finding::warning(
                    "changes",
                    format!("loop {name} was killed: your uncommitted changes are kept under {reference}"),
                    format!(
                        "`wiggum run` puts them back when it ends, or `git stash apply {reference}` does"
                    ),
                )
            }),
    );
    if violations.is_empty() {
        findings.push(Finding::ok("journal", format!("loop {name}: {} events in order", journal.len())));
    }
    for violation in violations.iter().take(SHOWN) {
        findings.push(Finding::problem(
            "journal",
            format!("loop {name}: {violation}"),
            "this is our bug: please report it with `wiggum events --json`",
        ));
    }
    if violations.len() > SHOWN {
        let more = violations.len() - SHOWN;
        findings.push(Finding::problem(
            "journal",
            format!("loop {name}: {more} more like that"),
            "see above",
        ));
    }
    Ok(())
}

/// Where changes of the user are kept that nobody has put back.
fn set_aside(journal: &[Envelope]) -> Option<String> {
    journal.iter().rev().find_map(|envelope| match &envelope.event {
        Event::UserChangesSetAside { reference, .. } => Some(Some(reference.clone())),
        Event::UserChangesPutBack { .. } => Some(None),
        _ => None,
    })?
}

fn engine(loops: &Loops, record: &LoopRecord, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let (name, id) = (&record.identity.name, record.id);
    match loops.lease(id)? {
        Lease::Alive(holder) => {
            findings.push(Finding::ok("engine", format!("loop {name} is run by process {}", holder.pid)));
            return Ok(());
        }
        Lease::Dead(holder) => findings.push(
            Finding::warning(
                "engine",
                format!("loop {name} was run by process {}, which is gone", holder.pid),
                "`wiggum run` takes it over and goes on",
            )
            .mended_by(Remedy::FreeLease(id)),
        ),
        Lease::None => {}
    }
    let left = process::marked("WIGGUM_LOOP_ID", &id.to_string());
    if !left.is_empty() {
        let pids: Vec<String> = left.iter().map(ToString::to_string).collect();
        findings.push(
            Finding::warning(
                "engine",
                format!("processes of loop {name} are left without an engine: {}", pids.join(", ")),
                "`wiggum run` ends them before it goes on",
            )
            .mended_by(Remedy::EndProcesses(id)),
        );
    }
    findings.extend(stale_status(loops, record)?);
    Ok(())
}

/// `status.json`, which other programs read, may be behind after a kill.
fn stale_status(loops: &Loops, record: &LoopRecord) -> Result<Option<Finding>, Failure> {
    let file = loops.checkout.path().join(StateDir::shared_loop_dir(record.id)).join("status.json");
    let last = loops.store.last_seq(record.id)?;
    let found = beneath::text_of(&file).ok().and_then(|text| serde_json::from_str::<Status>(&text).ok());
    if last == 0 || found.is_some_and(|status| status.seq == last) {
        return Ok(None);
    }
    let message = format!("status.json of loop {} is missing or behind its journal", record.identity.name);
    let hint = "`wiggum status` is right all the same; the next run writes it anew";
    Ok(Some(Finding::warning("status", message, hint).mended_by(Remedy::WriteStatusFile(record.id))))
}

/// Work that is kept for loops nobody knows any more.
fn references(git: &Git, records: &[LoopRecord]) -> Option<Finding> {
    let all = git_lines(git, &["for-each-ref", "--format=%(refname)", "refs/wiggum"])?;
    // References carry the end of the loop's id.
    let known = |reference: &str| {
        let part = reference.split('/').nth(2).unwrap_or_default();
        !part.is_empty() && records.iter().any(|record| record.id.to_string().ends_with(part))
    };
    let orphans = all.iter().filter(|reference| !known(reference)).count();
    Some(if orphans > 0 {
        Finding::warning(
            "git",
            format!("of no known loop: {} under refs/wiggum", counted(orphans, "reference")),
            "look with `git for-each-ref refs/wiggum`; `git update-ref -d REF` removes one",
        )
    } else {
        Finding::ok("git", format!("{} under refs/wiggum", counted(all.len(), "reference")))
    })
}

pub(super) fn backlog() -> Vec<Finding> {
    let mut open = match backlog::locate(None) {
        Ok(open) => open,
        Err(Failure { message, hint, .. }) => {
            return vec![Finding::new("backlog", super::Level::Warning, message, hint)];
        }
    };
    let mut findings = Vec::from_iter(half_written(&open));
    if let Err(error) = open.read() {
        let failure = match error {
            DeskError::Backlog(error) => crate::commands::backlog::broken(error),
            error => error.into(),
        };
        findings.push(Finding::failure("backlog", failure));
        return findings;
    }
    let unsupported = open.unsupported().unwrap_or_default();
    let Some(backlog) = open.file.backlog() else { return findings };
    findings
        .push(Finding::ok("backlog", format!("{}: {}", open.name, counted(backlog.tasks().len(), "task"))));
    for problem in unsupported {
        findings.push(Finding::problem("backlog", problem.to_string(), "skip the task, or remove the field"));
    }
    match open.any_state() {
        Ok(Some(state)) => findings.extend(disagreement(&open.name, &state, backlog)),
        Ok(None) => {}
        Err(failure) => findings.push(Finding::failure("backlog", failure.into())),
    }
    findings
}

/// What a crash in the middle of a write left beside the backlog.
fn half_written(open: &wiggum_engine::desk::backlog::OpenBacklog) -> Option<Finding> {
    let path = open.file.path();
    let start = format!(".{}.", path.file_name()?.to_string_lossy());
    let is_ours = |name: &str| name.starts_with(&start) && name.ends_with(".wiggum-tmp");
    let entries = fs::read_dir(path.parent()?).ok()?.flatten();
    let count = entries.filter(|entry| is_ours(&entry.file_name().to_string_lossy())).count();
    let idle = open.loop_over().ok().flatten().is_none_or(|over| !over.alive);
    let message = format!("a write that was cut off left {} beside it", counted(count, "file"));
    let finding = || {
        Finding::warning("backlog", message, "they can be removed; `wiggum run` does so")
            .mended_by(Remedy::RemoveTemporary)
    };
    (count > 0 && idle).then(finding)
}

fn disagreement(name: &str, state: &Loop, backlog: &Backlog) -> Option<Finding> {
    let unwritten = unwritten(state, backlog);
    if !unwritten.is_empty() && state.open.is_empty() {
        let message = format!("{name} does not say yet what the journal does: {}", list(&unwritten));
        let hint = "the next run writes it";
        return Some(Finding::warning("backlog", message, hint).mended_by(Remedy::WriteStatuses));
    }
    difference(state, backlog)?;
    let differing: Vec<String> = backlog
        .tasks()
        .iter()
        .filter_map(|task| {
            let known = state.task(&task.id)?.spec.status;
            let says = task.status;
            (says != known && backlog.dialect().can_say(known))
                .then(|| format!("{} is {} there and was {}", task.id, says.name(), known.name()))
        })
        .collect();
    let which = if differing.is_empty() { String::new() } else { format!(": {}", list(&differing)) };
    Some(Finding::warning(
        "backlog",
        format!("{name} differs from what loop {} last knew{which}", state.name),
        "if that was you, all is well: the loop takes it in before its next task",
    ))
}

/// Statuses that are in the journal and not in the file yet, which still says what it said before.
pub(super) fn unwritten(state: &Loop, backlog: &Backlog) -> Vec<String> {
    let due = state.status_due.iter().filter_map(|id| {
        let (entry, task) = (state.task(id)?, backlog.task(id.as_str())?);
        let status = entry.state.file_status();
        let waits = task.status == entry.spec.status && backlog.dialect().can_say(status);
        waits.then(|| format!("{id} is {}", status.name()))
    });
    due.collect()
}

fn list(parts: &[String]) -> String {
    let more = parts.len().saturating_sub(SHOWN);
    let mut text = parts.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
