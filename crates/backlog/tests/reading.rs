//! What is read from files of each dialect, and what is reported about broken ones.

use wiggum_backlog::{Backlog, Dialect};
use wiggum_core::task::{Criterion, FileStatus, Selection, Task, Work};

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
        "todo:\n  - title: x\n",
        &[
            "tasks.yaml:1: no list of tasks in this YAML; expected `tasks:` with a list, or the `development_status:` of a sprint-status.yaml",
        ],
    );
}

#[test]
fn tasks_json_with_every_field() {
    let text = r#"[
      {"id": "a", "description": "Do it\nwell", "status": "pending", "role": "poet", "kind": "milestone", "phase": 2,
       "depends_on": ["b"], "priority": -5, "complexity": 3, "failed_attempts": 1, "cooldown_seconds": 60,
       "timeout_seconds": 90, "last_attempt_at": 1700000000, "max_retries": 4, "inputs": [],
       "outputs": [], "runtime": "local", "precondition_prompt": null,
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
    assert!(backlog.unsupported(&|role| role == "poet").is_empty());
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
      {"id": "g", "description": "d", "status": "pending", "work": {"kind": "agent"}, "role": "ideas"},
      {"id": "h", "description": "d", "status": "pending", "kind": "recurring", "cooldown_seconds": 60},
      {"id": "i", "description": "d", "status": "completed", "kind": "recurring"},
      {"id": "j", "description": "d", "status": "pending", "inputs": ["a/report"], "outputs": [{"kind": "file", "name": "o", "path": "p"}]},
      {"id": "k", "description": "d", "status": "completed", "outputs": [{"kind": "file", "name": "o", "path": "p"}]},
      {"id": "l", "description": "d", "status": "pending", "role": "poet"},
      {"id": "m", "description": "d", "status": "pending", "passes": true}
    ]"#;
    let mut backlog = read("tasks.json", text);
    let expected = [
        "tasks.json:2: `a`: evaluation mode `semantic` is not available yet; expected `command`",
        "tasks.json:2: `a`: runtime `gastown` is not available yet; expected `local`",
        "tasks.json:3: `b`: evaluation mode `agent_file` is not available yet; expected `command`",
        "tasks.json:4: `c`: `precondition_prompt` is not available yet; expected none",
        "tasks.json:5: `d`: work of kind `gate` is not available yet; expected `agent`, `file`, `notice` or `mcp_call`",
        "tasks.json:6: `e`: work of kind `command` is not available yet; expected `agent`, `file`, `notice` or `mcp_call`",
        "tasks.json:8: `g`: role `ideas` is not available yet; expected `implementer`, or a role of `agent.roles`",
        "tasks.json:9: `h`: kind `recurring` is not available yet; expected `milestone`",
        "tasks.json:10: `i`: kind `recurring` is not available yet; expected `milestone`",
        "tasks.json:11: `j`: `inputs` are not available yet; expected none",
        "tasks.json:11: `j`: `outputs` are not available yet; expected none",
        "tasks.json:13: `l`: unknown role `poet`; expected `implementer`, or a role of `agent.roles`",
        "tasks.json:14: `m`: `passes` says that it is done, but `status` does not",
    ];
    assert_eq!(named(&backlog), expected);
    assert_eq!(backlog.task("f").unwrap().work, Work::Gate { gate: "coverage_enforcer".into() });
    assert_eq!(backlog.task("e").unwrap().work, Work::Command { command: "make".into() });
    backlog.set_status("a", FileStatus::Skipped).unwrap();
    backlog.set_status("i", FileStatus::Skipped).unwrap();
    let left: Vec<&str> = expected[2..].iter().filter(|line| !line.contains("`i`")).copied().collect();
    assert_eq!(named(&backlog), left);
}

