//! `Dashboard.md`: all plans at a glance. What a person writes outside of our marks stays.
//!
//! Counts are true; lists are bounded and say how many more there are.

use serde::Serialize;

use crate::layout::NEEDS_ACTION;
use crate::words::{LINE, inline, link, note, plan_link};

/// As many as somebody looks through.
pub(crate) const MOST_LISTED: usize = 50;

/// A plan in a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    pub plan_id: String,
    /// Its path in the folder of approved plans, without the ending.
    pub file: String,
    /// `executing`, `blocked`, `escalated`, `stopped`, `completed`, `queued`, `broken` or `copy`.
    pub status: String,
    pub done: usize,
    pub total: usize,
    pub iterations_used: u32,
    pub max_iterations: u32,
    /// The note that waits for a person, without its ending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs_action: Option<String>,
}

/// What there is to tell. Paths are those of notes in the vault, without their endings.
#[derive(Debug, Default)]
pub(crate) struct Overview {
    /// The approved plans, each once.
    pub(crate) rows: Vec<Row>,
    /// Plans that nobody has approved.
    pub(crate) waiting: Vec<String>,
    pub(crate) completed: usize,
    /// The newest of the completed plans.
    pub(crate) newest: Vec<String>,
    /// Notes that wait for a person.
    pub(crate) needs_action: Vec<String>,
}

/// The whole note.
pub(crate) fn render(old: Option<&str>, overview: &Overview) -> String {
    let Overview { rows, waiting, completed, newest, needs_action } = overview;
    let count = |status: &str| rows.iter().filter(|row| row.status == status).count();
    let front = [
        ("plans_waiting", waiting.len().to_string()),
        ("plans_active", rows.len().to_string()),
        ("plans_completed", completed.to_string()),
        ("needs_action", needs_action.len().to_string()),
    ];
    let mut body = "# Plans\n\n".to_owned();
    if rows.is_empty() {
        body.push_str("No plan is being carried out.\n");
    } else {
        body.push_str("| Plan | Status | Steps | Iterations | Needs action |\n|---|---|---|---|---|\n");
        rows.iter().take(MOST_LISTED).for_each(|row| body.push_str(&line(row)));
        if rows.len() > MOST_LISTED {
            body.push_str(&format!("| and {} more | | | | |\n", rows.len() - MOST_LISTED));
        }
    }
    let slices = [
        ("waiting", waiting.len()),
        ("executing", count("executing") + count("queued")),
        ("blocked", count("blocked")),
        ("escalated", count("escalated") + count("stopped") + count("broken")),
        ("completed", *completed),
    ];
    if slices.iter().any(|(_, count)| *count > 0) {
        body.push_str("\n```mermaid\npie showData\n    title Plans\n");
        for (name, count) in slices.iter().filter(|(_, count)| *count > 0) {
            body.push_str(&format!("    \"{name}\" : {count}\n"));
        }
        body.push_str("```\n");
    }
    body.push_str(&list("Needs action", needs_action, needs_action.len()));
    body.push_str(&list("Waiting for approval", waiting, waiting.len()));
    body.push_str(&list("Completed", newest, *completed));
    note(old, &front, &body)
}

fn line(row: &Row) -> String {
    let note = row.needs_action.as_deref().map(|note| link(&format!("{NEEDS_ACTION}/{note}")));
    format!(
        "| {} | {} | {}/{} | {}/{} | {} |\n",
        plan_link(&row.file),
        inline(&row.status, LINE),
        row.done,
        row.total,
        row.iterations_used,
        row.max_iterations,
        note.as_deref().unwrap_or("–"),
    )
}

/// The first of so many notes.
fn list(title: &str, notes: &[String], count: usize) -> String {
    if count == 0 {
        return String::new();
    }
    let shown = notes.len().min(MOST_LISTED);
    let mut out = format!("\n## {title}\n\n");
    for path in &notes[..shown] {
        out.push_str(&format!("- {}\n", link(path)));
    }
    if count > shown {
        out.push_str(&format!("- and {} more\n", count - shown));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str) -> Row {
        Row {
            plan_id: id.into(),
            file: format!("PLAN {id}"),
            status: "blocked".into(),
            done: 1,
            total: 3,
            iterations_used: 4,
            max_iterations: 10,
            needs_action: Some(format!("plan_blocked_{id}")),
        }
    }

    fn paths(folder: &str, count: usize) -> Vec<String> {
        (0..count).map(|n| format!("{folder}/{n}")).collect()
    }

    #[test]
    fn all_plans_at_a_glance() {
        let overview = Overview {
            rows: vec![row("p")],
            waiting: paths("Plans", 60),
            completed: 1,
            newest: paths("Done", 1),
            needs_action: vec!["Needs_Action/plan_blocked_p".to_owned()],
        };
        let text = render(None, &overview);
        let line = "| [[Approved/Plans/PLAN p]] | blocked | 1/3 | 4/10 | [[Needs_Action/plan_blocked_p]] |\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("```mermaid\npie showData\n    title Plans\n    \"waiting\" : 60\n    \"blocked\" : 1\n    \"completed\" : 1\n```"), "{text}");
        assert!(text.contains("- [[Plans/49]]\n- and 10 more\n"), "{text}");
        assert!(text.contains("## Needs action\n\n- [[Needs_Action/plan_blocked_p]]\n"), "{text}");
        assert!(text.starts_with("---\nplans_waiting: 60\n"));
        let empty = Overview::default();
        assert_eq!(render(Some(&text), &empty), render(None, &empty));
    }

    #[test]
    fn counts_are_true_however_many_are_listed() {
        let overview = Overview {
            rows: (0..120).map(|n| row(&n.to_string())).collect(),
            waiting: paths("Plans", 300),
            completed: 2000,
            newest: paths("Done", MOST_LISTED),
            needs_action: paths("Needs_Action", 126),
        };
        let text = render(None, &overview);
        let front = "plans_waiting: 300\nplans_active: 120\nplans_completed: 2000\nneeds_action: 126\n";
        assert!(text.contains(front), "{text}");
        assert!(text.contains("\"completed\" : 2000"), "{text}");
        for more in ["| and 70 more |", "- and 250 more\n", "- and 1950 more\n", "- and 76 more\n"] {
            assert!(text.contains(more), "{more} in {text}");
        }
    }
}
