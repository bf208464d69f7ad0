//! `wiggum tokens`: what the agents of a loop used and what it cost, by task, attempt, agent and
//! model. The figures are the agents' own; where an agent gives none, that is said.

use std::process::ExitCode;

use wiggum_core::event::Usage;
use wiggum_engine::desk::tokens::{self, Efficiency, Report};
use wiggum_engine::words::counted;

use crate::args::LoopArgs;
use crate::commands::{loops, no_loops, print_json};
use crate::cost::{cost, dollars};
use crate::failure::Failure;
use crate::term::{self, Style, harmless};

pub(crate) fn tokens(args: &LoopArgs) -> Result<ExitCode, Failure> {
    let Some(loops) = loops::open()? else { return no_loops(args.output.json) };
    let record = loops.select(args.which.as_deref())?;
    let report = tokens::of(&loops, &record)?;
    if args.output.json {
        return print_json(&report);
    }
    Ok(term::print(&text(&report)))
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
    let nobody_told = report.starts.iter().all(|start| start.usage.is_none());
    let total = if nobody_told { "?".to_owned() } else { cost_of(&report.total, priced) };
    rows.push(row("total", Some(report.total), total));
    for (model, usage) in report.by_model.iter().filter(|_| report.by_model.len() > 1) {
        rows.push(row(model, Some(*usage), cost(usage)));
    }
    let mut text = style.bold(&format!("{}\n", harmless(&report.name)));
    text.push_str(&term::columns(&rows));
    text.push_str(&efficiency_text(&report.efficiency));
    if report.without_figures > 0 {
        let starts = counted(report.without_figures, "start");
        text.push_str(&style.dim(&format!("{starts} gave no figures: the total is a lower bound\n")));
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
