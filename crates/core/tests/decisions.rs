//! The core against random worlds: whatever agents, checks and people do, the plan stays sound.
//!
//! A seeded world carries out every plan with random outcomes. Each journal it produces must keep
//! the checker's invariants, fold to the same plan again, and come to an end.

#[expect(dead_code, reason = "each test file uses its part of this")]
mod support;

use support::{Mood, World};
use wiggum_core::checker;
use wiggum_core::decide::{Action, decide};
use wiggum_core::event::{EndReason, Event};
use wiggum_core::ids::TaskId;
use wiggum_core::state::Loop;
use wiggum_core::task::{FileStatus, Task};
use wiggum_core::tasks::TaskState;

#[test]
fn random_worlds_keep_every_invariant_and_come_to_an_end() {
    for seed in 0..2_000 {
        let mut world = World::random(seed);
        world.run();
        let violations = checker::check(&world.journal);
        assert!(violations.is_empty(), "seed {seed}: {violations:?}");
        assert!(!world.state.run.active, "seed {seed} did not end");
    }
}

#[test]
fn the_same_journal_and_time_give_the_same_plan() {
    for seed in 0..200 {
        let mut world = World::random(seed);
        world.run();
        for cut in (0..world.journal.len()).step_by(7) {
            let now = world.now();
            let again = Loop::fold(&world.journal[..cut]);
            let and_again = Loop::fold(&world.journal[..cut]);
            assert_eq!(decide(&again, now), decide(&and_again, now));
        }
        let folded = Loop::fold(&world.journal);
        assert_eq!(folded.tasks.counts(), world.state.tasks.counts());
        assert_eq!(folded.iterations, world.state.iterations);
    }
}

#[test]
fn events_survive_being_stored() {
    let mut world = World::random(3);
    world.run();
    for envelope in &world.journal {
        let text = serde_json::to_string(envelope).unwrap();
        let back: wiggum_core::event::Envelope = serde_json::from_str(&text).unwrap();
        assert_eq!(&back, envelope, "{text}");
    }
}

#[test]
fn goal_is_achieved_only_when_everything_is_done_or_skipped() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..500 {
        let mut world = World::random(seed);
        world.run();
        let (reason, _) = world.state.run.ended.clone().unwrap();
        seen.insert(reason.name());
        let counts = world.state.tasks.counts();
        let complete = counts.done + counts.skipped == counts.total;
        assert_eq!(
            reason == EndReason::GoalAchieved,
            // Somebody may ask to stop just as the last task is done.
            complete && reason != EndReason::ExplicitStop,
            "seed {seed}: {reason:?} with {counts:?}"
        );
    }
    // The worlds are random enough to matter only if they end in many ways.
    for reason in [
        "goal_achieved",
        "person_needed",
        "max_iterations",
        "consecutive_errors",
        "budget_exhausted",
        "no_progress",
        "circuit_breaker_open",
        "explicit_stop",
    ] {
        assert!(seen.contains(reason), "no seed ended with {reason}: {seen:?}");
    }
}

#[test]
fn a_completion_in_the_last_allowed_iteration_is_a_completion() {
    let mut world = World::new(1, Mood::Diligent);
    world.policy.limits.iterations = Some(3);
    world.start(&["a", "b", "c"]);
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
}

#[test]
fn the_same_error_three_times_asks_before_the_error_limit_ends_the_run() {
    let mut world = World::new(1, Mood::FailsAlike);
    world.start(&["a", "b"]);
    world.run();
    assert_eq!(world.ended(), EndReason::PersonNeeded);
    // Three at the first task, which is parked, and three at the second: the streaks are cleared.
    assert_eq!(world.state.run.iterations, 6);
    assert_eq!(world.state.tasks.counts().parked, 2);
    assert!(world.journal.iter().any(|e| matches!(&e.event, Event::QuestionRaised { question, .. }
        if question.summary.contains("3 times in a row"))));
}

#[test]
fn different_errors_in_a_row_end_the_run() {
    let mut world = World::new(1, Mood::FailsDifferently);
    world.start(&["a", "b"]);
    world.run();
    assert_eq!(world.ended(), EndReason::ConsecutiveErrors);
    assert_eq!(world.state.run.iterations, 3);
}

#[test]
fn refuted_claims_are_no_errors_and_a_task_that_used_up_its_attempts_fails_alone() {
    let mut world = World::new(1, Mood::Liar);
    world.policy.limits.same_evidence = 0;
    world.start(&["a", "b"]);
    world.run();
    assert_eq!(world.ended(), EndReason::PersonNeeded);
    // One attempt and three retries each, and the loop went on with the other task.
    assert_eq!(world.state.run.iterations, 8);
    assert_eq!(world.state.tasks.counts().failed, 2);
}

#[test]
fn an_agent_that_neither_claims_nor_changes_anything_makes_no_progress() {
    let mut world = World::new(1, Mood::Idle);
    world.start(&["a", "b"]);
    world.run();
    // The breaker looks first; without it the limit on missing progress is left.
    assert_eq!(world.ended(), EndReason::CircuitBreakerOpen);
    assert_eq!(world.state.run.iterations, 3);

    let mut world = World::new(1, Mood::Idle);
    world.policy.breaker.no_progress = 0;
    world.start(&["a", "b"]);
    world.run();
    assert_eq!(world.ended(), EndReason::NoProgress);
    assert_eq!(world.state.run.iterations, 3);
}

#[test]
fn dependents_of_a_skipped_task_are_never_reported_as_complete() {
    let mut world = World::new(1, Mood::Diligent);
    world.start(&["a", "b<a"]);
    world.push(Event::TaskSkipped { task: "a".into(), by: "test".into() });
    world.run();
    assert_eq!(world.ended(), EndReason::PersonNeeded);
    let asked = world.state.questions.values().next().unwrap();
    assert_eq!(asked.question.summary, "b waits on a, which was skipped");
}

