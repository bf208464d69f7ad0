//! Checkpoints, handing over, remembering and going back: all of it as seen from the journal.

#[expect(dead_code, reason = "each test file uses its part of this")]
mod support;

use support::{Mood, World};
use uuid::Uuid;
use wiggum_core::checker;
use wiggum_core::checkpoint::{Checkpoint, Group, Phase, build};
use wiggum_core::decide::{Action, StopWhy, decide};
use wiggum_core::event::{
    AgentFacts, BlobRef, Claim, ClaimSource, ContextFill, EndReason, Envelope, Event, Exit, Failure, Verdict,
};
use wiggum_core::handoff::{MAX_CONTINUATION, Policy, Trigger, continuation, decided_before, wrap_up};
use wiggum_core::policy::Millis;
use wiggum_core::restore::{self, Then};
use wiggum_core::signal::notes::{Notes, read_notes, summary};
use wiggum_core::signal::support::Signal;
use wiggum_core::state::Loop;
use wiggum_core::task::FileStatus;
use wiggum_core::tasks::TaskState;

fn checkpointed(world: &World) -> Vec<(u32, String, Option<String>)> {
    let events = world.journal.iter().filter_map(|envelope| match &envelope.event {
        Event::Checkpointed { iteration, checkpoint, previous, .. } => {
            Some((*iteration, checkpoint.sha256.clone(), previous.clone()))
        }
        _ => None,
    });
    events.collect()
}

fn now(world: &World) -> Checkpoint {
    build(&world.state, Uuid::nil(), world.now())
}

/// Ends the agent at work as told.
fn end_agent(world: &mut World, message: &str, claim: bool, error: Option<&str>, exit: Exit) {
    let open = world.state.open.here().cloned().expect("an agent is at work");
    let text = |text: &str| text.to_owned();
    world.push(Event::AgentEnded {
        iteration: open.iteration,
        attempt: open.attempt,
        exit,
        message: BlobRef { sha256: text("x"), bytes: 1, excerpt: text(message) },
        duration: Millis(10),
        usage: None,
        facts: Box::new(AgentFacts { tool_calls: 7, ..AgentFacts::default() }),
        claim: claim.then(|| Claim { text: text("done"), source: ClaimSource::Promise }),
        questions: Vec::new(),
        error: error.map(|error| Failure { message: text(error), signature: text(error) }),
        flags: Vec::new(),
        notes: Box::new(read_notes(message)),
        phrase: None,
        ended_processes: 0,
    });
}

/// Works until the agent of the next iteration is at work.
fn until_agent(world: &mut World) {
    world.run_until(|event| matches!(event, Event::IterationStarted { .. }));
}

