//! The figures of an agent at work: a budget stops it, a threshold hands over, and an answer that is
//! complete is judged whatever it cost.

#![expect(clippy::unwrap_used, reason = "a test may fail here")]

#[expect(dead_code, reason = "each test file uses its part of this")]
mod support;

use support::{Mood, World};
use wiggum_core::budget::{self, Account, AtLimit, Cap, Ceiling, Scope, Shared, Sum};
use wiggum_core::checker;
use wiggum_core::decide::{Action, StopWhy, decide};
use wiggum_core::event::{
    AgentFacts, BlobRef, Claim, ClaimSource, ContextFill, EndReason, Event, Exit, Failure, Trouble, Usage,
    Verdict,
};
use wiggum_core::figures::{self, Figures, Traits};
use wiggum_core::handoff::Trigger;
use wiggum_core::policy::Millis;

fn dollars(max_cost: f64) -> Cap {
    Cap { max_cost: Some(max_cost), ..Cap::default() }
}

fn both(max_cost: f64, max_tokens: u64) -> Cap {
    let mut cap = dollars(max_cost);
    cap.max_tokens = Some(max_tokens);
    cap
}

fn usage(cents: u64) -> Usage {
    Usage { input_tokens: cents, cost_usd: cents as f64 / 100.0, ..Usage::default() }
}

/// A loop whose agents make several calls each.
struct Spender {
    world: World,
    traits: Traits,
    /// What each answer of the model costs.
    cents: u64,
    /// What each agent used.
    spent: Vec<u64>,
}

/// How an agent of [`Spender`] ended.
#[derive(Debug, PartialEq)]
enum End {
    Finished,
    Stopped(StopWhy),
}

impl Spender {
    fn new(cents: u64, tasks: &[&str], set: impl FnOnce(&mut World)) -> Self {
        let mut world = World::new(1, Mood::Diligent);
        set(&mut world);
        world.start(tasks);
        Self { world, traits: Traits::default(), cents, spent: Vec::new() }
    }

    /// Goes on until an agent is at work, if there is to be another.
    fn starts(&mut self) -> bool {
        self.world.run_until(|event| matches!(event, Event::IterationStarted { .. }));
        self.world.state.run.active
    }

    /// An agent that wants so many answers of the model, the last of which claims the task.
    fn work(&mut self, answers: u64) -> End {
        let mut figures = Figures::new(self.traits, self.world.state.spending.shared, self.world.now());
        for answer in 1..=answers {
            self.world.advance_seconds(1);
            figures.answered(usage(answer * self.cents), false, self.world.now());
            if let Some(why) = self.follow(&figures) {
                return self.stop(answer, why);
            }
            if answer == answers {
                break;
            }
            figures.called();
            if let Some(why) = self.follow(&figures) {
                return self.stop(answer, why);
            }
            figures.returned();
            if let Some(why) = self.follow(&figures) {
                return self.stop(answer, why);
            }
        }
        self.end(answers, true, None);
        End::Finished
    }

    /// Carries out what follows from the figures; says whether the agent is stopped.
    fn follow(&mut self, figures: &Figures) -> Option<StopWhy> {
        for action in figures::decide(&self.world.state, figures, None, self.world.now()).actions {
            self.world.perform(&action);
        }
        decide(&self.world.state, self.world.now()).actions.iter().find_map(|action| match action {
            Action::StopAgent { why, .. } => Some(*why),
            _ => None,
        })
    }

    fn stop(&mut self, answers: u64, why: StopWhy) -> End {
        self.end(answers, false, Some(Trouble::Interrupted));
        End::Stopped(why)
    }

