//! For files of any dialect in any style: an edit changes what it is about and nothing else.
#![expect(clippy::unwrap_used, reason = "the helpers of these tests are not themselves tests")]

use std::fmt::Write as _;

use proptest::prelude::*;
use wiggum_backlog::{Backlog, Dialect, NewTask, Position, TaskChange};
use wiggum_core::task::{FileStatus, Task};

#[derive(Clone, Debug)]
struct Style {
    line_end: &'static str,
    /// `None`: everything on one line.
    indent: Option<&'static str>,
    colon: &'static str,
    bom: bool,
    final_line_end: bool,
}

/// One task: its status, whether the status stands before or behind the unknown fields, its text,
/// and whether it depends on the one before.
#[derive(Clone, Debug)]
struct Item {
    status: FileStatus,
    status_first: bool,
    text: &'static str,
    depends: bool,
    number: &'static str,
}

fn styles() -> impl Strategy<Value = Style> {
    (
        prop::sample::select(vec!["\n", "\r\n"]),
        prop::sample::select(vec![None, Some("  "), Some("    "), Some("\t"), Some("")]),
        prop::sample::select(vec![": ", ":", " : "]),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(line_end, indent, colon, bom, final_line_end)| Style {
            line_end,
            indent,
            colon,
            bom,
            final_line_end,
        })
}

fn items() -> impl Strategy<Value = Vec<Item>> {
    let statuses = vec![FileStatus::Open, FileStatus::Done, FileStatus::Failed, FileStatus::Skipped];
    let texts = vec!["plain", "é \\u00e9 \\ud83d\\ude00", "a \\\"quoted\\\" \\\\ [x] {b}: c", "x\\ty", ""];
    let item = (
        prop::sample::select(statuses),
        any::<bool>(),
        prop::sample::select(texts),
        any::<bool>(),
        prop::sample::select(vec!["1.10", "-0", "1e3", "0.5E-2"]),
    )
        .prop_map(|(status, status_first, text, depends, number)| Item {
            status,
            status_first,
            text,
            depends,
            number,
        });
    prop::collection::vec(item, 1..6)
}

fn dialects() -> impl Strategy<Value = Dialect> {
    prop::sample::select(vec![
        Dialect::Prd,
        Dialect::Snarktank,
        Dialect::RalphTui,
        Dialect::Ralphy,
        Dialect::Tasks,
        Dialect::Markdown,
    ])
}

fn file_name(dialect: Dialect) -> &'static str {
    if dialect == Dialect::Markdown { "fix_plan.md" } else { "backlog.json" }
}

fn write(dialect: Dialect, style: &Style, items: &[Item]) -> String {
    let body = match dialect {
        Dialect::Markdown => write_markdown(style, items),
        _ => write_json(dialect, style, items),
    };
    let bom = if style.bom { "\u{feff}" } else { "" };
    let end = if style.final_line_end { style.line_end } else { "" };
    format!("{bom}{body}{end}")
}

fn write_json(dialect: Dialect, style: &Style, items: &[Item]) -> String {
    let tasks: Vec<String> =
        items.iter().enumerate().map(|(n, item)| object(style, 2, &members(dialect, n, item))).collect();
    let list = wrap(style, 1, '[', &tasks, ']');
    let colon = style.colon;
    match dialect {
        Dialect::Tasks => list,
        Dialect::Ralphy => format!("{{\"x\"{colon}[1.10, null],\"tasks\"{colon}{list}}}"),
        Dialect::Prd => format!("{{\"project\"{colon}\"p\", \"userStories\"{colon}{list},\"z\"{colon}0.50}}"),
        Dialect::Snarktank => format!("{{\"branchName\"{colon}\"p\",\"userStories\"{colon}{list}}}"),
        Dialect::RalphTui => format!("{{\"userStories\"{colon}{list},\"name\"{colon}\"p\"}}"),
        other => unreachable!("{other:?}"),
    }
}

