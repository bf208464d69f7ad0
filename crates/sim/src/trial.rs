//! One world from its beginning to its end, and what is to be said of it.

use std::any::Any;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use wiggum_agents::{AgentEvent, AgentSpec, Family};
use wiggum_core::checker::{self, Rule};
use wiggum_core::decide::Waiting;
use wiggum_core::event::{EndReason, Envelope};
use wiggum_core::ids::LoopId;
use wiggum_core::policy::Policy;
use wiggum_core::state::Loop;
use wiggum_engine::checkout::{Checkout, StateRoot};
use wiggum_engine::error::chain;
use wiggum_engine::{Agent, Engine, EngineError, Observer, Outcome, Settings};
use wiggum_store::StoreError;
use wiggum_workspace::crash;

use crate::fault::Fault;
use crate::people::Edit;
use crate::theatre::Theatre;
use crate::tools::Toolbox;
use crate::verify;
use crate::world::{People, Setup, World};

/// Engines in one world: far more than its crashes, runs and interruptions together.
const MOST_ENGINES: u32 = 60;

/// What became of one simulated loop.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    pub seed: u64,
    /// What must not happen, and did.
    pub violations: Vec<String>,
    /// The rules of the checker among them.
    pub broken: Vec<Rule>,
    /// Why the last run ended; without one, a person is waited for.
    pub reason: Option<EndReason>,
    pub iterations: u32,
    pub tasks: usize,
    pub done: usize,
    pub engines: u32,
    pub crashes: u32,
    /// The time that its runs took, as the loop itself counts it.
    pub active: Duration,
    pub cost: f64,
    pub events: u64,
    /// What happened, where it was to be traced.
    pub trace: Vec<String>,
    pub journal: Vec<Envelope>,
}

/// Simulates the world of this seed in a directory of its own, which must be empty.
pub fn simulate(seed: u64, setup: &Setup, directory: &Path, trace: bool) -> io::Result<Trial> {
    let mut world = World::seeded(seed, setup);
    fs::create_dir(directory.join(WORKSPACE))?;
    let checkout = checkout(directory);
    fs::write(checkout.path().join(&world.backlog_name), &world.backlog)?;
    let theatre = Theatre::new(&mut world, checkout, trace);
    theatre.plan_moves(world.people, &mut world.rng.fork());
    let mut show =
        Show { world, theatre, directory: directory.to_owned(), trial: Trial { seed, ..Trial::default() } };
    show.play();
    // A mutant was in every fold of this world; who holds it against the rules goes by all of them.
    #[cfg(feature = "mutants")]
    wiggum_core::mutant::plant(None);
    Ok(show.account())
}

struct Show {
    world: World,
    theatre: Theatre,
    directory: PathBuf,
    trial: Trial,
}

/// How one engine ended.
enum End {
    Crashed,
    Failed(EngineError),
    Left(Outcome, Box<Loop>),
    Panicked(String),
}

impl Show {
    /// One engine after the other, until the loop is through or waits for a person.
    fn play(&mut self) {
        for _ in 0..MOST_ENGINES {
            self.trial.engines += 1;
            let goes_on = match self.run_engine() {
                End::Crashed => self.after_crash(),
                End::Failed(error) => self.after_failure(&error),
                End::Panicked(message) => self.complain(format!("the engine panicked: {message}")),
                End::Left(outcome, state) => self.after_end(&outcome, &state),
            };
            if !goes_on {
                return;
            }
            self.wait_for_next();
        }
        self.complain(format!("not through after {MOST_ENGINES} engines"));
    }

