//! The loop inside sessions of the real agents, which talk to a model that says what it was told to.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use wiggum_testkit::agents::Agent;
use wiggum_testkit::scenario::Scenario;
use wiggum_testkit::{HttpError, Place, StubModel, Turn, When};

/// An agent that is connected to us, in a repository of its own.
struct Connected {
    agent: Agent,
    program: PathBuf,
    place: Place,
    model: StubModel,
    wiggum: PathBuf,
    env: Vec<(String, String)>,
}

impl Connected {
    /// `None` where the agent is not installed, after saying so.
    fn new(agent: Agent, scenario: impl Into<Scenario>) -> Option<Self> {
        let program = agent.program_or_skip("the loop inside its sessions")?;
        let place = Place::new().unwrap();
        // Installed where there is a blank in the path.
        let wiggum = place.home().join("my programs/wiggum");
        fs::create_dir_all(wiggum.parent().unwrap()).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_wiggum"), &wiggum).unwrap();
        let model = StubModel::start(scenario).unwrap();
        let connected = Self { agent, program, place, model, wiggum, env: Vec::new() };
        connected.wiggum(&["install", agent.name()]);
        Some(connected)
    }

    /// Files of the repository that git does not know.
    fn dirt(&self) -> String {
        let git = self.place.command("git".as_ref()).args(["status", "--porcelain"]).output().unwrap();
        String::from_utf8(git.stdout).unwrap()
    }

