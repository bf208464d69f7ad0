//! Changes to what a task says of itself: which bytes change, and what is refused.

use wiggum_backlog::{Backlog, TaskChange};

fn read(file: &str, text: &str) -> Backlog {
    Backlog::parse(file, text).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Applies a change and compares the whole text; what the backlog then knows must be what a reader of
/// that text would find.
fn check(file: &str, before: &str, id: &str, change: &TaskChange, after: &str) {
    let mut backlog = read(file, before);
    backlog.change(id, change).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(backlog.text(), after);
    let again = read(file, after);
    assert_eq!(backlog.tasks(), again.tasks());
    assert_eq!(backlog.line_of(id), again.line_of(id));
}

fn check_refused(file: &str, text: &str, id: &str, change: &TaskChange, expected: &str) {
    let mut backlog = read(file, text);
    let said = backlog.change(id, change).map_or_else(|error| error.to_string(), |()| "nothing".to_owned());
    assert_eq!(said, expected);
    assert_eq!(backlog.text(), text, "a refused change changes nothing");
}

fn title(text: &str) -> TaskChange {
    TaskChange { title: Some(text.into()), ..TaskChange::default() }
}

fn description(text: &str) -> TaskChange {
    TaskChange { description: Some(text.into()), ..TaskChange::default() }
}

fn priority(number: i64) -> TaskChange {
    TaskChange { priority: Some(number), ..TaskChange::default() }
}

fn depends_on(ids: &[&str]) -> TaskChange {
    let ids = ids.iter().map(|id| (*id).to_owned()).collect();
    TaskChange { depends_on: Some(ids), ..TaskChange::default() }
}

const STORIES: &str = r#"{
	"branchName": "x", "userStories": [
	{ "id": "A",  "title":"a",	"acceptanceCriteria": ["one",   "two"], "priority": 1.0, "passes": false },
	{ "id": "B", "description": "caf\u00e9", "title": "b", "estimate": 1.50, "priority": 2, "dependsOn" : [ "A" ] },
	{ "id": "C", "title": "c", "passes": true }
]}"#;

#[test]
fn one_value_of_a_story_changes() {
    let file = "prd.json";
    check(file, STORIES, "A", &title("  an \"A\"\n"), &STORIES.replace("\"a\"", "\"an \\\"A\\\"\""));
    check(file, STORIES, "B", &description("tea\nfor two"), &STORIES.replace("caf\\u00e9", "tea\\nfor two"));
    check(file, STORIES, "B", &priority(-3), &STORIES.replace("\"priority\": 2", "\"priority\": -3"));
    check(file, STORIES, "B", &depends_on(&["A", "C"]), &STORIES.replace("[ \"A\" ]", "[ \"A\", \"C\" ]"));
    check(file, STORIES, "B", &depends_on(&[]), &STORIES.replace("[ \"A\" ]", "[]"));
}

#[test]
fn what_a_story_lacks_is_added_beside_its_neighbours() {
    let file = "prd.json";
    check(
        file,
        STORIES,
        "A",
        &description("more"),
        &STORIES.replace("\"title\":\"a\"", "\"title\":\"a\",\t\"description\":\"more\""),
    );
    check(
        file,
        STORIES,
        "C",
        &depends_on(&["A", "B"]),
        &STORIES.replace("\"passes\": true }", "\"passes\": true, \"dependsOn\": [\"A\", \"B\"] }"),
    );
    check(
        file,
        STORIES,
        "C",
        &priority(0),
        &STORIES.replace("\"title\": \"c\"", "\"title\": \"c\", \"priority\": 0"),
    );
}

#[test]
fn what_is_said_already_is_not_written_again() {
    let as_it_is = TaskChange {
        title: Some("b".into()),
        description: Some("café".into()),
        priority: Some(2),
        depends_on: Some(vec!["A".into(), "A".into()]),
    };
    check("prd.json", STORIES, "B", &as_it_is, STORIES);
    check("prd.json", STORIES, "A", &priority(1), STORIES);
    check("prd.json", STORIES, "A", &description(""), STORIES);
    assert!(TaskChange::default().is_empty() && !as_it_is.is_empty());
}