#[test]
fn a_role_is_honoured_where_an_agent_is_named_for_it() {
    let task =
        |role: &str| format!(r#"[{{"id": "a", "description": "d", "status": "pending", "role": "{role}"}}]"#);
    for role in ["ideas", "evaluator", "changelog_generator"] {
        let backlog = read("tasks.json", &task(role));
        let message = format!(
            "tasks.json:1: `a`: role `{role}` is not available yet; expected `implementer`, or a role of `agent.roles`"
        );
        assert_eq!(named(&backlog), [message]);
        assert!(backlog.unsupported(&|known| known == role).is_empty(), "{role}");
    }
    assert_eq!(named(&read("tasks.json", &task("implementer"))), [""; 0]);
}

#[test]
fn what_other_dialects_do_not_honour_is_named_too() {
    let check = |file: &str, expected: &[&str]| assert_eq!(named(&read("x.json", file)), expected, "{file}");
    let story = |members: &str| format!(r#"{{"userStories": [{{"id": "A", {members}}}]}}"#);
    check(
        &story(
            r#""kind": "recurring", "runtime": "gastown", "role": "evaluator", "precondition_prompt": "p", "evaluation": {"mode": "semantic"}"#,
        ),
        &[
            "x.json:1: `A`: evaluation mode `semantic` is not available yet; expected `command`",
            "x.json:1: `A`: kind `recurring` is not available yet; expected `milestone`",
            "x.json:1: `A`: runtime `gastown` is not available yet; expected `local`",
            "x.json:1: `A`: role `evaluator` is not available yet; expected `implementer`",
            "x.json:1: `A`: `precondition_prompt` is not available yet; expected none",
        ],
    );
    check(
        &story(r#""outputs": [{"kind": "file", "name": "o", "path": "p"}]"#),
        &["x.json:1: `A`: `outputs` are not available yet; expected none"],
    );
    for done in [r#""status": "Done", "passes": false"#, r#""completed": true"#, r#""done": true"#] {
        let key = done.split('"').nth(1).unwrap();
        check(
            &story(done),
            &[&format!("x.json:1: `A`: `{key}` says that it is done, but `passes` does not")],
        );
    }
    check(r#"{"tasks": [{"title": "A", "passes": true, "completed": false}]}"#, &[]);
    // What agrees, what is finished, and what people mean by the same words is fine.
    for fine in [
        r#""passes": true, "status": "completed", "completed": true, "kind": "recurringly""#,
        r#""status": "in progress", "role": "customer", "kind": "feature", "outputs": "a page", "evaluation": "by eye""#,
        r#""skipped": true, "kind": "recurring", "precondition_prompt": "p""#,
        r#""runtime": {"node": 20}, "phase": "MVP", "inputs": ["a/b"], "status": 7"#,
    ] {
        check(&story(fine), &[]);
    }
    let backlog = read(
        "x.json",
        &story(
            r#""evaluation": {"mode": "command", "command": "make"}, "max_retries": 1, "timeout_seconds": 9"#,
        ),
    );
    let task = &backlog.tasks()[0];
    assert_eq!(
        (task.verify.as_deref(), task.max_retries, task.timeout_seconds),
        (Some("make"), Some(1), Some(9))
    );
}

#[test]
fn groups_and_phases_that_are_not_in_order_are_named() {
    let groups = |of: [&str; 3]| {
        let [a, b, c] = of;
        format!(r#"{{"tasks": [{{"title": "a"{a}}}, {{"title": "b"{b}}}, {{"title": "c"{c}}}]}}"#)
    };
    let group = |n: u32| format!(r#", "parallel_group": {n}"#);
    assert!(named(&read("x.json", &groups([&group(1), "", &group(1)]))).is_empty());
    assert!(named(&read("x.json", &groups([&group(1), &group(2), &group(3)]))).is_empty());
    assert_eq!(
        named(&read("x.json", &groups([&group(2), "", &group(1)]))),
        [
            "x.json:1: `c`: `parallel_group` 1 comes after 2; groups are taken in the order of the file: move it before them"
        ]
    );
    let text = r#"{"userStories": [{"id": "A", "phase": 2}, {"id": "B", "phase": 1}, {"id": "C", "phase": "later"}]}"#;
    assert_eq!(
        named(&read("x.json", text)),
        [
            "x.json:1: `B`: `phase` 1 comes after 2; phases are taken in the order of the file: move it before them"
        ]
    );
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
  {"id": "g", "description": "d", "status": "pending", "evaluation": {"mode": "command"}}
]"#,
        &[
            "tasks.json:2: `a`: unknown status `done`; expected pending, inprogress, in_progress, in-progress, completed, failed",
            "tasks.json:3: duplicate id `a`; expected every id once",
            "tasks.json:3: `a`: `description` is a number; expected a string",
            "tasks.json:3: `a`: `phase` is 0; expected a whole number of at least 1",
            "tasks.json:4: empty `id`; expected a name",
            "tasks.json:5: missing field; expected `id`",
            "tasks.json:5: missing field; expected `status` (pending, inprogress, completed or failed)",
            "tasks.json:6: a number in the list of tasks; expected an object",
            "tasks.json:9: `b` depends on `ghost`, which is not in the file; expected the id of a task",
            "tasks.json:9: `b`: unknown kind `once`; expected milestone, recurring",
            "tasks.json:10: dependency cycle c → d → c; expected none",
            "tasks.json:11: `d`: duplicate key `status`; expected it once per task",
            "tasks.json:12: dependency cycle e → e; expected none",
            "tasks.json:12: `e`: `priority` is a number; expected a whole number",
            "tasks.json:12: `e`: `labels` is a string; expected an array of strings",
            "tasks.json:13: `f`: `work` cannot be read (unknown variant `magic`, expected one of `agent`, `command`, `file`, `notice`, `mcp_call`, `gate`, `flow` at line 1 column 16); expected {\"kind\": …} of agent, command, file, notice, mcp_call, gate or flow",
            "tasks.json:13: `f`: `max_retries` is -1; expected a whole number of at least 0",
            "tasks.json:14: `g`: `evaluation` without `command`; expected the command to run",
        ],
    );
}

#[test]
fn a_title_is_enough_and_what_is_missing_is_told_of_a_task() {
    let text =
        r#"{"tasks":[{"id":1,"title":"x","status":"pending"},{"id":2,"title":"y","status":"completed"}]}"#;
    let backlog = check("tasks.json", text, Dialect::Tasks, &["1 open", "2 done"]);
    assert_eq!(backlog.tasks()[0].title, "x");
    let text = r#"[{"id":1,"status":"pending"},{"id":"b","title":"y"},{"title":"z","status":"pending"}]"#;
    check_problems(
        "tasks.json",
        text,
        &[
            "tasks.json:1: `1`: missing field; expected `description` or `title`",
            "tasks.json:1: `b`: missing field; expected `status` (pending, inprogress, completed or failed)",
            "tasks.json:1: missing field; expected `id`",
        ],
    );
}

#[test]
fn a_bold_letter_is_an_id_and_a_bold_word_can_be_named() {
    let text = "\
- [ ] **A**: first
- [x] `B`: second
- [ ] **Parser**: read the lines
- [ ] Tests: of both
  - Depends on: A, B, Parser
- [ ] last (depends: tests)
";
    let expected = [
        "A open",
        "B done",
        "parser-read-the-lines open",
        "tests-of-both open [A B parser-read-the-lines]",
        "last open [tests-of-both]",
    ];
    let backlog = check("TODO.md", text, Dialect::Markdown, &expected);
    assert_eq!(backlog.tasks()[0].title, "first");
    // Letters that stand twice say of what kind a task is.
    let twice = "- [ ] **A**: one\n- [ ] **A**: two\n";
    check("TODO.md", twice, Dialect::Markdown, &["a-one open", "a-two open"]);
    let given = "- [ ] **A**: one\n- [ ] two (id: A)\n";
    check("TODO.md", given, Dialect::Markdown, &["a-one open", "A open"]);
}

#[test]
fn an_unknown_dependency_names_the_ids_that_come_near() {
    check_problems(
        "TODO.md",
        "- [ ] parser rewrite\n- [ ] write docs\n  - Depends on: parser, wriet-docs, T9\n",
        &[
            "TODO.md:3: `write-docs` depends on `parser`, which is not in the file; expected the id of a task, perhaps `parser-rewrite`",
            "TODO.md:3: `write-docs` depends on `wriet-docs`, which is not in the file; expected the id of a task, perhaps `write-docs`",
            "TODO.md:3: `write-docs` depends on `T9`, which is not in the file; expected the id of a task",
        ],
    );
}

/// They are refused in any shape, so nothing is said about the shape.
#[test]
fn outputs_are_refused_with_one_message() {
    for outputs in [r#"["x.txt"]"#, r#""x.txt""#, r#"[{"kind": "?"}]"#, r#"{"path": "x.txt"}"#, "[7]"] {
        let text =
            format!(r#"[{{"id": "a", "description": "d", "status": "pending", "outputs": {outputs}}}]"#);
        let backlog = Backlog::parse("tasks.json", text).unwrap();
        assert_eq!(named(&backlog), ["tasks.json:1: `a`: `outputs` are not available yet; expected none"]);
    }
    for none in ["[]", "null", r#""""#] {
        let text = format!(r#"[{{"id": "a", "description": "d", "status": "pending", "outputs": {none}}}]"#);
        assert_eq!(named(&Backlog::parse("tasks.json", text).unwrap()), [""; 0], "{none}");
    }
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
            "PRD.json:1: no list of tasks; expected an array of tasks, or an object with `userStories`, `tasks`, `stories` or `features`",
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
        "{\"userStories\": [\n{\"id\": \"a\", \"passes\": \"true\", \"criteria\": [1, {}], \"depends_on\": {\"b\": 1}},\n{\"title\": \"x\"}]}",
        &[
            "PRD.json:2: `a`: `passes` is a string; expected true or false",
            "PRD.json:2: `a`: `criteria[]` is a number; expected a string or {text, check}",
            "PRD.json:2: `a`: `criteria[]` says nothing; expected {text, check}",
            "PRD.json:2: `a`: `depends_on` is an object; expected an array of ids",
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
";
    let expected = [
        "write-the-parser open",
        "US-001 done",
        "US-002 done",
        "US-003 failed",
        "US-004 open",
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
fn a_dash_is_in_progress_unless_a_legend_says_otherwise() {
    let explained = |legend: &str, expected: &str| {
        let text = format!("# Plan\n\n{legend}\n\n- [-] T1: one\n- [ ] T2: two\n");
        check("TODO.md", &text, Dialect::Markdown, &[&format!("T1 {expected}"), "T2 open"]);
        check(
            "TODO.md",
            &text.replace('\n', "\r\n"),
            Dialect::Markdown,
            &[&format!("T1 {expected}"), "T2 open"],
        );
    };
    for open in [
        "",
        "Some words about [-] boxes.",
        "Legend: `[ ]` todo, `[-]` in progress, `[x]` done",
        "## Legend\n- [ ] Todo\n- [-] In progress\n- [x] Done\n## Tasks",
        "[-] = WIP",
        "Mark what you work on with [-]; skipped is [~].",
        "| mark | meaning |\n|---|---|\n| [-] | started |",
    ] {
        explained(open, "open");
    }
    for skipped in [
        "Legend: `[ ]` todo, `[-]` skipped, `[x]` done",
        "Legend: [ ] open | [x] done | [-] won't do",
        "[-]: cancelled",
        "[-] = **Cancelled** (by a person)",
        "- `[-]` – Canceled",
        "- [-] = cancelled",
        "- [ ] Todo\n- [x] Done\n- [-] Not needed",
        "## Legend\n- [-] Skipped, with a reason\n## Tasks",
        "## Key\n\n* [-] dropped\n\n## Tasks",
        "<!-- [-] means skipped -->",
        "<!--\n[ ] todo\n[-] skipped\n-->",
        "> Use [-] for skipped tasks",
        "Mark skipped tasks `[-]`, and tasks in progress `[~]`.",
        "Skipped: [-]",
        "```\n[-]  obsolete\n```",
        "| [-] | deferred |",
    ] {
        explained(skipped, "skipped");
    }
    explained("[-] done, [~] skipped", "done");
    explained("[-] failed", "failed");
    // Other marks have their legend too, the first word about one counts, and x is x.
    let text = "[~] cancelled, [/] in progress, [x] skipped\nlater: [~] in progress\n\n- [~] T1: a\n- [/] T2: b\n- [x] T3: c\n- [-] T4: d\n";
    check_tasks(text, &["T1 skipped", "T2 open", "T3 done", "T4 open"]);
    // A task about a legend is a task.
    check_tasks("- [ ] T1: Say that [-] means skipped\n- [-] T2: x\n", &["T1 open", "T2 open"]);
    check_tasks(
        "- [ ] T1: Docs\n  Say that [-] means skipped\nand [-] = skipped\n\n  [-] skipped\n- [-] T2: x\n",
        &["T1 open", "T2 open"],
    );
    check_tasks("- [ ] T1: Docs\n\n[-] means skipped\n\n- [-] T2: x\n", &["T1 open", "T2 skipped"]);
    check_tasks("- [ ] Done\n- [ ] Pending\n", &["done open", "pending open"]);
    // In a plan it is Obsidian's word for cancelled.
    let plan = "---\nplan_id: p\n---\n- [-] **Step 1:** a (action_type: agent)\n";
    check("x.md", plan, Dialect::Plan, &["step_1 skipped"]);
    // So it is in whatever is called a plan, unless its legend says otherwise.
    let text = "# Plan\n- [-] T1: a\n- [ ] T2: b\n";
    for name in ["Plan.md", "PLAN.md", "docs/plan.md"] {
        check(name, text, Dialect::Markdown, &["T1 skipped", "T2 open"]);
        assert!(!Backlog::parse(name, text).unwrap().has_dashes(), "{name}");
        let boxes = wiggum_backlog::checkboxes(name, text);
        assert_eq!(boxes[0].status, FileStatus::Skipped, "{name}");
    }
    let explained = "[-] = in progress\n\n- [-] T1: a\n";
    check("Plan.md", explained, Dialect::Markdown, &["T1 open"]);
    check("fix_plan.md", text, Dialect::Markdown, &["T1 open", "T2 open"]);
}

#[test]
fn marks_that_nobody_explained_are_named() {
    let named = |name: &str, text: &str| {
        let marks = Backlog::parse(name, text).unwrap().unknown_marks();
        marks.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let found = named("TODO.md", "- [>] T1: a\n- [?] T2: b\n- [~] T3: c\n- [ ] T4: d\n- [x] T5: e\n");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("TODO.md:1: `T1`: the mark `[>]` is not known"), "{found:?}");
    assert!(found[1].starts_with("TODO.md:2: `T2`: the mark `[?]` is not known"), "{found:?}");
    let plan = "---\nplan_id: p\n---\n- [?] **Step 1:** a (action_type: agent)\n";
    assert_eq!(named("x.md", plan).len(), 1);
    assert_eq!(named("TODO.md", "[>] = deferred, [?] = todo\n\n- [>] T1: a\n- [?] T2: b\n"), [""; 0]);
}

fn check_tasks(text: &str, expected: &[&str]) {
    check("TODO.md", text, Dialect::Markdown, expected);
}

#[test]
fn skipped_is_a_note_behind_the_box() {
    let text = "\
- [ ] T1: one (skipped)
- [~] Any words (id: two) (skipped)  <!-- why -->
- [ ] **T3**: three (Skipped) (id: three) (depends: T1)
- [x] T4: done (skipped)
- [!] T5: failed (skipped)
- [ ] T6: count what was (skipped) today
- [ ] T7: say `(skipped)`
- [ ] (skipped)
";
    let expected = [
        "T1 skipped",
        "two skipped",
        "three skipped [T1]",
        "T4 done",
        "T5 skipped",
        "T6 open",
        "T7 open",
        "skipped open",
    ];
    check_tasks(text, &expected);
    let backlog = check("TODO.md", &text.replace('\n', "\r\n"), Dialect::Markdown, &expected);
    let titles: Vec<&str> = backlog.tasks().iter().map(|task| task.title.as_str()).collect();
    assert_eq!(titles[..3], ["one", "Any words", "**T3**: three"]);
    assert_eq!(backlog.tasks()[7].title, "(skipped)");
}

#[test]
fn dashes_that_a_loop_wrote_are_skips() {
    let mut backlog = read("TODO.md", "- [-] T1: one\n- [-] T2: two\n- [ ] T3: three\n");
    assert!(backlog.has_dashes());
    backlog.read_dashes_as_skipped(&|id| id.as_str() != "T2");
    let found = |backlog: &Backlog| backlog.tasks().iter().map(summary).collect::<Vec<_>>();
    assert_eq!(found(&backlog), ["T1 skipped", "T2 open", "T3 open"]);
    // It stays so when something else is changed, and goes away with the mark.
    backlog
        .add(&wiggum_backlog::NewTask { id: "T4".into(), title: "four".into(), ..Default::default() })
        .unwrap();
    assert_eq!(found(&backlog), ["T1 skipped", "T2 open", "T3 open", "T4 open"]);
    backlog.set_status("T1", FileStatus::Skipped).unwrap();
    backlog.set_status("T2", FileStatus::Skipped).unwrap();
    assert_eq!(backlog.text(), "- [-] T1: one\n- [ ] T2: two (skipped)\n- [ ] T3: three\n- [ ] T4: four\n");
    backlog.set_status("T1", FileStatus::Open).unwrap();
    assert_eq!(backlog.text(), "- [ ] T1: one\n- [ ] T2: two (skipped)\n- [ ] T3: three\n- [ ] T4: four\n");
    assert!(!backlog.has_dashes());
    let legend = read("TODO.md", "[-] in progress\n\n- [-] T1: one\n");
    assert!(!legend.has_dashes(), "the file itself says what it means");
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

/// The commands that lines under a box are read as, or what is told of a line that may be one.
#[track_caller]
fn check_line(line: &str, expected: Result<&[&str], &str>) {
    let backlog = read("TODO.md", &format!("- [ ] T1: one\n  - {line}\n"));
    let Some(task) = backlog.task("T1") else { panic!("T1 is not there: {line}") };
    let commands: Vec<&str> =
        task.criteria.iter().filter_map(|criterion| criterion.check.as_deref()).collect();
    let told = named(&backlog);
    match expected {
        Ok(expected) => assert_eq!((commands, told), (expected.to_vec(), Vec::new()), "{line}"),
        Err(said) => {
            let message = format!(
                "TODO.md:1: `T1`: `{said}` may be a command or words; put a command in backticks, or the words under \
                 another label"
            );
            assert_eq!((commands, told), (Vec::new(), vec![message]), "{line}");
        }
    }
    if expected != Ok(&[]) {
        return;
    }
    assert_eq!(task.description, format!("- {line}"), "words are for whoever does the task");
}

#[test]
fn a_check_is_read_with_and_without_backticks() {
    for label in ["check", "Check", "**Verify**", "verify", "Checks", "verification"] {
        check_line(&format!("{label}: `false`"), Ok(&["false"]));
        check_line(&format!("{label}: false"), Ok(&["false"]));
        check_line(
            &format!("{label}: `make lint`, `make test` and `ls`"),
            Ok(&["make lint", "make test", "ls"]),
        );
        check_line(&format!("{label}: run `npm test`."), Ok(&["npm test"]));
    }
    let commands = [
        "cargo test config",
        "make test",
        "make all",
        "just ci",
        "make -C sub check",
        "go test ./...",
        "npm run build && npm test",
        "./scripts/verify.sh --all",
        "scripts/verify.sh",
        "RUST_LOG=debug cargo test",
        "test -f a.txt",
        "grep -q \"the end\" book.txt",
        "python3 -m pytest tests",
        "node index.js | grep new",
        "! grep TODO src",
        "cd frontend && npm test",
    ];
    for command in commands {
        check_line(&format!("check: {command}"), Ok(&[command]));
        check_line(&format!("verify: {command}"), Ok(&[command]));
    }
    check_line("Criteria: it works (check: make test)", Ok(&["make test"]));
    check_line("Criteria: it works (verify: `make test`)", Ok(&["make test"]));
    check_line("Criteria: links; check: that they work; check: `make`", Ok(&["make"]));
    check_line("Done when: it works; check: npm test", Ok(&["npm test"]));
    check_line("verify: `npm test` passes", Ok(&["npm test"]));
    check_line("check: `npm test` prints what it should", Ok(&["npm test"]));
}

#[test]
fn a_sentence_behind_check_is_no_command() {
    let sentences = [
        "that the page loads",
        "test that the page loads",
        "make sure nothing is lost",
        "go to the page and log in",
        "the --json flag works",
        "Links on mobile",
        "login works",
        "does it look right?",
        "true if and only if it is empty",
        "that `GET /health` returns 200",
        "manually",
    ];
    for sentence in sentences {
        check_line(&format!("check: {sentence}"), Ok(&[]));
        check_line(&format!("Verify: {sentence}"), Ok(&[]));
    }
    check_line("Verify: `GET /health` returns 200", Ok(&[]));
    let backlog = read("TODO.md", "- [ ] T1: one\n  - Criteria: links (check: that they lead somewhere)\n");
    let criteria = &backlog.task("T1").unwrap().criteria;
    assert_eq!(criteria, &[criterion("links (check: that they lead somewhere)", None)]);
    assert_eq!(named(&backlog), [""; 0]);
}

#[test]
fn a_check_that_may_be_a_command_or_words_is_named() {
    let unclear = [
        "cd a && see what happens",
        "frobnicate",
        "mytool run",
        "mytool --check",
        "cargo test passes",
        "test login flow",
    ];
    for said in unclear {
        check_line(&format!("check: {said}"), Err(&format!("check: {said}")));
        check_line(&format!("verify: {said}"), Err(&format!("verify: {said}")));
    }
    check_line("verify: `grep -r TODO src` finds nothing", Err("verify: `grep -r TODO src` finds nothing"));
    check_line("Criteria: it works (check: frobnicate)", Err("it works (check: frobnicate)"));
    let done = read("TODO.md", "- [x] T1: one\n  - check: frobnicate\n");
    assert_eq!(named(&done), [""; 0]);
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
fn boxes_that_lack_a_blank_or_a_bullet_are_tasks_too() {
    let text = "\
- [ ] one
- [ ]two
- [x]three
• [ ] four
– [ ] five
-[ ] six
1.[ ] seven
[ ] eight
  under eight
  - Depends on: one
  [x] nine
[X] ten
[!] eleven
[~] twelve
- [ ]**T1**: bold
- [ ]`code` words
";
    let expected = [
        "one open",
        "two open",
        "three done",
        "four open",
        "five open",
        "six open",
        "seven open",
        "eight open [one nine]",
        "nine done",
        "ten done",
        "eleven failed",
        "twelve open",
        "T1 open",
        "code-words open",
    ];
    let backlog = check("TODO.md", text, Dialect::Markdown, &expected);
    assert_eq!(backlog.tasks()[7].description, "under eight");
    check("TODO.md", &text.replace('\n', "\r\n"), Dialect::Markdown, &expected);
    // Alone in a file they are a list of tasks as well.
    check("TODO.md", "# Plan\n\n[ ] one\n", Dialect::Markdown, &["one open"]);
    assert!(read("TODO.md", "[x] one\n").recognised().is_ok());
}

#[test]
fn links_code_and_words_are_no_boxes() {
    let text = "\
- [ ] one
  [x] is how a done box looks
- [ ](link)
- [x][reference]
- [x]: https://example.org
- [ ]* optional
- []byte is a type
- [x], [ ] and [!] are marks
[ ](link) words
[x][reference]
[x]: https://example.org
[] empty
[ ]

    [ ] indented code

```
[ ] code
• [ ] code
```
> [ ] quoted
• a bullet without a box
";
    check("TODO.md", text, Dialect::Markdown, &["one open"]);
    // A legend without bullets explains marks.
    let legend = "[ ] todo\n[~] in progress\n[-] cancelled\n[x] done\n\n- [-] T1: one\n- [~] T2: two\n";
    check("TODO.md", legend, Dialect::Markdown, &["T1 skipped", "T2 open"]);
    let legend = "[-] means cancelled\n\n- [-] T1: one\n";
    check("TODO.md", legend, Dialect::Markdown, &["T1 skipped"]);
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

#[test]
fn every_spelling_of_a_dependency_counts_in_every_json_dialect() {
    let spellings =
        ["dependencies", "dependsOn", "depends_on", "deps", "blockedBy", "blocked_by", "requires", "after"];
    let files = [
        r#"[{"id": "a", "description": "d", "status": "pending", KEY: ["b"]},
            {"id": "b", "description": "d", "status": "pending"}]"#,
        r#"{"tasks": [{"id": 1, "title": "a", "description": "d", "status": "pending", KEY: [2]},
            {"id": 2, "title": "b", "description": "d", "status": "pending"}]}"#,
        r#"{"project": "p", "userStories": [{"id": "a", "passes": false, KEY: ["b"]}, {"id": "b", "passes": false}]}"#,
        r#"{"branchName": "p", "userStories": [{"id": "a", "acceptanceCriteria": [], "passes": false, KEY: ["b"]},
            {"id": "b", "passes": false}]}"#,
        r#"{"name": "p", "userStories": [{"id": "a", "passes": false, KEY: ["b"]}, {"id": "b", "passes": false}]}"#,
        r#"{"tasks": [{"title": "a", KEY: ["b"]}, {"title": "b"}]}"#,
    ];
    for (key, file) in spellings.iter().flat_map(|key| files.iter().map(move |file| (key, file))) {
        let text = file.replace("KEY", &format!("\"{key}\""));
        let backlog = read("backlog.json", &text);
        let [first, second] = backlog.tasks() else { panic!("{text}") };
        assert_eq!(first.depends_on, std::slice::from_ref(&second.id), "{text}");
        assert!(named(&backlog).is_empty(), "{text}");
    }
    let text = r#"[{"id": "a", "description": "d", "status": "pending", "deps": ["b"], "after": ["c", "b"], "requires": null},
        {"id": "b", "description": "d", "status": "pending", "blockedBy": []},
        {"id": "c", "description": "d", "status": "pending"}]"#;
    check("x.json", text, Dialect::Tasks, &["a open [b c]", "b open", "c open"]);
    check_problems(
        "x.json",
        r#"[{"id": "a", "description": "d", "status": "pending", "requires": true, "dependencies": [{"is": "b"}]}]"#,
        &[
            "x.json:1: `a`: `requires` is a boolean; expected an array of ids",
            "x.json:1: `a`: `dependencies[]` is an object; expected an id",
        ],
    );
}

#[test]
fn a_key_that_looks_like_a_dependency_is_named() {
    let check = |members: &str, expected: Option<&str>| {
        let text = format!(
            r#"[{{"id": "a", "description": "d", "status": "pending", {members}}},
                {{"id": "b", "description": "d", "status": "pending"}},
                {{"id": "c", "description": "d", "status": "pending", "depends_on": ["a"]}}]"#
        );
        let expected: Vec<String> = expected
            .map(|key| {
                format!(
                    "x.json:1: `a`: `{key}` looks like a dependency and is not read; expected `depends_on`"
                )
            })
            .into_iter()
            .collect();
        assert_eq!(named(&read("x.json", &text)), expected, "{members}");
    };
    for key in
        ["DependsOn", "depends-on", "dependency", "dependencyIds", "depends", "dependsUpon", "blocked-by"]
    {
        check(&format!(r#""{key}": ["b"]"#), Some(key));
        check(&format!(r#""{key}": "a ghost""#), Some(key));
        check(&format!(r#""{key}": []"#), None);
        check(&format!(r#""{key}": "none""#), None);
    }
    for key in [
        "prerequisites",
        "prereqs",
        "needs",
        "waitsFor",
        "waits_on",
        "predecessors",
        "blockers",
        "follows",
        "runAfter",
    ] {
        check(&format!(r#""{key}": ["b"]"#), Some(key));
        check(&format!(r#""{key}": "b""#), Some(key));
        // Words of people are theirs.
        check(&format!(r#""{key}": ["Node 20", "a key for the API"]"#), None);
        // What is said twice is known.
        check(&format!(r#""{key}": ["b"], "depends_on": ["b"]"#), None);
    }
    let by_title = r#"{"tasks": [{"title": "Build it", "needs": ["Set up"]}, {"title": "Set up"}]}"#;
    assert_eq!(named(&read("x.json", by_title)).len(), 1, "ralphy's tasks are called by their titles");
    // The other way round: `b` would have to wait on it, `c` does.
    check(r#""blocks": ["b"]"#, Some("blocks"));
    check(r#""dependents": ["b"]"#, Some("dependents"));
    check(r#""blocks": ["c"]"#, None);
    check(r#""requirements": ["b"], "notes": "b", "parent": "b""#, None);
}

/// Every kind of JSON backlog, with these members in a task `a` that is not done.
fn with_members(members: &str) -> [String; 6] {
    [
        format!(r#"[{{"id": "a", "description": "d", "status": "pending", {members}}}]"#),
        format!(
            r#"{{"tasks": [{{"id": "a", "title": "t", "details": "d", "subtasks": [], "status": "pending", {members}}}]}}"#
        ),
        format!(r#"{{"userStories": [{{"id": "a", "passes": false, {members}}}]}}"#),
        format!(
            r#"{{"branchName": "p", "userStories": [{{"id": "a", "priority": 1, "passes": false, {members}}}]}}"#
        ),
        format!(r#"{{"tasks": [{{"id": "a", "title": "a", "completed": false, {members}}}]}}"#),
        format!(r#"{{"features": [{{"id": "a", "name": "n", "passes": false, {members}}}]}}"#),
    ]
}

/// The criteria of that task as `text` or `text => command`, in every kind of backlog, and why it is not run.
fn check_members(members: &str, expected: &[&str], not_run: Option<&str>) -> Vec<String> {
    let mut remarks = Vec::new();
    for text in with_members(members) {
        let backlog = read("x.json", &text);
        let said = |criterion: &Criterion| match &criterion.check {
            Some(check) => format!("{} => {check}", criterion.text),
            None => criterion.text.clone(),
        };
        let found: Vec<String> = backlog.tasks()[0].criteria.iter().map(said).collect();
        assert_eq!(found, expected, "{text}");
        let not_run: Vec<String> = not_run.iter().map(|why| format!("x.json:1: `a`: {why}")).collect();
        assert_eq!(named(&backlog), not_run, "{text}");
        let done = text
            .replace("pending", "completed")
            .replace("passes\": false", "passes\": true")
            .replace("completed\": false", "completed\": true");
        let done = read("x.json", &done);
        assert_eq!((named(&done), told(&done)), (Vec::new(), Vec::new()), "{text}");
        remarks = told(&backlog);
    }
    remarks
}

fn told(backlog: &Backlog) -> Vec<String> {
    backlog.remarks().into_iter().map(|remark| remark.message).collect()
}

#[test]
fn a_command_under_an_obvious_name_is_a_check_in_every_json_dialect() {
    let keys = [
        "verify",
        "check",
        "checks",
        "verify_command",
        "verifyCommand",
        "test_command",
        "testCommand",
        "verification",
    ];
    for key in keys {
        let none: [&str; 0] = [];
        let one = ["`npm test` succeeds => npm test"];
        assert_eq!(check_members(&format!(r#""{key}": "npm test""#), &one, None), none);
        assert_eq!(check_members(&format!(r#""{key}": ["npm test", " "]"#), &one, None), none);
        assert_eq!(check_members(&format!(r#""{key}": "Run `npm test`.""#), &one, None).len(), 0, "{key}");
        let object = format!(r#""{key}": {{"command": "npm test", "type": "unit"}}"#);
        assert_eq!(check_members(&object, &one, None), none);
        let two =
            ["it works", "`npm test` succeeds => npm test", "`./ci.sh --all` succeeds => ./ci.sh --all"];
        let list = format!(r#""{key}": ["npm test", "./ci.sh --all"], "criteria": ["it works"]"#);
        assert_eq!(check_members(&list, &two, None), none);
        let marked = r#"grep -q '<!-- here -->' a.html"#;
        let whole = format!("`{marked}` succeeds => {marked}");
        assert_eq!(check_members(&format!(r#""{key}": "{marked}""#), &[&whole], None), none);
        // What says nothing is nothing.
        for value in ["null", "\"\"", "[]", "{}", "false", "\"none\"", "\"N/A\"", "\"manual\"", "[\"\"]"] {
            assert_eq!(check_members(&format!(r#""{key}": {value}"#), &none, None), none);
        }
    }
    // A check that is there twice is run once.
    let twice = r#""verify": "npm test", "criteria": [{"text": "t", "check": "npm test"}]"#;
    assert!(check_members(twice, &["t => npm test"], None).is_empty());
    check_problems(
        "x.json",
        r#"[{"id": "a", "description": "d", "status": "pending", "verify": "x", "verify": "y"}]"#,
        &["x.json:1: `a`: duplicate key `verify`; expected it once per task"],
    );
}

#[test]
fn words_about_a_check_are_a_criterion_and_told() {
    let words = "manual test of the login page";
    for key in ["verify", "check", "checks", "verification"] {
        let told = check_members(&format!(r#""{key}": "{words}""#), &[words], None);
        assert_eq!(told.len(), 1, "{key}");
        assert!(told[0].contains(&format!("`a`: `{key}` says `{words}`")), "{told:?}");
        assert_eq!(
            check_members(&format!(r#""{key}": [{{"text": "the page loads"}}]"#), &["the page loads"], None)
                .len(),
            1
        );
    }
    // A state is none, and what may be either is not run.
    let told = check_members(r#""verification": "pending""#, &[], None);
    assert!(told[0].contains("may be a command or words"), "{told:?}");
    let told = check_members(r#""verification": "mytool run""#, &["mytool run"], None);
    assert!(told[0].contains("may be a command or words"), "{told:?}");
    let told = check_members(r#""verification": {"method": "demo", "by": "Ann"}"#, &[], None);
    assert!(told[0].contains("shape"), "{told:?}");
}

#[test]
fn what_people_write_under_verification_is_seldom_run() {
    // As in lists of features that programs and people keep.
    let steps = [
        "npm test 通过",
        "npm run dev 可启动本地站点",
        "/api/health 返回 ok",
        "/vocab redirects guests",
        "npm run dev",
        "docker compose up -d",
        "`npm start` shows a page",
        "npm test all green",
        "cargo build without errors",
        "el login funciona",
        "Open the page and look",
    ];
    let list = format!(r#""verification": {}"#, serde_json::json!(steps));
    let told = check_members(&list, &sorted_by_words(&steps), None);
    assert_eq!(told.len(), 2, "one remark for all words, one for all that may be commands: {told:?}");
    assert!(told[0].contains("(and 3 more) in words"), "{told:?}");
    assert!(told[1].contains("(and 6 more), which may be a command"), "{told:?}");
    // Commands among words are run.
    let mixed = r#""verification": ["cd a && python demo.py", "the output is right"]"#;
    let command = "cd a && python demo.py";
    check_members(mixed, &[&format!("`{command}` succeeds => {command}"), "the output is right"], None);
    // Elsewhere words of other languages are words too, and a page is none.
    check_members(r#""verify": "npm test 通过""#, &["npm test 通过"], None);
    check_members(
        r#""verify": "grep -q 'Größe' a.txt""#,
        &["`grep -q 'Größe' a.txt` succeeds => grep -q 'Größe' a.txt"],
        None,
    );
    let page = "`checks` says `/vocab redirects guests`, which may be a command or words; put a command in backticks, or \
                the words among the criteria";
    check_members(r#""checks": ["/vocab redirects guests"]"#, &[], Some(page));
}

/// Words come before what may be a command.
fn sorted_by_words<'s>(steps: &[&'s str]) -> Vec<&'s str> {
    let is_word = |step: &&&str| !step.is_ascii() || step.starts_with("Open");
    let others = steps.iter().filter(|step| !is_word(step));
    steps.iter().filter(is_word).chain(others).copied().collect()
}

#[test]
fn a_check_that_cannot_be_told_is_named_in_json() {
    let advice = "put a command in backticks, or the words among the criteria";
    for key in ["verify", "check", "checks"] {
        let why = format!("`{key}` says `mytool run`, which may be a command or words; {advice}");
        check_members(&format!(r#""{key}": "mytool run""#), &[], Some(&why));
        check_members(&format!(r#""{key}": "`mytool run`""#), &["`mytool run` succeeds => mytool run"], None);
    }
    for key in ["verify_command", "verifyCommand", "test_command", "testCommand"] {
        // The name says that it is a command, unless it is a sentence.
        check_members(&format!(r#""{key}": "mytool run""#), &["`mytool run` succeeds => mytool run"], None);
        let why = format!("`{key}` says `open the page and look`, which looks like words; {advice}");
        check_members(&format!(r#""{key}": "open the page and look""#), &[], Some(&why));
    }
    let shape = "is in a shape that is not read as a check; expected a command, a list of commands, or {\"command\": …}";
    for value in ["true", "3", r#"{"lint": "npm run lint"}"#, r#"{"command": "curl x", "expected": "200"}"#] {
        check_members(&format!(r#""verify": {value}"#), &[], Some(&format!("`verify` {shape}")));
        check_members(&format!(r#""test_command": {value}"#), &[], Some(&format!("`test_command` {shape}")));
    }
}

#[test]
fn a_criterion_has_its_check_under_any_of_its_names() {
    for key in ["check", "command", "verify", "verify_command", "testCommand", "verification"] {
        let members = format!(
            r#""criteria": [{{"text": "t", "{key}": "npm test"}}, {{"criterion": "u", "{key}": null}}]"#
        );
        assert!(check_members(&members, &["t => npm test", "u"], None).is_empty(), "{key}");
        let alone = format!(r#""acceptanceCriteria": [{{"{key}": "npm test"}}]"#);
        check_members(&alone, &["npm test => npm test"], None);
        let features = format!(
            r#"{{"features": [{{"id": "a", "name": "n", "passes": false, "acceptance": [{{"text": "t", "{key}": "npm test"}}]}}]}}"#
        );
        assert_eq!(read("x.json", &features).tasks()[0].criteria, [criterion("t", Some("npm test"))]);
    }
    let words = r#""criteria": [{"text": "t", "verify": "the page loads"}, {"text": "u", "verification": "verified"}]"#;
    check_members(words, &["t (verify: the page loads)", "u"], None);
    let why = "`verify` of a criterion says `mytool run`, which may be a command or words; put a command in backticks, or \
               the words in its text";
    check_members(r#""criteria": [{"text": "t", "verify": "mytool run"}]"#, &["t"], Some(why));
    // What a step runs is part of the work.
    let steps = r#"{"features": [{"id": "a", "name": "n", "passes": false, "steps": [{"step": "Install", "command": "npm ci"}, {"step": "Test", "verify": "npm test"}]}]}"#;
    let backlog = read("x.json", steps);
    assert_eq!(
        backlog.tasks()[0].criteria,
        [criterion("Install", None), criterion("Test", Some("npm test"))]
    );
}

#[test]
fn checks_of_yaml_and_of_beads_are_read() {
    let yaml = "tasks:\n  - title: one\n    completed: false\n    verify: npm test\n  - title: two\n    completed: false\n    check: mytool run\n";
    let backlog = read("tasks.yaml", yaml);
    assert_eq!(backlog.tasks()[0].criteria, [criterion("`npm test` succeeds", Some("npm test"))]);
    let [why] = &named(&backlog)[..] else { panic!("{:?}", named(&backlog)) };
    assert!(why.contains("`two`: `check` says `mytool run`"), "{why}");
    let issue =
        r#"{"id": "b-1", "title": "t", "status": "open", "issue_type": "task", "verify": "npm test"}"#;
    let backlog = read("issues.jsonl", issue);
    assert_eq!(backlog.tasks()[0].criteria, [criterion("`npm test` succeeds", Some("npm test"))]);
}

/// Two tasks, and a third that says something of the first two.
fn check_waiting(third: &str, expected: &str, description: &str) -> Backlog {
    let text = format!("- [ ] T1: one\n- [ ] T2: two\n{third}");
    let backlog = read("TODO.md", &text);
    assert_eq!(summary(&backlog.tasks()[2]), expected, "{text}");
    assert_eq!(backlog.tasks()[2].description, description, "{text}");
    backlog
}

#[test]
fn every_spelling_of_a_dependency_counts_in_markdown() {
    let labels = [
        "depends_on",
        "dependsOn",
        "Depends-on",
        "Dependency",
        "Blocked by",
        "blocked_by",
        "blockedBy",
        "Requires",
        "**Requires**",
        "After",
        "Needs",
        "Prerequisite",
        "Prerequisites",
        "Prerequisite(s)",
        "Waits for",
    ];
    for label in labels {
        for value in ["T1, T2", "`T1` and T2.", "[T1], [T2]"] {
            let third = format!("- [ ] T3: three\n  - {label}: {value}\n  - more\n");
            let backlog = check_waiting(&third, "T3 open [T1 T2]", "- more");
            assert!(told(&backlog).is_empty(), "{third}");
        }
        check_waiting(&format!("- [ ] T3: three\n  {label}: T1\n"), "T3 open [T1]", "");
        let none = format!("{label}: none");
        if !label.to_lowercase().replace(['_', '-'], "").starts_with("dependson") {
            check_waiting(&format!("- [ ] T3: three\n  - {none}\n"), "T3 open", &format!("- {none}"));
            let prose = format!("- {label}: a running database");
            let backlog = check_waiting(&format!("- [ ] T3: three\n  {prose}\n"), "T3 open", &prose);
            assert!(told(&backlog).is_empty(), "{prose}");
        }
    }
    for line in ["Depends on T1", "blocked by T1", "Requires T1", "Needs T1", "After T1"] {
        check_waiting(&format!("- [ ] T3: three\n  - {line}\n"), "T3 open [T1]", "");
    }
    // Boxes that are called by their words, and by a letter.
    let text = "- [ ] **Parser**: read\n- [ ] Write the docs\n- [ ] **B**: x\n- [ ] last\n  - Needs: Parser, write the docs, B\n";
    let backlog = read("TODO.md", text);
    assert_eq!(summary(&backlog.tasks()[3]), "last open [parser-read write-the-docs B]");
    // All of several lines count, each once.
    let lines = "- [ ] T3: three\n  - Needs: T2\n  - Depends on: T1\n  - After: T1\n";
    check_waiting(lines, "T3 open [T1 T2]", "");
    // What is missing is missed; another file's things are words.
    check_problems(
        "TODO.md",
        "- [ ] T1: one\n  - Needs: T7\n",
        &["TODO.md:2: `T1` depends on `T7`, which is not in the file; expected the id of a task"],
    );
    check_waiting("- [ ] T3: three\n  - Needs: ES6\n", "T3 open", "- Needs: ES6");
}

#[test]
fn a_note_in_a_title_names_dependencies() {
    for note in
        ["depends on T1", "depends on T1, T2", "Blocked by: T1", "requires T1", "after T1", "needs: `T1`"]
    {
        let expected = if note.contains("T2") { "T3 open [T1 T2]" } else { "T3 open [T1]" };
        let backlog = check_waiting(&format!("- [ ] T3: three ({note}) in a.rs\n"), expected, "");
        // The title is what tasks without an id are called by.
        assert_eq!(backlog.tasks()[2].title, format!("three ({note}) in a.rs"));
    }
    // A long title goes on below, and so does a description.
    let wrapped = "- [ ] T3: three in a file that has a long name\n  and a longer one (depends on T1, T2)\n";
    check_waiting(wrapped, "T3 open [T1 T2]", "and a longer one (depends on T1, T2)");
    for note in
        ["after lunch", "needs a database", "requires Node 20", "the one after T1", "after", "depends on"]
    {
        let backlog = check_waiting(&format!("- [ ] T3: three ({note})\n"), "T3 open", "");
        assert!(told(&backlog).is_empty(), "{note}");
    }
}

#[test]
fn words_that_name_a_task_beside_others_are_told() {
    for line in ["Needs: T1 to be merged", "After: T1, the release", "Blocked by T1 & T2"] {
        let backlog =
            check_waiting(&format!("- [ ] T3: three\n  - {line}\n"), "T3 open", &format!("- {line}"));
        let message = format!(
            "`T3`: `{line}` names `T1` and is read as words; `Depends on: T1` below it makes it wait"
        );
        assert_eq!(told(&backlog), [message]);
    }
    assert_eq!(told(&check_waiting("- [ ] T3: three (after T1 is merged)\n", "T3 open", "")).len(), 1);
    assert!(told(&check_waiting("- [x] T3: three (after T1 is merged)\n", "T3 done", "")).is_empty());
    // A part of a task waits for nothing around it: that is done after it.
    let nested =
        "- [ ] T1: one\n  - [ ] T2: part (depends on T1)\n    - Requires: T1\n    - Needs: T2 first\n";
    let backlog = read("TODO.md", nested);
    let found: Vec<String> = backlog.tasks().iter().map(summary).collect();
    assert_eq!(found, ["T1 open [T2]", "T2 open"]);
    assert!(told(&backlog).is_empty());
}

#[test]
fn headings_items_and_steps_wait_in_the_same_words() {
    let text = "### Task 1: one\n- [ ] a\n### Task 2: two\n**Requires:** Task 1\n- [ ] b\n### Task 3: three (depends on Task 2)\n- [ ] c\n";
    let backlog = read("docs/plans/x.md", text);
    let found: Vec<String> = backlog.tasks().iter().map(summary).collect();
    assert_eq!(found, ["task-1 open", "task-2 open [task-1]", "task-3 open [task-2]"]);
    let wrapped = text.replace("- [ ] c", "Write it (after Task 1).\n- [ ] c");
    assert_eq!(summary(&read("docs/plans/x.md", &wrapped).tasks()[2]), "task-3 open [task-1 task-2]");
    let backlog =
        read("ROADMAP.md", "- one\n- two\n  - Needs: one\n- three (after two)\n- four (after lunch)\n");
    let found: Vec<String> = backlog.tasks().iter().map(summary).collect();
    assert_eq!(found, ["one open", "two open [one]", "three-after-two open [two]", "four-after-lunch open"]);
    let plan = "- [ ] **Step 1:** a\n- [ ] **Step 2:** b\n  - Requires: step_1\n- [ ] **Step 3:** c\n  - Requires: a running database\n";
    let backlog = read("plan.md", plan);
    let found: Vec<String> = backlog.tasks().iter().map(summary).collect();
    assert_eq!(found, ["step_1 open", "step_2 open [step_1]", "step_3 open"]);
}

fn named(backlog: &Backlog) -> Vec<String> {
    backlog.unsupported(&|_| false).iter().map(ToString::to_string).collect()
}

#[test]
fn a_file_in_which_nothing_is_recognised_says_what_it_seems_to_be() {
    let check = |file: &str, text: &str, expected: &str| {
        let backlog = read(file, text);
        assert!(backlog.tasks().is_empty(), "{text}");
        let said =
            backlog.recognised().map_or_else(|problems| problems.to_string(), |()| "recognised".to_owned());
        let looked_for = "no task is recognised; looked for boxes (`- [ ] text`) outside of code, comments and quotes, headings \
             such as `## Task 1: text`, and tables with a status";
        let wanted = if expected == "recognised" {
            expected.to_owned()
        } else {
            format!("{file}:1: {looked_for}; the file seems to be {expected}")
        };
        assert_eq!(said, wanted, "{text}");
    };
    check(
        "notes.md",
        "# Fix plan\n\n- Mend the lexer\n- Then the parser\n",
        "Markdown with 2 plain list items",
    );
    check("x.md", "TODO\n====\n\n1. one\n", "Markdown with 1 plain list item");
    check("x.md", "# Tasks\n\n- one\n", "Markdown with 1 plain list item");
    check("x.md", "# Tasks\n## Now\n- one\n", "Markdown with 1 plain list item");
    check(
        "passwd",
        "root:x:0:0:root:/root:/bin/sh\nbin:x:1:1:bin:/bin:/sbin/nologin\n",
        "records with fields separated by `:`",
    );
    check("a.csv", "id,title,done\n1,x,no\n2,y,no\n", "records with fields separated by `,`");
    check("run.sh", "#!/bin/sh\n# TODO\necho - [ ] x\n", "a script");
    check("tasks.py", "# TODO\n\ndef f():\n    pass\n", "text that is no Markdown (.py)");
    check("Cargo.toml", "[package]\nname = \"x\"\n", "a configuration file");
    check("page.html", "<!doctype html>\n<ul><li>one</li></ul>\n", "a page of HTML or XML");
    check("notes.md", "# Notes\n\nWe met and talked.\n", "Markdown with headings and text, but no list");
    check("notes.md", "We met and talked.\n", "Markdown with text, but no list");
    check("TODO.md", "# A\n\n| task | owner |\n|---|---|\n| x | open |\n", "Markdown with a table");
    check(
        "TODO.md",
        "Write tasks so:\n\n```\n- [ ] one\n```\n> - [ ] two\n<!-- - [ ] three -->\n",
        "Markdown whose 3 boxes are all in code, comments or quotes",
    );
    check("words", "some words\nand more\n", "plain text");
    // Work in prose is not understood, whatever the heading says.
    let prose = "Markdown with headings and text, but no list";
    for heading in ["# TODO", "# Todo", "# Backlog", "# TODO list", "# Tasks", "TODO\n===="] {
        check("TODO.md", &format!("{heading}\n\nMend the lexer and then the parser.\n"), prose);
        check("TODO.md", &format!("{heading}\n\n## Now\n\nMend the lexer.\n\n## Later\n"), prose);
        check("TODO.md", &format!("{heading}\n\n> Mend the lexer.\n"), prose);
        check("TODO.md", &format!("{heading}\n\n```\nmend the lexer\n```\n"), prose);
    }
    for text in [
        "Nothing works on Windows.",
        "No task may be lost.",
        "There is the lexer to do.",
        "Do all tasks now.",
    ] {
        check("TODO.md", &format!("# TODO\n\n{text}\n"), prose);
    }
    // A list of tasks that is there and empty is one.
    for empty in [
        "",
        " \n\n",
        "# TODO\n",
        "# Fix plan\n\n## High priority\n\n## Low priority\n<!-- nothing -->\n",
        "# Project\n\nAbout it.\n\n## Tasks\n\nNone at the moment.\n",
        "# Project\n\n- a fact\n\n## To do\n\n## Done\n",
        "# TODO\n\n## Optional\n- [ ] maybe\n",
        "To do\n-----\n\nNothing.\n\nFacts\n-----\n- one\n",
        "# Todo list\n\n## Now\n",
        "# TODO\n\n<!-- one box for each task -->\n",
        "# TODO\n\nNothing to do right now.\n",
        "# Backlog\n\n*No open tasks.*\n",
        "# TODO\n\nEverything is done!\n",
        "# TODO\n\nWhat we mean to build.\n\n## Tasks\n",
        "- [ ]\n",
    ] {
        check("TODO.md", empty, "recognised");
    }
    check("empty", "", "recognised");
    for json in ["[]", "{\"userStories\": []}", "{\"tasks\": []}"] {
        check("x.json", json, "recognised");
    }
    assert!(read("x.md", "- [x] done\n").recognised().is_ok());
}

#[test]
fn optional_boxes_are_told_from_others() {
    let text = "- [ ] one\n- [x] two (optional)\n  - [ ] its part\n- [ ] [Optional] three\n- [ ] **Optional:** four\n\
                - [ ]* five\n  - [ ] part of five\n- [ ] an optional thing\n- [ ] see (optionally) six\n";
    let optional: Vec<(String, bool)> = wiggum_backlog::checkboxes("TODO.md", text)
        .into_iter()
        .map(|found| (found.line, found.optional))
        .collect();
    let expected = [
        ("- [ ] one", false),
        ("- [x] two (optional)", true),
        ("- [ ] its part", true),
        ("- [ ] [Optional] three", true),
        ("- [ ] **Optional:** four", true),
        ("- [ ] part of five", true),
        ("- [ ] an optional thing", false),
        ("- [ ] see (optionally) six", false),
    ];
    assert_eq!(optional, expected.map(|(line, optional)| (line.to_owned(), optional)));
}
