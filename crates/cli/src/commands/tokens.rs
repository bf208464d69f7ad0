//! `wiggum tokens`: what the agents of a loop used and what it cost, by task, attempt, agent and
//! model. The figures are the agents' own; where an agent gives none, that is said.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde::Serialize;
use wiggum_core::event::{Envelope, Usage};

use crate::args::LoopArgs;
use crate::commands::calls::{self, Call};
use crate::commands::loops::Loops;
use crate::commands::{no_loops, print_json};
use crate::cost::{cost, dollars};
use crate::failure::Failure;
use crate::term::{self, Style, harmless};

/// The JSON of `wiggum tokens`; fields may be added, none changes its meaning.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(rename = "loop")]
    name: String,
    total: Usage,
    /// Starts of agents that gave no figures, so that the total is too low.
    without_figures: usize,
    /// Tokens whose cost nobody told, so that the cost is too low.
    unpriced_tokens: u64,
    efficiency: Efficiency,
    by_task: BTreeMap<String, Usage>,
    by_agent: BTreeMap<String, Usage>,
    by_model: BTreeMap<String, Usage>,
    starts: Vec<Call>,
}

/// How well the tokens were used; null where nothing can be said.
#[derive(Debug, Serialize)]
struct Efficiency {
    /// Tokens for each tool that was called.
    tokens_per_tool_call: Option<f64>,
    /// The part of what models read that came from their caches.
    cache_hit_rate: Option<f64>,
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
    let (starts, state) = calls::read(journal, |_, _| {});
    let sum = |key: fn(&Call) -> String| {
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
        unpriced_tokens: state.spending.unpriced,
        efficiency: efficiency(&starts, &total),
        by_task: sum(|start| start.task.clone()),
        by_agent: sum(|start| start.agent.clone()),
        by_model: sum(|start| start.model.clone().unwrap_or_else(|| "not told".to_owned())),
        starts,
    }
}

fn efficiency(starts: &[Call], total: &Usage) -> Efficiency {
    let part = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    // Only agents that told their tokens count, else those of some would be divided by the tools of all.
    let told = starts.iter().filter(|start| start.usage.is_some());
    let tools: u64 = told.map(|start| u64::from(start.tool_calls)).sum();
    let read = total.input_tokens + total.cache_read_tokens + total.cache_write_tokens;
    Efficiency {
        tokens_per_tool_call: part(total.tokens(), tools),
        cache_hit_rate: part(total.cache_read_tokens, read),
    }
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
        let cost = start.usage.map_or_else(String::new, |usage| cost_of(&usage, start.priced));
        rows.push(row(&name, start.usage, cost));
    }
    let priced = report.unpriced_tokens == 0;
    rows.push(row("total", Some(report.total), cost_of(&report.total, priced)));
    for (model, usage) in report.by_model.iter().filter(|_| report.by_model.len() > 1) {
        rows.push(row(model, Some(*usage), cost(usage)));
    }
    let mut text = style.bold(&format!("{}\n", harmless(&report.name)));
    text.push_str(&term::columns(&rows));
    text.push_str(&efficiency_text(&report.efficiency));
    if report.without_figures > 0 {
        let count = report.without_figures;
        text.push_str(&style.dim(&format!("{count} starts gave no figures: the total is a lower bound\n")));
    }
    text
}

fn efficiency_text(efficiency: &Efficiency) -> String {
    let mut parts = Vec::new();
    if let Some(tokens) = efficiency.tokens_per_tool_call {
        parts.push(format!("{} tokens per tool call", term::thousands(tokens.round() as u64)));
    }
    if let Some(rate) = efficiency.cache_hit_rate {
        parts.push(format!("{:.0} % of what was read came from caches", rate * 100.0));
    }
    if parts.is_empty() { String::new() } else { format!("  {}\n", parts.join(" · ")) }
}

fn row(name: &str, usage: Option<Usage>, cost: String) -> [String; 6] {
    let Some(usage) = usage else {
        return [harmless(name), "?".into(), "?".into(), "?".into(), "?".into(), "?".into()];
    };
    [
        harmless(name),
        term::thousands(usage.input_tokens),
        term::thousands(usage.output_tokens),
        term::thousands(usage.cache_read_tokens),
        term::thousands(usage.cache_write_tokens),
        cost,
    ]
}

/// A model with a price of nothing costs nothing; others whose cost nobody told do not.
fn cost_of(usage: &Usage, priced: bool) -> String {
    if priced { dollars(usage.cost_usd) } else { cost(usage) }
}
