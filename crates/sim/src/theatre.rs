//! The host of a simulated loop: virtual time, and programs that are scripts.
//!
//! Nothing here waits. When the engine does, the next thing that is due happens at once and the clock
//! says so; where nothing will ever happen again, the engine is told to leave.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use wiggum_agents::api;
use wiggum_backlog::Backlog;
use wiggum_core::budget::Ceiling;
use wiggum_core::decide::Waiting;
use wiggum_core::event::Exit;
use wiggum_core::ids::LoopId;
use wiggum_core::stream::Stream;
use wiggum_core::task::FileStatus;
use wiggum_engine::checkout::Checkout;
use wiggum_engine::{Host, Input, Program};
use wiggum_store::{Holder, Options, Store, StoreError};
use wiggum_workspace::crash;
use wiggum_workspace::git::{Git, GitError};
use wiggum_workspace::process::{Ended, Grace, Launch, LaunchError, Sink, Stop, Tip, Tool, Watchdog};

use crate::act::{Act, Mix, Performance, Work};
use crate::fault::Fault;
use crate::people::Move;
use crate::rng::Rng;
use crate::witness::Witness;
use crate::world::World;

/// Where simulated worlds begin.
const BEGINNING: i64 = 1_767_225_600;

/// More than any engine of a simulated world needs: one that waits so often, or looks at the clock so
/// often without ever waiting, runs in circles.
const MOST_WAITS: u64 = 10_000;
const MOST_LOOKS: u64 = 10_000;

#[derive(Clone)]
pub(crate) struct Theatre {
    /// Nanoseconds since the beginning.
    time: Arc<AtomicU64>,
    /// How often the engine looked at the clock since it last waited.
    looks: Arc<AtomicU64>,
    stage: Arc<Mutex<Stage>>,
}

pub(crate) struct Stage {
    pub(crate) rng: Rng,
    pub(crate) workspace: PathBuf,
    pub(crate) checkout: Checkout,
    pub(crate) backlog_name: String,
    mix: Mix,
    faults: Vec<Fault>,
    /// What the clock on the wall is off by.
    wall_off: SignedDuration,
    /// What will happen, in the order of time.
    due: BTreeMap<(Duration, u64), Step>,
    steps: u64,
    programs: BTreeMap<u64, Script>,
    wake: Option<Arc<dyn Fn() + Send + Sync>>,
    pub(crate) loop_id: Option<LoopId>,
    /// Which engine this is; those before are gone.
    pub(crate) engine: u32,
    pub(crate) disk: Disk,
    pub(crate) witness: Witness,
    /// What the dearest answer of a model cost so far.
    pub(crate) dearest_answer: f64,
    pub(crate) nobody_comes: bool,
    /// What the last engine waited for when it left.
    pub(crate) waits_for: Option<Waiting>,
    /// The backlog as it was before somebody broke it.
    pub(crate) mended: Option<String>,
    /// Tasks that a person set to done, before the loop began or since.
    pub(crate) done_by_hand: BTreeSet<String>,
    /// How long the journal was when an old copy of the backlog came back.
    pub(crate) unticked_at: Option<usize>,
    waits: u64,
    points: u64,
    crash_at: Option<u64>,
    /// Where the plug was pulled, for people to read.
    pub(crate) crashed_at: Option<String>,
    pub(crate) in_circles: bool,
    pub(crate) violations: Vec<String>,
    pub(crate) trace: Option<Vec<String>>,
}

/// A program that is a script.
struct Script {
    /// Nobody listens any more once the engine that started it is gone.
    sink: Option<Box<dyn Sink>>,
    started: Duration,
    task: String,
    work: Option<Work>,
    deaf: bool,
    /// Its tools use the processor all the time.
    busy: bool,
    stopping: Option<Stop>,
}

pub(crate) enum Step {
    Say(u64, String),
    Work(u64),
    End(u64, Exit),
    Person(Move),
}

/// How the journal's disk behaves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Disk {
    /// Appends until it is full; then nothing can be written until somebody makes room.
    pub(crate) room: Option<u64>,
    slow: bool,
}

