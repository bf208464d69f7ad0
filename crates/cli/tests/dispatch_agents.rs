//! `wiggum dispatch` with a real agent in its interactive mode, in a real tmux, against a scripted
//! model on loopback. Where either is not installed (`cargo xtask test` does that), that is said.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod panes;
mod support;

use std::fs;

use panes::Stage;
use serde_json::json;
use wiggum_testkit::agents::{self, Agent};
use wiggum_testkit::{HttpError, Scenario, StubModel, Turn, When};

/// A stage on which this agent talks to a model that plays these turns.
fn stage(agent: Agent, turns: impl Into<Scenario>) -> Option<(Stage, StubModel)> {
    let mut stage = Stage::new()?;
    agent.program_or_skip("`wiggum dispatch` with it")?;
    let stub = StubModel::start(turns).unwrap();
    let home = stage.sandbox.base().join("home");
    for (name, value) in agent.environment(&home, &stub.base_url()).unwrap() {
        stage.sandbox.env(&name, &value);
    }
    stage.sandbox.env("PATH", agents::search_path().to_str().unwrap());
    Some((stage, stub))
}

/// Past Claude Code's questions for new users, except about the directory.
fn settle_claude(stage: &Stage, trusted: bool) {
    let config = stage.sandbox.base().join("home/.claude");
    fs::create_dir_all(&config).unwrap();
    let project = json!({"hasTrustDialogAccepted": trusted, "hasCompletedProjectOnboarding": true});
    let settings = json!({
        "theme": "dark",
        "hasCompletedOnboarding": true,
        "customApiKeyResponses": {"approved": ["sk-ant-stub"], "rejected": []},
        "projects": {stage.sandbox.root.to_str().unwrap(): project},
    });
    fs::write(config.join(".claude.json"), settings.to_string()).unwrap();
    let skip = json!({"skipDangerousModePermissionPrompt": true});
    fs::write(config.join("settings.json"), skip.to_string()).unwrap();
}

/// Past Codex's question about the directory, and its advertisement of another model.
fn settle_codex(stage: &Stage) {
    let path = stage.sandbox.base().join("home/.codex/config.toml");
    let project = format!("\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n", stage.sandbox.root.display());
    let notice = "\n[notice.model_migrations]\n\"gpt-5.5\" = \"gpt-6-sol\"\n";
    fs::write(&path, fs::read_to_string(&path).unwrap() + &project + notice).unwrap();
}

fn done() -> Turn {
    Turn::says("It is written.\n\n<promise>DONE</promise>")
}

const WRITE: &str = "echo hello | tee hello.txt";

/// Says that it is done too early, is sent back, and then does it. Agents ask their model other
/// things in between, which take none of these turns.
fn turns(write: Turn) -> [Turn; 3] {
    let when = |said: &str| Some(When::Last(said.to_owned()));
    [
        Turn { when: when("This is iteration 1/4"), ..done() },
        Turn { when: when("The task is not done"), ..write },
        // Thinks for longer than a pane that only blinks is waited for.
        Turn { when: Some(When::ToolResult("hello".to_owned())), delay: 6.0, ..done() },
    ]
}

#[track_caller]
fn is_prompted_again(stage: &Stage, stub: &StubModel, command: &str) {
    stage.start_command("c", command).exits(0);
    let args = ["write hello.txt", "--verify", "test -s hello.txt", "--max-iterations", "4"];
    let run = stage.send("c", &args);
    let screen = stage.screen();
    assert!(run.stdout.contains("done after 2 iterations"), "{run:#?}\n{screen}");
    run.exits(0).says("its check passed");
    let asked = stub.asked();
    let told = asked
        .iter()
        .flat_map(|asked| &asked.request.user)
        .any(|said| said.contains("`test -s hello.txt` failed") && said.contains("\nwrite hello.txt\n"));
    assert!(told, "{asked:#?}");
    // Agents leave helpers behind that no terminal ends.
    stage.dispatch(&["stop", "c"]).exits(0).says("c is stopped");
}

#[test]
fn claude_is_prompted_again_in_its_own_terminal_until_the_check_passes() {
    let write = Turn::calls("Bash", json!({"command": WRITE, "description": "writes it"}));
    let Some((stage, stub)) = stage(Agent::Claude, turns(write)) else { return };
    settle_claude(&stage, true);
    is_prompted_again(&stage, &stub, "claude --dangerously-skip-permissions");
}

#[test]
fn codex_is_prompted_again_in_its_own_terminal_until_the_check_passes() {
    let write = Turn::calls("exec_command", json!({"cmd": WRITE}));
    let Some((stage, stub)) = stage(Agent::Codex, turns(write)) else { return };
    settle_codex(&stage);
    is_prompted_again(&stage, &stub, "codex --dangerously-bypass-approvals-and-sandbox");
}

#[test]
fn the_limit_of_a_subscription_is_waited_out_in_the_terminal_of_claude() {
    let limited = HttpError::new(429, "This request would exceed your account's rate limit.")
        .header("anthropic-ratelimit-unified-status", "rejected")
        .header("anthropic-ratelimit-unified-reset", &jiff::Timestamp::now().as_second().to_string())
        .header("anthropic-ratelimit-unified-representative-claim", "five_hour")
        .header("anthropic-ratelimit-unified-overage-status", "rejected")
        .header("x-should-retry", "false");
    let said = |words: &str| Some(When::Last(words.to_owned()));
    let turns = [
        Turn { when: said("This is iteration 1/10"), ..Turn::fails(limited) },
        Turn { when: said("This is iteration 1/10"), ..done() },
    ];
    let Some((mut stage, stub)) = stage(Agent::Claude, turns) else { return };
    stage.sandbox.env("ANTHROPIC_API_KEY", "");
    stage.sandbox.env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-stub");
    settle_claude(&stage, true);
    stage.start_command("c", "claude --dangerously-skip-permissions").exits(0);
    let run = stage.send("c", &["write hello.txt"]);
    let screen = stage.screen();
    assert!(run.stdout.contains("done after 1 iteration"), "{run:#?}\n{screen}");
    assert!(run.stderr.contains("c waits until "), "{run:#?}");
    run.exits(0);
    let given_twice = |said: &String| said.matches("This is iteration 1/10").count() == 2;
    assert!(stub.asked().iter().any(|asked| asked.request.user.iter().any(given_twice)));
}

#[test]
fn nobody_trusts_a_directory_in_place_of_its_owner() {
    let Some((stage, stub)) = stage(Agent::Claude, [done()]) else { return };
    settle_claude(&stage, false);
    stage.start_with("c", &["--agent", "claude"]).exits(0);
    let run = stage.send("c", &["write hello.txt"]);
    let screen = stage.screen();
    assert!(run.stdout.contains("waits for a choice"), "{run:#?}\n{screen}");
    run.exits(6);
    assert!(stub.asked().is_empty());
}
