//! What the monitor does for one loop, within bounds that outlive it: a file beside the journal says what
//! was done already, so that a monitor that is started every minute does no more than one that stays.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use wiggum_core::event::Request;
use wiggum_core::health::{MONITOR, NUDGE};
use wiggum_engine::wake;
use wiggum_store::LoopRecord;
use wiggum_workspace::beneath;
use wiggum_workspace::paths::{ProcessLock, write_whole};

use crate::commands::health::LoopHealth;
use crate::commands::loops::Loops;
use crate::failure::Failure;
use crate::started;

const FILE: &str = "monitor.json";
const LOCK: &str = "monitor.lock";

/// Restarts that lead to no finished iteration before it is left to a person.
const MOST_RESTARTS: u32 = 5;
/// The pause after the first such restart, in seconds; doubles with each.
const PAUSE: i64 = 5;

/// What was done for a loop so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Done {
    /// The stuck phase, by its beginning, for which the agent was nudged.
    nudged_for: Option<Timestamp>,
    restarts: u32,
    restarted_at: Option<Timestamp>,
    /// The last iteration that had ended at the last restart.
    ended: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Restart {
    Now,
    Later,
    /// It was tried often enough.
    Never,
}

/// What a person should know.
pub(super) fn alert(seen: &LoopHealth) -> Option<String> {
    if seen.died {
        return Some("its engine died: `wiggum run` goes on, or `wiggum monitor --restart`".to_owned());
    }
    let health = seen.health.as_ref();
    if let Some(health) = health.filter(|health| matches!(health.health.as_str(), "stuck" | "failing")) {
        return Some(health.detail.clone());
    }
    if let Some(why) = seen.breaker.why.as_ref().filter(|_| seen.breaker.state == "open") {
        return Some(format!("the circuit breaker is open: {why}"));
    }
    let question = seen.questions.first()?;
    Some(format!("a person is needed: {question}"))
}

/// Does what has to be done, and says what it was.
pub(super) fn care(
    loops: &mut Loops,
    record: &LoopRecord,
    seen: &LoopHealth,
    restart: bool,
    now: Timestamp,
) -> Result<Option<String>, Failure> {
    let stuck = seen.health.as_ref().filter(|health| matches!(health.health.as_str(), "stuck" | "failing"));
    if stuck.is_none() && !(seen.died && restart) {
        return Ok(None);
    }
    let place = loops.dir.loop_dir(record.id);
    let failed = |error| Failure::other(format!("cannot write in {}: {error}", place.display()));
    // Two monitors at once do the work of one.
    let Some(_alone) = ProcessLock::try_acquire(&place.join(LOCK)).map_err(failed)? else { return Ok(None) };
    let text = beneath::text_of(&place.join(FILE)).unwrap_or_default();
    let mut done: Done = serde_json::from_str(&text).unwrap_or_default();
    let did = match stuck {
        Some(health) if done.nudged_for == Some(health.since) => None,
        Some(health) => {
            done.nudged_for = Some(health.since);
            nudge(loops, record, now)?
        }
        None => start_again(loops, record, &mut done, now)?,
    };
    let text = serde_json::to_string(&done).unwrap_or_default();
    write_whole(&place.join(FILE), text.as_bytes()).map_err(failed)?;
    Ok(did)
}

fn nudge(loops: &mut Loops, record: &LoopRecord, now: Timestamp) -> Result<Option<String>, Failure> {
    loops.store.post(record.id, &Request::Nudge { text: NUDGE.to_owned() }, MONITOR, now)?;
    wake::wake(&loops.dir, record.id)
        .map_err(|error| Failure::other(format!("cannot wake the loop: {error}")))?;
    Ok(Some("nudged its agent".to_owned()))
}

fn start_again(
    loops: &Loops,
    record: &LoopRecord,
    done: &mut Done,
    now: Timestamp,
) -> Result<Option<String>, Failure> {
    // Somebody may have been quicker since it was looked at.
    if loops.lease(record.id)?.alive().is_some() {
        return Ok(None);
    }
    let ended = loops.status(record)?.iterations.last().map_or(0, |last| last.iteration);
    if ended != done.ended {
        *done = Done { ended, nudged_for: done.nudged_for, ..Done::default() };
    }
    match may_restart(done, now) {
        Restart::Later => Ok(None),
        Restart::Never => {
            let log = loops.dir.loop_dir(record.id).join("restarted.log");
            Ok(Some(format!("given up after {MOST_RESTARTS} restarts: see {}", log.display())))
        }
        Restart::Now => {
            let pid = started::again(&loops.dir, record.id, &record.identity)
                .map_err(|error| Failure::other(format!("cannot start the loop again: {error}")))?;
            done.restarts += 1;
            done.restarted_at = Some(now);
            Ok(Some(format!("started again as process {pid}")))
        }
    }
}

fn may_restart(done: &Done, now: Timestamp) -> Restart {
    let Some(last) = done.restarted_at else { return Restart::Now };
    if done.restarts >= MOST_RESTARTS {
        return Restart::Never;
    }
    let pause = PAUSE << done.restarts.saturating_sub(1).min(10);
    if now.as_second() - last.as_second() >= pause { Restart::Now } else { Restart::Later }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_come_slower_and_slower_and_end() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let done = |restarts| Done { restarts, restarted_at: Some(at(0)), ..Done::default() };
        assert_eq!(may_restart(&Done::default(), at(0)), Restart::Now);
        for (restarts, pause) in [(1, 5), (2, 10), (3, 20), (4, 40)] {
            assert_eq!(may_restart(&done(restarts), at(pause - 1)), Restart::Later);
            assert_eq!(may_restart(&done(restarts), at(pause)), Restart::Now);
        }
        assert_eq!(may_restart(&done(5), at(1_000_000)), Restart::Never);
    }
}
