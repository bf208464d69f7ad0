//! `wiggum run` with the real coding agents, which talk to a scripted model on loopback and to nobody
//! else. Where they are not installed (`cargo xtask agents`), that is said and nothing is tested.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use support::{Run, Sandbox, Started};
use wiggum_core::event::{AgentFacts, Event, Trouble, Usage as Tokens};
use wiggum_testkit::agents::{self, Agent};
use wiggum_testkit::{Cut, HttpError, Scenario, StubModel, Turn, Usage, When};

/// A task `A` whose check is a file with something in it.
struct Stage {
    sandbox: Sandbox,
    stub: StubModel,
    agent: Agent,
}

impl Stage {
    fn new(agent: Agent, scenario: impl Into<Scenario>) -> Option<Self> {
        agent.program_or_skip("`wiggum run` with it")?;
        let stub = StubModel::start(scenario).unwrap();
        let mut sandbox = Sandbox::with_tasks(&["A"]);
        sandbox.env("PATH", agents::search_path().to_str().unwrap());
        // Codex wants its home outside of it.
        let temporary = sandbox.base().join("tmp");
        std::fs::create_dir(&temporary).unwrap();
        sandbox.env("TMPDIR", temporary.to_str().unwrap());
        let stage = Self { sandbox, stub, agent };
        stage.with(agent)
    }

    /// Gives another agent what it needs to talk to the same model.
    fn with(mut self, agent: Agent) -> Option<Self> {
        agent.program_or_skip("`wiggum run` with it")?;
        let home = self.sandbox.base().join("home");
        for (name, value) in agent.environment(&home, &self.stub.base_url()).unwrap() {
            self.sandbox.env(&name, &value);
        }
        Some(self)
    }

    /// Settings under `[agent]`.
    fn settings(self, text: &str) -> Self {
        self.sandbox.write("wiggum.toml", &format!("[agent]\nbackoff = \"10ms\"\n{text}\n"));
        self.sandbox.commit_all("settings");
        self
    }

    fn run(&self, more: &[&str]) -> Run {
        self.start(more).finish()
    }

    /// Runs until the task is done.
    #[track_caller]
    fn run_done(self) -> Self {
        self.run(&[]).exits(0);
        self.assert_done();
        self
    }

    fn start(&self, more: &[&str]) -> Started<'_> {
        let mut all = vec!["run", "--headless", "--agent", self.agent.name()];
        all.extend(["--verify", "test -s hello.txt", "--baseline", "off"]);
        all.extend(more);
        self.sandbox.launch(&self.sandbox.root, &all)
    }

    /// Runs until a tool of the agent has written to the pipe `ready`, which lies where all of them
    /// may write and git does not look.
    fn start_busy(&self) -> Started<'_> {
        self.sandbox.make_pipe("repo/ready");
        let started = self.start(&[]);
        self.sandbox.receive("repo/ready");
        started
    }

    /// What became of each start of an agent, in order.
    fn troubles(&self) -> Vec<Option<Trouble>> {
        self.facts().into_iter().map(|facts| facts.trouble).collect()
    }

    fn facts(&self) -> Vec<AgentFacts> {
        let facts = self.sandbox.events().into_iter().filter_map(|event| match event {
            Event::AgentEnded { facts, .. } => Some(*facts),
            _ => None,
        });
        facts.collect()
    }

    fn usage(&self) -> Vec<Option<Tokens>> {
        let usage = self.sandbox.events().into_iter().filter_map(|event| match event {
            Event::AgentEnded { usage, .. } => Some(usage),
            _ => None,
        });
        usage.collect()
    }

    #[track_caller]
    fn assert_done(&self) {
        assert_eq!(self.sandbox.state_of("A"), "done");
        assert_eq!(self.sandbox.read("hello.txt"), "hello\n");
        assert!(self.sandbox.changed_in("HEAD").contains(&"hello.txt".to_owned()));
        self.sandbox.assert_clean();
    }
}

/// Runs a command with the agent's own tool for that.
fn shell(agent: Agent, command: &str) -> Turn {
    let described = json!({"command": command, "description": "a step"});
    match agent {
        Agent::Claude => Turn::calls("Bash", described),
        Agent::Codex => Turn::calls("exec_command", json!({"cmd": command})),
        Agent::Copilot => Turn::calls("bash", described),
        Agent::Gemini => Turn::calls("run_shell_command", described),
    }
}

