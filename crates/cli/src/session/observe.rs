//! What a session's transcript tells that no hook does: Codex calls none when its turn fails.

use super::state::{Session, Waiting};
use super::transcript::Transcript;
use super::turn;

/// A session that seems to be at work, but whose last turn has failed, waits. Nothing is stored.
pub(crate) fn observe(session: &mut Session) {
    if session.ended.is_some() || !session.working {
        return;
    }
    let transcript = session.transcript.as_deref().and_then(|path| Transcript::open(path).ok());
    let failure = transcript.and_then(|mut transcript| transcript.failure().ok().flatten());
    if let Some(message) = failure {
        let trouble = turn::trouble_in_failure(&message, "");
        session.wait(Waiting::Agent { trouble, message });
    }
}