    fn wiggum(&self, arguments: &[&str]) -> String {
        // The copy is busy for the moment in which another test's new process still has it open.
        let mut tries = (0..1000).map(|_| self.place.command(&self.wiggum).args(arguments).output());
        let is_busy = |error: &io::Error| error.kind() == io::ErrorKind::ExecutableFileBusy;
        let output = tries.find(|tried| !tried.as_ref().is_err_and(is_busy)).unwrap().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn sessions(&self) -> Value {
        serde_json::from_str(&self.wiggum(&["session", "status", "--json"])).unwrap()
    }

    /// How often a model answered in this session, and the tokens it read, by what its transcript tells.
    fn used(&self, session: &Value) -> (u64, u64) {
        let shown = self.wiggum(&["session", "show", "--json", "--session", session.as_str().unwrap()]);
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let models: Vec<&Value> = shown["usage"].as_object().unwrap().values().collect();
        let [one] = models[..] else { panic!("{shown:#}") };
        (one["calls"].as_u64().unwrap(), one["input_tokens"].as_u64().unwrap())
    }

    fn start(&self, prompt: &str, more: &[&str]) -> Child {
        let mut command = self.place.command(&self.program);
        command.envs(self.agent.environment(&self.place.home(), &self.model.base_url()).unwrap());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        match self.agent {
            Agent::Claude => {
                command.args(["-p", prompt, "--output-format", "json", "--dangerously-skip-permissions"])
            }
            _ => command.args([
                "exec",
                "--json",
                "--dangerously-bypass-approvals-and-sandbox",
                "--dangerously-bypass-hook-trust",
                prompt,
            ]),
        };
        command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn run(&self, prompt: &str, more: &[&str]) -> String {
        finished(self.start(prompt, more))
    }

    /// The last words of each request, as the model got them.
    fn asked(&self) -> Vec<String> {
        self.model.asked().iter().map(|asked| asked.request.last().to_owned()).collect()
    }
}

fn finished(child: Child) -> String {
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

fn write_file() -> Turn {
    Turn::calls("Write", json!({ "file_path": "${cwd}/made.txt", "content": "made" }))
}

fn done() -> Turn {
    Turn::says("All there.\n\n<promise>DONE</promise>")
}

/// Done too early, then promised too early, then really done.
fn too_early(write: Turn) -> [Turn; 5] {
    [Turn::says("I think it is done."), done(), write, done(), Turn::says("too far").forever()]
}

const TASK: &str =
    "/ralph-loop \"make it\" --max-iterations 5 --completion-promise DONE --verify \"test -f made.txt\"";

#[track_caller]
fn assert_handed_back(asked: &[String], expected: usize) {
    let handed_back: Vec<&String> =
        asked.iter().filter(|words| words.contains("The task is not done")).collect();
    for (n, words) in handed_back.iter().enumerate() {
        // A request after a tool call repeats the last words.
        assert!(words.contains("make it") && words.contains("Iteration "), "{n}: {words}");
    }
    let mut iterations: Vec<&String> = handed_back.clone();
    iterations.dedup();
    assert_eq!(iterations.len(), expected, "{asked:#?}");
}

#[test]
fn claude_is_sent_back_until_the_check_passes() {
    let Some(claude) = Connected::new(Agent::Claude, too_early(write_file())) else { return };
    let result: Value = serde_json::from_str(&claude.run(TASK, &[])).unwrap();
    assert_eq!(result["result"], "All there.\n\n<promise>DONE</promise>", "{result:#}");
    assert_handed_back(&claude.asked(), 2);
    assert!(claude.asked()[1].contains("`test -f made.txt` failed"), "{}", claude.asked()[1]);
    let sessions = claude.sessions();
    assert_eq!(sessions[0]["session_id"], result["session_id"], "{sessions:#}");
    assert_eq!((&sessions[0]["agent"], &sessions[0]["current_iteration"]), (&json!("claude"), &json!(3)));
    assert_eq!(
        (&sessions[0]["state"], &sessions[0]["termination_reason"]),
        (&json!("READY"), &json!("goal_achieved"))
    );
    let calls = claude.asked().len() as u64;
    assert_eq!(claude.used(&result["session_id"]), (calls, calls * 1200));
    assert!(claude.place.processes().is_empty(), "{:?}", claude.place.processes());
}

#[test]
fn codex_is_sent_back_until_the_check_passes() {
    let write = Turn::calls("exec_command", json!({ "cmd": "echo made > made.txt" }));
    let Some(codex) = Connected::new(Agent::Codex, too_early(write)) else { return };
    let output = codex.run(TASK, &[]);
    assert_handed_back(&codex.asked(), 2);
    assert!(output.contains("turn.completed") && !output.contains("too far"), "{output}");
    let sessions = codex.sessions();
    assert_eq!((&sessions[0]["agent"], &sessions[0]["current_iteration"]), (&json!("codex"), &json!(3)));
    assert_eq!(sessions[0]["termination_reason"], "goal_achieved");
    let calls = codex.asked().len() as u64;
    assert_eq!(codex.used(&sessions[0]["session_id"]), (calls, calls * 1200));
    // What the user has to type in a terminal, where Codex knows no commands of others.
    let told = codex.model.requests().iter().any(|seen| seen.body.to_string().contains("$ralph-loop"));
    assert!(told, "the skill is known");
    assert!(codex.place.processes().is_empty(), "{:?}", codex.place.processes());
}

#[test]
fn codex_that_is_never_done_is_let_go_at_the_limit() {
    let Some(codex) = Connected::new(Agent::Codex, [Turn::says("Still at it.").forever()]) else { return };
    codex.run("$ralph-loop make it --max-iterations 4 --no-progress 0", &[]);
    assert_eq!(codex.asked().len(), 4);
    assert_eq!(codex.sessions()[0]["termination_reason"], "max_iterations");
}

#[test]
fn claude_code_is_let_go_before_it_cuts_us_off() {
    let Some(mut claude) = Connected::new(Agent::Claude, [Turn::says("Still at it.").forever()]) else {
        return;
    };
    let never = "/ralph-loop make it --max-iterations 0 --no-progress 0";
    let result: Value = serde_json::from_str(&claude.run(never, &[])).unwrap();
    assert_eq!(result["result"], "Still at it.", "the cap of Claude Code itself leaves nothing: {result:#}");
    assert_eq!(claude.asked().len(), 9);
    let detail = claude.sessions()[0]["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("8 times in a row"), "{detail}");

    claude.env.push(("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP".to_owned(), "2".to_owned()));
    let result: Value = serde_json::from_str(&claude.run(never, &[])).unwrap();
    assert_eq!(result["result"], "Still at it.", "{result:#}");
    assert_eq!(claude.asked().len(), 9 + 3);
}

#[test]
fn another_session_in_the_same_directory_and_sub_agents_are_not_caught() {
    let agent =
        json!({ "description": "sub", "prompt": "SUBTASK do it", "subagent_type": "general-purpose" });
    let scenario = Scenario::from([
        Turn::says("the sub-agent is not done").when(When::First("SUBTASK".to_owned())).forever(),
        Turn::says("plain answer").when(When::Last("PLAIN".to_owned())),
        Turn::calls("Agent", agent),
        Turn::says("not yet"),
        done(),
    ]);
    let Some(claude) = Connected::new(Agent::Claude, scenario.per_session()) else { return };
    let looped = claude.start("/ralph-loop make it --no-progress 0", &[]);
    let plain: Value = serde_json::from_str(&claude.run("PLAIN question", &[])).unwrap();
    assert_eq!((&plain["result"], &plain["num_turns"]), (&json!("plain answer"), &json!(1)), "{plain:#}");
    let looped: Value = serde_json::from_str(&finished(looped)).unwrap();
    assert_eq!(looped["result"], "All there.\n\n<promise>DONE</promise>", "{looped:#}");
    let sessions = claude.sessions();
    assert_eq!(sessions.as_array().unwrap().len(), 1, "{sessions:#}");
    assert_eq!(sessions[0]["current_iteration"], 2, "{sessions:#}");
    let sub_agent =
        claude.model.asked().iter().filter(|asked| asked.request.user[0].contains("SUBTASK")).count();
    assert_eq!(sub_agent, 1, "the sub-agent stopped once and was let go");
    let (calls, _) = claude.used(&looped["session_id"]);
    assert_eq!(calls, 4, "the sub-agent's call is one of them, and that of the other session is not");
}

#[test]
fn commands_that_only_tell_something_ask_no_model() {
    let Some(claude) = Connected::new(
        Agent::Claude,
        [Turn::calls("Bash", json!({ "command": "true", "description": "x" })).forever()],
    ) else {
        return;
    };
    let first: Value =
        serde_json::from_str(&claude.run("/ralph-loop make it", &["--max-turns", "1"])).unwrap();
    let session = first["session_id"].as_str().unwrap();
    let asked = claude.asked().len();
    let result = |prompt: &str| claude.run(prompt, &["--resume", session]);
    assert!(result("/ralph-status").contains("iteration 1/10"));
    assert!(result("/health-status").contains("healthy"));
    assert!(result("/token-status").contains("1 200"));
    let report = result("/cost-report");
    assert!(report.contains('$') && !report.contains("no price is known"), "{report}");
    assert!(result("/checkpoint").contains("Where it stands (checkpoint 1"));
    assert!(result("/cancel-ralph").contains("cancelled in iteration 1/10"));
    assert!(result("/cancel-ralph").contains("no loop runs in this session"));
    assert!(result("/ralph-loop").contains("there is no task"));
    assert_eq!(claude.asked().len(), asked);
    assert_eq!(claude.sessions()[0]["termination_reason"], "explicit_stop");
}

#[test]
fn the_plugin_is_valid_and_calls_itself_by_both_names() {
    let Some(claude) = Connected::new(Agent::Claude, [done().forever()]) else { return };
    assert_eq!(claude.dirt(), "", "nothing is written into the repository");
    let plugin = claude.place.home().join(".claude/skills/wiggum");
    let mut validate = claude.place.command(&claude.program);
    validate.envs(claude.agent.environment(&claude.place.home(), &claude.model.base_url()).unwrap());
    let output = validate.args(["plugin", "validate", "--strict"]).arg(&plugin).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    for (count, command) in ["/ralph-loop make it", "/wiggum:ralph-loop make it"].into_iter().enumerate() {
        let result: Value = serde_json::from_str(&claude.run(command, &[])).unwrap();
        assert_eq!(result["result"], "All there.\n\n<promise>DONE</promise>", "{result:#}");
        assert_eq!(claude.sessions().as_array().unwrap().len(), count + 1, "{command}");
    }
    // The agent itself is not offered what only people can call.
    let offered = claude.model.requests().iter().any(|seen| seen.body.to_string().contains("cancel-ralph"));
    assert!(!offered);
}

#[test]
fn a_limit_of_claude_code_is_told_by_its_hook() {
    let limited = HttpError::new(429, "This request would exceed your account's rate limit.")
        .header("anthropic-ratelimit-unified-status", "rejected")
        .header("anthropic-ratelimit-unified-reset", "2110086276")
        .header("anthropic-ratelimit-unified-representative-claim", "five_hour")
        .header("x-should-retry", "false");
    let turns = [Turn::says("Not yet."), Turn::fails(limited).forever()];
    let Some(mut claude) = Connected::new(Agent::Claude, turns) else { return };
    claude.env.push(("ANTHROPIC_API_KEY".to_owned(), String::new()));
    claude.env.push(("CLAUDE_CODE_OAUTH_TOKEN".to_owned(), "sk-ant-oat01-stub".to_owned()));
    claude.run("/ralph-loop make it", &[]);
    let sessions = claude.sessions();
    assert_eq!(sessions[0]["state"], "WAITING", "{sessions:#}");
    assert_eq!(sessions[0]["current_iteration"], 2);
    assert_eq!(sessions[0]["waits_until"], "2036-11-12T07:04:00Z");
}

#[test]
fn a_limit_of_codex_is_told_by_its_transcript() {
    let error = json!({ "type": "usage_limit_reached", "message": "The usage limit has been reached",
                        "plan_type": "plus", "resets_at": 2_110_086_276_u64 });
    let limited = HttpError::new(429, "").body(json!({ "error": error }));
    let Some(codex) = Connected::new(Agent::Codex, [Turn::fails(limited).forever()]) else { return };
    codex.run("/ralph-loop make it", &[]);
    let sessions = codex.sessions();
    assert_eq!(sessions[0]["state"], "WAITING", "{sessions:#}");
    assert!(sessions[0]["waits_until"].as_str().unwrap().starts_with("2036-11-1"), "{sessions:#}");
}

/// A repository whose owner has connected it for everybody.
fn shared(turns: impl Into<Scenario>) -> Option<Connected> {
    let claude = Connected::new(Agent::Claude, turns)?;
    claude.wiggum(&["uninstall", "claude"]);
    claude.wiggum(&["install", "claude", "--project"]);
    let repository = claude.place.repository().canonicalize().unwrap();
    let trusted = json!({ "projects": { repository.to_str().unwrap(): { "hasTrustDialogAccepted": true } } });
    fs::create_dir_all(claude.place.home().join(".claude")).unwrap();
    fs::write(claude.place.home().join(".claude/.claude.json"), trusted.to_string()).unwrap();
    Some(claude)
}

#[test]
fn a_repository_can_be_connected_for_everybody() {
    let Some(mut claude) = shared([Turn::says("Not yet."), done().forever()]) else { return };
    let programs = claude.wiggum.parent().unwrap().to_str().unwrap().to_owned();
    let path = std::env::var("PATH").unwrap();
    claude.env.push(("PATH".to_owned(), format!("{programs}:{path}")));
    let result: Value = serde_json::from_str(&claude.run("/ralph-loop make it", &[])).unwrap();
    assert_eq!(result["result"], "All there.\n\n<promise>DONE</promise>", "{result:#}");
    assert_eq!(claude.sessions()[0]["current_iteration"], 2);
}

#[test]
fn whoever_has_no_wiggum_is_not_hindered_by_a_shared_hook() {
    let Some(claude) = shared([Turn::says("Not yet.").forever()]) else { return };
    let result: Value = serde_json::from_str(&claude.run("just a question", &[])).unwrap();
    assert_eq!((&result["result"], &result["is_error"]), (&json!("Not yet."), &json!(false)), "{result:#}");
    let result: Value = serde_json::from_str(&claude.run("/ralph-loop make it", &[])).unwrap();
    assert_eq!(result["result"], "Not yet.", "{result:#}");
    assert_eq!(claude.asked().len(), 2, "nobody was sent back");
    assert!(claude.asked()[1].contains("the hooks of wiggum are not in force"), "{}", claude.asked()[1]);
}

#[test]
fn what_is_uninstalled_is_gone() {
    let Some(claude) = Connected::new(Agent::Claude, [Turn::says("hello").forever()]) else { return };
    claude.wiggum(&["uninstall", "claude"]);
    assert!(!claude.place.home().join(".claude/skills").exists());
    assert!(claude.run("/ralph-loop make it", &[]).contains("Unknown command"));
    assert!(claude.asked().is_empty());
}
