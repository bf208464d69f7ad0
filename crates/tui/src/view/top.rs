//! The first lines: which loop, where it stands, what it costs; the views; and what must not be overlooked.

use ratatui_core::layout::Rect;
use wiggum_core::activity::Activity;
use wiggum_core::state::{Loop, Stage};
use wiggum_core::termination;
use wiggum_engine::status::budgets;
use wiggum_engine::words::{dollars, elapsed};

use ratatui_core::style::{Modifier, Style};

use super::canvas::{Canvas, Piece, bar, below};
use super::theme::Theme;
use crate::app::{App, Hit, View};
use crate::model::Model;
use crate::text::{line, width};

/// Draws them; what is left of the area is returned.
pub(super) fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) -> Rect {
    match &app.model {
        Some(model) => headline(app, model, area, canvas),
        None => canvas.text(area, 0, " wiggum", canvas.theme.bold()),
    }
    tabs(app, below(area, 1), canvas);
    let rest = below(area, 2);
    match alarm(app, canvas.theme) {
        Some((text, style, hit)) => {
            let place = Rect { height: 1, ..rest };
            let text = crate::text::pad(&format!(" {text}"), rest.width.into());
            canvas.text(place, 0, &text, style);
            if let Some(hit) = hit {
                canvas.seen.hits.push((place, hit));
            }
            below(rest, 1)
        }
        None => rest,
    }
}

fn headline(app: &App, model: &Model, area: Rect, canvas: &mut Canvas<'_>) {
    let theme = canvas.theme;
    let state = model.head();
    let (glyph, word, style) = standing(model, canvas);
    let counts = state.tasks.counts();
    let done = counts.done;
    let (full, rest) = bar(done as f64 / counts.total.max(1) as f64, if area.width >= 100 { 20 } else { 8 });
    let left: Vec<Piece> = vec![
        (" ".to_owned(), theme.plain()),
        (line(&state.name), theme.bold()),
        (format!(" {}", line(&state.backlog)), theme.dim()),
        (format!("  {glyph} {word}"), style),
    ];
    let mut right: Vec<Piece> =
        vec![(full, theme.good()), (rest, theme.dim()), (format!(" {done}/{}", counts.total), theme.plain())];
    let limit = state.policy.limits.iterations.map(|limit| format!("/{limit}")).unwrap_or_default();
    right.push((format!("  #{}{limit}", state.run.iterations), theme.plain()));
    right.push((format!("  {}", money(state, app.now)), theme.plain()));
    if let Some(open) = state.open.here().filter(|_| model.is_alive()) {
        let what = if open.stage == Stage::Agent { "" } else { " checks" };
        right.push((format!("  {}{what}", clock(app, open.started_at)), theme.lively()));
    }
    right.push((" ".to_owned(), theme.plain()));
    canvas.row_with(area, 0, &left, &right);
}

/// A glyph, a word and a colour for how a loop stands.
fn standing(model: &Model, canvas: &Canvas<'_>) -> (&'static str, String, Style) {
    let theme = canvas.theme;
    let health = model.health.as_ref();
    let Some(health) = health else { return ("○", "…".to_owned(), theme.plain()) };
    let ill = health.health.as_ref().map(|health| health.health.as_str());
    match (health.activity, ill) {
        (Activity::Running, Some("stuck")) => ("!", "agent stuck".to_owned(), theme.warning()),
        (Activity::Running, Some("failing")) => ("!", "agent failing".to_owned(), theme.bad()),
        (activity, _) => {
            let (glyph, word, style) = activity_mark(activity, &health.state, theme);
            (glyph, word.to_owned(), style)
        }
    }
}

/// What a loop does as a glyph, a word and a colour; while it runs, its state says more.
pub(super) fn activity_mark(activity: Activity, state: &str, theme: Theme) -> (&'static str, &str, Style) {
    match activity {
        Activity::Running => ("●", state, theme.lively()),
        Activity::Waiting => ("…", activity.says(), theme.warning()),
        Activity::Blocked | Activity::PersonNeeded => ("?", activity.says(), theme.warning()),
        Activity::Paused | Activity::Interrupted | Activity::Answered => {
            ("‖", activity.says(), theme.warning())
        }
        Activity::Died => ("‖", "engine died", theme.bad()),
        Activity::Completed => ("✓", activity.says(), theme.good()),
        Activity::Failed => ("✗", activity.says(), theme.bad()),
        Activity::Terminated => ("■", activity.says(), theme.warning()),
        Activity::NotStarted | Activity::Restored => ("○", activity.says(), theme.plain()),
    }
}

