//! The loop around one agent in a pane: type the task, wait until the pane is quiet, judge what was
//! said, and type the task again with what is missing.

use std::time::Duration;

use jiff::Timestamp;
use wiggum_core::agents::{Faults, back_at};
use wiggum_core::event::EndReason;
use wiggum_core::state::millis_between;
use wiggum_workspace::beneath;
use wiggum_workspace::paths::write_whole;

use super::roster::{Agent, Roster};
use super::watch::{Watch, Woken};
use super::{DispatchError, screen};
use crate::commands::Task;
use crate::session::judge::{self, Verdict};
use crate::session::progress::Mark;
use crate::session::state::{self, Place, Session, Waiting};
use crate::session::turn::Turn;
use crate::term;

/// Exit code of a `send` that was interrupted, as of `wiggum run`.
pub(crate) const INTERRUPTED: u8 = 130;

/// How a `send` ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ended {
        reason: EndReason,
        detail: String,
    },
    /// Not ended: a person has something to do first.
    Waits {
        detail: String,
    },
    Interrupted,
}

/// How a pane is watched.
pub(crate) struct Manner {
    pub(crate) quiet_after: Duration,
    /// Words on the screen of an agent at work, beside those that are known.
    pub(crate) busy: Vec<String>,
    /// How long an agent that cannot work is waited for.
    pub(crate) patience: wiggum_core::policy::Agents,
}

/// Gives the agent this task, or goes on with the one it has, to the end.
pub(crate) fn send(
    roster: &Roster,
    name: &str,
    task: Option<Task>,
    manner: Manner,
) -> Result<Outcome, DispatchError> {
    let agent = roster.get(name)?;
    let _lock = roster.lock(name)?;
    agent.present()?;
    let place = agent.place()?;
    let session = session(&agent, &place, task)?;
    let mut watch = Watch::new(&agent.pane, &roster.file(name, "pipe"))?;
    (watch.quiet_after, watch.busy) = (manner.quiet_after, manner.busy);
    let patience = Patience { rules: manner.patience, faults: Faults::default() };
    Conversation { agent, place, session, watch, roster, patience }.hold()
}

/// The task of the agent: the one that is under way if it is the same, else a new one.
fn session(agent: &Agent, place: &Place, task: Option<Task>) -> Result<Session, DispatchError> {
    let known = agent.session()?.filter(|session| session.ended.is_none());
    let task = match (known, task) {
        (Some(known), None) => return Ok(known),
        (Some(known), Some(task)) if known.prompt == task.prompt => return Ok(known),
        (None, None) => return Err(DispatchError::NoTask { name: agent.name.clone() }),
        (_, Some(task)) => task,
    };
    let id = agent.session_id()?;
    let mut session = Session::new(&id, state::Agent::Other, &task.prompt, task.rules, Timestamp::now());
    session.working = false;
    session.seen.mark = Some(Mark::of(&agent.workspace));
    place.begin(&session, || {})?;
    Ok(session)
}

/// How often and since when the agent cannot work.
struct Patience {
    rules: wiggum_core::policy::Agents,
    faults: Faults,
}

impl Patience {
    /// Until when the agent is waited for. Not at all where a person is needed, or for longer than
    /// anybody wants to wait.
    fn until(&mut self, waiting: &Waiting, iteration: u32, now: Timestamp) -> Option<Timestamp> {
        let Waiting::Agent { trouble, .. } = waiting else { return None };
        let faults = self.faults.count(trouble, now);
        let since = faults.since().unwrap_or(now);
        let until = back_at(&self.rules, trouble, faults, iteration, now)?;
        (millis_between(since, until) <= self.rules.max_wait.0).then_some(until)
    }

    fn worked(&mut self) {
        self.faults = Faults::default();
    }
}

struct Conversation<'a> {
    agent: Agent,
    place: Place,
    session: Session,
    watch: Watch,
    roster: &'a Roster,
    patience: Patience,
}

