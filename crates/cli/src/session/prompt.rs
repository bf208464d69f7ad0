//! A prompt on its way to the agent: our slash commands are seen here first, and cost no tool call.

use std::path::Path;

use jiff::Timestamp;
use wiggum_core::event::EndReason;
use wiggum_workspace::git::Git;
use wiggum_workspace::process::{self, CommandLine, Launch};

use super::checkpoint::{Around, Checkpoint};
use super::hook::{Answer, Asked, PATIENCE, Problem, Watchdog};
use super::progress::Mark;
use super::rules::{self, Rules};
use super::slash::{self, About, Action, SlashCommand};
use super::state::{self, Place, Session, SessionError, SessionId};
use super::{checks, judge, observe, show, usage};
use crate::term::Style;

pub(super) fn submitted(asked: &Asked, id: &SessionId, watchdog: &Watchdog) -> Result<Answer, Problem> {
    let Some((command, arguments)) = asked.prompt.as_deref().and_then(slash::called) else {
        return spoken_to(asked, id, watchdog);
    };
    if command.arguments.is_empty() && !arguments.is_empty() {
        let reason = format!("wiggum: /{} takes no arguments", command.name);
        return Ok(Answer::Block { reason, note: None });
    }
    match command.action {
        Action::Start => begin(asked, id, command, arguments, watchdog),
        Action::Cancel => cancel(asked, id),
        Action::Show(shown) => {
            watchdog.allow(PATIENCE * 6);
            let reason = printed(&asked.workspace()?, shown)?;
            Ok(Answer::Block { reason, note: None })
        }
        Action::Tell(about, shown) => {
            watchdog.allow(PATIENCE * 6);
            let reason = tell(asked, id, about, arguments, shown, watchdog)?;
            Ok(Answer::Block { reason, note: None })
        }
    }
}

/// What is known of this session's own loop, and of the loops of the project.
fn tell(
    asked: &Asked,
    id: &SessionId,
    about: About,
    note: &str,
    shown: &[&str],
    watchdog: &Watchdog,
) -> Result<String, Problem> {
    let workspace = asked.workspace()?;
    let own = match asked.find(id) {
        Some(place) => Some(tell_own(&place, about, note, watchdog)?),
        None => None,
    };
    let others = state::has_loops(&workspace);
    let texts = match (own, about, others) {
        // One checkpoint was asked for.
        (Some(own), About::Checkpoint, _) | (Some(own), _, false) => vec![own],
        (Some(own), About::Health | About::Tokens | About::Cost, true) => {
            vec![own, printed(&workspace, shown)?]
        }
        (None, _, true) => vec![printed(&workspace, shown)?],
        (None, _, false) => vec![
            "no loop runs in this session, and none of `wiggum run` in this project: `/ralph-loop` starts one"
                .to_owned(),
        ],
    };
    Ok(texts.iter().map(|text| text.trim_end()).collect::<Vec<_>>().join("\n\n"))
}

fn tell_own(place: &Place, about: About, note: &str, watchdog: &Watchdog) -> Result<String, Problem> {
    let (now, style) = (Timestamp::now(), Style::plain());
    if about == About::Checkpoint {
        return Ok(make_checkpoint(place, note, || watchdog.allow(PATIENCE))?.text());
    }
    let mut session = place.load()?;
    observe::observe(&mut session);
    let used =
        || Ok::<_, Problem>(usage::of(&session, &rules::configuration(&place.workspace)?.policy.prices));
    Ok(match about {
        About::Health | About::Checkpoint => show::health(&session, now, style),
        // A transcript that is gone tells no figures.
        About::Tokens => show::tokens(&session, &used()?.unwrap_or_default()),
        About::Cost => show::costs(&session, &used()?.unwrap_or_default()),
    })
}

/// Notes where a session stands, for its next prompt.
pub(crate) fn make_checkpoint(
    place: &Place,
    note: &str,
    waits: impl FnOnce(),
) -> Result<Checkpoint, SessionError> {
    let _lock = place.lock(waits)?;
    let mut session = place.load()?;
    let file = session.rules.plan.clone().unwrap_or_default();
    let text = session.rules.plan.as_ref().map(|plan| checks::read_plan(&place.workspace.join(plan)));
    let text = text.and_then(Result::ok).unwrap_or_default();
    let plan = wiggum_backlog::checkboxes(&file, &text);
    let head = Git::new(&place.workspace, None).head_from_files();
    let around =
        Around { plan: &plan, commit: head.and_then(|head| head.commit), note, now: Timestamp::now() };
    let checkpoint = Checkpoint::of(&session, around);
    session.checkpoint = Some(checkpoint.clone());
    place.save(&session)?;
    Ok(checkpoint)
}

