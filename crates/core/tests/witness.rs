//! Done is witnessed: former definitions of checks, checks that fail already, evidence that repeats, and
//! agents that work on without claiming.

#[expect(dead_code, reason = "each test file uses its part of this")]
mod support;

use support::{Mood, World};
use wiggum_core::checker::check;
use wiggum_core::event::{Answer, EndReason, Event, QuestionKind, Verdict};
use wiggum_core::ids::QuestionId;
use wiggum_core::policy::{Baseline, OnTouch};
use wiggum_core::tasks::TaskState;

/// A loop with one check.
fn world(mood: Mood) -> World {
    let mut world = World::new(1, mood);
    world.policy.checks.verify = vec!["make test".to_owned()];
    world
}

fn verdicts(world: &World) -> Vec<Verdict> {
    let judged = world.journal.iter().filter_map(|envelope| match &envelope.event {
        Event::Judged { verdict, .. } => Some(verdict.clone()),
        _ => None,
    });
    judged.collect()
}

fn sound(world: &World) {
    assert_eq!(check(&world.journal), vec![]);
}

fn agents_started(world: &World) -> usize {
    let started = |event: &Event| matches!(event, Event::IterationStarted { accepted: false, .. });
    world.journal.iter().filter(|envelope| started(&envelope.event)).count()
}

fn answer(world: &mut World, number: u32, answer: Answer) {
    world.push(Event::QuestionAnswered { id: QuestionId(number), answer, by: "test".to_owned() });
}

#[test]
fn a_changed_definition_that_passes_as_it_was_too_is_accepted() {
    let mut world = world(Mood::Diligent);
    world.redefines = Some(true);
    world.start(&["a"]);
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
    assert_eq!(verdicts(&world), [Verdict::Accepted { verified: true }]);
    let former = |event: &Event| matches!(event, Event::EvidenceGathered { evidence, .. } if evidence.former);
    assert_eq!(world.journal.iter().filter(|envelope| former(&envelope.event)).count(), 1);
    sound(&world);
}

#[test]
fn a_changed_definition_that_fails_as_it_was_is_refused_and_soon_a_question() {
    let mut world = world(Mood::Diligent);
    world.redefines = Some(false);
    world.start(&["a"]);
    world.run();
    assert_eq!(world.ended(), EndReason::PersonNeeded);
    let verdicts = verdicts(&world);
    assert_eq!(verdicts.len(), 3, "{verdicts:?}");
    let Verdict::Refuted { reasons } = &verdicts[0] else { panic!("{verdicts:?}") };
    assert!(reasons[0].contains("recipe `test` of Makefile"), "{reasons:?}");
    assert!(reasons.last().unwrap().contains("<changed-checks>"), "{reasons:?}");
    let asked = &world.state.questions[&QuestionId(1)];
    assert_eq!(asked.question.kind, QuestionKind::Repeated);
    assert!(
        asked.question.context.contains("`make test`, defined as before the attempt"),
        "{:?}",
        asked.question
    );
    sound(&world);
}

/// What comes of attempts that change the definition of their checks without breaking anything.
fn redefined(wish: &str, tests: Option<u32>, former_tests: Option<u32>) -> World {
    let mut world = world(Mood::Diligent);
    world.redefines = Some(true);
    (world.tests, world.former_tests) = (tests, former_tests);
    world.start(&[wish]);
    world.run();
    sound(&world);
    world
}

#[test]
fn a_changed_definition_that_runs_fewer_tests_is_refused_though_both_pass() {
    for (tests, said) in [(Some(1), "2 tests passed before, 1 now"), (None, "now its output tells of none")] {
        let world = redefined("a", tests, Some(2));
        let Verdict::Refuted { reasons } = &verdicts(&world)[0] else { panic!("{:?}", verdicts(&world)) };
        assert!(reasons[0].contains(said), "{reasons:?}");
        assert!(reasons[0].contains("make test"), "{reasons:?}");
    }
}

#[test]
fn a_changed_definition_that_runs_as_many_tests_or_more_is_accepted() {
    for (tests, former_tests) in [(Some(2), Some(2)), (Some(3), Some(2)), (None, None), (Some(1), None)] {
        let world = redefined("a", tests, former_tests);
        assert_eq!(verdicts(&world), [Verdict::Accepted { verified: true }], "{tests:?} {former_tests:?}");
    }
}

