//! `wiggum tokens`: what the agents of a loop used and what it cost, by task, attempt, agent and
//! model. The figures are the agents' own; where an agent gives none, that is said.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde::Serialize;
use wiggum_core::event::{ContextFill, Envelope, Event, Usage};

use crate::args::LoopArgs;
use crate::commands::loops::Loops;
use crate::commands::{no_loops, print_json};
use crate::failure::Failure;
use crate::term::{self, Style, harmless};

/// One start of an agent.
#[derive(Clone, Debug, Serialize)]
struct Start {
    task: String,
    attempt: u32,
    iteration: u32,
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Missing where the agent gave no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    tool_calls: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<ContextFill>,
}

#[derive(Debug, Serialize)]
struct Report {
    #[serde(rename = "loop")]
    name: String,
    total: Usage,
    /// Starts of agents that gave no figures, so that the total is too low.
    without_figures: usize,
    by_task: BTreeMap<String, Usage>,
    by_agent: BTreeMap<String, Usage>,
    by_model: BTreeMap<String, Usage>,
    starts: Vec<Start>,
}

pub(crate) fn tokens(args: &LoopArgs) -> Result<ExitCode, Failure> {
    let Some(loops) = Loops::open()? else { return no_loops(args.output.json) };
    let record = loops.select(args.which.as_deref())?;
    let report = report(record.identity.name.clone(), &loops.store.read(record.id, 0)?);
    if args.output.json {
        return print_json(&report);
    }
    Ok(term::print(&text(&report)))
}

fn report(name: String, journal: &[Envelope]) -> Report {
    let starts = starts(journal);
    let sum = |key: fn(&Start) -> String| {
        let mut sums: BTreeMap<String, Usage> = BTreeMap::new();
        for start in &starts {
            if let Some(usage) = start.usage {
                *sums.entry(key(start)).or_default() += usage;
            }
        }
        sums
    };
    let mut total = Usage::default();
    starts.iter().filter_map(|start| start.usage).for_each(|usage| total += usage);
    Report {
        name,
        total,
        without_figures: starts.iter().filter(|start| start.usage.is_none()).count(),
        by_task: sum(|start| start.task.clone()),
        by_agent: sum(|start| start.agent.clone()),
        by_model: sum(|start| start.model.clone().unwrap_or_else(|| "not told".to_owned())),
        starts,
    }
}

fn starts(journal: &[Envelope]) -> Vec<Start> {
    let mut under_way: Option<(String, String)> = None;
    let mut starts = Vec::new();
    for envelope in journal {
        match &envelope.event {
            Event::IterationStarted { task, agent, .. } => {
                under_way = Some((task.as_str().to_owned(), agent.clone()));
            }
            Event::AgentEnded { iteration, attempt, usage, facts, .. } => {
                let Some((task, agent)) = under_way.clone() else { continue };
                starts.push(Start {
                    task,
                    attempt: *attempt,
                    iteration: *iteration,
                    agent,
                    model: facts.model.clone(),
                    usage: *usage,
                    tool_calls: facts.tool_calls,
                    context: facts.context,
                });
            }
            _ => {}
        }
    }
    starts
}

fn text(report: &Report) -> String {
    if report.starts.is_empty() {
        return "no agent has ended yet\n".to_owned();
    }
    let style = Style::for_stdout();
    let head = ["", "input", "output", "cache read", "cache write", "cost"].map(str::to_owned);
    let mut rows = vec![head];
    for start in &report.starts {
        let who = match &start.model {
            Some(model) => format!("{}, {model}", start.agent),
            None => start.agent.clone(),
        };
        let name = format!("{} #{} ({who})", start.task, start.attempt);
        rows.push(row(&name, start.usage));
    }
    rows.push(row("total", Some(report.total)));
    for (model, usage) in report.by_model.iter().filter(|_| report.by_model.len() > 1) {
        rows.push(row(model, Some(*usage)));
    }
    let mut text = style.bold(&format!("{}\n", harmless(&report.name)));
    text.push_str(&columns(&rows));
    if report.without_figures > 0 {
        let count = report.without_figures;
        text.push_str(&style.dim(&format!("{count} starts gave no figures: the total is a lower bound\n")));
    }
    text
}

fn row(name: &str, usage: Option<Usage>) -> [String; 6] {
    let Some(usage) = usage else {
        return [harmless(name), "?".into(), "?".into(), "?".into(), "?".into(), "?".into()];
    };
    let number = |count: u64| thousands(count);
    [
        harmless(name),
        number(usage.input_tokens),
        number(usage.output_tokens),
        number(usage.cache_read_tokens),
        number(usage.cache_write_tokens),
        cost(usage),
    ]
}

/// Tokens that cost nothing are tokens whose cost nobody told.
fn cost(usage: Usage) -> String {
    let used = usage.input_tokens > 0 || usage.output_tokens > 0;
    if used && usage.cost_usd == 0.0 { "?".to_owned() } else { format!("${:.4}", usage.cost_usd) }
}

fn columns(rows: &[[String; 6]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    let line = |row: &[String; 6]| {
        let first = format!("  {:<width$}", row[0], width = widths[0]);
        let rest: String = (1..6).map(|i| format!("  {:>width$}", row[i], width = widths[i])).collect();
        format!("{first}{rest}\n")
    };
    rows.iter().map(line).collect()
}

fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (count, text) in [(0, "0"), (999, "999"), (1000, "1 000"), (1_234_567, "1 234 567")] {
            assert_eq!(thousands(count), text);
        }
    }
}
