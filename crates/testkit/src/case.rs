//! One thing that can happen with a real agent: how it comes about, and a run of it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use wiggum_core::event::Exit;
use wiggum_core::stream::Stream;

use crate::agents::{Agent, cache};
use crate::place::Place;
use crate::scenario::Scenario;
use crate::stub::{StartError, StubModel};
use crate::transcript::{Head, Line, Transcript};

/// An agent that says nothing for so long hangs; none of the cases waits longer than some seconds.
const PATIENCE: Duration = Duration::from_secs(90);

/// Stand for the home and the repository of a place, and for where agents are, in what is kept.
const NEUTRAL_CACHE: &str = "/opt/agents";
const NEUTRAL_HOME: &str = "/home/ralph";
const NEUTRAL_REPOSITORY: &str = "/home/ralph/project";

pub struct Case {
    pub agent: Agent,
    pub name: &'static str,
    pub(crate) scenario: Scenario,
    /// What the agent is started with.
    pub arguments: Vec<String>,
    /// Runs to its end before, unrecorded.
    pub(crate) earlier: Option<Vec<String>>,
    /// Added to the environment, or taken away from it.
    pub(crate) environment: Vec<(&'static str, Option<&'static str>)>,
    /// Files in the repository.
    pub(crate) files: Vec<(&'static str, &'static str)>,
    pub(crate) signal: Option<(Moment, Signal)>,
    /// Whether every run says the same kinds of things, and soon enough to look at it often.
    pub steady: bool,
}

/// When a signal is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment {
    /// The model was asked so many times.
    Asked(usize),
    /// A tool wrote to the pipe called `ready`.
    Ready,
}

#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    #[error("{0} is not installed")]
    Missing(&'static str),
    #[error("the agent cannot be run")]
    Run(#[from] io::Error),
    #[error("the stub cannot be started")]
    Stub(#[from] StartError),
    #[error("it should have ended; it said {0:#?}")]
    Endless(Vec<Line>),
    #[error("the moment for the signal never came")]
    Moment,
}

impl Case {
    pub(crate) fn new(agent: Agent, name: &'static str, scenario: impl Into<Scenario>) -> Self {
        Self {
            agent,
            name,
            scenario: scenario.into(),
            arguments: Vec::new(),
            earlier: None,
            environment: Vec::new(),
            files: Vec::new(),
            signal: None,
            steady: true,
        }
    }

    pub(crate) fn with_arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        self
    }

    pub(crate) fn after(mut self, arguments: &[&str]) -> Self {
        self.earlier = Some(arguments.iter().map(|&argument| argument.to_owned()).collect());
        self
    }

    pub(crate) fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.environment.push((name, Some(value)));
        self
    }

    pub(crate) fn without(mut self, name: &'static str) -> Self {
        self.environment.push((name, None));
        self
    }

    pub(crate) fn file(mut self, path: &'static str, text: &'static str) -> Self {
        self.files.push((path, text));
        self
    }

    pub(crate) fn signalled(mut self, moment: Moment, signal: Signal) -> Self {
        self.signal = Some((moment, signal));
        self
    }

    pub(crate) fn unsteady(self) -> Self {
        Self { steady: false, ..self }
    }

    /// Where its transcript lies.
    pub fn path(&self) -> PathBuf {
        let transcripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agents/tests/transcripts");
        transcripts.join(self.agent.name()).join(format!("{}.jsonl", self.name))
    }

    /// Runs the real agent.
    pub fn run(&self) -> Result<Transcript, CaseError> {
        let missing = || CaseError::Missing(self.agent.name());
        let program = self.agent.program().ok_or_else(missing)?;
        let stub = StubModel::start(self.scenario.clone())?;
        let place = Place::new()?;
        for (path, text) in &self.files {
            let path = place.repository().join(path);
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(path, text)?;
        }
        let stage = Stage { case: self, program: &program, stub: &stub, place: &place };
        if let Some(arguments) = &self.earlier {
            stage.run(arguments, None)?;
        }
        let (lines, status) = stage.run(&self.arguments, self.signal)?;
        let neutral = |text: &str| stage.neutral(text);
        Ok(Transcript {
            head: Head {
                agent: self.agent.name().to_owned(),
                version: self.agent.version().ok_or_else(missing)?,
                arguments: self.arguments.iter().map(|argument| neutral(argument)).collect(),
            },
            lines: lines.into_iter().map(|line| Line { line: neutral(&line.line), ..line }).collect(),
            exit: exit(status),
        })
    }
}

