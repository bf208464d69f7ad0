//! Money: limits hold, are told once, and only slow or end what they are meant to.

#[expect(dead_code, reason = "each test file uses its part of this")]
mod support;

use support::{Mood, World};
use wiggum_core::budget::{Account, AtLimit, Cap, Period, Strategy, Sum};
use wiggum_core::checker;
use wiggum_core::decide::{Action, Waiting, decide};
use wiggum_core::event::{EndReason, Event};
use wiggum_core::forecast::{Interval, MULTI_AGENT, forecast};
use wiggum_core::state::{Loop, add_millis};
use wiggum_core::task::Task;

fn dollars(max_cost: f64) -> Cap {
    Cap { max_cost: Some(max_cost), max_tokens: None, period: Period::None }
}

/// A world in which every call costs so many cents.
fn world(mood: Mood, cents: u64, budget: impl FnOnce(&mut wiggum_core::budget::Budget)) -> World {
    let mut world = World::new(1, mood);
    world.cents = cents;
    budget(&mut world.policy.budget);
    world
}

fn alerts(world: &World) -> Vec<(f64, f64)> {
    let alert = |event: &Event| match event {
        Event::BudgetAlert { spent, threshold, .. } => Some((*spent, *threshold)),
        _ => None,
    };
    world.journal.iter().filter_map(|envelope| alert(&envelope.event)).collect()
}

fn sound(world: &World) {
    let violations = checker::check(&world.journal);
    assert!(violations.is_empty(), "{violations:?}");
}

#[test]
fn a_loop_ends_with_the_call_that_uses_up_its_budget() {
    let mut world = world(Mood::Diligent, 40, |budget| budget.own = dollars(1.0));
    world.start(&["a", "b", "c", "d", "e"]);
    world.run();
    let (reason, detail) = world.state.run.ended.clone().unwrap();
    assert_eq!((reason, reason.exit_code()), (EndReason::BudgetExhausted, 4));
    assert_eq!(detail, "spent $1.20 of $1.00 (loop budget), $0.20 over");
    assert_eq!(world.state.tasks.counts().done, 3);
    assert_eq!(alerts(&world), [(0.8, 0.8)], "and the limit itself is told by the end");
    sound(&world);
}

#[test]
fn tokens_are_a_budget_too() {
    let cap = Cap { max_cost: None, max_tokens: Some(100), period: Period::None };
    let mut world = world(Mood::Diligent, 40, |budget| budget.own = cap);
    world.start(&["a", "b", "c", "d"]);
    world.run();
    let (_, detail) = world.state.run.ended.clone().unwrap();
    assert_eq!(detail, "spent 120 tokens of 100 tokens (loop budget), 20 tokens over");
    sound(&world);
}

#[test]
fn the_last_task_may_use_up_the_budget() {
    let mut world = world(Mood::Diligent, 50, |budget| budget.own = dollars(1.0));
    world.start(&["a", "b"]);
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
}

#[test]
fn a_new_run_of_the_loop_has_what_is_left_and_a_raised_limit_is_told_anew() {
    let mut world = world(Mood::Diligent, 40, |budget| budget.own = dollars(1.0));
    world.start(&["a", "b", "c", "d", "e", "f"]);
    world.run();
    let again = |world: &mut World, max_cost: f64| {
        world.policy.budget.own = dollars(max_cost);
        let (policy, run) = (Box::new(world.policy.clone()), world.state.run.number + 1);
        let (agent, version, sandbox) = (String::new(), String::new(), String::new());
        world.push(Event::RunStarted {
            run,
            policy,
            agent,
            version,
            git: true,
            sandbox,
            tree: String::new(),
        });
        world.run();
        world.ended()
    };
    assert_eq!(again(&mut world, 1.0), EndReason::BudgetExhausted);
    assert_eq!(world.state.run.iterations, 0);
    assert_eq!(alerts(&world), [(0.8, 0.8)]);
    assert_eq!(again(&mut world, 2.0), EndReason::BudgetExhausted);
    let told = alerts(&world);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[1].0 >= 1.6, "{told:?}");
    sound(&world);
}

