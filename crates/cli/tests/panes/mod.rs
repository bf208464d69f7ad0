//! A sandbox with a tmux server of its own in it.
#![allow(dead_code, reason = "each test file uses its part of this")]

use std::path::Path;

use serde_json::Value;

use crate::support::{Run, Sandbox, Started};

/// Every prompt of ours ends with this line.
const END: &str = "\n<promise>DONE</promise>\n";

/// Hears prompts until its terminal is closed; `$n` is the number of the one to answer.
pub(crate) const LISTEN: &str = r#"
n=0
heard="$SANDBOX/heard-${AGENT:-a}"
hear() {
  while :; do
    IFS= read -r line || exit 0
    printf '%s\n' "$line" >> "$heard"
    [ "$line" = '<promise>DONE</promise>' ] && break
  done
  n=$((n + 1))
}
promise() { printf '\n<promise>DONE</promise>\n'; }
echo 'an agent'
while :; do
  printf '> '
  hear
"#;

pub(crate) struct Stage {
    pub(crate) sandbox: Sandbox,
}

impl Stage {
    #[expect(clippy::print_stderr, reason = "what is skipped must be seen")]
    pub(crate) fn new() -> Option<Self> {
        let sandbox = Sandbox::new();
        if sandbox.command("tmux").arg("-V").output().is_err() {
            eprintln!("SKIPPED: tmux is not installed (`cargo xtask test` does that): `wiggum dispatch`");
            return None;
        }
        Some(Self { sandbox })
    }

    /// With an agent `a` that answers every prompt in this way.
    pub(crate) fn with(answer: &str) -> Option<Self> {
        let stage = Self::new()?;
        stage.start("a", answer);
        Some(stage)
    }

    pub(crate) fn start(&self, name: &str, answer: &str) {
        let script = format!("AGENT={name}\n{LISTEN}\n{answer}\ndone");
        let command = self.sandbox.agent_named(name, &script);
        self.start_command(name, &command).exits(0).says(&format!("{name} is there"));
    }

    pub(crate) fn start_command(&self, name: &str, command: &str) -> Run {
        self.start_with(name, &["--command", command])
    }

    pub(crate) fn start_with(&self, name: &str, more: &[&str]) -> Run {
        let socket = self.sandbox.base().join("tmux");
        let start = ["start", name, "--socket", socket.to_str().unwrap()];
        self.dispatch(&[&start, more].concat())
    }

    pub(crate) fn dispatch(&self, args: &[&str]) -> Run {
        self.launch(&self.sandbox.root, args).outcome_only()
    }

    pub(crate) fn launch(&self, directory: &Path, args: &[&str]) -> Started<'_> {
        let all: Vec<&str> = ["dispatch"].into_iter().chain(args.iter().copied()).collect();
        self.sandbox.launch(directory, &all)
    }

    pub(crate) fn sending(&self, name: &str, args: &[&str]) -> Started<'_> {
        let all: Vec<&str> = ["send", name].into_iter().chain(args.iter().copied()).collect();
        self.launch(&self.sandbox.root, &[&all[..], &["--quiet-after", "1s"]].concat())
    }

    pub(crate) fn send(&self, name: &str, args: &[&str]) -> Run {
        self.sending(name, args).outcome_only()
    }

    /// The prompts that an agent was given.
    pub(crate) fn heard(&self, name: &str) -> Vec<String> {
        let all = self.sandbox.note(&format!("heard-{name}"));
        all.split_inclusive(END).map(str::to_owned).collect()
    }

    /// All that stands in the panes, for a person who looks into a failure.
    pub(crate) fn screen(&self) -> String {
        let socket = self.sandbox.base().join("tmux");
        let mut tmux = self.sandbox.command("tmux");
        let output = tmux.arg("-S").arg(socket).args(["capture-pane", "-p", "-S", "-"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn end_tmux(&self) {
        let socket = self.sandbox.base().join("tmux");
        // There may be none to end.
        drop(self.sandbox.command("tmux").arg("-S").arg(socket).arg("kill-server").output());
    }

    pub(crate) fn list(&self) -> Vec<Value> {
        let run = self.dispatch(&["list", "--json"]).exits(0);
        serde_json::from_str::<Vec<Value>>(&run.stdout).unwrap()
    }

    pub(crate) fn session(&self, name: &str) -> Value {
        let sessions = self.sandbox.state_root().of_path("sessions", &self.sandbox.root);
        serde_json::from_slice(&std::fs::read(sessions.join(format!("{name}.json"))).unwrap()).unwrap()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.end_tmux();
        if !std::thread::panicking() {
            return wait_until(|| self.sandbox.processes().is_empty());
        }
        for process in self.sandbox.processes() {
            let pid = process.trim_start_matches("/proc/").split(' ').next().unwrap_or_default();
            drop(self.sandbox.command("kill").args(["-KILL", pid]).output());
        }
    }
}

#[track_caller]
pub(crate) fn wait_until(so: impl Fn() -> bool) {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !so() {
        assert!(std::time::Instant::now() < until, "this should have come true");
        std::thread::yield_now();
    }
}