#[test]
fn a_person_decides_about_fewer_tests_where_the_task_asks_for_the_change() {
    let world = redefined("Extend the Makefile", Some(1), Some(2));
    let Verdict::Held { reasons } = &verdicts(&world)[0] else { panic!("{:?}", verdicts(&world)) };
    assert!(reasons[0].contains("2 tests passed before, 1 now"), "{reasons:?}");
}

#[test]
fn whoever_says_why_is_asked_about_and_accepting_lands_it_without_another_agent() {
    let mut world = world(Mood::Diligent);
    world.redefines = Some(false);
    world.says_why = Some("the output format is new".to_owned());
    world.start(&["a", "b"]);
    world.run_until(|event| matches!(event, Event::QuestionRaised { .. }));
    let asked = world.state.questions[&QuestionId(1)].question.clone();
    assert_eq!(asked.kind, QuestionKind::Flagged);
    assert!(asked.context.contains("the output format is new"), "{asked:?}");
    assert_eq!(agents_started(&world), 1);
    answer(&mut world, 1, Answer::Option { number: 1 });
    world.run_until(|event| matches!(event, Event::TaskCompleted { .. }));
    assert_eq!(agents_started(&world), 1, "no other agent");
    assert!(world.state.task(&"a".into()).unwrap().is_done());
    sound(&world);
    // What was approved is this change, not whatever comes.
    assert!(!world.state.task(&"b".into()).unwrap().is_done());
}

#[test]
fn accepted_work_that_was_interrupted_is_still_accepted() {
    let mut world = world(Mood::Diligent);
    world.redefines = Some(false);
    world.says_why = Some("why".to_owned());
    world.start(&["a"]);
    world.run_until(|event| matches!(event, Event::QuestionRaised { .. }));
    answer(&mut world, 1, Answer::Option { number: 1 });
    world.run_until(|event| matches!(event, Event::IterationStarted { accepted: true, .. }));
    let open = world.state.open.here().cloned().unwrap();
    world.push(Event::Interrupted {
        iteration: open.iteration,
        attempt: open.attempt,
        reason: "killed".to_owned(),
        ended_processes: 0,
        kept: None,
    });
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
    assert_eq!(agents_started(&world), 1);
    sound(&world);
}

#[test]
fn the_policy_may_ask_always_or_only_warn() {
    for (on_touch, expected) in
        [(OnTouch::Ask, EndReason::PersonNeeded), (OnTouch::Warn, EndReason::GoalAchieved)]
    {
        let mut world = world(Mood::Diligent);
        world.redefines = Some(false);
        world.policy.protect.on_check_touch = on_touch;
        world.start(&["a"]);
        world.run();
        assert_eq!(world.ended(), expected);
        assert_eq!(agents_started(&world), 1);
        sound(&world);
    }
}

#[test]
fn checks_that_fail_already_stop_a_run_before_money_is_spent() {
    let mut world = world(Mood::Diligent);
    world.red_baseline = true;
    world.start(&["a"]);
    world.run();
    assert_eq!(world.ended(), EndReason::PersonNeeded);
    assert_eq!(agents_started(&world), 0);
    assert_eq!(world.state.questions[&QuestionId(1)].question.kind, QuestionKind::Baseline);

    // The question is kept; the next run finds it, and asks no second time.
    world.start_again();
    world.run();
    assert_eq!((world.ended(), world.state.questions.len()), (EndReason::PersonNeeded, 1));
    answer(&mut world, 1, Answer::Option { number: 1 });
    world.start_again();
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
    sound(&world);
}

#[test]
fn checks_that_somebody_repaired_leave_no_question() {
    let mut world = world(Mood::Diligent);
    world.red_baseline = true;
    world.start(&["a"]);
    world.run();
    assert_eq!(world.state.questions.len(), 1);
    world.red_baseline = false;
    world.set_mood(Mood::Random);
    world.start_again();
    world.set_mood(Mood::Diligent);
    world.run();
    assert_eq!((world.ended(), world.state.questions.len()), (EndReason::GoalAchieved, 0));
}

