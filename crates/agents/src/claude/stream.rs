//! Claude Code's stream: what counts is its `result` event, never its exit code.

use wiggum_core::event::{AgentFacts, ContextFill, Trouble, Usage};

use super::wire::{Assistant, Outcome, RateLimit, RateLimitEvent, System, Tokens, User};
use crate::json::{End, Reader, decode, detail, kind, shown};
use crate::tokens::ByMessage;
use crate::{AgentEvent, Finished, Problem, said};

#[derive(Default)]
pub(crate) struct ClaudeStream {
    facts: AgentFacts,
    tokens: ByMessage,
    /// The largest single request of the main conversation.
    fullest: u64,
    /// What was told last of the context in use.
    told: u64,
    spoken: Spoken,
    /// Its own word for what went wrong with the last request.
    error: String,
    limit: Option<RateLimit>,
    outcome: Option<Outcome>,
    /// Its user gave it a limit on money, so it is not ours that it may reach.
    own_budget: bool,
}

/// The last thing said in the main conversation, which is the message if no result tells it.
#[derive(Default)]
struct Spoken {
    id: String,
    text: String,
}

impl Reader for ClaudeStream {
    fn read(&mut self, line: &str, events: &mut Vec<AgentEvent>) {
        match &*kind(line) {
            "system" => self.system(&decode(line).unwrap_or_default(), events),
            "assistant" => self.assistant(decode(line).unwrap_or_default(), events),
            "user" => show_results(&decode(line).unwrap_or_default(), events),
            "rate_limit_event" => self.rate_limit(&decode(line).unwrap_or_default(), events),
            "result" => self.result(decode(line).unwrap_or_default(), events),
            _ => {}
        }
    }

    fn finish(&mut self, end: &End<'_>) -> Finished {
        let outcome = self.outcome.take();
        let usage = self.usage(outcome.as_ref());
        let mut facts = std::mem::take(&mut self.facts);
        let Some(outcome) = outcome else {
            let problem = Some(end.cut_short(facts.session.is_some()));
            let message = std::mem::take(&mut self.spoken.text);
            return Finished { message, usage, problem, facts, ..Finished::default() };
        };
        facts.context = self.context(&outcome, facts.model.as_deref());
        if self.is_complete(&outcome) {
            let message = std::mem::take(&mut self.spoken.text);
            return Finished { message, usage, facts, ..Finished::default() };
        }
        let problem = self.problem(&outcome, facts.tool_calls, end);
        let message = if outcome.is_error.0 { String::new() } else { outcome.result.0 };
        Finished { message, usage, problem, facts, ..Finished::default() }
    }
}

impl ClaudeStream {
    pub(super) fn new(own_budget: bool) -> Self {
        Self { own_budget, ..Self::default() }
    }

    fn system(&mut self, event: &System<'_>, events: &mut Vec<AgentEvent>) {
        match &*event.subtype.0 {
            "init" => {
                events.extend(event.model.0.clone().map(AgentEvent::Model));
                self.facts.model = event.model.0.clone().or(self.facts.model.take());
                self.session(event.session_id.0.as_ref(), events);
            }
            "api_retry" => events.push(AgentEvent::Retrying { trouble: retried(event) }),
            "compact_boundary" => events.push(AgentEvent::Notice("it compacted its context".to_owned())),
            "model_fallback" => {
                let model = event.fallback_model.0.to_string();
                events.push(AgentEvent::Model(model.clone()));
                self.facts.model = Some(model);
                events.push(AgentEvent::Notice(format!("it fell back to {}", event.fallback_model.0)));
            }
            _ => {}
        }
    }

    fn session(&mut self, id: Option<&String>, events: &mut Vec<AgentEvent>) {
        if id.is_some() && self.facts.session.as_ref() != id {
            self.facts.session = id.cloned();
            events.extend(id.cloned().map(AgentEvent::Session));
        }
    }

