//! Telling people and programs what happens to a loop: desktop, bell, webhooks, chats, a command of one's own.
//!
//! The journal is the outbox. One pure function says what there is to tell of an event; a [`Courier`] reads the
//! journals of a workspace from the place where each receiver is, sends in their order, and moves a place on once its
//! message was taken. So everything is told at least once and in order, whatever is killed in between, and a message has
//! the same id each time.
//!
//! Absent on purpose: any way to change a loop. Answers come in through the other surfaces.

mod courier;
mod http;
mod message;
pub mod page;
mod program;
mod retry;
mod route;
mod send;
mod shapes;
mod sign;
mod target;

pub use courier::{Courier, Sent, deliver};
pub use message::{Kind, Message, trial};
pub use send::{Delivery, Outcome, Sender};
pub use sign::Key;
pub use target::{Address, Secret, Target, Way};

/// The JSON Schema of what a webhook gets.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(shapes::Payload<'static>).to_value()
}
