//! The circuit breaker over iterations, tasks and runs, in virtual time.

#[expect(dead_code, reason = "each test file uses its part of this")]
mod support;

use support::{Mood, World};
use wiggum_core::breaker::Phase;
use wiggum_core::checker;
use wiggum_core::decide::{Waiting, decide};
use wiggum_core::event::{Answer, EndReason, Event, Trouble};
use wiggum_core::state::Loop;

fn world(mood: Mood, tasks: &[&str], set: impl FnOnce(&mut World)) -> World {
    let mut world = World::new(1, mood);
    set(&mut world);
    world.start(tasks);
    world
}

/// A loop whose first run ended with an open breaker, after three idle iterations.
fn opened() -> World {
    let mut world = world(Mood::Idle, &["a", "b"], |_| {});
    world.run();
    assert_eq!(world.ended(), EndReason::CircuitBreakerOpen);
    assert_eq!(world.state.run.iterations, 3);
    world
}

fn waits(world: &World) -> bool {
    matches!(decide(&world.state, world.now).waiting, Some(Waiting::Breaker { .. }))
}

fn iterations(world: &World) -> usize {
    world.journal.iter().filter(|e| matches!(e.event, Event::IterationStarted { .. })).count()
}

fn sound(world: &World) {
    assert_eq!(checker::check(&world.journal), vec![]);
    // What is known of it comes from the journal alone.
    assert_eq!(Loop::fold(&world.journal).breaker, world.state.breaker);
}

/// Fails the agents one after the other until the run ends or so many have failed.
fn fail(world: &mut World, times: u32, trouble: &Trouble, text: impl Fn(u32) -> String) {
    for time in 0..times {
        while world.state.run.active && world.state.open.is_empty() {
            let plan = decide(&world.state, world.now);
            plan.actions.iter().for_each(|action| world.perform(action));
            if let Some(at) = plan.wake_at.filter(|_| plan.actions.is_empty()) {
                world.now = at;
            }
        }
        world.fail_agent(trouble.clone(), &text(time));
        world.run_until(|event| matches!(event, Event::Judged { .. }));
    }
    settle(world);
}

/// Lets the run end if it has to.
fn settle(world: &mut World) {
    while world.state.run.active && world.state.open.is_empty() {
        let plan = decide(&world.state, world.now);
        if plan.actions.is_empty() {
            return;
        }
        for action in &plan.actions {
            if matches!(action, wiggum_core::decide::Action::StartIteration { .. }) {
                return;
            }
            world.perform(action);
        }
    }
}

#[test]
fn the_next_run_waits_for_the_cooldown_and_then_tries_one_iteration() {
    let mut world = opened();
    world.start_again();
    assert!(waits(&world));
    let until = decide(&world.state, world.now).wake_at.unwrap();
    let waited = until.as_second() - world.now.as_second();
    assert!((1795..=1800).contains(&waited), "{waited}");
    world.now = until;
    let before = iterations(&world);
    world.run_until(|event| matches!(event, Event::IterationStarted { .. }));
    assert!(matches!(world.state.breaker.phase, Phase::HalfOpen(_)));
    world.run();
    assert_eq!(world.ended(), EndReason::CircuitBreakerOpen);
    assert_eq!(iterations(&world), before + 1, "exactly one probe");
    sound(&world);
}

#[test]
fn a_probe_that_gets_somewhere_closes_it() {
    let mut world = opened();
    world.start_again();
    world.now = decide(&world.state, world.now).wake_at.unwrap();
    world.set_mood(Mood::Diligent);
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
    assert_eq!(world.state.breaker.phase, Phase::Closed);
    sound(&world);
}

#[test]
fn a_run_after_the_cooldown_does_not_wait() {
    let mut world = opened();
    world.advance_seconds(1801);
    world.start_again();
    assert!(!waits(&world));
}

#[test]
fn a_person_closes_it_at_once() {
    let by = || "test".to_owned();
    let done = [
        Event::Resumed { by: by() },
        Event::TaskReopened { task: "a".into(), by: by() },
        Event::TaskSkipped { task: "b".into(), by: by() },
    ];
    for event in done {
        let mut world = opened();
        world.start_again();
        world.push(event);
        assert!(!waits(&world));
        assert_eq!(world.state.breaker.phase, Phase::Closed);
        world.set_mood(Mood::Diligent);
        world.run();
        assert_eq!(world.ended(), EndReason::GoalAchieved);
        sound(&world);
    }
}

#[test]
fn a_probe_that_is_interrupted_or_finds_no_agent_is_tried_again() {
    let mut world = opened();
    world.start_again();
    world.now = decide(&world.state, world.now).wake_at.unwrap();
    world.interrupt_first = 2;
    world.set_mood(Mood::Diligent);
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
    sound(&world);

    let mut world = opened();
    world.start_again();
    world.now = decide(&world.state, world.now).wake_at.unwrap();
    fail(&mut world, 1, &Trouble::Overloaded, |_| "busy".to_owned());
    assert!(matches!(world.state.breaker.phase, Phase::Open(_)));
    assert!(world.state.run.active, "it says nothing of the work");
    sound(&world);
}

