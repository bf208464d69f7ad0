//! Events, in windows forwards and backwards, in one line each; one of them in full.

use std::io::{self, Write};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wiggum_core::event::{Envelope, Event};
use wiggum_core::ids::Seq;
use wiggum_engine::desk::chronicle::{iteration_of, task_of};
use wiggum_engine::words::describe;

use crate::refusal::Refusal;
use crate::routes::{Nothing, Route};

pub(crate) const PAGE: u32 = 200;
const MOST: u32 = 1000;
/// The longest line; the whole of an event is there for the asking.
const MOST_WORDS: usize = 600;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::look(
            "/loops/{loop}/events",
            "A window of a loop's events: those after one, before one, or the newest",
            |books, names, query: EventsQuery| {
                books.of(&names[0], |loops, record| {
                    let last = loops.store.last_seq(record.id)?;
                    let (after, limit) = query.window(last);
                    let mut events = Vec::new();
                    loops.store.for_some(record.id, after, limit, |envelope| {
                        events.push(EventRow::of(&envelope));
                    })?;
                    Ok(Events { last_seq: last, events })
                })
            },
        ),
        Route::look(
            "/loops/{loop}/events/{seq}",
            "One event as it is in the journal",
            |books, names, _: Nothing| {
                books.of(&names[0], |loops, record| {
                    let unknown = || Refusal::not_found(format!("no event `{}`", names[1]));
                    let seq: Seq = names[1].parse().map_err(|_| unknown())?;
                    let after = seq.checked_sub(1).ok_or_else(unknown)?;
                    // Numbers in the journal are below 2⁶³.
                    i64::try_from(seq).map_err(|_| unknown())?;
                    let found = loops.store.page(record.id, after, 1)?;
                    found.into_iter().find(|envelope| envelope.seq == seq).ok_or_else(unknown)
                })
            },
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// The first ones after the event of this number
    after: Option<u64>,
    /// The last ones before the event of this number
    before: Option<u64>,
    /// At most so many (1000 at most)
    limit: Option<u64>,
}

impl EventsQuery {
    /// After which event to begin, and how many there are at most. Numbers have no gaps.
    fn window(&self, last: Seq) -> (Seq, u32) {
        let limit = self.limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(PAGE).min(MOST);
        let before = self.before.unwrap_or(last + 1).min(last + 1);
        let after = match self.after {
            Some(after) => after.min(last),
            None => before.saturating_sub(1).saturating_sub(u64::from(limit)),
        };
        let room = before.saturating_sub(1).saturating_sub(after);
        (after, limit.min(u32::try_from(room).unwrap_or(limit)))
    }
}

#[derive(Serialize, JsonSchema)]
struct Events {
    /// The newest there is.
    last_seq: u64,
    events: Vec<EventRow>,
}

/// An event in one line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct EventRow {
    pub(crate) seq: u64,
    at: Timestamp,
    #[serde(rename = "type")]
    kind: String,
    words: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iteration: Option<u32>,
}

impl EventRow {
    pub(crate) fn of(envelope: &Envelope) -> Self {
        let mut words = describe(&envelope.event);
        if words.len() > MOST_WORDS {
            words.truncate(words.floor_char_boundary(MOST_WORDS));
            words.push('…');
        }
        Self {
            seq: envelope.seq,
            at: envelope.at,
            kind: kind_of(&envelope.event),
            words,
            task: task_of(&envelope.event).map(ToString::to_string),
            iteration: iteration_of(&envelope.event),
        }
    }
}

/// The event's type, which serde writes first: a backlog of thousands need not be written for it.
fn kind_of(event: &Event) -> String {
    let mut start = Start::default();
    // It refuses more than the beginning.
    drop(serde_json::to_writer(&mut start, event));
    let text = String::from_utf8_lossy(&start.bytes);
    text.strip_prefix(r#"{"type":""#).and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned()
}

/// Takes the beginning of a text, and no more.
#[derive(Default)]
struct Start {
    bytes: Vec<u8>,
}

impl Write for Start {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() > 64 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_go_forwards_and_backwards_and_end_at_the_end() {
        let check = |after, before, limit, expected| {
            assert_eq!(EventsQuery { after, before, limit }.window(100), expected);
        };
        check(None, None, Some(10), (90, 10));
        check(Some(5), None, Some(10), (5, 10));
        check(None, Some(6), Some(10), (0, 5));
        check(None, Some(50), Some(10), (39, 10));
        check(Some(95), None, Some(10), (95, 5));
        check(Some(500), None, None, (100, 0));
        check(Some(10), Some(13), None, (10, 2));
        check(None, Some(0), None, (0, 0));
        check(None, None, Some(u64::MAX), (0, 100));
    }

    #[test]
    fn the_type_of_an_event_is_known_from_its_beginning() {
        let message = "x".repeat(10_000);
        assert_eq!(kind_of(&Event::Noticed { task: None, message }), "noticed");
        assert_eq!(kind_of(&Event::Paused { by: String::new() }), "paused");
    }
}
