//! Any command as agent: it gets the prompt, and its plain standard output is its message.

use std::path::PathBuf;

use jiff::Zoned;
use wiggum_core::event::Exit;
use wiggum_core::stream::Stream;

use crate::{
    AgentEvent, Assignment, CommandText, Driver, Family, Finished, Invocation, Problem, StreamParser, Tail,
    Utf8Pieces, problem_by_exit, said,
};

/// How much of a plain command's output counts as its message: more than any agent writes as its
/// last words, and little enough to keep for every iteration.
const MESSAGE_LIMIT: usize = 256 * 1024;
const COMPLAINTS_LIMIT: usize = 16 * 1024;

#[derive(Clone, Debug)]
pub struct CommandAgent {
    pub line: String,
    pub prompt_via: PromptVia,
}

/// How the prompt reaches the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromptVia {
    #[default]
    Stdin,
    /// As its last argument.
    Argument,
    /// As a file, whose path is its last argument.
    File,
}

impl Driver for CommandAgent {
    fn describe(&self) -> String {
        self.line.clone()
    }

    fn invocation(&self, assignment: &Assignment<'_>) -> Invocation {
        let (arguments, stdin) = match self.prompt_via {
            PromptVia::Stdin => (Vec::new(), Some(assignment.prompt.as_bytes().to_vec())),
            PromptVia::Argument => (vec![assignment.prompt.to_owned()], None),
            PromptVia::File => (vec![assignment.prompt_file.display().to_string()], None),
        };
        let command = CommandText::Line { line: self.line.clone(), arguments };
        Invocation { command, stdin, env: Vec::new() }
    }

    /// Of the agent that the command names; of others nobody knows.
    fn own_paths(&self) -> Vec<PathBuf> {
        self.family().map(Family::own_paths).unwrap_or_default().iter().map(PathBuf::from).collect()
    }

    fn program(&self) -> Option<&str> {
        self.first_word()
    }

    fn path_variables(&self) -> &[&str] {
        self.family().map(Family::path_variables).unwrap_or_default()
    }

    /// Which agent is behind a command nobody knows, so it gets what any of them may need.
    fn secrets(&self) -> &[&str] {
        &[
            "ANTHROPIC_*",
            "CLAUDE_*",
            "OPENAI_*",
            "CODEX_*",
            "GEMINI_*",
            "GOOGLE_*",
            "COPILOT_*",
            "AMP_*",
            "AIDER_*",
        ]
    }

    fn parser(&self) -> Box<dyn StreamParser> {
        Box::new(PlainText {
            message: Tail::new(MESSAGE_LIMIT),
            complaints: Tail::new(COMPLAINTS_LIMIT),
            stdout: Utf8Pieces::default(),
            stderr: Utf8Pieces::default(),
        })
    }
}

impl CommandAgent {
    /// By its first word: what a script starts nobody can tell.
    fn family(&self) -> Option<Family> {
        Family::from_name(self.first_word()?)
    }

    fn first_word(&self) -> Option<&str> {
        self.line.split_whitespace().next()?.rsplit('/').next()
    }
}

struct PlainText {
    message: Tail,
    complaints: Tail,
    stdout: Utf8Pieces,
    stderr: Utf8Pieces,
}

impl StreamParser for PlainText {
    fn push(&mut self, stream: Stream, bytes: &[u8]) -> Vec<AgentEvent> {
        let text = match stream {
            Stream::Stdout => {
                self.message.push(bytes);
                self.stdout.push(bytes)
            }
            Stream::Stderr => {
                self.complaints.push(bytes);
                self.stderr.push(bytes)
            }
        };
        if text.is_empty() { Vec::new() } else { vec![AgentEvent::Output(text)] }
    }

