//! Why a call came to nothing, for whoever made it to read.

use std::fmt;

use wiggum_engine::EngineError;
use wiggum_engine::desk::DeskError;
use wiggum_engine::error::chain;
use wiggum_store::StoreError;

/// What failed, on what, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub message: String,
    pub hint: Option<String>,
}

impl Refusal {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<DeskError> for Refusal {
    fn from(error: DeskError) -> Self {
        Self { hint: error.hint(), message: chain(&error) }
    }
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Self {
        Self::new(chain(&error))
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self { hint: error.hint().map(str::to_owned), message: chain(&error) }
    }
}