    /// One event comes per block of a message, each with the same figures.
    fn assistant(&mut self, event: Assistant<'_>, events: &mut Vec<AgentEvent>) {
        let (message, main) = (event.message, event.parent_tool_use_id.0.is_none());
        self.error = event.error.0;
        let usage = usage_of(message.usage.0);
        if self.tokens.note(&message.id.0, usage) {
            events.push(AgentEvent::Usage(self.tokens.total()));
        }
        if main {
            let cached = usage.cache_read_tokens.saturating_add(usage.cache_write_tokens);
            let used = usage.input_tokens.saturating_add(cached);
            self.fullest = self.fullest.max(used);
            // One message comes as several events with the same figures.
            if used > 0 && self.told != used {
                self.told = used;
                events.push(AgentEvent::Context { used, window: None });
            }
        }
        for block in message.content.0 {
            match &*block.kind.0 {
                "text" if main => {
                    self.spoken.say(&message.id.0, &block.text.0);
                    events.push(AgentEvent::Output(block.text.0 + "\n"));
                }
                "tool_use" => {
                    self.facts.tool_calls += 1;
                    if main {
                        self.spoken.text.clear();
                    }
                    let detail = block.input.map(detail).unwrap_or_default();
                    events.push(AgentEvent::ToolCall { name: block.name.0, detail });
                }
                _ => {}
            }
        }
    }

    fn rate_limit(&mut self, event: &RateLimitEvent, events: &mut Vec<AgentEvent>) {
        let info = &event.rate_limit_info.0;
        if matches!(info.status.as_str(), "rejected" | "allowed_warning") {
            events.push(AgentEvent::Limit { reached: info.reached(), resets_at: info.resets_at() });
        }
        self.limit = Some(info.clone());
    }

    /// There may be several: one per message to it, and one when what it left in the background has
    /// ended. The last counts; what it says to such an end is added to what it said to us, and one
    /// without words takes none away.
    fn result(&mut self, mut outcome: Outcome, events: &mut Vec<AgentEvent>) {
        if !outcome.is_error.0 {
            self.session(outcome.session_id.0.as_ref(), events);
        }
        for denial in &outcome.permission_denials.0 {
            events.push(AgentEvent::Notice(format!("it was not permitted to use {}", denial.tool_name.0)));
        }
        if let Some(earlier) = self.outcome.take()
            && !outcome.is_error.0
            && !earlier.is_error.0
        {
            if outcome.result.0.is_empty() {
                outcome.result = earlier.result;
            } else if outcome.origin.0.kind == "task-notification" {
                outcome.result.0 = format!("{}\n\n{}", earlier.result.0, outcome.result.0);
            }
        }
        self.outcome = Some(outcome);
        events.extend(self.usage(self.outcome.as_ref()).map(AgentEvent::Usage));
        events.push(AgentEvent::TurnEnded { last: true });
    }

    /// The figures per model are those of the whole run with sub-agents; the others are not.
    fn usage(&self, outcome: Option<&Outcome>) -> Option<Usage> {
        let counted = self.tokens.total();
        let Some(outcome) = outcome else { return (counted != Usage::default()).then_some(counted) };
        let mut usage = Usage::default();
        for model in outcome.model_usage.0.values() {
            usage += Usage {
                input_tokens: model.input_tokens,
                output_tokens: model.output_tokens,
                cache_read_tokens: model.cache_read_input_tokens,
                cache_write_tokens: model.cache_creation_input_tokens,
                cost_usd: 0.0,
            };
        }
        if outcome.model_usage.0.is_empty() {
            let told = usage_of(outcome.usage.0);
            usage = if told == Usage::default() { counted } else { told };
        }
        Some(Usage { cost_usd: outcome.total_cost_usd.0, ..usage })
    }

    fn context(&self, outcome: &Outcome, model: Option<&str>) -> Option<ContextFill> {
        let models = &outcome.model_usage.0;
        let own = model.and_then(|model| models.get(model));
        let window = own.or_else(|| models.values().max_by_key(|model| model.context_window))?.context_window;
        (self.fullest > 0 && window > 0).then_some(ContextFill { used: self.fullest, window })
    }

    /// The model's answer stopped in the middle, and was taken for the whole. No reason is then told
    /// why it stopped, or that of the answer before: the words after a tool's result stopped for no tool.
    fn cut_off(&self, outcome: &Outcome) -> bool {
        match &outcome.stop_reason {
            Some(None) => outcome.model_usage.0.is_empty(),
            Some(Some(reason)) => reason == "tool_use" && !self.spoken.text.is_empty(),
            None => false,
        }
    }

    /// It counts its money only after an answer. One that came to its end is the whole answer to the prompt, though
    /// the result tells the limit in its place.
    fn is_complete(&self, outcome: &Outcome) -> bool {
        let ended = matches!(&outcome.stop_reason, Some(Some(reason)) if reason == "end_turn");
        outcome.subtype.0 == "error_max_budget_usd" && ended && !self.spoken.text.is_empty()
    }