    fn run_engine(&mut self) -> End {
        let crash_at = self.next_crash();
        self.theatre.engine_begins(crash_at);
        let theatre = self.theatre.clone();
        let ask = move |point: &str| theatre.ends_at(point);
        let (settings, theatre, people) = (
            settings(&self.directory, &self.world.backlog_name, &self.world.policy, &self.world.agents),
            self.theatre.clone(),
            self.world.people,
        );
        let settings = Settings { tools: Some(Arc::new(Toolbox(theatre.clone()))), ..settings };
        let run = move || {
            let mut audience = Audience { theatre: theatre.clone(), people, waiting: None };
            let mut engine = Engine::open_on(Arc::new(theatre.clone()), settings, &mut audience)?;
            meet(&theatre, people, engine.loop_id(), engine.state());
            let outcome = engine.run()?;
            let state = engine.state().clone();
            drop(engine);
            theatre.stage().waits_for = audience.waiting;
            Ok((outcome, state))
        };
        let result = catch_unwind(AssertUnwindSafe(|| crash::until(ask, run)));
        self.theatre.engine_gone();
        match result {
            Err(panic) => End::Panicked(words(panic.as_ref())),
            Ok(None) => End::Crashed,
            Ok(Some(Err(error))) => End::Failed(error),
            Ok(Some(Ok((outcome, state)))) => End::Left(outcome, Box::new(state)),
        }
    }

    /// At which of its points the next engine is gone, if at any.
    fn next_crash(&mut self) -> Option<u64> {
        if u64::from(self.trial.crashes) >= self.world.crashes {
            return None;
        }
        let rng = &mut self.world.rng;
        let among = *rng.pick(&[15, 60, 250])?;
        Some(1 + rng.below(among))
    }

    fn after_crash(&mut self) -> bool {
        self.trial.crashes += 1;
        let (in_circles, point) = {
            let stage = self.theatre.stage();
            (stage.in_circles, stage.crashed_at.clone().unwrap_or_default())
        };
        if in_circles {
            return self.complain("the engine runs in circles".to_owned());
        }
        self.theatre.note(|| format!("       *** the engine is gone: {point}"));
        true
    }

    fn after_failure(&mut self, error: &EngineError) -> bool {
        self.theatre.note(|| format!("       *** the engine fails: {}", chain(error)));
        match error {
            EngineError::Store(StoreError::DiskFull { .. })
                if self.world.faults.contains(&Fault::FullDisk) =>
            {
                self.theatre.stage().disk.room = None;
                true
            }
            // It cannot start without a backlog; somebody will mend it.
            EngineError::Backlog(_) if self.theatre.stage().mended.is_some() => {
                self.theatre.stage().edit_backlog(Edit::Mend);
                true
            }
            _ => self.complain(format!("the engine failed: {}", chain(error))),
        }
    }

    fn after_end(&mut self, outcome: &Outcome, state: &Loop) -> bool {
        self.check_end(state);
        let rest = std::mem::take(&mut self.theatre.stage().nobody_comes);
        match outcome {
            Outcome::Interrupted { .. } if rest => {
                let waits_for = self.theatre.stage().waits_for.clone();
                if !matches!(
                    waits_for,
                    Some(Waiting::Answer { .. } | Waiting::Paused | Waiting::Backlog { .. })
                ) {
                    let what = waits_for.map_or("nothing".to_owned(), |waiting| waiting.to_string());
                    self.complain(format!("waits for ever, and not for a person: {what}"));
                }
                self.again_by_chance()
            }
            Outcome::Interrupted { .. } => true,
            Outcome::Ended { reason, .. } => {
                self.trial.reason = Some(*reason);
                *reason != EndReason::GoalAchieved && self.again_by_chance()
            }
        }
    }

    /// People may start it again, after they have seen to whatever it was.
    fn again_by_chance(&mut self) -> bool {
        let again = self.world.further_runs > 0 && self.world.people != People::Nobody;
        self.world.further_runs = self.world.further_runs.saturating_sub(1);
        if again {
            self.trial.reason = None;
        }
        again
    }

    /// What must be true whenever an engine left in order.
    fn check_end(&mut self, state: &Loop) {
        let running = self.theatre.running();
        if running > 0 {
            self.complain(format!("{running} programs outlive their engine"));
        }
        let journal = self.theatre.stage().witness.journal();
        match journal {
            Ok(journal) if Loop::fold(&journal) != *state => {
                self.complain("the state folded anew is not the state the engine had".to_owned());
            }
            Ok(_) => {}
            Err(problem) => {
                self.complain(problem);
            }
        }
    }

