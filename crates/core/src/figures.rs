//! What the agent at work has used so far, and what follows from that while it works: it hands over,
//! or it is stopped because a budget is used up.
//!
//! Only the engine sees these figures; they are too many to be recorded. What follows from them is
//! ([`Event::BudgetReached`], [`Event::HandoffStarted`]).
//!
//! An answer of the model may be the agent's last: then it is judged like any other, whatever it cost.
//! So nothing follows from the figures of an answer before it is known that the agent goes on from it:
//! it calls a tool, says that it goes on, or the model has answered again. An agent that can be spoken
//! to is asked to wrap up at once, since being asked ends nothing.

use jiff::Timestamp;

use crate::budget::{self, Gauge, Shared, Sum, Unit};
use crate::decide::{Action, Plan};
use crate::event::{ContextFill, Event, Usage};
use crate::handoff::{self, Trigger};
use crate::state::{Loop, OpenIteration, Stage, add_millis};

/// What an agent at work tells of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    traits: Traits,
    used: Option<Used>,
    /// As of the answer before.
    used_before: Option<Used>,
    context: Option<ContextFill>,
    context_before: Option<ContextFill>,
    /// Budgets shared with other loops as of the last look, without this agent.
    shared: Option<Shared>,
    /// When the model last answered.
    answered_at: Timestamp,
    /// The agent does something with that answer, so it was not the last.
    goes_on: bool,
    /// The agent said that it was the last.
    finished: bool,
    /// Its tool calls that have not ended.
    open_calls: u32,
}

/// What can be expected of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// It can be asked to wrap up.
    pub can_be_asked: bool,
    /// It was started with a limit on its cost, and ends by itself there.
    pub bounds_cost: bool,
    /// As well for tokens.
    pub bounds_tokens: bool,
}

/// What was used up to an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Used {
    usage: Usage,
    /// The agent told tokens only; the cost is by the price table.
    estimated: bool,
}

impl Figures {
    pub fn new(traits: Traits, shared: Option<Shared>, at: Timestamp) -> Self {
        Self {
            traits,
            used: None,
            used_before: None,
            context: None,
            context_before: None,
            shared,
            answered_at: at,
            goes_on: false,
            finished: false,
            open_calls: 0,
        }
    }

    /// The model has answered, and all answers together used this much. `estimated` if the cost is not
    /// the agent's own figure.
    pub fn answered(&mut self, usage: Usage, estimated: bool, at: Timestamp) {
        self.used_before = self.used.replace(Used { usage, estimated });
        self.begin_answer(at);
    }

    /// How full the model's context was at its last answer.
    pub fn filled(&mut self, fill: ContextFill, at: Timestamp) {
        self.context_before = self.context.replace(fill);
        self.begin_answer(at);
    }

    fn begin_answer(&mut self, at: Timestamp) {
        self.answered_at = at;
        self.goes_on = false;
        self.finished = false;
        self.open_calls = 0;
    }

    /// What other loops spend from the same budgets, looked at again.
    pub fn look(&mut self, shared: Shared) {
        self.shared = Some(shared);
    }

    /// The agent calls a tool.
    pub fn called(&mut self) {
        self.goes_on = true;
        self.finished = false;
        self.open_calls = self.open_calls.saturating_add(1);
    }

    /// A tool has given its result.
    pub fn returned(&mut self) {
        self.open_calls = self.open_calls.saturating_sub(1);
    }

    /// The agent says of its last answer whether it goes on from there.
    pub fn turn_ended(&mut self, last: bool) {
        self.goes_on = !last;
        self.finished = last;
    }

    /// Does it wait for a tool, as far as it tells?
    pub fn has_open_calls(&self) -> bool {
        self.open_calls > 0
    }

    /// What is worth recording: a further tenth of a budget was used since it was recorded last.
    fn worth_recording(&self, state: &Loop, open: &OpenIteration) -> Option<Usage> {
        let usage = self.used()?;
        let (now, before) =
            (Sum::from(usage), open.seen.as_ref().map_or_else(Sum::default, |seen| seen.usage.into()));
        let mut gauges =
            budget::gauges_with(state, self.shared).chain(budget::task_gauges(state, &open.task));
        let grown =
            |gauge: Gauge| now.get(gauge.unit) - before.get(gauge.unit) >= WORTH_RECORDING * gauge.limit;
        gauges.any(grown).then_some(usage)
    }