fn money(state: &Loop, now: jiff::Timestamp) -> String {
    let spent = dollars(state.usage.cost_usd);
    let more = if state.spending.unpriced > 0 { "+" } else { "" };
    let limit = budgets(state, now)
        .into_iter()
        .find(|budget| budget.scope == "loop" && budget.unit == wiggum_core::budget::Unit::Usd);
    match limit {
        Some(budget) => format!("{spent}{more}/{}", dollars(budget.limit)),
        None => format!("{spent}{more}"),
    }
}

/// How long something goes on, in whole seconds: it changes once a second.
pub(super) fn clock(app: &App, since: jiff::Timestamp) -> String {
    let seconds = (app.now.as_second() - since.as_second()).max(0);
    match seconds {
        0..3600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!("{}:{:02}:{:02}", seconds / 3600, seconds % 3600 / 60, seconds % 60),
    }
}

fn tabs(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let theme = canvas.theme;
    let asked = app
        .model
        .as_ref()
        .map_or(0, |model| model.letters.iter().filter(|letter| letter.answered.is_none()).count());
    let name = |view: View| match view {
        View::Inbox if asked > 0 => format!("Inbox({asked})"),
        _ => view.name().to_owned(),
    };
    let total: usize = View::ALL.iter().map(|view| width(&name(*view)) + 3).sum();
    let short = total >= area.width.into();
    let mut x = area.x;
    for (number, view) in (1..).zip(View::ALL) {
        let label = if short && view != app.view {
            format!(" {number}")
        } else {
            format!(" {number} {}", name(view))
        };
        let style = match view {
            _ if view == app.view => theme.chosen().add_modifier(Modifier::BOLD),
            View::Inbox if asked > 0 => theme.warning().add_modifier(Modifier::BOLD),
            _ => theme.plain(),
        };
        let room = area.right().saturating_sub(x);
        let place =
            Rect { x, width: u16::try_from(width(&label)).unwrap_or(room).min(room), height: 1, ..area };
        canvas.text(place, 0, &label, style);
        if view == app.view {
            // The gap to the next one belongs to what is chosen.
            canvas.choose(Rect { width: (place.width + 1).min(room), ..place }, 0);
        }
        canvas.seen.hits.push((place, Hit::Tab(view)));
        x += place.width;
    }
}

/// What somebody has to know wherever he looks: the most urgent of it.
fn alarm(app: &App, theme: Theme) -> Option<(String, Style, Option<Hit>)> {
    let loud = theme.loud();
    if let Some(why) = &app.lost {
        return Some((format!("! {why}"), loud, None));
    }
    let model = app.model.as_ref()?;
    let state = model.head();
    let waiting: Vec<_> = model.letters.iter().filter(|letter| letter.answered.is_none()).collect();
    if let Some(letter) = app.letter().filter(|letter| letter.answered.is_none()).or(waiting.first().copied())
    {
        let task = letter.question.task.as_ref().map(|task| format!("{}: ", line(task))).unwrap_or_default();
        let id = model.id().to_string();
        let which =
            if letter.loop_id == id { String::new() } else { format!(" in {}", line(&letter.loop_name)) };
        let more = if waiting.len() > 1 { format!(" (+{})", waiting.len() - 1) } else { String::new() };
        let text = format!(
            "? {}{which}{more}  i answers  {task}{}",
            letter.question.id,
            line(&letter.question.summary)
        );
        return Some((text, loud, Some(Hit::Question)));
    }
    if let Some(problem) = &state.backlog_broken {
        return Some((format!("! the backlog cannot be read: {}", line(problem)), loud, None));
    }
    let health = model.health.as_ref()?;
    if health.interrupted {
        return Some(("‖ its engine is gone: `wiggum run` goes on".to_owned(), loud, None));
    }
    if let Some(ended) = state.run.ended.as_ref().filter(|_| !model.is_alive()) {
        let took = state.run.started_at.zip(state.last_at).map(|(from, to)| elapsed(from, to));
        let (reason, detail) = ended;
        let (glyph, style) = match reason.ending().exit_code {
            0 => ("✓", theme.good()),
            7 => ("✗", theme.bad()),
            _ => ("■", theme.warning()),
        };
        let headline = termination::headline(*reason, detail);
        let detail = match termination::more(*reason, detail) {
            "" => String::new(),
            more => format!(": {}", line(more)),
        };
        let text = format!("{glyph} {headline}{detail} · {}", took.unwrap_or_default());
        return Some((text, style.patch(theme.bold()), None));
    }
    let agent =
        health.health.as_ref().filter(|health| matches!(health.health.as_str(), "stuck" | "failing"))?;
    Some((format!("! the agent is {}: {}", agent.health, line(&agent.detail)), loud, None))
}