struct Stage<'a> {
    case: &'a Case,
    program: &'a Path,
    stub: &'a StubModel,
    place: &'a Place,
}

impl Stage<'_> {
    fn run(
        &self,
        arguments: &[String],
        signal: Option<(Moment, Signal)>,
    ) -> Result<(Vec<Line>, ExitStatus), CaseError> {
        let ready = self.place.repository().join("ready");
        if matches!(signal, Some((Moment::Ready, _))) {
            self.place.command(Path::new("mkfifo")).arg(&ready).status()?;
        }
        let mut child = self.start(arguments)?;
        let (sender, receiver) = channel();
        read_lines(child.stdout.take(), Stream::Stdout, sender.clone());
        read_lines(child.stderr.take(), Stream::Stderr, sender);
        if let Some((moment, signal)) = signal {
            self.wait_for(moment, &ready)?;
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            pid.map_or(Ok(()), |pid| kill_process_group(pid, signal)).map_err(io::Error::from)?;
            if signal != Signal::INT {
                // Tools survive their agent then, and may hold its pipes open.
                drop(child.wait());
                self.place.end_all();
            }
        }
        let mut lines = Vec::new();
        loop {
            match receiver.recv_timeout(PATIENCE) {
                Ok(line) => lines.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    self.place.end_all();
                    drop(child.wait());
                    return Err(CaseError::Endless(lines));
                }
            }
        }
        let status = child.wait()?;
        self.place.end_all();
        Ok((lines, status))
    }

    fn start(&self, arguments: &[String]) -> io::Result<Child> {
        let mut command = self.place.command(self.program);
        // Some programs are only the parent of the true one, so that signals are for the group.
        command.process_group(0);
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.envs(self.case.agent.environment(&self.place.home(), &self.stub.base_url())?);
        for (name, value) in &self.case.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.spawn()
    }

    fn wait_for(&self, moment: Moment, ready: &Path) -> Result<(), CaseError> {
        let came = match moment {
            Moment::Asked(times) => self.stub.wait_asked(times, PATIENCE),
            Moment::Ready => {
                let (sender, receiver) = channel();
                let ready = ready.to_owned();
                std::thread::spawn(move || drop(sender.send(fs::read(ready))));
                receiver.recv_timeout(PATIENCE).is_ok()
            }
        };
        if came { Ok(()) } else { Err(CaseError::Moment) }
    }

    /// A text without what is different on every machine and in every run.
    fn neutral(&self, text: &str) -> String {
        let (home, repository) = (self.place.home(), self.place.repository());
        let pairs = [
            (repository, NEUTRAL_REPOSITORY),
            (home, NEUTRAL_HOME),
            (self.place.temporary(), "/tmp"),
            (cache(), NEUTRAL_CACHE),
        ];
        let mut text = text.replace(&self.stub.base_url(), "http://127.0.0.1:4000");
        for (path, neutral) in pairs {
            let path = path.display().to_string();
            text = text.replace(&path, neutral);
            // As Claude Code names its directories after others.
            let dashed = |path: &str| path.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            text = text.replace(&dashed(&path), &dashed(neutral));
        }
        text
    }
}

fn read_lines(pipe: Option<impl Read + Send + 'static>, stream: Stream, lines: Sender<Line>) {
    let Some(pipe) = pipe else { return };
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if lines.send(Line { stream, line }).is_err() {
                return;
            }
        }
    });
}

fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code { code },
        (None, Some(signal)) => Exit::Signal { signal },
        (None, None) => Exit::NotStarted,
    }
}

impl Transcript {
    /// What kinds of things were said, whatever their order and number; two runs of a case agree in
    /// it, and in their exit.
    pub fn kinds(&self) -> BTreeSet<String> {
        let said = self.lines.iter().filter(|line| line.stream == Stream::Stdout);
        said.map(|line| kind(&serde_json::from_str(&line.line).unwrap_or_default())).collect()
    }
}

/// The members that tell kinds of events from each other, with their values.
fn kind(event: &Value) -> String {
    let places = [
        "/type",
        "/subtype",
        "/is_error",
        "/terminal_reason",
        "/api_error_status",
        "/error_status",
        "/rate_limit_info/status",
        "/item/type",
        "/item/status",
        "/exitCode",
        "/data/errorType",
        "/data/statusCode",
    ];
    let values = places.iter().filter_map(|place| event.pointer(place)).filter(|value| !value.is_null());
    values.map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