    fn finish(&mut self, exit: Exit, now: &Zoned) -> Finished {
        let (message, complaints) = (self.message.text(), self.complaints.text());
        let problem = problem_by_exit(exit).map(|problem| {
            // Many a command is a script around one of the agents we know, and fails in its words.
            let told = said::in_output(&complaints, now).or_else(|| said::in_output(&message, now));
            told.map_or(problem, |(trouble, message)| Problem { trouble, message })
        });
        Finished { message, complaints, problem, ..Finished::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(prompt_via: PromptVia) -> CommandAgent {
        CommandAgent { line: "my-agent --yes".to_owned(), prompt_via }
    }

    fn invoke(prompt_via: PromptVia) -> (Vec<String>, Option<Vec<u8>>) {
        let assignment = Assignment {
            prompt: "do it",
            prompt_file: std::path::Path::new("prompt.md"),
            wiggum: std::path::Path::new("wiggum"),
            session: crate::Session::Fresh,
            model: None,
            mcp: None,
            ceiling: wiggum_core::budget::Ceiling::default(),
            prices: None,
        };
        let invocation = agent(prompt_via).invocation(&assignment);
        match invocation.command {
            CommandText::Line { arguments, .. } => (arguments, invocation.stdin),
            CommandText::Program { .. } => panic!("a command line stays one"),
        }
    }

    #[test]
    fn the_prompt_reaches_the_command_as_configured() {
        assert_eq!(invoke(PromptVia::Stdin), (vec![], Some(b"do it".to_vec())));
        assert_eq!(invoke(PromptVia::Argument), (vec!["do it".to_owned()], None));
        assert_eq!(invoke(PromptVia::File), (vec!["prompt.md".to_owned()], None));
    }

    #[test]
    fn standard_output_is_the_message_and_standard_error_is_not() {
        let mut parser = agent(PromptVia::Stdin).parser();
        parser.push(Stream::Stdout, b"all ");
        parser.push(Stream::Stderr, b"oops");
        parser.push(Stream::Stdout, b"done");
        let finished = parser.finish(Exit::Code { code: 0 }, &Zoned::default());
        assert_eq!((finished.message.as_str(), finished.complaints.as_str()), ("all done", "oops"));
    }

    #[test]
    fn a_failed_command_may_say_why_in_the_words_of_agents() {
        let trouble = |stream, text: &str, code| {
            let mut parser = agent(PromptVia::Stdin).parser();
            parser.push(stream, text.as_bytes());
            parser.finish(Exit::Code { code }, &Zoned::default()).problem.map(|problem| problem.to_string())
        };
        let limit = "Claude AI usage limit reached|1794729540\n";
        let told = "usage limit until 2026-11-15T07:59:00Z: Claude AI usage limit reached|1794729540";
        assert_eq!(trouble(Stream::Stdout, limit, 1).as_deref(), Some(told));
        assert_eq!(trouble(Stream::Stderr, limit, 1).as_deref(), Some(told));
        assert_eq!(trouble(Stream::Stdout, limit, 0), None);
        assert_eq!(trouble(Stream::Stdout, "3 tests failed\n", 1).as_deref(), Some("failed"));
    }

    #[test]
    fn endless_output_keeps_its_end_in_bounded_memory() {
        let mut parser = agent(PromptVia::Stdin).parser();
        for _ in 0..100 {
            parser.push(Stream::Stdout, &[b'x'; 64 * 1024]);
        }
        parser.push(Stream::Stdout, b"the end");
        let message = parser.finish(Exit::Code { code: 0 }, &Zoned::default()).message;
        assert!(message.len() <= MESSAGE_LIMIT && message.ends_with("the end"));
    }

    #[test]
    fn characters_cut_in_the_middle_come_out_whole() {
        let mut parser = agent(PromptVia::Stdin).parser();
        let bytes = "é".as_bytes();
        assert_eq!(parser.push(Stream::Stdout, &bytes[..1]), vec![]);
        assert_eq!(parser.push(Stream::Stdout, &bytes[1..]), vec![AgentEvent::Output("é".to_owned())]);
        assert_eq!(parser.push(Stream::Stdout, b"\xff"), vec![AgentEvent::Output("\u{fffd}".to_owned())]);
    }
}