fn until_judged(world: &mut World) -> Verdict {
    world.run_until(|event| matches!(event, Event::Judged { .. }));
    match world.journal.last().map(|envelope| &envelope.event) {
        Some(Event::Judged { verdict, .. }) => verdict.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_ended_iteration_has_one_checkpoint_chained_to_the_one_before() {
    for mood in [Mood::Diligent, Mood::Liar, Mood::Idle, Mood::FailsAlike, Mood::FailsDifferently] {
        let mut world = World::new(1, mood);
        world.start(&["a", "b"]);
        world.run();
        let found = checkpointed(&world);
        let iterations: Vec<u32> = found.iter().map(|(iteration, ..)| *iteration).collect();
        assert_eq!(iterations, (1..=world.state.iterations).collect::<Vec<_>>(), "{mood:?}");
        let mut before = None;
        for (_, sha256, previous) in found {
            assert_eq!(previous, before);
            before = Some(sha256);
        }
        assert_eq!(checker::check(&world.journal), vec![]);
    }
}

#[test]
fn an_interrupted_iteration_has_none() {
    let mut world = World::new(1, Mood::Diligent);
    world.start(&["a"]);
    world.interrupt_first = 3;
    world.run();
    assert_eq!(checkpointed(&world).len(), 1);
}

#[test]
fn a_checkpoint_is_still_due_after_a_crash_before_it() {
    let mut world = World::new(1, Mood::Diligent);
    world.start(&["a", "b"]);
    world.run_until(|event| matches!(event, Event::TaskCompleted { .. }));
    world.resume();
    assert_eq!(decide(&world.state, world.now()).actions, [Action::Checkpoint]);
    // One that somebody asks for does not take its place.
    let by = "somebody".to_owned();
    let previous = None;
    let checkpoint = BlobRef { sha256: "x".to_owned(), ..BlobRef::default() };
    world.push(Event::Checkpointed { iteration: 1, task: None, id: Uuid::nil(), checkpoint, previous, by });
    assert_eq!(decide(&world.state, world.now()).actions, [Action::Checkpoint]);
}

#[test]
fn a_checkpoint_says_what_is_done_pending_and_blocked_and_what_was_decided() {
    let mut world = World::new(1, Mood::Diligent);
    world.start(&["a", "b", "c", "d<c"]);
    world.run_until(|event| matches!(event, Event::TaskCompleted { .. }));
    until_agent(&mut world);
    let message = "Half of it.\n\nDecisions:\n- use a queue\n\nNext steps:\n1. the other half";
    end_agent(&mut world, message, false, None, Exit::Code { code: 0 });
    world.run_until(|event| matches!(event, Event::WorkKept { .. }));
    let made = now(&world);
    assert_eq!((made.iteration, made.attempt, made.phase), (2, 1, Phase::Implementing));
    assert_eq!((made.outcome.as_str(), made.task.unwrap().as_str()), ("no claim", "b"));
    assert_eq!((made.completed.count, made.completed.items[0].task.as_str()), (1, "a"));
    let pending: Vec<&str> = made.pending.items.iter().map(|item| item.task.as_str()).collect();
    assert_eq!((made.pending.count, pending), (3, vec!["b", "c", "d"]));
    assert_eq!((made.waiting.count, made.waiting.items[0].task.as_str()), (1, "d"));
    assert_eq!(made.waiting.items[0].why, "waits on c");
    let rollback = &made.recovery.rollback_instructions;
    assert_eq!(rollback[0], format!("wiggum checkpoint restore {}", made.id));
    assert!(rollback[1].contains("git reset --hard base"), "{rollback:?}");
    let prompt = &made.recovery.continuation_prompt;
    assert!(prompt.contains("attempt 1 at b: no claim") && prompt.contains("- use a queue"), "{prompt}");
    assert_eq!(made.decisions, ["use a queue"]);
    assert_eq!(made.recovery.next_steps, ["the other half"]);
    assert_eq!(made.recovery.kept.as_deref(), Some("kept2"));
    assert_eq!(made.recovery.commit.as_deref(), Some("base"));
    assert_eq!(made.recovery.seq, world.state.seq);
    assert_eq!(made.metrics.tool_calls, 7);
}

#[test]
fn a_checkpoint_of_ten_thousand_tasks_is_as_small_as_that_of_fifty() {
    let of = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("task-{n:05}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut world = World::new(1, Mood::Diligent);
        world.policy.limits.iterations = Some(40);
        world.start(&names);
        world.run();
        let made = now(&world);
        assert_eq!(made.pending.count, count - 40);
        (made.text().len(), made.pending.items.len(), made.completed.items.len())
    };
    let (small, large) = (of(80), of(10_000));
    assert!(large.0 < small.0 + 20 && large.0 < 4096, "{small:?} {large:?}");
    assert_eq!((large.1, large.2), (24, 20));
}

#[test]
fn the_same_checkpoint_is_the_same_text_and_comes_back_from_it() {
    let mut world = World::random(7);
    world.run();
    let made = now(&world);
    assert_eq!(made.text(), now(&world).text());
    let back: Checkpoint = serde_json::from_str(&made.text()).unwrap();
    assert_eq!(back.text(), made.text());
}

#[test]
fn the_checker_misses_what_is_missing() {
    let mut world = World::new(1, Mood::Diligent);
    world.start(&["a", "b", "c"]);
    world.run();
    let is_checkpoint =
        |envelope: &&wiggum_core::event::Envelope| matches!(envelope.event, Event::Checkpointed { .. });
    let numbers: Vec<u64> = world.journal.iter().filter(is_checkpoint).map(|found| found.seq).collect();
    // One is left out: the next iteration starts without it, and the chain has a gap.
    let mut without = world.journal.clone();
    without.retain(|envelope| envelope.seq != numbers[1]);
    let found: Vec<String> = checker::check(&without).iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|text| text.contains("iteration 2 has no checkpoint")), "{found:?}");
    assert!(found.iter().any(|text| text.contains("not chained")), "{found:?}");
}