    /// What the agent has used so far.
    pub fn used(&self) -> Option<Usage> {
        self.used.map(|used| used.usage)
    }

    /// The budget for which the agent has to be stopped now.
    fn over_budget(&self, state: &Loop, open: &OpenIteration) -> Option<Gauge> {
        let used_up = |used: Used| budget::used_up(state, &open.task, Sum::from(used.usage), self.shared);
        let now = self.used?;
        let comparable = self.used_before.filter(|before| !before.estimated || now.estimated);
        let before = comparable.map(used_up).unwrap_or_default();
        used_up(now).into_iter().find(|gauge| {
            let went_on =
                before.iter().any(|earlier| (earlier.scope, earlier.unit) == (gauge.scope, gauge.unit));
            match gauge.unit {
                // It ends by itself. If it goes on by another call, its own limit does not hold.
                Unit::Usd if self.traits.bounds_cost => went_on,
                Unit::Tokens if self.traits.bounds_tokens => went_on,
                Unit::Usd | Unit::Tokens => went_on || self.goes_on,
            }
        })
    }

    /// Why the agent should hand over, and whether it went on although that was so already.
    fn trigger(&self, state: &Loop) -> Option<(Trigger, bool)> {
        let by_context = |fill: Option<ContextFill>| state.policy.handoff.by_context(fill?);
        let by_cost = |used: Option<Used>| handoff::by_spending(state, used?.usage, self.shared);
        let context = by_context(self.context).map(|why| (why, by_context(self.context_before).is_some()));
        let cost = || by_cost(self.used).map(|why| (why, by_cost(self.used_before).is_some()));
        context.or_else(cost)
    }

    /// The agent has done what its last answer asked for and is about to ask the model again.
    fn is_between_turns(&self) -> bool {
        self.goes_on && self.open_calls == 0
    }
}

/// The part of a budget that a killed engine may forget.
const WORTH_RECORDING: f64 = 0.1;

/// What follows for the agent at work, and when to look again. `model` is the one that answers.
pub fn decide(state: &Loop, figures: &Figures, model: Option<&str>, now: Timestamp) -> Plan {
    let mut plan = next_step(state, figures, now);
    // Its end will tell.
    let at_work = |open: &&OpenIteration| open.stage == Stage::Agent && !figures.finished;
    if let Some(open) = state.open.here().filter(at_work)
        && let Some(usage) = figures.worth_recording(state, open)
    {
        let (iteration, attempt) = (open.iteration, open.attempt);
        let seen = Event::UsageSeen { iteration, attempt, usage, model: model.map(str::to_owned) };
        plan.actions.insert(0, Action::Record(Box::new(seen)));
    }
    plan
}

/// Whether the agent goes on, hands over or is stopped.
fn next_step(state: &Loop, figures: &Figures, now: Timestamp) -> Plan {
    let at_work = |open: &&OpenIteration| open.stage == Stage::Agent && open.over_budget.is_none();
    let Some(open) = state.open.here().filter(at_work).filter(|_| !figures.finished) else {
        return Plan::default();
    };
    if let Some(gauge) = figures.over_budget(state, open) {
        let reached = Action::Record(Box::new(reached(open, gauge)));
        return Plan { actions: vec![reached], ..Plan::default() };
    }
    let Some((trigger, went_on)) = figures.trigger(state).filter(|_| open.handoff.is_none()) else {
        return Plan::default();
    };
    let deadline = add_millis(figures.answered_at, state.policy.handoff.grace.0);
    let due = figures.traits.can_be_asked || went_on || figures.is_between_turns() || deadline <= now;
    if !due {
        return Plan { wake_at: Some(deadline), ..Plan::default() };
    }
    let action = Action::HandOver { iteration: open.iteration, trigger };
    Plan { actions: vec![action], ..Plan::default() }
}

/// That an agent has used up a budget, as it is recorded.
pub fn reached(open: &OpenIteration, gauge: Gauge) -> Event {
    let Gauge { scope, unit, spent, limit, resets_at, .. } = gauge;
    let (iteration, attempt) = (open.iteration, open.attempt);
    Event::BudgetReached { iteration, attempt, scope, unit, spent, limit, resets_at }
}
