//! The agent wants to stop: everything that is looked at, the judgement, and what is kept of it.

use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use wiggum_core::event::EndReason;
use wiggum_engine::error::chain;

use super::hook::{Answer, Asked, PATIENCE, Problem, Watchdog, our_fault};
use super::judge::{self, Verdict};
use super::rules::Rules;
use super::state::{Agent, Answered, Place, Session, SessionId};
use super::transcript::Transcript;
use super::turn::{self, Turn};
use super::{checks, ralph_file};

pub(super) fn stop(asked: &Asked, id: &SessionId, watchdog: &Watchdog) -> Result<Answer, Problem> {
    let now = Timestamp::now();
    let place = match asked.find(id) {
        Some(place) => place,
        None => match take_over(asked, id, now, watchdog)? {
            Some(place) => place,
            None => return Ok(Answer::Silence),
        },
    };
    let _lock = place.lock(|| watchdog.allow(PATIENCE))?;
    let mut session = place.load()?;
    if session.ended.is_some() {
        return farewell(&place, &mut session, now);
    }
    if session.agent == Agent::Other {
        // Started from outside, where it is not known whose session it is.
        session.agent = asked.agent();
    }
    let told = Told::read(asked, &session);
    let same = |answered: &mut Answered| now < answered.at && answered.message == hash(&told.message);
    if let Some(answered) = session.seen.answered.take_if(same) {
        // Asked before we had answered, so it is about the same stop, as when two installations call
        // us. Only once, or a clock that goes backwards could send an agent back for ever.
        place.save(&session)?;
        return Ok(Answer::Block { reason: answered.reason, note: None });
    }
    if !session.rules.verify.is_empty() {
        watchdog.allow(checks::BUDGET + PATIENCE);
    }
    let turn = Turn {
        message: &told.message,
        trouble: turn::trouble(&told.message),
        used_tools: told.used_tools,
        waits: asked.background_tasks.as_ref().is_some_and(|tasks| !tasks.is_empty()),
        cap: cap(session.agent),
    };
    let Some(verdict) = turn.judge(&place, &mut session, now) else {
        return farewell(&place, &mut place.load()?, now);
    };
    session.seen.transcript = told.length;
    if asked.transcript_path.is_some() {
        session.transcript.clone_from(&asked.transcript_path);
    }
    session.seen.answered = answered(&verdict, &told.message);
    Ok(match (verdict, place.save(&session)) {
        // A block that is not counted could go on for ever.
        (_, Err(error)) => Answer::Note(our_fault(&chain(&error))),
        (Verdict::Block { reason, note }, Ok(())) => Answer::Block { reason, note: Some(note) },
        (Verdict::Release { note }, Ok(())) => Answer::Note(note),
    })
}

/// The agent's turn ended with a failure of its provider, about which no stop hook is asked.
pub(super) fn failed(asked: &Asked, id: &SessionId, watchdog: &Watchdog) -> Result<Answer, Problem> {
    let Some(place) = asked.find(id) else { return Ok(Answer::Silence) };
    let _lock = place.lock(|| watchdog.allow(PATIENCE))?;
    let mut session = place.load()?;
    if session.ended.is_some() {
        return Ok(Answer::Silence);
    }
    let message = asked.last_assistant_message.as_deref().unwrap_or_default();
    let trouble = turn::trouble_in_failure(message, asked.error.as_deref().unwrap_or_default());
    session.updated_at = Timestamp::now();
    let verdict = judge::unavailable(&mut session, trouble, message);
    place.save(&session)?;
    Ok(match verdict {
        Verdict::Block { note, .. } | Verdict::Release { note } => Answer::Note(note),
    })
}

/// What the agent and its transcript tell.
struct Told {
    message: String,
    used_tools: bool,
    length: u64,
}

impl Told {
    fn read(asked: &Asked, session: &Session) -> Self {
        let mut transcript = asked.transcript_path.as_deref().and_then(|path| Transcript::open(path).ok());
        let message = asked.last_assistant_message.clone().filter(|message| !message.trim().is_empty());
        let message = message.or_else(|| transcript.as_mut()?.last_message().ok()?).unwrap_or_default();
        let length = transcript.as_ref().map_or(0, |transcript| transcript.length);
        let used_tools = transcript.is_some_and(|mut transcript| {
            transcript.used_tools_since(session.seen.transcript).unwrap_or(false)
        });
        Self { message, used_tools, length }
    }
}

fn answered(verdict: &Verdict, message: &str) -> Option<Answered> {
    match verdict {
        Verdict::Block { reason, .. } => {
            Some(Answered { message: hash(message), at: Timestamp::now(), reason: reason.clone() })
        }
        Verdict::Release { .. } => None,
    }
}

/// A loop that is over says so once, if it was ended from outside.
fn farewell(place: &Place, session: &mut Session, now: Timestamp) -> Result<Answer, Problem> {
    let cancelled =
        session.ended.as_mut().filter(|ended| ended.reason == EndReason::ExplicitStop && session.working);
    let Some(ended) = cancelled else { return Ok(Answer::Silence) };
    ended.at = now;
    let note = format!("wiggum: {}", ended.detail);
    session.working = false;
    place.save(session)?;
    Ok(Answer::Note(note))
}

/// Goes on with the loop of the plugin that runs in this session, if there is one.
fn take_over(
    asked: &Asked,
    id: &SessionId,
    now: Timestamp,
    watchdog: &Watchdog,
) -> Result<Option<Place>, Problem> {
    let workspace = asked.workspace()?;
    let Some(found) = ralph_file::find(&workspace, id)? else {
        return Ok(None);
    };
    let place = Place::new(&workspace, id);
    let rules = Rules::at_start(&found.options, &workspace)?;
    let session = found.session(id, asked.agent(), rules, now);
    // Whoever moves the file has the loop, should two ask at once.
    place.prepare()?;
    found.put_aside(&place)?;
    place.begin(&session, || watchdog.allow(PATIENCE))?;
    Ok(Some(place))
}

fn hash(message: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.hash(&mut hasher);
    hasher.finish()
}

/// Measured: Claude Code overrides the ninth block in a row and ends with an empty result.
const CLAUDE_CAP: u32 = 8;

fn cap(agent: Agent) -> Option<u32> {
    if agent != Agent::Claude {
        return None;
    }
    let told = std::env::var("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP").ok().and_then(|cap| cap.trim().parse().ok());
    Some(told.unwrap_or(CLAUDE_CAP)).filter(|cap| *cap > 0)
}
