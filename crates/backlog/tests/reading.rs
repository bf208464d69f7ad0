//! What is read from files of each dialect, and what is reported about broken ones.

use wiggum_backlog::{Backlog, Dialect};
use wiggum_core::task::{Criterion, FileStatus, Kind, Selection, Task, Work};

fn read(file: &str, text: &str) -> Backlog {
    Backlog::parse(file, text).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Ids with their status and dependencies, one per line: `id status [dependencies]`.
fn check(file: &str, text: &str, dialect: Dialect, expected: &[&str]) -> Backlog {
    let backlog = read(file, text);
    assert_eq!(backlog.dialect(), dialect, "{text}");
    let found: Vec<String> = backlog.tasks().iter().map(summary).collect();
    assert_eq!(found, expected, "{text}");
    backlog
}

fn summary(task: &Task) -> String {
    let depends_on: Vec<&str> = task.depends_on.iter().map(|id| id.as_str()).collect();
    let depends_on =
        if depends_on.is_empty() { String::new() } else { format!(" [{}]", depends_on.join(" ")) };
    format!("{} {}{depends_on}", task.id, task.status.name())
}

fn check_problems(file: &str, text: &str, expected: &[&str]) {
    let problems = match Backlog::parse(file, text) {
        Ok(backlog) => panic!("accepted as {:?}: {text}", backlog.dialect()),
        Err(problems) => problems.to_string(),
    };
    let found: Vec<&str> = problems.lines().collect();
    assert_eq!(found, expected, "{text}");
}

fn criterion(text: &str, check: Option<&str>) -> Criterion {
    Criterion { text: text.to_owned(), check: check.map(str::to_owned) }
}

#[test]
fn prd_of_the_seed() {
    let text = r#"{
  "project": "p",
  "userStories": [
    {"id": "A", "title": "First", "description": "d", "criteria": ["one", {"text": "two", "check": "make"}, {"description": "three", "check": "x"}], "passes": true},
    {"id": "B", "title": "", "description": "\n Line one\nline two", "passes": false, "depends_on": ["A", "A"]},
    {"id": "C", "passes": false, "skipped": true},
    {"id": "D", "passes": true, "skipped": true},
    {"id": 5, "acceptance_criteria": "only one", "dependsOn": ["A"], "depends_on": ["C"], "name": null}
  ]
}"#;
    // `dependsOn` is ralph-tui's, so this one reads as that; without it, as the seed's.
    let expected = ["A done", "B open [A]", "C skipped", "D done", "5 open [C A]"];
    check("PRD.json", text, Dialect::RalphTui, &expected);
    let text = text.replace("dependsOn", "unknown").replace("\"B\",", "\"B\", \"priority\": \"high\",");
    let backlog =
        check("x.json", &text, Dialect::Prd, &["A done", "B open [A]", "C skipped", "D done", "5 open [C]"]);
    assert_eq!(
        backlog.tasks()[0].criteria,
        [criterion("one", None), criterion("two", Some("make")), criterion("three", Some("x"))]
    );
    assert_eq!(backlog.tasks()[1].title, "Line one");
    assert_eq!(backlog.tasks()[2].title, "C");
    assert_eq!(backlog.tasks()[4].criteria, [criterion("only one", None)]);
    assert_eq!(backlog.selection(), Selection::FileOrder);
    assert!(!backlog.ticks_are_claims());
    assert_eq!(backlog.line_of("B"), Some(5));
    assert_eq!(backlog.line_of("nope"), None);
}

#[test]
fn snarktank_goes_by_priority() {
    let text = r#"{"project": "p", "branchName": "ralph/x", "userStories": [
        {"id": "none", "title": "t", "acceptanceCriteria": ["a"], "passes": false, "notes": ""},
        {"id": "two", "title": "t", "priority": 2, "passes": false, "notes": "look here"},
        {"id": "one", "title": "t", "priority": 1, "passes": true},
        {"id": "two-b", "title": "t", "priority": 2.0, "passes": false}
    ]}"#;
    let expected = ["one done", "two open", "two-b open", "none open"];
    let backlog = check("prd.json", text, Dialect::Snarktank, &expected);
    assert!(backlog.ticks_are_claims());
    assert_eq!(backlog.selection(), Selection::FileOrder);
    assert_eq!(backlog.task("two").unwrap().notes.as_deref(), Some("look here"));
    assert_eq!(backlog.task("none").unwrap().notes, None);
}

