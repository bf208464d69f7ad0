//! `wiggum graph`: the tasks and what they wait on, as Mermaid or Graphviz text.

use std::process::ExitCode;

use serde::Serialize;
use wiggum_core::activity::{EngineState, task_word};
use wiggum_core::task::{FileStatus, Task};
use wiggum_core::tasks::TaskState;

use crate::args::{GraphArgs, GraphFormat};
use crate::commands::{backlog, print_json};
use crate::failure::Failure;
use crate::term;

pub(crate) fn graph(args: &GraphArgs) -> Result<ExitCode, Failure> {
    let mut open = backlog::find(args.backlog.as_deref())?;
    let (state, engine) = (open.any_state()?, open.engine()?);
    let class = |task: &Task| {
        let known = state.as_ref().and_then(|state| state.task(&task.id));
        known.map_or_else(|| class_of_status(task.status), |entry| class_of_state(&entry.state, engine))
    };
    let tasks = open.backlog()?.tasks();
    let nodes: Vec<Node<'_>> = tasks.iter().map(|task| Node { task, class: class(task) }).collect();
    if args.output.json {
        return print_json(&Graph::of(&nodes));
    }
    Ok(term::print(&match args.format {
        GraphFormat::Mermaid => mermaid(&nodes),
        GraphFormat::Dot => dot(&nodes),
    }))
}

/// The same for other programs.
#[derive(Serialize)]
struct Graph<'a> {
    nodes: Vec<Shown<'a>>,
    edges: Vec<Edge<'a>>,
}

#[derive(Serialize)]
struct Shown<'a> {
    id: &'a str,
    title: &'a str,
    state: &'a str,
}

/// `to` waits on `from`.
#[derive(Serialize)]
struct Edge<'a> {
    from: &'a str,
    to: &'a str,
}

impl<'a> Graph<'a> {
    fn of(nodes: &[Node<'a>]) -> Self {
        let id = |place: usize| nodes[place].task.id.as_str();
        let shown =
            |node: &Node<'a>| Shown { id: node.task.id.as_str(), title: &node.task.title, state: node.class };
        let edges = edges(nodes).into_iter().map(|(from, to)| Edge { from: id(from), to: id(to) });
        Self { edges: edges.collect(), nodes: nodes.iter().map(shown).collect() }
    }
}

struct Node<'a> {
    task: &'a Task,
    class: &'static str,
}

/// Classes with their fill and line colours; black text is readable on all of them.
const CLASSES: [(&str, &str, &str); 8] = [
    ("open", "#edf2f7", "#718096"),
    ("running", "#bee3f8", "#2b6cb0"),
    ("interrupted", "#feebc8", "#c05621"),
    ("parked", "#fefcbf", "#b7791f"),
    ("done", "#c6f6d5", "#2f855a"),
    ("unverified", "#e6fffa", "#2c7a7b"),
    ("failed", "#fed7d7", "#c53030"),
    ("skipped", "#e2e8f0", "#a0aec0"),
];

fn class_of_state(state: &TaskState, engine: EngineState) -> &'static str {
    match state {
        TaskState::Done { verified: false, .. } => "unverified",
        TaskState::Open
        | TaskState::Running
        | TaskState::Parked(_)
        | TaskState::Done { verified: true, .. }
        | TaskState::Failed { .. }
        | TaskState::Skipped => task_word(state, engine),
    }
}

fn class_of_status(status: FileStatus) -> &'static str {
    match status {
        FileStatus::Open => "open",
        FileStatus::Done => "done",
        FileStatus::Failed => "failed",
        FileStatus::Skipped => "skipped",
    }
}

fn mermaid(nodes: &[Node<'_>]) -> String {
    let mut text = "flowchart TD\n".to_owned();
    for (number, node) in nodes.iter().enumerate() {
        let label = mermaid_text(&label(node.task, ": "));
        text.push_str(&format!("    n{number}[\"{label}\"]:::{}\n", node.class));
    }
    for (from, to) in edges(nodes) {
        text.push_str(&format!("    n{from} --> n{to}\n"));
    }
    for (class, fill, stroke) in CLASSES {
        // A class that is called `open` or `end` is fine here; nodes refer to it only by `:::`.
        text.push_str(&format!("    classDef {class} fill:{fill},stroke:{stroke},color:#000\n"));
    }
    text
}

fn dot(nodes: &[Node<'_>]) -> String {
    let mut text = "digraph backlog {\n    node [shape=box, style=\"rounded,filled\"];\n".to_owned();
    for (number, node) in nodes.iter().enumerate() {
        let (_, fill, stroke) =
            CLASSES.into_iter().find(|(class, ..)| *class == node.class).unwrap_or(CLASSES[0]);
        let label = dot_text(&label(node.task, "\n"));
        let class = node.class;
        text.push_str(&format!(
            "    n{number} [label=\"{label}\", class=\"{class}\", fillcolor=\"{fill}\", color=\"{stroke}\"];\n"
        ));
    }
    for (from, to) in edges(nodes) {
        text.push_str(&format!("    n{from} -> n{to};\n"));
    }
    text + "}\n"
}

/// From what has to be done first to what waits on it.
fn edges(nodes: &[Node<'_>]) -> Vec<(usize, usize)> {
    let places: std::collections::HashMap<&str, usize> =
        nodes.iter().enumerate().map(|(number, node)| (node.task.id.as_str(), number)).collect();
    let mut edges = Vec::new();
    for (to, node) in nodes.iter().enumerate() {
        edges.extend(
            node.task.depends_on.iter().filter_map(|id| places.get(id.as_str())).map(|from| (*from, to)),
        );
    }
    edges
}

fn label(task: &Task, separator: &str) -> String {
    let clean = |text: &str| {
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (id, title) = (clean(task.id.as_str()), clean(&task.title));
    if title.is_empty() || title == id { id } else { format!("{id}{separator}{title}") }
}

/// Mermaid gives many characters a meaning even inside quotes, so all of them are written by number.
fn mermaid_text(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | ' ' | '.' | ',' | ':' | '_' | '-' | '/' => out.push(c),
            c if c.is_ascii() => out.push_str(&format!("#{};", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

fn dot_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str, title: &str, depends_on: &[&str]) -> Task {
        let mut task = Task::new(id, title);
        task.depends_on = depends_on.iter().map(|id| (*id).into()).collect();
        task
    }

    #[test]
    fn names_cannot_break_out_of_their_quotes() {
        let tasks = [
            task("a\"]:::evil", "say \"hi\"\n%%{init}; <b>`x`</b> \\", &[]),
            task("zwei", "Grüße 🎉 #1", &["a\"]:::evil", "nobody"]),
        ];
        let nodes: Vec<Node<'_>> = tasks.iter().map(|task| Node { task, class: "open" }).collect();

        let text = mermaid(&nodes);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1],
            "    n0[\"a#34;#93;:::evil: say #34;hi#34; #37;#37;#123;init#125;#59; \
             #60;b#62;#96;x#96;#60;/b#62; #92;\"]:::open"
        );
        assert_eq!(lines[2], "    n1[\"zwei: Grüße 🎉 #35;1\"]:::open");
        assert_eq!(lines[3], "    n0 --> n1");
        assert!(lines[4].starts_with("    classDef"), "one edge only: {text}");

        let text = dot(&nodes);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[2].contains(r#"[label="a\"]:::evil\nsay \"hi\" %%{init}; <b>`x`</b> \\", class"#),
            "{text}"
        );
        assert_eq!(lines[4], "    n0 -> n1;");
    }
}
