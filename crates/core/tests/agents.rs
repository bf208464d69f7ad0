//! Who works when an agent cannot: the next one, or nobody until it is back.

#![expect(clippy::unwrap_used, reason = "a test may fail here")]

#[expect(dead_code, reason = "each test file uses its part of this")]
mod support;

use jiff::Timestamp;
use support::{Mood, World};
use wiggum_core::decide::{Action, Waiting, decide};
use wiggum_core::event::{AgentFacts, BlobRef, EndReason, Event, Exit, Failure, Trouble};
use wiggum_core::policy::{Millis, Policy};
use wiggum_core::state::add_millis;

fn world(agents: &[&str]) -> World {
    let mut world = World::new(1, Mood::Diligent);
    world.policy.agents.order = agents.iter().map(|name| (*name).to_owned()).collect();
    world.start(&["A"]);
    world
}

/// Goes on until the next iteration has started, or nothing can; says who works.
fn next_agent(world: &mut World) -> Option<String> {
    for _ in 0..20 {
        let plan = decide(&world.state, world.now);
        if plan.actions.is_empty() {
            return None;
        }
        for action in &plan.actions {
            world.perform(action);
            if let Action::StartIteration { agent, .. } = action {
                return Some(agent.clone());
            }
        }
        if !world.state.run.active {
            return None;
        }
    }
    panic!("nothing comes of it")
}

fn fails_with(world: &mut World, trouble: Trouble) {
    let open = world.state.open.here().cloned().unwrap();
    let text = "no".to_owned();
    world.push(Event::AgentEnded {
        iteration: open.iteration,
        attempt: open.attempt,
        exit: Exit::Code { code: 1 },
        message: BlobRef::default(),
        duration: Millis(1000),
        usage: None,
        facts: Box::new(AgentFacts {
            trouble: Some(trouble),
            session: Some("s".to_owned()),
            ..AgentFacts::default()
        }),
        claim: None,
        questions: Vec::new(),
        error: Some(Failure { message: text.clone(), signature: text }),
        flags: Vec::new(),
        phrase: None,
        notes: Box::default(),
        ended_processes: 0,
    });
}

fn waits_until(world: &World) -> Timestamp {
    match decide(&world.state, world.now).waiting {
        Some(Waiting::Unavailable { until, .. }) => until,
        other => panic!("it should wait for the agent: {other:?}"),
    }
}

#[test]
fn a_limit_is_waited_out_and_costs_nothing() {
    let mut world = world(&["one"]);
    assert_eq!(next_agent(&mut world).as_deref(), Some("one"));
    let reset = add_millis(world.now, 3_600_000);
    fails_with(&mut world, Trouble::UsageLimit { resets_at: Some(reset) });
    assert_eq!(next_agent(&mut world), None);
    assert_eq!(waits_until(&world), reset);
    assert_eq!(decide(&world.state, world.now).wake_at, Some(reset));
    let entry = world.state.task(&"A".into()).unwrap();
    assert_eq!((world.state.run.iterations, entry.attempts, entry.failures), (0, 0, 0));
    world.now = reset;
    assert_eq!(next_agent(&mut world).as_deref(), Some("one"));
    assert_eq!(world.state.open.here().unwrap().attempt, 1);
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
}

#[test]
fn the_next_agent_takes_over_and_the_first_comes_back() {
    let mut world = world(&["one", "two"]);
    assert_eq!(next_agent(&mut world).as_deref(), Some("one"));
    let reset = add_millis(world.now, 60_000);
    fails_with(&mut world, Trouble::UsageLimit { resets_at: Some(reset) });
    assert_eq!(next_agent(&mut world).as_deref(), Some("two"));
    fails_with(&mut world, Trouble::Other);
    assert_eq!(next_agent(&mut world), None, "an ordinary error is backed off from");
    world.now = add_millis(reset, 60_000);
    assert_eq!(next_agent(&mut world).as_deref(), Some("one"));
}

#[test]
fn a_reset_in_the_past_is_no_reason_to_try_again_at_once() {
    let mut world = world(&["one"]);
    next_agent(&mut world);
    let past = Some(add_millis(Timestamp::UNIX_EPOCH, 1));
    fails_with(&mut world, Trouble::UsageLimit { resets_at: past });
    assert_eq!(next_agent(&mut world), None);
    assert!(waits_until(&world) > world.now);
}