    fn wait_for_next(&mut self) {
        let rng = &mut self.world.rng;
        let how_long = rng.duration(Duration::from_secs(1), Duration::from_secs(4 * 3600));
        if self.world.faults.contains(&Fault::FullDisk) && rng.percent(10) {
            let room = rng.below(30);
            self.theatre.stage().disk.room = Some(room);
        }
        self.theatre.downtime(how_long);
    }

    fn complain(&mut self, violation: String) -> bool {
        self.trial.violations.push(violation);
        false
    }

    fn account(mut self) -> Trial {
        let journal = self.theatre.stage().witness.journal().unwrap_or_default();
        let state = Loop::fold(&journal);
        let mut stage = self.theatre.stage();
        self.trial.violations.append(&mut stage.violations);
        for violation in checker::check(&journal) {
            self.trial.violations.push(violation.to_string());
            self.trial.broken.push(violation.rule);
        }
        self.trial.violations.extend(verify::outcome(&journal, &state, &stage));
        if let Some(trace) = stage.trace.take() {
            (self.trial.trace, self.trial.journal) = (trace, journal.clone());
        }
        let counts = state.tasks.counts();
        (self.trial.tasks, self.trial.done) = (counts.total, counts.done);
        self.trial.iterations = state.iterations;
        self.trial.cost = state.usage.cost_usd;
        self.trial.events = state.seq;
        self.trial.active = Duration::from_millis(verify::active_ms(&journal));
        drop(stage);
        self.trial
    }
}

/// The workspace of a world, and where its state is.
pub(crate) fn checkout(directory: &Path) -> Checkout {
    Checkout::new(directory.join(WORKSPACE), &StateRoot::new(directory.join("state")))
}

/// Where agents work in a world's directory.
pub(crate) const WORKSPACE: &str = "workspace";

/// What an engine is given for a loop over this backlog, with scripted agents.
pub(crate) fn settings(directory: &Path, backlog_name: &str, policy: &Policy, agents: &[String]) -> Settings {
    let agent = |name: &String| {
        let spec = AgentSpec { name: name.clone(), ..AgentSpec::new(Family::Api) };
        Agent { name: name.clone(), driver: Family::driver(spec), env: Vec::new(), pass_env: Vec::new() }
    };
    Settings {
        name: "simulated".to_owned(),
        policy: policy.clone(),
        // Of this world alone.
        registry: Some(directory.join("registry").join("loops.db")),
        ..Settings::new(checkout(directory), backlog_name, agents.iter().map(agent).collect())
    }
}

/// An engine took the loop over: there is a journal to look at, and questions may wait.
fn meet(theatre: &Theatre, people: People, id: LoopId, state: &Loop) {
    {
        let mut stage = theatre.stage();
        stage.loop_id = Some(id);
        let begun = match stage.checkout.find() {
            Ok(Some(dir)) => stage.witness.begin(dir.database(), id),
            Ok(None) => Err("the loop has no store".to_owned()),
            Err(error) => Err(chain(&error)),
        };
        if let Err(problem) = begun {
            stage.violations.push(problem);
        }
    }
    for question in state.questions.keys() {
        theatre.consider(people, *question, state);
    }
}

struct Audience {
    theatre: Theatre,
    people: People,
    waiting: Option<Waiting>,
}

impl Observer for Audience {
    fn event(&mut self, envelope: &Envelope, state: &Loop) {
        self.theatre.seen(self.people, envelope, state);
    }

    fn agent(&mut self, _event: &AgentEvent) {}

    fn check_output(&mut self, _text: &str) {}

    fn waiting(&mut self, waiting: &Waiting, _state: &Loop) {
        self.waiting = Some(waiting.clone());
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a word".to_owned())
}