#[test]
fn an_agent_asked_to_wrap_up_has_its_time_and_one_that_cannot_hear_is_ended() {
    for asked in [true, false] {
        let mut world = World::new(1, Mood::Diligent);
        world.start(&["a"]);
        until_agent(&mut world);
        let trigger = Trigger::Context { used: 71, window: 100 };
        world.push(Event::HandoffStarted { iteration: 1, attempt: 1, trigger, asked });
        let stop = [Action::StopAgent { iteration: 1, why: StopWhy::Handoff }];
        let plan = decide(&world.state, world.now());
        assert_eq!(plan.actions == stop, !asked, "{plan:?}");
        let grace = world.policy.handoff.grace.0 / 1000;
        world.advance_seconds(grace - 1);
        assert_eq!(decide(&world.state, world.now()).actions == stop, !asked);
        world.advance_seconds(1);
        assert_eq!(decide(&world.state, world.now()).actions, stop);
    }
}

#[test]
fn handing_over_is_no_failure_and_the_work_goes_on() {
    let mut world = World::new(1, Mood::Diligent);
    world.policy.retry.max_retries = 0;
    world.start(&["a"]);
    for attempt in 1..=3 {
        until_agent(&mut world);
        let trigger = Trigger::Context { used: 71, window: 100 };
        world.push(Event::HandoffStarted {
            iteration: attempt,
            attempt,
            trigger: trigger.clone(),
            asked: true,
        });
        // Ended by us, so it has an error of its own, which is not its fault.
        end_agent(&mut world, "so far", false, Some("killed"), Exit::Signal { signal: 15 });
        assert_eq!(until_judged(&mut world), Verdict::HandedOver { trigger: trigger.clone() });
        let entry = world.state.task(&"a".into()).unwrap();
        assert_eq!((entry.failures, entry.attempts), (0, attempt));
        assert_eq!(world.state.handoffs.pending, Some(trigger));
        assert_eq!(now(&world).phase, Phase::Handoff);
    }
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
    assert_eq!(checker::check(&world.journal), vec![]);
}

#[test]
fn who_claims_after_being_asked_to_wrap_up_is_judged_like_anybody() {
    let mut world = World::new(1, Mood::Diligent);
    world.start(&["a"]);
    until_agent(&mut world);
    let trigger = Trigger::Requested { by: "me".to_owned() };
    world.push(Event::HandoffStarted { iteration: 1, attempt: 1, trigger, asked: true });
    end_agent(&mut world, "done", true, None, Exit::Code { code: 0 });
    assert_eq!(until_judged(&mut world), Verdict::Accepted { verified: true });
    // But the claim of one that had to be ended counts for nothing.
    let mut world = World::new(1, Mood::Diligent);
    world.start(&["a"]);
    until_agent(&mut world);
    let trigger = Trigger::Requested { by: "me".to_owned() };
    world.push(Event::HandoffStarted { iteration: 1, attempt: 1, trigger, asked: true });
    end_agent(&mut world, "done", true, Some("killed"), Exit::Signal { signal: 9 });
    assert!(matches!(until_judged(&mut world), Verdict::HandedOver { .. }));
}

#[test]
fn errors_in_a_row_timeouts_and_the_end_of_a_phase_hand_over() {
    let triggers = |world: &World| -> Vec<Trigger> {
        let events = world.journal.iter().filter_map(|envelope| match &envelope.event {
            Event::HandoffStarted { trigger, .. } => Some(trigger.clone()),
            _ => None,
        });
        events.collect()
    };
    let mut world = World::new(1, Mood::FailsDifferently);
    world.start(&["a"]);
    world.run();
    assert_eq!(triggers(&world), [Trigger::Errors { count: 3 }]);

    let mut world = World::new(1, Mood::Diligent);
    world.start(&["a"]);
    until_agent(&mut world);
    end_agent(&mut world, "", false, Some("timed out"), Exit::TimedOut);
    world.run();
    assert_eq!(triggers(&world), [Trigger::Timeout]);

    let mut world = World::new(1, Mood::Diligent);
    world.start(&["a", "b", "c"]);
    let mut later = world.state.task(&"c".into()).unwrap().spec.clone();
    later.phase += 1;
    let first = later.phase - 1;
    let (added, removed) = (Vec::new(), Vec::new());
    world.push(Event::BacklogRead {
        revision: "2".to_owned(),
        added,
        changed: vec![later],
        removed,
        order: None,
    });
    world.run();
    assert_eq!(triggers(&world), [Trigger::Phase { phase: first }]);
    assert_eq!(checker::check(&world.journal), vec![]);
}

