//! `wiggum mcp list`: which servers there are, where they were configured, and whether they answer.

use std::process::ExitCode;

use serde::Serialize;

use super::Desk;
use crate::args::OutputArgs;
use crate::commands::print_json;
use crate::config::ConfigSource;
use crate::failure::Failure;
use crate::term::{self, Style, harmless};

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    source: ConfigSource,
    reachable: bool,
    /// How many tools it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

pub(super) fn list(desk: &Desk, output: &OutputArgs) -> Result<ExitCode, Failure> {
    desk.heed_interruptions(None)?;
    let rows = rows(desk);
    if output.json {
        return print_json(&rows);
    }
    if rows.is_empty() {
        let how = "no MCP servers: configure one in [mcp.servers.NAME] of wiggum.toml, or in .mcp.json\n";
        return Ok(term::print(how));
    }
    Ok(term::print(&text(&rows)))
}

/// All at the same time, since each takes as long as its program takes to start.
fn rows(desk: &Desk) -> Vec<Row> {
    std::thread::scope(|scope| {
        let asked: Vec<_> = desk
            .config
            .mcp
            .iter()
            .map(|(name, server)| (name, server, scope.spawn(move || desk.servers.tools(name))))
            .collect();
        let told = asked.into_iter().map(|(name, server, answer)| {
            let answer = match answer.join() {
                Ok(answer) => answer.map_err(|error| error.to_string()),
                Err(_) => Err("asking it went wrong".to_owned()),
            };
            Row {
                name: name.clone(),
                source: server.source().clone(),
                reachable: answer.is_ok(),
                tools: answer.as_ref().ok().map(Vec::len),
                problem: answer.err(),
            }
        });
        told.collect()
    })
}

fn text(rows: &[Row]) -> String {
    let style = Style::for_stdout();
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let line = |row: &Row| {
        let name = style.bold(&format!("{:width$}", harmless(&row.name)));
        let source = style.dim(&row.source.to_string());
        match (&row.problem, row.tools) {
            (Some(problem), _) => {
                format!("{} {name}  {source}\n    {}\n", style.red("✗"), harmless(problem))
            }
            (None, Some(1)) => format!("{} {name}  1 tool  {source}\n", style.green("✓")),
            (None, tools) => format!("{} {name}  {} tools  {source}\n", style.green("✓"), tools.unwrap_or(0)),
        }
    };
    rows.iter().map(line).collect()
}