    fn end(&mut self, answers: u64, claims: bool, trouble: Option<Trouble>) {
        let open = self.world.state.open.here().cloned().expect("an agent is at work");
        self.spent.push(answers * self.cents);
        self.world.push(Event::AgentEnded {
            iteration: open.iteration,
            attempt: open.attempt,
            exit: Exit::Code { code: i32::from(trouble.is_some()) },
            message: BlobRef::default(),
            duration: Millis(10),
            usage: Some(usage(answers * self.cents)),
            error: trouble
                .as_ref()
                .map(|trouble| Failure { message: trouble.to_string(), signature: trouble.to_string() }),
            facts: Box::new(AgentFacts { trouble, ..AgentFacts::default() }),
            claim: claims.then(|| Claim { text: "done".to_owned(), source: ClaimSource::Promise }),
            questions: Vec::new(),
            flags: Vec::new(),
            notes: Box::default(),
            phrase: None,
            ended_processes: 0,
        });
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let verdict = |event: &Event| match event {
            Event::Judged { verdict, .. } => Some(verdict.clone()),
            _ => None,
        };
        self.world.journal.iter().filter_map(|envelope| verdict(&envelope.event)).collect()
    }

    fn sound(&self) {
        let violations = checker::check(&self.world.journal);
        assert!(violations.is_empty(), "{violations:?}");
    }
}

fn no_handover(world: &mut World) {
    world.policy.handoff.budget_threshold = None;
}

#[test]
fn an_agent_is_stopped_with_the_answer_that_uses_up_the_loops_budget() {
    // What was found: $0.90 for the first task, then 21 calls for the second, $19.81 in all.
    let mut spender = Spender::new(90, &["a", "b"], |world| {
        world.policy.budget.own = dollars(1.0);
        no_handover(world);
    });
    assert!(spender.starts());
    assert_eq!(spender.work(1), End::Finished);
    assert!(spender.starts());
    assert_eq!(spender.work(21), End::Stopped(StopWhy::OverBudget));
    assert!(!spender.starts());
    let (reason, detail) = spender.world.state.run.ended.clone().unwrap();
    assert_eq!(reason, EndReason::BudgetExhausted);
    assert_eq!(detail, "spent $1.80 of $1.00 (loop budget), $0.80 over");
    // It is no failure, and its work is where the next attempt begins.
    assert_eq!(spender.verdicts()[1], Verdict::HandedOver { trigger: Trigger::Budget { percent: 180 } });
    let entry = spender.world.state.task(&"b".into()).unwrap();
    assert_eq!((entry.failures, entry.attempts, entry.kept.is_some()), (0, 1, true));
    assert_eq!(spender.world.state.run.consecutive_errors, 0);
    spender.sound();
}

#[test]
fn an_answer_that_is_complete_is_judged_whatever_it_cost() {
    for (cap, task) in [(dollars(1.0), Cap::default()), (Cap::default(), dollars(1.0))] {
        let mut spender = Spender::new(70, &["a"], |world| {
            (world.policy.budget.own, world.policy.budget.task) = (cap, task);
        });
        assert!(spender.starts());
        assert_eq!(spender.work(2), End::Finished);
        assert!(!spender.starts());
        assert_eq!(spender.world.ended(), EndReason::GoalAchieved);
        spender.sound();
    }
}

#[test]
fn a_task_too_dear_fails_alone_in_the_middle_of_its_agents_work() {
    let mut spender = Spender::new(40, &["a", "b"], |world| {
        world.policy.budget.task = dollars(1.0);
        no_handover(world);
    });
    assert!(spender.starts());
    assert_eq!(spender.work(10), End::Stopped(StopWhy::OverBudget));
    assert_eq!(spender.spent, [120]);
    assert!(spender.starts());
    let failed = spender.world.journal.iter().find_map(|envelope| match &envelope.event {
        Event::TaskFailed { task, reason } => Some(format!("{task}: {reason}")),
        _ => None,
    });
    assert_eq!(failed.as_deref(), Some("a: it cost $1.20 of $1.00 (task budget), $0.20 over"));
    assert_eq!(spender.work(2), End::Finished);
    assert!(!spender.starts());
    assert_eq!(spender.world.ended(), EndReason::PersonNeeded);
    spender.sound();
}

