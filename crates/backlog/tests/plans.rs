//! Plan.md: what is read, what is refused, and which bytes an edit changes.
#![expect(clippy::unwrap_used, reason = "the helpers of these tests are not themselves tests")]

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::json;
use wiggum_backlog::{Backlog, Dialect, NewTask, PlanValue, Position};
use wiggum_core::task::{FileStatus, Selection, Work};

use FileStatus::{Done, Failed, Open, Skipped};

const ONBOARDING: &str = r#"<!-- vault/Plans/PLAN_client_onboarding_001.md -->
---
plan_id: plan_client_onboarding_001
objective: "Onboard new client - draft intro email, create calendar invite"
total_steps: 3
completed_steps: 0
status: awaiting_approval
approval_required: true
iterations_used: 0
max_iterations: 10
tags: [client, acme]
---

# Plan: Client Onboarding - Acme Corp

**Objective:** Complete new client onboarding for Acme Corp

## Steps

- [ ] **Step 1:** Draft intro email to client (action_type: mcp_email)
  - Dependencies: none
  - MCP Server: email-mcp
  - Tool: send_email
  - Params: {to: "client@acme.com", subject: "Welcome!", body: "..."}

- [ ] **Step 2:** Create calendar invite for kickoff meeting (action_type: create_file)
  - Dependencies: step_1
  - File: vault/Pending_Approval/Calendar/kickoff_invite.md

- [ ] **Step 3:** Post LinkedIn announcement (action_type: mcp_linkedin)
  - Dependencies: step_1, step_2
  - MCP Server: linkedin-mcp
  - Tool: create_post
  - Params: {text: "Excited to welcome Acme Corp..."}
"#;

fn read(text: &str) -> Backlog {
    let backlog = Backlog::parse("Plan.md", text).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(backlog.dialect(), Dialect::Plan);
    backlog
}

fn steps(text: &str) -> String {
    format!("---\nplan_id: p\n---\n{text}")
}

/// The one step of a plan.
fn work(text: &str) -> Work {
    read(&steps(text)).tasks()[0].work.clone()
}

fn problems(text: &str) -> Vec<String> {
    let problems = Backlog::parse("Plan.md", text).map(|_| "no problem").unwrap_err();
    problems.0.iter().map(ToString::to_string).collect()
}

#[test]
fn the_plan_of_the_book() {
    let backlog = read(ONBOARDING);
    let header = backlog.plan().unwrap();
    assert_eq!(header.plan_id, "plan_client_onboarding_001");
    assert_eq!(header.objective, "Onboard new client - draft intro email, create calendar invite");
    assert_eq!((header.total_steps, header.completed_steps), (Some(3), Some(0)));
    assert_eq!((header.status.as_deref(), header.approval_required), (Some("awaiting_approval"), true));
    assert_eq!((header.iterations_used, header.max_iterations), (Some(0), Some(10)));
    assert_eq!(backlog.selection(), Selection::FileOrder);
    assert!(!backlog.ticks_are_claims());
    assert!(backlog.unsupported(&|_| false).is_empty());

    let [mail, invite, post] = backlog.tasks() else { panic!("three steps") };
    assert_eq!((mail.id.as_str(), mail.title.as_str()), ("step_1", "Draft intro email to client"));
    assert_eq!(
        mail.work,
        Work::McpCall {
            server: "email-mcp".into(),
            tool: "send_email".into(),
            params: json!({"to": "client@acme.com", "subject": "Welcome!", "body": "..."}),
        }
    );
    assert!(mail.depends_on.is_empty());
    let path = "Pending_Approval/Calendar/kickoff_invite.md".to_owned();
    assert_eq!(invite.work, Work::File { path, content: String::new(), overwrite: false });
    assert_eq!(post.depends_on.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["step_1", "step_2"]);
    assert_eq!(backlog.line_of("step_2"), Some(26));
}

