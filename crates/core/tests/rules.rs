//! Rules of the checker that are seen to fail over histories that break them.

#[expect(dead_code, reason = "each test file uses its part of this")]
mod support;

use support::{Mood, World};
use wiggum_core::checker::{Rule, check};
use wiggum_core::event::{BaselineOutcome, BlobRef, Event, Verdict};

fn world() -> World {
    let mut world = World::new(1, Mood::Diligent);
    world.policy.checks.verify = vec!["make test".to_owned()];
    world
}

fn broken(world: &World) -> Vec<Rule> {
    check(&world.journal).into_iter().map(|violation| violation.rule).collect()
}

#[test]
fn an_agent_that_starts_although_the_checks_fail_already() {
    let mut world = world();
    world.red_baseline = true;
    world.start(&["a"]);
    world.run_until(|event| matches!(event, Event::QuestionRaised { .. }));
    world.push(Event::IterationStarted {
        iteration: 1,
        task: "a".into(),
        attempt: 1,
        base: None,
        branch: None,
        carried: None,
        command: String::new(),
        agent: String::new(),
        session: None,
        workspace: String::new(),
        prompt: BlobRef::default(),
        accepted: false,
    });
    assert_eq!(broken(&world), [Rule::BaselineSettled]);
    let (tree, command) = (world.state.baseline.tree.clone(), "make test".to_owned());
    let outcome = BaselineOutcome::Green;
    world.push(Event::BaselineChecked { tree, command, outcome, evidence: None });
    assert_eq!(broken(&world), [Rule::BaselineSettled, Rule::UntouchedTree]);
}

#[test]
fn work_that_is_accepted_against_the_former_definition_of_its_checks() {
    for passes in [Some(false), None] {
        let mut world = world();
        world.redefines = Some(false);
        world.start(&["a"]);
        let stop = |event: &Event| match passes {
            Some(_) => matches!(event, Event::EvidenceGathered { evidence, .. } if evidence.former),
            None => matches!(event, Event::WorkInspected { .. }),
        };
        world.run_until(stop);
        let open = world.state.open.here().cloned().unwrap();
        let (iteration, attempt) = (open.iteration, open.attempt);
        let verdict = Verdict::Accepted { verified: true };
        world.push(Event::Judged { iteration, attempt, verdict, signals: Vec::new() });
        assert_eq!(broken(&world), [Rule::AcceptedFormer], "{passes:?}");
    }
}

/// An interrupted task keeps the number of its iteration; others get new ones.
#[test]
fn the_number_of_an_interrupted_iteration_goes_to_its_own_task() {
    let mut world = world();
    world.start(&["a", "b"]);
    world.run_until(|event| matches!(event, Event::IterationStarted { .. }));
    let open = world.state.open.here().cloned().unwrap();
    world.push(Event::Interrupted {
        iteration: open.iteration,
        attempt: open.attempt,
        reason: "a crash".to_owned(),
        ended_processes: 0,
        kept: None,
    });
    let number = |task: &str| world.state.next_number(&task.into());
    assert_eq!((open.task.as_str(), open.iteration, number("a"), number("b")), ("a", 1, 1, 2));
    assert_eq!(world.state.total_iterations(), 0);
    assert_eq!(broken(&world), []);
}
