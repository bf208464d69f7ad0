//! A report to be read.

use super::attention::flag_words;
use super::{AttemptReport, Report, short, spoken};

pub(super) fn render(report: &Report) -> String {
    let mut out = String::new();
    heading(report, &mut out);
    attention(report, &mut out);
    tasks(report, &mut out);
    cost(report, &mut out);
    attempts(report, &mut out);
    timeline(report, &mut out);
    out
}

macro_rules! line {
    ($out:expr) => { $out.push('\n') };
    ($out:expr, $($argument:tt)*) => {{
        $out.push_str(&format!($($argument)*));
        $out.push('\n');
    }};
}

fn heading(report: &Report, out: &mut String) {
    let status = &report.status;
    let counts = &status.counts;
    line!(out, "# {}: {}\n", plain(&status.name), status.activity.says());
    if let (Some(reason), Some(detail)) = (&status.termination_reason, &status.detail) {
        line!(out, "**Why it stopped:** {reason}: {}\n", plain(detail));
    }
    line!(out, "| | |\n|---|---|");
    line!(out, "| backlog | {} |", plain(&status.backlog));
    line!(out, "| agent | {} |", plain(&status.agent));
    if !report.sandbox.is_empty() {
        line!(out, "| sandbox | {} |", plain(&report.sandbox));
    }
    line!(
        out,
        "| tasks | {} of {} done{}{}{} |",
        counts.done,
        counts.total,
        some(counts.unverified, "unverified"),
        some(counts.failed, "failed"),
        some(counts.skipped, "skipped"),
    );
    line!(out, "| iterations | {} |", report.iterations());
    line!(out, "| time at work | {} |", report.time_at_work());
    line!(out, "| cost | {} |", money(&report.cost.total));
    if let Some(code) = report.exit_code {
        line!(out, "| exit code | {code} |");
    }
    line!(out);
}

fn attention(report: &Report, out: &mut String) {
    line!(out, "## What to look at\n");
    if report.attention.is_empty() {
        line!(out, "Nothing.\n");
        return;
    }
    for item in &report.attention {
        let task = item.task.as_ref().map_or_else(String::new, |task| format!("**{}**: ", plain(task)));
        line!(out, "- {task}{} (`{}`)", plain(&item.what), item.hint.replace('`', "'"));
    }
    line!(out);
}

fn tasks(report: &Report, out: &mut String) {
    line!(out, "## Tasks\n\n| task | title | state | attempts | commit | cost |\n|---|---|---|---|---|---|");
    for task in &report.tasks {
        let state = task.why.as_str();
        let commit = task.commit.as_deref().map(short).unwrap_or_default();
        let price = if task.cost > 0.0 { format!("${:.2}", task.cost) } else { String::new() };
        let (id, title) = (plain(&task.id), plain(&task.title));
        line!(out, "| {id} | {title} | {} | {} | {commit} | {price} |", plain(state), task.attempts);
    }
    line!(out);
}

fn cost(report: &Report, out: &mut String) {
    if report.cost.by_agent.is_empty() {
        return;
    }
    line!(
        out,
        "## Cost\n\n| | input | output | cache read | cache written | cost |\n|---|---|---|---|---|---|"
    );
    let rows = report.cost.by_agent.iter().chain(&report.cost.by_model);
    for (name, usage) in rows {
        line!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            plain(name),
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            money(usage),
        );
    }
    line!(out);
    if let Some(foreseen) = &report.cost.foreseen {
        line!(out, "{}\n", foreseen.sentence());
    }
}

fn attempts(report: &Report, out: &mut String) {
    line!(out, "## Attempts\n");
    for task in report.tasks.iter().filter(|task| !task.history.is_empty()) {
        line!(out, "### {} {}\n", plain(&task.id), plain(&task.title));
        for attempt in &task.history {
            one_attempt(report, attempt, out);
        }
    }
}

fn one_attempt(report: &Report, attempt: &AttemptReport, out: &mut String) {
    let took = report.took(attempt).map(|took| format!(", {took}"));
    let agent =
        if attempt.agent.is_empty() { String::new() } else { format!(" by {}", plain(&attempt.agent)) };
    let (number, iteration) = (attempt.attempt, attempt.iteration);
    line!(
        out,
        "- attempt {number} (iteration {iteration}){agent}: **{}**{}",
        attempt.outcome,
        took.unwrap_or_default()
    );
    for reason in &attempt.reasons {
        line!(out, "{}", indented(&quoted(reason)));
    }
    for evidence in &attempt.evidence {
        let mark = if evidence.passed { "passed" } else { "FAILED" };
        let (name, command) = (plain(&evidence.name), evidence.command.replace('`', "'"));
        line!(out, "  - {mark}: {name}: `{command}`, {} after {}", evidence.exit, spoken(evidence.seconds));
        if !evidence.passed && !evidence.output.is_empty() {
            line!(out, "{}", indented(&fenced(&evidence.output)));
        }
    }
    for flag in &attempt.flags {
        line!(out, "  - note: {}", plain(&flag_words(flag.kind, &flag.what)));
    }
    if let Some(kept) = &attempt.kept {
        line!(out, "  - unfinished work kept under `{kept}`");
    }
}

fn timeline(report: &Report, out: &mut String) {
    line!(out, "\n## Timeline\n");
    if report.omitted > 0 {
        line!(out, "{} older entries are left out; `wiggum events` has them all.\n", report.omitted);
    }
    for moment in &report.timeline {
        let task = moment.task.as_ref().map_or_else(String::new, |task| format!("{}: ", plain(task)));
        line!(out, "- {:.0} {task}{}", moment.at, plain(&moment.what));
    }
}

fn some(count: usize, word: &str) -> String {
    if count == 0 { String::new() } else { format!(", {count} {word}") }
}

/// Tokens nobody put a price on are not free.
pub(super) fn money(usage: &wiggum_core::event::Usage) -> String {
    match usage.tokens() {
        tokens if usage.is_unpriced() => format!("{tokens} tokens, unpriced"),
        0 if usage.cost_usd == 0.0 => "not reported".to_owned(),
        _ => format!("${:.2}", usage.cost_usd),
    }
}

/// One line in which nothing is formatting: agents write whatever they like.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in text.split_whitespace().collect::<Vec<_>>().join(" ").chars().filter(|c| !c.is_control()) {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '!' | '~') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn quoted(text: &str) -> String {
    text.lines().take(20).map(|line| format!("> {}\n", plain(line))).collect()
}

/// Between fences that are longer than any inside.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let harmless: String = text.chars().filter(|c| !c.is_control() || *c == '\n').collect();
    format!("{fence}\n{harmless}\n{fence}")
}

fn indented(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