#[test]
fn only_a_budget_that_denies_stops_an_agent() {
    for (action, stops) in [
        (AtLimit::Deny, true),
        (AtLimit::Throttle, false),
        (AtLimit::AlertOnly, false),
        (AtLimit::Allow, false),
    ] {
        let mut spender = Spender::new(40, &["a"], |world| {
            world.policy.budget.own = dollars(1.0);
            world.policy.budget.action = action;
            no_handover(world);
        });
        assert!(spender.starts());
        let expected = if stops { End::Stopped(StopWhy::OverBudget) } else { End::Finished };
        assert_eq!(spender.work(10), expected, "{action:?}");
    }
}

#[test]
fn most_of_a_budget_hands_over_only_where_the_limit_means_something() {
    for (action, hands_over) in [
        (AtLimit::Deny, true),
        (AtLimit::Throttle, true),
        (AtLimit::AlertOnly, false),
        (AtLimit::Allow, false),
    ] {
        let mut spender = Spender::new(1, &["a"], |world| {
            world.policy.budget.own = dollars(1.0);
            world.policy.budget.action = action;
        });
        assert!(spender.starts());
        let expected = if hands_over { End::Stopped(StopWhy::Handoff) } else { End::Finished };
        assert_eq!(spender.work(95), expected, "{action:?}");
    }
}

#[test]
fn an_agent_that_starts_beyond_the_threshold_has_the_rest_and_hands_over_at_the_same_part_of_it() {
    let mut spender = Spender::new(1, &["a"], |world| {
        world.policy.budget.own = dollars(10.0);
        world.policy.limits.iterations = Some(1000);
    });
    while spender.starts() {
        spender.work(u64::MAX);
        assert!(spender.spent.len() < 20, "it hands over for ever: {:?}", spender.spent);
    }
    // 80 % of all, then 80 % of the rest, and so on until one answer is the rest.
    assert_eq!(spender.spent, [801, 160, 32, 6, 1]);
    let (reason, detail) = spender.world.state.run.ended.clone().unwrap();
    assert_eq!(
        (reason, detail.as_str()),
        (EndReason::BudgetExhausted, "spent $10.00 of $10.00 (loop budget)")
    );
    assert_eq!(spender.world.state.task(&"a".into()).unwrap().failures, 0);
    spender.sound();
}

#[test]
fn who_starts_with_most_of_a_budget_gone_is_told_what_is_left() {
    let mut spender = Spender::new(90, &["a", "b"], |world| {
        world.policy.budget.own = dollars(1.0);
        world.policy.budget.task = dollars(5.0);
    });
    assert!(spender.starts());
    assert_eq!(budget::told_to_agent(&spender.world.state, &"a".into()), "");
    spender.work(1);
    assert!(spender.starts());
    let told = budget::told_to_agent(&spender.world.state, &"b".into());
    assert!(told.contains("Left for you of the loop budget of $1.00: $0.10."), "{told}");
    spender.world.policy.budget.action = AtLimit::Throttle;
    spender.world.resume();
    assert_eq!(budget::told_to_agent(&spender.world.state, &"b".into()), "");
}

#[test]
fn the_ceiling_is_what_is_left_of_the_smallest_budget() {
    let mut world = World::new(1, Mood::Diligent);
    world.cents = 90;
    world.policy.budget.own = both(3.0, 1000);
    world.policy.budget.task = dollars(2.5);
    world.start(&["a", "b"]);
    let at = |world: &World, task: &str| budget::ceiling(&world.state, &task.into());
    assert_eq!(at(&world, "a"), Ceiling { cost_usd: Some(2.5), tokens: Some(1000) });
    world.run_until(|event| matches!(event, Event::TaskCompleted { .. }));
    assert_eq!(at(&world, "b"), Ceiling { cost_usd: Some(3.0 - 0.9), tokens: Some(910) });
    world.policy.budget.project = dollars(2.0);
    world.others = Account { reserved: Sum { cost_usd: 0.5, tokens: 0 }, ..Account::default() };
    world.resume();
    world.run_until(|event| matches!(event, Event::IterationStarted { task, .. } if task.as_str() == "b"));
    assert_eq!(at(&world, "b").cost_usd, Some(2.0 - 0.9 - 0.5));
    world.policy.budget.action = AtLimit::AlertOnly;
    world.resume();
    assert_eq!(at(&world, "b"), Ceiling::default());
}

