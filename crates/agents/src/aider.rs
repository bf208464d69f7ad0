//! Aider, which speaks plain text only and exits with 0 whatever happens.
//!
//! A reply ends with a line that tells its tokens, and that line is what makes it one.

use jiff::Zoned;
use wiggum_core::event::{AgentFacts, Exit, Trouble, Usage};
use wiggum_core::stream::Stream;

use crate::family::{Cli, Profile, Start, Traces, flag, words};
use crate::lines::{Line, Lines};
use crate::{Abilities, AgentEvent, AgentSpec, Assignment, Finished, Problem, StreamParser, Tail, said};

pub(crate) const PROFILE: Profile = Profile {
    program: "aider",
    start,
    parser,
    abilities: Abilities {
        live: false,
        calls: false,
        usage: true,
        usage_live: true,
        cost: true,
        model: true,
        bounds_cost: false,
        bounds_tokens: false,
        nudge: false,
        resume: false,
        sandbox: false,
        mcp: false,
    },
    own_paths: &["~/.aider", "~/.aider.conf.yml", "~/.cache/litellm"],
    path_variables: &[],
    // It talks to any provider; which one, the model's name says.
    secrets: &[
        "AIDER_*",
        "OPENAI_*",
        "ANTHROPIC_*",
        "GEMINI_*",
        "GOOGLE_*",
        "OPENROUTER_*",
        "DEEPSEEK_*",
        "GROQ_*",
        "MISTRAL_*",
        "XAI_*",
        "COHERE_*",
        "OLLAMA_*",
    ],
    login: Traces {
        variables: &[
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "GEMINI_API_KEY",
            "OPENROUTER_API_KEY",
            "DEEPSEEK_API_KEY",
        ],
        dir_variable: None,
        dir: ".aider",
        files: &["oauth-keys.env"],
        // A key may stand in its settings, and models on this machine need none.
        elsewhere: true,
        hint: "set the key of the model's provider, such as OPENAI_API_KEY",
    },
};

fn start(spec: &AgentSpec, assignment: &Assignment<'_>) -> Start {
    let mut arguments = words(&[
        "--yes-always",
        "--no-stream",
        "--no-pretty",
        "--no-check-update",
        "--no-show-release-notes",
        "--no-detect-urls",
    ]);
    if !spec.says(&["--auto-commits", "--no-auto-commits"]) {
        // What is accepted is ours to commit.
        arguments.extend(words(&["--no-auto-commits", "--no-dirty-commits"]));
    }
    if let Some(model) = &spec.model {
        flag(&mut arguments, "--model", model);
    }
    arguments.extend(spec.args.iter().cloned());
    flag(&mut arguments, "--message-file", &assignment.prompt_file.display().to_string());
    Start { arguments, ..Start::default() }
}

fn parser(cli: &Cli) -> Box<dyn StreamParser> {
    Box::new(AiderText {
        lines: Lines::default(),
        reply: Tail::new(REPLY_LIMIT),
        last: String::new(),
        complaint: None,
        complaints: Tail::new(COMPLAINTS_LIMIT),
        usage: None,
        facts: AgentFacts { model: cli.spec.model.clone(), ..AgentFacts::default() },
    })
}

const REPLY_LIMIT: usize = 256 * 1024;
const COMPLAINTS_LIMIT: usize = 16 * 1024;

struct AiderText {
    lines: Lines,
    /// What came since the last reply.
    reply: Tail,
    last: String,
    complaint: Option<Complaint>,
    complaints: Tail,
    usage: Option<Usage>,
    facts: AgentFacts,
}

const RETRYING: &str = "Retrying in ";
const TOKEN_LIMIT: &str = " has hit a token limit!";

/// What it said about a request that failed, over two lines at most.
struct Complaint {
    text: String,
    lines: usize,
}

impl StreamParser for AiderText {
    fn push(&mut self, stream: Stream, bytes: &[u8]) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        match stream {
            Stream::Stderr => {
                self.complaints.push(bytes);
                events.push(AgentEvent::Output(String::from_utf8_lossy(bytes).into_owned()));
            }
            Stream::Stdout => {
                let mut lines = std::mem::take(&mut self.lines);
                lines.push(bytes, &mut |line| self.take(line, &mut events));
                self.lines = lines;
            }
        }
        events
    }

    fn finish(&mut self, exit: Exit, now: &Zoned) -> Finished {
        let mut lines = std::mem::take(&mut self.lines);
        lines.finish(&mut |line| self.take(line, &mut Vec::new()));
        let problem = self.problem(exit, now);
        let facts = std::mem::take(&mut self.facts);
        let message = std::mem::take(&mut self.last);
        Finished { message, usage: self.usage, complaints: self.complaints.text(), problem, facts }
    }
}

