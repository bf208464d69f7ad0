//! Claude Code.

mod stream;

use std::path::PathBuf;

use crate::json::JsonLines;
use crate::{Abilities, AgentSpec, Assignment, Driver, Invocation, Session, StreamParser};

pub(crate) use stream::ClaudeStream;

/// Flags that say what it may do; with one of them we do not say that it may do everything.
const PERMISSION_FLAGS: [&str; 5] = [
    "--permission-mode",
    "--dangerously-skip-permissions",
    "--permission-prompt-tool",
    "--allowedTools",
    "--allowed-tools",
];

pub(crate) struct Claude {
    spec: AgentSpec,
    root: bool,
}

impl Claude {
    pub(crate) fn new(spec: AgentSpec) -> Self {
        Self { spec, root: is_root() }
    }
}

impl Driver for Claude {
    fn describe(&self) -> String {
        self.spec.describe()
    }

    fn invocation(&self, assignment: &Assignment<'_>) -> Invocation {
        let mut arguments: Vec<String> =
            ["-p", "--output-format", "stream-json", "--verbose"].map(str::to_owned).to_vec();
        if !self.spec.says(&PERMISSION_FLAGS) {
            arguments.push("--dangerously-skip-permissions".to_owned());
        }
        match assignment.session {
            Session::Fresh => {}
            Session::Named(id) => arguments.extend(["--session-id".to_owned(), id.to_owned()]),
            Session::Continued(id) => arguments.extend(["--resume".to_owned(), id.to_owned()]),
        }
        if let Some(model) = &self.spec.model {
            arguments.extend(["--model".to_owned(), model.clone()]);
        }
        arguments.extend(self.spec.args.iter().cloned());
        let mut env = vec![
            // A few seconds of patience; longer waits are ours, where people see and can end them.
            ("CLAUDE_CODE_MAX_RETRIES", "3"),
            // A new version in the middle of a loop would be a surprise.
            ("DISABLE_AUTOUPDATER", "1"),
            // Started from within a session it is still one of its own.
            ("CLAUDECODE", ""),
        ];
        if self.root {
            // Without it, it refuses to skip permissions as root.
            env.push(("IS_SANDBOX", "1"));
        }
        self.spec.invocation(arguments, Some(assignment.prompt), &env)
    }

    fn parser(&self) -> Box<dyn StreamParser> {
        Box::new(JsonLines::new(ClaudeStream::default()))
    }

    fn abilities(&self) -> Abilities {
        Abilities { usage: true, cost: true, nudge: false, resume: true, sandbox: true }
    }

    fn own_paths(&self) -> Vec<PathBuf> {
        ["~/.claude", "~/.claude.json", "~/.cache/claude", "~/.local/share/claude"]
            .map(PathBuf::from)
            .to_vec()
    }

    fn secrets(&self) -> &[&str] {
        &["ANTHROPIC_*", "CLAUDE_*", "AWS_*", "GOOGLE_*", "VERTEX_*", "CLOUD_ML_REGION"]
    }
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}
