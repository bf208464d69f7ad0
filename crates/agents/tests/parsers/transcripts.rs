//! What the parsers make of what real agents printed, in every case we could bring about.

use std::collections::BTreeSet;

use crate::expected::OUTCOMES;
use crate::replay::{case_names, load, now, parse};
use wiggum_agents::{AgentEvent, AgentSpec, Family, Finished};
use wiggum_core::stream::Stream;

#[test]
fn every_transcript_is_understood() {
    let mut wrong = String::new();
    for (case, expected) in OUTCOMES {
        let outcome = outcome(case);
        if outcome != *expected {
            wrong.push_str(&format!("{case}\n  expected {expected}\n  but was  {outcome}\n"));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn every_transcript_has_an_expectation() {
    let expected: BTreeSet<String> = OUTCOMES.iter().map(|(case, _)| (*case).to_owned()).collect();
    assert_eq!(case_names(), expected);
}

#[test]
fn a_continued_thread_counts_from_where_it_was() {
    let driver = Family::driver(AgentSpec::new(Family::Codex));
    let mut spent = Vec::new();
    for case in ["codex/dropped_once", "codex/resumed"] {
        let (_, transcript) = load(case);
        let mut parser = driver.parser();
        for line in &transcript.lines {
            let thread = r#"{"type":"thread.started","thread_id":"the-same"}"#;
            let line = if line.line.contains("thread.started") { thread } else { &line.line };
            parser.push(Stream::Stdout, format!("{line}\n").as_bytes());
        }
        spent.extend(parser.finish(transcript.exit, &now()).usage);
    }
    let whole = spent.iter().map(|usage| usage.output_tokens).collect::<Vec<_>>();
    assert_eq!(whole, [40, 40]);
}

/// A case's outcome in one line.
fn outcome(case: &str) -> String {
    let (family, transcript) = load(case);
    let lines: Vec<(Stream, String)> =
        transcript.lines.iter().map(|line| (line.stream, format!("{}\n", line.line))).collect();
    let portions = lines.iter().map(|(stream, line)| (*stream, line.as_bytes()));
    let (events, finished) = parse(family, portions, transcript.exit);
    summary(&events, &finished)
}

fn summary(events: &[AgentEvent], finished: &Finished) -> String {
    let mut parts = Vec::new();
    match &finished.problem {
        None => parts.push(format!("ok {:?}", head(&finished.message))),
        Some(problem) => parts.push(format!("{}: {:?}", problem.trouble, head(&problem.message))),
    }
    if let Some(usage) = finished.usage {
        parts.push(format!(
            "{}+{}r+{}w>{} ${:.4}",
            usage.input_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.output_tokens,
            usage.cost_usd
        ));
    }
    if finished.facts.tool_calls > 0 {
        parts.push(format!("{} tools", finished.facts.tool_calls));
    }
    if let Some(context) = finished.facts.context {
        parts.push(format!("context {}/{}", context.used, context.window));
    }
    parts.extend(finished.facts.model.clone());
    if finished.facts.session.is_none() {
        parts.push("no session".to_owned());
    }
    for event in events {
        match event {
            AgentEvent::Limit { reached, resets_at } => {
                let until = resets_at.map_or(String::new(), |at| format!(" until {at}"));
                parts.push(format!("{}{until}", if *reached { "limited" } else { "nearly limited" }));
            }
            AgentEvent::Retrying { trouble } => parts.push(format!("retrying: {trouble}")),
            AgentEvent::ToolResult { is_error: true, .. } => parts.push("tool failed".to_owned()),
            AgentEvent::Notice(text) => parts.push(format!("notice: {}", head(text))),
            AgentEvent::Output(_)
            | AgentEvent::ToolCall { .. }
            | AgentEvent::ToolResult { is_error: false, .. }
            | AgentEvent::Usage(_)
            | AgentEvent::Context { .. }
            | AgentEvent::Session(_) => {}
        }
    }
    parts.dedup();
    parts.join(" · ")
}

/// Enough of a text to know it by.
fn head(text: &str) -> String {
    let short: String = text.chars().take(60).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}