#[test]
fn throttled_calls_wait_longer_each_time_and_go_on() {
    let mut world = world(Mood::Diligent, 100, |budget| {
        budget.own = dollars(1.0);
        budget.action = AtLimit::Throttle;
        budget.throttle = wiggum_core::policy::Millis(10_000);
        budget.throttle_max = wiggum_core::policy::Millis(30_000);
    });
    world.start(&["a", "b", "c", "d", "e"]);
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
    let at = |wanted: fn(&Event) -> bool| -> Vec<i64> {
        let found = world.journal.iter().filter(|envelope| wanted(&envelope.event));
        found.map(|envelope| envelope.at.as_millisecond()).collect()
    };
    let started = at(|event| matches!(event, Event::IterationStarted { .. }));
    let ended = at(|event| matches!(event, Event::AgentEnded { .. }));
    let waits: Vec<i64> = (1..5).map(|n| (started[n] - ended[n - 1]) / 1000).collect();
    assert_eq!(waits, [10, 20, 30, 30]);
    assert_eq!(alerts(&world), [(1.0, 1.0)]);
    sound(&world);
}

#[test]
fn a_throttled_loop_says_until_when_and_why_also_after_a_restart() {
    let mut world = world(Mood::Diligent, 100, |budget| {
        budget.own = dollars(1.0);
        budget.action = AtLimit::Throttle;
    });
    world.start(&["a", "b"]);
    world.run_until(|event| matches!(event, Event::BudgetAlert { .. }));
    let folded = Loop::fold(&world.journal);
    let plan = decide(&folded, world.now());
    let Some(Waiting::Throttled { budget, until }) = &plan.waiting else { panic!("{plan:?}") };
    assert_eq!((budget.as_str(), Some(*until)), ("$1.00 of $1.00 (loop budget)", plan.wake_at));
    assert!(plan.actions.is_empty());
    assert!(matches!(decide(&folded, *until).actions[..], [Action::StartIteration { .. }]));
}

#[test]
fn alerts_come_once_for_each_threshold_and_stop_nothing() {
    let mut world = world(Mood::Diligent, 30, |budget| {
        budget.own = dollars(1.0);
        budget.action = AtLimit::AlertOnly;
        budget.alert_at = vec![0.5, 0.8];
    });
    world.start(&["a", "b", "c", "d", "e", "f"]);
    world.run_until(|event| matches!(event, Event::TaskCompleted { iteration: 4, .. }));
    world.resume();
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
    let told: Vec<f64> = alerts(&world).into_iter().map(|(_, threshold)| threshold).collect();
    assert_eq!(told, [0.5, 0.8, 1.0]);
    sound(&world);
}

#[test]
fn allow_says_nothing_at_all() {
    let mut world = world(Mood::Diligent, 30, |budget| {
        budget.own = dollars(0.1);
        budget.action = AtLimit::Allow;
    });
    world.start(&["a", "b"]);
    world.run();
    assert_eq!((world.ended(), alerts(&world).len()), (EndReason::GoalAchieved, 0));
}