#[test]
fn thresholds_are_crossed_not_met() {
    let policy = Policy::default();
    let full = |used| policy.by_context(ContextFill { used, window: 100 });
    assert_eq!((full(70), full(71)), (None, Some(Trigger::Context { used: 71, window: 100 })));
    assert_eq!(policy.by_budget(7.0, 8.0, 10.0), None);
    assert_eq!(policy.by_budget(7.0, 8.5, 10.0), Some(Trigger::Budget { percent: 85 }));
    assert_eq!(policy.by_budget(8.1, 8.5, 10.0), None, "it was over before");
    assert_eq!(policy.by_budget(0.0, 1.0, 0.0), None);
    let never = Policy { context_threshold: None, budget_threshold: None, ..Policy::default() };
    assert_eq!(never.by_context(ContextFill { used: 100, window: 100 }), None);
    assert_eq!(never.by_budget(1.0, 10.0, 10.0), None);
    assert!(wrap_up(&Trigger::Context { used: 71, window: 100 }).contains("71 % full"));
}

#[test]
fn the_continuation_tells_all_that_is_needed_in_little_room() {
    let mut world = World::new(1, Mood::Diligent);
    world.start(&["a", "b", "c"]);
    world.run_until(|event| matches!(event, Event::TaskCompleted { .. }));
    until_agent(&mut world);
    let message = "Decisions:\n- use a queue\nAssumptions:\n- one writer\nConstraints:\n- no new crate\n\
                   Next steps:\n- drain it\n<handoff>the context is full</handoff>";
    let trigger = Trigger::Requested { by: "the agent".to_owned() };
    world.push(Event::HandoffStarted { iteration: 2, attempt: 1, trigger, asked: false });
    end_agent(&mut world, message, false, None, Exit::Code { code: 0 });
    assert!(matches!(until_judged(&mut world), Verdict::HandedOver { .. }));
    let text = continuation(&now(&world), true);
    for needed in [
        "iteration 2, attempt 1 at b: handed over: the context is full (asked for by the agent)",
        "lies in this directory",
        "Completed: 1 (a)",
        "Pending: 2 (b (attempt 1: handed over), c)",
        "Decisions:\n- use a queue",
        "Assumptions:\n- one writer",
        "Constraints:\n- no new crate",
        "Next steps:\n- drain it\n",
    ] {
        assert!(text.contains(needed), "{needed:?} is missing in\n{text}");
    }
    assert!(!continuation(&now(&world), false).contains("this directory"));
    assert!(continuation(&build(&Loop::default(), Uuid::nil(), world.now()), true).len() <= 512);

    let mut long = now(&world);
    long.decisions = vec!["d".repeat(5000); 50];
    long.recovery.next_steps = vec!["n".repeat(5000); 50];
    assert!(continuation(&long, true).len() <= MAX_CONTINUATION);
}

/// What is left may all wait on others, or on a person: they are named.
#[test]
fn tasks_that_wait_or_are_blocked_are_named() {
    let mut world = World::new(1, Mood::Diligent);
    world.start(&["a", "b<a", "c<b"]);
    let reason = "3 attempts".to_owned();
    world.push(Event::TaskFailed { task: "a".into(), reason });
    let made = now(&world);
    let names = |group: &Group| group.items.iter().map(|item| item.task.to_string()).collect::<Vec<_>>();
    assert_eq!((made.pending.count, names(&made.pending)), (2, vec!["b".to_owned(), "c".to_owned()]));
    assert_eq!((made.blocked.count, made.blocked.items[0].why.as_str()), (1, "failed: 3 attempts"));
    let text = continuation(&made, false);
    assert!(text.contains("Pending: 2 (b (waits on a), c (waits on b))"), "{text}");
    // Done after all, it blocks nothing, whenever the checkpoint was made.
    world.push(Event::StatusSet { task: "a".into(), status: FileStatus::Done, by: "ann".to_owned() });
    let text = continuation(&made.as_of_now(&world.state), false);
    assert!(!text.contains("Blocked") && text.contains("Completed: 1"), "{text}");
    assert!(!text.contains("(,") && !text.contains("()"), "{text}");
}

