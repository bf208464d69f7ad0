//! `wiggum demo`: the whole thing at work in a temporary repository, with a scripted agent.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use wiggum_agents::script::{self, Role};
use wiggum_core::event::{Answer, Envelope, Event, Request};
use wiggum_core::state::Loop;
use wiggum_engine::checkout::{Checkout, StateRoot};
use wiggum_engine::{Engine, Input, Observer, Outcome, Remote};
use wiggum_workspace::git::Git;
use wiggum_workspace::process::{self, CommandLine, Launch};

use crate::args::DemoArgs;
use crate::commands::{run, surroundings_of};
use crate::config::{self, Flags, Sources};
use crate::failure::Failure;
use crate::narrate::Narrator;
use crate::term::{self, Style};

/// The project of the demo: file name and content.
const FILES: [(&str, &str); 4] = [
    ("PRD.json", include_str!("../../demo/PRD.json")),
    ("check.sh", include_str!("../../demo/check.sh")),
    ("wiggum.toml", include_str!("../../demo/wiggum.toml")),
    ("README.md", include_str!("../../demo/README.md")),
];
const SCENARIO: &str = include_str!("../../demo/scenario.toml");

pub(crate) fn demo(args: &DemoArgs) -> Result<ExitCode, Failure> {
    let (dir, keep) = match &args.dir {
        Some(dir) => (dir.clone(), true),
        None => (std::env::temp_dir().join(format!("wiggum-demo-{}", std::process::id())), false),
    };
    let repository = set_up(&dir)?;
    let style = Style::for_stdout();
    term::print(&format!("A small project in {}, worked off by a scripted agent.\n\n", repository.display()));
    let outcome = work(&repository)?;
    let git = discover(&repository)?;
    let log = git.log_oneline(10).map_err(|error| Failure::other(error.to_string()))?;
    term::print(&format!("\n{}\n", style.bold("The git log: one commit per completed task")));
    for line in log {
        term::print(&format!("  {line}\n"));
    }
    term::print(&format!("\n{}\n", style.bold("The evidence: what the engine saw itself")));
    term::print(&format!(
        "  cd {} && wiggum show greet     # attempts, checks with command, exit code and output, diff\n  \
         wiggum events                 # everything that happened\n",
        repository.display()
    ));
    if !keep {
        term::print(
            &style.dim("  (a temporary directory: `wiggum demo --dir DIR` makes it where you like)\n"),
        );
    }
    Ok(ExitCode::from(outcome.exit_code()))
}

/// What `wiggum scripted-agent` does: plays one part of a scenario.
pub(crate) fn scripted_agent(scenario: &Path) -> Result<ExitCode, Failure> {
    let told = |name: &str| {
        std::env::var(name).map_err(|_| {
            Failure::usage(format!("{name} is not set")).hint("this command is started by `wiggum run`")
        })
    };
    let role = Role {
        task: told("WIGGUM_TASK_ID")?,
        attempt: told("WIGGUM_ATTEMPT")?.parse().unwrap_or(1),
        workspace: std::env::current_dir().map_err(|error| Failure::other(error.to_string()))?,
    };
    let failed = |error: script::ScriptError| Failure::other(wiggum_engine::error::chain(&error));
    let scenario = script::load(scenario).map_err(failed)?;
    script::play(&scenario, &role, &mut std::io::stdout().lock()).map_err(failed)
}

fn set_up(dir: &Path) -> Result<PathBuf, Failure> {
    let failed = |error: std::io::Error| Failure::other(format!("cannot set up {}: {error}", dir.display()));
    if dir.exists() {
        return Err(Failure::usage(format!("{} exists already", dir.display()))
            .hint("name a directory that does not"));
    }
    let repository = dir.join("project");
    fs::create_dir_all(&repository).map_err(failed)?;
    for (name, content) in FILES {
        fs::write(repository.join(name), content).map_err(failed)?;
    }
    fs::write(dir.join("scenario.toml"), SCENARIO).map_err(failed)?;
    let repository = repository.canonicalize().map_err(failed)?;
    git(&repository, &["init", "--quiet", "--initial-branch=main"])?;
    let git = discover(&repository)?;
    git.stage_all(&[])
        .and_then(|_| git.commit("A project with a backlog", &[]))
        .map_err(|error| Failure::other(wiggum_engine::error::chain(&error)))?;
    Ok(repository)
}

fn git(dir: &Path, args: &[&str]) -> Result<(), Failure> {
    let output = process::run(Launch::new(CommandLine::new("git", args), dir)).map_err(|error| {
        Failure::other(wiggum_engine::error::chain(&error)).hint("the demo needs git; install it")
    })?;
    if output.exit.success() {
        Ok(())
    } else {
        Err(Failure::other(format!("git {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr))))
    }
}

fn discover(repository: &Path) -> Result<Git, Failure> {
    Git::discover(repository)
        .map_err(|error| Failure::other(wiggum_engine::error::chain(&error)))?
        .ok_or_else(|| Failure::other(format!("{} is not a git repository", repository.display())))
}

fn work(repository: &Path) -> Result<Outcome, Failure> {
    let flags =
        Flags { scenario: repository.parent().map(|dir| dir.join("scenario.toml")), ..Flags::default() };
    let env = std::collections::BTreeMap::new();
    let config =
        config::resolve(&Sources { workspace: repository, user_file: None, env: &env, flags: &flags })?;
    // The question is answered by the demo itself, as a person would within a few seconds.
    let settings = run::settings_of(checkout(repository), config, true)?;
    let narrator = Narrator::new(None);
    let mut observer = Answering { narrator, remote: None };
    drop(process::adopt_orphans());
    // The observer needs a way back to the engine that watches it, which exists only afterwards.
    let (sender, receiver) = std::sync::mpsc::channel();
    observer.remote = Some(sender);
    let mut engine = Engine::open(settings, &mut observer)?;
    let remote = engine.remote();
    std::thread::spawn(move || answer_questions(&receiver, &remote));
    Ok(engine.run()?)
}

/// Where `wiggum show` looks for it afterwards; beside it where there is no such place.
fn checkout(repository: &Path) -> Checkout {
    surroundings_of(repository.to_owned())
        .checkout()
        .unwrap_or_else(|_| Checkout::new(repository, &StateRoot::new(repository.with_file_name("state"))))
}

fn answer_questions(questions: &std::sync::mpsc::Receiver<Request>, remote: &Remote) {
    for request in questions {
        remote.send(Input::Person(request));
    }
}

/// Shows the run, and answers its question with the first option.
struct Answering {
    narrator: Narrator,
    remote: Option<std::sync::mpsc::Sender<Request>>,
}

impl Observer for Answering {
    fn event(&mut self, envelope: &Envelope, state: &Loop) {
        self.narrator.event(envelope, state);
        if let Event::QuestionRaised { id, .. } = &envelope.event
            && let Some(remote) = &self.remote
        {
            drop(remote.send(Request::Answer { question: *id, answer: Answer::Option { number: 1 } }));
        }
    }

    fn agent(&mut self, event: &wiggum_agents::AgentEvent) {
        self.narrator.agent(event);
    }

    fn check_output(&mut self, text: &str) {
        self.narrator.check_output(text);
    }

    fn waiting(&mut self, waiting: &wiggum_core::decide::Waiting, state: &Loop) {
        self.narrator.waiting(waiting, state);
    }
}