/// The turns of an agent that does its task.
fn works(agent: Agent) -> [Turn; 2] {
    let work = shell(agent, "printf 'hello\\n' > hello.txt");
    [Turn { text: "I write the file.".to_owned(), ..work }, done()]
}

/// As [`works`], after something else.
fn after(agent: Agent, first: Turn) -> [Turn; 3] {
    let [work, done] = works(agent);
    [first, work, done]
}

fn done() -> Turn {
    Turn::says("The file is written.\n\n<promise>DONE</promise>")
}

fn success(agent: Agent) -> Option<Stage> {
    let usage = Usage { input: 1000, output: 50, cache_read: 800, ..Usage::default() };
    let stage = Stage::new(agent, Scenario::from(works(agent)).usage(usage))?;
    stage.run(&[]).exits(0);
    stage.assert_done();
    let facts = stage.facts();
    assert_eq!(facts.len(), 1, "{facts:#?}");
    assert_eq!((&facts[0].trouble, facts[0].tool_calls), (&None, 1));
    assert!(facts[0].session.is_some(), "{facts:#?}");
    // The task reached the model.
    let asked = stage.stub.asked();
    assert!(asked[0].request.user.iter().any(|said| said.contains("Do A")), "{:#?}", asked[0].request.user);
    Some(stage)
}

#[test]
fn claude_does_a_task() {
    let Some(stage) = success(Agent::Claude) else { return };
    let usage = stage.usage()[0].unwrap();
    assert_eq!(
        (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens),
        (2000, 100, 1600),
        "{usage:?}"
    );
    assert!(usage.cost_usd > 0.0, "{usage:?}");
}

#[test]
fn claude_ends_at_what_is_left_of_the_budget_and_has_not_failed() {
    // Each answer costs about $1 by its own count; it would go on for ever.
    let usage = Usage { input: 200_000, output: 50, ..Usage::default() };
    let busy = shell(Agent::Claude, "printf 'half\\n' > half.txt").uses(usage).forever();
    let Some(stage) = Stage::new(Agent::Claude, [busy]) else { return };
    let run = stage.run(&["--max-cost", "1.5"]).exits(4);
    assert!(run.stdout.contains("(budget_exhausted)"), "{}", run.stdout);
    assert_eq!(stage.troubles(), [Some(Trouble::Budget)]);
    let state = stage.sandbox.state();
    let spent = state.usage.cost_usd;
    let answer = spent / stage.stub.asked().len() as f64;
    assert!(spent >= 1.5 && spent <= 1.5 + answer, "${spent} with ${answer} for each answer");
    let entry = state.task(&"A".into()).unwrap();
    assert_eq!((entry.failures, entry.kept.is_some(), stage.sandbox.state_of("A")), (0, true, "open"));
    assert_eq!(state.run.consecutive_errors, 0);
    // Its twin: with enough money the same agent comes to its end.
    let cheap = Usage { input: 1000, output: 50, ..Usage::default() };
    let Some(stage) = Stage::new(Agent::Claude, Scenario::from(works(Agent::Claude)).usage(cheap)) else {
        return;
    };
    stage.run(&["--max-cost", "1.5"]).exits(0);
    stage.assert_done();
}

#[test]
fn an_answer_of_claude_that_is_complete_is_judged_whatever_it_cost() {
    let dear = Usage { input: 300_000, output: 50, ..Usage::default() };
    let [work, done] = works(Agent::Claude);
    let Some(stage) = Stage::new(Agent::Claude, [work, done.uses(dear)]) else { return };
    stage.run(&["--max-cost", "1"]).exits(0).never_says("stopped at the loop budget");
    stage.assert_done();
    assert_eq!(stage.troubles(), [None]);
    assert!(stage.sandbox.state().usage.cost_usd > 1.0);
    // Its twin: a complete answer without the claim is none.
    let unfinished = Turn::says("I have only looked around.").uses(dear);
    let Some(stage) = Stage::new(Agent::Claude, after(Agent::Claude, unfinished)) else { return };
    stage.run(&["--max-cost", "1"]).exits(4);
    assert_eq!((stage.troubles(), stage.sandbox.state_of("A")), (vec![None], "open"));
}

