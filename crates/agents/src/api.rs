//! The built-in agent, which works over model APIs (`wiggum-api-agent`).
//!
//! It is part of this very program and runs as a process of its own, so [`Line`], its stream, is
//! written here for both ends: what it prints and what is read of it cannot drift apart.

use jiff::Zoned;
use serde::{Deserialize, Serialize};
use wiggum_core::event::{AgentFacts, ContextFill, Trouble, Usage};
use wiggum_core::price::Prices;

use crate::family::{Cli, Profile, Start, Traces, flag, words};
use crate::json::{End, JsonLines, Reader, decode, one_line};
use crate::{Abilities, AgentEvent, AgentSpec, Assignment, Finished, Problem, Session, StreamParser, said};

/// The hidden command of this program that is the agent.
pub const COMMAND: &str = "api-agent";

pub(crate) const PROFILE: Profile = Profile {
    program: "api",
    start,
    parser,
    abilities: Abilities {
        live: true,
        calls: true,
        usage: true,
        usage_live: true,
        cost: false,
        model: true,
        bounds_cost: true,
        bounds_tokens: true,
        nudge: false,
        resume: true,
        sandbox: false,
        mcp: false,
    },
    own_paths: &["~/.local/state/wiggum/sessions"],
    path_variables: &[],
    // Which variable holds its key is configured: see `pass_env`.
    secrets: &[],
    login: Traces {
        variables: &[],
        dir_variable: None,
        dir: "",
        files: &[],
        elsewhere: true,
        hint: "set the variable with the provider's key",
    },
};

/// One line of its stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    Started {
        model: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    },
    /// A piece of what the model says.
    Text {
        text: String,
    },
    Tool {
        name: String,
        detail: String,
    },
    Result {
        text: String,
        is_error: bool,
    },
    /// All tokens used so far, and how full the context is.
    Usage {
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<ContextFill>,
    },
    Notice {
        text: String,
    },
    /// The end, with the last thing the model said.
    Finished {
        message: String,
    },
    /// The end, without success.
    Failed {
        trouble: Trouble,
        message: String,
    },
}

/// What is the matter with a provider, by the words and the status of its answer.
pub fn trouble(status: Option<u16>, words: &str, now: &Zoned) -> Trouble {
    let by_words = said::in_complaint(words, now);
    by_words.or_else(|| status.and_then(said::by_status)).unwrap_or(Trouble::Other)
}

fn start(spec: &AgentSpec, assignment: &Assignment<'_>) -> Start {
    let mut arguments = words(&[COMMAND]);
    if let Some(model) = &spec.model {
        flag(&mut arguments, "--model", model);
    }
    match assignment.session {
        Session::Fresh => {}
        Session::Named(id) => flag(&mut arguments, "--session", id),
        Session::Continued(id) => flag(&mut arguments, "--resume", id),
    }
    arguments.extend(assignment.ceiling.cost_usd.map(|limit| format!("--max-cost={limit}")));
    arguments.extend(assignment.ceiling.tokens.map(|limit| format!("--max-tokens={limit}")));
    // Prices that are configured for this very agent are among its arguments.
    if let Some(prices) = assignment.prices.filter(|_| !spec.says(&["--price"])) {
        let Prices { input, output, cache_read, cache_write } = prices;
        let prices =
            [("input", input), ("output", output), ("cache_read", cache_read), ("cache_write", cache_write)];
        arguments.extend(prices.map(|(name, price)| format!("--price={name}={price}")));
    }
    arguments.extend(spec.args.iter().cloned());
    Start { arguments, stdin: Some(assignment.prompt.to_owned()), env: Vec::new() }
}

fn parser(cli: &Cli) -> Box<dyn StreamParser> {
    Box::new(JsonLines::new(ApiStream::default(), &cli.spec))
}

#[derive(Default)]
struct ApiStream {
    facts: AgentFacts,
    usage: Option<Usage>,
    began: bool,
    end: Option<Result<String, Problem>>,
}

impl Reader for ApiStream {
    fn read(&mut self, line: &str, events: &mut Vec<AgentEvent>) {
        let Some(line) = decode::<Line>(line) else { return };
        self.began = true;
        match line {
            Line::Started { model, session } => {
                events.push(AgentEvent::Model(model.clone()));
                self.facts.model = Some(model);
                events.extend(session.clone().map(AgentEvent::Session));
                self.facts.session = session;
            }
            Line::Text { text } => events.push(AgentEvent::Output(text)),
            Line::Tool { name, detail } => {
                self.facts.tool_calls += 1;
                events.push(AgentEvent::ToolCall { name, detail: one_line(&detail) });
            }
            Line::Result { text, is_error } => events.push(AgentEvent::ToolResult { text, is_error }),
            Line::Usage { usage, context } => {
                self.usage = Some(usage);
                self.fill(context);
                events.push(AgentEvent::Usage(usage));
                let told =
                    |fill: ContextFill| AgentEvent::Context { used: fill.used, window: Some(fill.window) };
                events.extend(context.map(told));
            }
            Line::Notice { text } => events.push(AgentEvent::Notice(text)),
            Line::Finished { message } => {
                self.end = Some(Ok(message));
                events.push(AgentEvent::TurnEnded { last: true });
            }
            Line::Failed { trouble, message } => {
                self.end = Some(Err(Problem { trouble, message }));
                events.push(AgentEvent::TurnEnded { last: true });
            }
        }
    }