impl AiderText {
    fn take(&mut self, line: Line<'_>, events: &mut Vec<AgentEvent>) {
        let Line::Whole(bytes) = line else { return };
        let text = String::from_utf8_lossy(bytes);
        if let Some(usage) = tokens(&text) {
            *self.usage.get_or_insert_default() += usage;
            events.extend(self.usage.map(AgentEvent::Usage));
            self.end_reply();
            return;
        }
        if let Some(path) = text.strip_prefix("Applied edit to ") {
            self.facts.tool_calls += 1;
            events.push(AgentEvent::ToolCall { name: "edit".to_owned(), detail: path.to_owned() });
            return;
        }
        if let Some(model) = text.strip_prefix("Model: ").or_else(|| text.strip_prefix("Main model: ")) {
            self.facts.model = model.split(' ').next().map(str::to_owned);
            events.extend(self.facts.model.clone().map(AgentEvent::Model));
        }
        if text.starts_with("Repo-map: ") {
            // The last line of its greeting.
            self.reply = Tail::new(REPLY_LIMIT);
            return;
        }
        self.hear_complaint(&text, events);
        if text.starts_with(RETRYING) {
            self.reply = Tail::new(REPLY_LIMIT);
        } else {
            self.reply.push(bytes);
            self.reply.push(b"\n");
        }
        events.push(AgentEvent::Output(text.into_owned() + "\n"));
    }

    fn end_reply(&mut self) {
        let reply = self.reply.text();
        let reply = reply.trim();
        self.last =
            if reply.starts_with("Empty response received") { String::new() } else { reply.to_owned() };
        self.reply = Tail::new(REPLY_LIMIT);
        self.complaint = None;
    }

    fn hear_complaint(&mut self, text: &str, events: &mut Vec<AgentEvent>) {
        if text.starts_with("litellm.") {
            self.complaint = Some(Complaint { text: text.to_owned(), lines: 1 });
        } else if text.ends_with(TOKEN_LIMIT) {
            self.complaint = Some(Complaint { text: text.to_owned(), lines: 2 });
        } else if text.starts_with(RETRYING) {
            let trouble =
                self.complaint.as_ref().and_then(|complaint| said::without_time(complaint.reason()));
            events.push(AgentEvent::Retrying { trouble: trouble.unwrap_or(Trouble::Overloaded) });
        } else if let Some(complaint) = self.complaint.as_mut().filter(|complaint| complaint.lines < 2) {
            // Lines break anywhere, and a space is left at the break.
            complaint.text.push_str(text);
            complaint.lines += 1;
        }
    }

    fn problem(&self, exit: Exit, now: &Zoned) -> Option<Problem> {
        if let Some(complaint) = &self.complaint {
            return Some(complaint.problem(now));
        }
        let told = said::in_output(&self.complaints.text(), now);
        let trouble = match exit {
            Exit::Code { code: 0 } if !self.last.is_empty() => return None,
            Exit::Code { code: 0 } if self.usage.is_some() => Trouble::Empty,
            Exit::Code { code: 0 } => Trouble::Truncated,
            Exit::Signal { .. } | Exit::TimedOut => Trouble::Interrupted,
            Exit::Code { .. } | Exit::NotStarted => Trouble::Other,
        };
        Some(told.map_or(Problem::silent(trouble), |(trouble, message)| Problem { trouble, message }))
    }
}

impl Complaint {
    /// The provider's words, without the names of exceptions around them.
    fn reason(&self) -> &str {
        self.text.split_once("Exception - ").map_or(self.text.as_str(), |(_, reason)| reason)
    }

    fn problem(&self, now: &Zoned) -> Problem {
        let message = self.reason().trim().to_owned();
        let trouble = if self.text.ends_with(TOKEN_LIMIT) {
            Some(Trouble::ContextFull)
        } else {
            said::in_complaint(&message, now).or_else(|| said::in_complaint(&self.text, now))
        };
        Problem { trouble: trouble.unwrap_or(Trouble::Other), message }
    }
}

/// "Tokens: 2.4k sent, 1.2k cache write, 800 cache hit, 40 received. Cost: $0.0021 message, …"
fn tokens(line: &str) -> Option<Usage> {
    let (counts, cost) = line.strip_prefix("Tokens: ")?.split_once(" received.")?;
    let mut usage = Usage::default();
    for part in format!("{counts} received").split(", ") {
        let (number, what) = part.split_once(' ')?;
        let number = count(number)?;
        match what {
            "sent" => usage.input_tokens = number,
            "cache write" => usage.cache_write_tokens = number,
            "cache hit" => usage.cache_read_tokens = number,
            "received" => usage.output_tokens = number,
            _ => {}
        }
    }
    let dollars = cost.split_once('$').and_then(|(_, cost)| cost.split_once(' '));
    usage.cost_usd = dollars.and_then(|(dollars, _)| dollars.parse().ok()).unwrap_or_default();
    Some(usage)
}

/// "850", "2.4k", "1.1M".
fn count(text: &str) -> Option<u64> {
    let (digits, scale) = match text.strip_suffix('k') {
        Some(digits) => (digits, 1e3),
        None => text.strip_suffix('M').map_or((text, 1.0), |digits| (digits, 1e6)),
    };
    let number: f64 = digits.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts of tokens are small")]
    let whole = (number.max(0.0) * scale).round() as u64;
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_cost_are_read_from_the_line_that_ends_a_reply() {
        let usage = tokens(
            "Tokens: 2.4k sent, 1.2k cache write, 800 cache hit, 40 received. Cost: $0.0021 message, $0.01 session.",
        );
        let expected = Usage {
            input_tokens: 2400,
            output_tokens: 40,
            cache_read_tokens: 800,
            cache_write_tokens: 1200,
            cost_usd: 0.0021,
        };
        assert_eq!(usage, Some(expected));
        assert_eq!(tokens("Tokens: 15 sent, 3 received.").map(|usage| usage.input_tokens), Some(15));
        assert_eq!(tokens("Tokens: are cheap"), None);
    }
}
