//! The slash commands of a session: what they are called, and what `/ralph-loop …` says.
//!
//! A hook sees them before the agent does, so starting, cancelling and looking cost no tool call.

use thiserror::Error;

use super::rules::LoopOptions;

/// One command inside an agent; a new one is a new line in [`COMMANDS`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SlashCommand {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) arguments: &'static str,
    pub(crate) action: Action,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Starts a loop; the agent then gets the task.
    Start,
    Cancel,
    /// Shows what this command of ours prints. The agent is not asked.
    Show(&'static [&'static str]),
    /// Tells something of the session's own loop; of the project's loops, what this command of ours
    /// prints. The agent is not asked.
    Tell(About, &'static [&'static str]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    Health,
    Tokens,
    Cost,
    /// Makes one and shows it.
    Checkpoint,
}

pub(crate) const COMMANDS: &[SlashCommand] = &[
    SlashCommand {
        name: "ralph-loop",
        description: "Work on a task until it is really done",
        arguments: "PROMPT [--max-iterations N] [--completion-promise TEXT] [--verify COMMAND] [--plan FILE]",
        action: Action::Start,
    },
    SlashCommand {
        name: "cancel-ralph",
        description: "End the Ralph loop of this session",
        arguments: "",
        action: Action::Cancel,
    },
    SlashCommand {
        name: "ralph-status",
        description: "Show the Ralph loops of this project",
        arguments: "",
        action: Action::Show(&["status"]),
    },
    SlashCommand {
        name: "health-status",
        description: "Show how this session's loop and the agents of this project's loops are",
        arguments: "",
        action: Action::Tell(About::Health, &["health"]),
    },
    SlashCommand {
        name: "token-status",
        description: "Show the tokens of this session's loop and of the loops of this project",
        arguments: "",
        action: Action::Tell(About::Tokens, &["tokens"]),
    },
    SlashCommand {
        name: "cost-report",
        description: "Show what this session's loop and the loop of this project cost, and what the rest will cost",
        arguments: "",
        action: Action::Tell(About::Cost, &["cost", "--forecast"]),
    },
    SlashCommand {
        name: "checkpoint",
        description: "Sum up where this session's loop stands, or the loop of this project; the next prompt carries it",
        arguments: "[NOTE]",
        action: Action::Tell(About::Checkpoint, &["checkpoint", "create"]),
    },
];

/// What the plugin is called, which stands before the names of its commands.
pub(crate) const PLUGIN: &str = "wiggum";

/// The command that a prompt calls, and what follows its name.
pub(crate) fn called(prompt: &str) -> Option<(&'static SlashCommand, &str)> {
    let prompt = prompt.trim();
    // Codex has no commands of one's own, but skills, which are called with a dollar sign.
    let rest = prompt.strip_prefix(['/', '$'])?;
    let (name, arguments) = match rest.find(char::is_whitespace) {
        Some(end) => rest.split_at(end),
        None => (rest, ""),
    };
    let name = name.strip_prefix(PLUGIN).and_then(|name| name.strip_prefix(':')).unwrap_or(name);
    let command = COMMANDS.iter().find(|command| command.name == name)?;
    Some((command, arguments.trim()))
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ArgumentError {
    #[error("there is no task")]
    NoPrompt,
    #[error("{option} needs a value")]
    NoValue { option: &'static str },
    #[error("{option} takes no value")]
    TakesNone { option: &'static str },
    #[error("{option} needs a whole number, not `{value}`")]
    NotANumber { option: &'static str, value: String },
    #[error(
        "`{option}` is not known; there are {}. Text with dashes goes in quotes, or behind `--`",
        OPTIONS.join(", ")
    )]
    Unknown { option: String },
    #[error("a completion promise is one line without `<` and `>`")]
    Promise,
}

const OPTIONS: [&str; 7] = [
    "--max-iterations",
    "--completion-promise",
    "--verify",
    "--plan",
    "--no-progress",
    "--same-error",
    "--complete-without-claim",
];

/// Reads the arguments of `/ralph-loop`. People write tasks in their own words, so apostrophes and
/// single dashes in the middle of them are text. A word such as `--thing` outside of quotes is an
/// option; one we do not know is refused, or a typing mistake would become part of the task.
pub(crate) fn parse(arguments: &str) -> Result<LoopOptions, ArgumentError> {
    let mut options = LoopOptions::default();
    let words = words(arguments);
    let mut text: Vec<&Word<'_>> = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word.ends_options() {
            text.extend(rest);
            break;
        }
        let Some((option, inline)) = word.option()? else {
            text.push(word);
            continue;
        };
        if option == "--complete-without-claim" {
            if inline.is_some() {
                return Err(ArgumentError::TakesNone { option });
            }
            options.complete_without_claim = true;
            continue;
        }
        let value = match inline {
            Some(value) => value.to_owned(),
            None => {
                let next = rest.next().filter(|next| next.is_text());
                next.map(|next| next.value.to_owned()).ok_or(ArgumentError::NoValue { option })?
            }
        };
        set(&mut options, option, value)?;
    }
    options.prompt = joined(arguments, &text);
    if options.prompt.is_empty() { Err(ArgumentError::NoPrompt) } else { Ok(options) }
}