/// What the backlog says is done before anybody works on it.
fn done_before(world: &World) -> BTreeSet<String> {
    let Ok(backlog) = Backlog::parse(&world.backlog_name, world.backlog.as_str()) else {
        return BTreeSet::new();
    };
    let done = backlog.tasks().iter().filter(|task| task.status == FileStatus::Done);
    done.map(|task| task.id.to_string()).collect()
}

impl Theatre {
    pub(crate) fn new(world: &mut World, checkout: Checkout, trace: bool) -> Self {
        let stage = Stage {
            rng: world.rng.fork(),
            workspace: checkout.path().to_owned(),
            checkout,
            backlog_name: world.backlog_name.clone(),
            mix: world.mix.clone(),
            faults: world.faults.clone(),
            wall_off: SignedDuration::ZERO,
            due: BTreeMap::new(),
            steps: 0,
            programs: BTreeMap::new(),
            wake: None,
            loop_id: None,
            engine: 0,
            disk: Disk { room: None, slow: world.faults.contains(&Fault::SlowDisk) },
            witness: Witness::default(),
            dearest_answer: 0.0,
            nobody_comes: false,
            waits_for: None,
            mended: None,
            done_by_hand: done_before(world),
            unticked_at: None,
            waits: 0,
            points: 0,
            crash_at: None,
            crashed_at: None,
            in_circles: false,
            violations: Vec::new(),
            trace: trace.then(Vec::new),
        };
        Self { time: Arc::default(), looks: Arc::default(), stage: Arc::new(Mutex::new(stage)) }
    }

    pub(crate) fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Duration {
        Duration::from_nanos(self.time.load(Ordering::Relaxed))
    }

    fn pass(&self, until: Duration) {
        let nanos = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
        self.time.fetch_max(nanos, Ordering::Relaxed);
    }

    pub(crate) fn note(&self, line: impl FnOnce() -> String) {
        let now = self.now();
        if let Some(trace) = &mut self.stage().trace {
            trace.push(format!("{:>12.3} {}", now.as_secs_f64(), line()));
        }
    }

    pub(crate) fn plan(&self, after: Duration, step: Step) {
        let at = self.now() + after;
        self.stage().plan(at, step);
    }

    /// Another engine begins. It may end at any of its points.
    pub(crate) fn engine_begins(&self, crash_at: Option<u64>) {
        let mut stage = self.stage();
        stage.engine += 1;
        (stage.points, stage.waits) = (0, 0);
        stage.crash_at = crash_at;
        stage.crashed_at = None;
    }

    /// The engine is gone: nobody hears what it started, which goes on all the same.
    pub(crate) fn engine_gone(&self) {
        let mut stage = self.stage();
        stage.wake = None;
        for script in stage.programs.values_mut() {
            script.sink = None;
        }
    }

    /// Time passes while no engine runs.
    pub(crate) fn downtime(&self, how_long: Duration) {
        let until = self.now() + how_long;
        while let Some((at, step)) = self.next_due(Some(until)) {
            self.pass(at);
            self.perform(step);
        }
        self.pass(until);
        let mut stage = self.stage();
        if stage.faults.contains(&Fault::ClockJump) && stage.rng.percent(30) {
            let hours = i64::try_from(stage.rng.below(96)).unwrap_or(0) - 48;
            stage.wall_off += SignedDuration::from_hours(hours);
        }
    }

    /// What is asked at every point of the engine: is this its end?
    pub(crate) fn ends_at(&self, point: &str) -> bool {
        let mut stage = self.stage();
        stage.points += 1;
        if stage.waits > MOST_WAITS || self.looks.load(Ordering::Relaxed) > MOST_LOOKS {
            stage.in_circles = true;
            return true;
        }
        if stage.crash_at == Some(stage.points) {
            stage.crashed_at = Some(point.to_owned());
            return true;
        }
        false
    }

    /// Programs that run, heard or not.
    pub(crate) fn running(&self) -> usize {
        self.stage().programs.len()
    }