#[test]
fn ralph_tui() {
    let text = r#"{"name": "p", "metadata": {"x": [1]}, "userStories": [
        {"id": "B", "title": "t", "acceptanceCriteria": ["a"], "dependsOn": ["A"], "labels": ["ui"], "passes": false},
        {"id": "A", "title": "t", "completionNotes": "done", "passes": true}
    ]}"#;
    let backlog = check("prd.json", text, Dialect::RalphTui, &["B open [A]", "A done"]);
    assert_eq!(backlog.tasks()[0].labels, ["ui"]);
    assert!(!backlog.ticks_are_claims());
}

#[test]
fn ralphy() {
    let text = r#"{"tasks": [
        {"title": "Set up DB", "completed": true, "parallel_group": 1},
        {"title": "Set-up db!", "completed": false, "depends_on": ["Set up DB"]},
        {"id": "own", "title": "Other", "description": "more", "skipped": true}
    ]}"#;
    let expected = ["set-up-db done", "set-up-db-2 open [set-up-db]", "own skipped"];
    check("tasks.json", text, Dialect::Ralphy, &expected);
    check_problems(
        "prd.json",
        "{\"tasks\": [{\"title\": \"a\"},\n{\"title\": \"a\"},\n{}]}",
        &[
            "prd.json:2: duplicate title `a`; expected every title once",
            "prd.json:3: missing field; expected a `title`",
        ],
    );
    check_problems(
        "tasks.yaml",
        "tasks:\n  - title: x\n",
        &[
            "tasks.yaml:1: YAML task lists are not read; expected ralphy's JSON form {\"tasks\": [{\"title\": …}]}",
        ],
    );
}

#[test]
fn tasks_json_with_every_field() {
    let text = r#"[
      {"id": "a", "description": "Do it\nwell", "status": "pending", "role": "poet", "kind": "recurring", "phase": 2,
       "depends_on": ["b"], "priority": -5, "complexity": 3, "failed_attempts": 1, "cooldown_seconds": 60,
       "timeout_seconds": 90, "last_attempt_at": 1700000000, "max_retries": 4, "inputs": ["b/out"],
       "outputs": [{"kind": "file", "name": "out", "path": "x"}], "runtime": "local", "precondition_prompt": null,
       "parent_id": "b", "labels": ["l"], "system_prompt_override": "be terse", "notes": "and kind",
       "acceptance_criteria": "works", "evaluation": {"mode": "command", "command": "make test"}, "extra": {"k": [1.10]}},
      {"id": "b", "description": "d", "status": "completed", "skipped": true},
      {"id": "c", "description": "d", "status": "failed"},
      {"id": "d", "description": "d", "status": "inprogress"},
      {"id": "e", "description": "d", "status": "in_progress"},
      {"id": "f", "description": "d", "status": "in-progress", "skipped": true}
    ]"#;
    let expected = ["a open [b]", "b done", "c failed", "d open", "e open", "f skipped"];
    let backlog = check("tasks.json", text, Dialect::Tasks, &expected);
    assert_eq!(backlog.selection(), Selection::Score);
    assert!(!backlog.ticks_are_claims());
    let mut task = Task::new("a", "Do it");
    task.description = "Do it\nwell".into();
    task.role = "poet".into();
    task.kind = Kind::Recurring;
    task.phase = 2;
    task.depends_on = vec!["b".into()];
    task.priority = -5;
    task.complexity = 3;
    task.failed_attempts = 1;
    task.timeout_seconds = Some(90);
    task.last_attempt_at = Some(1_700_000_000);
    task.max_retries = Some(4);
    task.parent = Some("b".into());
    task.labels = vec!["l".into()];
    task.notes = Some("be terse\n\nand kind".into());
    task.criteria = vec![criterion("works", None)];
    task.verify = Some("make test".into());
    assert_eq!(backlog.tasks()[0], task);
    assert!(backlog.unsupported().is_empty());
    check("x", &format!("{{\"v\": 1, \"tasks\": {text}}}"), Dialect::Tasks, &expected);
}