#[test]
fn a_task_too_dear_fails_alone_and_may_be_tried_again_by_a_person() {
    let mut world = world(Mood::Liar, 60, |budget| budget.task = dollars(1.0));
    world.start(&["a", "b"]);
    world.run();
    assert_eq!(world.ended(), EndReason::PersonNeeded);
    assert_eq!(world.state.iterations, 4, "two attempts each, although five would be allowed");
    let reasons: Vec<String> = world
        .journal
        .iter()
        .filter_map(|envelope| match &envelope.event {
            Event::TaskFailed { reason, .. } => Some(reason.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, ["it cost $1.20 of $1.00 (task budget), $0.20 over"; 2]);
    assert_eq!(world.state.questions.len(), 2);
    world.push(Event::RunStarted {
        run: 2,
        policy: Box::new(world.policy.clone()),
        agent: String::new(),
        version: String::new(),
        git: true,
        sandbox: String::new(),
        tree: String::new(),
    });
    world.push(Event::TaskReopened { task: "a".into(), by: "test".to_owned() });
    world.run();
    assert_eq!(world.state.iterations, 6, "it has its budget again");
    sound(&world);
}

#[test]
fn an_hour_has_so_many_calls() {
    let mut world = world(Mood::Diligent, 0, |_| {});
    world.policy.limits.calls_per_hour = Some(2);
    world.start(&["a", "b", "c"]);
    world.run_until(|event| matches!(event, Event::TaskCompleted { iteration: 2, .. }));
    let first = world.journal.iter().find(|e| matches!(e.event, Event::IterationStarted { .. })).unwrap().at;
    // What is left of the second is written to the backlog.
    while let [action] = &decide(&world.state, world.now()).actions[..] {
        world.perform(action);
    }
    let plan = decide(&Loop::fold(&world.journal), world.now());
    let until = add_millis(first, 3_600_000);
    assert_eq!(plan.waiting, Some(Waiting::Rate { calls_per_hour: 2, until }));
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
    sound(&world);
}

#[test]
fn what_others_spend_counts_and_what_they_set_aside_is_waited_for() {
    let others = |spent: f64, reserved: f64| Account {
        spent: Sum { cost_usd: spent, tokens: 0 },
        reserved: Sum { cost_usd: reserved, tokens: 0 },
        in_flight: 1,
        resets_at: None,
    };
    let mut world = world(Mood::Diligent, 10, |budget| budget.project = dollars(1.0));
    world.others = others(0.5, 0.5);
    world.start(&["a", "b"]);
    world.run_until(|event| matches!(event, Event::BudgetAsked { .. }));
    let plan = decide(&world.state, world.now());
    assert!(matches!(plan.waiting, Some(Waiting::Budget { .. })), "{plan:?}");
    world.others = others(0.95, 0.0);
    world.run();
    let (reason, detail) = world.state.run.ended.clone().unwrap();
    assert_eq!(reason, EndReason::BudgetExhausted);
    assert_eq!(detail, "spent $1.05 of $1.00 (project budget), $0.05 over");
    sound(&world);
}

#[test]
fn a_budget_with_a_period_says_when_it_resets_and_begins_anew_then() {
    let reset: jiff::Timestamp = "1970-01-02T00:00:00Z".parse().unwrap();
    let mut world = world(Mood::Diligent, 10, |budget| {
        budget.organisation = Cap { period: Period::Day, ..dollars(1.0) };
    });
    let others =
        Account { spent: Sum { cost_usd: 0.75, tokens: 0 }, resets_at: Some(reset), ..Account::default() };
    world.others = others;
    world.start(&["a", "b", "c", "d", "e"]);
    world.run();
    let (reason, detail) = world.state.run.ended.clone().unwrap();
    assert_eq!(reason, EndReason::BudgetExhausted);
    let expected =
        "spent $1.05 of $1.00 (organisation budget of today, resets 1970-01-02T00:00:00Z), $0.05 over";
    assert_eq!(detail, expected);
    assert_eq!(world.state.iterations, 3);
    assert_eq!(alerts(&world), [(0.85, 0.8)]);
    sound(&world);
    // What is known of the old day says nothing of the new one.
    let gauge = |now| wiggum_core::budget::gauges(&world.state, now).next().unwrap();
    assert_eq!((gauge(add_millis(reset, 0)).spent, gauge(add_millis(reset, 0)).resets_at), (0.0, None));
    assert_ne!(gauge(world.now()).spent, 0.0);
    // The next day there is money again, and its alerts are told again.
    world.now = add_millis(reset, 1000);
    let tomorrow = Some(add_millis(reset, 86_400_000));
    world.others = Account { spent: Sum { cost_usd: 0.35, tokens: 0 }, resets_at: tomorrow, ..others };
    world.start_again();
    world.run();
    assert_eq!(world.ended(), EndReason::GoalAchieved);
    assert_eq!(alerts(&world).len(), 2, "{:?}", alerts(&world));
    sound(&world);
}

#[test]
fn what_this_loop_spends_of_a_shared_budget_counts_at_once() {
    let mut world = world(Mood::Diligent, 100, |budget| {
        budget.project = dollars(1.0);
        budget.action = AtLimit::Throttle;
    });
    world.start(&["a", "b"]);
    world.run_until(|event| matches!(event, Event::TaskCompleted { .. }));
    world.run_until(|event| matches!(event, Event::BudgetAlert { .. }));
    let plan = decide(&world.state, world.now());
    assert!(matches!(plan.waiting, Some(Waiting::Throttled { .. })), "{plan:?}");
}

#[test]
fn the_conservative_strategy_starts_only_what_is_paid_for() {
    for (strategy, calls) in [(Strategy::Greedy, 3), (Strategy::CriticalPath, 3), (Strategy::Conservative, 2)]
    {
        let mut world = world(Mood::Diligent, 40, |budget| {
            budget.own = dollars(1.0);
            budget.strategy = strategy;
        });
        world.start(&["a", "b", "c", "d"]);
        world.run();
        assert_eq!((world.ended(), world.state.iterations), (EndReason::BudgetExhausted, calls));
        sound(&world);
    }
}

#[test]
fn when_money_gets_short_what_most_wait_on_goes_first() {
    let order = |strategy: Strategy| {
        let mut world = world(Mood::Diligent, 30, |budget| {
            budget.own = dollars(1.0);
            budget.alert_at = vec![0.25];
            budget.strategy = strategy;
        });
        world.start(&["a", "b", "c", "c1<c", "c2<c1"]);
        world.run();
        sound(&world);
        let tasks = world.journal.iter().filter_map(|envelope| match &envelope.event {
            Event::IterationStarted { task, .. } => Some(task.to_string()),
            _ => None,
        });
        tasks.collect::<Vec<_>>()
    };
    assert_eq!(order(Strategy::Greedy), ["a", "b", "c", "c1"]);
    assert_eq!(order(Strategy::CriticalPath), ["a", "c", "c1", "b"]);
}

#[test]
fn interrupted_calls_are_paid_for() {
    let mut world = world(Mood::Diligent, 40, |budget| budget.own = dollars(1.0));
    world.start(&["a", "b", "c"]);
    world.run_until(|event| matches!(event, Event::IterationStarted { .. }));
    let usage = wiggum_core::event::Usage { cost_usd: 0.7, ..Default::default() };
    world.push(Event::Charged { iteration: 1, attempt: 1, usage, model: None });
    world.interrupt_first = 1;
    world.run();
    assert_eq!((world.ended(), world.state.tasks.counts().done), (EndReason::BudgetExhausted, 1));
    sound(&world);
}

#[test]
fn a_forecast_comes_from_tasks_alike_and_is_remembered() {
    let mut world = world(Mood::Diligent, 0, |_| {});
    let task = |id: &str, complexity: u32, labels: &[&str]| {
        let mut task = Task::new(id, id);
        task.complexity = complexity;
        task.labels = labels.iter().map(|label| (*label).to_owned()).collect();
        task
    };
    world.start(&[]);
    let mut tasks = vec![task("a1", 1, &[]), task("a2", 1, &[]), task("b1", 5, &[]), task("b2", 5, &[])];
    tasks.extend([
        task("a3", 1, &[]),
        task("b3", 5, &[]),
        task("new", 9, &[]),
        task("many", 1, &[MULTI_AGENT]),
    ]);
    world.push(Event::BacklogRead {
        revision: "2".to_owned(),
        added: tasks,
        changed: Vec::new(),
        removed: Vec::new(),
        order: None,
    });
    assert_eq!(forecast(&world.state), None, "no history");
    for (cents, iteration) in [(10, 1), (20, 2), (100, 3), (120, 4)] {
        world.cents = cents;
        world.run_until(
            move |event| matches!(event, Event::TaskCompleted { iteration: done, .. } if *done == iteration),
        );
    }
    let now = forecast(&world.state).unwrap();
    let Interval { low, expected, high } = now.cost.unwrap();
    // a3 as the other simple ones, b3 as the other hard ones, the new one as all; many agents 15 times that.
    let all = (0.1 + 0.2 + 1.0 + 1.2) / 4.0;
    assert!((expected - (0.15 + 1.1 + all + 15.0 * all)).abs() < 1e-9, "{expected}");
    assert!(low < expected && expected < high && low >= 0.0, "{now:?}");
    assert_eq!((now.tasks_left, now.tasks_done, now.samples), (4, 4, 4));
    let first = world.state.history.first.unwrap();
    assert_eq!((first.tasks_done, first.samples), (2, 2), "made at a quarter of the tasks");
    let folded = Loop::fold(&world.journal);
    assert_eq!(forecast(&folded), Some(now));
    assert_eq!(folded.history.first, Some(first));
}