#[test]
fn what_other_loops_spend_meanwhile_counts() {
    let mut spender = Spender::new(10, &["a"], |world| {
        world.policy.budget.project = dollars(1.0);
        no_handover(world);
    });
    assert!(spender.starts());
    let mut figures =
        Figures::new(Traits::default(), spender.world.state.spending.shared, spender.world.now());
    figures.answered(usage(10), false, spender.world.now());
    figures.called();
    assert_eq!(spender.follow(&figures), None);
    let others = Account { reserved: Sum { cost_usd: 0.95, tokens: 0 }, ..Account::default() };
    figures.look(Shared { project: others, organisation: others });
    assert_eq!(spender.follow(&figures), Some(StopWhy::OverBudget));
    let gauge = spender.world.state.open.here().unwrap().over_budget.unwrap();
    assert_eq!(gauge.scope, Scope::Project);
    // Also where they took all of it before its first answer, which may be its last.
    let mut spender = Spender::new(10, &["a"], |world| world.policy.budget.project = dollars(1.0));
    assert!(spender.starts());
    let mut figures = Figures::new(Traits::default(), None, spender.world.now());
    figures.look(Shared {
        project: Account { reserved: Sum { cost_usd: 2.0, tokens: 0 }, ..others },
        organisation: others,
    });
    figures.answered(usage(10), false, spender.world.now());
    assert_eq!(spender.follow(&figures), None);
    figures.called();
    assert_eq!(spender.follow(&figures), Some(StopWhy::OverBudget));
}

/// What an agent tells, in order.
#[derive(Clone, Copy, Debug)]
enum Told {
    /// All that was used so far, in cents.
    Used(u64),
    /// As the price table has it.
    Estimated(u64),
    /// How much of a context of a hundred.
    Filled(u64),
    Calls,
    Returns,
    /// That the answer was not the last, or that it was.
    GoesOn,
    Finishes,
    /// Nothing, for so long.
    Silence(u64),
}

/// What follows from what an agent tells, in the end.
fn follows(traits: Traits, told: &[Told]) -> &'static str {
    let mut world = World::new(1, Mood::Diligent);
    world.policy.budget.own = both(1.0, 1000);
    world.start(&["a"]);
    world.run_until(|event| matches!(event, Event::IterationStarted { .. }));
    let mut figures = Figures::new(traits, None, world.now());
    let mut outcome = "nothing";
    for told in told {
        match *told {
            Told::Used(cents) => figures.answered(usage(cents), false, world.now()),
            Told::Estimated(cents) => figures.answered(usage(cents), true, world.now()),
            Told::Filled(used) => figures.filled(ContextFill { used, window: 100 }, world.now()),
            Told::Calls => figures.called(),
            Told::Returns => figures.returned(),
            Told::GoesOn => figures.turn_ended(false),
            Told::Finishes => figures.turn_ended(true),
            Told::Silence(seconds) => world.advance_seconds(seconds),
        }
        let mut plan = figures::decide(&world.state, &figures, None, world.now());
        plan.actions.retain(
            |action| !matches!(action, Action::Record(event) if matches!(**event, Event::UsageSeen { .. })),
        );
        outcome = match &plan.actions[..] {
            [Action::Record(event)] if matches!(**event, Event::BudgetReached { .. }) => return "stop",
            [Action::HandOver { trigger: Trigger::Context { .. }, .. }] => return "context",
            [Action::HandOver { trigger: Trigger::Budget { .. }, .. }] => return "budget",
            [] if plan.wake_at.is_some() => "wait",
            [] => "nothing",
            other => panic!("{other:?}"),
        };
    }
    outcome
}