    /// The next thing that is due, at the latest then.
    fn next_due(&self, until: Option<Duration>) -> Option<(Duration, Step)> {
        let mut stage = self.stage();
        let (&(at, _), _) = stage.due.first_key_value()?;
        if until.is_some_and(|until| at > until) {
            return None;
        }
        stage.due.pop_first().map(|((at, _), step)| (at, step))
    }

    fn perform(&self, step: Step) -> Option<Input> {
        match step {
            Step::Say(id, text) => {
                self.with_sink(id, |sink| sink.output(Stream::Stdout, text.as_bytes()));
                None
            }
            Step::Work(id) => {
                self.stage().do_work(id);
                None
            }
            Step::End(id, exit) => {
                let script = self.stage().programs.remove(&id)?;
                let duration = self.now().saturating_sub(script.started);
                if let Some(mut sink) = script.sink {
                    sink.ended(Ended { exit, duration, ended_processes: 0 });
                }
                None
            }
            Step::Person(made) => self.make(made),
        }
    }

    /// A sink may look at the clock, so the stage is not held meanwhile.
    fn with_sink(&self, id: u64, tell: impl FnOnce(&mut dyn Sink)) {
        let sink = self.stage().programs.get_mut(&id).and_then(|script| script.sink.take());
        let Some(mut sink) = sink else { return };
        tell(sink.as_mut());
        if let Some(script) = self.stage().programs.get_mut(&id) {
            script.sink = Some(sink);
        }
    }

    pub(crate) fn wake_engine(&self) {
        let wake = self.stage().wake.clone();
        if let Some(wake) = wake {
            wake();
        }
    }

    pub(crate) fn wall_now(&self) -> Timestamp {
        let off = self.stage().wall_off;
        let beginning = Timestamp::from_second(BEGINNING).unwrap_or_default();
        let now = beginning.saturating_add(self.now()).and_then(|at| at.saturating_add(off));
        now.unwrap_or(Timestamp::MAX)
    }

    pub(crate) fn store_options(&self) -> Options {
        let theatre = self.clone();
        Options {
            durable: false,
            disk: Some(Arc::new(move || theatre.write_to_disk())),
            ..Options::default()
        }
    }

    fn write_to_disk(&self) -> io::Result<()> {
        let mut stage = self.stage();
        if stage.disk.room == Some(0) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        stage.disk.room = stage.disk.room.map(|room| room - 1);
        if stage.disk.slow && stage.rng.percent(5) {
            let took = stage.rng.duration(Duration::from_millis(100), Duration::from_secs(20));
            drop(stage);
            self.pass(self.now() + took);
        }
        Ok(())
    }

    /// Something started by the engine, and what its journal says of it at that moment.
    fn start_agent(&self, launch: &Launch, id: u64) -> Script {
        let value = |name: &str| variable(launch, name);
        let session = launch.command.args.windows(2).find_map(|pair| {
            let is_session = pair[0] == *"--session" || pair[0] == *"--resume";
            is_session.then(|| pair[1].to_string_lossy().into_owned())
        });
        let (wall, now) = (self.wall_now(), self.now());
        let mut stage = self.stage();
        let task = value("WIGGUM_TASK_ID");
        stage.expect_intention(&task, &value("WIGGUM_ITERATION"), &value("WIGGUM_ATTEMPT"));
        let mix = stage.mix.clone();
        let act = mix.pick(&mut stage.rng);
        let performance = Performance::of(act, wall, session, &mut stage.rng);
        stage.dearest_answer = stage.dearest_answer.max(performance.dearest());
        let performance = performance.within(ceiling(launch));
        for (at, line) in performance.lines {
            let text = serde_json::to_string(&line).unwrap_or_default() + "\n";
            stage.plan(now + at, Step::Say(id, text));
        }
        if performance.work.is_some() {
            stage.plan(now + performance.work_at, Step::Work(id));
        }
        if let Some((at, exit)) = performance.end {
            stage.plan(now + at, Step::End(id, exit));
        }
        let (deaf, busy) = (performance.act == Act::Hang, performance.act == Act::Build);
        drop(stage);
        self.note(|| format!("       agent on {task}: {}", act.name()));
        Script { sink: None, started: now, task, work: performance.work, deaf, busy, stopping: None }
    }

