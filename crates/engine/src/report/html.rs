//! A report as one page: no script, nothing loaded from anywhere, every text escaped.

use jiff::Timestamp;

use super::attention::flag_words;
use super::markdown::money;
use super::{AttemptReport, Report, TaskReport, seconds_between, short, spoken};

const STYLE: &str = include_str!("report.css");

/// More bars than this nobody can tell apart.
const MAX_BARS: usize = 400;
const WIDTH: f64 = 960.0;
const ROW: f64 = 18.0;
const LABEL: f64 = 150.0;

macro_rules! put {
    ($out:expr, $($argument:tt)*) => { $out.push_str(&format!($($argument)*)) };
}

pub(super) fn render(report: &Report) -> String {
    let mut out = String::new();
    let title = format!("{}: {}", report.status.name, report.status.activity.says());
    put!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{0}</title><style>{STYLE}</style></head><body><main><h1>{0}</h1>",
        escaped(&title)
    );
    summary(report, &mut out);
    attention(report, &mut out);
    chart(report, &mut out);
    tasks(report, &mut out);
    cost(report, &mut out);
    timeline(report, &mut out);
    out.push_str("</main></body></html>\n");
    out
}

fn summary(report: &Report, out: &mut String) {
    let status = &report.status;
    if let (Some(reason), Some(detail)) = (&status.termination_reason, &status.detail) {
        put!(out, "<p class=\"why\"><strong>{}</strong> {}</p>", escaped(reason), escaped(detail));
    }
    let counts = &status.counts;
    let done = if counts.total == 0 { 0.0 } else { 100.0 * counts.done as f64 / counts.total as f64 };
    put!(
        out,
        "<progress max=\"100\" value=\"{done:.0}\" aria-label=\"tasks done\">{done:.0} %</progress><dl>"
    );
    let facts = [
        ("tasks", format!("{} of {} done", counts.done, counts.total)),
        ("failed", counts.failed.to_string()),
        ("unverified", counts.unverified.to_string()),
        ("iterations", report.iterations()),
        ("time at work", report.time_at_work()),
        ("cost", money(&report.cost.total)),
        ("agent", status.agent.clone()),
        ("sandbox", report.sandbox.split(':').next().unwrap_or_default().to_owned()),
        ("backlog", status.backlog.clone()),
        ("exit code", report.exit_code.map_or_else(|| "still running".to_owned(), |code| code.to_string())),
    ];
    for (name, value) in facts {
        put!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(&value));
    }
    out.push_str("</dl>");
}

fn attention(report: &Report, out: &mut String) {
    out.push_str("<h2>What to look at</h2>");
    if report.attention.is_empty() {
        out.push_str("<p>Nothing.</p>");
        return;
    }
    out.push_str("<ul class=\"attention\">");
    for item in &report.attention {
        let task = item.task.as_deref().map(escaped).unwrap_or_default();
        let (kind, what, hint) = (item.kind, escaped(&item.what), escaped(&item.hint));
        put!(out, "<li class=\"{kind}\"><b>{task}</b> {what} <code>{hint}</code></li>");
    }
    out.push_str("</ul>");
}

/// One row a task, one bar an attempt.
fn chart(report: &Report, out: &mut String) {
    let bars: Vec<(&TaskReport, &AttemptReport)> = report.attempts().collect();
    let bars = &bars[bars.len().saturating_sub(MAX_BARS)..];
    let ends = |attempt: &AttemptReport| report.end_of(attempt).unwrap_or(attempt.started_at);
    let (Some(from), Some(to)) = (
        bars.iter().map(|(_, attempt)| attempt.started_at).min(),
        bars.iter().map(|(_, attempt)| ends(attempt)).max(),
    ) else {
        return;
    };
    let mut rows: Vec<&str> = Vec::new();
    for (task, _) in bars {
        if rows.last() != Some(&task.id.as_str()) {
            rows.push(&task.id);
        }
    }
    let span = seconds_between(from, to).max(0.001);
    let place = |at: Timestamp| LABEL + (WIDTH - LABEL) * seconds_between(from, at) / span;
    let height = ROW * rows.len() as f64 + 4.0;
    put!(
        out,
        "<h2>Attempts in time</h2><svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"attempts in time\">"
    );
    for (row, id) in rows.iter().enumerate() {
        put!(out, "<text x=\"0\" y=\"{}\">{}</text>", ROW * (row as f64 + 0.75), escaped(&cut(id, 20)));
    }
    for (task, attempt) in bars {
        let row = rows.iter().position(|id| *id == task.id).unwrap_or_default() as f64;
        let (start, end) = (place(attempt.started_at), place(ends(attempt)));
        put!(
            out,
            "<rect class=\"{}\" x=\"{start:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\">\
             <title>{}</title></rect>",
            class_of(&attempt.outcome),
            ROW * row + 2.0,
            (end - start).max(2.0),
            ROW - 4.0,
            escaped(&format!("{} attempt {}: {}", task.id, attempt.attempt, attempt.outcome)),
        );
    }
    out.push_str("</svg>");
}

