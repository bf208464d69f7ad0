//! The order in which guards end a run, with several of them true at once.

#[expect(dead_code, reason = "each test file uses its part of this")]
mod support;

use support::{Mood, World, question};
use wiggum_core::breaker::{Phase, Tripped};
use wiggum_core::checker;
use wiggum_core::decide::{Waiting, decide};
use wiggum_core::event::{EndReason, Event};
use wiggum_core::ids::{QuestionId, TaskId};
use wiggum_core::policy::Millis;
use wiggum_core::state::Loop;
use wiggum_core::termination::{TABLE, reached};

/// Makes a guard hold.
fn trip(state: &mut Loop, reason: EndReason) {
    match reason {
        EndReason::CircuitBreakerOpen => {
            let (at, run) = (state.last_at.unwrap_or_default(), state.run.number);
            state.breaker.phase = Phase::Open(Tripped { at, run, why: "why".to_owned() });
        }
        EndReason::HealthFailure => state.run.terminations = 9,
        EndReason::ConsecutiveErrors => state.run.consecutive_errors = 9,
        EndReason::MaxIterations => state.run.iterations = 999,
        EndReason::MaxDuration => state.policy.limits.duration = Some(Millis(0)),
        EndReason::NoProgress => state.run.without_progress = 9,
        EndReason::BudgetExhausted => {
            state.policy.budget.own.max_tokens = Some(1);
            state.usage.input_tokens = 2;
            state.run.usage.input_tokens = 2;
        }
        // Not held by counters.
        EndReason::GoalAchieved | EndReason::PersonNeeded | EndReason::ExplicitStop => {}
    }
}

#[test]
fn the_first_in_the_table_is_the_reason() {
    let guards: Vec<EndReason> = TABLE
        .iter()
        .map(|ending| ending.reason)
        .take_while(|reason| *reason != EndReason::GoalAchieved)
        .collect();
    let mut world = World::new(1, Mood::Idle);
    world.start(&["a"]);
    assert_eq!(reached(&world.state, world.now()), None);
    for mask in 1u32..1 << guards.len() {
        let mut state = world.state.clone();
        let held: Vec<EndReason> =
            (0..guards.len()).filter(|bit| mask >> bit & 1 == 1).map(|bit| guards[bit]).collect();
        held.iter().for_each(|reason| trip(&mut state, *reason));
        let reason = reached(&state, world.now()).map(|(reason, _)| reason);
        assert_eq!(reason, held.first().copied(), "with {held:?}");
    }
}

#[test]
fn each_reason_stands_in_the_table_once_and_finds_itself() {
    for ending in &TABLE {
        assert_eq!(ending.reason.ending(), ending);
        assert_eq!(
            serde_json::to_value(ending.reason).unwrap_or_default(),
            serde_json::Value::from(ending.name),
            "the journal and the table have one name"
        );
    }
    let names = TABLE.map(|ending| ending.name);
    assert_eq!(
        names,
        [
            "circuit_breaker_open",
            "health_failure",
            "consecutive_errors",
            "budget_exhausted",
            "max_iterations",
            "max_duration",
            "no_progress",
            "goal_achieved",
            "person_needed",
            "explicit_stop",
        ]
    );
}

#[test]
fn a_completion_in_the_last_allowed_iteration_beats_every_guard() {
    let mut world = World::new(1, Mood::Diligent);
    world.policy.limits.iterations = Some(1);
    world.start(&["a"]);
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
}

#[test]
fn people_who_do_not_answer_cannot_keep_a_run_beyond_its_time() {
    // At first the question holds everything up; later nothing else could start anyway.
    for (patience, wake_at) in [(600, 60), (30, 30)] {
        let mut world = World::new(1, Mood::Diligent);
        world.policy.people.present = true;
        world.policy.people.wait = Millis::from_secs(patience);
        world.policy.limits.duration = Some(Millis::from_secs(60));
        world.start(&["a"]);
        let began = world.now();
        world.push(Event::QuestionRaised {
            id: QuestionId(1),
            task: Some(TaskId::from("a")),
            question: question(),
        });
        let after = |seconds: u64| wiggum_core::state::add_millis(began, seconds * 1000);
        let plan = decide(&world.state, world.now());
        assert_eq!(plan.waiting, Some(Waiting::Answer { questions: vec![QuestionId(1)] }));
        assert_eq!((plan.actions, plan.wake_at), (vec![], Some(after(wake_at))));
        world.advance_seconds(40);
        assert_eq!(
            decide(&world.state, world.now()).wake_at,
            Some(after(60)),
            "with {patience} s of patience"
        );
        world.advance_seconds(20);
        world.run();
        assert_eq!(world.ended(), EndReason::MaxDuration);
        assert_eq!(checker::check(&world.journal), vec![]);
        // The question is still there for whoever comes.
        assert!(world.state.questions.contains_key(&QuestionId(1)));
    }
}

#[test]
fn in_a_plan_an_attempt_uses_up_an_iteration_or_a_retry() {
    let run = |retries_count: bool| {
        let mut world = World::new(1, Mood::Liar);
        world.policy.limits.iterations = Some(2);
        world.policy.limits.no_progress = 0;
        world.policy.limits.retries_count = retries_count;
        world.policy.limits.same_evidence = 0;
        world.policy.people.present = false;
        world.start(&["a", "b"]);
        world.run();
        assert_eq!(checker::check(&world.journal), vec![]);
        let attempts: Vec<u32> = world.state.tasks.iter().map(|entry| entry.attempts).collect();
        (world.ended(), world.state.used, attempts)
    };
    assert_eq!(run(true), (EndReason::MaxIterations, 2, vec![2, 0]));
    assert_eq!(run(false), (EndReason::PersonNeeded, 2, vec![4, 4]));
}

#[test]
fn an_interruption_in_a_plan_costs_neither() {
    let mut world = World::new(1, Mood::Diligent);
    world.policy.limits.iterations = Some(5);
    world.policy.limits.retries_count = false;
    world.policy.limits.used_before = 3;
    world.interrupt_first = 3;
    world.start(&["a", "b"]);
    world.run();
    assert_eq!((world.ended(), world.state.used), (EndReason::GoalAchieved, 5));
    assert_eq!(checker::check(&world.journal), vec![]);
}

/// After its end nobody listens to what only a running loop can do.
#[test]
fn no_hint_for_an_ended_run_needs_one_that_runs() {
    for ending in TABLE {
        for command in ["resume", "pause", "stop", "nudge"] {
            let named = format!("`wiggum {command}`");
            let only_while = format!("{named} while it waits");
            assert!(!ending.hint.contains(&named) || ending.hint.contains(&only_while), "{}", ending.hint);
        }
    }
}

#[test]
fn one_iteration_is_one() {
    for (limit, says) in [(1, "1 iteration used"), (2, "2 iterations used")] {
        let mut world = World::new(1, Mood::Diligent);
        world.policy.limits.iterations = Some(limit);
        world.start(&["a", "b", "c"]);
        world.run();
        assert_eq!(world.state.run.ended, Some((EndReason::MaxIterations, says.to_owned())));
    }
}