fn members(dialect: Dialect, n: usize, item: &Item) -> Vec<(&'static str, String)> {
    let done = item.status == FileStatus::Done;
    let mut status: Vec<(&'static str, String)> = match dialect {
        Dialect::Tasks => {
            let word = match item.status {
                FileStatus::Open => "inprogress",
                FileStatus::Skipped => "pending",
                FileStatus::Done => "completed",
                FileStatus::Failed => "failed",
            };
            vec![("status", format!("\"{word}\""))]
        }
        Dialect::Ralphy => vec![("completed", done.to_string())],
        _ => vec![("passes", done.to_string())],
    };
    if item.status == FileStatus::Skipped {
        status.insert(usize::from(item.status_first), ("skipped", "true".to_owned()));
    }
    let mut other = vec![
        ("id", format!("\"T{n}\"")),
        ("description", format!("\"{}\"", item.text)),
        ("title", format!("\"title {n}\"")),
        ("estimate", item.number.to_owned()),
        ("nested", format!("{{\"passes\": true, \"status\": [ {} ]}}", item.number)),
    ];
    if item.depends && n > 0 {
        other.push(("depends_on", format!("[\"T{}\"]", n - 1)));
    }
    if item.status_first {
        status.extend(other);
        return status;
    }
    other.extend(status);
    other
}

fn object(style: &Style, depth: usize, members: &[(&str, String)]) -> String {
    let members: Vec<String> =
        members.iter().map(|(key, value)| format!("\"{key}\"{}{value}", style.colon)).collect();
    wrap(style, depth, '{', &members, '}')
}

fn wrap(style: &Style, depth: usize, open: char, items: &[String], close: char) -> String {
    let Some(indent) = style.indent else { return format!("{open}{}{close}", items.join(",")) };
    let line = |depth: usize| format!("{}{}", style.line_end, indent.repeat(depth));
    format!("{open}{}{}{}{close}", line(depth), items.join(&format!(",{}", line(depth))), line(depth - 1))
}

fn write_markdown(style: &Style, items: &[Item]) -> String {
    let end = style.line_end;
    let mut out = format!("# Plan{end}");
    for (n, item) in items.iter().enumerate() {
        let mark = match item.status {
            FileStatus::Open => "~",
            FileStatus::Done => "X",
            FileStatus::Failed => "!",
            FileStatus::Skipped => "/",
        };
        let note = if item.status == FileStatus::Skipped { " (skipped)" } else { "" };
        let marker = match (item.status_first, item.number) {
            (true, "1.10") => "- ",
            (true, "-0") => "• ",
            (true, "1e3") => "-",
            (true, _) => "",
            (false, _) => "1. ",
        };
        // A box may be written without the blank behind it.
        let blank = if item.number == "0.5E-2" { "" } else { " " };
        let depends = if item.depends && n > 0 { format!(" (depends: T{})", n - 1) } else { String::new() };
        write!(out, "{end}{marker}[{mark}]{blank}T{n}: {} [ ] [x]{note}{depends}{end}   more", item.text)
            .unwrap();
    }
    out
}

/// Everything about a file's tasks but the given one's status.
fn others<'a>(backlog: &'a Backlog, id: &str) -> Vec<Task> {
    let forget = |task: &'a Task| {
        let mut task = task.clone();
        if task.id.as_str() == id {
            task.status = FileStatus::Open;
        }
        task
    };
    backlog.tasks().iter().map(forget).collect()
}

/// What differs between two texts: the bytes taken away and those put there.
fn difference<'a>(before: &'a str, after: &'a str) -> (&'a str, &'a str) {
    let prefix = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
    let (mut a, mut b) = (&before.as_bytes()[prefix..], &after.as_bytes()[prefix..]);
    while let (Some(x), Some(y)) = (a.last(), b.last())
        && x == y
    {
        (a, b) = (&a[..a.len() - 1], &b[..b.len() - 1]);
    }
    (&before[prefix..prefix + a.len()], &after[prefix..prefix + b.len()])
}