/// What was decided holds until there is something newer; next steps are those said last.
#[test]
fn decisions_outlive_the_next_attempt_and_reach_those_who_depend_on_them() {
    let mut world = World::new(1, Mood::Diligent);
    world.start(&["a", "b<a", "c"]);
    let says = |world: &mut World, message: &str, claim: bool| {
        until_agent(world);
        end_agent(world, message, claim, None, Exit::Code { code: 0 });
        until_judged(world)
    };
    says(&mut world, "Decisions:\n- use a queue\n\nNext steps:\n- the other half", false);
    world.run_until(|event| matches!(event, Event::Checkpointed { .. }));
    says(&mut world, "Went on a little.", false);
    world.run_until(|event| matches!(event, Event::Checkpointed { .. }));
    let third = continuation(&now(&world), true);
    assert!(third.contains("- use a queue") && third.contains("- the other half"), "{third}");

    says(&mut world, "Decisions:\n- one writer\n\nNext steps:\n- measure it", true);
    world.run_until(|event| matches!(event, Event::TaskCompleted { .. }));
    let of = |id: &str| decided_before(&world.state, &world.state.task(&id.into()).unwrap().spec);
    assert_eq!(of("b"), ["a: use a queue", "a: one writer", "a: next step: measure it"]);
    assert_eq!(of("c"), [""; 0], "nothing of tasks that it does not depend on");
}

/// One start of an agent claims once, however often its work is judged.
#[test]
fn work_that_a_hook_changed_is_judged_again_without_another_claim() {
    let mut world = World::new(1, Mood::Diligent);
    world.start(&["a"]);
    until_agent(&mut world);
    end_agent(&mut world, "done", true, None, Exit::Code { code: 0 });
    assert!(matches!(until_judged(&mut world), Verdict::Accepted { .. }));
    let once = world.state.rows;
    assert_eq!((once.done, once.without_commit), (1, 1));
    world.push(Event::TreeAltered { iteration: 1, attempt: 1 });
    assert!(matches!(until_judged(&mut world), Verdict::Accepted { .. }));
    assert_eq!(world.state.rows, once);
    let supports = |envelope: &Envelope| match &envelope.event {
        Event::Judged { signals, .. } => signals.clone(),
        _ => Vec::new(),
    };
    let supports: Vec<_> = world.journal.iter().flat_map(supports).collect();
    assert!(!supports.iter().any(|signal| matches!(signal, Signal::DoneClaims { .. })), "{supports:?}");
}

/// Why an agent hands over says nothing of what is to be done.
#[test]
fn the_reason_of_a_handoff_is_no_next_step() {
    let mut world = World::new(1, Mood::Diligent);
    world.start(&["a", "b<a"]);
    until_agent(&mut world);
    end_agent(&mut world, "Next steps:\n- write the migration", false, None, Exit::Code { code: 0 });
    world.run_until(|event| matches!(event, Event::Checkpointed { .. }));
    until_agent(&mut world);
    let trigger = Trigger::Requested { by: "the agent".to_owned() };
    world.push(Event::HandoffStarted { iteration: 2, attempt: 2, trigger, asked: false });
    end_agent(&mut world, "<handoff>out of room</handoff>", false, None, Exit::Code { code: 0 });
    world.run_until(|event| matches!(event, Event::Checkpointed { .. }));
    let made = now(&world);
    assert_eq!(made.recovery.next_steps, ["write the migration"]);
    assert_eq!(made.outcome, "handed over: out of room");
    assert!(made.recovery.continuation_prompt.contains("Next steps:\n- write the migration\n"));
    until_agent(&mut world);
    end_agent(&mut world, "done", true, None, Exit::Code { code: 0 });
    world.run_until(|event| matches!(event, Event::TaskCompleted { .. }));
    assert_eq!(decided_before(&world.state, &world.state.task(&"b".into()).unwrap().spec), [""; 0]);
}