    fn problem(&self, outcome: &Outcome, tool_calls: u32, end: &End<'_>) -> Option<Problem> {
        if outcome.is_error.0 || outcome.subtype.0.starts_with("error") {
            let message = outcome.words();
            return Some(Problem { trouble: self.trouble(outcome, &message, end), message });
        }
        let denied = outcome.permission_denials.0.len();
        let trouble = if outcome.result.0.is_empty() {
            Trouble::Empty
        } else if self.cut_off(outcome) {
            Trouble::Truncated
        } else if denied > 0 && u32::try_from(denied).is_ok_and(|denied| denied >= tool_calls) {
            Trouble::PermissionDenied
        } else {
            return None;
        };
        Some(Problem::silent(trouble))
    }

    fn trouble(&self, outcome: &Outcome, message: &str, end: &End<'_>) -> Trouble {
        if let Some(trouble) = outcome.own_reason(self.own_budget) {
            return trouble;
        }
        let words = said::in_complaint(message, end.now);
        if let Some(limit) = self.limit.as_ref().filter(|limit| limit.reached())
            && matches!(words, Some(Trouble::UsageLimit { .. }) | Some(Trouble::Overloaded) | None)
        {
            let told = match words {
                Some(Trouble::UsageLimit { resets_at }) => resets_at,
                _ => None,
            };
            return Trouble::UsageLimit { resets_at: limit.resets_at().or(told) };
        }
        if matches!(words, Some(Trouble::UsageLimit { .. } | Trouble::ContextFull | Trouble::SessionLost)) {
            return words.unwrap_or(Trouble::Other);
        }
        match (error_word(&self.error), outcome.api_error_status.0) {
            (Some(trouble), _) => trouble,
            (None, Some(status)) => said::by_status(status).unwrap_or(Trouble::Other),
            (None, None) => words.unwrap_or(Trouble::Other),
        }
    }
}

impl Outcome {
    fn words(&self) -> String {
        [self.result.0.clone(), self.errors.0.join("\n"), self.error.0.clone()]
            .into_iter()
            .find(|words| !words.is_empty())
            .unwrap_or_default()
    }

    /// What its own codes say, where they are clear.
    fn own_reason(&self, own_budget: bool) -> Option<Trouble> {
        match (self.subtype.0.as_str(), self.terminal_reason.0.as_str()) {
            ("error_max_turns", _) => Some(Trouble::OwnLimit),
            ("error_max_budget_usd", _) if own_budget => Some(Trouble::OwnLimit),
            ("error_max_budget_usd", _) => Some(Trouble::Budget),
            (_, "aborted_streaming" | "aborted_tools") => Some(Trouble::Interrupted),
            (_, "prompt_too_long" | "blocking_limit" | "rapid_refill_breaker") => Some(Trouble::ContextFull),
            _ if self.stop_reason.as_ref().is_some_and(|reason| reason.as_deref() == Some("refusal")) => {
                Some(Trouble::Refused)
            }
            _ => None,
        }
    }
}

impl Spoken {
    fn say(&mut self, id: &str, text: &str) {
        if self.id != id {
            id.clone_into(&mut self.id);
            self.text.clear();
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }
}

fn show_results(event: &User<'_>, events: &mut Vec<AgentEvent>) {
    if event.parent_tool_use_id.0.is_some() {
        return;
    }
    for result in event.message.content.iter().filter(|result| result.kind.0 == "tool_result") {
        let text = result.content.map(shown).unwrap_or_default();
        events.push(AgentEvent::ToolResult { text, is_error: result.is_error.0 });
    }
}

fn retried(event: &System<'_>) -> Trouble {
    match (error_word(&event.error.0), event.error_status.0) {
        (Some(trouble), _) => trouble,
        (None, Some(status)) => said::by_status(status).unwrap_or(Trouble::Other),
        // No answer at all.
        (None, None) => Trouble::Network,
    }
}

/// Its word for a failed request. `server_error` stands for a broken connection too, and is left to
/// status and text.
fn error_word(word: &str) -> Option<Trouble> {
    match word {
        "authentication_failed" | "oauth_org_not_allowed" | "model_not_found" => {
            Some(Trouble::Authentication)
        }
        "billing_error" => Some(Trouble::UsageLimit { resets_at: None }),
        "rate_limit" | "overloaded" => Some(Trouble::Overloaded),
        _ => None,
    }
}

fn usage_of(tokens: Tokens) -> Usage {
    Usage {
        input_tokens: tokens.input_tokens,
        output_tokens: tokens.output_tokens,
        cache_read_tokens: tokens.cache_read_input_tokens,
        cache_write_tokens: tokens.cache_creation_input_tokens,
        cost_usd: 0.0,
    }
}
