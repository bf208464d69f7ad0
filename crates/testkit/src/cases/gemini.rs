//! Gemini CLI. Slow to start, so few cases are looked at often.

use rustix::process::Signal;
use serde_json::json;

use crate::agents::Agent;
use crate::case::{Case, Moment};
use crate::scenario::{Cut, HttpError, Scenario, Turn, Usage};

const PLAIN: [&str; 6] = ["-p", "write hello", "-m", "gemini-2.5-pro", "-o", "stream-json"];

pub(super) fn cases() -> Vec<Case> {
    let usage = Usage { cache_read: 800, ..Usage::default() };
    let shell = |command: &str| {
        Turn::calls("run_shell_command", json!({"command": command, "description": "a step"}))
    };
    let first =
        Turn { text: "I will write the file.".to_owned(), ..shell("printf 'hello\\n' > hello.txt; ls") };
    let fails = |status: u16, kind: &str, message: &str| {
        [Turn::fails(HttpError::new(status, message).kind(kind)).forever()]
    };
    vec![
        case("success", Scenario::from([first, done()]).usage(usage)),
        case("wrong_key", fails(403, "PERMISSION_DENIED", "API key not valid.")),
        case("bad_request", fails(400, "INVALID_ARGUMENT", "contents: not like this")).unsteady(),
        case("permission_denied", [shell("touch a.txt"), done()]).with_arguments(&PLAIN).unsteady(),
        case("truncated_stream", [Turn::says("half an answer").cut(Cut::End).forever()]).unsteady(),
        case("interrupted_in_call", [Turn::says("never").hangs()])
            .signalled(Moment::Asked(1), Signal::INT)
            .unsteady(),
    ]
}

fn case(name: &'static str, scenario: impl Into<Scenario>) -> Case {
    let arguments = [&PLAIN[..], &["--yolo"]].concat();
    Case::new(Agent::Gemini, name, scenario).with_arguments(&arguments)
}

fn done() -> Turn {
    Turn::says("Done.\n\n<promise>DONE</promise>")
}
