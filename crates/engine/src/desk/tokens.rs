//! What the agents of a loop used, by task, attempt, agent and model. The figures are the agents' own;
//! where an agent gives none, that is said.

use std::collections::BTreeMap;

use serde::Serialize;
use wiggum_core::event::{Envelope, Usage};
use wiggum_store::LoopRecord;

use crate::desk::calls::{self, Call};
use crate::desk::{DeskError, Loops};

/// The tokens of a loop. As JSON, fields may be added and none changes its meaning.
#[derive(Debug, Serialize)]
pub struct Report {
    #[serde(rename = "loop")]
    pub name: String,
    pub total: Usage,
    /// Starts of agents that gave no figures, so that the total is too low.
    pub without_figures: usize,
    /// Tokens whose cost nobody told, so that the cost is too low.
    pub unpriced_tokens: u64,
    pub efficiency: Efficiency,
    pub by_task: BTreeMap<String, Usage>,
    pub by_agent: BTreeMap<String, Usage>,
    pub by_model: BTreeMap<String, Usage>,
    pub starts: Vec<Call>,
}

/// How well the tokens were used; null where nothing can be said.
#[derive(Debug, Serialize)]
pub struct Efficiency {
    /// Tokens for each tool that was called.
    pub tokens_per_tool_call: Option<f64>,
    /// The part of what models read that came from their caches.
    pub cache_hit_rate: Option<f64>,
}

/// Reads what a loop used.
pub fn of(loops: &Loops, record: &LoopRecord) -> Result<Report, DeskError> {
    Ok(report(record.identity.name.clone(), &loops.store.read(record.id, 0)?))
}

fn report(name: String, journal: &[Envelope]) -> Report {
    let (starts, state) = calls::read(journal, |_, _| {});
    let sum = |key: fn(&Call) -> String| {
        let mut sums: BTreeMap<String, Usage> = BTreeMap::new();
        for start in &starts {
            if let Some(usage) = start.usage {
                *sums.entry(key(start)).or_default() += usage;
            }
        }
        sums
    };
    let mut total = Usage::default();
    starts.iter().filter_map(|start| start.usage).for_each(|usage| total += usage);
    Report {
        name,
        total,
        without_figures: starts.iter().filter(|start| start.usage.is_none()).count(),
        unpriced_tokens: state.spending.unpriced,
        efficiency: efficiency(&starts, &total),
        by_task: sum(|start| start.task.clone()),
        by_agent: sum(|start| start.agent.clone()),
        by_model: sum(|start| start.model.clone().unwrap_or_else(|| "not told".to_owned())),
        starts,
    }
}

fn efficiency(starts: &[Call], total: &Usage) -> Efficiency {
    let part = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    // Only agents that told their tokens count, else those of some would be divided by the tools of all.
    let told = starts.iter().filter(|start| start.usage.is_some());
    let tools: u64 = told.map(|start| u64::from(start.tool_calls)).sum();
    let read = total.input_tokens + total.cache_read_tokens + total.cache_write_tokens;
    Efficiency {
        tokens_per_tool_call: part(total.tokens(), tools),
        cache_hit_rate: part(total.cache_read_tokens, read),
    }
}
