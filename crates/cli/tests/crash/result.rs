//! What a run came to, without what differs between any two runs (ids, times, paths): equal for a
//! run that was killed many times and one that was not.

use std::fs;

use serde_json::Value;
use wiggum_core::budget::Spans;
use wiggum_core::checker;
use wiggum_core::event::{Envelope, Event};
use wiggum_core::signal::claim_mark;
use wiggum_engine::checkpoints;
use wiggum_store::Registry;

use crate::project::Project;

#[derive(Debug, PartialEq)]
pub(crate) struct Final {
    backlog: String,
    /// Message and tree of every commit, oldest first.
    commits: Vec<String>,
    /// The user's own: status with content hashes.
    work_tree: String,
    references: Vec<String>,
    /// The events that count, interrupted attempts left out.
    journal: Vec<String>,
    tasks: Vec<String>,
    /// What every checkpoint says, all of them with their hashes and chained.
    checkpoints: Vec<String>,
    counters: String,
}

impl Final {
    /// Looks at everything, and insists on what must hold of any run that has ended.
    pub(crate) fn of(project: &Project) -> Self {
        let journal = project.journal();
        let violations = checker::check(&journal);
        assert!(violations.is_empty(), "the journal breaks its invariants: {violations:?}");
        assert_nothing_left(project);
        let state = project.state();
        assert_all_paid_for(project, state.usage.cost_usd);
        Self {
            backlog: fs::read_to_string(project.root.join("prd.json")).unwrap(),
            commits: commits(project),
            work_tree: work_tree(project),
            references: references(project),
            journal: effective(project, &journal),
            tasks: state
                .tasks
                .iter()
                .map(|entry| {
                    format!(
                        "{}: {:?}, {} attempts, {} failures, {:?}, {:?}, approved {:?}",
                        entry.spec.id,
                        entry.state,
                        entry.attempts,
                        entry.failures,
                        entry.history,
                        entry.guidance,
                        entry.approved
                    )
                })
                .collect(),
            checkpoints: checkpoints(project),
            counters: format!("{} iterations, {:?}", state.iterations, state.usage),
        }
    }

    /// The first difference in words, or nothing.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        let lists = [
            ("commits", &self.commits, &other.commits),
            ("references", &self.references, &other.references),
            ("journal", &self.journal, &other.journal),
            ("tasks", &self.tasks, &other.tasks),
            ("checkpoints", &self.checkpoints, &other.checkpoints),
        ];
        for (name, ours, theirs) in lists {
            let longest = ours.len().max(theirs.len());
            if let Some(at) = (0..longest).find(|&at| ours.get(at) != theirs.get(at)) {
                return Some(format!(
                    "{name}, entry {at}:\n  undisturbed: {}\n  killed:      {}",
                    ours.get(at).map_or("nothing", String::as_str),
                    theirs.get(at).map_or("nothing", String::as_str)
                ));
            }
        }
        let texts = [
            ("backlog", &self.backlog, &other.backlog),
            ("work tree", &self.work_tree, &other.work_tree),
            ("counters", &self.counters, &other.counters),
        ];
        texts
            .into_iter()
            .find(|(_, ours, theirs)| ours != theirs)
            .map(|(name, ours, theirs)| format!("{name}:\n  undisturbed: {ours}\n  killed:      {theirs}"))
    }
}

fn assert_nothing_left(project: &Project) {
    if let Some((_, id)) = project.store() {
        let left = processes_with(&format!("WIGGUM_LOOP_ID={id}"));
        assert!(left.is_empty(), "processes are left: {left:?}");
    }
    let locks = files_below(&project.root.join(".git"), &|name| name.ends_with(".lock"));
    assert!(locks.is_empty(), "locks are left: {locks:?}");
    let temporary = files_below(&project.root, &|name| name.ends_with(".wiggum-tmp"));
    assert!(temporary.is_empty(), "temporary files are left: {temporary:?}");
    assert!(!project.outside("pwned").exists(), "a hook that an agent planted was run");
    project.git(&["fsck", "--no-dangling", "--no-progress"]);
    assert_eq!(project.git(&["stash", "list"]), "", "the user's stash is not ours");
}