#[test]
fn what_cannot_be_done_yet_is_named() {
    let text = r#"[
      {"id": "a", "description": "d", "status": "pending", "evaluation": {"mode": "semantic"}, "runtime": "gastown"},
      {"id": "b", "description": "d", "status": "pending", "evaluation": {"mode": "agent_file"}},
      {"id": "c", "description": "d", "status": "failed", "precondition_prompt": "is it so?"},
      {"id": "d", "description": "d", "status": "pending", "role": "security_gate"},
      {"id": "e", "description": "d", "status": "pending", "work": {"kind": "command", "command": "make"}},
      {"id": "f", "description": "d", "status": "completed", "role": "coverage_enforcer"},
      {"id": "g", "description": "d", "status": "pending", "work": {"kind": "agent"}}
    ]"#;
    let mut backlog = read("tasks.json", text);
    let named = |backlog: &Backlog| -> Vec<String> {
        backlog.unsupported().iter().map(ToString::to_string).collect()
    };
    let expected = [
        "tasks.json:2: `a`: evaluation mode `semantic` is not available yet; expected `command`",
        "tasks.json:2: `a`: runtime `gastown` is not available yet; expected `local`",
        "tasks.json:3: `b`: evaluation mode `agent_file` is not available yet; expected `command`",
        "tasks.json:4: `c`: `precondition_prompt` is not available yet; expected none",
        "tasks.json:5: `d`: work of kind `gate` is not available yet; expected `agent`, `file`, `notice` or `mcp_call`",
        "tasks.json:6: `e`: work of kind `command` is not available yet; expected `agent`, `file`, `notice` or `mcp_call`",
    ];
    assert_eq!(named(&backlog), expected);
    assert_eq!(backlog.task("f").unwrap().work, Work::Gate { gate: "coverage_enforcer".into() });
    assert_eq!(backlog.task("e").unwrap().work, Work::Command { command: "make".into() });
    backlog.set_status("a", FileStatus::Skipped).unwrap();
    assert_eq!(named(&backlog), expected[2..]);
}

#[test]
fn all_problems_at_once_each_with_its_line() {
    check_problems(
        "tasks.json",
        r#"[
  {"id": "a", "description": "d", "status": "done"},
  {"id": "a", "description": 5, "status": "pending", "phase": 0},
  {"id": "", "description": "d", "status": "pending"},
  {"description": "d"},
  7,
  {"id": "b", "description": "d", "status": "pending",
   "depends_on": ["a",
     "ghost"], "kind": "once"},
  {"id": "c", "description": "d", "status": "pending", "depends_on": ["d"]},
  {"id": "d", "description": "d", "status": "pending", "depends_on": ["c"], "status": "failed"},
  {"id": "e", "description": "d", "status": "pending", "depends_on": ["e"], "priority": 1.5, "labels": "x"},
  {"id": "f", "description": "d", "status": "pending", "work": {"kind": "magic"}, "max_retries": -1},
  {"id": "g", "description": "d", "status": "pending", "evaluation": {"mode": "command"}, "outputs": [{"kind": "?"}]}
]"#,
        &[
            "tasks.json:2: unknown status `done`; expected pending, inprogress, in_progress, in-progress, completed, failed",
            "tasks.json:3: duplicate id `a`; expected every id once",
            "tasks.json:3: `description` is a number; expected a string",
            "tasks.json:3: `phase` is 0; expected a whole number of at least 1",
            "tasks.json:4: empty `id`; expected a name",
            "tasks.json:5: missing field; expected `id`",
            "tasks.json:5: missing field; expected `status` (pending, inprogress, completed or failed)",
            "tasks.json:6: a number in the list of tasks; expected an object",
            "tasks.json:9: `b` depends on `ghost`, which is not in the file; expected the id of a task",
            "tasks.json:9: unknown kind `once`; expected milestone, recurring",
            "tasks.json:10: dependency cycle c → d → c; expected none",
            "tasks.json:11: duplicate key `status`; expected it once per task",
            "tasks.json:12: dependency cycle e → e; expected none",
            "tasks.json:12: `priority` is a number; expected a whole number",
            "tasks.json:12: `labels` is a string; expected an array of strings",
            "tasks.json:13: `work` cannot be read (unknown variant `magic`, expected one of `agent`, `command`, `file`, `notice`, `mcp_call`, `gate`, `flow` at line 1 column 16); expected {\"kind\": …} of agent, command, file, notice, mcp_call, gate or flow",
            "tasks.json:13: `max_retries` is -1; expected a whole number of at least 0",
            "tasks.json:14: `evaluation` without `command`; expected the command to run",
            "tasks.json:14: unknown output kind `?`; expected file, json, summary, sub_task_manifest",
        ],
    );
}