#[test]
fn nothing_follows_before_it_is_known_that_the_agent_goes_on() {
    use Told::*;
    let cannot_hear = Traits::default();
    for (told, expected) in [
        (&[Used(50), Calls, Returns, Used(70)][..], "nothing"),
        // The answer that crosses the threshold may be the last.
        (&[Filled(71)], "wait"),
        (&[Filled(71), Finishes], "nothing"),
        (&[Filled(71), Finishes, Silence(1000)], "nothing"),
        (&[Used(85)], "wait"),
        (&[Used(85), Finishes], "nothing"),
        // It calls tools: it goes on as soon as all of them are through.
        (&[Filled(71), Calls], "wait"),
        (&[Filled(71), Calls, Returns], "context"),
        (&[Used(85), Calls, Calls, Returns], "wait"),
        (&[Used(85), Calls, Calls, Returns, Returns], "budget"),
        (&[Used(85), GoesOn], "budget"),
        // Or the model has answered again.
        (&[Filled(71), Filled(72)], "context"),
        (&[Used(85), Used(86)], "budget"),
        // It is not waited for for ever.
        (&[Filled(71), Silence(299)], "wait"),
        (&[Filled(71), Silence(300)], "context"),
        (&[Filled(71), Calls, Silence(300)], "context"),
        // A budget that is used up does not wait for tools.
        (&[Used(100)], "wait"),
        (&[Used(100), Finishes], "nothing"),
        (&[Used(100), Calls], "stop"),
        (&[Used(99), Calls], "wait"),
        (&[Used(100), GoesOn], "stop"),
        (&[Used(100), Used(101)], "stop"),
        (&[Used(100), Finishes, Calls], "stop"),
        (&[Estimated(100), Calls], "stop"),
    ] {
        assert_eq!(follows(cannot_hear, told), expected, "{told:?}");
    }
}

#[test]
fn who_can_be_asked_is_asked_at_once() {
    use Told::*;
    let traits = Traits { can_be_asked: true, ..Traits::default() };
    for (told, expected) in [
        (&[Filled(70)][..], "nothing"),
        (&[Filled(71)], "context"),
        (&[Used(81)], "budget"),
        (&[Used(81), Finishes], "budget"),
    ] {
        assert_eq!(follows(traits, told), expected, "{told:?}");
    }
}

#[test]
fn who_ends_by_itself_at_its_ceiling_is_left_to_do_so() {
    use Told::*;
    let own = Traits { bounds_cost: true, can_be_asked: false, bounds_tokens: true };
    for (traits, told, expected) in [
        (own, &[Used(100), Calls][..], "wait"),
        // Unless it does not.
        (own, &[Used(100), Calls, Used(110)], "stop"),
        // It tells tokens while it works, and what they cost by the price table counts.
        (own, &[Estimated(100), Calls], "wait"),
        (own, &[Estimated(100), Finishes], "nothing"),
        (own, &[Estimated(100), Calls, Estimated(110)], "stop"),
        // Its own figure counts more than the table's.
        (own, &[Estimated(110), Calls, Used(90)], "budget"),
        // Tokens are still ours to count where it does not.
        (Traits { bounds_tokens: false, ..own }, &[Estimated(1000), Calls], "stop"),
    ] {
        assert_eq!(follows(traits, told), expected, "{told:?}");
    }
}

/// An agent that stops by itself, because what is left is too little for its next call.
fn stops_short(spender: &mut Spender) {
    let open = spender.world.state.open.here().cloned().unwrap();
    let used = Sum::from(usage(2 * spender.cents));
    let gauge = budget::nearest(&spender.world.state, &open.task, used).unwrap();
    spender.world.push(figures::reached(&open, gauge));
    spender.end(2, false, Some(Trouble::Budget));
}

#[test]
fn too_little_left_for_another_call_ends_the_run_and_costs_no_attempt() {
    let mut spender = Spender::new(45, &["a"], |world| world.policy.budget.own = dollars(1.0));
    assert!(spender.starts());
    stops_short(&mut spender);
    assert!(!spender.starts());
    let (reason, detail) = spender.world.state.run.ended.clone().unwrap();
    assert_eq!(reason, EndReason::BudgetExhausted);
    assert_eq!(detail, "spent $0.90 of $1.00 (loop budget): too little is left for another call");
    assert!(matches!(spender.verdicts()[0], Verdict::HandedOver { .. }));
    assert_eq!(spender.world.state.task(&"a".into()).unwrap().failures, 0);
    spender.sound();
    // A person may try with what is left, and a raised limit is another.
    spender.world.start_again();
    assert!(spender.starts());
    stops_short(&mut spender);
    spender.world.policy.budget.own = dollars(9.0);
    spender.world.resume();
    assert!(spender.starts());
    spender.sound();
}