#[test]
fn every_line_end_and_a_byte_order_mark() {
    let tasks = read(ONBOARDING).tasks().to_vec();
    for text in
        [ONBOARDING.replace('\n', "\r\n"), format!("\u{feff}{ONBOARDING}"), ONBOARDING.trim_end().to_owned()]
    {
        let backlog = read(&text);
        assert_eq!(backlog.tasks(), tasks);
        assert_eq!(backlog.plan(), read(ONBOARDING).plan());
    }
}

#[test]
fn what_is_tolerated() {
    let text = "\
# Notes

- [ ] not a step
* [X] **Step 3**: three (action_type: notify_human)
  with words
+ [!] __Step 7:__ (FAILED) seven (Action_Type: `agent`)
  1. Depends on: Step 3
  2. Agent: claude
  3. Model: `big`
  4. Verify: make test
  5. Timeout: 10m
  6. something to know
- [-] Step 12: twelve
  (action_type: create_file)
    - Details:
        - FILE: ./vault/a/b.md
        - overwrite: Yes
        - Dependencies:
            - step_3
            - 7

```
- [ ] **Step 20:** in a fence (action_type: agent)
```
<!--
- [ ] **Step 21:** in a comment (action_type: agent)
-->
## Another section
- [x] **Step 4:** late <!-- why --> (action_type: agent)
- a bullet
  - Tool: of nobody
";
    let backlog = read(text);
    let said: Vec<String> = backlog
        .tasks()
        .iter()
        .map(|task| {
            let depends: Vec<&str> = task.depends_on.iter().map(|id| id.as_str()).collect();
            format!("{} {} {} {} {depends:?}", task.id, task.status.name(), task.work.name(), task.title)
        })
        .collect();
    assert_eq!(
        said,
        [
            "step_3 done notice three []",
            "step_7 failed agent seven [\"step_3\"]",
            "step_12 skipped file twelve [\"step_3\", \"step_7\"]",
            "step_4 done agent late []",
        ]
    );
    assert_eq!(backlog.plan().unwrap().plan_id, "Plan");
    let seven = backlog.task("step_7").unwrap();
    assert_eq!((seven.agent.as_deref(), seven.model.as_deref()), (Some("claude"), Some("big")));
    assert_eq!((seven.verify.as_deref(), seven.timeout_seconds), (Some("make test"), Some(600)));
    assert_eq!(seven.description, "6. something to know");
    assert_eq!(
        backlog.task("step_12").unwrap().work,
        Work::File { path: "a/b.md".into(), content: String::new(), overwrite: true }
    );
}