#[test]
fn broken_files_say_what_was_expected() {
    check_problems("PRD.json", "", &["PRD.json:1: unexpected end of the file; expected a value"]);
    check_problems(
        "PRD.json",
        "{\n  \"userStories\": [\n    {\"id\": \"a\"},\n  ]\n}",
        &["PRD.json:4: trailing comma; expected a value after `,` (JSON allows none at the end)"],
    );
    check_problems(
        "PRD.json",
        "{\"project\": 1}",
        &[
            "PRD.json:1: no list of tasks; expected an array of tasks, or an object with `userStories` or `tasks`",
        ],
    );
    check_problems(
        "PRD.json",
        "{\n\"userStories\": {}}",
        &["PRD.json:2: `userStories` is an object; expected an array"],
    );
    check_problems(
        "PRD.json",
        "{\"userStories\": [],\n\"userStories\": []}",
        &["PRD.json:2: second list of tasks; expected one `userStories` or `tasks`"],
    );
    check_problems(
        "PRD.json",
        "{\"userStories\": [\n{\"id\": \"a\", \"passes\": \"true\", \"criteria\": [1, {}], \"depends_on\": \"b\"},\n{\"title\": \"x\"}]}",
        &[
            "PRD.json:2: `passes` is a string; expected true or false",
            "PRD.json:2: `criteria[]` is a number; expected a string or {text, check}",
            "PRD.json:2: `criteria[]` says nothing; expected {text, check}",
            "PRD.json:2: `depends_on` is a string; expected an array of ids",
            "PRD.json:3: missing field; expected `id`",
        ],
    );
}

#[test]
fn markdown_boxes_ids_and_marks() {
    let text = "\
# Plan
- [ ] Write the parser
* [x] **US-001**: Bold id
+ [X] **US-002:** Bold with colon
1. [!] US-003: bare
2) [-] [US-004] bracketed
- [~] T1. dotted
- [/] T2: under way
- [ ] Any words (id: my-task) (depends: US-001, T1)
- [] no blank
- [ ] Write the parser
- [ ] T001 [P] spec kit
- [ ] **Important**: not an id
- [ ] Phase1: neither
- [ ] [link](x) text
- [ ] US-009 - dashed
- [ ] **US-010: all bold** more
- [ ]
- [ ](not-a-box)
- [a] not a box
-[ ] not a box
[ ] not a box
";
    let expected = [
        "write-the-parser open",
        "US-001 done",
        "US-002 done",
        "US-003 failed",
        "US-004 skipped",
        "T1 open",
        "T2 open",
        "my-task open [US-001 T1]",
        "no-blank open",
        "write-the-parser-2 open",
        "T001 open",
        "important-not-an-id open",
        "phase1-neither open",
        "link-x-text open",
        "US-009 open",
        "US-010 open",
    ];
    let backlog = check("fix_plan.md", text, Dialect::Markdown, &expected);
    let titles: Vec<&str> = backlog.tasks().iter().map(|task| task.title.as_str()).collect();
    assert_eq!(titles[1..6], ["Bold id", "Bold with colon", "bare", "bracketed", "dotted"]);
    assert_eq!(
        (titles[7], titles[10], titles[14], titles[15]),
        ("Any words", "[P] spec kit", "dashed", "all bold more")
    );
    assert!(backlog.ticks_are_claims());
    assert_eq!(backlog.line_of("US-003"), Some(5));
    check("TODO.md", &text.replace('\n', "\r\n"), Dialect::Markdown, &expected);
    check("PRD.md", &format!("\u{feff}{}", text.trim_end()), Dialect::Markdown, &expected);
}