#[test]
fn the_same_error_five_times_over_tasks_and_runs() {
    let lenient = |world: &mut World| {
        world.policy.limits.consecutive_errors = 0;
        world.policy.limits.no_progress = 0;
        world.policy.limits.stuck_threshold = 0;
        world.policy.retry.max_retries = 20;
    };
    let mut one = world(Mood::Idle, &["a", "b"], lenient);
    fail(&mut one, 4, &Trouble::Other, |_| "boom".to_owned());
    assert!(one.state.run.active);
    fail(&mut one, 1, &Trouble::Other, |_| "boom".to_owned());
    assert_eq!(one.ended(), EndReason::CircuitBreakerOpen);
    assert!(one.state.run.ended.as_ref().unwrap().1.contains("the same error 5 times"));
    sound(&one);

    // Another error in between begins a new row.
    let mut other = world(Mood::Idle, &["a", "b"], lenient);
    fail(&mut other, 9, &Trouble::Other, |time| if time == 4 { "bang".into() } else { "boom".into() });
    assert!(other.state.run.active);

    // Three errors end a run, and count on in the next one.
    let mut two = world(Mood::Idle, &["a", "b", "c"], |world| {
        lenient(world);
        world.policy.limits.consecutive_errors = 3;
    });
    fail(&mut two, 3, &Trouble::Other, |_| "boom".to_owned());
    assert_eq!(two.ended(), EndReason::ConsecutiveErrors);
    two.start_again();
    fail(&mut two, 2, &Trouble::Other, |_| "boom".to_owned());
    assert_eq!(two.ended(), EndReason::CircuitBreakerOpen);
    sound(&two);
}

#[test]
fn two_denied_permissions() {
    let mut world = world(Mood::Idle, &["a", "b"], |_| {});
    fail(&mut world, 1, &Trouble::PermissionDenied, |time| format!("no {time}"));
    assert!(world.state.run.active);
    fail(&mut world, 1, &Trouble::PermissionDenied, |time| format!("not {time}"));
    assert_eq!(world.ended(), EndReason::CircuitBreakerOpen);
    assert!(world.state.run.ended.as_ref().unwrap().1.contains("not permitted to act 2 times"));
    sound(&world);
}

#[test]
fn the_question_about_a_repeated_error_comes_first_and_clears_the_row() {
    let mut world = world(Mood::FailsAlike, &["a", "b"], |_| {});
    world.run();
    assert_eq!(world.ended(), EndReason::PersonNeeded);
    assert_eq!((world.state.breaker.same_error, &world.state.breaker.phase), (0, &Phase::Closed));
}

#[test]
fn progress_a_completion_and_a_person_begin_the_row_anew() {
    let idle_twice = || {
        let mut world = world(Mood::Idle, &["a", "b", "c"], |_| {});
        for _ in 0..2 {
            world.run_until(|event| matches!(event, Event::IterationStarted { .. }));
            world.run_until(|event| matches!(event, Event::Judged { .. }));
            settle(&mut world);
        }
        assert_eq!(world.state.breaker.no_progress, 2);
        world
    };
    let mut changed = idle_twice();
    changed.set_mood(Mood::Liar);
    changed.run_until(|event| matches!(event, Event::IterationStarted { .. }));
    changed.run_until(|event| matches!(event, Event::Judged { .. }));
    assert_eq!(changed.state.breaker.no_progress, 0);

    let mut completed = idle_twice();
    completed.set_mood(Mood::Diligent);
    completed.run_until(|event| matches!(event, Event::TaskCompleted { .. }));
    assert_eq!(completed.state.breaker.no_progress, 0);

    let mut retried = idle_twice();
    retried.push(Event::TaskReopened { task: "a".into(), by: "test".into() });
    assert_eq!(retried.state.breaker.no_progress, 0);

    let mut nudged = idle_twice();
    nudged.run_until(|event| matches!(event, Event::IterationStarted { .. }));
    let open = nudged.state.open.here().cloned().unwrap();
    nudged.push(Event::Nudged {
        iteration: open.iteration,
        attempt: open.attempt,
        text: "hurry".into(),
        by: "test".into(),
        delivered: true,
    });
    assert_eq!(nudged.state.breaker.no_progress, 2, "words alone change nothing");
}

#[test]
fn agents_that_cannot_work_do_not_count() {
    let mut world = world(Mood::Idle, &["a"], |_| {});
    fail(&mut world, 6, &Trouble::Overloaded, |_| "busy".to_owned());
    assert!(world.state.run.active);
    assert_eq!((world.state.breaker.same_error, world.state.breaker.no_progress), (0, 0));
}

#[test]
fn an_answer_of_a_person_closes_it() {
    let mut world = world(Mood::FailsAlike, &["a"], |world| world.policy.breaker.same_error = 2);
    world.run();
    assert_eq!(world.ended(), EndReason::CircuitBreakerOpen);
    world.policy.limits.stuck_threshold = 1;
    world.start_again();
    world.now = decide(&world.state, world.now).wake_at.unwrap();
    world.run_until(|event| matches!(event, Event::QuestionRaised { .. }));
    assert!(matches!(world.state.breaker.phase, Phase::Open(_)), "the probe failed");
    let id = *world.state.questions.keys().next().unwrap();
    world.push(Event::QuestionAnswered { id, answer: Answer::Retry, by: "test".into() });
    assert_eq!(world.state.breaker.phase, Phase::Closed);
}

#[test]
fn a_journal_from_before_there_was_a_breaker_folds_as_it_was_meant() {
    let mut value = serde_json::to_value(opened().journal[1].clone()).unwrap();
    value["policy"].as_object_mut().unwrap().remove("breaker");
    let envelope: wiggum_core::event::Envelope = serde_json::from_value(value).unwrap();
    let Event::RunStarted { policy, .. } = envelope.event else { panic!() };
    assert_eq!((policy.breaker.no_progress, policy.breaker.same_error), (0, 0));
}
