//! Many loops at once in one process, in real time: agents are scripts that one clock ends for all.
//!
//! Nothing goes wrong here. It is about what a loop costs when it is one of a thousand.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use wiggum_agents::{AgentEvent, api};
use wiggum_core::decide::Waiting;
use wiggum_core::event::{EndReason, Envelope, Exit, Usage};
use wiggum_core::policy::{Baseline, Policy};
use wiggum_core::state::Loop;
use wiggum_core::stream::Stream;
use wiggum_engine::error::chain;
use wiggum_engine::{Engine, Host, Input, Machine, Observer, Outcome, Program, Settings};
use wiggum_store::{Holder, Options, Store, StoreError};
use wiggum_workspace::git::{Git, GitError};
use wiggum_workspace::process::{Ended, Grace, Launch, LaunchError, Sink, Stop, Tip, Watchdog};

use crate::trial::{WORKSPACE, settings};
use crate::world::CHECK;

/// Enough for an engine, also in a build without optimisation.
const STACK: usize = 1 << 20;

/// What a crowd of loops has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crowd {
    /// Loops that have done all of their tasks.
    pub finished: usize,
    pub iterations: u64,
}

/// Runs so many loops at the same time, each over so many tasks in a directory of its own below this
/// one. An agent takes so long for an attempt, in which its loop waits.
pub fn crowd(loops: usize, tasks: usize, took: Duration, place: &Path) -> io::Result<Crowd> {
    let stage = Arc::new(Stage { machine: Machine::new(), clock: Clock::start()?, took });
    let threads: Vec<thread::JoinHandle<Result<u64, String>>> = (0..loops)
        .map(|number| {
            let directory = place.join(number.to_string());
            fs::create_dir_all(directory.join(WORKSPACE))?;
            fs::write(directory.join(WORKSPACE).join("tasks.json"), backlog(tasks))?;
            let stage = Arc::clone(&stage);
            thread::Builder::new()
                .name(format!("loop {number}"))
                .stack_size(STACK)
                .spawn(move || one(stage, &directory))
        })
        .collect::<io::Result<_>>()?;
    let mut crowd = Crowd::default();
    for thread in threads {
        let iterations = thread.join().unwrap_or_else(|_| Err("a loop panicked".to_owned()));
        crowd.iterations += iterations.map_err(io::Error::other)?;
        crowd.finished += 1;
    }
    Ok(crowd)
}

fn backlog(tasks: usize) -> String {
    let task = |number| serde_json::json!({ "id": format!("T{number}"), "description": "something to be done", "status": "pending" });
    serde_json::Value::Array((0..tasks).map(task).collect()).to_string()
}

fn one(stage: Arc<Stage>, directory: &Path) -> Result<u64, String> {
    let mut policy = Policy::default();
    policy.limits.iterations = None;
    policy.checks.verify = vec![CHECK.to_owned()];
    policy.checks.baseline = Baseline::Off;
    policy.agents.order = vec!["agent".to_owned()];
    // Nothing in a plain directory tells one attempt from the next.
    policy.limits.no_progress = 0;
    let settings = settings(directory, "tasks.json", &policy, &["agent".to_owned()]);
    let settings = Settings { registry: None, ..settings };
    let mut nobody = Nobody;
    let mut engine = Engine::open_on(stage, settings, &mut nobody).map_err(|error| chain(&error))?;
    match engine.run().map_err(|error| chain(&error))? {
        Outcome::Ended { reason: EndReason::GoalAchieved, .. } => Ok(u64::from(engine.state().iterations)),
        outcome => Err(format!("a loop ended otherwise: {outcome:?}")),
    }
}

struct Stage {
    machine: Machine,
    clock: Clock,
    took: Duration,
}

impl Host for Stage {
    fn wall(&self) -> Timestamp {
        self.machine.wall()
    }

    fn steady(&self) -> Duration {
        self.machine.steady()
    }

    fn wait(&self, inputs: &Receiver<Input>, limit: Option<Duration>) -> Option<Input> {
        self.machine.wait(inputs, limit)
    }