fn begin(
    asked: &Asked,
    id: &SessionId,
    command: &SlashCommand,
    arguments: &str,
    watchdog: &Watchdog,
) -> Result<Answer, Problem> {
    let options = match slash::parse(arguments) {
        Ok(options) => options,
        Err(error) => {
            let usage = format!("usage: /{} {}", command.name, command.arguments);
            return Ok(Answer::Block { reason: format!("wiggum: {error}\n{usage}"), note: None });
        }
    };
    let workspace = asked.workspace()?;
    let rules = Rules::at_start(&options, &workspace)?;
    let mut session = Session::new(id, asked.agent(), &options.prompt, rules, Timestamp::now());
    session.seen.mark = Some(Mark::of(&workspace));
    session.transcript.clone_from(&asked.transcript_path);
    let length = asked.transcript_path.as_deref().and_then(|path| Some(path.metadata().ok()?.len()));
    session.transcript_start = length.unwrap_or(0);
    session.seen.transcript = session.transcript_start;
    session.begun_by = asked.prompt_id();
    if !Place::new(&workspace, id).begin(&session, || watchdog.allow(PATIENCE))? {
        // Another hook of ours was asked about this prompt, as when a project has one and the user too.
        return Ok(Answer::Silence);
    }
    Ok(Answer::Context {
        note: format!("wiggum: the loop is on, iteration {}", session.progress()),
        context: format!(
            "The options of the command are for the loop, not for you. {}",
            judge::opening(&session)
        ),
    })
}

fn cancel(asked: &Asked, id: &SessionId) -> Result<Answer, Problem> {
    let place = asked.find(id);
    let active = match &place {
        Some(place) => {
            let session = place.load()?;
            // Just cancelled, by another hook that was asked about this prompt: the answer is the same.
            session.ended.is_none_or(|ended| ended.reason == EndReason::ExplicitStop && session.working)
        }
        None => false,
    };
    let Some(place) = place.filter(|_| active) else {
        return Ok(Answer::Block { reason: "wiggum: no loop runs in this session".to_owned(), note: None });
    };
    place.cancel()?;
    let session = place.load()?;
    let detail = session.ended.map(|ended| ended.detail).unwrap_or_default();
    Ok(Answer::Block { reason: format!("wiggum: {detail}"), note: None })
}

/// What a command of ours prints, so that the agent need not be asked.
fn printed(workspace: &Path, arguments: &[&str]) -> Result<String, Problem> {
    let program = std::env::current_exe()
        .map_err(|error| Problem::new(format!("cannot find this program's own path: {error}")))?;
    let output = process::run(Launch::new(CommandLine::new(program, arguments), workspace))?;
    let text = if output.exit.success() { output.stdout } else { output.stderr };
    Ok(String::from_utf8_lossy(&text).trim_end().to_owned())
}

pub(super) fn session_ended(asked: &Asked, id: &SessionId, watchdog: &Watchdog) -> Result<Answer, Problem> {
    let Some(place) = asked.find(id) else { return Ok(Answer::Silence) };
    change(&place, watchdog, |session| {
        observe::observe(session);
        session.working = false;
    })?;
    Ok(Answer::Silence)
}

/// The user has said something: what the loop waited for is over.
fn spoken_to(asked: &Asked, id: &SessionId, watchdog: &Watchdog) -> Result<Answer, Problem> {
    let Some(place) = asked.find(id) else { return Ok(Answer::Silence) };
    let mut stands = None;
    change(&place, watchdog, |session| {
        session.working = true;
        session.waiting = None;
        stands = session.carry_checkpoint();
    })?;
    let note = "wiggum: the agent is told where the loop stands".to_owned();
    Ok(stands.map_or(Answer::Silence, |context| Answer::Context { context, note }))
}

/// Keeps what `wiggum status` shows true; a loop that is over has nothing to keep.
fn change(place: &Place, watchdog: &Watchdog, change: impl FnOnce(&mut Session)) -> Result<(), Problem> {
    let _lock = place.lock(|| watchdog.allow(PATIENCE))?;
    let mut session = place.load()?;
    if session.ended.is_none() {
        let before = session.clone();
        change(&mut session);
        if session != before {
            session.updated_at = Timestamp::now();
            place.save(&session)?;
        }
    }
    Ok(())
}
