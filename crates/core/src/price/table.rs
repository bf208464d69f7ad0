//! The prices that ship with the program, for models of the three large providers.
//!
//! They are list prices of the providers' own APIs, in US dollars per million tokens, as public
//! documents gave them on [`AS_OF`]. Where a provider asks more for long prompts, the price of the
//! shorter ones stands here, unless prompts of a coding agent are usually longer than that. Where a
//! provider has a promotion with an end, the regular price stands here. A cache that is written for
//! several spans has the price of the shortest. `docs/budgets.md` says where the prices come from.

use super::Prices;

/// The day on which the documents were read.
pub const AS_OF: &str = "2026-11-16";

/// Model, input, output, cache read, cache write. OpenAI and Google bill what is put into the cache as
/// plain input, except for OpenAI's models from GPT-5.6 on.
const TABLE: &[(&str, f64, f64, f64, f64)] = &[
    // Anthropic: platform.claude.com/docs/en/about-claude/pricing and its pages of single models.
    ("claude-fable-5-1", 10.0, 50.0, 0.25, 12.5),
    ("claude-fable-5", 10.0, 50.0, 1.0, 12.5),
    ("claude-opus-5-5", 4.0, 20.0, 0.20, 5.0),
    ("claude-opus-5", 5.0, 25.0, 0.50, 6.25),
    ("claude-opus-4-8", 5.0, 25.0, 0.50, 6.25),
    ("claude-opus-4-7", 5.0, 25.0, 0.50, 6.25),
    ("claude-opus-4-6", 5.0, 25.0, 0.50, 6.25),
    ("claude-opus-4-5", 5.0, 25.0, 0.50, 6.25),
    ("claude-opus-4-1", 15.0, 75.0, 1.50, 18.75),
    ("claude-opus-4", 15.0, 75.0, 1.50, 18.75),
    ("claude-sonnet-5-5", 2.0, 10.0, 0.20, 2.5),
    ("claude-sonnet-5", 2.0, 10.0, 0.20, 2.5),
    ("claude-sonnet-4-6", 3.0, 15.0, 0.30, 3.75),
    ("claude-sonnet-4-5", 3.0, 15.0, 0.30, 3.75),
    ("claude-sonnet-4", 3.0, 15.0, 0.30, 3.75),
    // Prompts of more than 100,000 tokens, which agents have; shorter ones cost a fifth.
    ("claude-haiku-5-5", 0.50, 2.50, 0.05, 0.625),
    ("claude-haiku-4-5", 1.0, 5.0, 0.10, 1.25),
    // OpenAI: developers.openai.com/api/docs/pricing.
    ("gpt-6.1-sol", 2.0, 10.0, 0.10, 2.5),
    ("gpt-6.1-terra", 1.0, 5.0, 0.05, 1.25),
    ("gpt-6-astra", 10.0, 50.0, 1.0, 12.5),
    ("gpt-6-sol", 2.0, 10.0, 0.20, 2.5),
    ("gpt-6-luna", 0.10, 0.50, 0.01, 0.125),
    ("gpt-5.6", 5.0, 30.0, 0.50, 6.25),
    ("gpt-5.6-sol", 5.0, 30.0, 0.50, 6.25),
    ("gpt-5.6-terra", 2.0, 12.0, 0.20, 2.5),
    ("gpt-5.6-luna", 0.20, 1.20, 0.02, 0.25),
    ("gpt-5.5", 5.0, 30.0, 0.50, 5.0),
    ("gpt-5.4", 2.5, 15.0, 0.25, 2.5),
    ("gpt-5.4-mini", 0.75, 4.5, 0.075, 0.75),
    ("gpt-5.4-nano", 0.20, 1.25, 0.02, 0.20),
    ("gpt-5.3-codex", 1.75, 14.0, 0.175, 1.75),
    ("gpt-5.2", 1.75, 14.0, 0.175, 1.75),
    ("gpt-5.2-codex", 1.75, 14.0, 0.175, 1.75),
    ("gpt-5.1", 1.25, 10.0, 0.125, 1.25),
    ("gpt-5.1-codex", 1.25, 10.0, 0.125, 1.25),
    ("gpt-5.1-codex-max", 1.25, 10.0, 0.125, 1.25),
    ("gpt-5.1-codex-mini", 0.25, 2.0, 0.025, 0.25),
    ("gpt-5", 1.25, 10.0, 0.125, 1.25),
    ("gpt-5-codex", 1.25, 10.0, 0.125, 1.25),
    ("gpt-5-mini", 0.25, 2.0, 0.025, 0.25),
    ("gpt-5-nano", 0.05, 0.40, 0.005, 0.05),
    ("gpt-4.1", 2.0, 8.0, 0.50, 2.0),
    ("gpt-4.1-mini", 0.40, 1.60, 0.10, 0.40),
    ("gpt-4.1-nano", 0.10, 0.40, 0.025, 0.10),
    ("gpt-4o", 2.5, 10.0, 1.25, 2.5),
    ("gpt-4o-mini", 0.15, 0.60, 0.075, 0.15),
    ("o3", 2.0, 8.0, 0.50, 2.0),
    ("o4-mini", 1.10, 4.40, 0.275, 1.10),
    // Google: ai.google.dev/gemini-api/docs/pricing, the paid tier.
    ("gemini-3.8-flash", 1.50, 7.50, 0.15, 1.50),
    ("gemini-3.7-flash", 1.50, 7.50, 0.15, 1.50),
    ("gemini-3.6-flash", 1.50, 7.50, 0.15, 1.50),
    ("gemini-3.5-flash", 1.50, 9.0, 0.15, 1.50),
    ("gemini-3.5-flash-lite", 0.30, 2.50, 0.03, 0.30),
    ("gemini-3.1-pro-preview", 2.0, 12.0, 0.20, 2.0),
    ("gemini-3.1-flash-lite", 0.25, 1.50, 0.025, 0.25),
    ("gemini-3-pro-preview", 2.0, 12.0, 0.20, 2.0),
    ("gemini-3-flash-preview", 0.50, 3.0, 0.05, 0.50),
    ("gemini-2.5-pro", 1.25, 10.0, 0.125, 1.25),
    ("gemini-2.5-flash", 0.30, 2.50, 0.03, 0.30),
    ("gemini-2.5-flash-lite", 0.10, 0.40, 0.01, 0.10),
];

/// The models of the table, with their prices.
pub fn models() -> impl Iterator<Item = (&'static str, Prices)> {
    TABLE.iter().map(|&(model, input, output, cache_read, cache_write)| {
        (model, Prices { input, output, cache_read, cache_write })
    })
}
