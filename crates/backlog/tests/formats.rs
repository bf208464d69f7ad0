//! Each format as people have it: what becomes a task, what is written for a status, and that nothing else changes.

use proptest::prelude::*;
use wiggum_backlog::{Backlog, Dialect, EditError, NewTask, Reading, TaskChange};
use wiggum_core::task::{FileStatus, Task};

fn read(file: &str, text: &str) -> Backlog {
    let backlog = Backlog::parse(file, text).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    backlog.recognised().unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    backlog
}

/// Ids with their status and dependencies, one per line: `id status [dependencies]`.
fn check(file: &str, text: &str, dialect: Dialect, expected: &[&str]) -> Backlog {
    let backlog = read(file, text);
    let found: Vec<String> = backlog.tasks().iter().map(summary).collect();
    assert_eq!(found, expected, "{text}");
    assert_eq!(backlog.dialect(), dialect, "{text}");
    backlog
}

fn summary(task: &Task) -> String {
    let depends_on: Vec<&str> = task.depends_on.iter().map(|id| id.as_str()).collect();
    let depends_on =
        if depends_on.is_empty() { String::new() } else { format!(" [{}]", depends_on.join(" ")) };
    format!("{} {}{depends_on}", task.id, task.status.name())
}

fn named(backlog: &Backlog) -> Vec<String> {
    backlog.unsupported(&|_| false).iter().map(ToString::to_string).collect()
}

/// Writes a status and says what became of the text: `gone → new`.
fn written(backlog: &Backlog, id: &str, status: FileStatus) -> String {
    let mut edited = backlog.clone();
    edited.set_status(id, status).unwrap_or_else(|error| panic!("{id}: {error}"));
    let (before, after) = (backlog.text(), edited.text());
    let start = before
        .chars()
        .zip(after.chars())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum::<usize>();
    let (gone, new) = (&before[start..], &after[start..]);
    let end: usize = gone
        .chars()
        .rev()
        .zip(new.chars().rev())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum();
    format!("{} → {}", &gone[..gone.len() - end], &new[..new.len() - end])
}

const TASK_MASTER: &str = r#"{
  "master": {
    "tasks": [
      {"id": 1, "title": "Lay the ground", "description": "Start", "details": "With care.", "testStrategy": "It runs.",
       "status": "done", "dependencies": [], "priority": "low", "subtasks": [{"id": 1, "title": "x", "status": "pending"}]},
      {"id": 2, "title": "Build", "status": "pending", "dependencies": [1, 9], "priority": "low", "subtasks": []},
      {"id": 3, "title": "Polish", "status": "in-progress", "dependencies": ["1"], "priority": "high", "subtasks": [
        {"id": 1, "title": "Sand", "status": "done", "dependencies": []},
        {"id": 2, "title": "Paint", "status": "pending", "dependencies": [1, "2.1"], "details": "Blue."}
      ]},
      {"id": 4, "title": "Wait", "status": "review", "dependencies": []},
      {"id": 9, "title": "Old", "status": "done", "dependencies": [77]}
    ],
    "metadata": {"created": "2026-01-01"}
  },
  "later": {"tasks": [{"id": 1, "title": "Other", "status": "deferred", "dependencies": []}]}
}
"#;