    fn start_check(&self, launch: &Launch, id: u64) -> Script {
        let task = variable(launch, "WIGGUM_TASK_ID");
        let now = self.now();
        let mut stage = self.stage();
        let passes = stage.is_done(&task);
        let quick = stage.rng.percent(50);
        let longest = if quick { Duration::from_millis(9) } else { Duration::from_secs(300) };
        let took = stage.rng.duration(Duration::from_millis(1), longest);
        let hangs = stage.faults.contains(&Fault::Hang) && stage.rng.percent(1);
        let said = if passes { "all well\n" } else { "it is not there\n" };
        stage.plan(now + took / 2, Step::Say(id, said.to_owned()));
        if !hangs {
            stage.plan(now + took, Step::End(id, Exit::Code { code: i32::from(!passes) }));
        }
        Script { sink: None, started: now, task, work: None, deaf: hangs, busy: false, stopping: None }
    }
}

impl Stage {
    fn plan(&mut self, at: Duration, step: Step) {
        self.steps += 1;
        self.due.insert((at, self.steps), step);
    }

    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    pub(crate) fn backlog_path(&self) -> PathBuf {
        self.workspace.join(&self.backlog_name)
    }

    /// Nothing is done whose intention is not on record.
    fn expect_intention(&mut self, task: &str, iteration: &str, attempt: &str) {
        let started = (task.to_owned(), iteration.to_owned(), attempt.to_owned());
        let recorded = match self.witness.iteration_under_way() {
            Ok(recorded) => recorded,
            Err(problem) => return self.violations.push(problem),
        };
        if recorded.as_ref() != Some(&started) {
            let found = recorded.map_or("none".to_owned(), |(task, n, _)| format!("iteration {n} on {task}"));
            self.violations.push(format!(
                "an agent was started on {task} (iteration {iteration}, attempt {attempt}), on record was {found}"
            ));
        }
    }

    fn work_file(&self, task: &str) -> PathBuf {
        let plain: String = task.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        self.workspace.join("work").join(plain)
    }

    /// Is the work of this task really there?
    pub(crate) fn is_done(&self, task: &str) -> bool {
        fs::read_to_string(self.work_file(task)).is_ok_and(|text| text.contains("whole"))
    }

    fn do_work(&mut self, id: u64) {
        let Some(script) = self.programs.get(&id) else { return };
        let (Some(work), task) = (script.work, script.task.clone()) else { return };
        let path = self.work_file(&task);
        let mut text = fs::read_to_string(&path).unwrap_or_default();
        text.push_str(if work == Work::Half { "half\n" } else { "whole\n" });
        let written = fs::create_dir_all(self.workspace.join("work")).and_then(|()| fs::write(&path, text));
        if let Err(error) = written {
            self.violations.push(format!("the simulation cannot write {}: {error}", path.display()));
        }
        if work == Work::WholeAndStatuses {
            crate::people::write_statuses(self, &task);
        }
    }
}

/// What an agent is told that it may use.
fn ceiling(launch: &Launch) -> Ceiling {
    let told = |flag: &str| {
        let arguments = launch.command.args.iter().filter_map(|argument| argument.to_str());
        arguments.filter_map(|argument| argument.strip_prefix(flag)?.strip_prefix('=')).next()
    };
    Ceiling {
        cost_usd: told("--max-cost").and_then(|limit| limit.parse().ok()),
        tokens: told("--max-tokens").and_then(|limit| limit.parse().ok()),
    }
}

fn variable(launch: &Launch, name: &str) -> String {
    let found = launch.env.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.to_string_lossy().into_owned()).unwrap_or_default()
}

impl Host for Theatre {
    fn wall(&self) -> Timestamp {
        self.wall_now()
    }

