//! Tools that tasks may call, as far as a loop needs them: they are got ready, and called once.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

/// A call as a task asks for it, with the results of earlier ones put in.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    pub server: String,
    pub tool: String,
    pub params: Value,
}

/// Where tools are found. Used from several threads, none of which is the loop's own.
pub trait Tools: Send + Sync {
    /// Finds the tool and checks the parameters; nothing has been sent to it yet. Every process that is
    /// started for it carries the marker, a variable and its value.
    fn prepare(&self, call: &ToolCall, marker: &(String, String)) -> Result<Box<dyn Ready>, NotReady>;
}

/// Why a call cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotReady {
    /// It may be possible a little later: a server does not answer.
    Temporary { message: String },
    /// It is not possible before somebody changes the task or the configuration: there is no such server
    /// or tool, or the parameters do not fit.
    Permanent { message: String },
}

/// A call that can be made.
pub trait Ready: Send {
    /// Is making it twice the same as making it once?
    fn is_repeatable(&self) -> bool;

    fn call(self: Box<Self>, cancel: &Cancel) -> CallOutcome;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    Done {
        result: String,
    },
    /// It did not happen, or the tool says that it failed.
    Refused {
        message: String,
    },
    /// It did not happen, and will not however often it is tried, until somebody changes something.
    Impossible {
        message: String,
    },
    /// No answer came, so nobody knows.
    Uncertain {
        message: String,
    },
}

/// A wish that a call comes to its end, and those who are to hear of it.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Mutex<Wish>>);

#[derive(Default)]
struct Wish {
    made: bool,
    hear: Vec<Box<dyn FnOnce() + Send>>,
}

impl Cancel {
    pub fn cancel(&self) {
        let hear = {
            let mut wish = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            wish.made = true;
            std::mem::take(&mut wish.hear)
        };
        hear.into_iter().for_each(|hear| hear());
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).made
    }

    /// Does this once the wish is made, which may be at once.
    pub fn then(&self, hear: impl FnOnce() + Send + 'static) {
        let mut wish = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if wish.made {
            drop(wish);
            hear();
        } else {
            wish.hear.push(Box::new(hear));
        }
    }
}
