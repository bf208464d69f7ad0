//! One attempt to send one message, whatever way it goes.

use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use wiggum_core::ids::LoopId;

use crate::http::Client;
use crate::message::Message;
use crate::program;
use crate::retry::Again;
use crate::shapes;
use crate::target::{Target, Way};

/// A message on its way to one receiver.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The same however often it is sent, also after a crash: loop, event and receiver.
    pub id: String,
    pub message: Message,
}

impl Delivery {
    pub fn new(loop_id: LoopId, target: &str, message: Message) -> Self {
        Self { id: format!("{loop_id}_{}_{target}", message.seq), message }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Sent,
    /// What was the matter, without secrets.
    Failed {
        problem: String,
        again: Again,
    },
}

impl Outcome {
    pub(crate) fn failed(problem: impl Into<String>, again: Again) -> Self {
        Self::Failed { problem: problem.into(), again }
    }
}

/// What it takes to reach a receiver.
pub struct Sender {
    target: Target,
    client: Client,
    workspace: PathBuf,
}

impl Sender {
    pub fn new(target: Target, workspace: &Path) -> Self {
        let client = Client::for_target(&target);
        Self { target, client, workspace: workspace.to_owned() }
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    pub fn send(&self, delivery: &Delivery, now: Timestamp) -> Outcome {
        let message = &delivery.message;
        let post = match &self.target.way {
            Way::Webhook { to, key } => shapes::webhook(to, key.as_ref(), delivery, now.as_second()),
            Way::Ntfy { to, token } => shapes::ntfy(to, token.as_ref(), message),
            Way::Slack { to } => shapes::slack(to, message),
            Way::Discord { to } => shapes::discord(to, message),
            Way::Telegram { to, token, chat } => shapes::telegram(to, token, chat, message),
            Way::Desktop => return program::desktop(message, &self.workspace, self.target.timeout),
            Way::Bell => return program::bell(),
            Way::Command { program, args } => {
                return program::command(program, args, delivery, &self.workspace, self.target.timeout);
            }
            // Nothing changes about it before the next start, which tries at once.
            Way::Unusable { problem, .. } => {
                return Outcome::failed(problem, Again::After(SignedDuration::from_hours(1)));
            }
        };
        self.client.post(&post, now)
    }
}
