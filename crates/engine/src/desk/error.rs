//! Why something cannot be done for somebody at the desk.

use std::io;
use std::path::PathBuf;

use jiff::Timestamp;
use wiggum_core::ids::QuestionId;
use wiggum_store::StoreError;

use crate::backlog_file::BacklogError;
use crate::checkout::CheckoutError;
use crate::error::EngineError;

/// How many tasks a message names.
const NAMED: usize = 20;

/// What failed, on what; [`DeskError::hint`] says what to do.
#[derive(Debug, thiserror::Error)]
pub enum DeskError {
    #[error("no loops here yet")]
    NoLoops,
    #[error("no loop `{which}`; there are: {known}")]
    UnknownLoop { which: String, known: String },
    #[error("`{which}` means several loops: {found}")]
    AmbiguousLoop { which: String, found: String },
    #[error("several loops run: {names}")]
    SeveralRun { names: String },
    #[error("cannot {verb} loop {name}: it does not run")]
    NotRunning { verb: String, name: String },
    #[error("no task `{id}`")]
    UnknownTask { id: String, known: Vec<String> },
    #[error("`{id}` is being worked on")]
    AtWork { id: String },
    #[error("`{text}` is not a question's id")]
    NoQuestionId { text: String },
    #[error("{id} is not open")]
    NotOpen { id: QuestionId, open: Vec<String> },
    #[error("{id} is open in several loops")]
    SeveralAsk { id: QuestionId, names: Vec<String> },
    /// Somebody was first, and the loop has gone on with that.
    #[error("{id} was answered by {by} at {at:.0}: {answer}")]
    Answered { id: QuestionId, by: String, at: Timestamp, answer: String },
    /// Somebody was first, and the loop has yet to run.
    #[error("{id} is answered already: {answer} (by {by} at {at:.0})")]
    AnswerWaits { id: QuestionId, by: String, at: Timestamp, answer: String },
    #[error("the answer is empty")]
    EmptyAnswer,
    #[error("{id} has no option {text}")]
    NoOption { id: QuestionId, text: String, how: String },
    #[error("{id} takes no words: no agent would read them")]
    NoWords { id: QuestionId },
    /// In the words of the engine that was asked.
    #[error("{why}")]
    Refused { why: String },
    #[error("cannot wake the loop")]
    Wake { source: io::Error },
    #[error("cannot prepare {path}: {problem}")]
    Prepare { path: PathBuf, problem: String },
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Backlog(#[from] BacklogError),
}

impl DeskError {
    /// What to do about it, where that is not the business of what is underneath.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoLoops => "`wiggum run` starts one".to_owned(),
            Self::AmbiguousLoop { .. } => "give its backlog, or the beginning of its id".to_owned(),
            Self::SeveralRun { .. } => "name one with --loop: its name, its backlog or its id".to_owned(),
            Self::SeveralAsk { names, .. } => format!("name one with --loop: {}", names.join(", ")),
            Self::NotRunning { .. } => {
                "`wiggum status` shows where it stands, `wiggum run` starts it".to_owned()
            }
            Self::UnknownTask { known, .. } => there_are(known),
            Self::AtWork { id } => format!("stop that first: `wiggum skip {id}`"),
            Self::NoQuestionId { .. } => "questions are called q1, q2 …: see `wiggum inbox`".to_owned(),
            Self::NotOpen { open, .. } if open.is_empty() => "no question is".to_owned(),
            Self::NotOpen { open, .. } => format!("open are: {}", open.join(", ")),
            Self::AnswerWaits { .. } => "`wiggum run` takes the answer up".to_owned(),
            Self::NoOption { how, .. } => how.clone(),
            Self::NoWords { .. } => "answer with an option, or with skip, retry, done or abort".to_owned(),
            Self::UnknownLoop { .. }
            | Self::Answered { .. }
            | Self::EmptyAnswer
            | Self::Refused { .. }
            | Self::Wake { .. }
            | Self::Prepare { .. }
            | Self::Checkout(_)
            | Self::Store(_)
            | Self::Engine(_)
            | Self::Backlog(_) => return None,
        })
    }

    /// Is it something that whoever asked can put right?
    pub fn is_usage(&self) -> bool {
        !matches!(
            self,
            Self::Wake { .. }
                | Self::Prepare { .. }
                | Self::Checkout(_)
                | Self::Store(_)
                | Self::Engine(_)
                | Self::Backlog(_)
        )
    }
}

fn there_are(known: &[String]) -> String {
    let mut text = known.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if known.len() > NAMED {
        text.push_str(&format!(" and {} more", known.len() - NAMED));
    }
    format!("there are: {text}")
}
