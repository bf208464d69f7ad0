//! The wiggum command.

#![cfg_attr(not(test), expect(dead_code, reason = "the commands that use these modules are not here yet"))]

mod config;
mod detect;
mod init;

fn main() {}
