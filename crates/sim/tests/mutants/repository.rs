//! Rules about the work tree, broken over a real one: there is no git in simulated worlds.
//!
//! Each scenario is a repository in a directory of its own, the real engine on the real machine and a
//! command as agent. Its journal goes to the checker.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use tempfile::TempDir;
use wiggum_agents::AgentEvent;
use wiggum_agents::command::{CommandAgent, PromptVia};
use wiggum_core::checker::{self, Rule, Violation};
use wiggum_core::decide::Waiting;
use wiggum_core::event::{Envelope, Event, Exit};
use wiggum_core::mutant::{Mutant, plant};
use wiggum_core::state::Loop;
use wiggum_engine::checkout::{Checkout, StateRoot};
use wiggum_engine::error::chain;
use wiggum_engine::{Agent, Changes, Engine, EngineError, Observer, Settings, checkpoints};
use wiggum_sim::fast_place;
use wiggum_store::Store;
use wiggum_workspace::process::{self, CommandLine, Launch};

struct Scenario {
    name: &'static str,
    /// What the agent does; `$WIGGUM_TASK_ID` and `$WIGGUM_ATTEMPT` say with what.
    agent: &'static str,
    /// Before each commit, if anything is done then.
    hook: Option<&'static str>,
    story: fn(&Place) -> Result<(), EngineError>,
    mutants: &'static [Mutant],
    /// What has to happen in it, or it shows nothing.
    happens: &'static [fn(&Event) -> bool],
}

const SCENARIOS: [Scenario; 4] = [
    Scenario {
        name: "A is left half done for a question, so B has to start without it",
        agent: r#"echo half > "$WIGGUM_TASK_ID.txt"; if [ "$WIGGUM_TASK_ID" = A ]; then
                  echo '<escalate type="stuck"><summary>Which?</summary><question>Which?</question></escalate>';
                  else echo '<promise>DONE</promise>'; fi"#,
        hook: None,
        story: |place| place.run(6),
        mutants: &[
            Mutant::ChecksFirst,
            Mutant::ForgetsWork,
            Mutant::KeepsTwice,
            Mutant::ResetsUnkept,
            Mutant::CarriesAcross,
        ],
        happens: &[
            |event| matches!(event, Event::WorkKept { .. }),
            |event| matches!(event, Event::WorkspaceReset { .. }),
            |event| matches!(event, Event::EvidenceGathered { .. }),
            |event| matches!(event, Event::TaskCompleted { commit: Some(_), .. }),
        ],
    },
    Scenario {
        name: "a hook refuses the commit",
        agent: r#"echo "$WIGGUM_ATTEMPT" > "$WIGGUM_TASK_ID.txt"; [ "$WIGGUM_ATTEMPT" = 1 ] || echo '<promise>DONE</promise>'"#,
        hook: Some("exit 1"),
        story: |place| place.run(6),
        mutants: &[Mutant::AcceptsEverything],
        happens: &[|event| matches!(event, Event::CommitRefused { .. })],
    },
    Scenario {
        name: "a hook alters the tree",
        agent: r#"echo "$WIGGUM_ATTEMPT" > "$WIGGUM_TASK_ID.txt"; [ "$WIGGUM_ATTEMPT" = 1 ] || echo '<promise>DONE</promise>'"#,
        hook: Some("[ -e formatted ] || { echo 1 > formatted; git add formatted; }"),
        story: |place| place.run(6),
        mutants: &[Mutant::AcceptsEverything, Mutant::TrustsAltered],
        happens: &[|event| matches!(event, Event::TreeAltered { .. })],
    },
    Scenario {
        name: "back to the first checkpoint, twice, and on from there",
        agent: r#"echo whole > "$WIGGUM_TASK_ID.txt"; echo '<promise>DONE</promise>'"#,
        hook: None,
        story: |place| {
            place.run(1)?;
            place.restore()?;
            place.restore()?;
            place.run(6)
        },
        mutants: &[Mutant::LeavesRestore, Mutant::RestoresAhead, Mutant::RestoresTwice],
        happens: &[|event| matches!(event, Event::Restored { .. })],
    },
];

/// Every rule that this mutant is seen to break in a repository.
pub(crate) fn broken_by(mutant: Mutant) -> Vec<Rule> {
    let meant = SCENARIOS.iter().filter(|scenario| scenario.mutants.contains(&mutant));
    meant.flat_map(|scenario| check(&scenario.play(Some(mutant)))).map(|violation| violation.rule).collect()
}