/// The text of each task by id: every other one's must survive an edit byte by byte.
fn bodies(text: &str, count: usize) -> Vec<String> {
    let at = |n: usize| text.find(&format!("title {n}\"")).or_else(|| text.find(&format!("T{n}: ")));
    (0..count)
        .filter_map(|n| at(n).map(|at| text[at..].chars().take_while(|c| !"}\n".contains(*c)).collect()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_status_changes_alone(
        dialect in dialects(),
        style in styles(),
        items in items(),
        pick in any::<prop::sample::Index>(),
        status in prop::sample::select(vec![FileStatus::Open, FileStatus::Done, FileStatus::Failed, FileStatus::Skipped]),
    ) {
        let text = write(dialect, &style, &items);
        let before = Backlog::parse(file_name(dialect), text.as_str()).unwrap();
        prop_assert_eq!(before.dialect(), dialect);
        prop_assert_eq!(before.text(), text.as_str());
        prop_assert_eq!(before.tasks().len(), items.len());
        let has_failed = matches!(dialect, Dialect::Tasks | Dialect::Markdown);
        let known = |status: FileStatus| match status {
            FileStatus::Failed if !has_failed => FileStatus::Open,
            other => other,
        };
        for (n, item) in items.iter().enumerate() {
            prop_assert_eq!(before.task(&format!("T{n}")).unwrap().status, known(item.status));
        }

        let id = format!("T{}", pick.index(items.len()));
        let mut edited = before.clone();
        edited.set_status(&id, status).unwrap();
        let after = Backlog::parse(file_name(dialect), edited.text()).unwrap();
        prop_assert_eq!(after.task(&id).unwrap().status, known(status));
        prop_assert_eq!(others(&after, &id), others(&before, &id));
        prop_assert_eq!(edited.tasks(), after.tasks());
        prop_assert_eq!(edited.line_of("T0"), after.line_of("T0"));

        // At most the two values of the status change, which stand together, or one member comes.
        let (gone, new) = difference(&text, edited.text());
        prop_assert!(gone.len() <= 60 && new.len() <= 80, "{gone:?} became {new:?}");
        prop_assert!(new.matches('\n').count() <= gone.matches('\n').count() + 1, "{gone:?} became {new:?}");
        if before.task(&id).unwrap().status == known(status) {
            prop_assert_eq!(edited.text(), text.as_str());
        }

        // And back again: the words of the file may be others, what it says is the same.
        edited.set_status(&id, before.task(&id).unwrap().status).unwrap();
        let back = Backlog::parse(file_name(dialect), edited.text()).unwrap();
        prop_assert_eq!(back.tasks(), before.tasks());
    }

    #[test]
    fn add_move_and_delete_leave_the_others_alone(
        dialect in dialects(),
        style in styles(),
        items in items(),
        pick in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
        place in 0..4,
    ) {
        let text = write(dialect, &style, &items);
        let before = Backlog::parse(file_name(dialect), text.as_str()).unwrap();
        let texts = bodies(&text, items.len());
        let read_again = |backlog: &Backlog| Backlog::parse(file_name(dialect), backlog.text()).unwrap();

        let mut added = before.clone();
        let depends_on = vec![before.tasks()[0].id.to_string()];
        let task = NewTask { id: "N-1".into(), title: "New one".into(), depends_on: depends_on.clone(), ..NewTask::default() };
        added.add(&task).unwrap();
        let again = read_again(&added);
        prop_assert_eq!(&again.tasks()[..items.len()], before.tasks());
        let new = again.tasks().last().unwrap();
        prop_assert_eq!((new.id.as_str(), new.title.as_str(), new.status), ("N-1", "New one", FileStatus::Open));
        prop_assert_eq!(new.depends_on.len(), 1);
        let (gone, _) = difference(&text, added.text());
        prop_assert_eq!(gone, "", "an addition takes nothing away");
        prop_assert_eq!(added.text().contains("\r\n"), text.contains("\r\n"));
        prop_assert_eq!(added.text().replace("\r\n", "").contains('\n'), text.replace("\r\n", "").contains('\n'));

        added.delete("N-1").unwrap();
        prop_assert_eq!(added.text(), text.as_str(), "added and deleted is as before");

        let (id, target) = (format!("T{}", pick.index(items.len())), format!("T{}", other.index(items.len())));
        let to = match place {
            0 => Position::First,
            1 => Position::Last,
            2 => Position::Before(target.clone()),
            _ => Position::After(target.clone()),
        };
        let mut moved = before.clone();
        moved.move_task(&id, to.clone()).unwrap();
        let again = read_again(&moved);
        let mut order: Vec<String> = before.tasks().iter().map(|task| task.id.to_string()).collect();
        if id != target || place < 2 {
            order.retain(|each| *each != id);
            let at = order.iter().position(|each| *each == target).unwrap_or(0);
            let at = match place { 0 => 0, 1 => order.len(), 2 => at, _ => at + 1 };
            order.insert(at, id.clone());
        }
        let found: Vec<String> = again.tasks().iter().map(|task| task.id.to_string()).collect();
        prop_assert_eq!(found, order);
        for task in before.tasks() {
            prop_assert_eq!(again.task(task.id.as_str()), Some(task));
        }
        prop_assert_eq!(bodies(moved.text(), items.len()), texts.clone());
        prop_assert_eq!(moved.text().len(), text.len());

        let mut deleted = before.clone();
        if deleted.delete(&id).is_ok() {
            let again = read_again(&deleted);
            let left: Vec<&Task> = before.tasks().iter().filter(|task| task.id.as_str() != id).collect();
            prop_assert_eq!(again.tasks().iter().collect::<Vec<_>>(), left);
            let (_, new) = difference(&text, deleted.text());
            prop_assert_eq!(new, "", "a deletion adds nothing");
        } else {
            prop_assert!(before.tasks().iter().any(|task| task.depends_on.iter().any(|on| on.as_str() == id)));
        }
    }

    #[test]
    fn a_change_of_a_task_leaves_the_others_alone(
        dialect in dialects(),
        style in styles(),
        items in items(),
        pick in any::<prop::sample::Index>(),
        title in prop::option::of("[ -~é]{0,12}"),
        description in prop::option::of("[ -~é\n]{0,20}"),
        priority in prop::option::of(-2..3i64),
        depends_on in prop::option::of(prop::collection::vec(0..6usize, 0..4)),
    ) {
        let text = write(dialect, &style, &items);
        let before = Backlog::parse(file_name(dialect), text.as_str()).unwrap();
        let id = format!("T{}", pick.index(items.len()));
        let depends_on = depends_on.map(|on| on.iter().map(|n| format!("T{n}")).collect());
        let change = TaskChange { title, description, priority, depends_on };
        let mut edited = before.clone();
        if edited.change(&id, &change).is_err() {
            prop_assert_eq!(edited.text(), text.as_str());
            return Ok(());
        }
        let after = Backlog::parse(file_name(dialect), edited.text()).unwrap();
        prop_assert_eq!(edited.tasks(), after.tasks());
        for task in before.tasks().iter().filter(|task| task.id.as_str() != id) {
            prop_assert_eq!(after.task(task.id.as_str()), Some(task));
        }
        let (old, new) = (before.task(&id).unwrap(), after.task(&id).unwrap());
        let title = change.title.as_ref().map_or(old.title.clone(), |title| {
            title.split_whitespace().collect::<Vec<_>>().join(" ")
        });
        prop_assert_eq!(&new.title, &title);
        if dialect != Dialect::Markdown {
            prop_assert_eq!(&new.description, change.description.as_ref().unwrap_or(&old.description));
        }
        prop_assert_eq!(new.priority, change.priority.unwrap_or(old.priority));
        prop_assert_eq!((new.status, &new.criteria, new.role.as_str()), (old.status, &old.criteria, old.role.as_str()));

        // What differs stands within the lines, or the object, of that task.
        let (gone, _) = difference(&text, edited.text());
        prop_assert!(!gone.contains(&format!("T{}", pick.index(items.len()) + 1)), "{gone:?} is gone");
        prop_assert_eq!(edited.text().contains("\r\n"), text.contains("\r\n"));
        prop_assert_eq!(edited.text().ends_with(style.line_end), text.ends_with(style.line_end));

        // And back again.
        let back = TaskChange {
            title: Some(old.title.clone()),
            description: Some(old.description.clone()),
            priority: change.priority.map(|_| old.priority),
            depends_on: Some(old.depends_on.iter().map(ToString::to_string).collect()),
        };
        edited.change(&id, &back).unwrap();
        let back = Backlog::parse(file_name(dialect), edited.text()).unwrap();
        for task in before.tasks() {
            prop_assert_eq!(back.task(task.id.as_str()), Some(task));
        }
    }

    #[test]
    fn any_markdown_says_what_was_asked_or_stays(
        lines in prop::collection::vec(prop::sample::select(LINES.to_vec()), 1..14),
        line_end in prop::sample::select(vec!["\n", "\r\n"]),
        final_line_end in any::<bool>(),
        front in any::<bool>(),
        pick in any::<prop::sample::Index>(),
        title in prop::option::of(prop::sample::select(vec!["new", "T1", "x (depends: T1)", "**b**", "T7: y", "(id: z)"])),
        description in prop::option::of(prop::collection::vec(prop::sample::select(LINES.to_vec()), 0..4)),
        depends_on in prop::option::of(prop::sample::subsequence(vec!["T1", "T2", "T3", "step_1", "step_2"], 0..4)),
    ) {
        let front = if front { format!("---{line_end}plan_id: p{line_end}---{line_end}") } else { String::new() };
        let end = if final_line_end { line_end } else { "" };
        let text = format!("{front}{}{end}", lines.join(line_end));
        let Ok(before) = Backlog::parse("notes.md", text.as_str()) else { return Ok(()) };
        if before.tasks().is_empty() {
            return Ok(());
        }
        let id = before.tasks()[pick.index(before.tasks().len())].id.to_string();
        let change = TaskChange {
            title: title.map(str::to_owned),
            description: description.map(|lines| lines.join("\n")),
            priority: None,
            depends_on: depends_on.map(|ids| ids.into_iter().map(str::to_owned).collect()),
        };
        let mut edited = before.clone();
        if edited.change(&id, &change).is_err() {
            prop_assert_eq!(edited.text(), text.as_str());
            return Ok(());
        }
        let after = Backlog::parse("notes.md", edited.text()).unwrap();
        prop_assert_eq!(edited.tasks(), after.tasks());
        for task in before.tasks().iter().filter(|task| task.id.as_str() != id) {
            prop_assert_eq!(after.task(task.id.as_str()), Some(task));
        }
        let (old, new) = (before.task(&id).unwrap(), after.task(&id).unwrap());
        prop_assert_eq!(&new.title, change.title.as_ref().unwrap_or(&old.title));
        prop_assert_eq!((new.status, &new.criteria), (old.status, &old.criteria));
        let said = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect::<Vec<_>>();
        let wanted = change.description.as_ref().unwrap_or(&old.description);
        prop_assert_eq!(said(&new.description), said(wanted.trim()));
        // A blank line may become the last one where a description is taken out.
        if change.description.is_none() {
            prop_assert_eq!(edited.text().ends_with(line_end), text.ends_with(line_end));
        }
        let is_mixed = |text: &str| text.contains("\r\n") && text.replace("\r\n", "").contains('\n');
        prop_assert!(!is_mixed(edited.text()), "{:?}", edited.text());
    }
}

/// Lines such as people write, in any order.
const LINES: [&str; 24] = [
    "- [ ] T1: one",
    "- [x] **T2**: two (depends: T1)",
    "  - [ ] T3: three",
    "* [ ] just words",
    "1. [!] T4. four <!-- four --> more",
    "- [ ] **Step 1:** ask (action_type: agent)",
    "- [!] **Step 2:** (FAILED) write (action_type: agent)",
    "  - Dependencies: Step 1",
    "  - Dependencies: none",
    "  - Tool: pencil",
    "  Depends on: T1",
    "  - Depends on: `T2` and T1",
    "  - Criteria: it works (check: `true`)",
    "  - Criteria:",
    "    - one",
    "  plain words",
    "    deeper words",
    "lazy words",
    "\ttabbed",
    "",
    "```",
    "  ```sh",
    "<!-- - [ ] T9: no -->",
    "# Heading",
];