#[test]
fn both_spellings_of_a_list_become_one() {
    let text = r#"[{"id":"1","description":"a","status":"pending"},{"id":2,"description":"b","status":"pending"},
{"id":"3","description":"c","status":"pending","depends_on":["1"],"dependsOn":[2]}]"#;
    let after = text.replace(r#"["1"],"dependsOn":[2]"#, r#"[2],"dependsOn":[]"#);
    check("tasks.json", text, "3", &depends_on(&["2"]), &after);
    let after = text.replace(r#""description":"c""#, r#""description":"a new one""#);
    check("tasks.json", text, "3", &description("a new one"), &after);
}

#[test]
fn a_task_called_by_its_title_keeps_its_id() {
    let text = r#"{"tasks": [{"title": "Do it", "completed": true}, {"title": "And this", "depends_on": ["Other"]}, {"title": "Other"}]}"#;
    let after = text.replace("\"Do it\"", "\"Done it\", \"id\": \"do-it\"");
    check("tasks.json", text, "do-it", &title("Done it"), &after);
    let after = text.replace("[\"Other\"]", "[\"Other\", \"do-it\"]");
    check("tasks.json", text, "and-this", &depends_on(&["other", "do-it"]), &after);
    check_refused("tasks.json", text, "other", &title("New"), "the backlog would no longer be valid");

    let text = "- [ ] Do it\n- [x] And this\n";
    check("TODO.md", text, "do-it", &title("Do it!"), "- [ ] Do it!\n- [x] And this\n");
    check("TODO.md", text, "do-it", &title("T1: so"), "- [ ] T1: so (id: do-it)\n- [x] And this\n");
}

#[test]
fn words_of_a_box_change_where_they_stand() {
    let text = "# Plan\r\n- [ ] **T1**: A box (depends: T2, `T3`) <!-- A box -->\r\n  more\r\n  - Criteria: good\r\n  and more\r\n\r\n  - [ ] T4: part\r\n- [x] T2: two\r\n* [ ] T3: three";
    let file = "fix_plan.md";
    check(file, text, "T1", &title("The box"), &text.replacen("A box", "The box", 1));
    check(file, text, "T3", &title("3"), &text.replace("three", "3"));
    check(file, text, "T1", &description("more\nand no more"), &text.replace("and more", "and no more"));
    check(file, text, "T1", &description(""), &text.replace("  more\r\n", "").replace("  and more\r\n", ""));
    let after = text.replace("  more\r\n", "  less\r\n\r\n  is\r\n");
    check(file, text, "T1", &description("less\n\nis\nand more"), &after);
    check(file, text, "T3", &description("a\n  b"), &format!("{text}\r\n  a\r\n    b"));
    check(file, text, "T1", &depends_on(&["T2", "T3", "T4"]), text);
    check(file, text, "T1", &depends_on(&["T3"]), &text.replace("T2, `T3`", "T3"));
    check(file, text, "T1", &depends_on(&[]), &text.replace(" (depends: T2, `T3`)", ""));
    check(file, text, "T3", &depends_on(&["T2"]), &format!("{text}\r\n  - Depends on: T2"));
    check(file, text, "T4", &description("x"), &text.replace("part\r\n", "part\r\n    x\r\n"));
}

#[test]
fn lines_of_dependencies_become_one() {
    let text = "- [ ] A-1: a\n- [ ] A-2: b\n- [ ] A-3: c (deps: A-1)\n  - Depends on: **A-2**\n  why\n  Depends on: A-1\n";
    let after = text.replace(" (deps: A-1)", "").replace("  Depends on: A-1\n", "").replace("**A-2**", "A-2");
    check("TODO.md", text, "A-3", &depends_on(&["A-2"]), &after);
    let bare = after.replace("  - Depends on: A-2\n", "");
    check("TODO.md", text, "A-3", &depends_on(&[]), &bare);
    let grown = after.replace("on: A-2", "on: A-2, A-1");
    check("TODO.md", &after, "A-3", &depends_on(&["A-2", "A-1"]), &grown);
}

const PLAN: &str = "---
plan_id: p
---
- [ ] **Step 1:** Ask (action_type: notify_human)
- [!] **Step 2:** (FAILED) Write it (action_type: agent)
  Be brief.
  - Dependencies: Step 1
  - Tool: pencil
- [ ] **Step 3:** Send it
  (action_type: agent)
";

#[test]
fn words_of_a_step_change_where_they_stand() {
    let file = "Plan.md";
    check(file, PLAN, "step_1", &title("Ask them"), &PLAN.replace("Ask", "Ask them"));
    check(file, PLAN, "step_2", &title("Draw it"), &PLAN.replace("Write", "Draw"));
    check(
        file,
        PLAN,
        "step_2",
        &description("Be long.\n\nTool: pencil"),
        &PLAN.replace("Be brief.", "Be long."),
    );
    check(file, PLAN, "step_2", &depends_on(&[]), &PLAN.replace(": Step 1\n", ": none\n"));
    let more = PLAN.replace(": Step 1\n", ": step_1, step_3\n");
    check(file, PLAN, "step_2", &depends_on(&["step_1", "step_3"]), &more);
    let after = PLAN.replace("**Step 1:** Ask (action_type: notify_human)\n", "$&  - Dependencies: step_2\n");
    let after = after.replace("$&", "**Step 1:** Ask (action_type: notify_human)\n");
    let apart = PLAN.replace("Step 1\n", "none\n");
    check(file, &apart, "step_1", &depends_on(&["step_2"]), &after.replace(": Step 1\n", ": none\n"));
}

#[test]
fn what_cannot_be_is_refused_with_names() {
    let file = "fix_plan.md";
    let text = "- [ ] T1: one\n  - [ ] T2: two\n- [ ] T3: three (depends: T1)\n- [ ] T4: a <!-- x --> b\n";
    check_refused(file, text, "T9", &title("x"), "no task `T9` in fix_plan.md");
    check_refused(file, text, "T1", &title(" \n "), "the title of `T1` would be empty");
    check_refused(file, text, "T1", &priority(1), "Markdown cannot say the priority of `T1`");
    // Whoever did not ask the gate before is stopped by the reader.
    for (id, on) in [("T1", &["T1"][..]), ("T1", &["A", "T2", "B"]), ("T2", &["T3"])] {
        check_refused(file, text, id, &depends_on(on), "the backlog would no longer be valid");
    }
    let by_hand = |what: &str, id: &str| {
        format!("the {what} of `{id}` cannot be changed where it stands; edit fix_plan.md by hand")
    };
    check_refused(file, text, "T4", &title("c"), &by_hand("title", "T4"));
    check_refused(file, text, "T3", &title("c (depends: T2)"), &by_hand("title", "T3"));
    check_refused(file, text, "T1", &description("- [ ] T5: more"), &by_hand("description", "T1"));
    check_refused(file, text, "T1", &description("Criteria: more"), &by_hand("description", "T1"));
    check_refused("Plan.md", PLAN, "step_1", &priority(2), "Plan.md cannot say the priority of `step_1`");
    let prd = r#"{"userStories": [{"id": "A", "title": "a", "priority": "high"}]}"#;
    check_refused("PRD.json", prd, "A", &priority(2), "PRD.json cannot say the priority of `A`");
}

#[test]
fn a_change_is_shown_before_it_is_made() {
    let text = "- [ ] T1: one\n  - [ ] T2: two\n- [ ] T3: three\n";
    let backlog = read("TODO.md", text);
    let wanted = backlog.as_changed("T1", &depends_on(&["T3"])).unwrap_or_else(|error| panic!("{error}"));
    let ids: Vec<&str> = wanted.depends_on.iter().map(|id| id.as_str()).collect();
    assert_eq!(ids, ["T3", "T2"], "its parts stay");
    let wanted = backlog.as_changed("T3", &title(" a  b ")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(wanted.title, "a b");
    assert_eq!(backlog.text(), text);
}

#[test]
fn dependencies_under_another_label_are_changed_in_place() {
    let text = "- [ ] T1: a\n- [ ] T2: b\n- [ ] T3: c\n  - Needs: T1\n  - Needs: a database\n";
    let change = |ids: &[&str], line: &str| {
        check("TODO.md", text, "T3", &depends_on(ids), &text.replace("  - Needs: T1\n", line));
    };
    change(&["T1", "T2"], "  - Needs: T1, T2\n");
    change(&["T2"], "  - Needs: T2\n");
    change(&[], "");
    check(
        "TODO.md",
        text,
        "T3",
        &description("- Needs: two"),
        &text.replace("Needs: a database", "Needs: two"),
    );
    // A note in the title stays: the title would be another.
    let noted = "- [ ] T1: a\n- [ ] T2: b\n- [ ] T3: c (after T1)\n";
    let more = format!("{noted}  - Depends on: T1, T2\n");
    check("TODO.md", noted, "T3", &depends_on(&["T1", "T2"]), &more);
    let mut backlog = read("TODO.md", noted);
    assert!(backlog.change("T3", &depends_on(&["T2"])).is_err());
    assert_eq!(backlog.text(), noted);
}

#[test]
fn dependencies_stay_in_the_spelling_of_the_file() {
    for key in ["dependencies", "blockedBy", "requires", "after", "deps"] {
        let text = |a: &str, b: &str| {
            format!(
                r#"[{{"id": "a", "description": "d", "status": "pending"{a}}}, {{"id": "b", "description": "d", "status": "pending", "{key}": {b}}}, {{"id": "c", "description": "d", "status": "pending"}}]"#
            )
        };
        check("t.json", &text("", r#"["c"]"#), "b", &depends_on(&["a", "c"]), &text("", r#"["a", "c"]"#));
        let added = format!(r#", "{key}": ["c"]"#);
        check("t.json", &text("", r#"["c"]"#), "a", &depends_on(&["c"]), &text(&added, r#"["c"]"#));
    }
}