#[test]
fn without_a_mutant_no_rule_is_broken() {
    for scenario in &SCENARIOS {
        let journal = scenario.play(None);
        assert_eq!(check(&journal), vec![], "{}", scenario.name);
        for (number, happened) in scenario.happens.iter().enumerate() {
            let seen = journal.iter().any(|envelope| happened(&envelope.event));
            assert!(seen, "{}: what should have happened, number {number}, did not", scenario.name);
        }
    }
}

fn check(journal: &[Envelope]) -> Vec<Violation> {
    checker::check(journal)
}

impl Scenario {
    /// What is in the journal at the end, however the engine took it.
    fn play(&self, mutant: Option<Mutant>) -> Vec<Envelope> {
        let place = Place::new(self);
        plant(mutant);
        let told = catch_unwind(AssertUnwindSafe(|| (self.story)(&place)));
        // The checker goes by all rules.
        plant(None);
        if mutant.is_none() {
            told.expect("no panic").unwrap_or_else(|error| panic!("{}: {}", self.name, chain(&error)));
        }
        place.journal()
    }
}

struct Place {
    dir: TempDir,
    agent: &'static str,
}

impl Place {
    fn new(scenario: &Scenario) -> Self {
        let dir = tempfile::tempdir_in(fast_place()).expect("a place for a repository");
        let path = &dir.path().join("repository");
        fs::create_dir(path).expect("a directory for the repository");
        git(path, &["init", "--quiet"]);
        for (name, value) in
            [("user.name", "a"), ("user.email", "a@example.org"), ("core.hooksPath", ".git/hooks")]
        {
            git(path, &["config", name, value]);
        }
        let backlog = r#"[{"id": "A", "description": "a", "status": "pending"}, {"id": "B", "description": "b", "status": "pending"}]"#;
        fs::write(path.join("tasks.json"), backlog).expect("a backlog");
        git(path, &["add", "tasks.json"]);
        git(path, &["commit", "--quiet", "-m", "Begin"]);
        if let Some(hook) = scenario.hook {
            let file = path.join(".git/hooks/pre-commit");
            fs::create_dir_all(path.join(".git/hooks")).expect("a directory for hooks");
            fs::write(&file, format!("#!/bin/sh\n{hook}\n")).expect("a hook");
            executable(&file);
        }
        Self { dir, agent: scenario.agent }
    }

    fn checkout(&self) -> Checkout {
        Checkout::new(self.dir.path().join("repository"), &StateRoot::new(self.dir.path().join("state")))
    }

    fn settings(&self, iterations: u32) -> Settings {
        let driver = CommandAgent { line: self.agent.to_owned(), prompt_via: PromptVia::Stdin };
        let name = "scripted".to_owned();
        let agent = Agent { name, driver: Box::new(driver), env: Vec::new(), pass_env: Vec::new() };
        let mut settings = Settings::new(self.checkout(), "tasks.json", vec![agent]);
        settings.policy.checks.verify = vec!["test -s \"$WIGGUM_TASK_ID.txt\"".to_owned()];
        settings.policy.limits.iterations = Some(iterations);
        settings.policy.retry.max_retries = 2;
        settings
    }

    fn run(&self, iterations: u32) -> Result<(), EngineError> {
        Engine::open(self.settings(iterations), &mut Nobody)?.run().map(drop)
    }

    fn restore(&self) -> Result<(), EngineError> {
        let (store, id) = self.store();
        let first = checkpoints::list(&store, id).expect("checkpoints").remove(0);
        drop(store);
        let restored =
            Engine::open(self.settings(1), &mut Nobody)?.restore(first.id, Changes::Keep, "somebody");
        restored.map(drop)
    }

    fn store(&self) -> (Store, wiggum_core::ids::LoopId) {
        let store = Store::open(&self.checkout().find().expect("a look").expect("a state").database())
            .expect("a store");
        let id = store.loops().expect("loops").first().expect("a loop").id;
        (store, id)
    }

    fn journal(&self) -> Vec<Envelope> {
        let (store, id) = self.store();
        store.read(id, 0).expect("a journal")
    }
}

/// Started as the engine starts it: the engine on the next thread would take a child that it does not know
/// of for an orphan.
fn git(dir: &Path, args: &[&str]) {
    let done = process::run(Launch::new(CommandLine::new("git", args), dir)).expect("git");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.exit, Exit::Code { code: 0 }, "git {args:?}: {said}");
}

fn executable(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("an executable hook");
}

struct Nobody;

impl Observer for Nobody {
    fn event(&mut self, _: &Envelope, _: &Loop) {}
    fn agent(&mut self, _: &AgentEvent) {}
    fn check_output(&mut self, _: &str) {}
    fn waiting(&mut self, _: &Waiting, _: &Loop) {}
}