    fn launch(&self, launch: Launch, sink: Box<dyn Sink>) -> Result<Box<dyn Program>, LaunchError> {
        let is_agent = launch.command.args.iter().any(|argument| argument == api::COMMAND);
        let took = if is_agent { self.took } else { Duration::from_millis(1) };
        self.clock.end(sink, is_agent, took);
        Ok(Box::new(Unstoppable))
    }

    fn beside(&self, job: Box<dyn FnOnce() + Send>) {
        self.machine.beside(job);
    }

    fn end_marked(&self, _name: &str, _value: &str) -> u32 {
        0
    }

    /// Nothing outlives a simulated engine.
    fn watch_over(
        &self,
        _program: &Path,
        _name: &str,
        _value: &str,
        _lock: &Path,
        _tip: Option<Tip<'_>>,
    ) -> std::io::Result<Option<Watchdog>> {
        Ok(None)
    }

    fn identity(&self) -> Holder {
        self.machine.identity()
    }

    fn is_alive(&self, holder: &Holder) -> bool {
        self.machine.is_alive(holder)
    }

    fn open_store(&self, path: &Path) -> Result<Store, StoreError> {
        Store::open_with(path, Options { frugal: true, ..Options::default() })
    }

    fn repository(&self, _workspace: &Path) -> Result<Option<Git>, GitError> {
        Ok(None)
    }

    /// A thousand watchers are more than most systems give; nobody asks anything of these loops.
    fn watch(&self, _places: &[PathBuf], _wake: Arc<dyn Fn() + Send + Sync>) -> Option<Box<dyn Send>> {
        None
    }
}

/// One thread that ends what is due.
struct Clock {
    sender: Sender<Due>,
}

struct Due {
    took: Duration,
    is_agent: bool,
    sink: Box<dyn Sink>,
}

impl Clock {
    fn start() -> io::Result<Self> {
        let (sender, receiver) = channel();
        thread::Builder::new().name("clock".to_owned()).spawn(move || tick(&receiver))?;
        Ok(Self { sender })
    }

    fn end(&self, mut sink: Box<dyn Sink>, is_agent: bool, took: Duration) {
        if is_agent {
            let started = api::Line::Started { model: "scripted".to_owned(), session: None };
            sink.output(Stream::Stdout, &line(&started));
        }
        drop(self.sender.send(Due { took, is_agent, sink }));
    }
}

fn tick(receiver: &Receiver<Due>) {
    let machine = Machine::new();
    let mut waiting: BTreeMap<(Duration, u64), Due> = BTreeMap::new();
    for number in 0.. {
        let now = machine.steady();
        while let Some(entry) = waiting.first_entry().filter(|entry| entry.key().0 <= now) {
            entry.remove().finish();
        }
        let left = waiting.keys().next().map(|(at, _)| at.saturating_sub(now));
        match receiver.recv_timeout(left.unwrap_or(Duration::from_secs(3600))) {
            Ok(due) => drop(waiting.insert((machine.steady() + due.took, number), due)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl Due {
    fn finish(self) {
        let Self { took, is_agent, mut sink } = self;
        if is_agent {
            let usage = Usage { input_tokens: 1000, output_tokens: 100, ..Usage::default() };
            sink.output(Stream::Stdout, &line(&api::Line::Usage { usage, context: None }));
            let message = "All of it is there.\n\n<promise>DONE</promise>".to_owned();
            sink.output(Stream::Stdout, &line(&api::Line::Finished { message }));
        }
        sink.ended(Ended { exit: Exit::Code { code: 0 }, duration: took, ended_processes: 0 });
    }
}

fn line(line: &api::Line) -> Vec<u8> {
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    text
}

struct Unstoppable;

impl Program for Unstoppable {
    fn stop(&self, _why: Stop, _grace: Grace) {}
}

struct Nobody;

impl Observer for Nobody {
    fn event(&mut self, _envelope: &Envelope, _state: &Loop) {}
    fn agent(&mut self, _event: &AgentEvent) {}
    fn check_output(&mut self, _text: &str) {}
    fn waiting(&mut self, _waiting: &Waiting, _state: &Loop) {}
}