#[test]
fn interrupted_iterations_cost_neither_an_iteration_nor_an_attempt() {
    let mut world = World::new(1, Mood::Diligent);
    world.policy.limits.iterations = Some(1);
    world.start(&["a"]);
    world.interrupt_first = 4;
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
    assert_eq!(world.state.task(&"a".into()).unwrap().attempts, 1);
    assert_eq!(world.state.iterations, 1);
}

#[test]
fn time_between_a_crash_and_the_next_start_does_not_count() {
    let mut world = World::new(1, Mood::Diligent);
    world.policy.limits.duration = Some(wiggum_core::policy::Millis::from_secs(3600));
    world.start(&["a"]);
    world.advance_seconds(10);
    world.push(Event::Noticed { task: None, message: "crash".to_owned() });
    world.advance_seconds(86_400);
    world.resume();
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
    assert!(world.state.run.active_ms < 3_600_000);
}

#[test]
fn a_check_has_no_more_time_than_the_run() {
    let mut world = World::new(1, Mood::Diligent);
    world.policy.limits.duration = Some(wiggum_core::policy::Millis::from_secs(3600));
    world.start(&["a"]);
    world.run_until(|event| matches!(event, Event::TreeTaken { .. }));
    let plan = decide(&world.state, world.now());
    assert!(matches!(plan.actions[..], [Action::RunCheck { .. }]), "{plan:?}");
    let deadline = plan.wake_at.expect("the engine looks again when the time is up");
    let plan = decide(&world.state, deadline);
    let [Action::Record(event)] = &plan.actions[..] else { panic!("{plan:?}") };
    assert!(matches!(**event, Event::RunEnded { reason: EndReason::MaxDuration, .. }), "{event:?}");

    // The attempt waits for its checks, and the next run has a clock of its own.
    world.advance_seconds(3600);
    world.run();
    assert_eq!(world.ended(), EndReason::MaxDuration);
    world.start_again();
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
    assert_eq!(world.state.task(&"a".into()).unwrap().attempts, 1);
    assert_eq!(checker::check(&world.journal), vec![]);
}

#[test]
fn a_status_the_engine_wrote_before_a_crash_is_nobodys_word() {
    let mut world = World::new(1, Mood::Liar);
    world.policy.limits.same_evidence = 0;
    world.start(&["a"]);
    world.run();
    let failed = world.state.task(&"a".into()).unwrap().clone();
    assert!(matches!(failed.state, TaskState::Failed { .. }), "{:?}", failed.state);

    // Skipped by a person, written to the file, killed: the file says so, the journal does not.
    world.push(Event::TaskSkipped { task: "a".into(), by: "test".into() });
    let read = |status| Event::BacklogRead {
        revision: String::new(),
        added: Vec::new(),
        changed: vec![Task { status, ..failed.spec.clone() }],
        removed: Vec::new(),
        order: None,
    };
    world.push(read(FileStatus::Skipped));
    assert_eq!(world.state.task(&"a".into()).unwrap().failures, failed.failures);

    // Whereas this can only be a person.
    world.push(read(FileStatus::Open));
    let reopened = world.state.task(&"a".into()).unwrap();
    assert_eq!((&reopened.state, reopened.failures), (&TaskState::Open, 0));
}

#[test]
fn a_new_engine_checks_an_attempt_anew() {
    let mut world = World::new(1, Mood::Diligent);
    world.start(&["a"]);
    world.run_until(|event| matches!(event, Event::EvidenceGathered { .. }));
    world.resume();
    let open = world.state.open.here().unwrap();
    assert_eq!((open.evidence.len(), open.tree_taken), (0, true));
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
    let gathered = world.journal.iter().filter(|e| matches!(e.event, Event::EvidenceGathered { .. })).count();
    assert_eq!(gathered, 2, "once before and once after");
    assert_eq!(checker::check(&world.journal), vec![]);
}

#[test]
fn attempts_that_are_used_up_stay_so_when_the_question_about_them_is_answered_with_a_stop() {
    let mut world = World::new(1, Mood::FailsAlike);
    world.policy.retry.max_retries = 0;
    world.policy.limits.stuck_threshold = 1;
    world.start(&["a"]);
    world.run();
    let id = *world.state.questions.keys().next().unwrap();
    let (answer, by) = (wiggum_core::event::Answer::Abort, "test".to_owned());
    world.push(Event::QuestionAnswered { id, answer, by });
    world.start_again();
    world.run();
    assert_eq!(checker::check(&world.journal), vec![]);
    assert_eq!(world.state.tasks.counts().failed, 1);
}

#[test]
fn a_status_said_while_an_attempt_waits_for_its_checks_is_written_before_the_run_ends() {
    let mut world = World::new(1, Mood::Diligent);
    world.start(&["A", "B"]);
    world.run_until(|event| matches!(event, Event::AgentEnded { .. }));
    world.push(Event::StatusSet { task: TaskId::from("B"), status: FileStatus::Done, by: "me".to_owned() });
    world.push(Event::StopRequested { by: "me".to_owned() });
    let plan = decide(&world.state, world.now());
    let wanted = Action::WriteStatus { task: TaskId::from("B"), status: FileStatus::Done };
    assert_eq!(plan.actions, [wanted]);
    world.push(Event::StatusWritten { task: TaskId::from("B"), status: FileStatus::Done });
    let plan = decide(&world.state, world.now());
    assert!(
        matches!(&plan.actions[..], [Action::Record(event)] if matches!(**event, Event::RunEnded { .. }))
    );
}
