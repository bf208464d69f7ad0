//! `wiggum run --record`: passes on what it sees to whoever watches, and to the recording.

use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;
use wiggum_agents::AgentEvent;
use wiggum_core::decide::Waiting;
use wiggum_core::event::{Envelope, Exit};
use wiggum_core::ids::{Attempt, Iteration, LoopId, TaskId};
use wiggum_core::redact::Secrets;
use wiggum_core::state::Loop;
use wiggum_core::stream::Stream;
use wiggum_engine::error::chain;
use wiggum_engine::state_dir::StateDir;
use wiggum_engine::{Observer, Settings, Tap};
use wiggum_store::Store;
use wiggum_store::recording::{Entry, Header, Recorder, Shown, Target, VERSION};
use wiggum_workspace::git::Git;

use crate::failure::Failure;
use crate::term;

const PLACE: &str = "name a file in a directory that you can write to";

/// A recording under way.
#[derive(Clone)]
pub(crate) struct Recording {
    recorder: Recorder,
    database: PathBuf,
}

impl Recording {
    pub(crate) fn begin(path: &Path, settings: &Settings) -> Result<Self, Failure> {
        let path = real(path).map_err(|error| {
            Failure::usage(format!("the recording {}: {error}", path.display())).hint(PLACE)
        })?;
        refuse_in_the_way(&path, settings.workspace())?;
        let database = settings.checkout.open(None)?.database();
        let target = Target { path, database: database.clone(), hidden: hidden(settings) };
        let header = Header {
            version: VERSION,
            wiggum: settings.version.clone(),
            at: Timestamp::now(),
            policy: Box::new(settings.policy.clone()),
        };
        let recorder =
            Recorder::create(target, header).map_err(|error| Failure::usage(chain(&error)).hint(PLACE))?;
        Ok(Self { recorder, database })
    }

    /// What the journal held before, which the rest of it goes on from.
    pub(crate) fn history(&self, loop_id: LoopId) -> Result<(), Failure> {
        let Some(store) = Store::open_existing(&self.database)? else { return Ok(()) };
        for envelope in store.read(loop_id, 0)? {
            self.recorder.line(Entry::Before { envelope: Box::new(envelope) });
        }
        Ok(())
    }

    /// A recording that is not whole is worth a word, but nobody's failure.
    pub(crate) fn end(&self, exit_code: u8) {
        if let Err(error) = self.recorder.finish(exit_code) {
            term::note(&format!("warning: {}: the recording is not whole\n", chain(&error)));
        }
    }
}

/// Where the file really is: what looks like a path inside the work tree may lead out of it, and the
/// other way round. Where the directory is missing, as written.
fn real(path: &Path) -> std::io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return Ok(path) };
    let directory = directory.canonicalize().unwrap_or_else(|_| without_dots(directory));
    Ok(directory.join(name))
}

fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(component),
        }
    }
    plain
}

/// A file that comes to be in the work tree would be taken for work.
fn refuse_in_the_way(path: &Path, workspace: &Path) -> Result<(), Failure> {
    let Ok(inside) = path.strip_prefix(workspace) else { return Ok(()) };
    let git = Git::discover(workspace).map_err(|error| Failure::other(chain(&error)))?;
    let Some(git) = git else { return Ok(()) };
    let ignored = git.ignored(&inside.to_string_lossy()).map_err(|error| Failure::other(chain(&error)))?;
    if ignored || inside.starts_with(StateDir::NAME) {
        return Ok(());
    }
    Err(Failure::usage(format!("the recording {} would be taken for work of the agent", inside.display()))
        .hint("put it elsewhere, as in `--record ../run.rec`, or have git ignore it"))
}