    fn steady(&self) -> Duration {
        if self.looks.fetch_add(1, Ordering::Relaxed) > MOST_LOOKS {
            crash::point("in circles");
        }
        self.now()
    }

    fn wait(&self, inputs: &Receiver<Input>, limit: Option<Duration>) -> Option<Input> {
        self.stage().waits += 1;
        self.looks.store(0, Ordering::Relaxed);
        crash::point("waiting");
        if let Ok(input) = inputs.try_recv() {
            return Some(input);
        }
        let until = limit.map(|limit| self.now() + limit);
        while let Some((at, step)) = self.next_due(until) {
            self.pass(at);
            let input = self.perform(step).or_else(|| inputs.try_recv().ok());
            if input.is_some() {
                return input;
            }
        }
        match until {
            Some(until) => {
                self.pass(until);
                None
            }
            None => {
                self.stage().nobody_comes = true;
                Some(Input::Interrupt("nobody comes"))
            }
        }
    }

    fn launch(&self, launch: Launch, sink: Box<dyn Sink>) -> Result<Box<dyn Program>, LaunchError> {
        let id = {
            let mut stage = self.stage();
            stage.steps += 1;
            stage.steps
        };
        let is_agent = launch.command.args.iter().any(|argument| argument == api::COMMAND);
        let script = if is_agent { self.start_agent(&launch, id) } else { self.start_check(&launch, id) };
        self.stage().programs.insert(id, Script { sink: Some(sink), ..script });
        Ok(Box::new(Started { theatre: self.clone(), id }))
    }

    /// There is nothing beside a loop here: it is done at once.
    fn beside(&self, job: Box<dyn FnOnce() + Send>) {
        job();
    }

    fn end_marked(&self, _name: &str, _value: &str) -> u32 {
        let mut stage = self.stage();
        let ended = std::mem::take(&mut stage.programs);
        stage.due.retain(|_, step| matches!(step, Step::Person(_)));
        u32::try_from(ended.len()).unwrap_or(u32::MAX)
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
        let simulated = || "simulated".to_owned();
        Holder { pid: self.stage().engine, started: simulated(), boot: simulated(), host: simulated() }
    }

    fn is_alive(&self, holder: &Holder) -> bool {
        holder.pid == self.stage().engine
    }

    fn open_store(&self, path: &Path) -> Result<Store, StoreError> {
        Store::open_with(path, self.store_options())
    }

    fn repository(&self, _workspace: &Path) -> Result<Option<Git>, GitError> {
        Ok(None)
    }

    fn watch(&self, _places: &[PathBuf], wake: Arc<dyn Fn() + Send + Sync>) -> Option<Box<dyn Send>> {
        self.stage().wake = Some(wake);
        None
    }
}

struct Started {
    theatre: Theatre,
    id: u64,
}

impl Program for Started {
    fn tools(&self) -> Option<Vec<Tool>> {
        let now = self.theatre.now();
        let at_work = |script: &Script| {
            let used = now.saturating_sub(script.started);
            script.busy.then_some(Tool { pid: 2, start: self.id, used }).into_iter().collect()
        };
        self.theatre.stage().programs.get(&self.id).map(at_work)
    }

    fn stop(&self, why: Stop, grace: Grace) {
        let now = self.theatre.now();
        let mut stage = self.theatre.stage();
        let Some(script) = stage.programs.get_mut(&self.id) else { return };
        let why = *script.stopping.get_or_insert(why);
        let deaf = script.deaf;
        let longest = grace.int + grace.term;
        let after = if deaf { longest } else { stage.rng.duration(Duration::ZERO, grace.int) };
        let exit = match why {
            Stop::TimedOut => Exit::TimedOut,
            Stop::Asked if deaf => Exit::Signal { signal: 9 },
            Stop::Asked => Exit::Code { code: 130 },
        };
        let id = self.id;
        stage.due.retain(|(at, _), step| match step {
            Step::Say(of, _) | Step::Work(of) => *of != id || *at <= now,
            Step::End(of, _) => *of != id,
            Step::Person(_) => true,
        });
        stage.plan(now + after, Step::End(id, exit));
    }
}