fn set(options: &mut LoopOptions, option: &'static str, value: String) -> Result<(), ArgumentError> {
    let number = |value: String| value.parse().map_err(|_| ArgumentError::NotANumber { option, value });
    match option {
        "--max-iterations" => options.max_iterations = Some(number(value)?),
        "--no-progress" => options.no_progress = Some(number(value)?),
        "--same-error" => options.same_error = Some(number(value)?),
        "--verify" => options.verify.push(value),
        "--plan" => options.plan = Some(value),
        _ => options.completion_promise = Some(promise(&value)?),
    }
    Ok(())
}

/// A promise with or without its tags.
pub(crate) fn promise(text: &str) -> Result<String, ArgumentError> {
    let text = text.trim();
    let inside =
        text.strip_prefix("<promise>").and_then(|text| text.strip_suffix("</promise>")).unwrap_or(text);
    let inside = wiggum_core::text::fold_whitespace(inside);
    if inside.is_empty() || text.contains('\n') || inside.contains(['<', '>']) {
        return Err(ArgumentError::Promise);
    }
    Ok(inside)
}

struct Word<'a> {
    /// Without its quotes.
    value: &'a str,
    quoted: bool,
    start: usize,
    end: usize,
}

impl<'a> Word<'a> {
    /// `--`: all that follows is text.
    fn ends_options(&self) -> bool {
        !self.quoted && self.value == "--"
    }

    /// Neither an option nor `--`. Rules such as `---` are text.
    fn is_text(&self) -> bool {
        let named = self.value.strip_prefix("--").is_some_and(|name| name.starts_with(char::is_alphanumeric));
        self.quoted || !(named || self.ends_options())
    }

    /// The option this word is, and its value where that is attached with `=`.
    fn option(&self) -> Result<Option<(&'static str, Option<&'a str>)>, ArgumentError> {
        if self.is_text() {
            return Ok(None);
        }
        let (name, value) = match self.value.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (self.value, None),
        };
        match OPTIONS.iter().find(|option| **option == name) {
            Some(option) => Ok(Some((option, value))),
            None => Err(ArgumentError::Unknown { option: name.to_owned() }),
        }
    }
}

/// A quote counts where it begins a word and is closed at the end of one.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(skip) = text[at..].find(|c: char| !c.is_whitespace()) {
        let start = at + skip;
        let rest = &text[start..];
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let closed = quote.and_then(|quote| closing(rest, quote));
        let end = closed.unwrap_or_else(|| rest.find(char::is_whitespace).unwrap_or(rest.len()));
        let value = if closed.is_some() { &rest[1..end - 1] } else { &rest[..end] };
        words.push(Word { value, quoted: closed.is_some(), start, end: start + end });
        at = start + end;
    }
    words
}

/// Where a quoted word ends, its closing quote included.
fn closing(text: &str, quote: char) -> Option<usize> {
    let ends = text.match_indices(quote).skip(1).map(|(at, _)| at + 1);
    ends.into_iter().find(|&end| text[end..].chars().next().is_none_or(char::is_whitespace))
}