#[test]
fn markdown_nesting_and_details() {
    let text = "\
- Group
  - [ ] T1: Parent
    Some words
    on two lines.
    - plain bullet
      - deeper
    - Criteria: it works (check: `make test`)
    - **Acceptance criteria:**
      - first
      - second; check: `ls`
    - Check: `true`
    - Depends on: `T4` and Last one
    > quoted
    ```sh
    - [ ] not a box
    ```
\t- [x] T2: Child
\t\t- [ ] T3: Grandchild
lazy line

  - [ ] T4: Sibling

Paragraph.

- [ ] Last one
";
    let expected = ["T1 open [T4 last-one T2]", "T2 done [T3]", "T3 open", "T4 open", "last-one open"];
    let backlog = check("TODO.md", text, Dialect::Markdown, &expected);
    let parent = backlog.task("T1").unwrap();
    assert_eq!(
        parent.description,
        "Some words\non two lines.\n- plain bullet\n  - deeper\n> quoted\n```sh\n- [ ] not a box\n```"
    );
    assert_eq!(
        parent.criteria,
        [
            criterion("it works", Some("make test")),
            criterion("first", None),
            criterion("second", Some("ls")),
            criterion("`true` succeeds", Some("true")),
        ]
    );
    let parents: Vec<_> =
        backlog.tasks().iter().map(|task| task.parent.as_ref().map(|id| id.as_str())).collect();
    assert_eq!(parents, [None, Some("T1"), Some("T2"), None, None]);
    assert_eq!(backlog.task("T3").unwrap().description, "lazy line");
}

#[test]
fn markdown_that_does_not_count() {
    let text = "\
- [ ] one
```
- [ ] code
~~~
- [ ] still code
```
~~~~ text
- [ ] code
~~~
- [ ] code
~~~~
<!-- - [ ] comment -->
<!--
- [ ] comment
-->
> - [ ] quoted
- [ ] two <!-- - [ ] x --> words
- [ ] `<!--` in code
- [ ] strip `<!-- x -->` here
- [ ] dangling <!-- is text
- item
  ```
  - [ ] code in an item that ends with it
- [ ] three
## Optional
- [ ] no
### Part
- [ ] no
## Next
- [ ] four
# 5. **Nice-to-Have** (later):
- [ ] no
## Sub
- [ ] no
Future Enhancements
===================
- [ ] no
Now
---
- [ ] no, inside the level above
Done
====
- [ ] five
###### FUTURE
- [ ] no
## Optional features
- [ ] six
- - [ ] seven
    # not a heading
";
    let expected = [
        "one open",
        "two-words open",
        "in-code open",
        "strip-x-here open",
        "dangling-is-text open",
        "three open",
        "four open",
        "five open",
        "six open",
        "seven open",
    ];
    check("fix_plan.md", text, Dialect::Markdown, &expected);
}

#[test]
fn markdown_problems() {
    check_problems(
        "TODO.md",
        "- [ ] US-001: a\n- [ ] US-001: b\n- [ ] T1: c\n  - Depends on: ghost\n- [ ] T2: d\n  - [ ] T3: e (depends: T2)\n",
        &[
            "TODO.md:2: duplicate id `US-001`; expected every id once",
            "TODO.md:4: `T1` depends on `ghost`, which is not in the file; expected the id of a task",
            "TODO.md:5: dependency cycle T2 → T3 → T2; expected none",
        ],
    );
}

#[test]
fn made_ids_stay_while_boxes_are_ticked_and_lines_move() {
    let before = read("TODO.md", "- [ ] Build it\n- [ ] Test it (all)\n");
    let after = read("TODO.md", "# New\n\n* [x] Test it (all)\n\n* [!] New\n* [x] Build it\n");
    for task in before.tasks() {
        assert!(after.task(task.id.as_str()).is_some(), "{}", task.id);
    }
}

#[test]
fn content_decides_before_the_name() {
    check(
        "TODO.md",
        "[{\"id\": \"a\", \"description\": \"d\", \"status\": \"pending\"}]",
        Dialect::Tasks,
        &["a open"],
    );
    check("notes", "- [ ] a", Dialect::Markdown, &["a open"]);
    check("x.md", "[toc]\n- [ ] a", Dialect::Markdown, &["a open"]);
    check("x.json", "[]", Dialect::Tasks, &[]);
    check("x.md", "", Dialect::Markdown, &[]);
}

#[test]
fn next_ids_follow_their_predecessors() {
    let backlog = read("TODO.md", "- [ ] US-009: a\n- [ ] US-007: b\n- [ ] T3: c\n- [ ] x (id: US-x)\n");
    assert_eq!(wiggum_backlog::generate_task_id(&backlog, "US-"), "US-010");
    assert_eq!(wiggum_backlog::generate_task_id(&backlog, "T"), "T4");
    assert_eq!(wiggum_backlog::generate_task_id(&backlog, "new-"), "new-1");
}
