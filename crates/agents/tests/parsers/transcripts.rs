//! What the parsers make of what real agents printed, in every case we could bring about.

use std::collections::BTreeSet;

use crate::expected::OUTCOMES;
use crate::replay::{case_names, load, now, parse};
use jiff::Timestamp;
use uuid::Uuid;
use wiggum_agents::{AgentEvent, AgentSpec, Family, Finished};
use wiggum_core::decide::Action;
use wiggum_core::event::{BlobRef, Envelope, Event};
use wiggum_core::figures::{self, Figures, Traits};
use wiggum_core::policy::Policy;
use wiggum_core::state::Loop;
use wiggum_core::stream::Stream;
use wiggum_core::task::Task;

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

/// A loop with an agent at work that may use so many tokens.
fn at_work(max_tokens: u64) -> Loop {
    let mut policy = Policy::default();
    policy.budget.own.max_tokens = Some(max_tokens);
    let text = String::new;
    let happened = [
        Event::RunStarted {
            run: 1,
            policy: Box::new(policy),
            agent: text(),
            version: text(),
            git: false,
            sandbox: text(),
            tree: String::new(),
        },
        Event::BacklogRead {
            revision: text(),
            added: vec![Task::new("A", "a")],
            changed: vec![],
            removed: vec![],
            order: None,
        },
        Event::IterationStarted {
            iteration: 1,
            task: "A".into(),
            attempt: 1,
            base: None,
            branch: None,
            carried: None,
            command: text(),
            agent: text(),
            session: None,
            workspace: text(),
            prompt: BlobRef::default(),
            accepted: false,
        },
    ];
    let at = Timestamp::UNIX_EPOCH;
    let journal: Vec<Envelope> = (1..)
        .zip(happened)
        .map(|(seq, event)| Envelope { v: 1, seq, id: Uuid::nil(), at, epoch: 1, event })
        .collect();
    Loop::fold(&journal)
}

/// Whether an agent that tells this is stopped or handed over if it may use so many tokens.
fn is_ended(family: Family, events: &[Vec<AgentEvent>], max_tokens: u64) -> bool {
    let (state, at) = (at_work(max_tokens), Timestamp::UNIX_EPOCH);
    let calls = family.abilities().calls;
    let mut figures = Figures::new(Traits::default(), None, at);
    for events in events {
        for event in events {
            match event {
                AgentEvent::Usage(usage) => figures.answered(*usage, false, at),
                AgentEvent::ToolCall { .. } if calls => figures.called(),
                AgentEvent::ToolResult { .. } if calls => figures.returned(),
                AgentEvent::TurnEnded { last } => figures.turn_ended(*last),
                _ => {}
            }
        }
        let ends = |action: &Action| match action {
            Action::Record(event) => matches!(**event, Event::BudgetReached { .. }),
            _ => true,
        };
        if figures::decide(&state, &figures, None, at).actions.iter().any(ends) {
            return true;
        }
    }
    false
}

#[test]
fn an_agent_whose_last_answer_uses_up_a_budget_comes_to_its_end() {
    let mut seen = 0;
    for case in case_names() {
        let (family, transcript) = load(&case);
        let mut parser = Family::driver(AgentSpec::new(family)).parser();
        let events: Vec<Vec<AgentEvent>> = transcript
            .lines
            .iter()
            .map(|line| parser.push(line.stream, format!("{}\n", line.line).as_bytes()))
            .collect();
        if parser.finish(transcript.exit, &now()).problem.is_some() {
            continue;
        }
        let flat: Vec<&AgentEvent> = events.iter().flatten().collect();
        let goes_on = |event: &&AgentEvent| match event {
            AgentEvent::ToolCall { .. } => family.abilities().calls,
            AgentEvent::TurnEnded { last } => !last,
            _ => false,
        };
        let last_turn = flat.iter().rposition(goes_on).map_or(0, |at| at + 1);
        // The last answer; the figures that come with Claude's last word are of no other.
        let ends = |events: &&Vec<AgentEvent>| events.contains(&AgentEvent::TurnEnded { last: true });
        let told = |events: &[AgentEvent]| {
            let usage = |event: &AgentEvent| match event {
                AgentEvent::Usage(usage) => Some(usage.tokens()),
                _ => None,
            };
            events.iter().rev().find_map(usage)
        };
        let mut answers = events.iter().filter(|events| !ends(events)).filter_map(|events| told(events));
        let alone = events.iter().filter_map(|events| told(events)).next_back();
        let last = if family == Family::Claude { answers.next_back() } else { alone };
        let Some(crossing) = last.or(alone) else { continue };
        seen += 1;
        assert!(!is_ended(family, &events, crossing), "{case}");
        // Its twin: an agent that goes on is ended, if it tells what it uses while it works.
        let earlier = flat[..last_turn].iter().any(|event| matches!(event, AgentEvent::Usage(_)));
        let earlier = earlier || case == "claude/max_tokens";
        assert_eq!(is_ended(family, &events, 1), earlier, "{case}");
    }
    assert!(seen > 20, "{seen}");
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
            | AgentEvent::Model(_)
            | AgentEvent::TurnEnded { .. }
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