#[test]
fn task_master() {
    // `2.1` is not there: on its own that is a mistake.
    assert!(Backlog::parse("tasks.json", TASK_MASTER).is_err());
    let text = TASK_MASTER.replace("[1, \"2.1\"]", "[1, \"1.1\"]");
    let expected = [
        "3 open [1 3.1 3.2]",
        "3.1 done",
        "3.2 open [3.1 1.1]",
        "4 skipped",
        "9 done",
        "1 done [1.1]",
        "1.1 done",
        "2 open [1 9]",
    ];
    let backlog = check("tasks.json", &text, Dialect::TaskMaster, &expected);
    assert!(named(&backlog).is_empty());
    let part = backlog.task("3.2").unwrap();
    assert_eq!(part.parent.as_ref().unwrap().as_str(), "3");
    assert_eq!(part.notes.as_deref(), Some("Part of task 3: Polish\n\nBlue."));
    let first = backlog.task("1").unwrap();
    assert_eq!((first.notes.as_deref(), first.criteria[0].text.as_str()), (Some("With care."), "It runs."));

    assert_eq!(written(&backlog, "3.2", FileStatus::Done), "pending → done");
    assert_eq!(written(&backlog, "4", FileStatus::Open), "review → pending");
    assert_eq!(written(&backlog, "2", FileStatus::Skipped), "pending → deferred");
    assert_eq!(written(&backlog, "2", FileStatus::Failed), " → ", "it has no word for that");
    let mut worked = backlog.clone();
    worked.mark_in_progress("2", true).unwrap();
    assert_eq!(
        worked.text(),
        text.replace("\"Build\", \"status\": \"pending\"", "\"Build\", \"status\": \"in-progress\"")
    );
    worked.mark_in_progress("2", false).unwrap();
    assert_eq!(worked.text(), text);

    let other =
        Backlog::parse_as("tasks.json", text.as_str(), Reading { tag: Some("later"), keep: None }).unwrap();
    assert_eq!(other.tasks()[0].title, "Other");
    assert_eq!(other.reread(text.as_str()).unwrap().tasks()[0].title, "Other", "a loop keeps its list");
    let untagged =
        r#"{"tasks": [{"id": 1, "title": "a", "details": "d", "status": "pending", "dependencies": []}]}"#;
    let mut untagged = check("tasks.json", untagged, Dialect::TaskMaster, &["1 open"]);
    untagged
        .add(&NewTask {
            id: "2".into(),
            title: "b".into(),
            depends_on: vec!["1".into()],
            ..NewTask::default()
        })
        .unwrap();
    assert!(
        untagged.text().contains(r#"{"id": 2, "title": "b", "status": "pending", "dependencies": [1]}"#),
        "{}",
        untagged.text()
    );
    // An unknown word is read as open, named, and not run.
    let odd = text.replace("\"review\"", "\"parked\"");
    assert_eq!(named(&read("tasks.json", &odd)).len(), 1);
}

#[test]
fn feature_lists() {
    let text = r#"[
  {"category": "ui", "description": "Shows a list", "steps": ["Open it", "See it"], "passes": false},
  {"category": "ui", "description": "Shows a list", "steps": [], "passes": true}
]"#;
    let backlog =
        check("feature_list.json", text, Dialect::Features, &["shows-a-list open", "shows-a-list-2 done"]);
    let first = &backlog.tasks()[0];
    assert_eq!(first.criteria.iter().map(|c| c.text.as_str()).collect::<Vec<_>>(), ["Open it", "See it"]);
    assert_eq!(first.labels, ["ui"]);
    assert_eq!(written(&backlog, "shows-a-list", FileStatus::Done), "fals → tru");
    assert_eq!(written(&backlog, "shows-a-list", FileStatus::Skipped), " → , \"skipped\": true");

    let text = r#"{"status_legend": {"not_started": "", "passing": "", "blocked": ""}, "features": [
  {"id": "a", "name": "A", "priority": 2, "status": "not_started", "blockedBy": "b, c"},
  {"id": "b", "name": "B", "priority": 1.5, "status": "in_progress", "dependencies": []},
  {"id": "c", "title": "C", "priority": "high", "status": "failing", "after": null},
  {"id": "d", "title": "D", "status": "blocked", "depends_on": "none (yet)"}
]}"#;
    let expected = ["c open", "b open", "a open [b c]", "d skipped"];
    let backlog = check("x.json", text, Dialect::Features, &expected);
    assert_eq!(written(&backlog, "a", FileStatus::Done), "not_started → passing");
    assert_eq!(written(&backlog, "d", FileStatus::Open), "block → not_start");

    for (file, key) in [
        (r#"{"stories": [{"id": "a", "title": "t", "KEY": false}]}"#, "passes"),
        (r#"{"user_stories": [{"id": "a", "title": "t", "KEY": false}]}"#, "done"),
        (r#"{"items": [{"id": "a", "name": "t", "KEY": false}]}"#, "completed"),
        (r#"{"tasks": [{"id": "a", "name": "t", "KEY": false}]}"#, "passes"),
        (
            r#"{"open_features": [{"id": "a", "name": "t", "KEY": false}], "meta": [{"id": 1}]}"#,
            "implemented",
        ),
    ] {
        let backlog = check("x.json", &file.replace("KEY", key), Dialect::Features, &["a open"]);
        assert_eq!(written(&backlog, "a", FileStatus::Done), "fals → tru", "{file}");
    }
    let done = r#"{"userStories": [{"id": "A", "title": "t", "status": "done"}]}"#;
    check("prd.json", done, Dialect::Features, &["A done"]);
    let two = r#"{"a": [{"id": "a", "passes": true}], "b": [{"id": "b", "passes": true}]}"#;
    let said = Backlog::parse("x.json", two).unwrap_err().to_string();
    assert_eq!(said, "x.json:1: several lists of tasks (`a`, `b`, …); expected one");
    for (file, seems) in [
        (
            r#"{"version": "2.0.0", "tasks": [{"label": "build", "type": "shell", "command": "make"}]}"#,
            "an editor's",
        ),
        (r#"{"$schema": "x", "properties": {"tasks": {}}}"#, "a JSON schema"),
    ] {
        let said = Backlog::parse("tasks.json", file).unwrap_err().to_string();
        assert!(said.contains(seems), "{said}");
    }
}

const BEADS: &str = r#"{"id":"w-1","title":"Epic","status":"open","priority":1,"issue_type":"epic","created_at":"2026-01-01T00:00:00Z"}
{"id":"w-3","title":"Late","description":"d","status":"open","priority":1,"issue_type":"task","created_at":"2026-01-03T00:00:00Z","dependencies":[{"issue_id":"w-3","depends_on_id":"w-2","type":"blocks"},{"issue_id":"w-3","depends_on_id":"w-1","type":"parent-child"},{"issue_id":"w-3","depends_on_id":"w-9","type":"blocks"}]}
{"id":"w-2","title":"Early","status":"in_progress","priority":1,"issue_type":"task","created_at":"2026-01-02T00:00:00Z","acceptance_criteria":"It works"}
{"id":"w-4","title":"Gone","status":"tombstone","priority":0,"issue_type":"task"}

{"id":"w-5","title":"First","status":"closed","priority":0,"issue_type":"bug","dependencies":[{"issue_id":"w-5","depends_on_id":"w-2","type":"related"}]}
"#;

#[test]
fn beads() {
    let expected = ["w-5 done", "w-1 open [w-3]", "w-2 open", "w-3 open [w-2]"];
    let backlog = check(".beads/issues.jsonl", BEADS, Dialect::Beads, &expected);
    assert_eq!(backlog.line_of("w-2"), Some(3));
    assert_eq!(backlog.task("w-3").unwrap().parent.as_ref().unwrap().as_str(), "w-1");
    assert_eq!(written(&backlog, "w-2", FileStatus::Done), "in_progress → closed");
    assert_eq!(written(&backlog, "w-5", FileStatus::Open), "closed → open");
    let mut changed = backlog.clone();
    changed.change("w-3", &TaskChange { title: Some("Later".into()), ..TaskChange::default() }).unwrap();
    assert_eq!(changed.text(), BEADS.replace("Late", "Later"));
    // An issue needs times that we do not know: its own program adds it.
    assert!(matches!(
        changed.add(&NewTask { id: "w-6".into(), title: "t".into(), ..NewTask::default() }),
        Err(EditError::NotInPlace { .. })
    ));
    let broken = BEADS.replace("\"Early\",", "\"Early\"");
    assert!(Backlog::parse("issues.jsonl", broken).unwrap_err().to_string().starts_with("issues.jsonl:3: "));
}

const HEADINGS: &str = "# Login plan

Some words.

### Task 1: Write the form

**Files:** `a.rs`

- [x] **Step 1: Fail**
- [X] **Step 2: Pass**

### Task 2: Check the password

Depends on: Task 1

- [x] Step 1
- [ ] Step 2

```rust
- [ ] not a step
```

## Rollout

- [ ] Tell people
";

#[test]
fn headings_are_tasks_and_their_boxes_are_steps() {
    let expected = ["task-1 done", "task-2 open [task-1]"];
    let backlog = check("docs/plans/login.md", HEADINGS, Dialect::Headings, &expected);
    let second = backlog.task("task-2").unwrap();
    assert_eq!(second.title, "Check the password");
    assert!(second.description.contains("- [ ] Step 1\n- [ ] Step 2\n\n```rust"), "{}", second.description);
    let mut edited = backlog.clone();
    edited.set_status("task-2", FileStatus::Done).unwrap();
    assert_eq!(edited.text(), HEADINGS.replace("- [ ] Step 2", "- [x] Step 2"));
    edited.set_status("task-1", FileStatus::Open).unwrap();
    assert!(edited.text().contains("- [ ] **Step 1: Fail**\n- [ ] **Step 2: Pass**"), "{}", edited.text());
    assert_eq!(written(&backlog, "task-2", FileStatus::Skipped), " →  (skipped)");

    // Phases with boxes group tasks, as in spec-kit.
    let phases = "## Phase 1: Setup\n\n- [ ] T001 a\n- [x] T002 b\n\n## Phase 2: Rest\n\n- [ ] T003 c\n";
    check("tasks.md", phases, Dialect::Markdown, &["T001 open", "T002 done", "T003 open"]);
    // Without boxes they are the tasks of a plan.
    let plan =
        "# Plan\n\n## Phase 1: Setup ✅\n\nwords\n\n## Phase 2 - Rest\n\n**Status:** Not Started\n\n- one\n";
    let backlog = check("IMPLEMENTATION_PLAN.md", plan, Dialect::Headings, &["phase-1 done", "phase-2 open"]);
    assert_eq!(written(&backlog, "phase-2", FileStatus::Done), "Not Started → Complete");
    assert_eq!(written(&backlog, "phase-1", FileStatus::Open), " ✅ → ");
    let stories = "# PRD\n\n## US-001: Log in\n\nAs a user …\n\n## US-002: Log out (done)\n";
    let backlog = check("PRD.md", stories, Dialect::Headings, &["US-001 open", "US-002 done"]);
    assert_eq!(written(&backlog, "US-001", FileStatus::Done), " →  ✅");
    let tracks = "# Tracks\n\n## [~] Track: Loot\n*Link*\n\n---\n\n## [ ] Track: Maps\n";
    let backlog = check("conductor/tracks.md", tracks, Dialect::Headings, &["loot open", "maps open"]);
    assert_eq!(written(&backlog, "maps", FileStatus::Done), "  → x");
    // What is skipped says so behind its words, and keeps its name.
    for (id, text) in
        [("maps", tracks), ("task", "# [] []"), ("one-see-below", "# [-] one (see below)\n\n# [ ] two")]
    {
        let mut backlog = Backlog::parse("conductor/tracks.md", text.to_owned()).unwrap();
        backlog.set_status(id, FileStatus::Skipped).unwrap();
        let again = Backlog::parse("conductor/tracks.md", backlog.text()).unwrap();
        assert_eq!(again.task(id).unwrap().status, FileStatus::Skipped, "{}", backlog.text());
        assert_eq!(again.task(id).unwrap().title, backlog.task(id).unwrap().title);
        backlog.set_status(id, FileStatus::Open).unwrap();
        assert!(!backlog.text().contains("skipped"), "{}", backlog.text());
    }
}

#[test]
fn rows_of_tables_with_a_status_are_tasks() {
    let text = "# Roadmap\n\n| # | Feature | Status | Notes |\n|---|:--|--|--|\n| 1 | **Parser** | ✅ Done | a \\| b |\n| 2 | Lexer | Not started | |\n| 3 | Docs | 🚧 In Progress | `x|y` |\n\n| Name | Size |\n|--|--|\n| no | 1 |\n";
    let backlog = check("notes.md", text, Dialect::Table, &["1 done", "2 open", "3 open"]);
    assert_eq!(backlog.task("1").unwrap().title, "Parser");
    assert_eq!(backlog.task("3").unwrap().description, "notes: `x|y`");
    assert_eq!(written(&backlog, "2", FileStatus::Done), "Not started → ✅ Done");
    assert_eq!(written(&backlog, "1", FileStatus::Open), "✅ Done → Open");
    let signs = "| Task | Done |\n|--|--|\n| a | ✅ |\n| b |  |\n| c | ⬜ |\n";
    let backlog = check("x.md", signs, Dialect::Table, &["a done", "b open", "c open"]);
    assert_eq!(written(&backlog, "b", FileStatus::Done), " → ✅");
    // No status, no tasks.
    let plain = Backlog::parse("x.md", "| Task | Owner |\n|--|--|\n| a | me |\n").unwrap();
    assert!(plain.recognised().is_err());
}

#[test]
fn plain_items_are_tasks_in_files_for_work() {
    let text = "# TODO\n\n## Now\n\n- Mend the lexer\n  with care\n- ~~Old thing~~\n1. Write `docs`\n   - first part\n- ✅ Shipped\n- [a link](x.md)\n\n## Notes\n\n- People like it\n\n## Done\n\n- All of this\n\n## Future\n\n- A moon base\n";
    let expected =
        ["mend-the-lexer open", "old-thing done", "write-docs open", "shipped done", "all-of-this done"];
    let backlog = check("TODO.md", text, Dialect::Items, &expected);
    assert_eq!(backlog.task("mend-the-lexer").unwrap().description, "with care");
    assert_eq!(written(&backlog, "mend-the-lexer", FileStatus::Done), " →  ✅");
    assert_eq!(written(&backlog, "write-docs", FileStatus::Skipped), " →  (skipped)");
    assert_eq!(written(&backlog, "old-thing", FileStatus::Open), "~~Old thing~~ → Old thing");
    for name in ["ROADMAP.md", "docs/Implementation-Plan.md", "backlog.md", "tasks.md"] {
        check(name, "# x\n\n- one thing\n", Dialect::Items, &["one-thing open"]);
    }
    // Elsewhere items are words, and so are they where there is a box.
    assert!(Backlog::parse("README.md", text).unwrap().recognised().is_err());
    check("TODO.md", "- [ ] a box\n- an item\n", Dialect::Markdown, &["a-box open"]);
    // A box that somebody adds does not make the other tasks disappear.
    let more = text.replace("## Now\n", "## Now\n\n- [ ] new one\n");
    let again = backlog.reread(more).unwrap();
    assert!(again.task("mend-the-lexer").is_some() && again.task("new-one").is_some());
}

const BACKLOG_MD: &str = "---
id: task-7
title: 'Log in: by mail'
status: To Do
assignee: []
labels: [web, mail]
dependencies: []
---

## Description

Words.

## Acceptance Criteria
<!-- AC:BEGIN -->
- [x] #1 A mail is sent
- [ ] #2 The link works
<!-- AC:END -->
";

#[test]
fn backlog_md() {
    let backlog = check("backlog/tasks/task-7 - x.md", BACKLOG_MD, Dialect::BacklogMd, &["task-7 open"]);
    let task = backlog.task("task-7").unwrap();
    assert_eq!((task.title.as_str(), task.labels.len()), ("Log in: by mail", 2));
    assert_eq!(
        task.criteria.iter().map(|c| c.text.as_str()).collect::<Vec<_>>(),
        ["A mail is sent", "The link works"]
    );
    assert_eq!(written(&backlog, "task-7", FileStatus::Done), "To Do → Done");
    let waits = BACKLOG_MD.replace("dependencies: []", "dependencies:\n  - task-3");
    assert_eq!(named(&read("x.md", &waits)).len(), 1, "the others are not read with it");
}

const SPRINT: &str = "# Statuses: backlog, drafted …
story_location: docs/stories

development_status:
  # Epic 1: Ground
  epic-1: in-progress
  1-1-set-up: done            # with care
  1-2-log-in: ready-for-dev
  1-3-log-out: review
  epic-1-retrospective: optional

other: 1
";

#[test]
fn sprint_status() {
    let expected = ["1-1-set-up done", "1-2-log-in open", "1-3-log-out skipped"];
    let backlog = check("sprint-status.yaml", SPRINT, Dialect::SprintStatus, &expected);
    let task = backlog.task("1-2-log-in").unwrap();
    assert_eq!(task.title, "Log in");
    assert_eq!(task.description, "Epic 1: Ground\nThe story is in docs/stories/1-2-log-in.md.");
    assert_eq!(written(&backlog, "1-2-log-in", FileStatus::Done), "ready-for-dev → done");
    assert_eq!(written(&backlog, "1-1-set-up", FileStatus::Open), "done → ready-for-dev");
}

const RALPHY: &str = "# mine
tasks:
  - title: Make the form
    completed: true
  - title: \"Check: it\"   # soon
    description: |
      completed: no
      really
    depends_on: [Make the form]
  - title: Last
    completed: false
    parallel_group: 1
other: x
";

#[test]
fn ralphy_yaml() {
    let expected = ["make-the-form done", "check-it open [make-the-form]", "last open"];
    let backlog = check("tasks.yaml", RALPHY, Dialect::RalphyYaml, &expected);
    assert_eq!(backlog.task("check-it").unwrap().description, "completed: no\nreally");
    assert_eq!(written(&backlog, "last", FileStatus::Done), "fals → tru");
    assert_eq!(written(&backlog, "check-it", FileStatus::Done), " →   completed: true\n  ");
    let words =
        RALPHY.replace("completed: true", "status: done").replace("completed: false", "status: pending");
    check("tasks.yml", &words, Dialect::RalphyYaml, &expected);
}

#[test]
fn gsd_plans_are_refused_for_what_they_are() {
    let text =
        "<tasks>\n<task type=\"auto\">\n<name>Task 1: x</name>\n</task>\n</tasks>\n\n- [ ] tests pass\n";
    let said = Backlog::parse("01-01-PLAN.md", text).unwrap_err().to_string();
    assert!(said.starts_with("01-01-PLAN.md:1: a plan of GSD"), "{said}");
}

/// A file of each format, all of whose tasks can be given any status.
fn samples() -> Vec<(&'static str, String)> {
    vec![
        ("tasks.json", TASK_MASTER.replace("[1, \"2.1\"]", "[1]").replace("[77]", "[]")),
        ("issues.jsonl", BEADS.to_owned()),
        ("features.json", "{\"features\": [\n {\"id\": \"a\", \"status\": \"passing\"},\n {\"id\": \"b\", \"status\": \"todo\"}\n]}".to_owned()),
        ("list.json", "[{\"description\": \"one\", \"passes\": true}, {\"description\": \"two\", \"passes\": false}]".to_owned()),
        ("plan.md", HEADINGS.to_owned()),
        ("table.md", "| Id | Task | Status |\n|--|--|--|\n| A | é one | TODO |\n| B | two | DONE |\n".to_owned()),
        ("TODO.md", "# x\n\n- one\n  more\n- two ✅\n* three (skipped)\n".to_owned()),
        ("phases.md", "## Phase 1: a\n\nStatus: todo\n\n## Phase 2: b ✅\n\n## Phase 3: c\n".to_owned()),
        ("x.md", BACKLOG_MD.to_owned()),
        ("sprint-status.yaml", SPRINT.to_owned()),
        ("tasks.yaml", RALPHY.to_owned()),
    ]
}

const STATUSES: [FileStatus; 4] =
    [FileStatus::Open, FileStatus::Done, FileStatus::Failed, FileStatus::Skipped];

/// Sets a status and back, and says what else that changed.
fn harm(before: &Backlog, file: &str, id: &str, status: FileStatus) -> Result<(), String> {
    let was = before.task(id).ok_or("gone")?.status;
    let mut edited = before.clone();
    edited.set_status(id, status).map_err(|error| error.to_string())?;
    let after = Backlog::parse(file, edited.text()).map_err(|problems| problems.to_string())?;
    let known = if before.dialect().can_say(status) { status } else { FileStatus::Open };
    let is_part = |task: &Task| task.parent.as_ref().is_some_and(|parent| parent.as_str() == id);
    for task in before.tasks() {
        let read = after.task(task.id.as_str()).ok_or_else(|| format!("{} is gone", task.id))?;
        let wanted = if task.id.as_str() == id { known } else { task.status };
        let may_follow = is_part(task) && before.dialect() == Dialect::TaskMaster;
        if (read.status != wanted && !may_follow) || (Task { status: task.status, ..read.clone() }) != *task {
            return Err(format!("{} became {}", summary(task), summary(read)));
        }
    }
    if edited.tasks().len() != after.tasks().len() {
        return Err("another number of tasks".to_owned());
    }
    edited.set_status(id, was).map_err(|error| error.to_string())?;
    let back = Backlog::parse(file, edited.text()).map_err(|problems| problems.to_string())?;
    if back.tasks() != before.tasks() {
        return Err(format!("not back again:\n{}", edited.text()));
    }
    Ok(())
}

#[test]
fn a_status_changes_alone_in_every_format() {
    for (file, text) in samples() {
        for (name, text) in [
            ("as it is", text.clone()),
            ("line ends", text.replace('\n', "\r\n")),
            ("mark", format!("\u{feff}{text}")),
            ("no end", text.trim_end().to_owned()),
        ] {
            let before = read(file, &text);
            assert!(!before.tasks().is_empty());
            for task in before.tasks() {
                let is_of_finished = task.parent.as_ref().and_then(|id| before.task(id.as_str()));
                if is_of_finished.is_some_and(|parent| parent.status == FileStatus::Done) {
                    continue;
                }
                for status in STATUSES {
                    if let Err(harm) = harm(&before, file, task.id.as_str(), status) {
                        panic!("{file}, {name}: {} as {}: {harm}\n{text}", task.id, status.name());
                    }
                }
            }
        }
    }
}

#[test]
fn time_grows_with_the_file_in_every_format() {
    let time = |file: &str, text: &str| {
        let start = std::time::Instant::now();
        drop(Backlog::parse(file, text).map(|backlog| backlog.recognised()));
        start.elapsed()
    };
    for (file, text) in samples() {
        let (small, large) = (text.repeat(100), text.repeat(1600));
        let small = (0..3).map(|_| time(file, &small)).min().unwrap();
        let large = (0..2).map(|_| time(file, &large)).min().unwrap();
        assert!(
            large < small * 16 * 6 + std::time::Duration::from_millis(200),
            "{file}: {small:?}, then {large:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// Pieces of files in any order: nothing panics, and what is read is written without harm or refused.
    #[test]
    fn torn_files_do_no_harm(
        sample in any::<prop::sample::Index>(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4),
        status in prop::sample::select(STATUSES.to_vec()),
    ) {
        let samples = samples();
        let (file, mut text) = samples[sample.index(samples.len())].clone();
        for (from, to, at) in cuts {
            let mut letters: Vec<char> = text.chars().collect();
            if letters.is_empty() {
                break;
            }
            let (from, to, at) = (from.index(letters.len()), to.index(letters.len()), at.index(letters.len()));
            let piece: Vec<char> = letters[from.min(to)..from.max(to)].to_vec();
            letters.splice(at..at, piece);
            text = letters.into_iter().collect();
        }
        let Ok(backlog) = Backlog::parse(file, text.as_str()) else { return Ok(()) };
        drop(backlog.recognised());
        for task in backlog.tasks() {
            let mut edited = backlog.clone();
            if edited.set_status(task.id.as_str(), status).is_ok() {
                prop_assert_eq!(edited.tasks().len(), backlog.tasks().len());
            }
        }
    }
}

#[test]
fn a_task_comes_with_what_stands_around_it() {
    let text = "---\nx: 1\n---\n# Shop\n\nWe use SQLite.\n\n- [ ] first of all\n\n## Phase 1\n\n### Cart\n\nThe cart is a table.\n\n```sql\n# not a heading\n```\n\n- [ ] T1: add an item\n  more\n- [ ] T2: remove it\n\nKeep it small.\n\n### Other\n\nNot this.\n\n- [ ] T3: x\n";
    let backlog = read("TODO.md", text);
    let context = backlog.context("T2");
    assert_eq!(context.headings, ["Shop", "Phase 1", "Cart"]);
    assert_eq!(context.preamble, "We use SQLite.");
    assert_eq!(context.section, "The cart is a table.\n\n```sql\n# not a heading\n```\n\n\nKeep it small.");
    assert_eq!(backlog.context("T3").section, "Not this.");
    let large = text.replace("The cart is a table.", &"é words \n".repeat(2000));
    assert!(read("TODO.md", &large).context("T1").section.len() < 2500);
    // Of headings that are tasks, the body is the task's own.
    let context = read("docs/plans/login.md", HEADINGS).context("task-2");
    assert_eq!(
        (context.headings.len(), context.preamble.as_str(), context.section.as_str()),
        (1, "Some words.", "")
    );
    let prd = r#"{"description": "A shop", "userStories": [{"id": "A", "title": "t", "passes": false}]}"#;
    assert_eq!(read("prd.json", prd).context("A").preamble, "A shop");
}

#[test]
fn what_is_left_out_is_said() {
    let text = "- [ ] 1. one\n  - [ ]* 1.1 tests\n\n## Future\n\n- [ ] a moon base\n";
    let backlog = read("tasks.md", text);
    let expected = [
        "tasks.md:2: a box with a star is optional, and no task",
        "tasks.md:4: the boxes below \"Future\" are no tasks",
    ];
    assert_eq!(backlog.left_out(), expected);
    let left_out = read("docs/plans/login.md", HEADINGS).left_out();
    assert_eq!(left_out, ["docs/plans/login.md:25: a box below no heading that is a task is none"]);
}

#[test]
fn an_item_is_added_to_a_plain_list() {
    let mut backlog = read("TODO.md", "# x\n\n1. one\n   more\n\n## Done\n");
    backlog
        .add(&NewTask {
            id: "T1".into(),
            title: "two".into(),
            description: "words".into(),
            ..NewTask::default()
        })
        .unwrap();
    assert_eq!(backlog.text(), "# x\n\n1. one\n   more\n2. T1: two\n   words\n\n## Done\n");
    assert_eq!(backlog.task("T1").unwrap().description, "words");
    backlog.delete("T1").unwrap();
    assert_eq!(backlog.text(), "# x\n\n1. one\n   more\n\n## Done\n");
}
