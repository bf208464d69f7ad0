//! The built-in coding agent: works on a task through tools, with any model that can be reached over
//! an API.
//!
//! It runs as a process of its own, as every agent does (`wiggum api-agent`), and prints the stream
//! that its driver in `wiggum-agents` reads. Inside, what can be told without a network is kept apart
//! from it: [`provider`](Provider) says where and how, `protocol` makes requests and answers of JSON,
//! `conversation` keeps what was said within the model's context, `tools` does what the model asks for,
//! `client` alone talks to the network, `session` keeps what was said, and `work` joins them.
//!
//! There is deliberately no retry in here and no choice of models. What it may use it is told, and it
//! ends in order before a call that would go beyond.

mod answer;
mod budget;
mod client;
mod conversation;
mod protocol;
mod provider;
mod session;
mod sse;
mod tools;
mod work;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use wiggum_agents::api::Line;
use wiggum_core::event::Trouble;

pub use client::Timeouts;
pub use provider::{Key, Protocol, Provider};
pub use session::{Begins, Session};
pub use wiggum_core::budget::Ceiling;
pub use wiggum_core::price::{PriceError, Prices};

use client::{Client, Fault};
use session::Record;
use tools::Place;
use work::Worker;

/// How many answers of the model one start may take.
pub const USUAL_TURNS: u32 = 200;

/// Whom to ask, and with what.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub provider: Provider,
    /// The provider's own if missing.
    pub base_url: Option<String>,
    pub model: String,
    pub key: Key,
    /// Tokens that fit into the model's context; the provider's usual if missing.
    pub context_window: Option<u64>,
    pub max_turns: u32,
    /// Without them nothing is said about cost.
    pub prices: Option<Prices>,
    /// The most that this start may use. Cost is bounded only where there are prices.
    pub ceiling: Ceiling,
    /// What is said is kept here, if anywhere.
    pub session: Option<Session>,
    pub timeouts: Timeouts,
}

/// Works on what the prompt asks for and prints the stream of it. Says whether it succeeded; an error
/// is that nobody reads the stream.
pub fn run(settings: &Settings, workspace: &Path, prompt: &str, out: &mut dyn Write) -> io::Result<bool> {
    let end = match prepare(settings, workspace) {
        Ok((client, place, before)) => Worker::new(settings, client, place, prompt, before, out).work()?,
        Err(fault) => Err(fault),
    };
    let success = end.is_ok();
    let line = match end {
        Ok(message) => Line::Finished { message },
        Err(Fault { trouble, message }) => Line::Failed { trouble, message },
    };
    work::print(out, &line)?;
    Ok(success)
}

fn prepare(settings: &Settings, workspace: &Path) -> Result<(Client, Place, Option<Record>), Fault> {
    let key = match &settings.key {
        Key::NotNeeded => None,
        Key::Found { value, .. } => Some(value.as_str()),
        Key::Missing { variable } => {
            let message =
                format!("{variable} is not set; it should hold the key of {}", settings.provider.name());
            return Err(Fault { trouble: Trouble::Authentication, message });
        }
    };
    let base_url = settings.base_url.as_deref().or(settings.provider.base_url());
    let Some(base_url) = base_url.filter(|url| url.starts_with("http://") || url.starts_with("https://"))
    else {
        let message =
            format!("{} needs a base URL that begins with https:// or http://", settings.provider.name());
        return Err(Fault { trouble: Trouble::Authentication, message });
    };
    let place = Place::new(workspace, withheld(settings)).map_err(|error| Fault {
        trouble: Trouble::Other,
        message: format!("cannot work in {}: {error}", workspace.display()),
    })?;
    Ok((Client::new(settings.provider, base_url, key, settings.timeouts), place, before(settings)?))
}

/// What was said before, if the session is one to go on with.
fn before(settings: &Settings) -> Result<Option<Record>, Fault> {
    let continued = settings.session.as_ref().filter(|session| session.begins == Begins::WhereItWas);
    let Some(session) = continued else { return Ok(None) };
    let lost = || Fault {
        trouble: Trouble::SessionLost,
        message: format!("there is no session {} to go on with", session.id),
    };
    session.load(settings.provider.protocol()).map(Some).ok_or_else(lost)
}

/// Variables with keys that commands of the model do not get.
fn withheld(settings: &Settings) -> Vec<OsString> {
    let own = match &settings.key {
        Key::Found { variable, .. } | Key::Missing { variable } => Some(variable.as_str()),
        Key::NotNeeded => None,
    };
    own.into_iter().chain(settings.provider.key_variables().iter().copied()).map(Into::into).collect()
}