fn checkpoints(project: &Project) -> Vec<String> {
    let (store, id) = project.store().unwrap();
    let all = checkpoints::list(&store, id).unwrap();
    checkpoints::verify(&store, &all).unwrap_or_else(|(kept, damage)| panic!("{kept:?}: {damage}"));
    let text = |kept: &checkpoints::Kept| {
        let mut value = serde_json::to_value(checkpoints::read(&store, kept).unwrap()).unwrap();
        normalise(&mut value);
        value.to_string()
    };
    all.iter().map(text).collect()
}

fn commits(project: &Project) -> Vec<String> {
    let id = project.store().map_or_else(String::new, |(_, id)| id.to_string());
    let log = project.git(&["log", "--reverse", "--format=%B%nTree: %T%x1e", "main"]);
    log.split('\x1e').map(|commit| commit.trim().replace(&id, "<loop>")).filter(|c| !c.is_empty()).collect()
}

fn work_tree(project: &Project) -> String {
    let branch = project.git(&["symbolic-ref", "HEAD"]);
    let status = project.git(&["status", "--porcelain=v2", "--untracked-files=all"]);
    let mut text = format!("{branch}{status}");
    for line in status.lines() {
        let path = project.root.join(line.rsplit(' ').next().unwrap_or_default());
        text.push_str(&fs::read_to_string(path).unwrap_or_else(|_| "gone\n".to_owned()));
    }
    text
}

/// All but those that an interruption makes: what it kept, and the tree an attempt went back to.
fn references(project: &Project) -> Vec<String> {
    let (store, id) = project.store().unwrap();
    drop(store);
    let id = id.to_string();
    let short = &id[id.len() - 12..];
    let ours = format!("refs/wiggum/{short}/");
    let named = project.git(&["for-each-ref", "--format=%(refname) %(tree) %(subject)"]);
    named
        .lines()
        .filter(|line| {
            let rest = line.strip_prefix(&ours).unwrap_or_default();
            let by_interruption =
                rest.starts_with("taken ") || rest.starts_with("found/") || rest.contains("/interrupted-");
            !by_interruption
        })
        .map(|line| {
            if line.starts_with("refs/heads/main ") {
                "main".to_owned()
            } else {
                line.replace(short, "<loop>")
            }
        })
        .collect()
}

/// The events that decide what became of the run, as JSON without what differs every time.
fn effective(project: &Project, journal: &[Envelope]) -> Vec<String> {
    let mut kept: Vec<(Kind, String)> = Vec::new();
    for envelope in journal {
        let kind = kind(&envelope.event);
        match kind {
            Kind::Bookkeeping => {}
            Kind::Interruption => {
                let started = kept.iter().rposition(|(kind, _)| *kind == Kind::Start).unwrap();
                // Answers and the like that came meanwhile stay.
                let after = kept.split_off(started);
                kept.extend(after.into_iter().filter(|(kind, _)| *kind == Kind::Outside));
            }
            // Whoever resumes checks anew.
            Kind::Resumption => {
                while let Some(last) = kept.iter().rposition(|(kind, _)| *kind != Kind::Outside)
                    && kept[last].0 == Kind::Check
                {
                    kept.remove(last);
                }
            }
            Kind::Start | Kind::Step | Kind::Check | Kind::Outside => {
                kept.push((kind, text_of(&without_mark(project, &envelope.event))));
            }
        }
    }
    kept.into_iter().map(|(_, text)| text).collect()
}

/// Every loop asks for promises with marks of its own.
fn without_mark(project: &Project, event: &Event) -> Event {
    let mut event = event.clone();
    if let Event::IterationStarted { iteration, attempt, prompt, .. } = &mut event
        && let Some((store, id)) = project.store()
        && let Some(text) = store.blob(&prompt.sha256).unwrap()
    {
        prompt.sha256 = checkpoints::hash(&text.replace(&claim_mark(id, *iteration, *attempt), "<mark>"));
    }
    event
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Start,
    Step,
    /// A step that is made again after a restart.
    Check,
    /// Not part of an iteration.
    Outside,
    Interruption,
    Resumption,
    /// May happen once more, or once less, without a difference to anybody.
    Bookkeeping,
}