impl Conversation<'_> {
    fn hold(mut self) -> Result<Outcome, DispatchError> {
        let mut prompt = judge::opening(&self.session);
        let woken = self.watch.until_ready()?;
        if let Some(outcome) = self.outcome_of(woken)? {
            return Ok(outcome);
        }
        // The agent may have been given its prompt by one of us that was interrupted.
        let mut given = self.session.working;
        loop {
            if !given && let Some(outcome) = self.give(&prompt)? {
                return Ok(outcome);
            }
            given = false;
            let verdict = match self.judge(&prompt)? {
                Ok(verdict) => verdict,
                Err(outcome) => return Ok(outcome),
            };
            match verdict {
                Verdict::Block { reason, note } => {
                    term::note(&format!("{}\n", term::harmless(&note)));
                    prompt = reason;
                }
                Verdict::Release { note } => {
                    let Some(until) = self.patient_until() else { return Ok(self.released(&note)) };
                    if let Some(outcome) = self.wait_out(until)? {
                        return Ok(outcome);
                    }
                }
            }
        }
    }

    fn patient_until(&mut self) -> Option<Timestamp> {
        let waiting = self.session.waiting.as_ref().filter(|_| self.session.ended.is_none())?;
        self.patience.until(waiting, self.session.iteration, Timestamp::now())
    }

    /// Waits for an agent that cannot work; nothing if it may be asked again.
    fn wait_out(&mut self, until: Timestamp) -> Result<Option<Outcome>, DispatchError> {
        if until > Timestamp::now() {
            let why = self.session.waiting.as_ref().map(ToString::to_string).unwrap_or_default();
            term::note(&format!("{} waits until {until:.0} ({})\n", self.agent.name, term::harmless(&why)));
        }
        let place = &self.place;
        let woken = self.watch.until_moment(until, || place.is_cancelled())?;
        if self.place.is_cancelled() {
            return self.cancelled().map(Some);
        }
        if let Some(outcome) = self.outcome_of(woken)? {
            return Ok(Some(outcome));
        }
        let woken = self.watch.until_quiet()?;
        if let Some(outcome) = self.outcome_of(woken)? {
            return Ok(Some(outcome));
        }
        if screen::offers_to_wait(&self.agent.pane.screen()?) {
            self.agent.pane.press_escape()?;
            let woken = self.watch.until_drawn()?;
            return self.outcome_of(woken);
        }
        Ok(None)
    }

    /// Types a prompt and waits until the agent has nothing more to say.
    fn give(&mut self, prompt: &str) -> Result<Option<Outcome>, DispatchError> {
        let pane = &self.agent.pane;
        if self.watch.interrupted()? {
            return Ok(Some(Outcome::Interrupted));
        }
        if screen::asks_for_choice(&pane.screen().unwrap_or_default()) {
            return self.choice().map(Some);
        }
        let before = pane.history().or_else(|error| self.agent.present().and(Err(error)))?;
        let path = self.roster.file(&self.agent.name, "before");
        write_whole(&path, before.as_bytes()).map_err(|source| DispatchError::File { path, source })?;
        pane.paste(&screen::typeable(prompt))?;
        match self.watch.until_drawn()? {
            Woken::Quiet => {}
            woken => return self.outcome_of(woken),
        }
        self.session.working = true;
        self.session.waiting = None;
        self.session.updated_at = Timestamp::now();
        self.place.save(&self.session)?;
        self.agent.pane.press_enter()?;
        self.quiet()
    }

    fn quiet(&mut self) -> Result<Option<Outcome>, DispatchError> {
        let woken = self.watch.until_quiet()?;
        self.outcome_of(woken)
    }

    /// Nothing while the agent is there.
    fn outcome_of(&mut self, woken: Woken) -> Result<Option<Outcome>, DispatchError> {
        if woken == Woken::Interrupted {
            return Ok(Some(Outcome::Interrupted));
        }
        match self.agent.present() {
            Ok(()) if woken == Woken::Closed => {
                Err(DispatchError::Unwatched { name: self.agent.name.clone() })
            }
            Ok(()) => Ok(None),
            Err(error) => {
                if self.place.is_cancelled() {
                    return self.cancelled().map(Some);
                }
                self.session.working = false;
                self.place.save(&self.session)?;
                Err(error)
            }
        }
    }

    /// Judges what was said since the prompt.
    fn judge(&mut self, prompt: &str) -> Result<Result<Verdict, Outcome>, DispatchError> {
        let pane = &self.agent.pane;
        let path = self.roster.file(&self.agent.name, "before");
        let before = beneath::text_of(&path).unwrap_or_default();
        let said = screen::said_since(&before, &pane.history()?, &screen::typeable(prompt));
        let trouble = screen::trouble(&said);
        let screen = pane.screen()?;
        if screen::asks_for_choice(&screen) && !(trouble.is_some() && screen::offers_to_wait(&screen)) {
            return self.choice().map(Err);
        }
        if self.watch.interrupted()? {
            return Ok(Err(Outcome::Interrupted));
        }
        if trouble.is_none() {
            self.patience.worked();
        }
        // Whether it used its tools cannot be seen, so it is believed.
        let turn = Turn { message: &said, trouble, used_tools: true, waits: false, cap: None };
        let _lock = self.place.lock(|| {})?;
        let Some(verdict) = turn.judge(&self.place, &mut self.session, Timestamp::now()) else {
            return self.cancelled().map(Err);
        };
        if matches!(verdict, Verdict::Block { .. }) {
            // Until the next prompt is typed.
            self.session.working = false;
        }
        self.place.save(&self.session)?;
        Ok(Ok(verdict))
    }

    fn released(&self, note: &str) -> Outcome {
        match &self.session.ended {
            Some(ended) => Outcome::Ended { reason: ended.reason, detail: ended.detail.clone() },
            None => Outcome::Waits { detail: note.trim_start_matches("wiggum: ").to_owned() },
        }
    }

    fn choice(&mut self) -> Result<Outcome, DispatchError> {
        self.session.working = false;
        self.place.save(&self.session)?;
        Ok(Outcome::Waits { detail: "the program waits for a choice, which is yours to make".to_owned() })
    }

    /// Somebody else ended the loop.
    fn cancelled(&mut self) -> Result<Outcome, DispatchError> {
        self.session = self.place.load()?;
        self.session.working = false;
        self.place.save(&self.session)?;
        Ok(self.released(""))
    }
}
