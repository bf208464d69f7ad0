//! The scripted agent: plays a scenario file instead of thinking, for demos, tests and recordings.
//!
//! It is driven like any other agent: started as a process of its own, killed like one, and read
//! through a parser of its stream (JSON lines). [`play`] is what that process does.

use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use jiff::Zoned;
use serde::{Deserialize, Serialize};
use wiggum_core::event::{ContextFill, Exit, Usage};
use wiggum_core::stream::Stream;

use crate::lines::{self, Lines};
use crate::{
    Abilities, AgentEvent, Assignment, CommandText, Driver, Finished, Invocation, StreamParser, Tail,
    problem_by_exit,
};

#[derive(Clone, Debug)]
pub struct ScriptedAgent {
    pub scenario: PathBuf,
}

impl Driver for ScriptedAgent {
    fn describe(&self) -> String {
        format!("scripted agent ({})", self.scenario.display())
    }

    fn invocation(&self, assignment: &Assignment<'_>) -> Invocation {
        let arguments = vec!["scripted-agent".to_owned(), self.scenario.display().to_string()];
        let program = assignment.wiggum.display().to_string();
        Invocation { command: CommandText::Program { program, arguments }, stdin: None, env: Vec::new() }
    }

    /// Every step is told as it is taken, so silence means something.
    fn abilities(&self) -> Abilities {
        Abilities {
            live: true,
            calls: true,
            usage: true,
            usage_live: true,
            cost: true,
            ..Abilities::default()
        }
    }

    fn parser(&self) -> Box<dyn StreamParser> {
        Box::new(ScriptStream {
            lines: Lines::default(),
            message: String::new(),
            usage: None,
            complaints: Tail::new(16 * 1024),
        })
    }
}

/// A scenario: what to do for which attempt at which task.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The first part that fits is played.
    #[serde(rename = "attempt")]
    attempts: Vec<Part>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    /// The task this is for; any if missing.
    task: Option<String>,
    /// The attempt this is for; any if missing.
    number: Option<u32>,
    steps: Vec<Step>,
}

/// One step. In all texts `{task}` and `{attempt}` stand for what is being worked on.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Step {
    Write {
        path: String,
        content: String,
    },
    Edit {
        path: String,
        find: String,
        replace: String,
    },
    /// Runs a command through the shell; its failure ends the agent.
    Run(String),
    Say(String),
    /// Says how the task is claimed; `claim = ""` uses the promise.
    Claim(String),
    Escalate(Escalation),
    Usage(Usage),
    /// Tells how full its context is.
    Context(ContextFill),
    /// Complains and exits with 1.
    Fail(String),
    /// Does nothing until it is ended.
    Hang(bool),
    Exit(u8),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Escalation {
    #[serde(rename = "type", default = "stuck")]
    kind: String,
    summary: String,
    #[serde(default)]
    context: String,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    question: String,
}

fn stuck() -> String {
    "stuck".to_owned()
}

#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("cannot read the scenario {path}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("the scenario {path} is not valid")]
    Parse { path: PathBuf, source: toml::de::Error },
    #[error("the scenario has nothing for attempt {attempt} at task {task}")]
    NoPart { task: String, attempt: u32 },
    #[error("{path} leads out of the workspace")]
    Outside { path: String },
    #[error("cannot write {path}")]
    Write { path: String, source: std::io::Error },
    #[error("{path} does not contain {find:?}")]
    NotFound { path: String, find: String },
    #[error("cannot run {command}")]
    Run { command: String, source: std::io::Error },
    #[error("cannot write to standard output")]
    Output { source: std::io::Error },
}

/// One line of the scripted agent's stream.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Say {
        text: String,
    },
    Tool {
        name: String,
        detail: String,
    },
    /// That tool has ended.
    Result,
    Usage {
        usage: Usage,
    },
    Context {
        context: ContextFill,
    },
}

/// Which part of a scenario to play, and where.
#[derive(Clone, Debug)]
pub struct Role {
    pub task: String,
    pub attempt: u32,
    pub workspace: PathBuf,
}

/// Reads a scenario, so that mistakes in it are found before anything runs.
pub fn load(path: &Path) -> Result<Scenario, ScriptError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ScriptError::Read { path: path.to_owned(), source })?;
    toml::from_str(&text).map_err(|source| ScriptError::Parse { path: path.to_owned(), source })
}