#[test]
fn too_little_left_for_a_task_fails_the_task() {
    let mut spender = Spender::new(45, &["a", "b"], |world| world.policy.budget.task = dollars(1.0));
    assert!(spender.starts());
    stops_short(&mut spender);
    assert!(spender.starts());
    assert_eq!(spender.world.state.open.here().unwrap().task.as_str(), "b");
    let failed = spender.world.journal.iter().find_map(|envelope| match &envelope.event {
        Event::TaskFailed { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    let expected = "it cost $0.90 of $1.00 (task budget): too little is left for another call";
    assert_eq!(failed.as_deref(), Some(expected));
    spender.sound();
}

#[test]
fn an_interruption_leaves_the_decision_to_the_figures() {
    let mut spender = Spender::new(45, &["a"], |world| world.policy.budget.own = dollars(1.0));
    assert!(spender.starts());
    let open = spender.world.state.open.here().cloned().unwrap();
    let gauge = budget::nearest(&spender.world.state, &open.task, Sum::default()).unwrap();
    spender.world.push(figures::reached(&open, gauge));
    // The engine is gone before the agent's end is on record.
    spender.world.push(Event::Interrupted {
        iteration: 1,
        attempt: 1,
        reason: "the engine was gone".to_owned(),
        ended_processes: 1,
        kept: None,
    });
    assert!(spender.starts(), "{:?}", spender.world.state.run.ended);
    spender.sound();
}

#[test]
fn what_was_seen_is_paid_for_if_nobody_tells_the_end_and_counts_once_if_somebody_does() {
    let seen = |spender: &Spender| {
        let of = |event: &Event| match event {
            Event::UsageSeen { usage, .. } => Some(usage.input_tokens),
            _ => None,
        };
        spender.world.journal.iter().filter_map(|envelope| of(&envelope.event)).collect::<Vec<_>>()
    };
    let begin = || {
        let mut spender = Spender::new(3, &["a"], |world| {
            world.policy.budget.own = dollars(1.0);
            no_handover(world);
        });
        assert!(spender.starts());
        let mut figures = Figures::new(Traits::default(), None, spender.world.now());
        for answer in 1..=9 {
            figures.answered(usage(3 * answer), false, spender.world.now());
            assert_eq!(spender.follow(&figures), None);
        }
        // Not each answer, but each tenth of the budget.
        assert_eq!(seen(&spender), [12, 24]);
        assert_eq!(spender.world.state.usage.cost_usd, 0.0);
        spender
    };
    let interrupted = Event::Interrupted {
        iteration: 1,
        attempt: 1,
        reason: "the engine was gone".to_owned(),
        ended_processes: 1,
        kept: None,
    };
    // Killed: what was on record is spent, by the loop and by the task.
    let mut killed = begin();
    killed.world.push(interrupted.clone());
    assert_eq!(killed.world.state.usage, usage(24));
    assert_eq!(killed.world.state.task(&"a".into()).unwrap().spent, Sum::from(usage(24)));
    killed.sound();
    // Stopped in order: what it used in the end is what counts.
    let mut stopped = begin();
    stopped.world.push(Event::Charged { iteration: 1, attempt: 1, usage: usage(27), model: None });
    stopped.world.push(interrupted);
    assert_eq!(stopped.world.state.usage, usage(27));
    stopped.sound();
    let mut ended = begin();
    ended.end(9, true, None);
    assert_eq!(ended.world.state.usage, usage(27));
    ended.sound();
    // Without a budget nobody needs to know before the end.
    let mut free = Spender::new(3, &["a"], |_| {});
    assert!(free.starts());
    free.work(50);
    assert!(seen(&free).is_empty());
}
