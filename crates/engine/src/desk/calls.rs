//! Every start of an agent in a journal, with what it used: what the reports of
//! tokens and of cost add up.

use std::ops::AddAssign;

use jiff::Timestamp;
use serde::Serialize;
use wiggum_core::event::{AgentFacts, ContextFill, Envelope, Event, Usage};
use wiggum_core::state::Loop;

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
        match &envelope.event {
            Event::AgentEnded { usage, facts, .. } => {
                calls.extend(call(&state, *usage, facts, envelope.at));
            }
            Event::Charged { usage, model, .. } => {
                let facts = AgentFacts { model: model.clone(), ..AgentFacts::default() };
                calls.extend(call(&state, Some(*usage), &facts, envelope.at));
            }
            _ => {}
        }
        state.apply(envelope);
        watch(envelope, &state);
    }
    (calls, state)
}

fn call(state: &Loop, usage: Option<Usage>, facts: &AgentFacts, ended_at: Timestamp) -> Option<Call> {
    let open = state.open.as_ref()?;
    let has_price = facts.model.as_ref().is_some_and(|model| state.policy.prices.contains_key(model));
    Some(Call {
        task: open.task.as_str().to_owned(),
        attempt: open.attempt,
        iteration: open.iteration,
        agent: open.agent.clone(),
        model: facts.model.clone(),
        usage,
        priced: has_price || usage.is_some_and(|usage| !usage.is_unpriced()),
        tool_calls: facts.tool_calls,
        context: facts.context,
        ended_at,
    })
}

/// What several calls used together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spent {
    pub calls: usize,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    /// Null where nothing but tokens without a price was used.
    pub cost_usd: Option<f64>,
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