#[test]
fn a_limit_that_always_ends_in_a_few_seconds_is_asked_about_less_and_less_often() {
    let mut world = world(&["one"]);
    let mut waits = Vec::new();
    for _ in 0..8 {
        assert_eq!(next_agent(&mut world).as_deref(), Some("one"));
        let reset = add_millis(world.now, 20_000);
        fails_with(&mut world, Trouble::UsageLimit { resets_at: Some(reset) });
        next_agent(&mut world);
        let until = waits_until(&world);
        waits.push(until.as_millisecond() - world.now.as_millisecond());
        world.now = until;
    }
    assert!(waits[0] <= 20_000, "the first time it is believed: {waits:?}");
    assert!(waits[7] >= 60_000, "then it is backed off from: {waits:?}");
}

#[test]
fn a_limit_that_does_not_say_when_it_ends_is_waited_for_in_minutes() {
    let mut world = world(&["one"]);
    let minutes = |longest: i64| longest * 60_000;
    let mut waits = Vec::new();
    for _ in 0..6 {
        assert_eq!(next_agent(&mut world).as_deref(), Some("one"));
        fails_with(&mut world, Trouble::UsageLimit { resets_at: None });
        next_agent(&mut world);
        let until = waits_until(&world);
        waits.push(until.as_millisecond() - world.now.as_millisecond());
        world.now = until;
    }
    // Half of it at the least, since it varies; an hour at the most.
    for (wait, longest) in waits.iter().zip([5, 10, 20, 40, 60, 60]) {
        assert!((minutes(longest) / 2 - 1500..=minutes(longest)).contains(wait), "{waits:?}");
    }
    assert_eq!(world.state.run.iterations, 0, "waiting costs nothing");
    // Once it worked, the next one is waited for as the first was.
    assert_eq!(next_agent(&mut world).as_deref(), Some("one"));
    fails_with(&mut world, Trouble::Other);
    next_agent(&mut world);
    world.now = add_millis(world.now, 600_000);
    assert_eq!(next_agent(&mut world).as_deref(), Some("one"));
    fails_with(&mut world, Trouble::UsageLimit { resets_at: None });
    next_agent(&mut world);
    assert!(waits_until(&world).as_millisecond() - world.now.as_millisecond() <= minutes(5));
}

#[test]
fn no_limit_is_waited_for_longer_than_patience_lasts() {
    let mut world = World::new(1, Mood::Diligent);
    world.policy.agents.order = vec!["one".to_owned()];
    world.policy.agents.max_wait = Millis::from_secs(90);
    world.start(&["A"]);
    next_agent(&mut world);
    let began = world.now;
    fails_with(&mut world, Trouble::UsageLimit { resets_at: None });
    assert_eq!(next_agent(&mut world), None);
    let until = waits_until(&world);
    let patience = add_millis(began, 90_000)..add_millis(began, 95_000);
    assert!(patience.contains(&until), "as long as it lasts, and then once more: {until}");
    world.now = until;
    assert_eq!(next_agent(&mut world).as_deref(), Some("one"));
    fails_with(&mut world, Trouble::UsageLimit { resets_at: None });
    world.run();
    assert_eq!(world.ended(), EndReason::PersonNeeded);
}

#[test]
fn faults_of_the_provider_back_off_and_are_forgotten_once_it_works() {
    let mut world = world(&["one"]);
    let mut waits = Vec::new();
    for _ in 0..4 {
        assert_eq!(next_agent(&mut world).as_deref(), Some("one"));
        fails_with(&mut world, Trouble::Overloaded);
        next_agent(&mut world);
        let until = waits_until(&world);
        waits.push(until.as_millisecond() - world.now.as_millisecond());
        world.now = until;
    }
    // Half of it at the least, since it varies: 5, 10, 20, 40 seconds.
    for (wait, longest) in waits.iter().zip([5000, 10_000, 20_000, 40_000]) {
        assert!((longest / 2 - 1500..=longest).contains(wait), "{waits:?}");
    }
    assert_eq!(world.state.run.consecutive_errors, 0);
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
}

#[test]
fn a_limit_beyond_patience_and_a_missing_login_need_a_person() {
    for trouble in [Trouble::Authentication, Trouble::Missing] {
        let mut world = world(&["one"]);
        next_agent(&mut world);
        fails_with(&mut world, trouble);
        world.run();
        assert_eq!(world.ended(), EndReason::PersonNeeded);
    }
    let mut world = world(&["one"]);
    next_agent(&mut world);
    let far = add_millis(world.now, 13 * 3_600_000);
    fails_with(&mut world, Trouble::UsageLimit { resets_at: Some(far) });
    world.run();
    assert_eq!(world.ended(), EndReason::PersonNeeded);
    assert!(world.state.run.ended.as_ref().unwrap().1.contains("one cannot work"));
}

