//! Edits of each dialect: which bytes change, and what is refused.
#![expect(clippy::unwrap_used, reason = "the helpers of these tests are not themselves tests")]

use std::collections::HashSet;

use wiggum_backlog::{Backlog, NewTask, Position};
use wiggum_core::ids::TaskId;
use wiggum_core::task::{Criterion, FileStatus};

fn read(file: &str, text: &str) -> Backlog {
    Backlog::parse(file, text).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Applies an edit and compares the whole text; what the backlog then knows must be what a reader
/// of that text would find.
fn check(file: &str, before: &str, edit: impl FnOnce(&mut Backlog), after: &str) {
    let mut backlog = read(file, before);
    edit(&mut backlog);
    assert_eq!(backlog.text(), after);
    let again = read(file, after);
    assert_eq!(backlog.tasks(), again.tasks());
    for task in again.tasks() {
        let id = task.id.as_str();
        assert_eq!(backlog.line_of(id), again.line_of(id), "line of {id}");
    }
}

fn check_status(file: &str, before: &str, id: &str, status: FileStatus, after: &str) {
    check(file, before, |backlog| backlog.set_status(id, status).unwrap(), after);
}

fn check_refused(file: &str, text: &str, edit: impl FnOnce(&mut Backlog) -> String, expected: &str) {
    let mut backlog = read(file, text);
    assert_eq!(edit(&mut backlog), expected);
    assert_eq!(backlog.text(), text, "a refused edit changes nothing");
}

fn new(id: &str, title: &str) -> NewTask {
    NewTask { id: id.into(), title: title.into(), ..NewTask::default() }
}

use FileStatus::{Done, Failed, Open, Skipped};

#[test]
fn a_title_may_name_what_a_new_task_waits_on() {
    let text = "- [ ] T1: a\n";
    for depends_on in [vec![], vec!["T1".to_owned()]] {
        let mut backlog = Backlog::parse("TODO.md", text).unwrap();
        let task = NewTask { depends_on, ..new("T2", "b (after T1)") };
        backlog.add(&task).unwrap();
        assert_eq!(backlog.task("T2").unwrap().depends_on, [TaskId::new("T1")], "{}", backlog.text());
    }
}

#[test]
fn status_of_prd_stories() {
    let story = |flags: &str| format!("{{\"userStories\": [{{\"id\": \"a\"{flags}}}]}}");
    for (before, status, after) in [
        (", \"passes\": false", Done, ", \"passes\": true"),
        (", \"passes\" :  true, \"x\": 1.10", Open, ", \"passes\" :  false, \"x\": 1.10"),
        (", \"passes\": false, \"z\": 1", Skipped, ", \"passes\": false, \"skipped\": true, \"z\": 1"),
        (",\"passes\":false", Skipped, ",\"passes\":false,\"skipped\":true"),
        (", \"passes\": false, \"skipped\": true", Open, ", \"passes\": false, \"skipped\": false"),
        (", \"passes\": false, \"skipped\": true", Done, ", \"passes\": true, \"skipped\": false"),
        (", \"passes\": true", Skipped, ", \"passes\": false, \"skipped\": true"),
        (", \"passes\": false", Failed, ", \"passes\": false"),
        (", \"passes\": true", Failed, ", \"passes\": false"),
        (", \"passes\": true, \"skipped\": true", Done, ", \"passes\": true, \"skipped\": true"),
        (", \"title\": \"t\"", Done, ", \"passes\": true, \"title\": \"t\""),
        ("", Skipped, ", \"skipped\": true"),
        (", \"passes\": null", Done, ", \"passes\": true"),
        (", \"p\\u0061sses\": false", Done, ", \"p\\u0061sses\": true"),
    ] {
        check_status("prd.json", &story(before), "a", status, &story(after));
    }
}

#[test]
fn missing_member_takes_a_line_of_its_own() {
    let before = "{\r\n\t\"userStories\": [\r\n\t\t{\r\n\t\t\t\"id\": \"a\",\r\n\t\t\t\"passes\": false\r\n\t\t}\r\n\t]\r\n}";
    let after = before.replace("false", "false,\r\n\t\t\t\"skipped\": true");
    check_status("prd.json", before, "a", Skipped, &after);
    check_status(
        "prd.json",
        "{\"userStories\": [{\n\"id\": \"a\"\n}]}",
        "a",
        Done,
        "{\"userStories\": [{\n\"id\": \"a\",\n\"passes\": true\n}]}",
    );
}

#[test]
fn status_of_tasks_and_ralphy() {
    let task = |rest: &str| {
        format!(
            "[{{\"id\": \"a\", \"description\": \"d\", {rest}}}, {{\"id\": \"b\", \"description\": \"\", \"status\": \"pending\"}}]\n"
        )
    };
    for (before, status, after) in [
        ("\"status\": \"pending\"", Done, "\"status\": \"completed\""),
        ("\"status\": \"inprogress\"", Failed, "\"status\": \"failed\""),
        ("\"status\": \"in-progress\"", Open, "\"status\": \"in-progress\""),
        ("\"status\": \"failed\"", Open, "\"status\": \"pending\""),
        ("\"status\": \"failed\"", Skipped, "\"status\": \"failed\", \"skipped\": true"),
        ("\"status\": \"completed\"", Skipped, "\"status\": \"pending\", \"skipped\": true"),
        ("\"status\": \"failed\", \"skipped\": true", Failed, "\"status\": \"failed\", \"skipped\": false"),
        ("\"status\": \"failed\", \"skipped\": true", Open, "\"status\": \"pending\", \"skipped\": false"),
        ("\"skipped\": true, \"status\": \"pending\"", Done, "\"skipped\": false, \"status\": \"completed\""),
    ] {
        check_status("tasks.json", &task(before), "a", status, &task(after));
    }
    check_status(
        "t.json",
        "{\"tasks\":[{\"title\":\"A b\"}]}",
        "a-b",
        Done,
        "{\"tasks\":[{\"title\":\"A b\",\"completed\":true}]}",
    );
    check_status(
        "t.json",
        "{\"tasks\":[{\"title\":\"A\",\"completed\":true}]}",
        "a",
        Failed,
        "{\"tasks\":[{\"title\":\"A\",\"completed\":false}]}",
    );
}

#[test]
fn status_of_markdown_boxes() {
    for (before, status, after) in [
        ("[ ]", Done, "[x]"),
        ("[X]", Done, "[X]"),
        ("[x]", Open, "[ ]"),
        ("[ ]", Failed, "[!]"),
        ("[-]", Done, "[x]"),
        ("[-]", Open, "[-]"),
        ("[~]", Open, "[~]"),
        ("[/]", Done, "[x]"),
        ("[]", Done, "[x]"),
        ("[✓]", Open, "[ ]"),
    ] {
        let text = |mark: &str| format!("\u{feff}# T\r\n- {mark} One [ ]\r\n\r\n1. [ ] Two");
        check_status("TODO.md", &text(before), "one", status, &text(after));
    }
    let mut backlog = read("TODO.md", "- [] a\n  - [] b\n- [] c");
    for id in ["c", "a", "b", "a"] {
        backlog.set_status(id, Done).unwrap();
        backlog.set_status(id, Skipped).unwrap();
    }
    assert_eq!(backlog.text(), "- [ ] a (skipped)\n  - [ ] b (skipped)\n- [ ] c (skipped)");
}

#[test]
fn skips_of_markdown_boxes_are_notes() {
    for (before, status, after) in [
        ("[ ] One", Skipped, "[ ] One (skipped)"),
        ("[] One", Skipped, "[ ] One (skipped)"),
        ("[x] One", Skipped, "[ ] One (skipped)"),
        ("[!] One", Skipped, "[ ] One (skipped)"),
        ("[~] One", Skipped, "[ ] One (skipped)"),
        ("[-] One", Skipped, "[ ] One (skipped)"),
        ("[ ] Two (id: one) <!-- c -->  ", Skipped, "[ ] Two (id: one) <!-- c --> (skipped)  "),
        ("[ ] One (skipped)", Skipped, "[ ] One (skipped)"),
        ("[ ] One (skipped)", Open, "[ ] One"),
        ("[ ] One (skipped)", Done, "[x] One"),
        ("[ ] One  (SKIPPED)  ", Failed, "[!] One  "),
        ("[~] Two (skipped) (id: one)", Open, "[ ] Two (id: one)"),
        ("[x] One (skipped)", Open, "[ ] One"),
        ("[x] One (skipped)", Skipped, "[ ] One (skipped)"),
    ] {
        let text = |said: &str| format!("\u{feff}# T\r\n- {said}\r\n  more\r\n\r\n1. [ ] Three");
        check_status("TODO.md", &text(before), "one", status, &text(after));
        check_status("TODO.md", &format!("- {before}"), "one", status, &format!("- {after}"));
    }
    let mut backlog = read("TODO.md", "- [ ] a\n- [ ] b\n");
    for status in [Skipped, Open, Skipped, Done, Skipped, Failed, Skipped] {
        backlog.set_status("a", status).unwrap();
        backlog.set_status("b", status).unwrap();
        assert_eq!(read("TODO.md", backlog.text()).tasks(), backlog.tasks());
    }
    assert_eq!(backlog.text(), "- [ ] a (skipped)\n- [ ] b (skipped)\n");
    check_refused(
        "TODO.md",
        "- [ ] a",
        |backlog| backlog.add(&new("b", "Be gone (skipped)")).unwrap_err().to_string(),
        "Markdown cannot say the text of `b`",
    );
}

#[test]
fn attempts_are_recorded_in_the_format_that_has_them() {
    let before = "[{\"id\": \"a\", \"description\": \"\", \"status\": \"pending\", \"failed_attempts\": 0, \"last_attempt_at\": null}, {\"id\": \"b\", \"description\": \"\", \"status\": \"pending\"}]";
    let after = before.replace("_attempts\": 0", "_attempts\": 2").replace("null", "1700000000").replace(
        "\"status\": \"pending\"}",
        "\"status\": \"pending\", \"failed_attempts\": 2, \"last_attempt_at\": 1700000000}",
    );
    let record = |backlog: &mut Backlog| {
        backlog.record_attempt("a", 2, Some(1_700_000_000)).unwrap();
        backlog.record_attempt("b", 2, Some(1_700_000_000)).unwrap();
        backlog.record_attempt("a", 2, None).unwrap();
    };
    check("tasks.json", before, record, &after);
    // In the file's own style, and without what is the default anyway.
    let before = "[\r\n\t{\r\n\t\t\"status\":\"pending\",\r\n\t\t\"id\":\"a\",\r\n\t\t\"description\":\"d\"\r\n\t}\r\n]";
    let after = before.replace("\"pending\",", "\"pending\",\r\n\t\t\"last_attempt_at\":7,");
    check("tasks.json", before, |backlog| backlog.record_attempt("a", 0, Some(7)).unwrap(), &after);
    // Nothing was tried, or the format does not have it.
    check("tasks.json", before, |backlog| backlog.record_attempt("a", 0, None).unwrap(), before);
    check("TODO.md", "- [ ] a", |backlog| backlog.record_attempt("a", 1, Some(1)).unwrap(), "- [ ] a");
    let prd =
        "{\"userStories\": [{\"id\": \"a\", \"title\": \"t\", \"description\": \"d\", \"passes\": false}]}";
    check("PRD.json", prd, |backlog| backlog.record_attempt("a", 1, Some(1)).unwrap(), prd);
}

#[test]
fn who_works_on_a_task_is_told_in_the_words_of_the_file() {
    let task =
        |id: &str, status: &str| format!(r#"{{"id": "{id}", "status" : "{status}", "description": "d"}}"#);
    let file = |a: &str, b: &str| format!("[{},\n {}]\n", task("a", a), task("b", b));
    let mark =
        |id: &'static str, on: bool| move |backlog: &mut Backlog| backlog.mark_in_progress(id, on).unwrap();
    check("t.json", &file("pending", "pending"), mark("a", true), &file("inprogress", "pending"));
    check("t.json", &file("pending", "in_progress"), mark("a", true), &file("in_progress", "in_progress"));
    check("t.json", &file("pending", "in-progress"), mark("a", true), &file("in-progress", "in-progress"));
    check("t.json", &file("in_progress", "pending"), mark("a", true), &file("in_progress", "pending"));
    check("t.json", &file("in_progress", "pending"), mark("a", false), &file("pending", "pending"));
    for settled in ["completed", "failed"] {
        check("t.json", &file(settled, "pending"), mark("a", true), &file(settled, "pending"));
        check("t.json", &file(settled, "pending"), mark("a", false), &file(settled, "pending"));
    }
    // The spelling is remembered when the last task that had it is done.
    check(
        "t.json",
        &file("pending", "in-progress"),
        |backlog| {
            backlog.set_status("b", Done).unwrap();
            backlog.add(&new("c", "See")).unwrap();
            *backlog = backlog.reread(backlog.text().to_owned()).unwrap();
            backlog.delete("c").unwrap();
            backlog.mark_in_progress("a", true).unwrap();
        },
        &file("in-progress", "completed"),
    );
    for (name, text) in [("TODO.md", "- [ ] a\n"), ("p.json", "{\"userStories\": [{\"id\": \"a\"}]}")] {
        check(name, text, mark("a", true), text);
    }
}

#[test]
fn what_was_added_is_withdrawn_at_once() {
    let withdraw = |ids: &[&str]| {
        let ids = ids.iter().map(|id| TaskId::from(*id)).collect();
        move |backlog: &mut Backlog| backlog.withdraw(&ids).unwrap()
    };
    let list = |ids: &[&str]| {
        let items: Vec<String> = ids
            .iter()
            .map(|id| format!("  {{\"id\": \"{id}\", \"description\": \"d\", \"status\": \"pending\"}}"))
            .collect();
        format!("[\n{}\n]\n", items.join(",\n"))
    };
    check("t.json", &list(&["a", "b", "c", "d"]), withdraw(&["b", "d"]), &list(&["a", "c"]));
    check("t.json", &list(&["a", "b", "c", "d"]), withdraw(&["a", "b"]), &list(&["c", "d"]));
    check("t.json", &list(&["a", "b"]), withdraw(&["a", "b"]), "[]\n");
    let stories = r#"{"userStories": [{"id": "a"},{"id": "b"} , {"id": "c"}], "z": 1}"#;
    check("p.json", stories, withdraw(&["a", "c"]), r#"{"userStories": [{"id": "b"}], "z": 1}"#);
    check(
        "TODO.md",
        "# T\r\n- [ ] a\r\n  more\r\n- [ ] b\r\n\r\ntext\r\n- [ ] c\r\n  - [ ] d\r\n- [ ] e",
        withdraw(&["b", "c", "d"]),
        "# T\r\n- [ ] a\r\n  more\r\n\r\ntext\r\n- [ ] e",
    );
    check("TODO.md", "- [ ] a\n- [ ] b\n- [ ] c", withdraw(&["b", "c"]), "- [ ] a");
    let many: String = (0..2000).map(|n| format!("- [ ] task {n}\n")).collect();
    let gone: Vec<String> = (500..2000).map(|n| format!("task-{n}")).collect();
    let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
    check("TODO.md", &many, withdraw(&gone), &many[..many.find("- [ ] task 500\n").unwrap()]);
    check_refused(
        "TODO.md",
        "- [ ] a\n  - [ ] b\n",
        |backlog| backlog.withdraw(&HashSet::from(["a".into()])).unwrap_err().to_string(),
        "ids made from text would change: `b`; give those tasks ids of their own first",
    );
}

#[test]
fn words_are_given_back() {
    let before = read("TODO.md", "# T\n- [x] T1: one\n  said\n- [ ] T2: two\n");
    let mut after = read("TODO.md", "# New\n\n- [x] T1: uno\n- [ ] T2: due\n- [ ] T3: tre\n");
    after.restore(&before, &HashSet::from([TaskId::new("T1")])).unwrap();
    assert_eq!(after.text(), "# New\n\n- [x] T1: one\n  said\n- [ ] T2: due\n- [ ] T3: tre\n");
    let json =
        |a: &str, b: &str| format!("{{\"userStories\": [{{\"id\": \"a\", {a}}}, {{\"id\": \"b\", {b}}}]}}");
    let before = read("p.json", &json("\"title\": \"x\", \"k\": 1.50", "\"title\": \"y\""));
    let mut after = read("p.json", &json("\"title\": \"z\"", "\"title\": \"w\""));
    after.restore(&before, &HashSet::from(["a".into()])).unwrap();
    assert_eq!(after.text(), json("\"title\": \"x\", \"k\": 1.50", "\"title\": \"w\""));
    // A part that came since would go with it.
    let before = read("TODO.md", "- [x] T1: one\n");
    let mut after = read("TODO.md", "- [x] T1: uno\n  - [ ] T2: part\n");
    assert!(after.restore(&before, &HashSet::from([TaskId::new("T1")])).is_err());
    assert_eq!(after.text(), "- [x] T1: uno\n  - [ ] T2: part\n");
}

/// Whatever tasks are taken out of a text, putting them back makes it the same again.
fn check_put_back(file: &str, text: &str, ids: &[&str]) {
    let ids: HashSet<TaskId> = ids.iter().map(|id| TaskId::from(*id)).collect();
    let before = read(file, text);
    let mut after = before.clone();
    after.withdraw(&ids).unwrap();
    assert_ne!(after.text(), text);
    after.put_back(&before, &ids).unwrap();
    assert_eq!(after.text(), text, "{ids:?}");
    assert_eq!(after.tasks(), before.tasks());
}

#[test]
fn what_was_taken_out_is_put_back_at_its_place() {
    let item = |id: &str| {
        format!("  {{\"id\": \"{id}\", \"description\": \"d\", \"status\": \"pending\", \"x\": 1.50}}")
    };
    let list =
        |ids: &[&str]| format!("[\n{}\n]\n", ids.iter().map(|id| item(id)).collect::<Vec<_>>().join(",\n"));
    let markdown = "# Plan\r\n\r\n## One\r\n- [x] T1: one\r\n  - check: `make`\r\n\r\n## Two\r\n\r\n- [ ] T2: two\r\n\
                    \x20 - check: `make`\r\n- [ ] T3: three\r\n  - [ ] T4: four\r\n  - [ ] T5: five\r\n\r\nThe end.\r\n- [ ] T6: six";
    for ids in [&["a"][..], &["b"], &["d"], &["a", "b"], &["b", "d"], &["a", "c", "d"], &["b", "c", "d"]] {
        check_put_back("t.json", &list(&["a", "b", "c", "d"]), ids);
    }
    for ids in [
        &["T1"][..],
        &["T2"],
        &["T3", "T4", "T5"],
        &["T4"],
        &["T5"],
        &["T4", "T5"],
        &["T6"],
        &["T2", "T3", "T4", "T5"],
        &["T2", "T3", "T4", "T5", "T6"],
        &["T1", "T2", "T3", "T4", "T5", "T6"],
    ] {
        check_put_back("TODO.md", markdown, ids);
    }
    let stories = r#"{"p": "x", "userStories": [{"id": "a", "priority": 2},{"id": "b", "priority": 1} , {"id": "c"}], "z": 1}"#;
    for ids in [&["a"][..], &["b"], &["c"], &["b", "c"]] {
        let ids: HashSet<TaskId> = ids.iter().map(|id| TaskId::from(*id)).collect();
        let before = read("prd.json", stories);
        let mut after = before.clone();
        after.withdraw(&ids).unwrap();
        after.put_back(&before, &ids).unwrap();
        assert_eq!(after.tasks(), before.tasks());
    }
    let plan = "---\ntotal_steps: 3\ncompleted_steps: 1\n---\n# P\n\n- [x] **Step 1:** a (action_type: agent)\n\n- [ ] \
                **Step 2:** b (action_type: agent)\n  - Dependencies: step_1\n\n- [ ] **Step 3:** c (action_type: agent)\n";
    check_put_back("Plan.md", plan, &["step_3"]);
    check_put_back("Plan.md", plan, &["step_2"]);
}

#[test]
fn what_else_changed_stays_when_a_task_is_put_back() {
    let put_back = |file: &str, before: &str, after: &str, ids: &[&str]| {
        let ids: HashSet<TaskId> = ids.iter().map(|id| TaskId::from(*id)).collect();
        let mut now = read(file, after);
        now.put_back(&read(file, before), &ids).map(|()| now.text().to_owned())
    };
    let markdown = "# T\n- [ ] T1: one\n- [ ] T2: two\n  more\n- [ ] T3: three\n";
    // A note under the one before, new tasks around it.
    assert_eq!(
        put_back(
            "TODO.md",
            markdown,
            "# T\n\nnote\n- [ ] T1: one\n  found out\n- [ ] T4: new\n- [ ] T3: three\n",
            &["T2"]
        )
        .unwrap(),
        "# T\n\nnote\n- [ ] T1: one\n  found out\n- [ ] T2: two\n  more\n- [ ] T4: new\n- [ ] T3: three\n"
    );
    // Nothing of the former text is left but one task without words of its own.
    assert_eq!(
        put_back("TODO.md", markdown, "- [ ] T9: else", &["T1", "T2", "T3"]).unwrap(),
        "- [ ] T9: else\n- [ ] T1: one\n- [ ] T2: two\n  more\n- [ ] T3: three"
    );
    let story = |ids: &[&str]| {
        let items: Vec<String> = ids.iter().map(|id| format!("{{\"id\": \"{id}\"}}")).collect();
        format!("{{\"userStories\": [{}]}}", items.join(", "))
    };
    for (before, after, gone, expected) in [
        (&["a", "b", "c"][..], &["x", "c", "y"][..], &["a", "b"][..], &["x", "a", "b", "c", "y"][..]),
        (&["a", "b"], &["x"], &["a", "b"], &["x", "a", "b"]),
        (&["a"], &[], &["a"], &["a"]),
        (&["a", "b"], &["b", "a"], &[], &["b", "a"]),
    ] {
        assert_eq!(put_back("p.json", &story(before), &story(after), gone).unwrap(), story(expected));
    }
    // A part that is left cannot be told from the one that comes back with its whole.
    let error = put_back("TODO.md", "- [ ] T1: a\n  - [ ] T2: b\n", "- [ ] T2: b\n", &["T1"]).unwrap_err();
    assert!(error.to_string().contains("no longer be valid"), "{error}");
    // Another format has no place for it.
    assert!(
        put_back(
            "p.json",
            &story(&["a", "b"]),
            "[{\"id\": \"b\", \"description\": \"d\", \"status\": \"pending\"}]",
            &["a"]
        )
        .is_err()
    );
}

#[test]
fn added_like_its_neighbours() {
    let mut full = new("c", "See");
    full.criteria = vec![
        Criterion { text: "x".into(), check: None },
        Criterion { text: "y".into(), check: Some("z".into()) },
    ];
    full.depends_on = vec!["a".into()];
    let add = |task: &NewTask| {
        let task = task.clone();
        move |backlog: &mut Backlog| backlog.add(&task).unwrap()
    };
    check(
        "prd.json",
        "{\n    \"userStories\": [\n        {\n            \"id\": \"a\",\n            \"criteria\": [],\n            \"passes\": true\n        }\n    ]\n}\n",
        add(&full),
        "{\n    \"userStories\": [\n        {\n            \"id\": \"a\",\n            \"criteria\": [],\n            \"passes\": true\n        },\n        {\n            \"id\": \"c\",\n            \"title\": \"See\",\n            \"criteria\": [\n                \"x\",\n                {\"text\": \"y\", \"check\": \"z\"}\n            ],\n            \"passes\": false,\n            \"depends_on\": [\n                \"a\"\n            ]\n        }\n    ]\n}\n",
    );
    check(
        "prd.json",
        "{\"branchName\":\"b\",\"userStories\":[{\"id\":\"a\",\"acceptanceCriteria\":[\"p\",\"q\"],\"priority\":7}]}",
        add(&full),
        "{\"branchName\":\"b\",\"userStories\":[{\"id\":\"a\",\"acceptanceCriteria\":[\"p\",\"q\"],\"priority\":7},{\"id\":\"c\",\"title\":\"See\",\"acceptanceCriteria\":[\"x\",{\"text\":\"y\",\"check\":\"z\"}],\"priority\":8,\"passes\":false,\"depends_on\":[\"a\"]}]}",
    );
    check(
        "tasks.json",
        "[\r\n  {\"id\": \"a\", \"description\": \"d\", \"status\": \"pending\"},\r\n  {\"id\": \"b\", \"description\": \"d\", \"status\": \"pending\"}\r\n]",
        add(&NewTask {
            role: Some("ideas".into()),
            phase: Some(2),
            parent: Some("b".into()),
            ..new("c", "Do \"it\"")
        }),
        "[\r\n  {\"id\": \"a\", \"description\": \"d\", \"status\": \"pending\"},\r\n  {\"id\": \"b\", \"description\": \"d\", \"status\": \"pending\"},\r\n  {\"id\": \"c\", \"description\": \"Do \\\"it\\\"\", \"status\": \"pending\", \"role\": \"ideas\", \"phase\": 2, \"parent_id\": \"b\"}\r\n]",
    );
    check(
        "tasks.json",
        "[]\n",
        add(&new("c", "d")),
        "[\n  {\n    \"id\": \"c\",\n    \"description\": \"d\",\n    \"status\": \"pending\"\n  }\n]\n",
    );
    check(
        "prd.json",
        "{\n\t\"userStories\": [ ],\n\t\"x\": 1\n}",
        add(&new("c", "d")),
        "{\n\t\"userStories\": [\n\t\t{\n\t\t\t\"id\": \"c\",\n\t\t\t\"title\": \"d\",\n\t\t\t\"passes\": false\n\t\t}\n\t],\n\t\"x\": 1\n}",
    );
    check(
        "prd.json",
        "{\"userStories\": []}",
        add(&new("c", "d")),
        "{\"userStories\": [{\"id\": \"c\", \"title\": \"d\", \"passes\": false}]}",
    );
    check(
        "t.json",
        "{\"tasks\": [{\"title\": \"A\"}]}",
        add(&new("big-one", "Big one")),
        "{\"tasks\": [{\"title\": \"A\"}, {\"title\": \"Big one\", \"completed\": false}]}",
    );
}

#[test]
fn added_boxes() {
    let add = |task: NewTask| move |backlog: &mut Backlog| backlog.add(&task).unwrap();
    check(
        "TODO.md",
        "- [x] **US-001**: a\n\nEnd\n",
        add(new("US-002", "b")),
        "- [x] **US-001**: a\n- [ ] **US-002**: b\n\nEnd\n",
    );
    check("TODO.md", "1. [ ] a\r\n2. [ ] b", add(new("c-d", "c d")), "1. [ ] a\r\n2. [ ] b\r\n3. [ ] c d");
    check(
        "TODO.md",
        "* [ ] T1. a\n  - [ ] sub\n## Optional\n",
        add(new("T2", "b")),
        "* [ ] T1. a\n  - [ ] sub\n* [ ] T2. b\n## Optional\n",
    );
    check("TODO.md", "", add(new("odd id", "b")), "- [ ] b (id: odd id)\n");
    check("TODO.md", "# Plan", add(new("b", "b")), "# Plan\n- [ ] b");
    check("TODO.md", "## Optional\n- [ ] x\n", add(new("b", "b")), "- [ ] b\n\n## Optional\n- [ ] x\n");
    let child = NewTask { parent: Some("a".into()), ..new("T1", "child") };
    check(
        "TODO.md",
        "- [ ] a\n  text\n- [ ] b\n",
        add(child.clone()),
        "- [ ] a\n  text\n  - [ ] T1: child\n- [ ] b\n",
    );
    check("TODO.md", "- [ ] a\n\t- [ ] b\n", add(child), "- [ ] a\n\t- [ ] b\n\t- [ ] T1: child\n");
    let mut full = new("T9", "title");
    full.description = "one\n  two".into();
    full.depends_on = vec!["a".into()];
    full.criteria = vec![
        Criterion { text: "x".into(), check: None },
        Criterion { text: "y".into(), check: Some("z".into()) },
    ];
    check(
        "TODO.md",
        "10) [ ] a\n",
        add(full),
        "10) [ ] a\n11) [ ] T9: title\n    one\n    two\n    - Depends on: a\n    - Criteria: x\n    - Criteria: y (check: `z`)\n",
    );
}

#[test]
fn additions_that_are_refused() {
    let tasks = "[{\"id\": \"a\", \"description\": \"d\", \"status\": \"pending\"}]";
    let add = |task: NewTask| move |backlog: &mut Backlog| backlog.add(&task).unwrap_err().to_string();
    let depending = |id: &str, on: &[&str]| NewTask {
        depends_on: on.iter().map(|s| (*s).to_owned()).collect(),
        ..new(id, "t")
    };
    check_refused("tasks.json", tasks, add(new(" ", "t")), "a task needs an id");
    // Whoever did not ask the gate before is stopped by the reader.
    let invalid = "the backlog would no longer be valid";
    check_refused("tasks.json", tasks, add(new("a", "t")), invalid);
    check_refused("tasks.json", tasks, add(depending("b", &["x", "a", "y"])), invalid);
    check_refused("tasks.json", tasks, add(depending("b", &["b"])), invalid);
    let prd = "{\"userStories\": [{\"id\": \"a\"}]}";
    check_refused(
        "p.json",
        prd,
        add(NewTask { role: Some("r".into()), ..new("b", "t") }),
        "PRD.json cannot say the role of `b`",
    );
    let list = "- [ ] a\n";
    check_refused(
        "T.md",
        list,
        add(NewTask { phase: Some(2), ..new("b", "t") }),
        "Markdown cannot say the phase of `b`",
    );
    check_refused(
        "T.md",
        list,
        add(NewTask { description: "- [ ] smuggled".into(), ..new("b", "t") }),
        "ids made from text would change: `smuggled`; give those tasks ids of their own first",
    );
    check_refused(
        "T.md",
        list,
        add(NewTask { description: "Depends on: a".into(), ..new("b", "t") }),
        "Markdown cannot say the text of `b`",
    );
    let cycle = NewTask { parent: Some("a".into()), ..depending("b", &["a"]) };
    check_refused("T.md", list, add(cycle), "the backlog would no longer be valid");
}

#[test]
fn deleted_with_one_separator() {
    let delete = |id: &'static str| move |backlog: &mut Backlog| backlog.delete(id).unwrap();
    let tasks = |items: &[&str]| {
        let items: Vec<String> = items.iter().map(|id| format!("{{\"title\": \"{id}\"}}")).collect();
        if items.is_empty() {
            "{\"tasks\": []}".to_owned()
        } else {
            format!("{{\"tasks\": [\n  {}\n]}}", items.join(",\n  "))
        }
    };
    check("t.json", &tasks(&["a", "b", "c"]), delete("a"), &tasks(&["b", "c"]));
    check("t.json", &tasks(&["a", "b", "c"]), delete("b"), &tasks(&["a", "c"]));
    check("t.json", &tasks(&["a", "b", "c"]), delete("c"), &tasks(&["a", "b"]));
    check("t.json", &tasks(&["a"]), delete("a"), &tasks(&[]));
    check("T.md", "# T\r\n- [ ] a\r\n  more\r\n- [ ] b", delete("a"), "# T\r\n- [ ] b");
    check("T.md", "# T\r\n- [ ] a\r\n  more\r\n- [ ] b", delete("b"), "# T\r\n- [ ] a\r\n  more");
    check("T.md", "- [ ] a\n  - [ ] b\n", delete("b"), "- [ ] a\n");
    check("T.md", "- [ ] a", delete("a"), "");
}

#[test]
fn deletions_that_are_refused() {
    let delete = |id: &'static str| move |backlog: &mut Backlog| backlog.delete(id).unwrap_err().to_string();
    let prd = "{\"userStories\": [{\"id\": \"a\"}, {\"id\": \"b\", \"depends_on\": [\"a\"]}, {\"id\": \"c\", \"depends_on\": [\"a\"]}]}";
    check_refused("p.json", prd, delete("a"), "`b`, `c` depend on `a`");
    check_refused("p.json", prd, delete("z"), "no task `z` in p.json");
    check_refused("T.md", "- [ ] a\n  - [ ] b\n", delete("a"), "`a` has sub-tasks: `b`");
    check_refused(
        "T.md",
        "- [ ] a\n- [ ] a\n",
        delete("a"),
        "ids made from text would change: `a`, `a-2`; give those tasks ids of their own first",
    );
}

#[test]
fn moved_with_separators_in_place() {
    let move_to =
        |id: &'static str, to: Position| move |backlog: &mut Backlog| backlog.move_task(id, to).unwrap();
    let prd = |a: &str, b: &str, c: &str| format!("{{\"userStories\": [ {a},\n\n{b} , {c}]}}");
    let (a, b, c) = ("{\"id\":\"a\"}", "{\n  \"id\": \"b\"}", "{ \"id\" : \"c\" }");
    check("p.json", &prd(a, b, c), move_to("c", Position::First), &prd(c, a, b));
    check("p.json", &prd(a, b, c), move_to("a", Position::Last), &prd(b, c, a));
    check("p.json", &prd(a, b, c), move_to("a", Position::After("b".into())), &prd(b, a, c));
    check("p.json", &prd(a, b, c), move_to("c", Position::Before("b".into())), &prd(a, c, b));
    check("p.json", &prd(a, b, c), move_to("a", Position::Before("b".into())), &prd(a, b, c));
    check("p.json", &prd(a, b, c), move_to("b", Position::After("b".into())), &prd(a, b, c));
    let list = "- [ ] a\n  - [ ] a1\n  - [x] a2\n\n- [ ] b\n- [ ] c";
    check("T.md", list, move_to("c", Position::First), "- [ ] c\n- [ ] a\n  - [ ] a1\n  - [x] a2\n\n- [ ] b");
    check("T.md", list, move_to("a", Position::Last), "\n- [ ] b\n- [ ] c\n- [ ] a\n  - [ ] a1\n  - [x] a2");
    check(
        "T.md",
        list,
        move_to("a2", Position::First),
        "- [ ] a\n  - [x] a2\n  - [ ] a1\n\n- [ ] b\n- [ ] c",
    );
    check(
        "T.md",
        list,
        move_to("b", Position::After("c".into())),
        "- [ ] a\n  - [ ] a1\n  - [x] a2\n\n- [ ] c\n- [ ] b",
    );
    check_refused(
        "T.md",
        list,
        |backlog| backlog.move_task("b", Position::Before("a1".into())).unwrap_err().to_string(),
        "`b` and `a1` are not in the same list: a sub-task moves among its siblings only",
    );
}

#[test]
fn moving_changes_the_order_where_priority_decides() {
    let text = "{\"branchName\": \"x\", \"userStories\": [{\"id\": \"c\", \"priority\": 3}, {\"id\": \"a\", \"priority\": 1.0}, {\"id\": \"b\", \"priority\": 2}, {\"id\": \"z\"}]}";
    let order = |to: &dyn Fn(&mut Backlog)| {
        let mut backlog = read("prd.json", text);
        to(&mut backlog);
        let again = read("prd.json", backlog.text());
        again.tasks().iter().map(|task| task.id.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(order(&|_| {}), "a b c z");
    assert_eq!(order(&|backlog| backlog.move_task("c", Position::First).unwrap()), "c a b z");
    assert_eq!(order(&|backlog| backlog.move_task("a", Position::Last).unwrap()), "b c z a");
    assert_eq!(order(&|backlog| backlog.move_task("z", Position::Before("b".into())).unwrap()), "a z b c");
    assert_eq!(order(&|backlog| backlog.move_task("a", Position::After("b".into())).unwrap()), "b a c z");
}
