//! The one word for what a loop does: from its journal, and from whether its engine lives.

#[expect(dead_code, reason = "each test file uses its part of this")]
mod support;

use support::{Mood, World};
use wiggum_core::activity::{Activity, EngineState, activity, task_word};
use wiggum_core::decide::{Waiting, decide, why_seen};
use wiggum_core::event::{EndReason, Event, Question, QuestionKind};
use wiggum_core::ids::QuestionId;
use wiggum_core::state::{Loop, Stage};

const ENGINES: [EngineState; 3] = [EngineState::Alive, EngineState::Gone, EngineState::Dead];

/// What is shown while the engine lives, after it left, and after it was killed.
fn check(world: &World, expected: [Activity; 3]) {
    assert_eq!(ENGINES.map(|engine| activity(&world.state, engine, world.now)), expected);
}

fn at_work() -> World {
    let mut world = World::new(1, Mood::Idle);
    world.start(&["a", "b"]);
    go_on_until(&mut world, |state| state.open.here().is_some_and(|open| open.stage == Stage::Agent));
    world
}

fn go_on_until(world: &mut World, reached: impl Fn(&Loop) -> bool) {
    for _ in 0..1000 {
        if reached(&world.state) {
            return;
        }
        let plan = decide(&world.state, world.now);
        plan.actions.iter().for_each(|action| world.perform(action));
        if let Some(at) = plan.wake_at.filter(|_| plan.actions.is_empty()) {
            world.now = at;
        }
    }
    panic!("it was never reached: {:?}", world.state.run);
}

#[test]
fn a_loop_at_work_runs_only_while_its_engine_lives() {
    check(&at_work(), [Activity::Running, Activity::Interrupted, Activity::Died]);
}

#[test]
fn a_loop_that_never_ran_has_not_started() {
    let world = World::new(1, Mood::Idle);
    check(&world, [Activity::NotStarted, Activity::NotStarted, Activity::Died]);
}

#[test]
fn a_loop_that_waits_for_an_answer_is_blocked_and_does_not_run() {
    let mut world = World::new(1, Mood::Idle);
    world.policy.people.present = true;
    world.start(&["a"]);
    let question = Question {
        kind: QuestionKind::Stuck,
        summary: "which?".to_owned(),
        context: String::new(),
        options: Vec::new(),
        question: "which?".to_owned(),
    };
    world.push(Event::QuestionRaised { id: QuestionId(1), task: Some("a".into()), question });
    assert!(matches!(decide(&world.state, world.now).waiting, Some(Waiting::Answer { .. })));
    check(&world, [Activity::Blocked, Activity::Interrupted, Activity::Died]);
}

/// The honest twin: a question does not keep other tasks from being worked on.
#[test]
fn a_question_beside_an_agent_at_work_does_not_block() {
    let mut world = at_work();
    let question = Question {
        kind: QuestionKind::Stuck,
        summary: "which?".to_owned(),
        context: String::new(),
        options: Vec::new(),
        question: "which?".to_owned(),
    };
    world.push(Event::QuestionRaised { id: QuestionId(1), task: Some("b".into()), question });
    check(&world, [Activity::Running, Activity::Interrupted, Activity::Died]);
}

#[test]
fn a_paused_loop_is_paused_though_its_agent_may_finish() {
    let mut world = at_work();
    world.push(Event::Paused { by: "somebody".to_owned() });
    check(&world, [Activity::Paused, Activity::Interrupted, Activity::Died]);
}

#[test]
fn how_a_run_ended_is_shown_whoever_is_gone_since() {
    for (reason, expected) in [
        (EndReason::GoalAchieved, Activity::Completed),
        (EndReason::PersonNeeded, Activity::PersonNeeded),
        (EndReason::NoProgress, Activity::Failed),
        (EndReason::MaxIterations, Activity::Terminated),
        (EndReason::ExplicitStop, Activity::Terminated),
    ] {
        let mut world = World::new(1, Mood::Idle);
        world.start(&["a"]);
        world.push(Event::RunEnded { run: 1, reason, detail: String::new() });
        check(&world, [expected; 3]);
    }
}

/// Nobody works on a task whose engine is gone.
#[test]
fn the_task_of_an_engine_that_is_gone_is_interrupted() {
    let mut world = World::new(1, Mood::Idle);
    world.start(&["a", "b<a"]);
    go_on_until(&mut world, |state| state.open.here().is_some_and(|open| open.stage == Stage::Agent));
    let words = ["running", "interrupted", "interrupted"];
    for (engine, word) in ENGINES.into_iter().zip(words) {
        let why = |task: &str| why_seen(&world.state, &task.into(), engine, world.now).unwrap().to_string();
        let state = &world.state.task(&"a".into()).unwrap().state;
        assert_eq!((task_word(state, engine), why("a").as_str()), (word, word));
        assert_eq!(why("b"), format!("waits on a ({word})"));
        let other = &world.state.task(&"b".into()).unwrap().state;
        assert_eq!(task_word(other, engine), "open");
    }
}

/// A surface that has only the stored status comes to the same word as one that has the journal.
#[test]
fn a_stored_status_is_corrected_to_what_the_journal_would_say() {
    let mut world = World::new(3, Mood::Random);
    world.start(&["a", "b", "c"]);
    for _ in 0..200 {
        let stored = activity(&world.state, EngineState::Alive, world.now);
        for engine in ENGINES {
            assert_eq!(stored.seen_with(engine), activity(&world.state, engine, world.now));
        }
        let plan = decide(&world.state, world.now);
        plan.actions.iter().for_each(|action| world.perform(action));
        if let Some(at) = plan.wake_at.filter(|_| plan.actions.is_empty()) {
            world.now = at;
        }
    }
}