/// Plays the part that fits the role, printing the stream the parser reads.
pub fn play(scenario: &Scenario, role: &Role, out: &mut dyn Write) -> Result<ExitCode, ScriptError> {
    let part = scenario
        .attempts
        .iter()
        .find(|part| {
            part.task.as_ref().is_none_or(|task| *task == role.task)
                && part.number.is_none_or(|number| number == role.attempt)
        })
        .ok_or_else(|| ScriptError::NoPart { task: role.task.clone(), attempt: role.attempt })?;
    for step in &part.steps {
        if let Some(code) = perform(step, role, out)? {
            return Ok(code);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn perform(step: &Step, role: &Role, out: &mut dyn Write) -> Result<Option<ExitCode>, ScriptError> {
    let fill =
        |text: &str| text.replace("{task}", &role.task).replace("{attempt}", &role.attempt.to_string());
    match step {
        Step::Write { path, content } => {
            let path = fill(path);
            write(role, &path, &fill(content))?;
            print(out, &Line::Tool { name: "write".to_owned(), detail: path })?;
            print(out, &Line::Result)?;
        }
        Step::Edit { path, find, replace } => {
            let path = fill(path);
            edit(role, &path, &fill(find), &fill(replace))?;
            print(out, &Line::Tool { name: "edit".to_owned(), detail: path })?;
            print(out, &Line::Result)?;
        }
        Step::Run(command) => {
            let command = fill(command);
            print(out, &Line::Tool { name: "run".to_owned(), detail: command.clone() })?;
            let code = run(role, &command)?;
            print(out, &Line::Result)?;
            return Ok(code);
        }
        Step::Say(text) => print(out, &Line::Say { text: fill(text) })?,
        Step::Claim(text) if text.is_empty() => {
            print(out, &Line::Say { text: "<promise>DONE</promise>".to_owned() })?;
        }
        Step::Claim(text) => print(out, &Line::Say { text: fill(text) })?,
        Step::Escalate(escalation) => print(out, &Line::Say { text: fill(&block(escalation)) })?,
        Step::Usage(usage) => print(out, &Line::Usage { usage: *usage })?,
        Step::Context(context) => print(out, &Line::Context { context: *context })?,
        Step::Fail(text) => {
            complain(&fill(text));
            return Ok(Some(ExitCode::FAILURE));
        }
        Step::Hang(true) => loop {
            std::thread::park();
        },
        Step::Hang(false) => {}
        Step::Exit(code) => return Ok(Some(ExitCode::from(*code))),
    }
    Ok(None)
}

#[expect(clippy::print_stderr, reason = "standard error is where an agent complains")]
fn complain(text: &str) {
    eprintln!("{text}");
}

fn print(out: &mut dyn Write, line: &Line) -> Result<(), ScriptError> {
    let mut text =
        serde_json::to_string(line).map_err(|error| ScriptError::Output { source: error.into() })?;
    text.push('\n');
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|source| ScriptError::Output { source })
}

fn inside(role: &Role, path: &str) -> Result<PathBuf, ScriptError> {
    let plain =
        Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if plain { Ok(role.workspace.join(path)) } else { Err(ScriptError::Outside { path: path.to_owned() }) }
}

fn write(role: &Role, path: &str, content: &str) -> Result<(), ScriptError> {
    let full = inside(role, path)?;
    full.parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::write(&full, content))
        .map_err(|source| ScriptError::Write { path: path.to_owned(), source })
}

fn edit(role: &Role, path: &str, find: &str, replace: &str) -> Result<(), ScriptError> {
    let full = inside(role, path)?;
    let before = std::fs::read_to_string(&full)
        .map_err(|source| ScriptError::Write { path: path.to_owned(), source })?;
    if !before.contains(find) {
        return Err(ScriptError::NotFound { path: path.to_owned(), find: find.to_owned() });
    }
    write(role, path, &before.replacen(find, replace, 1))
}

#[expect(clippy::disallowed_methods, reason = "the scripted agent is a process of its own, as any agent is")]
fn run(role: &Role, command: &str) -> Result<Option<ExitCode>, ScriptError> {
    let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let status = std::process::Command::new(shell)
        .args([flag, command])
        .current_dir(&role.workspace)
        .stdout(std::io::stderr())
        .status()
        .map_err(|source| ScriptError::Run { command: command.to_owned(), source })?;
    Ok((!status.success()).then_some(ExitCode::FAILURE))
}

fn block(escalation: &Escalation) -> String {
    let options: Vec<String> =
        escalation.options.iter().enumerate().map(|(n, text)| format!("{}. {text}", n + 1)).collect();
    format!(
        "<escalate type=\"{}\">\n<summary>{}</summary>\n<context>{}</context>\n<options>\n{}\n</options>\n\
         <question>{}</question>\n</escalate>",
        escalation.kind,
        escalation.summary,
        escalation.context,
        options.join("\n"),
        escalation.question
    )
}

struct ScriptStream {
    lines: Lines,
    message: String,
    usage: Option<Usage>,
    complaints: Tail,
}

impl StreamParser for ScriptStream {
    fn push(&mut self, stream: Stream, bytes: &[u8]) -> Vec<AgentEvent> {
        match stream {
            Stream::Stderr => {
                self.complaints.push(bytes);
                vec![AgentEvent::Output(String::from_utf8_lossy(bytes).into_owned())]
            }
            Stream::Stdout => {
                let mut events = Vec::new();
                let mut lines = std::mem::take(&mut self.lines);
                lines.push(bytes, &mut |line| self.take(line, &mut events));
                self.lines = lines;
                events
            }
        }
    }

    fn finish(&mut self, exit: Exit, _now: &Zoned) -> Finished {
        let mut lines = std::mem::take(&mut self.lines);
        lines.finish(&mut |line| self.take(line, &mut Vec::new()));
        Finished {
            message: std::mem::take(&mut self.message),
            usage: self.usage,
            complaints: self.complaints.text(),
            problem: problem_by_exit(exit),
            ..Finished::default()
        }
    }
}

impl ScriptStream {
    fn take(&mut self, line: lines::Line<'_>, events: &mut Vec<AgentEvent>) {
        if let lines::Line::Whole(bytes) = line
            && let Ok(line) = serde_json::from_slice::<Line>(bytes)
        {
            self.read(line, events);
        }
    }

    /// What is said after the last tool call is the final message.
    fn read(&mut self, line: Line, events: &mut Vec<AgentEvent>) {
        match line {
            Line::Say { text } => {
                if !self.message.is_empty() {
                    self.message.push('\n');
                }
                self.message.push_str(&text);
                events.push(AgentEvent::Output(text + "\n"));
            }
            Line::Tool { name, detail } => {
                self.message.clear();
                events.push(AgentEvent::ToolCall { name, detail });
            }
            Line::Result => events.push(AgentEvent::ToolResult { text: String::new(), is_error: false }),
            Line::Usage { usage } => {
                *self.usage.get_or_insert_default() += usage;
                events.extend(self.usage.map(AgentEvent::Usage));
            }
            Line::Context { context: ContextFill { used, window } } => {
                events.push(AgentEvent::Context { used, window: Some(window) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play_text(scenario: &str, task: &str, attempt: u32) -> (Finished, Vec<AgentEvent>) {
        let scenario: Scenario = toml::from_str(scenario).unwrap();
        let role = Role { task: task.to_owned(), attempt, workspace: std::env::temp_dir() };
        let mut out = Vec::new();
        play(&scenario, &role, &mut out).unwrap();
        let mut parser = ScriptedAgent { scenario: PathBuf::new() }.parser();
        let mut events = Vec::new();
        for byte in &out {
            events.extend(parser.push(Stream::Stdout, &[*byte]));
        }
        (parser.finish(Exit::Code { code: 0 }, &Zoned::default()), events)
    }

    #[test]
    fn the_first_part_that_fits_is_played_and_placeholders_are_filled() {
        let scenario = r#"
            [[attempt]]
            task = "A"
            number = 2
            steps = [{ say = "second" }]
            [[attempt]]
            steps = [{ say = "{task} {attempt}" }, { claim = "Task {task} complete" }]
        "#;
        assert_eq!(play_text(scenario, "A", 2).0.message, "second");
        assert_eq!(play_text(scenario, "A", 1).0.message, "A 1\nTask A complete");
    }

    #[test]
    fn only_what_is_said_after_the_last_tool_call_is_the_message_and_usage_adds_up() {
        let scenario = r#"
            [[attempt]]
            steps = [
              { say = "<promise>DONE</promise>" }, { usage = { input_tokens = 5, cost_usd = 0.25 } },
              { run = "true" }, { usage = { input_tokens = 7 } }, { say = "bye" },
            ]
        "#;
        let (finished, events) = play_text(scenario, "A", 1);
        assert_eq!(finished.message, "bye");
        let usage = finished.usage.unwrap();
        assert_eq!((usage.input_tokens, usage.cost_usd), (12, 0.25));
        assert!(events.contains(&AgentEvent::ToolCall { name: "run".to_owned(), detail: "true".to_owned() }));
    }

    #[test]
    fn steps_that_leave_the_workspace_are_refused() {
        let scenario: Scenario =
            toml::from_str(r#"attempt = [{ steps = [{ write = { path = "../x", content = "" } }] }]"#)
                .unwrap();
        let role = Role { task: "A".to_owned(), attempt: 1, workspace: std::env::temp_dir() };
        let error = play(&scenario, &role, &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "../x leads out of the workspace");
    }

    #[test]
    fn garbage_and_overlong_lines_do_not_disturb_the_stream() {
        let mut parser = ScriptedAgent { scenario: PathBuf::new() }.parser();
        parser.push(Stream::Stdout, b"\xff\xfe garbage\n{\"type\":\"unknown\"}\n");
        parser.push(Stream::Stdout, &vec![b'x'; 10 * 1024 * 1024]);
        parser.push(Stream::Stdout, b"\n{\"type\":\"say\",\"text\":\"still here\"}");
        assert_eq!(parser.finish(Exit::Code { code: 0 }, &Zoned::default()).message, "still here");
    }
}