/// The text without its options: words that stood side by side keep the white space between them.
fn joined(text: &str, words: &[&Word<'_>]) -> String {
    if let [only] = words {
        return only.value.trim().to_owned();
    }
    let mut out = String::new();
    let mut before: Option<usize> = None;
    for word in words {
        if let Some(end) = before {
            let between = &text[end..word.start];
            out.push_str(if between.trim().is_empty() { between } else { " " });
        }
        out.push_str(&text[word.start..word.end]);
        before = Some(word.end);
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn what_is_shown_is_a_command_of_ours() {
        for command in COMMANDS {
            if let Action::Show(arguments) | Action::Tell(_, arguments) = command.action {
                let line = std::iter::once(&"wiggum").chain(arguments);
                Cli::try_parse_from(line).unwrap_or_else(|error| panic!("/{}: {error}", command.name));
            }
        }
    }

    #[test]
    fn commands_are_called_by_their_whole_name() {
        let check = |prompt: &str, expected: Option<(&str, &str)>| {
            let found = called(prompt).map(|(command, arguments)| (command.name, arguments));
            assert_eq!(found, expected, "{prompt}");
        };
        check("/ralph-loop  make it ", Some(("ralph-loop", "make it")));
        check("$ralph-loop\nmake it", Some(("ralph-loop", "make it")));
        check(" /cancel-ralph", Some(("cancel-ralph", "")));
        check("/wiggum:ralph-loop x", Some(("ralph-loop", "x")));
        check("/other:ralph-loop x", None);
        check("/wiggum: x", None);
        check("/ralph-loops x", None);
        check("please /ralph-loop x", None);
        check("ralph-loop x", None);
    }

    #[test]
    fn a_task_is_read_as_people_write_it() {
        let check = |arguments: &str, prompt: &str, max: u32, promise: Option<&str>| {
            let options = parse(arguments).unwrap_or_else(|error| panic!("{arguments}: {error}"));
            assert_eq!(options.prompt, prompt, "{arguments}");
            assert_eq!(options.max_iterations.unwrap_or(10), max, "{arguments}");
            assert_eq!(options.completion_promise.as_deref(), promise, "{arguments}");
        };
        check("\"make it\" --max-iterations 5 --completion-promise DONE", "make it", 5, Some("DONE"));
        check("--max-iterations=5 make it", "make it", 5, None);
        check("don't stop, it's --max-iterations 3 not done", "don't stop, it's not done", 3, None);
        check("say \"hello\" and 'bye'", "say \"hello\" and 'bye'", 10, None);
        check("two\n  lines", "two\n  lines", 10, None);
        check("\"add a --verbose flag\"", "add a --verbose flag", 10, None);
        check("say \"--bogus\" twice", "say \"--bogus\" twice", 10, None);
        check("--max-iterations 3 -- add a --verbose flag", "add a --verbose flag", 3, None);
        check("-- --max-iterations 3", "--max-iterations 3", 10, None);
        check("-- \"quoted --bogus\"", "quoted --bogus", 10, None);
        check("one - two \u{2014} three --- four -v", "one - two \u{2014} three --- four -v", 10, None);
        check("'explain --max-iterations 5'", "explain --max-iterations 5", 10, None);
        check("x --completion-promise 'ALL  GREEN'", "x", 10, Some("ALL GREEN"));
        check("x --completion-promise <promise>OK</promise>", "x", 10, Some("OK"));
        check("\"a\nb\" --max-iterations 0", "a\nb", 0, None);
        assert_eq!(parse("x --verify 'cargo test' --verify=true").unwrap().verify, ["cargo test", "true"]);
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        let number =
            |value: &str| ArgumentError::NotANumber { option: "--max-iterations", value: value.to_owned() };
        let unknown = |option: &str| ArgumentError::Unknown { option: option.to_owned() };
        let cases = [
            ("", ArgumentError::NoPrompt),
            ("--max-iterations 3", ArgumentError::NoPrompt),
            ("x --max-iterations", ArgumentError::NoValue { option: "--max-iterations" }),
            ("x --max-iterations many", number("many")),
            ("x --max-iterations -1", number("-1")),
            ("x --max-iteration 3", unknown("--max-iteration")),
            ("x --bogus 3", unknown("--bogus")),
            ("add a --verbose flag", unknown("--verbose")),
            ("x --bogus=3 -- y", unknown("--bogus")),
            ("--", ArgumentError::NoPrompt),
            ("x --verify --", ArgumentError::NoValue { option: "--verify" }),
            ("x --verify --plan p.md", ArgumentError::NoValue { option: "--verify" }),
            ("x --completion-promise '<b>'", ArgumentError::Promise),
            (
                "x --complete-without-claim=no",
                ArgumentError::TakesNone { option: "--complete-without-claim" },
            ),
        ];
        for (arguments, expected) in cases {
            assert_eq!(parse(arguments), Err(expected), "{arguments}");
        }
    }
}