#[test]
fn roles_and_tasks_have_agents_of_their_own() {
    let mut world = World::new(1, Mood::Diligent);
    world.policy.agents.order = vec!["one".to_owned()];
    world.policy.agents.roles = [("tester".to_owned(), "two".to_owned())].into();
    let mut task = wiggum_core::task::Task::new("A", "A");
    let order = |task: &wiggum_core::task::Task, world: &World| world.policy.agents.for_task(task).join(" ");
    assert_eq!(order(&task, &world), "one");
    task.role = "tester".to_owned();
    assert_eq!(order(&task, &world), "two one");
    task.agent = Some("three".to_owned());
    assert_eq!(order(&task, &world), "three one");
    task.agent = Some("one".to_owned());
    assert_eq!(order(&task, &world), "one");
}

#[test]
fn a_lost_session_is_started_anew_at_once_and_costs_nothing() {
    let mut world = continuing(|_| ());
    next_agent(&mut world);
    fails_with(&mut world, Trouble::Other);
    assert_eq!(next_agent(&mut world), None, "an ordinary error is backed off from");
    world.now = add_millis(world.now, 60_000);
    next_agent(&mut world);
    assert_eq!(world.state.agents.session(&world.policy.agents, "one"), Some("s"));
    let used = world.state.run.iterations;
    fails_with(&mut world, Trouble::SessionLost);
    assert_eq!(next_agent(&mut world).as_deref(), Some("one"));
    assert_eq!(world.state.agents.session(&world.policy.agents, "one"), None);
    assert_eq!(world.state.run.iterations, used, "the start that lost it is not counted");
}

/// An agent that says so at every start would otherwise be started for ever, at whatever price.
#[test]
fn an_agent_that_always_loses_its_session_fails_by_it() {
    for continue_sessions in [false, true] {
        let mut world = continuing(|policy| {
            policy.agents.continue_sessions = continue_sessions;
            policy.limits.iterations = Some(5);
        });
        let starts = starts_until_end(&mut world, &Trouble::SessionLost);
        assert!((1..=5).contains(&starts), "{starts} starts");
        assert_ne!(world.state.run.iterations, 0, "each is an iteration");
    }
}

#[test]
fn no_trouble_of_an_agent_starts_it_without_a_limit() {
    let troubles = [
        Trouble::UsageLimit { resets_at: Some(Timestamp::UNIX_EPOCH) },
        Trouble::UsageLimit { resets_at: None },
        Trouble::Overloaded,
        Trouble::Network,
        Trouble::SessionLost,
        Trouble::ContextFull,
        Trouble::Truncated,
        Trouble::Empty,
        Trouble::Refused,
        Trouble::OwnLimit,
        Trouble::PermissionDenied,
        Trouble::Silent,
        Trouble::Interrupted,
        Trouble::Other,
    ];
    for trouble in troubles {
        let mut world = continuing(|policy| {
            policy.agents.backoff = Millis(0);
            policy.agents.backoff_max = Millis(0);
            policy.agents.limit_wait = Millis(0);
        });
        let starts = starts_until_end(&mut world, &trouble);
        assert!((1..=201).contains(&starts), "{trouble:?}: {starts} starts");
    }
}

fn continuing(set: impl FnOnce(&mut Policy)) -> World {
    let mut world = World::new(1, Mood::Diligent);
    world.policy.agents.order = vec!["one".to_owned()];
    world.policy.agents.continue_sessions = true;
    set(&mut world.policy);
    world.start(&["A"]);
    world
}

/// How often the agent is started if it says the same each time, until the run ends.
fn starts_until_end(world: &mut World, trouble: &Trouble) -> u32 {
    let mut starts = 0;
    while world.state.run.active && starts < 1000 {
        match next_agent(world) {
            Some(_) => {
                starts += 1;
                fails_with(world, trouble.clone());
            }
            None => world.now = decide(&world.state, world.now).wake_at.unwrap_or(world.now),
        }
    }
    starts
}

#[test]
fn a_session_is_gone_on_with_unless_its_context_is_full() {
    for (trouble, session) in [(Trouble::Other, Some("s")), (Trouble::ContextFull, None)] {
        let mut world = World::new(1, Mood::Diligent);
        world.policy.agents.order = vec!["one".to_owned()];
        world.policy.agents.continue_sessions = true;
        world.start(&["A"]);
        next_agent(&mut world);
        fails_with(&mut world, trouble);
        next_agent(&mut world);
        assert_eq!(world.state.agents.session(&world.policy.agents, "one"), session);
    }
}
