//! GitHub Copilot.

use rustix::process::Signal;
use serde_json::json;

use crate::agents::Agent;
use crate::case::{Case, Moment};
use crate::scenario::{Cut, HttpError, Scenario, Turn, Usage};

const PLAIN: [&str; 4] = ["-p", "write hello", "--output-format", "json"];

pub(super) fn cases() -> Vec<Case> {
    let usage = Usage { cache_read: 800, ..Usage::default() };
    let bash = |command: &str| Turn::calls("bash", json!({"command": command, "description": "a step"}));
    let fails = |status: u16, message: &str| [Turn::fails(HttpError::new(status, message)).forever()];
    let first =
        Turn { text: "I will write the file.".to_owned(), ..bash("printf 'hello\\n' > hello.txt; ls") };
    vec![
        case("success", Scenario::from([first, done()]).usage(usage)),
        case("permission_denied", [bash("touch a.txt"), done()]).with_arguments(&PLAIN),
        case("wrong_key", fails(401, "Incorrect API key provided")),
        case("bad_request", fails(400, "messages: not like this")),
        case("truncated_stream", [Turn::says("half an answer").cut(Cut::End).forever()]),
        case("dropped_once", [Turn::says(&"word ".repeat(200)).cut(Cut::Middle), done()]),
        case("interrupted_in_call", [Turn::says("never").hangs()])
            .signalled(Moment::Asked(1), Signal::INT)
            .unsteady(),
        // It tries again by itself for a minute.
        case("rate_limited", fails(429, "slow down")).unsteady(),
    ]
}

fn case(name: &'static str, scenario: impl Into<Scenario>) -> Case {
    let arguments = [&PLAIN[..], &["--allow-all-tools"]].concat();
    Case::new(Agent::Copilot, name, scenario).with_arguments(&arguments)
}

fn done() -> Turn {
    Turn::says("Done.\n\n<promise>DONE</promise>")
}