fn class_of(outcome: &str) -> &'static str {
    match outcome {
        "completed" | "accepted" => "good",
        "error" | "claim refuted" | "commit refused" => "bad",
        _ => "open",
    }
}

fn tasks(report: &Report, out: &mut String) {
    out.push_str("<h2>Tasks</h2>");
    for task in &report.tasks {
        let state = if task.state == "done" { &task.why } else { &task.state };
        put!(
            out,
            "<details class=\"{}\"><summary><b>{}</b> {} <span>{}{}</span></summary>",
            if task.state == "done" {
                "good"
            } else if task.state == "failed" {
                "bad"
            } else {
                "open"
            },
            escaped(&task.id),
            escaped(&task.title),
            escaped(state),
            task.commit
                .as_deref()
                .map_or_else(String::new, |commit| format!(" · {}", escaped(short(commit)))),
        );
        if task.state != "done" {
            put!(out, "<p>{}</p>", escaped(&task.why));
        }
        for attempt in &task.history {
            one_attempt(report, attempt, out);
        }
        out.push_str("</details>");
    }
}

fn one_attempt(report: &Report, attempt: &AttemptReport, out: &mut String) {
    let took = report.took(attempt).unwrap_or_default();
    let paid = attempt.usage.as_ref().map_or_else(String::new, |usage| format!(", {}", money(usage)));
    put!(
        out,
        "<section><h3 class=\"{}\">Attempt {}, iteration {}: {}</h3><p>{} {took}{}</p>",
        class_of(&attempt.outcome),
        attempt.attempt,
        attempt.iteration,
        escaped(&attempt.outcome),
        escaped(&attempt.agent),
        escaped(&paid),
    );
    for reason in &attempt.reasons {
        put!(out, "<blockquote>{}</blockquote>", escaped(reason));
    }
    for evidence in &attempt.evidence {
        let (class, mark) = if evidence.passed { ("good", "passed") } else { ("bad", "failed") };
        put!(
            out,
            "<p class=\"{class}\">{mark}: {} <code>{}</code> {} after {}</p>",
            escaped(&evidence.name),
            escaped(&evidence.command),
            escaped(&evidence.exit),
            spoken(evidence.seconds),
        );
        if !evidence.output.is_empty() {
            put!(out, "<pre>{}</pre>", escaped(&evidence.output));
        }
    }
    for flag in &attempt.flags {
        put!(out, "<p class=\"flag\">{}</p>", escaped(&flag_words(flag.kind, &flag.what)));
    }
    if let Some(kept) = &attempt.kept {
        put!(out, "<p>Unfinished work: <code>{}</code></p>", escaped(kept));
    }
    out.push_str("</section>");
}

fn cost(report: &Report, out: &mut String) {
    if report.cost.by_agent.is_empty() {
        return;
    }
    out.push_str(
        "<h2>Cost</h2><table><tr><th></th><th>input</th><th>output</th><th>cache read</th>\
         <th>cache written</th><th>cost</th></tr>",
    );
    for (name, usage) in report.cost.by_agent.iter().chain(&report.cost.by_model) {
        put!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(name),
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            escaped(&money(usage)),
        );
    }
    out.push_str("</table>");
    if let Some(foreseen) = &report.cost.foreseen {
        put!(out, "<p>{}</p>", escaped(&foreseen.sentence()));
    }
}

fn timeline(report: &Report, out: &mut String) {
    out.push_str("<h2>Timeline</h2>");
    if report.omitted > 0 {
        put!(out, "<p>{} older entries are left out.</p>", report.omitted);
    }
    out.push_str("<ol class=\"timeline\">");
    for moment in &report.timeline {
        let task = moment.task.as_deref().map(escaped).unwrap_or_default();
        put!(out, "<li><time>{:.0}</time> <b>{task}</b> {}</li>", moment.at, escaped(&moment.what));
    }
    out.push_str("</ol>");
}

fn cut(text: &str, length: usize) -> String {
    if text.chars().count() <= length {
        return text.to_owned();
    }
    text.chars().take(length - 1).chain(['…']).collect()
}

/// Text that is only text, and runs in the direction it is written in.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}
