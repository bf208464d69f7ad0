//! Sourcegraph's Amp, whose stream is Claude Code's by its own description.

use crate::claude::ClaudeStream;
use crate::family::{Cli, Profile, Start, Traces, words};
use crate::json::JsonLines;
use crate::{Abilities, AgentSpec, Assignment, Session, StreamParser};

pub(crate) const PROFILE: Profile = Profile {
    program: "amp",
    start,
    parser,
    abilities: Abilities {
        live: true,
        calls: true,
        usage: true,
        usage_live: true,
        cost: false,
        model: true,
        bounds_cost: false,
        bounds_tokens: false,
        nudge: false,
        resume: true,
        sandbox: false,
        mcp: false,
    },
    own_paths: &["~/.config/amp", "~/.local/share/amp", "~/.cache/amp"],
    path_variables: &[],
    secrets: &["AMP_*"],
    login: Traces {
        variables: &["AMP_API_KEY"],
        dir_variable: None,
        dir: ".local/share/amp",
        files: &["secrets.json"],
        elsewhere: false,
        hint: "run `amp login`, or set AMP_API_KEY",
    },
};

fn start(spec: &AgentSpec, assignment: &Assignment<'_>) -> Start {
    let mut arguments = match assignment.session {
        Session::Continued(id) => words(&["threads", "continue", id]),
        Session::Fresh | Session::Named(_) => Vec::new(),
    };
    arguments.extend(words(&["--execute", "--stream-json"]));
    if !spec.says(&["--dangerously-allow-all"]) {
        arguments.push("--dangerously-allow-all".to_owned());
    }
    // It chooses the model itself; what people can choose is a mode.
    if let Some(mode) = &spec.model {
        arguments.extend(words(&["--mode", mode]));
    }
    arguments.extend(spec.args.iter().cloned());
    let env = vec![("AMP_SKIP_UPDATE_CHECK", "1")];
    Start { arguments, stdin: Some(assignment.prompt.to_owned()), env }
}

fn parser(cli: &Cli) -> Box<dyn StreamParser> {
    Box::new(JsonLines::new(ClaudeStream::default(), &cli.spec))
}
