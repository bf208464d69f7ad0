//! What is heard of a server beside proper messages: its standard error, what it printed by mistake, how it ended.
//! It explains failures; nothing is decided by it but whether an answer could be read, and whether the tools may have
//! changed.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use wiggum_core::event::Exit;

/// Enough for the end of a traceback.
const KEPT: usize = 4096;
const LINES: usize = 5;
const LINE: usize = 300;

#[derive(Default)]
pub(crate) struct Heard(Mutex<State>);

#[derive(Default)]
struct State {
    stderr: VecDeque<u8>,
    /// The last thing that was no message, or none that was expected.
    odd: Option<String>,
    /// Why the connection was given up.
    fault: Option<String>,
    /// Requests whose answer came and could not be read.
    unreadable: Vec<RequestId>,
    exit: Option<Exit>,
    /// How often the server said that its tools changed.
    changes: u64,
}

impl Heard {
    pub(crate) fn change(&self) {
        self.lock().changes += 1;
    }

    pub(crate) fn changes(&self) -> u64 {
        self.lock().changes
    }

    pub(crate) fn stderr(&self, bytes: &[u8]) {
        let mut state = self.lock();
        state.stderr.extend(&bytes[bytes.len().saturating_sub(KEPT)..]);
        let surplus = state.stderr.len().saturating_sub(KEPT);
        state.stderr.drain(..surplus);
    }

    pub(crate) fn odd(&self, what: String) {
        self.lock().odd = Some(what);
    }

    pub(crate) fn fault(&self, what: String) {
        self.lock().fault.get_or_insert(what);
    }

    pub(crate) fn unreadable(&self, id: RequestId) {
        self.lock().unreadable.push(id);
    }

    pub(crate) fn was_unreadable(&self, id: &RequestId) -> bool {
        self.lock().unreadable.contains(id)
    }

    pub(crate) fn ended(&self, exit: Exit) {
        self.lock().exit = Some(exit);
    }

    /// Why there is no connection any more, as far as it is known.
    pub(crate) fn end(&self) -> String {
        let state = self.lock();
        match (&state.fault, &state.exit) {
            (Some(fault), _) => fault.clone(),
            (None, Some(exit)) => ended_how(exit),
            (None, None) => "closed the connection".to_owned(),
        }
    }

    /// What else was strange, to be put after a problem.
    pub(crate) fn oddity(&self) -> String {
        self.lock().odd.as_ref().map_or_else(String::new, |odd| format!("; {odd}"))
    }

    /// The last lines of its standard error, made fit to be shown.
    pub(crate) fn said(&self) -> Vec<String> {
        let bytes: Vec<u8> = self.lock().stderr.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let lines: Vec<String> =
            text.lines().map(|line| brief(line, LINE)).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(LINES)..].to_vec()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Heard")
    }
}

/// One line of something strange: nothing that could move a cursor, and not too long.
pub(crate) fn brief(text: &str, most: usize) -> String {
    let visible: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let trimmed = visible.trim();
    let mut short: String = trimmed.chars().take(most).collect();
    if short.len() < trimmed.len() {
        short.push('…');
    }
    short
}

fn ended_how(exit: &Exit) -> String {
    match exit {
        Exit::Code { code } => format!("ended with exit code {code}"),
        Exit::Signal { signal } => format!("was ended by signal {signal}"),
        Exit::TimedOut => "was ended at its time limit".to_owned(),
        Exit::NotStarted => "could not be started".to_owned(),
    }
}
