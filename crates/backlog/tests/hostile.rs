//! Input that nobody meant well: it must be refused or read, never bring the program down.
#![expect(clippy::unwrap_used, reason = "the helpers of these tests are not themselves tests")]

use proptest::prelude::*;
use wiggum_backlog::{Backlog, NewTask, Position, TaskChange};
use wiggum_core::task::FileStatus;

const PRD: &str = "\u{feff}{\"project\": \"p\\u00e9\", \"branchName\": \"b\",\r\n \"userStories\": [{\"id\": \"a\", \"acceptanceCriteria\": [\"x\", {\"text\": \"é\", \"check\": \"c\"}], \"priority\": 1.0, \"passes\": false},\r\n {\"id\": \"b\", \"depends_on\": [\"a\"], \"skipped\": true}]}\r\n";
const TASKS: &str = "[{\"id\": \"a\", \"description\": \"d\\n\\ud83d\\ude00\", \"status\": \"pending\", \"evaluation\": {\"mode\": \"command\", \"command\": \"c\"}, \"work\": {\"kind\": \"agent\"}, \"outputs\": [{\"kind\": \"file\"}]}, {\"id\": \"b\", \"description\": \"d\", \"status\": \"failed\", \"depends_on\": [\"a\"]}]\n";
const MARKDOWN: &str = "# T\n- [ ] **US-001**: a (optional) (depends: b) <!-- c -->\n\t- [x] é (id: b)\n\t  - Criteria: `x` check: `y`\n```\ncode\n```\n## Optional\n1. [-] z\n> q\n";
const PLAN: &str = "<!-- c -->\n---\nplan_id: p\nobjective: \"o\"\ntotal_steps: 2\ncompleted_steps: 1\nstatus: x # y\n---\n- [x] **Step 1:** é (action_type: mcp_a)\r\n  - MCP Server: s\n  - Tool: t\n  - Params: {a: \"b\", c: [1]}\n- [!] **Step 2:** (FAILED) w (action_type: create_file)\n  - Dependencies: step_1\n  - File: vault/a.md\n  - Content: |\n      x\n";

/// Reads a text and tries every kind of edit on what was read.
fn exercise(file: &str, text: &str) {
    wiggum_backlog::checkboxes("TODO.md", text);
    let Ok(backlog) = Backlog::parse(file, text) else { return };
    backlog.unsupported(&|_| false);
    let ids: Vec<String> = backlog.tasks().iter().take(4).map(|task| task.id.to_string()).collect();
    for id in &ids {
        backlog.line_of(id);
        for status in [FileStatus::Done, FileStatus::Failed, FileStatus::Skipped, FileStatus::Open] {
            let mut edited = backlog.clone();
            edited.set_status(id, status).unwrap();
            let again = Backlog::parse(file, edited.text()).unwrap();
            assert_eq!(again.tasks(), edited.tasks());
        }
        drop(backlog.clone().delete(id));
        for to in [
            Position::First,
            Position::Last,
            Position::Before(ids[0].clone()),
            Position::After(ids[0].clone()),
        ] {
            drop(backlog.clone().move_task(id, to));
        }
    }
    if let Some(last) = ids.last() {
        let mut edited = backlog.clone();
        let change = TaskChange {
            title: Some("New (title)".into()),
            description: Some("é\n\n- x".into()),
            depends_on: Some(Vec::new()),
            priority: None,
        };
        let text = match edited.change(last, &change) {
            Ok(()) => edited.text().to_owned(),
            Err(_) => text.to_owned(),
        };
        assert_eq!(edited.text(), text);
        assert_eq!(Backlog::parse(file, text).unwrap().tasks(), edited.tasks());
    }
    let new = NewTask { id: "new-1".into(), title: "New".into(), depends_on: ids, ..NewTask::default() };
    drop(backlog.clone().add(&new));
}

#[test]
fn samples_cut_at_every_byte() {
    for (file, text) in [("prd.json", PRD), ("tasks.json", TASKS), ("TODO.md", MARKDOWN), ("Plan.md", PLAN)] {
        Backlog::parse(file, text).unwrap();
        for (cut, _) in text.char_indices() {
            exercise(file, &text[..cut]);
            exercise(file, &text[cut..]);
        }
    }
}

#[test]
fn samples_with_every_byte_replaced() {
    for (file, text) in [("prd.json", PRD), ("tasks.json", TASKS), ("TODO.md", MARKDOWN), ("Plan.md", PLAN)] {
        for (at, old) in text.char_indices() {
            for new in ['"', '\\', '{', '}', '[', ']', ',', ':', ' ', '\n', '0', '\u{0}', 'é', '`', '-'] {
                let mut changed = text.to_owned();
                changed.replace_range(at..at + old.len_utf8(), new.encode_utf8(&mut [0; 4]));
                if let Ok(backlog) = Backlog::parse(file, changed.as_str()) {
                    assert_eq!(backlog.text(), changed);
                }
            }
        }
    }
}

#[test]
fn nesting_and_repetition_without_end() {
    for unit in [
        "[",
        "{\"a\":",
        "- ",
        "> ",
        "  - [ ] a\n",
        "`",
        "```\n",
        "<!--",
        "(id: ",
        "**",
        "1. ",
        "[ ] ",
        "- [ ] (",
        "- [ ] **Step 1:** (action_type: ",
        "---\nplan_id: ",
    ] {
        let text = unit.repeat(100_000);
        for file in ["tasks.json", "TODO.md", "Plan.md"] {
            drop(Backlog::parse(file, text.as_str()));
            drop(Backlog::parse(file, format!("- [ ] {text}")));
            drop(Backlog::parse(file, format!("[{{\"work\": {text}")));
        }
    }
    let wide = format!("[{}", "{\"id\": \"a\", \"depends_on\": [\"a\", \"b\"]},".repeat(20_000));
    assert!(Backlog::parse("tasks.json", wide.trim_end_matches(',').to_owned() + "]").is_err());
    let parts: String = (0..50_000).map(|n| format!("  - [ ] part {n}\n")).collect();
    let backlog = Backlog::parse("TODO.md", format!("- [ ] all\n{parts}")).unwrap();
    assert_eq!(backlog.tasks()[0].depends_on.len(), 50_000);
    for waits in [" (after T1)", "\n  - Needs: T1", "\n  - Needs: T1 or so", "\n  see (after T1"] {
        let text = format!("- [ ] T1: a\n- [ ] T2: b (after T1){}\n", waits.repeat(50_000));
        let backlog = Backlog::parse("TODO.md", text).unwrap();
        assert_eq!(backlog.tasks()[1].depends_on.len(), 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in "\\PC*|[\\[\\]{}\",:\\\\ \n\ta-z0-9-]*|([-*+]|1\\.| |\t|\\[[ x!-]?\\]|[a-zA-Z:()`<>#-]|\r?\n)*") {
        for file in ["prd.json", "TODO.md", "x", "Plan.md"] {
            let text = if file == "Plan.md" { format!("---\nplan_id: p\ncompleted_steps:\n---\n- [ ] **Step 1:** a\n  - Params: {text}") } else { text.clone() };
            exercise(file, &text);
        }
    }
}
