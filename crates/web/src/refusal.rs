//! Why a request came to nothing, as a status and words for whoever made it.

use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use wiggum_engine::EngineError;
use wiggum_engine::backlog_file::BacklogError;
use wiggum_engine::desk::DeskError;
use wiggum_engine::error::chain;
use wiggum_store::StoreError;

/// What failed, on what, and what to do about it.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub status: StatusCode,
    pub told: Told,
}

/// What a client is told of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Told {
    pub error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, told: Told { error: error.into(), hint: None } }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.told.hint = Some(hint.into());
        self
    }

    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, what)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.told.error)
    }
}

impl std::error::Error for Refusal {}

impl From<DeskError> for Refusal {
    fn from(error: DeskError) -> Self {
        let status = match &error {
            DeskError::NoLoops
            | DeskError::UnknownLoop { .. }
            | DeskError::UnknownTask { .. }
            | DeskError::NotOpen { .. } => StatusCode::NOT_FOUND,
            DeskError::AmbiguousLoop { .. }
            | DeskError::SeveralRun { .. }
            | DeskError::SeveralAsk { .. }
            | DeskError::NotRunning { .. }
            | DeskError::AtWork { .. }
            | DeskError::Answered { .. }
            | DeskError::AnswerWaits { .. }
            | DeskError::Refused { .. } => StatusCode::CONFLICT,
            DeskError::NoQuestionId { .. }
            | DeskError::EmptyAnswer
            | DeskError::NoOption { .. }
            | DeskError::NoWords { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            DeskError::Backlog(BacklogError::Edit(_) | BacklogError::Problems(_)) => StatusCode::CONFLICT,
            DeskError::Wake { .. }
            | DeskError::Prepare { .. }
            | DeskError::Checkout(_)
            | DeskError::Store(_)
            | DeskError::Engine(_)
            | DeskError::Backlog(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let told = Told { error: chain(&error), hint: error.hint() };
        Self { status, told }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        DeskError::from(error).into()
    }
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        DeskError::from(error).into()
    }
}
