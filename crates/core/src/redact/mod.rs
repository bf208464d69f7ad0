//! Keeps secrets out of what is stored and shown: known values are replaced wherever they appear in a
//! stream, also where it is cut into portions and also in the usual encodings ([`Secrets`], [`Redactor`]);
//! private keys are known by their frame; and in texts that are shown or recorded, what looks like a secret
//! is replaced as well ([`text`], [`params`]).
//!
//! Not here: values that an agent scrambles on purpose. Whoever can compute can write a secret in a way that
//! nobody recognizes; what an agent must not tell, it must not get.

mod disguise;
mod encode;
mod event;
mod known;
mod names;
mod pem;
mod shown;
mod view;

pub use event::event;
pub use known::{Redactor, Secrets};
pub use names::{is_proxy_name, is_secret_key, is_secret_name, is_secret_variable};
pub use shown::{is_redacted, is_same_work, json, params, task, text, work};

/// What is shown in place of a secret.
pub const REDACTED: &str = "[redacted]";