#[test]
fn the_policy_says_how_to_go_on_from_checks_that_fail_already() {
    for (baseline, expected, tasks) in [
        (Baseline::GoOn, EndReason::GoalAchieved, 1),
        (Baseline::Stop, EndReason::PersonNeeded, 1),
        (Baseline::Repair, EndReason::GoalAchieved, 2),
        (Baseline::Off, EndReason::GoalAchieved, 1),
    ] {
        let mut world = world(Mood::Diligent);
        world.red_baseline = true;
        world.policy.checks.baseline = baseline;
        world.start(&["a"]);
        world.run();
        assert_eq!((world.ended(), world.state.tasks.counts().total), (expected, tasks), "{baseline:?}");
        if baseline == Baseline::Repair {
            let first = world.journal.iter().find_map(|envelope| match &envelope.event {
                Event::IterationStarted { task, .. } => Some(task.clone()),
                _ => None,
            });
            assert_eq!(first.unwrap().as_str(), "repair-1");
        }
        sound(&world);
    }
}

#[test]
fn the_policy_answers_the_question_of_a_former_run() {
    for (baseline, expected, open) in [
        (Baseline::GoOn, EndReason::GoalAchieved, 0),
        (Baseline::Repair, EndReason::GoalAchieved, 0),
        (Baseline::Off, EndReason::GoalAchieved, 0),
        (Baseline::Stop, EndReason::PersonNeeded, 1),
    ] {
        let mut world = world(Mood::Diligent);
        world.red_baseline = true;
        world.start(&["a"]);
        world.run();
        assert_eq!(world.state.questions.len(), 1);
        world.policy.checks.baseline = baseline;
        world.start_again();
        world.run();
        assert_eq!((world.ended(), world.state.questions.len()), (expected, open), "{baseline:?}");
        let answered = world.journal.iter().find_map(|envelope| match &envelope.event {
            Event::QuestionAnswered { by, .. } => Some(by.clone()),
            _ => None,
        });
        let by = format!("the policy (baseline: {})", baseline.name());
        assert_eq!(answered, (open == 0).then_some(by), "{baseline:?}");
        sound(&world);
    }
}

#[test]
fn a_person_at_the_terminal_is_waited_for() {
    let mut world = world(Mood::Diligent);
    world.red_baseline = true;
    world.policy.people.present = true;
    world.start(&["a"]);
    world.run_until(|event| matches!(event, Event::QuestionRaised { .. }));
    assert_eq!(agents_started(&world), 0);
    answer(&mut world, 1, Answer::Option { number: 2 });
    world.run();
    assert_eq!((world.ended(), agents_started(&world)), (EndReason::PersonNeeded, 0));
}

#[test]
fn the_same_failing_checks_three_times_become_a_question() {
    let mut world = world(Mood::Liar);
    world.start(&["a"]);
    world.run();
    assert_eq!((world.ended(), agents_started(&world)), (EndReason::PersonNeeded, 3));
    let asked = &world.state.questions[&QuestionId(1)].question;
    assert!(asked.summary.contains("said done 3 times") && asked.context.contains("make test"), "{asked:?}");
    assert!(matches!(world.state.task(&"a".into()).unwrap().state, TaskState::Parked(_)));
    sound(&world);
}

#[test]
fn what_used_up_its_attempts_names_the_check_that_failed() {
    let mut world = world(Mood::Liar);
    world.policy.limits.same_evidence = 0;
    world.start(&["a"]);
    world.run();
    let asked = &world.state.questions[&QuestionId(1)].question;
    assert!(asked.summary.contains("said done, but `make test` failed (exit code 1)"), "{}", asked.summary);
    assert!(!asked.summary.contains("claim refuted"));
}

#[test]
fn whoever_works_on_without_claiming_is_not_failing() {
    let mut world = world(Mood::WorksOn);
    world.policy.limits.iterations = Some(20);
    world.start(&["a"]);
    world.run();
    assert_eq!((world.ended(), agents_started(&world)), (EndReason::MaxIterations, 20));
    assert_eq!(world.state.task(&"a".into()).unwrap().failures, 0);
    sound(&world);
}

#[test]
fn after_many_unclaimed_attempts_others_go_first() {
    let mut world = world(Mood::WorksOn);
    world.policy.limits.iterations = Some(22);
    world.start(&["a", "b"]);
    world.run();
    let tasks: Vec<String> = world
        .journal
        .iter()
        .filter_map(|envelope| match &envelope.event {
            Event::IterationStarted { task, .. } => Some(task.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(tasks.concat(), "aaabbbaaabbbaaabbbaaab");
}
