//! `Dashboard.md`: all plans at a glance. What a person writes outside of our marks stays.

use serde::Serialize;

use crate::layout::APPROVED;
use crate::words::{LINE, inline, link, note, plan_link};

/// Plans that wait for approval are listed up to here, and counted beyond.
const MOST_WAITING: usize = 50;

/// A plan in a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    pub plan_id: String,
    /// Its file, without the ending.
    pub file: String,
    /// `executing`, `blocked`, `escalated`, `stopped`, `completed`, `queued` or `broken`.
    pub status: String,
    pub done: usize,
    pub total: usize,
    pub iterations_used: u32,
    pub max_iterations: u32,
    /// The note that waits for a person, without its ending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs_action: Option<String>,
}

/// The whole note. Every plan is in `rows` once; `waiting` are names without endings.
pub(crate) fn render(old: Option<&str>, rows: &[Row], waiting: &[String], completed: &[String]) -> String {
    let count = |status: &str| rows.iter().filter(|row| row.status == status).count();
    let needs = rows.iter().filter(|row| row.needs_action.is_some()).count();
    let front = [
        ("plans_waiting", waiting.len().to_string()),
        ("plans_active", rows.len().to_string()),
        ("plans_completed", completed.len().to_string()),
        ("needs_action", needs.to_string()),
    ];
    let mut body = "# Plans\n\n".to_owned();
    if rows.is_empty() {
        body.push_str("No plan is being carried out.\n");
    } else {
        body.push_str("| Plan | Status | Steps | Iterations | Needs action |\n|---|---|---|---|---|\n");
        rows.iter().for_each(|row| body.push_str(&line(row)));
    }
    let slices = [
        ("waiting", waiting.len()),
        ("executing", count("executing") + count("queued")),
        ("blocked", count("blocked")),
        ("escalated", count("escalated") + count("stopped") + count("broken")),
        ("completed", completed.len()),
    ];
    if slices.iter().any(|(_, count)| *count > 0) {
        body.push_str("\n```mermaid\npie showData\n    title Plans\n");
        for (name, count) in slices.iter().filter(|(_, count)| *count > 0) {
            body.push_str(&format!("    \"{name}\" : {count}\n"));
        }
        body.push_str("```\n");
    }
    body.push_str(&list("Waiting for approval", waiting));
    body.push_str(&list("Completed", completed));
    note(old, &front, &body)
}

fn line(row: &Row) -> String {
    let needs = row.needs_action.as_deref().map_or_else(|| "–".to_owned(), link);
    format!(
        "| {} | {} | {}/{} | {}/{} | {needs} |\n",
        plan_link(APPROVED, &row.file, &row.plan_id),
        inline(&row.status, LINE),
        row.done,
        row.total,
        row.iterations_used,
        row.max_iterations,
    )
}

fn list(title: &str, names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let mut out = format!("\n## {title}\n\n");
    for name in names.iter().take(MOST_WAITING) {
        out.push_str(&format!("- {}\n", link(name)));
    }
    if names.len() > MOST_WAITING {
        out.push_str(&format!("- and {} more\n", names.len() - MOST_WAITING));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_plans_at_a_glance() {
        let row = Row {
            plan_id: "p".into(),
            file: "PLAN p".into(),
            status: "blocked".into(),
            done: 1,
            total: 3,
            iterations_used: 4,
            max_iterations: 10,
            needs_action: Some("plan_blocked_p".into()),
        };
        let waiting: Vec<String> = (0..60).map(|n| format!("w{n}")).collect();
        let text = render(None, &[row], &waiting, &["d".to_owned()]);
        assert!(text.contains("| [[PLAN p]] | blocked | 1/3 | 4/10 | [[plan_blocked_p]] |\n"), "{text}");
        assert!(text.contains("```mermaid\npie showData\n    title Plans\n    \"waiting\" : 60\n    \"blocked\" : 1\n    \"completed\" : 1\n```"), "{text}");
        assert!(text.contains("- [[w49]]\n- and 10 more\n"), "{text}");
        assert!(text.starts_with("---\nplans_waiting: 60\n"));
        assert_eq!(render(Some(&text), &[], &[], &[]), render(None, &[], &[], &[]));
    }
}
