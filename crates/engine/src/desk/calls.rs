//! Every start of an agent in a journal, with what it used: what the reports of
//! tokens and of cost add up.

use std::ops::AddAssign;

use jiff::Timestamp;
use serde::Serialize;
use wiggum_core::event::{AgentFacts, ContextFill, Envelope, Event, Usage};
use wiggum_core::price::{self, Parts, Prices};
use wiggum_core::state::{Loop, Seen};

/// One start of an agent.
#[derive(Clone, Debug, Serialize)]
pub struct Call {
    pub task: String,
    pub attempt: u32,
    pub iteration: u32,
    pub agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Missing where the agent gave no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Is it known what that cost?
    pub priced: bool,
    /// That cost by kind of token, where the model's prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_by_kind: Option<Parts>,
    pub tool_calls: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextFill>,
    pub ended_at: Timestamp,
}

/// The calls of a journal, and the loop after it. Whoever wants to see the way there may watch.
pub fn read(journal: &[Envelope], mut watch: impl FnMut(&Envelope, &Loop)) -> (Vec<Call>, Loop) {
    let mut state = Loop::default();
    let mut calls = Vec::new();
    for envelope in journal {
        calls.extend(told_by(envelope, &state));
        state.apply(envelope);
        watch(envelope, &state);
    }
    (calls, state)
}

/// The call that an event tells of, with the loop as it was before it.
pub fn told_by(envelope: &Envelope, before: &Loop) -> Option<Call> {
    match &envelope.event {
        Event::AgentEnded { usage, facts, .. } => call(before, *usage, facts, envelope.at),
        Event::Charged { usage, model, .. } => {
            let facts = AgentFacts { model: model.clone(), ..AgentFacts::default() };
            call(before, Some(*usage), &facts, envelope.at)
        }
        // What was last seen of an agent whose end nobody told.
        Event::Interrupted { .. } => {
            let Seen { usage, model } = before.open.here()?.seen.clone()?;
            let facts = AgentFacts { model, ..AgentFacts::default() };
            call(before, Some(usage), &facts, envelope.at)
        }
        _ => None,
    }
}

fn call(state: &Loop, usage: Option<Usage>, facts: &AgentFacts, ended_at: Timestamp) -> Option<Call> {
    let open = state.open.here()?;
    let own = &state.policy.prices;
    let model = facts.model.as_ref();
    let has_price = model.is_some_and(|model| price::find_own(own, model).is_some());
    let prices = model.and_then(|model| price::find(own, model));
    let split = |(prices, usage): (Prices, Usage)| prices.parts(&usage).scaled_to(usage.cost_usd);
    Some(Call {
        task: open.task.as_str().to_owned(),
        attempt: open.attempt,
        iteration: open.iteration,
        agent: open.agent.clone(),
        model: facts.model.clone(),
        usage,
        priced: has_price || usage.is_some_and(|usage| !usage.is_unpriced()),
        cost_by_kind: prices.zip(usage).map(split),
        tool_calls: facts.tool_calls,
        context: facts.context,
        ended_at,
    })
}

/// What several calls used together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spent {
    pub calls: usize,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    /// Null where nothing but tokens without a price was used.
    pub cost_usd: Option<f64>,
    /// That cost by kind of token, in the proportions of the models' prices. Null where none is known.
    pub cost_by_kind: Option<Parts>,
    /// What of the cost is not split by kind, because nobody knows the prices of its model.
    pub unsplit_usd: f64,
    /// Tokens whose cost nobody told, so that the cost is a lower bound.
    pub unpriced_tokens: u64,
    /// Calls that gave no figures at all.
    pub without_figures: usize,
}

impl AddAssign<&Call> for Spent {
    fn add_assign(&mut self, call: &Call) {
        self.calls += 1;
        let Some(usage) = call.usage else {
            self.without_figures += 1;
            return;
        };
        self.input_tokens += usage.input_tokens;
        self.output_tokens += usage.output_tokens;
        self.cache_read_tokens += usage.cache_read_tokens;
        self.cache_write_tokens += usage.cache_write_tokens;
        if call.priced {
            *self.cost_usd.get_or_insert(0.0) += usage.cost_usd;
            match call.cost_by_kind {
                Some(parts) => *self.cost_by_kind.get_or_insert_default() += parts,
                None => self.unsplit_usd += usage.cost_usd,
            }
        } else {
            self.unpriced_tokens += usage.tokens();
        }
    }
}

impl<'a> FromIterator<&'a Call> for Spent {
    fn from_iter<T: IntoIterator<Item = &'a Call>>(calls: T) -> Self {
        let mut spent = Self::default();
        calls.into_iter().for_each(|call| spent += call);
        spent
    }
}
