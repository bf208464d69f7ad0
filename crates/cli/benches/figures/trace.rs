//! Processes and syncs of an iteration, counted by strace: what twelve iterations do beyond what two
//! do, so that starting and ending do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::Outcome;
use crate::place::{BACKLOG, Place, WIGGUM, run_arguments};
use crate::table::Table;

const FEW: usize = 2;
const MORE: usize = 12;

pub(crate) fn measure(table: &mut Table) -> Outcome<()> {
    let (few, more) = (trace(FEW)?, trace(MORE)?);
    let each = |counts: fn(&Counts) -> &BTreeMap<String, usize>| -> Vec<(String, f64)> {
        let before = |name: &str| counts(&few).get(name).copied().unwrap_or(0);
        let per = |count: usize, name: &str| (count as f64 - before(name) as f64) / (MORE - FEW) as f64;
        counts(&more).iter().map(|(name, count)| (name.clone(), per(*count, name))).collect()
    };
    let started = each(|counts| &counts.children);
    let beside: f64 =
        started.iter().filter(|(name, _)| !is_agent_or_check(name)).map(|(_, count)| *count).sum();
    table.limited("processes started per iteration, agent and check apart", beside, "", 3.0);
    for (name, count) in started.iter().filter(|(_, count)| *count != 0.0) {
        table.told(format!("… {name}"), *count, "");
    }
    let syncs = each(|counts| &counts.syncs);
    table.told("syncs per iteration", syncs.iter().map(|(_, count)| *count).sum(), "");
    for (name, count) in syncs.iter().filter(|(_, count)| *count != 0.0) {
        table.told(format!("… {name}"), *count, "");
    }
    Ok(())
}

fn is_agent_or_check(name: &str) -> bool {
    name == "echo" || name == "true"
}

#[derive(Debug, Default)]
struct Counts {
    /// Started by the program itself, by name.
    children: BTreeMap<String, usize>,
    /// By the program or anything below it, by what was synced.
    syncs: BTreeMap<String, usize>,
}

fn trace(iterations: usize) -> Outcome<Counts> {
    let place = Place::with_backlog(MORE)?;
    let traces = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let calls = "trace=execve,clone,clone3,fork,vfork,fsync,fdatasync,sync_file_range,msync";
    let mut command = place.command("strace");
    command.args(["-ff", "-qq", "-y", "-s", "200", "-e", calls, "-o"]).arg(traces.path().join("t"));
    command.arg(WIGGUM).args(run_arguments(iterations, "none")).stdout(Stdio::null());
    let status = command.status().map_err(|error| format!("strace is needed: {error}"))?;
    if !matches!(status.code(), Some(0 | 3)) {
        return Err(format!("wiggum run below strace: {status}").into());
    }
    count(&read(traces.path())?, &place.root())
}

/// What every process (and thread) did, by its number.
fn read(directory: &Path) -> Outcome<BTreeMap<u32, String>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let number = path.extension().and_then(|end| end.to_str()).ok_or("a trace has a number")?;
        all.insert(number.parse()?, fs::read_to_string(&path)?);
    }
    Ok(all)
}

fn count(traces: &BTreeMap<u32, String>, root: &Path) -> Outcome<Counts> {
    let is_wiggum = |text: &str| text.lines().next().is_some_and(|line| line.contains(WIGGUM));
    let main = *traces.iter().find(|(_, text)| is_wiggum(text)).ok_or("wiggum was not traced")?.0;
    let mut counts = Counts::default();
    let mut threads = BTreeSet::from([main]);
    let mut todo = vec![main];
    while let Some(thread) = todo.pop() {
        let lines = traces.get(&thread).map_or("", String::as_str).lines();
        for (line, number) in lines.filter_map(|line| Some((line, started(line)?))) {
            if line.contains("CLONE_THREAD") {
                todo.extend(threads.insert(number).then_some(number));
            } else if let Some(name) = traces.get(&number).and_then(|text| program(text)) {
                *counts.children.entry(name).or_default() += 1;
            }
        }
    }
    for line in traces.values().flat_map(|text| text.lines()) {
        if let Some(path) = synced(line) {
            *counts.syncs.entry(name_of(path, root)).or_default() += 1;
        }
    }
    Ok(counts)
}

/// The number of what a line says was started.
fn started(line: &str) -> Option<u32> {
    let call = line.split('(').next()?;
    let is_start = matches!(call, "clone" | "clone3" | "fork" | "vfork");
    // With -y a number may be followed by what it stands for.
    let number = line.rsplit_once("= ")?.1.split(|c: char| !c.is_ascii_digit()).next()?;
    is_start.then(|| number.parse().ok()).flatten()
}

/// What a process became: the program and, for git, its command.
fn program(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("execve(") && line.ends_with("= 0"))?;
    let arguments = line.split_once('[')?.1.split_once(']')?.0;
    let words: Vec<&str> = arguments.split(", ").map(|word| word.trim_matches('"')).collect();
    let name = words.first()?.rsplit('/').next()?;
    if name != "git" {
        return Some(name.to_owned());
    }
    let options_end = words.iter().skip(1).position(|word| !word.starts_with('-') && !word.contains('='));
    Some(format!("git {}", options_end.and_then(|at| words.get(at + 1)).unwrap_or(&"")))
}

fn synced(line: &str) -> Option<&str> {
    let call = line.split('(').next()?;
    let is_sync = matches!(call, "fsync" | "fdatasync" | "sync_file_range" | "msync");
    is_sync.then(|| line.split_once('<')?.1.split_once('>').map(|(path, _)| path)).flatten()
}

fn name_of(path: &str, root: &Path) -> String {
    let inside = Path::new(path).strip_prefix(root).unwrap_or(Path::new(path)).to_string_lossy().into_owned();
    match inside.as_str() {
        "" => "the backlog's directory".to_owned(),
        other if other.ends_with("/wiggum.db-wal") => "the journal (write-ahead log)".to_owned(),
        other if other.ends_with("/wiggum.db") => "the journal (checkpoint)".to_owned(),
        other if other.starts_with(&format!(".{BACKLOG}")) => "the backlog".to_owned(),
        // Its directory has the loop's id for a name.
        other if other.contains("/loops/") => "files of the loop".to_owned(),
        other if other.starts_with(".git/objects") => "git's objects".to_owned(),
        other if other.starts_with(".git/") => "git's refs and the like".to_owned(),
        other => other.to_owned(),
    }
}