fn kind(event: &Event) -> Kind {
    match event {
        Event::IterationStarted { .. } => Kind::Start,
        Event::AgentEnded { .. }
        | Event::CallStarted { .. }
        | Event::WorkEnded { .. }
        | Event::CommitsFound { .. }
        | Event::TreeTaken { .. }
        | Event::TreeAltered { .. }
        | Event::Judged { .. }
        | Event::TaskCompleted { .. }
        | Event::CommitRefused { .. }
        | Event::BudgetReached { .. }
        | Event::HandoffStarted { .. }
        | Event::CleanChecked { .. } => Kind::Step,
        Event::EvidenceGathered { .. } | Event::WorkInspected { .. } => Kind::Check,
        Event::RunStarted { .. }
        | Event::TaskFailed { .. }
        | Event::RepairPlanned { .. }
        | Event::SkipAsked { .. }
        | Event::TaskSkipped { .. }
        | Event::SkipsCommitted { .. }
        | Event::TaskReopened { .. }
        | Event::StatusSet { .. }
        | Event::QuestionRaised { .. }
        | Event::QuestionAnswered { .. }
        | Event::Paused { .. }
        | Event::Resumed { .. }
        | Event::StopRequested { .. }
        | Event::UserChangesSetAside { .. }
        | Event::UserChangesPutBack { .. }
        | Event::BacklogBroken { .. }
        | Event::BudgetAlert { .. }
        | Event::RestoreStarted { .. }
        | Event::Restored { .. }
        | Event::RunEnded { .. } => Kind::Outside,
        Event::Interrupted { .. } => Kind::Interruption,
        Event::RunResumed { .. } => Kind::Resumption,
        // Compared by what is in them.
        Event::Checkpointed { .. }
        | Event::LoopCreated { .. }
        | Event::LoopMoved { .. }
        | Event::BaselineStarted { .. }
        | Event::BaselineChecked { .. }
        | Event::TaskBaselineChecked { .. }
        | Event::BacklogRead { .. }
        | Event::StatusWritten { .. }
        | Event::StatusPutBack { .. }
        | Event::Nudged { .. }
        | Event::AgentReported { .. }
        | Event::HealthChanged { .. }
        | Event::WorkKept { .. }
        | Event::WorkspaceReset { .. }
        | Event::BudgetAsked { .. }
        | Event::UsageSeen { .. }
        | Event::Charged { .. }
        | Event::RequestRefused { .. }
        | Event::Noticed { .. } => Kind::Bookkeeping,
    }
}

/// What loops share knows of every call that the journal knows of, and of no call under way.
fn assert_all_paid_for(project: &Project, cost: f64) {
    let registry = Registry::open_existing(&project.outside(".local/share/wiggum/registry.db")).unwrap();
    let all = registry.expect("the loop is entered").shared("", &Spans::default()).unwrap().organisation;
    assert!(all.spent.cost_usd >= cost - 1e-9, "{} spent, but {all:?} known", cost);
    assert_eq!(all.in_flight, 0, "{all:?}");
}

fn text_of(event: &Event) -> String {
    let mut value = serde_json::to_value(event).unwrap();
    normalise(&mut value);
    value.to_string()
}

fn normalise(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for name in ["base", "carried", "commit", "tree"] {
                if let Some(value) = fields.get_mut(name) {
                    *value = Value::String("some".to_owned());
                }
            }
            for name in [
                "agent",
                "command_line",
                "detail",
                "digest",
                "duration",
                "ended_processes",
                "policy",
                "reference",
                "workspace",
                // Of a checkpoint.
                "id",
                "at",
                "loop",
                "seq",
                "kept",
                "kept_under",
                "previous",
                // It names the checkpoint and its commit.
                "rollback_instructions",
                "agent_duration",
                "check_duration",
            ] {
                fields.remove(name);
            }
            if fields.get("what").and_then(Value::as_str).is_some_and(is_short_commit) {
                fields.remove("what");
            }
            if fields.get("type").is_some_and(|kind| kind == "iteration_started") {
                fields.remove("command");
            }
            fields.values_mut().for_each(normalise);
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_short_commit(text: &str) -> bool {
    text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn files_below(directory: &std::path::Path, wanted: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_below(&path, wanted));
        } else if wanted(&entry.file_name().to_string_lossy()) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// Live processes with this in their environment.
fn processes_with(entry: &str) -> Vec<String> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let Ok(environment) = fs::read(process.path().join("environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes()) {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            found.push(format!("{} {}", process.file_name().display(), name.trim()));
        }
    }
    found
}