/// What nobody who gets the recording should see: secrets, and who its user is.
fn hidden(settings: &Settings) -> Secrets {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let agents = settings.agents.iter().flat_map(|agent| agent.env.clone());
    let secrets = Secrets::among(variables.chain(agents));
    let home = std::env::var("HOME").unwrap_or_default();
    let home = home.trim_end_matches('/');
    let secrets = secrets.and_word(home, "~");
    // Agents name directories after projects, as in `-home-somebody-project`.
    let dashes = home.replace('/', "-");
    if dashes.matches('-').count() > 1 { secrets.and_word(&dashes, "-~") } else { secrets }
}

impl Tap for Recording {
    fn agent_started(&self, iteration: Iteration, attempt: Attempt, task: &TaskId, agent: &str) {
        let (task, agent) = (task.clone(), agent.to_owned());
        self.recorder.line(Entry::AgentStarted { iteration, attempt, task, agent });
    }

    fn output(&self, stream: Stream, bytes: &[u8]) {
        self.recorder.output(stream, bytes);
    }

    fn agent_ended(&self, exit: Exit) {
        self.recorder.line(Entry::AgentEnded { exit });
    }
}

/// Watches a run beside another.
pub(crate) struct Recorded<'a> {
    pub(crate) recording: Recording,
    pub(crate) observer: &'a mut dyn Observer,
}

impl Observer for Recorded<'_> {
    fn event(&mut self, envelope: &Envelope, state: &Loop) {
        let entry = Entry::Event { envelope: Box::new(envelope.clone()), upto: state.seq };
        self.recording.recorder.line(entry);
        self.observer.event(envelope, state);
    }

    fn shown(&mut self) {
        self.observer.shown();
    }

    fn agent(&mut self, event: &AgentEvent) {
        if let Some(event) = shown(event) {
            self.recording.recorder.line(Entry::Shown { event });
        }
        self.observer.agent(event);
    }

    fn check_output(&mut self, text: &str) {
        self.recording.recorder.line(Entry::CheckOutput { text: text.to_owned() });
        self.observer.check_output(text);
    }

    fn waiting(&mut self, waiting: &Waiting, state: &Loop) {
        self.recording.recorder.line(Entry::Waiting { at: Timestamp::now() });
        self.observer.waiting(waiting, state);
    }

    fn settled(&mut self) {
        self.observer.settled();
    }
}

/// What is shown of it; nothing of what only the engine needs.
fn shown(event: &AgentEvent) -> Option<Shown> {
    Some(match event.clone() {
        AgentEvent::Output(text) => Shown::Output { text },
        AgentEvent::ToolCall { name, detail } => Shown::ToolCall { name, detail },
        AgentEvent::ToolResult { text, is_error } => Shown::ToolResult { text, is_error },
        AgentEvent::Usage(usage) => Shown::Usage { usage },
        AgentEvent::Context { used, window } => Shown::Context { used, window },
        AgentEvent::Session(id) => Shown::Session { id },
        AgentEvent::Limit { reached, resets_at } => Shown::Limit { reached, resets_at },
        AgentEvent::Retrying { trouble } => Shown::Retrying { trouble },
        AgentEvent::Notice(text) => Shown::Notice { text },
        AgentEvent::Model(_) | AgentEvent::TurnEnded { .. } => return None,
    })
}

/// What a driver had told, of what was recorded.
pub(crate) fn told(shown: Shown) -> AgentEvent {
    match shown {
        Shown::Output { text } => AgentEvent::Output(text),
        Shown::ToolCall { name, detail } => AgentEvent::ToolCall { name, detail },
        Shown::ToolResult { text, is_error } => AgentEvent::ToolResult { text, is_error },
        Shown::Usage { usage } => AgentEvent::Usage(usage),
        Shown::Context { used, window } => AgentEvent::Context { used, window },
        Shown::Session { id } => AgentEvent::Session(id),
        Shown::Limit { reached, resets_at } => AgentEvent::Limit { reached, resets_at },
        Shown::Retrying { trouble } => AgentEvent::Retrying { trouble },
        Shown::Notice { text } => AgentEvent::Notice(text),
    }
}