#[test]
fn what_a_continued_session_cost_before_is_not_taken_off_what_is_left_again() {
    // About $1 for the first iteration, of $1.5; the second needs next to nothing.
    let dear = Usage { input: 200_000, output: 50, ..Usage::default() };
    let unfinished = Turn::says("I have only looked around.").uses(dear);
    let scenario = Scenario::from(after(Agent::Claude, unfinished));
    let Some(stage) = Stage::new(Agent::Claude, scenario) else { return };
    let stage = stage.settings("continue = true");
    stage.run(&["--max-cost", "1.5"]).exits(0);
    stage.assert_done();
    assert_eq!(stage.troubles(), [None, None]);
    let sessions: BTreeSet<_> = stage.stub.asked().into_iter().map(|asked| asked.request.session).collect();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    let cost: Vec<f64> = stage.usage().into_iter().map(|usage| usage.unwrap().cost_usd).collect();
    assert!(cost[0] > 0.9 && cost[1] < 0.1, "{cost:?}");
}

#[test]
fn codex_does_a_task() {
    let Some(stage) = success(Agent::Codex) else { return };
    let usage = stage.usage()[0].unwrap();
    assert_eq!((usage.output_tokens, usage.cache_read_tokens), (100, 1600), "{usage:?}");
}

/// The key of a provider of one's own has a name that nobody can know.
#[test]
fn a_key_that_codex_misses_because_of_us_is_told() {
    let Some(mut stage) = Stage::new(Agent::Codex, works(Agent::Codex)) else { return };
    let settings = stage.sandbox.base().join("home/.codex/config.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    assert!(text.contains("OPENAI_API_KEY"), "{text}");
    std::fs::write(&settings, text.replace("OPENAI_API_KEY", "PROVIDER_API_KEY")).unwrap();
    stage.sandbox.env("PROVIDER_API_KEY", "sk-stub");
    let advice = "PROVIDER_API_KEY is withheld by wiggum; pass_env = [\"PROVIDER_API_KEY\"]";
    stage.run(&["--max-retries", "0"]).says(advice).never_says("codex login");
    assert_eq!(stage.troubles(), [Some(Trouble::Authentication)]);
    stage.sandbox.wiggum(&["agents"]).says(advice);

    let stage = stage.settings("pass_env = [\"PROVIDER_API_KEY\"]");
    stage
        .sandbox
        .wiggum(&["agents"])
        .never_says("withheld")
        .never_says("codex login")
        .says("PROVIDER_API_KEY is set");
    stage.run(&[]).exits(0);
    stage.assert_done();
}

#[test]
fn copilot_does_a_task() {
    success(Agent::Copilot);
}

#[test]
fn gemini_does_a_task() {
    success(Agent::Gemini);
}

#[test]
fn an_error_of_the_model_is_told_in_its_words_and_tried_again() {
    let refused = Turn::fails(HttpError::new(400, "messages: not like this"));
    let Some(stage) = Stage::new(Agent::Claude, after(Agent::Claude, refused)) else { return };
    let run = stage.settings("").run_done();
    assert_eq!(run.troubles(), [Some(Trouble::Other), None]);
    let told = run.sandbox.events().into_iter().any(|event| {
        matches!(event, Event::AgentEnded { error: Some(error), .. } if error.message.contains("not like this"))
    });
    assert!(told, "{:#?}", run.sandbox.events());
}

#[test]
fn a_usage_limit_costs_nothing_and_another_agent_takes_over() {
    let limit = json!({"error": {
        "type": "usage_limit_reached", "message": "The usage limit has been reached",
        "plan_type": "plus", "resets_at": 2_110_086_276_u64}});
    let limited =
        Turn::fails(HttpError::new(429, "").body(limit)).when(When::Model("gpt".to_owned())).forever();
    let Some(stage) = Stage::new(Agent::Codex, after(Agent::Claude, limited)) else { return };
    let Some(stage) = stage.with(Agent::Claude) else { return };
    let stage = stage.settings("fallback = [\"claude\"]").run_done();
    let troubles = stage.troubles();
    assert!(matches!(troubles[..], [Some(Trouble::UsageLimit { resets_at: Some(_) }), None]), "{troubles:?}");
    assert_eq!(stage.sandbox.trailer("HEAD", "Wiggum-Attempt"), "1");
}

#[test]
fn a_usage_limit_beyond_patience_ends_the_run_and_says_until_when() {
    let limited = HttpError::new(429, "This request would exceed your account's rate limit.")
        .header("anthropic-ratelimit-unified-status", "rejected")
        .header("anthropic-ratelimit-unified-reset", "2110086276")
        .header("anthropic-ratelimit-unified-representative-claim", "five_hour")
        .header("x-should-retry", "false");
    let Some(mut stage) = Stage::new(Agent::Claude, [Turn::fails(limited).forever()]) else { return };
    stage.sandbox.env("ANTHROPIC_API_KEY", "");
    stage.sandbox.env("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-stub");
    let stage = stage.settings("max_wait = \"1h\"");
    stage.run(&[]).exits(6).says("2036-11-12");
    assert_eq!(stage.sandbox.state_of("A"), "open");
}

#[test]
fn overload_is_waited_out_by_the_engine() {
    // One more than the agent tries by itself.
    let overloaded = Turn::fails(HttpError::new(529, "Overloaded")).times(2);
    let Some(stage) = Stage::new(Agent::Claude, after(Agent::Claude, overloaded)) else { return };
    let stage = stage.settings("env = { CLAUDE_CODE_MAX_RETRIES = \"1\" }").run_done();
    assert_eq!(stage.troubles(), [Some(Trouble::Overloaded), None]);
    assert_eq!(stage.sandbox.trailer("HEAD", "Wiggum-Attempt"), "1");
}

#[test]
fn a_wrong_key_ends_the_run_at_once() {
    let wrong = Turn::fails(HttpError::new(401, "invalid x-api-key")).forever();
    let Some(stage) = Stage::new(Agent::Claude, [wrong]) else { return };
    let stage = stage.settings("");
    stage.run(&[]).exits(6).says("claude cannot work: not logged in, or not permitted (person_needed)");
    assert_eq!(stage.troubles(), [Some(Trouble::Authentication)]);
    // Not the ten times it would try by itself.
    assert!(stage.stub.asked().len() <= 3, "{}", stage.stub.asked().len());
}

#[test]
fn half_an_answer_is_no_success_although_claude_says_so() {
    let agent = Agent::Claude;
    let half = || Turn::says("Half an answer.\n\n<promise>DONE</promise>").cut(Cut::End);
    let [work, done] = works(agent);
    // At once, and after a tool's result.
    let turns = [half(), shell(agent, "touch looked.txt"), half(), work, done];
    let Some(stage) = Stage::new(agent, turns) else { return };
    let stage = stage.settings("").run_done();
    assert_eq!(stage.troubles(), [Some(Trouble::Truncated), Some(Trouble::Truncated), None]);
}

#[test]
fn a_broken_stream_is_a_fault_of_the_network_with_codex() {
    let half = Turn::says("Half an answer.\n\n<promise>DONE</promise>").cut(Cut::End).times(2);
    let Some(stage) = Stage::new(Agent::Codex, after(Agent::Codex, half)) else { return };
    let stage = stage.settings("").run_done();
    assert_eq!(stage.troubles(), [Some(Trouble::Network), None]);
}

#[test]
fn silence_is_ended_with_everything_that_runs() {
    let silent = Turn::says("Never heard to its end.").hangs_midway();
    let Some(stage) = Stage::new(Agent::Claude, after(Agent::Claude, silent)) else { return };
    let stage = stage.settings("silence = \"5s\"").run_done();
    assert_eq!(stage.troubles(), [Some(Trouble::Silent), None]);
}

#[test]
fn a_denied_permission_is_named() {
    let Some(stage) = Stage::new(Agent::Claude, works(Agent::Claude)) else { return };
    let stage = stage.settings("args = [\"--permission-mode\", \"default\"]");
    stage.run(&["--max-iterations", "1"]).exits(3);
    assert_eq!(stage.troubles(), [Some(Trouble::PermissionDenied)]);
}

#[test]
fn a_full_context_is_named_and_the_next_one_is_fresh() {
    let full = Turn::fails(HttpError::new(400, "prompt is too long: 214000 tokens > 200000 maximum"));
    let Some(stage) = Stage::new(Agent::Claude, after(Agent::Claude, full)) else { return };
    let stage = stage.settings("").run_done();
    assert_eq!(stage.troubles(), [Some(Trouble::ContextFull), None]);
    let sessions: Vec<_> = stage.stub.asked().into_iter().map(|asked| asked.request.session).collect();
    assert_ne!(sessions.first(), sessions.last());
}

/// Interrupts wiggum while a tool of the agent runs; the next run finishes the work.
fn interrupted(agent: Agent) {
    let busy = shell(agent, "printf 'hello\\n' > hello.txt; echo > ready; sleep 1000");
    let Some(stage) = Stage::new(agent, after(agent, busy)) else { return };
    let stage = stage.settings("");
    let started = stage.start_busy();
    started.signal("INT");
    started.finish().exits(130);
    stage.run_done();
}

#[test]
fn an_interrupt_leaves_no_process_of_claude() {
    interrupted(Agent::Claude);
}

#[test]
fn an_interrupt_leaves_no_process_of_codex() {
    interrupted(Agent::Codex);
}

#[test]
fn an_interrupt_leaves_no_process_of_copilot() {
    interrupted(Agent::Copilot);
}

#[test]
fn an_interrupt_leaves_no_process_of_gemini() {
    interrupted(Agent::Gemini);
}

#[test]
fn what_an_agent_leaves_running_is_ended() {
    let agent = Agent::Claude;
    let left = shell(agent, "nohup setsid sleep 1000 > /dev/null 2>&1 & printf 'hello\\n' > hello.txt");
    let Some(stage) = Stage::new(agent, [left, done()]) else { return };
    let stage = stage.settings("").run_done();
    let ended = stage.sandbox.events().into_iter().find_map(|event| match event {
        Event::AgentEnded { ended_processes, .. } => Some(ended_processes),
        _ => None,
    });
    assert_eq!(ended, Some(1));
}

/// Kills wiggum while a tool of the agent runs. The watchdog or the next run ends what it left, and the work gets
/// done.
fn killed(agent: Agent) {
    let busy = shell(agent, "echo > ready; sleep 1000");
    let Some(stage) = Stage::new(agent, after(agent, busy)) else { return };
    let stage = stage.settings("");
    let started = stage.start_busy();
    started.kill();
    stage.run_done();
}

#[test]
fn what_claude_left_when_wiggum_was_killed_is_ended() {
    killed(Agent::Claude);
}

#[test]
fn what_codex_left_when_wiggum_was_killed_is_ended() {
    killed(Agent::Codex);
}

#[test]
fn a_session_is_gone_on_with_over_iterations() {
    let agent = Agent::Claude;
    let unfinished = Turn::says("I have only looked around.");
    let Some(stage) = Stage::new(agent, after(agent, unfinished)) else { return };
    let stage = stage.settings("continue = true").run_done();
    let asked = stage.stub.asked();
    let sessions: BTreeSet<_> = asked.iter().map(|asked| asked.request.session.as_str()).collect();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    // It remembers what it was told first, and what it said.
    let remembered = asked.last().unwrap().request.user.iter().filter(|said| said.contains("Do A")).count();
    assert_eq!(remembered, 2);
}

#[test]
fn an_agent_gets_its_own_key_and_no_other() {
    let agent = Agent::Claude;
    let show = shell(agent, "printf '%s %s' ${OPENAI_API_KEY:-none} ${ANTHROPIC_API_KEY:+some} > ../keys");
    let Some(mut stage) = Stage::new(agent, after(agent, show)) else { return };
    stage.sandbox.env("OPENAI_API_KEY", "sk-stub");
    let stage = stage.settings("").run_done();
    assert_eq!(stage.sandbox.note("keys"), "none some");
}

/// What somebody says while an agent works reaches the model after the tool call under way.
fn nudged(agent: Agent, settings: &str) {
    let scenario = after(agent, shell(agent, "cat \"$SANDBOX/go\" > /dev/null"));
    let Some(stage) = Stage::new(agent, scenario) else { return };
    let stage = stage.settings(settings);
    stage.sandbox.make_pipe("go");
    let started = stage.start(&[]);
    assert!(stage.stub.wait_asked(1, Duration::from_secs(60)), "the model was not asked");
    let mut nudge = stage.sandbox.command(env!("CARGO_BIN_EXE_wiggum"));
    let output = nudge.current_dir(&stage.sandbox.root).args(["nudge", "mind the gap"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("next tool call"), "{output:?}");
    stage.sandbox.go();
    started.finish().exits(0);
    let told = stage.stub.requests().iter().any(|seen| seen.body.to_string().contains("mind the gap"));
    assert!(told, "the model was not told");
    let delivered = stage.sandbox.events().into_iter().find_map(|event| match event {
        Event::Nudged { text, delivered, .. } if text == "mind the gap" => Some(delivered),
        _ => None,
    });
    assert_eq!(delivered, Some(true));
}

#[test]
fn a_nudge_reaches_claude_at_work() {
    nudged(Agent::Claude, "");
}