#[test]
fn content_as_line_block_or_fence() {
    let file = |content: &str| {
        let text = format!("- [ ] **Step 1:** w (action_type: create_file)\n  - File: a.md\n{content}");
        match work(&text) {
            Work::File { content, .. } => content,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(file("  - Content: one line\n"), "one line");
    assert_eq!(file("  - content: \"two\\nlines\"\n"), "two\nlines");
    assert_eq!(
        file("  - Content: |\n      a\n        b\n\n      - [ ] **Step 2:** c\n  - Overwrite: no\n"),
        "a\n  b\n\n- [ ] **Step 2:** c\n"
    );
    assert_eq!(
        file(
            "  - Content:\n    ```markdown\n    # T\n\n    - [ ] **Step 9:** x (action_type: agent)\n    ```\n"
        ),
        "# T\n\n- [ ] **Step 9:** x (action_type: agent)\n"
    );
    assert_eq!(file("  - Content: ```\n    inside\n    ```\n"), "inside\n");
    assert_eq!(file("  - Content: first\n    second\n"), "first\nsecond\n");
    assert_eq!(file("  - Content: ~~~\r\n    a\r\n    ~~~\r\n"), "a\n");
    assert_eq!(file(""), "");
    let message = "- [ ] **Step 1:** call (action_type: notify_human)\n  - message: please\n\n      look\n";
    assert_eq!(work(message), Work::Notice { message: "please\nlook\n".into() });
    assert_eq!(
        work("- [ ] **Step 1:** call (action_type: notify_human)"),
        Work::Notice { message: "call".into() }
    );
}

#[test]
fn params_over_lines() {
    let params = |params: &str| {
        let head = "- [ ] **Step 1:** c (action_type: mcp_x)\n  - Server: s\n  - Tool: `t`\n";
        match work(&format!("{head}{params}")) {
            Work::McpCall { params, .. } => params,
            other => panic!("{other:?}"),
        }
    };
    let both = json!({"to": "a", "n": [1, 2]});
    assert_eq!(params("  - Params: {to: a, n: [1, 2]}"), both);
    assert_eq!(params("  - Params: {to: a,\n      n: [1, 2]}\n"), both);
    assert_eq!(params("  - Params: {\n    to: a,\n    n: [1, 2]\n  }\n  - Dependencies: none\n"), both);
    assert_eq!(params("  - Params:\n      to: a\n      n:\n        - 1\n        - 2\n"), both);
    assert_eq!(params("  - Params:\n    - to: a\n    - n: [1, 2]\n"), both);
    assert_eq!(params("  - Params:\n    ```json\n    {\"to\": \"a\",\n     \"n\": [1, 2]}\n    ```\n"), both);
    assert_eq!(params(""), json!({}));
    assert_eq!(params("  - Params: {id: {{ steps.1.result.id }}}"), json!({"id": "{{ steps.1.result.id }}"}));
}

#[test]
fn an_agent_is_told_what_only_others_use() {
    let backlog =
        read(&steps("- [ ] **Step 1:** write it\n  Carefully.\n  - File: a.md\n  - Message: hello\n"));
    assert_eq!(backlog.tasks()[0].work, Work::Agent);
    assert_eq!(backlog.tasks()[0].description, "Carefully.\nFile: a.md\nMessage: hello");
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let text = steps(
        "- [ ] **Step 1:** a (action_type: send_fax)\n- [ ] **Step 1:** b (action_type: create_file)\n- [ ] **Step 2:** c (action_type: mcp_mail)\n  - Params: {a: 1\n  - Dependencies: step_9\n- [ ] **Step 3:** d\n  - Tool: x\n  - Tool: y\n  - Dependencies: step_4\n- [ ] **Step 4:** e\n  - Dependencies: step_3\n",
    );
    assert_eq!(
        problems(&text),
        [
            "Plan.md:4: `step_1`: unknown action type `send_fax`; expected mcp_<name>, create_file, notify_human or agent",
            "Plan.md:5: `step_1`: no `File`; expected a bullet `- File: …` under the step",
            "Plan.md:5: duplicate id `step_1`; expected every id once",
            "Plan.md:6: `step_2`: no `MCP Server`; expected a bullet `- MCP Server: …` under the step",
            "Plan.md:6: `step_2`: no `Tool`; expected a bullet `- Tool: …` under the step",
            "Plan.md:7: `step_2`: `Params` cannot be read (unclosed bracket '{' at line 1, column 1); expected {name: value, …}",
            "Plan.md:8: `step_2` depends on `step_9`, which is not in the file; expected the id of a task",
            "Plan.md:9: dependency cycle step_3 → step_4 → step_3; expected none",
            "Plan.md:11: `step_3`: second `Tool`; expected it once",
        ]
    );
}

#[test]
fn paths_stay_inside() {
    for (path, why) in [
        ("../x.md", "leaves the vault"),
        ("vault/../../x.md", "leaves the vault"),
        ("a/..", "leaves the vault"),
        ("/etc/passwd", "is not relative"),
        ("~/x", "is not relative"),
        ("C:\\x", "is not relative"),
        ("..\\x", "leaves the vault"),
        (".obsidian/plugins/x/main.js", "is none of a plan's business"),
        ("vault/.Wiggum/wiggum.db", "is none of a plan's business"),
        ("notes/", "names a folder"),
    ] {
        let text = steps(&format!("- [ ] **Step 1:** w (action_type: create_file)\n  - File: {path}\n"));
        let expected =
            format!("Plan.md:5: `step_1`: the file `{path}` {why}; expected a path inside the vault");
        assert_eq!(problems(&text), [expected]);
    }
}

#[test]
fn front_matter_that_is_wrong() {
    let step = "- [ ] **Step 1:** a (action_type: agent)\n";
    for (front, expected) in [
        (
            "plan_id: ../up",
            "Plan.md:2: plan_id `../up` cannot name a file; expected letters, digits, `-`, `_` and `.`, at most 100 bytes",
        ),
        ("plan_id: a\nplan_id: b", "Plan.md:3: duplicate key `plan_id`; expected it once"),
        ("plan_id: a\nstatus: x\nstatus: y", "Plan.md:4: duplicate key `status`; expected it once"),
        (
            "plan_id: a\ncompleted_steps: some",
            "Plan.md:3: `completed_steps` is `some`; expected a whole number",
        ),
        (
            "plan_id: a\napproval_required: maybe",
            "Plan.md:3: `approval_required` is `maybe`; expected true or false",
        ),
    ] {
        assert_eq!(problems(&format!("---\n{front}\n---\n{step}")), [expected]);
    }
    assert_eq!(
        problems(&format!("---\nplan_id: a\n{step}")),
        ["Plan.md:1: the front matter has no end; expected a line `---` behind it"]
    );
    assert_eq!(
        problems("---\nplan_id: a\n---\n# soon\n"),
        ["Plan.md:4: a plan without steps; expected `- [ ] **Step 1:** what to do (action_type: …)`"]
    );
}

#[test]
fn plans_are_told_from_other_markdown_by_what_is_in_them() {
    let dialect = |file: &str, text: &str| Backlog::parse(file, text).unwrap().dialect();
    let typed = "- [ ] **Step 1:** a (action_type: agent)";
    let plain = "- [ ] **Step 1:** a";
    assert_eq!(dialect("notes.md", typed), Dialect::Plan);
    assert_eq!(dialect("TODO.md", plain), Dialect::Markdown);
    assert_eq!(dialect("PLAN_x.md", plain), Dialect::Plan);
    assert_eq!(dialect("a/Plan.md", "- [ ] a"), Dialect::Markdown);
    assert_eq!(dialect("x.md", &steps(plain)), Dialect::Plan);
    assert_eq!(dialect("x.md", &format!("```\n{typed}\n```\n- [ ] b")), Dialect::Markdown);
    assert_eq!(Backlog::parse("a b/My plan.md", typed).unwrap().plan().unwrap().plan_id, "My_plan");
}

fn check_status(before: &str, id: &str, status: FileStatus, after: &str) {
    let mut backlog = read(before);
    backlog.set_status(id, status).unwrap();
    assert_eq!(backlog.text(), after);
    let again = read(after);
    assert_eq!((backlog.tasks(), backlog.plan()), (again.tasks(), again.plan()));
}

#[test]
fn statuses_change_mark_note_and_count() {
    let one = "- [ ] **Step 1:** Draft intro email to client";
    let counted =
        |text: &str, count: &str| text.replace("completed_steps: 0", &format!("completed_steps: {count}"));
    let marked = |with: &str| ONBOARDING.replace(one, &one.replace("[ ] **Step 1:**", with));
    let done = counted(&marked("[x] **Step 1:**"), "1");
    let failed = marked("[!] **Step 1:** (FAILED)");
    let skipped = marked("[-] **Step 1:**");
    check_status(ONBOARDING, "step_1", Done, &done);
    check_status(ONBOARDING, "step_1", Failed, &failed);
    check_status(ONBOARDING, "step_1", Skipped, &skipped);
    check_status(&done, "step_1", Open, ONBOARDING);
    check_status(&failed, "step_1", Open, ONBOARDING);
    check_status(&failed, "step_1", Done, &done);
    check_status(&skipped, "step_1", Done, &done);
    check_status(&done, "step_1", Failed, &failed);
    let late = |note: &str| steps(&format!("- [{note}"));
    check_status(&late("!] **Step 1:** a (FAILED)\n"), "step_1", Open, &late(" ] **Step 1:** a\n"));
    check_status(&late(" ] **Step 1:** a (FAILED)\n"), "step_1", Done, &late("x] **Step 1:** a (FAILED)\n"));
    check_status(&late("!] **Step 1:** a\n"), "step_1", Done, &late("x] **Step 1:** a\n"));
}

#[test]
fn one_edit_after_another() {
    let mut backlog = read(ONBOARDING);
    for (id, status) in [
        ("step_1", Failed),
        ("step_3", Done),
        ("step_1", Done),
        ("step_2", Failed),
        ("step_2", Failed),
        ("step_3", Open),
        ("step_2", Done),
    ] {
        backlog.set_status(id, status).unwrap();
        backlog.set_plan(PlanValue::IterationsUsed(12));
        let again = read(backlog.text());
        assert_eq!((backlog.tasks(), backlog.plan()), (again.tasks(), again.plan()));
    }
    let expected = ONBOARDING
        .replace("[ ] **Step 1", "[x] **Step 1")
        .replace("[ ] **Step 2", "[x] **Step 2")
        .replace("completed_steps: 0", "completed_steps: 2")
        .replace("iterations_used: 0", "iterations_used: 12");
    assert_eq!(backlog.text(), expected);
}

#[test]
fn front_matter_values_change_in_place() {
    let text = "---\nplan_id : 'p'\nstatus:   \"awaiting_approval\"   # of Ann\niterations_used: 0# no comment\r\nmax_iterations:\n---\n- [ ] **Step 1:** a\n";
    let text = text.replace("0# no comment\r", "'7' # seven\r");
    let mut backlog = read(&text);
    assert_eq!(backlog.plan().unwrap().iterations_used, Some(7));
    backlog.set_plan(PlanValue::Status("executing"));
    backlog.set_plan(PlanValue::IterationsUsed(8));
    backlog.set_plan(PlanValue::MaxIterations(20));
    backlog.set_plan(PlanValue::TotalSteps(1));
    let expected = text
        .replace("awaiting_approval", "executing")
        .replace("'7'", "'8'")
        .replace("max_iterations:", "max_iterations: 20");
    assert_eq!(backlog.text(), expected);
    assert_eq!(read(&expected).plan().unwrap().max_iterations, Some(20));
    backlog.set_status("step_1", Done).unwrap();
    assert_eq!(backlog.text(), expected.replace("[ ]", "[x]"));
}

#[test]
fn steps_are_added_moved_and_deleted() {
    let mut backlog = read(ONBOARDING);
    let task = NewTask {
        id: "step_4".into(),
        title: "Tell the team".into(),
        description: "In the chat.".into(),
        depends_on: vec!["step_3".into()],
        ..NewTask::default()
    };
    backlog.add(&task).unwrap();
    let added = "\n\n- [ ] **Step 4:** Tell the team (action_type: agent)\n  In the chat.\n  - Dependencies: step_3\n";
    let expected = format!("{}{added}", ONBOARDING.trim_end()).replace("total_steps: 3", "total_steps: 4");
    assert_eq!(backlog.text(), expected);
    assert_eq!(backlog.task("step_4").unwrap().description, "In the chat.");

    let refused = |task: NewTask| read(ONBOARDING).add(&task).unwrap_err().to_string();
    assert_eq!(refused(NewTask { id: "T-1".into(), ..task.clone() }), "Plan.md cannot say the id of `T-1`");
    assert_eq!(
        refused(NewTask { id: "step_9".into(), role: Some("x".into()), ..task }),
        "Plan.md cannot say the role of `step_9`"
    );

    backlog.set_status("step_4", Done).unwrap();
    backlog.delete("step_4").unwrap();
    assert_eq!(backlog.plan().unwrap().completed_steps, Some(0));
    assert_eq!(backlog.text().replace("\n\n\n", "\n\n").trim_end(), ONBOARDING.trim_end());
    assert!(backlog.delete("step_1").unwrap_err().to_string().contains("depend on `step_1`"));
    backlog.move_task("step_3", Position::First).unwrap();
    let order: Vec<&str> = backlog.tasks().iter().map(|task| task.id.as_str()).collect();
    assert_eq!(order, ["step_3", "step_1", "step_2"]);
}

/// A plan of random shape. The places that may change are written as the given words.
#[derive(Clone, Debug)]
struct Shape {
    line_end: &'static str,
    bom: bool,
    front: bool,
    quote: &'static str,
    steps: Vec<(FileStatus, &'static str, &'static str, u32)>,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let step = (
        prop::sample::select(vec![Open, Done, Failed, Skipped]),
        prop::sample::select(vec!["- ", "* ", "  + ", "1. "]),
        prop::sample::select(vec![
            "",
            "    - Dependencies: none\n",
            "    - content: |\n        completed_steps: 9\n        - [ ] **Step 1:** (FAILED) é\n",
            "\n    words [ ] [x] (FAILED)\n\n",
            "    - Params: {a: \"[ ] **Step 2:**\",\n      b: 2}\n",
            "\n```\n- [ ] **Step 1:** (FAILED)\n```\n\n# Head\n",
            "<!--\n- [x] **Step 1:** a (action_type: x)\n-->\n",
        ]),
        1..4u32,
    );
    (
        prop::sample::select(vec!["\n", "\r\n"]),
        any::<bool>(),
        any::<bool>(),
        prop::sample::select(vec!["", "\"", "'"]),
        prop::collection::vec(step, 1..6),
    )
        .prop_map(|(line_end, bom, front, quote, steps)| Shape { line_end, bom, front, quote, steps })
}

/// The text of a shape with these statuses in place of its own.
fn write(shape: &Shape, statuses: &[FileStatus], used: u32) -> String {
    let mut out = String::new();
    if shape.front {
        let (q, done) = (shape.quote, statuses.iter().filter(|status| **status == Done).count());
        write!(out, "<!-- c -->\n---\nplan_id: p  # [x]\nx: {{completed_steps: 3}}\ncompleted_steps:  {q}{done}{q} # n\niterations_used: {used}\nz: |\n  completed_steps: 4\n---\n# T\n").unwrap();
    }
    let mut number = 0;
    for ((_, marker, rest, gap), status) in shape.steps.iter().zip(statuses) {
        number += gap;
        let (mark, note) = match status {
            Open => (" ", ""),
            Done => ("x", ""),
            Failed => ("!", " (FAILED)"),
            Skipped => ("-", ""),
        };
        writeln!(
            out,
            "{marker}[{mark}] **Step {number}:**{note} do [ ] (FAILED) it (action_type: agent)\n{rest}"
        )
        .unwrap();
    }
    let bom = if shape.bom { "\u{feff}" } else { "" };
    format!("{bom}{}", out.replace('\n', shape.line_end))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every byte of the edited text is that of the text written with the new statuses.
    #[test]
    fn only_marks_notes_and_values_change(
        shape in shapes(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(vec![Open, Done, Failed, Skipped])), 1..6),
        used in 0..2000u32,
    ) {
        let mut statuses: Vec<FileStatus> = shape.steps.iter().map(|step| step.0).collect();
        let mut backlog = read(&write(&shape, &statuses, 0));
        prop_assert_eq!(backlog.tasks().len(), statuses.len());
        for (pick, status) in edits {
            let position = pick.index(statuses.len());
            let id = backlog.tasks()[position].id.to_string();
            backlog.set_status(&id, status).unwrap();
            statuses[position] = status;
            prop_assert_eq!(backlog.text(), write(&shape, &statuses, 0));
        }
        backlog.set_plan(PlanValue::IterationsUsed(used));
        prop_assert_eq!(backlog.text(), write(&shape, &statuses, used));
        let again = read(backlog.text());
        prop_assert_eq!(again.tasks(), backlog.tasks());
        for task in again.tasks() {
            prop_assert_eq!(again.line_of(task.id.as_str()), backlog.line_of(task.id.as_str()));
        }
    }
}