#[test]
fn what_agents_learn_is_remembered_across_runs_within_bounds() {
    let mut world = World::new(1, Mood::Diligent);
    world.policy.limits.iterations = None;
    world.policy.limits.no_progress = 0;
    world.start(&["a", "b"]);
    for n in 0..60 {
        until_agent(&mut world);
        let message = format!("<memory>\n- note {}\n- always the same\n</memory>", n % 50);
        end_agent(&mut world, &message, false, None, Exit::Code { code: 0 });
        world.run_until(|event| matches!(event, Event::Checkpointed { .. }));
        world.push(Event::TaskReopened { task: "a".into(), by: "me".to_owned() });
        world.push(Event::TaskReopened { task: "b".into(), by: "me".to_owned() });
    }
    let notes: Vec<&str> = world.state.memory.notes().map(|note| note.text.as_str()).collect();
    assert_eq!(notes.len(), 40);
    assert_eq!(notes.iter().filter(|note| **note == "always the same").count(), 1);
    assert_eq!(notes[38..], ["note 9", "always the same"]);
    assert_eq!(world.state.memory.newest(45), ["a: note 8", "a: note 9", "a: always the same"]);
    let folded = Loop::fold(&world.journal);
    assert_eq!(folded.memory, world.state.memory);
}

#[test]
fn going_back_puts_the_tasks_back_and_numbers_go_on() {
    let mut world = World::new(1, Mood::Diligent);
    world.start(&["a", "b", "c<b"]);
    world.run_until(|event| matches!(event, Event::TaskCompleted { .. }));
    world.run_until(|event| matches!(event, Event::Checkpointed { .. }));
    let then = world.state.clone();
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
    let tasks = restore::plan(&world.state, &then);
    let changed: Vec<(&str, &Then)> = tasks.iter().map(|then| (then.task.as_str(), &then.state)).collect();
    assert_eq!(changed, [("b", &Then::Open), ("c", &Then::Open)]);
    let id = Uuid::nil();
    world.push(Event::RestoreStarted {
        id,
        to_seq: then.seq,
        commit: Some("base".to_owned()),
        branch: None,
        from: None,
        reference: "refs/wiggum/x".to_owned(),
        tasks,
        by: "me".to_owned(),
    });
    assert_eq!(world.state.tasks.counts().done, 3, "nothing has changed yet");
    world.push(Event::Restored { id });
    assert_eq!(world.state.tasks.counts().done, 1);
    assert_eq!(world.state.iterations, 3);
    assert_eq!(world.state.task(&"b".into()).unwrap().attempts, 1);
    assert!(world.state.status_due.contains("b") && world.state.status_due.contains("c"));
    world.push(Event::RunStarted {
        run: 2,
        policy: Box::new(world.policy.clone()),
        agent: "agent".to_owned(),
        version: "0".to_owned(),
        git: true,
        sandbox: String::new(),
        tree: String::new(),
    });
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
    assert_eq!(world.state.iterations, 5);
    assert_eq!(world.state.task(&"b".into()).unwrap().attempts, 2);
    assert_eq!(checker::check(&world.journal), vec![]);
    assert!(restore::plan(&world.state, &world.state).is_empty());
}

#[test]
fn what_was_asked_or_came_later_is_open_when_gone_back() {
    let state = |name: &str, task: TaskState| {
        let mut world = World::new(1, Mood::Diligent);
        world.start(&[name]);
        match task {
            TaskState::Skipped => world.push(Event::TaskSkipped { task: name.into(), by: "me".to_owned() }),
            TaskState::Done { .. } => world.run(),
            _ => {}
        }
        world.state
    };
    let done = TaskState::Done { verified: true, by_hand: false };
    // Done since, but not there then: its work is not in the tree any more.
    let tasks = restore::plan(&state("new", done), &state("old", TaskState::Open));
    assert_eq!(tasks[0].state, Then::Open);
    // Skipped by a person since: that word stands, unless the task was there and open.
    assert!(restore::plan(&state("new", TaskState::Skipped), &state("old", TaskState::Open)).is_empty());
    let tasks = restore::plan(&state("a", TaskState::Skipped), &state("a", TaskState::Open));
    assert_eq!(tasks[0].state, Then::Open);
}

