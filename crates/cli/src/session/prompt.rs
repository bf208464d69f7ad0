//! A prompt on its way to the agent: our slash commands are seen here first, and cost no tool call.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use wiggum_workspace::process::{self, CommandLine, Launch};

use super::hook::{Answer, Asked, PATIENCE, Problem, Watchdog};
use super::judge;
use super::progress::Mark;
use super::slash::{self, Action, SlashCommand};
use super::state::{Place, Session, SessionId};
use crate::config::{self, Flags, Sources};

pub(super) fn submitted(asked: &Asked, id: &SessionId, watchdog: &Watchdog) -> Result<Answer, Problem> {
    let Some((command, arguments)) = asked.prompt.as_deref().and_then(slash::called) else {
        return set_working(asked, id, true, watchdog);
    };
    match command.action {
        Action::Start => begin(asked, id, command, arguments, watchdog),
        Action::Cancel => cancel(asked, id),
        Action::Show(arguments) => {
            watchdog.allow(PATIENCE * 6);
            show(asked, arguments)
        }
    }
}

fn begin(
    asked: &Asked,
    id: &SessionId,
    command: &SlashCommand,
    arguments: &str,
    watchdog: &Watchdog,
) -> Result<Answer, Problem> {
    let mut start = match slash::parse(arguments) {
        Ok(start) => start,
        Err(error) => {
            let usage = format!("usage: /{} {}", command.name, command.arguments);
            return Ok(Answer::Block { reason: format!("wiggum: {error}\n{usage}"), note: None });
        }
    };
    let workspace = asked.workspace()?;
    if start.verify.is_empty() {
        start.verify = configured_checks(&workspace)?;
    }
    let mut session = Session::new(id, asked.agent(), start, Timestamp::now());
    session.seen.mark = Some(Mark::of(&workspace));
    session.seen.transcript =
        asked.transcript_path.as_deref().and_then(|path| Some(path.metadata().ok()?.len())).unwrap_or(0);
    Place::new(&workspace, id).begin(&session, || watchdog.allow(PATIENCE))?;
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
        Some(place) => place.load()?.ended.is_none(),
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

/// Answers with what a command of ours prints, so that the agent need not be asked.
fn show(asked: &Asked, arguments: &[&str]) -> Result<Answer, Problem> {
    let program = std::env::current_exe()
        .map_err(|error| Problem::new(format!("cannot find this program's own path: {error}")))?;
    let launch = Launch::new(CommandLine::new(program, arguments), asked.workspace()?);
    let output = process::run(launch)?;
    let text = if output.exit.success() { output.stdout } else { output.stderr };
    Ok(Answer::Block { reason: String::from_utf8_lossy(&text).trim_end().to_owned(), note: None })
}

pub(super) fn session_ended(asked: &Asked, id: &SessionId, watchdog: &Watchdog) -> Result<Answer, Problem> {
    set_working(asked, id, false, watchdog)
}

/// Keeps what `wiggum status` shows true; a session without a loop has nothing to keep.
fn set_working(asked: &Asked, id: &SessionId, working: bool, watchdog: &Watchdog) -> Result<Answer, Problem> {
    let Some(place) = asked.find(id) else { return Ok(Answer::Silence) };
    let _lock = place.lock(|| watchdog.allow(PATIENCE))?;
    let mut session = place.load()?;
    if session.ended.is_none() && session.working != working {
        session.working = working;
        session.updated_at = Timestamp::now();
        place.save(&session)?;
    }
    Ok(Answer::Silence)
}

/// The checks of `wiggum.toml` and the user's own configuration, as they are when the loop begins.
pub(crate) fn configured_checks(workspace: &Path) -> Result<Vec<String>, Problem> {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let env: BTreeMap<String, String> = variables.collect();
    let flags = Flags::default();
    let sources = Sources { workspace, user_file: config::user_file(&env), env: &env, flags: &flags };
    let config = config::resolve(&sources).map_err(|problems| Problem::new(problems.to_string()))?;
    Ok(config.policy.checks.verify)
}
