//! `wiggum mcp tools`: what can be called, and with what.

use std::process::ExitCode;

use serde::Serialize;
use wiggum_integrations::{Parameter, Tool};

use super::Desk;
use crate::args::McpTools;
use crate::commands::print_json;
use crate::failure::Failure;
use crate::term::{self, Style, harmless};

/// What is shown of a description; `--json` has all of it.
const DESCRIPTION: usize = 160;

#[derive(Debug, Serialize)]
struct Row {
    server: String,
    #[serde(flatten)]
    tool: Tool,
    parameters: Vec<Parameter>,
    repeatable: bool,
}

pub(super) fn tools(desk: &Desk, args: &McpTools) -> Result<ExitCode, Failure> {
    desk.heed_interruptions(None)?;
    let names = match &args.server {
        Some(server) => vec![server.as_str()],
        None => desk.servers.names(),
    };
    let answers: Vec<_> = std::thread::scope(|scope| {
        let asked: Vec<_> = names.iter().map(|name| scope.spawn(move || desk.servers.tools(name))).collect();
        asked.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for (name, answer) in names.iter().zip(answers) {
        match answer.unwrap_or_else(|_| unreachable!("a panic ends the program")) {
            Ok(tools) => rows.extend(tools.into_iter().map(|tool| row(name, tool))),
            Err(error) => failures.push(Failure::from(error)),
        }
    }
    // One that does not answer must not hide what the others have.
    if (args.server.is_some() || rows.is_empty())
        && let Some(failure) = failures.pop()
    {
        return Err(failure);
    }
    for failure in failures {
        failure.report();
    }
    if args.output.json { print_json(&rows) } else { Ok(term::print(&text(&rows))) }
}

fn row(server: &str, tool: Tool) -> Row {
    let (parameters, repeatable) = (tool.parameters(), tool.repeatable());
    Row { server: server.to_owned(), tool, parameters, repeatable }
}

fn text(rows: &[Row]) -> String {
    let style = Style::for_stdout();
    let mut text = String::new();
    let mut server = None;
    for row in rows {
        if server != Some(&row.server) {
            text.push_str(&format!("{}\n", style.bold(&harmless(&row.server))));
            server = Some(&row.server);
        }
        let parameters: Vec<String> = row.parameters.iter().map(parameter).collect();
        let marks = marks(&row.tool).join(", ");
        let marks = if marks.is_empty() { marks } else { style.dim(&format!("  [{marks}]")) };
        text.push_str(&format!(
            "  {}({}){marks}\n",
            style.cyan(&harmless(&row.tool.name)),
            harmless(&parameters.join(", "))
        ));
        if let Some(description) = &row.tool.description {
            text.push_str(&style.dim(&format!("      {}\n", harmless(&brief(description)))));
        }
    }
    text
}

fn parameter(Parameter { name, kind, required, .. }: &Parameter) -> String {
    if *required { format!("{name}: {kind}") } else { format!("{name}?: {kind}") }
}

/// What the server says of a tool, as far as it matters to whoever calls it.
fn marks(tool: &Tool) -> Vec<&'static str> {
    let all = [
        (tool.read_only, "read-only"),
        (tool.idempotent && !tool.read_only, "idempotent"),
        (tool.destructive, "may destroy"),
    ];
    all.into_iter().filter_map(|(is, mark)| is.then_some(mark)).collect()
}

/// The beginning of a description, in one line.
fn brief(description: &str) -> String {
    let line = description.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(DESCRIPTION).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}