#[test]
fn a_restore_that_was_not_begun_or_stands_open_breaks_the_rules() {
    let mut world = World::new(1, Mood::Diligent);
    world.start(&["a"]);
    world.push(Event::Restored { id: Uuid::nil() });
    let found = checker::check(&world.journal);
    assert!(found[0].message.contains("not begun"), "{found:?}");
}

#[test]
fn time_of_nobody_does_not_count() {
    let mut world = World::new(1, Mood::Diligent);
    world.start(&["a"]);
    world.advance_seconds(5);
    world.push(Event::Noticed { task: None, message: "at work".to_owned() });
    assert_eq!(world.state.run.active_ms, 5000);
    // Another process makes a checkpoint an hour after the engine was killed.
    world.advance_seconds(3600);
    let mut envelope = world.journal.last().unwrap().clone();
    envelope.seq += 1;
    envelope.epoch += 1;
    envelope.at = world.now();
    world.state.apply(&envelope);
    assert_eq!(world.state.run.active_ms, 5000);
}

#[test]
fn notes_are_read_as_people_write_them() {
    let list = |items: &[&str]| -> Vec<String> { items.iter().map(|item| (*item).to_owned()).collect() };
    let check = |message: &str, decisions: &[&str], next: &[&str]| {
        let notes = read_notes(message);
        assert_eq!(notes.decisions, list(decisions), "{message}");
        assert_eq!(notes.next_steps, list(next), "{message}");
    };
    check("## Decisions\n\n- one\n- two\n\n## Next steps\n1. three", &["one", "two"], &["three"]);
    check("**Decisions:**\n* one\n  goes on\n* two", &["one goes on", "two"], &[]);
    check("Decision: use SQLite\nNext step: write it", &["use SQLite"], &["write it"]);
    check("Key decisions:\nWe keep the old name.\n\nMore prose.", &["We keep the old name."], &[]);
    check("Decisions:\n- one\n\nAnd so it was.", &["one"], &[]);
    check("Decisions: none\nNext steps:\n- n/a", &[], &[]);
    check("Next steps:\n- the docs\n<promise>DONE</promise>", &[], &["the docs"]);
    check("The decisions were hard. Next steps are not clear.", &[], &[]);
    check("```\nDecisions:\n- shown\n```", &[], &[]);
    check("> Decisions:\n> - quoted", &[], &[]);
    check("Remaining work:\n- a\n- a\n- b", &[], &["a", "b"]);
    let notes = read_notes("Assumptions:\n- x\nConstraints:\n- y\n");
    assert_eq!((notes.assumptions, notes.constraints), (list(&["x"]), list(&["y"])));
}

#[test]
fn blocks_are_read_where_they_are_meant() {
    let notes = read_notes("<memory>\n- the tests need TZ=UTC\n- use make\n</memory>\nbye");
    assert_eq!(notes.learnt, ["the tests need TZ=UTC", "use make"]);
    assert_eq!(read_notes("<Memory>one thing</Memory>").learnt, ["one thing"]);
    assert_eq!(read_notes("<handoff>context full</handoff>").handoff.as_deref(), Some("context full"));
    assert_eq!(read_notes("<handoff>\ncut off").handoff.as_deref(), Some("cut off"));
    for shown in [
        "end with `<handoff>why</handoff>` on its own line",
        "```\n<handoff>x</handoff>\n<memory>y</memory>\n```",
        "no tags at all",
    ] {
        assert_eq!(read_notes(shown), Notes::default(), "{shown}");
    }
    assert_eq!(
        summary("# Report\n\nI added a queue\nand tests.\n\n<memory>x</memory>"),
        "I added a queue and tests."
    );
}

#[test]
fn whatever_an_agent_writes_its_notes_are_bounded() {
    let item = format!("- {}\n", "x".repeat(10_000));
    let lists = ["Decisions", "Assumptions", "Constraints", "Next steps"];
    let distinct: String = (0..500).map(|n| format!("- {n} {}", &item[2..])).collect();
    let mut message: String = lists.iter().map(|name| format!("{name}:\n{distinct}\n")).collect();
    message.push_str(&format!("<memory>\n{distinct}</memory>\n<handoff>{}</handoff>\n", "y".repeat(100_000)));
    let notes = read_notes(&message);
    assert_eq!((notes.decisions.len(), notes.learnt.len()), (12, 12));
    assert!(serde_json::to_string(&notes).unwrap().len() < 20_000);
}