    fn finish(&mut self, end: &End<'_>) -> Finished {
        let facts = std::mem::take(&mut self.facts);
        let (message, problem) = match self.end.take() {
            Some(Ok(message)) if message.trim().is_empty() => {
                (message, Some(Problem::silent(Trouble::Empty)))
            }
            Some(Ok(message)) => (message, None),
            Some(Err(problem)) => (String::new(), Some(problem)),
            None => (String::new(), Some(end.cut_short(self.began))),
        };
        Finished { message, usage: self.usage, problem, facts, ..Finished::default() }
    }
}

impl ApiStream {
    /// Keeps the fullest that the context was.
    fn fill(&mut self, context: Option<ContextFill>) {
        let before = self.facts.context.map_or(0, |fill| fill.used);
        if let Some(fill) = context.filter(|fill| fill.used >= before) {
            self.facts.context = Some(fill);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Family;
    use wiggum_core::event::Exit;
    use wiggum_core::stream::Stream;

    fn now() -> Zoned {
        "2026-11-15T12:00:00+00:00[UTC]".parse().unwrap()
    }

    fn read(lines: &[Line], exit: i32) -> (Vec<AgentEvent>, Finished) {
        let mut parser = Family::driver(AgentSpec::new(Family::Api)).parser();
        let text: String = lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
        let events = parser.push(Stream::Stdout, text.as_bytes());
        (events, parser.finish(Exit::Code { code: exit }, &now()))
    }

    fn usage(input_tokens: u64, used: u64) -> Line {
        let usage = Usage { input_tokens, ..Usage::default() };
        Line::Usage { usage, context: Some(ContextFill { used, window: 100 }) }
    }

    #[test]
    fn what_it_prints_is_what_is_known_of_it() {
        let (events, finished) = read(
            &[
                Line::Started { model: "m".to_owned(), session: Some("s".to_owned()) },
                Line::Text { text: "let me see".to_owned() },
                Line::Tool { name: "read".to_owned(), detail: "a\nb".to_owned() },
                Line::Result { text: "x".to_owned(), is_error: false },
                usage(5, 80),
                usage(9, 30),
                Line::Finished { message: "done".to_owned() },
            ],
            0,
        );
        assert_eq!(events[..2], [AgentEvent::Model("m".to_owned()), AgentEvent::Session("s".to_owned())]);
        let last =
            [AgentEvent::Context { used: 30, window: Some(100) }, AgentEvent::TurnEnded { last: true }];
        assert_eq!(events[8..], last);
        assert_eq!(finished.facts.session.as_deref(), Some("s"));
        assert_eq!(events[3], AgentEvent::ToolCall { name: "read".to_owned(), detail: "a b".to_owned() });
        assert_eq!((finished.message.as_str(), finished.problem), ("done", None));
        assert_eq!(finished.usage.unwrap().input_tokens, 9);
        assert_eq!(finished.facts.model.as_deref(), Some("m"));
        assert_eq!(finished.facts.context, Some(ContextFill { used: 80, window: 100 }));
        assert_eq!(finished.facts.tool_calls, 1);
    }

    #[test]
    fn a_failure_is_told_as_it_was_named() {
        let failed = Line::Failed { trouble: Trouble::ContextFull, message: "too much".to_owned() };
        let problem = read(&[failed], 1).1.problem.unwrap();
        assert_eq!((problem.trouble, problem.message.as_str()), (Trouble::ContextFull, "too much"));
    }

    #[test]
    fn an_end_that_was_not_said_is_no_success() {
        let text = Line::Text { text: "almost".to_owned() };
        assert_eq!(read(&[text], 0).1.problem.unwrap().trouble, Trouble::Truncated);
        let empty = Line::Finished { message: " \n".to_owned() };
        assert_eq!(read(&[empty], 0).1.problem.unwrap().trouble, Trouble::Empty);
    }

    #[test]
    fn words_say_more_than_a_status() {
        assert_eq!(trouble(Some(400), "maximum context length is 8192 tokens", &now()), Trouble::ContextFull);
        assert_eq!(trouble(Some(503), "no", &now()), Trouble::Overloaded);
        assert_eq!(trouble(Some(401), "", &now()), Trouble::Authentication);
        assert_eq!(trouble(None, "something else", &now()), Trouble::Other);
    }
}
