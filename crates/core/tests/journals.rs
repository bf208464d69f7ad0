//! Every journal ever written must fold forever: these were written by released versions and are
//! never edited.

use wiggum_core::checker;
use wiggum_core::event::{EndReason, Envelope};
use wiggum_core::state::Loop;
use wiggum_core::tasks::TaskState;

fn read(text: &str) -> Vec<Envelope> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn the_first_version_of_the_demo_still_means_what_it_meant() {
    let journal = read(include_str!("journals/v1-demo.jsonl"));
    assert_eq!(checker::check(&journal), vec![]);
    let state = Loop::fold(&journal);
    assert_eq!(state.run.ended.as_ref().map(|(reason, _)| *reason), Some(EndReason::PersonNeeded));
    let states: Vec<(&str, u32, &TaskState)> =
        state.tasks.iter().map(|entry| (entry.spec.id.as_str(), entry.attempts, &entry.state)).collect();
    let done = TaskState::Done { verified: true, by_hand: false };
    let parked = TaskState::Parked(wiggum_core::ids::QuestionId(1));
    assert_eq!(states, [("greet", 2, &done), ("farewell", 1, &done), ("language", 1, &parked)]);
    assert_eq!(state.usage.input_tokens, 6300);
    assert_eq!(state.questions.len(), 1);
}

#[test]
fn the_first_version_of_budgets_still_means_what_it_meant() {
    let journal = read(include_str!("journals/v1-budget.jsonl"));
    assert_eq!(checker::check(&journal), vec![]);
    let state = Loop::fold(&journal);
    let (reason, detail) = state.run.ended.clone().unwrap();
    assert_eq!(reason, EndReason::BudgetExhausted);
    assert_eq!(detail, "spent $1.20 of $1.00 (loop budget)");
    let gauges: Vec<String> = wiggum_core::budget::gauges(&state, jiff::Timestamp::UNIX_EPOCH)
        .map(|gauge| gauge.to_string())
        .collect();
    assert_eq!(gauges, ["$1.20 of $1.00 (loop budget), $0.20 over", "$1.20 of $5.00 (project budget)"]);
    assert_eq!(state.history.first.map(|forecast| forecast.tasks_done), Some(1));
}

#[test]
fn the_first_version_of_ceilings_still_means_what_it_meant() {
    let journal = read(include_str!("journals/v1-ceiling.jsonl"));
    assert_eq!(checker::check(&journal), vec![]);
    let state = Loop::fold(&journal);
    let (reason, detail) = state.run.ended.clone().unwrap();
    assert_eq!(reason, EndReason::BudgetExhausted);
    assert_eq!(detail, "spent $1.80 of $1.00 (loop budget), $0.80 over");
    // Its agent was stopped in the middle, which is no failure.
    let stopped = state.task(&"B".into()).unwrap();
    assert_eq!((stopped.attempts, stopped.failures, &stopped.state), (1, 0, &TaskState::Open));
    let reset = state.spending.shared.and_then(|shared| shared.organisation.resets_at);
    assert_eq!(reset, Some("2026-12-01T00:00:00Z".parse().unwrap()));
}

#[test]
fn the_first_version_of_checkpoints_still_means_what_it_meant() {
    let journal = read(include_str!("journals/v1-checkpoints.jsonl"));
    assert_eq!(checker::check(&journal), vec![]);
    let state = Loop::fold(&journal);
    assert_eq!(state.run.ended.as_ref().map(|(reason, _)| *reason), Some(EndReason::GoalAchieved));
    // Handed over once, gone back once: the numbers only grow.
    let tasks: Vec<(&str, u32)> =
        state.tasks.iter().map(|entry| (entry.spec.id.as_str(), entry.attempts)).collect();
    assert_eq!(tasks, [("A", 2), ("B", 2)]);
    assert_eq!((state.checkpoints.count, state.restoring.is_none()), (5, true));
    let learnt: Vec<&str> = state.memory.notes().map(|note| note.text.as_str()).collect();
    assert_eq!(learnt, ["mind the gap"]);
}

#[test]
fn what_is_written_today_is_what_was_written_then() {
    let journals = [
        include_str!("journals/v1-demo.jsonl"),
        include_str!("journals/v1-budget.jsonl"),
        include_str!("journals/v1-checkpoints.jsonl"),
        include_str!("journals/v1-ceiling.jsonl"),
    ];
    for line in journals.into_iter().flat_map(str::lines) {
        assert_eq!(wiggum_core::redact::json(line), line, "nothing in it is a secret");
        let envelope: Envelope = serde_json::from_str(line).unwrap();
        assert_eq!(envelope.to_json().unwrap(), serde_json::to_string(&envelope).unwrap());
        let again: serde_json::Value = serde_json::to_value(&envelope).unwrap();
        let before: serde_json::Value = serde_json::from_str(line).unwrap();
        // Fields may have been added since; none may have changed or gone.
        for (key, value) in before.as_object().unwrap() {
            if key != "policy" {
                assert_eq!(again.get(key), Some(value), "{key} in {line}");
            }
        }
    }
}

#[test]
fn the_first_version_of_calls_still_means_what_it_meant() {
    let journal = read(include_str!("journals/v1-calls.jsonl"));
    assert_eq!(checker::check(&journal), vec![]);
    let state = Loop::fold(&journal);
    assert_eq!(state.run.ended.as_ref().map(|(reason, _)| *reason), Some(EndReason::GoalAchieved));
    let told: Vec<(&str, &TaskState, Option<&str>)> = state
        .tasks
        .iter()
        .map(|entry| {
            let result = entry.result.as_ref().map(|result| result.excerpt.as_str());
            (entry.spec.id.as_str(), &entry.state, result)
        })
        .collect();
    let done = |verified| TaskState::Done { verified, by_hand: !verified };
    // Whether the third was sent nobody knew, until a person said so.
    assert_eq!(
        told,
        [
            ("step_1", &done(true), Some("created notes/one.md")),
            ("step_2", &done(true), Some(r#"{"id": "m1"}"#)),
            ("step_3", &done(false), None),
            ("step_4", &done(true), Some("It said m1")),
        ]
    );
}

/// In the first version the number of an interrupted iteration went to whichever task came next.
#[test]
fn the_first_version_of_interrupted_iterations_still_means_what_it_meant() {
    let mut journal = read(include_str!("journals/v1-interrupted.jsonl"));
    assert_eq!(checker::check(&journal), vec![]);
    let state = Loop::fold(&journal);
    let names: Vec<(&str, &str)> =
        state.tasks.iter().map(|entry| (entry.spec.id.as_str(), entry.state.name())).collect();
    assert_eq!(names, [("first", "skipped"), ("second", "done")]);
    assert_eq!((state.total_iterations(), state.next_number(&"first".into())), (1, 2));

    // In a journal of today that would be a mistake.
    journal.iter_mut().for_each(|envelope| envelope.v = 2);
    let rules: Vec<checker::Rule> =
        checker::check(&journal).into_iter().map(|violation| violation.rule).collect();
    assert_eq!(rules, [checker::Rule::IterationNumber]);
}
